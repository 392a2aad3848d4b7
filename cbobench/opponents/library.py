"""What methods of other libraries share: how a run begins, the unit cube it works on, the extra
that installs them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from typing import Any, ClassVar
from warnings import catch_warnings, simplefilter

import numpy as np

from cbobench.algorithms.asktell import AskTell, Given
from cbobench.algorithms.references import SobolSequence
from cbobench.errors import CellFailure, Misuse
from cbobench.gp.box_actions import ActionSet, Box
from cbobench.gp.kernels import Array, Mask
from cbobench.gp.mixed_actions import Mixed
from cbobench.problems.base import Problem
from cbobench.problems.tables.inputs import InputSpace
from cbobench.registry import tell_install

MARGIN_IS = "constraints are moved in by it, in units of their spread over what was observed"


@dataclass(kw_only=True)
class CubeMethod(AskTell):
    """Base of a method whose runs work on the unit cube.

    Class attributes:
        optimiser_class: of a run's optimiser, called with what the run is given and the method.
    """

    optimiser_class: ClassVar[type[Any]]

    def optimiser(self, run: Given) -> Any:
        return self.optimiser_class(run, self)


@dataclass(kw_only=True)
class LibraryMethod(CubeMethod):
    """Base of a method of another library.

    Class attributes:
        extra: the extra of cbobench that installs its libraries.
    """

    extra: ClassVar[str]

    @classmethod
    def missing(cls) -> str:
        """Return what is not installed and how to install it, in one line; "" if nothing is
        missing.
        """
        absent = [name for name in cls.libraries if find_spec(name) is None]
        if not absent:
            return ""
        return (
            f"it needs {' and '.join(absent)}, not installed here; to install: "
            f"{tell_install(cls.extra)}"
        )

    def check(self, problem: Problem) -> None:
        if self.missing():
            raise Misuse(self.missing())


def find_types(actions: ActionSet) -> InputSpace | Mixed | None:
    """Return what codes and decodes actions of typed inputs; None where inputs have no types."""
    if isinstance(actions, Mixed):
        return actions
    return getattr(actions, "space", None)


class GivenCube:
    """The actions of a run in the unit cube, on which the libraries work."""

    def __init__(self, run: Given) -> None:
        self.run = run
        self.low, side = run.low, run.high - run.low
        # A coordinate that never varies has no side to divide by.
        self.side = np.where(side > 0, side, 1.0)
        self.d = run.d
        actions = run.setting.actions
        self.box = actions if isinstance(actions, Box) else None
        # A box some of whose points known constraints forbid; None otherwise.
        self.limited = self.box if self.box is not None and self.box.known else None
        self.mixed = actions if isinstance(actions, Mixed) else None

    @cached_property
    def choices(self) -> Array | None:
        """The points (n, d) of a finite set; None on a box."""
        if self.run.points is None:
            return None
        return (self.run.points - self.low) / self.side

    def action(self, unit: Any) -> Array:
        """Return the point of the problem for a point (d,) in or beside the cube."""
        if self.box is not None:
            return self.box.scale(np.asarray(unit))
        return np.clip(self.low + np.asarray(unit) * self.side, self.run.low, self.run.high)

    def unit(self, x: Any) -> Array:
        """Return the point of the cube (d,) for a point of the problem."""
        if self.box is not None:
            return np.clip(self.box.unit(np.asarray(x)), 0.0, 1.0)
        return np.clip((np.asarray(x) - self.low) / self.side, 0.0, 1.0)

    # For libraries that take whole numbers as such, and choices by their numbers ------------------

    @cached_property
    def counted(self) -> Mask:
        """Whole numbers and choices, (d,), but for those that are scaled by logarithms."""
        if self.mixed is None:
            return np.zeros(self.d, dtype=bool)
        return self.mixed.held & ~self.mixed.logs

    @cached_property
    def ends(self) -> tuple[Array, Array]:
        """Both ends of the sides, (d,) each: of what is counted half a step beyond its values."""
        low = np.where(self.counted, self.run.low - 0.5, 0.0)
        high = np.where(self.counted, self.run.high + 0.5, 1.0)
        return low, high

    def count(self, units: Array) -> Array:
        """Return points of the cube (..., d) with the values of what is counted."""
        if self.mixed is None:
            return units
        return np.where(self.counted, self.mixed.scale(units), units)

    def uncount(self, points: Any) -> Any:
        """Return the points of the cube (..., d) for those that `count` gives."""
        if self.mixed is None:
            return points
        low, high = self.ends
        return (points - low) / (high - low)


class CubeRun:
    """Base of a run's optimiser on the unit cube.

    Args:
        run: what it is given.
        method: whose parameters it has.
    """

    def __init__(self, run: Given, method: Any) -> None:
        self.cube = GivenCube(run)
        self.method = method
        self.generator = run.generator
        self.best_initial: tuple[float, float] = (np.inf, np.inf)

    def is_best(self, f: float, g: Array) -> bool:
        """Record a point of a suite's initial design; whether it is the best so far, feasible ones
        first.
        """
        key = float(np.maximum(g, 0.0).sum()), -f
        if not key < self.best_initial:  # nor is one of NaN
            return False
        self.best_initial = key
        return True


def fill_untold(rows: Sequence[Array]) -> Array:
    """Return rows (f, g_1, ..., g_m) as an array (n, 1 + m), in which the lowest f that was told
    stands for one that was not (NaN); 0 before any.
    """
    values = np.array(rows)
    is_untold = np.isnan(values[:, 0])
    values[is_untold, 0] = 0.0 if is_untold.all() else np.nanmin(values[:, 0])
    return values


class ModelRun(CubeRun):
    """Base of a run whose library suggests a point from all that was observed, after a Sobol set.

    The method has the parameters `initial`, points of the Sobol set, and `margin`.
    """

    def __init__(self, run: Given, method: Any) -> None:
        super().__init__(run, method)
        # Its points are the same with any number of threads, which would compete between workers.
        os.environ.setdefault("RAYON_NUM_THREADS", "1")
        self.sobol = SobolSequence(run.d, run.generator)
        self.x: list[Array] = []
        self.y: list[Array] = []

    def suggest(self, x: Array, y: Array) -> Any:
        """Return the next point (d,), as `GivenCube.count` gives them, after the points x (n, d)
        with the values y (n, 1 + m), f of which is to be minimised.
        """
        raise NotImplementedError

    def ask(self) -> Array:
        if len(self.x) < self.method.initial:
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
        y = fill_untold(self.y) * np.array([-1.0, *[1.0] * self.cube.run.m])  # it minimises
        if self.method.margin > 0:
            y[:, 1:] += self.method.margin * y[:, 1:].std(axis=0)
        x = self.cube.count(np.array(self.x))
        try:
            return np.asarray(self.cube.uncount(self.suggest(x, y)))
        except BaseException as error:  # a panic of Rust is no Exception
            if type(error).__name__ != "PanicException":
                raise
            raise CellFailure(f"{self.method.extra}: {str(error).splitlines()[0]}") from error

    def tell(self, x: Array, f: float, g: Array) -> None:
        self.x.append(self.cube.unit(x))
        self.y.append(np.array([f, *g]))


@contextmanager
def silence_library() -> Iterator[None]:
    """Ignore a library's warnings and floating-point errors inside the block, or the function that
    it decorates.
    """
    with np.errstate(all="ignore"), catch_warnings():
        simplefilter("ignore")
        yield
