"""The common part of methods of other libraries: the extra that installs them, and the unit cube on which they work."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from typing import Any, ClassVar
from warnings import catch_warnings, simplefilter

import numpy as np

from cbobench.algorithms.asktell import AskTell, Given
from cbobench.errors import Misuse
from cbobench.gp.kernels import Array
from cbobench.problems.base import Problem


@dataclass(kw_only=True)
class LibraryMethod(AskTell):
    """Base of a method of another library.

    Class attributes:
        extra: the extra of cbobench that installs its libraries.
    """

    extra: ClassVar[str]

    @classmethod
    def missing(cls) -> str:
        """Return what is not installed and how to install it, in one line; "" if nothing is missing."""
        absent = [name for name in cls.libraries if find_spec(name) is None]
        if not absent:
            return ""
        return f"it needs {' and '.join(absent)}, not installed here; to install: pip install 'cbobench[{cls.extra}]'"

    def check(self, problem: Problem) -> None:
        if self.missing():
            raise Misuse(self.missing())


class GivenCube:
    """The actions of a run in the unit cube, on which the libraries work."""

    def __init__(self, given: Given) -> None:
        self.given = given
        self.low, side = given.low, given.high - given.low
        # A coordinate that never varies has no side to divide by.
        self.side = np.where(side > 0, side, 1.0)
        self.d = given.d

    @cached_property
    def choices(self) -> Array | None:
        """The points (n, d) of a finite set; None on a box."""
        return None if self.given.points is None else (self.given.points - self.low) / self.side

    def action(self, unit: Any) -> Array:
        """Return the point of the problem for a point (d,) in or beside the cube."""
        return np.clip(self.low + np.asarray(unit) * self.side, self.given.low, self.given.high)

    def unit(self, x: Any) -> Array:
        """Return the point of the cube (d,) for a point of the problem."""
        return np.clip((np.asarray(x) - self.low) / self.side, 0.0, 1.0)


@contextmanager
def silence_library() -> Iterator[None]:
    """Ignore a library's warnings and floating-point errors inside the block."""
    with np.errstate(all="ignore"), catch_warnings():
        simplefilter("ignore")
        yield
