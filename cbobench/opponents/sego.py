"""An opponent from egobox (Lafage 2022): `pip install 'cbobench[egobox]'`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from cbobench.algorithms import ALGORITHMS
from cbobench.algorithms.asktell import Given
from cbobench.gp.kernels import Array
from cbobench.opponents.library import MARGIN_IS, LibraryMethod, ModelRun
from cbobench.params import param


class Suggestions(ModelRun):
    """egobox's `suggest` of all that was observed."""

    def __init__(self, run: Given, method: SEGO) -> None:
        super().__init__(run, method)
        import egobox

        def specify(i: int) -> Any:
            """Return what the library is told of input i, a choice by its number."""
            low, high = run.low[i], run.high[i]
            if not self.cube.counted[i]:
                return egobox.XSpec(egobox.XType.FLOAT, [0.0, 1.0])
            if self.cube.mixed is not None and self.cube.mixed.types[i].choices:
                return egobox.XSpec(egobox.XType.ENUM, [high + 1])
            return egobox.XSpec(egobox.XType.INT, [low, high])

        self.optimiser = egobox.Egor(
            [specify(i) for i in range(run.d)],
            cstr_specs=[egobox.CstrSpec.leq(0.0, tol=method.tolerance)] * run.m,
            infill_strategy=getattr(
                egobox.InfillStrategy, method.criterion.upper().replace("-", "_")
            ),
        )

    def suggest(self, x: Array, y: Array) -> Any:
        seed = int(self.generator.integers(2**31))
        return self.optimiser.suggest(x, y, seed=seed)[0]


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
    margin: float = param(0.0, MARGIN_IS, at_least=0.0, quiet=True)
