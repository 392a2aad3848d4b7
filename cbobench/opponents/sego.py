"""An opponent from egobox (Lafage 2022): `pip install 'cbobench[egobox]'`."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from cbobench.algorithms import ALGORITHMS
from cbobench.algorithms.asktell import Given
from cbobench.algorithms.references import SobolSequence
from cbobench.errors import CellFailure
from cbobench.gp.kernels import Array
from cbobench.opponents.library import GivenCube, LibraryMethod, fill_untold
from cbobench.params import param


class Suggestions:
    """egobox's `suggest` of all that was observed, after a Sobol set."""

    def __init__(self, given: Given, method: SEGO) -> None:
        # Its points are the same with any number of threads, which would compete between workers.
        os.environ.setdefault("RAYON_NUM_THREADS", "1")
        import egobox

        self.cube = GivenCube(given)
        self.initial = method.initial
        self.generator = given.generator
        self.sobol = SobolSequence(given.d, given.generator)
        self.x: list[Array] = []
        self.y: list[Array] = []

        def specify(i: int) -> Any:
            """Return what the library is told of input i, a choice by its number."""
            low, high = given.low[i], given.high[i]
            if not self.cube.counted[i]:
                return egobox.XSpec(egobox.XType.FLOAT, [0.0, 1.0])
            if self.cube.mixed is not None and self.cube.mixed.types[i].choices:
                return egobox.XSpec(egobox.XType.ENUM, [high + 1])
            return egobox.XSpec(egobox.XType.INT, [low, high])

        self.optimiser = egobox.Egor(
            [specify(i) for i in range(given.d)],
            cstr_specs=[egobox.CstrSpec.leq(0.0, tol=method.tolerance)] * given.m,
            infill_strategy=getattr(
                egobox.InfillStrategy, method.criterion.upper().replace("-", "_")
            ),
        )

    def ask(self) -> Array:
        if len(self.x) < self.initial:
            return self.cube.action(self.sobol.next())
        point = self._suggest()
        choices = self.cube.choices
        if choices is not None:
            point = choices[((choices - point) ** 2).sum(axis=1).argmin()]
        if self.cube.mixed is not None:
            point = self.cube.mixed.snap(point)
        # Where the library's own loop finds no other point, it ends.
        is_known = any(np.array_equal(point, known) for known in self.x)
        return self.cube.action(self.sobol.next() if is_known else point)

    def _suggest(self) -> Array:
        """Return the next point (d,) of the cube.

        Raises:
            CellFailure: a model could not be fitted.
        """
        seed = int(self.generator.integers(2**31))
        try:
            y = fill_untold(self.y) * np.array([-1.0, *[1.0] * self.cube.run.m])  # it minimises
            x = self.cube.count(np.array(self.x))
            return np.asarray(self.cube.uncount(self.optimiser.suggest(x, y, seed=seed)[0]))
        except BaseException as error:  # a panic of Rust is no Exception
            if type(error).__name__ != "PanicException":
                raise
            raise CellFailure(f"egobox: {str(error).splitlines()[0]}") from error

    def tell(self, x: Array, f: float, g: Array) -> None:
        self.x.append(self.cube.unit(x))
        self.y.append(np.array([f, *g]))


@ALGORITHMS.register("egobox")
@dataclass(kw_only=True)
class SEGO(LibraryMethod):
    """SEGO of egobox: expected improvement, climbed where the models' means of all g_j are at most
    0.

    f and every g_j have a Gaussian process each, without noise, fitted anew every round. A run
    begins with a scrambled Sobol set. A point that is known already is not played again, but the
    next one of the Sobol sequence. With the library's own tolerance, points that violate a
    constraint by as much stand as the best, which feasible ones have to beat. Whole numbers are its
    INT and choices its ENUM; whole numbers that are scaled by logarithms are rounded. On a finite
    set the nearest action is played. Other versions of egobox may play otherwise.
    """

    source = "egobox (Lafage 2022); Sasena (2002)"
    about = "expected improvement where models of the constraints say feasible (the egobox library)"
    cost = "O(m t³) per fit"
    takes_untold = True
    extra = "egobox"
    optimiser_class = Suggestions
    libraries = ("egobox",)

    initial: int = param(10, "Sobol points first", at_least=2)
    criterion: Literal["log-ei", "ei", "wb2", "wb2s"] = param(
        "log-ei",
        "what is climbed (infill_strategy): EI, in logarithms or not, or WB2, scaled or not",
    )
    tolerance: float = param(
        0.0, "constraint values up to it count as 0 (tol; the library's is 1e-4)", at_least=0.0
    )
