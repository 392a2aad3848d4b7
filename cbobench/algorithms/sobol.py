"""Quasi-random search: what a method that looks at no observation gets of an evenly spread set."""

from __future__ import annotations

from dataclasses import dataclass

from cbobench.algorithms import ALGORITHMS
from cbobench.algorithms.asktell import Given
from cbobench.algorithms.library import GivenCube, LibraryMethod, Scattered
from cbobench.gp.kernels import Array


class Sequence:
    def __init__(self, given: Given) -> None:
        self.cube, self.scattered = GivenCube(given), Scattered(given.d, given.generator)

    def ask(self) -> Array:
        return self.cube.action(self.scattered.next())

    def tell(self, x: Array, f: float, g: Array) -> None:
        """Nothing is learnt."""


@ALGORITHMS.register("sobol")
@dataclass(kw_only=True)
class Sobol(LibraryMethod):
    """The points of a scrambled Sobol sequence (SciPy's), another scrambling for each seed.

    On a finite set the nearest actions are played, some of them more than once.
    """

    late = True

    source = "Sobol (1967), Owen (1998); SciPy"
    about = "plays a scrambled Sobol sequence"

    def optimiser(self, given: Given) -> Sequence:
        return Sequence(given)
