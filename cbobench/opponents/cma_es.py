"""An opponent from pycma (Hansen et al.): `pip install 'cbobench[cma]'`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from cbobench.algorithms import ALGORITHMS
from cbobench.algorithms.asktell import Given
from cbobench.gp.kernels import Array
from cbobench.opponents.library import CubeRun, LibraryMethod, silence_library
from cbobench.params import param


class Evolution(CubeRun):
    """pycma's strategy, whose points are evaluated one per round; after the last one a generation
    is over.
    """

    @silence_library()
    def __init__(self, run: Given, method: CMAES) -> None:
        super().__init__(run, method)
        self.generation: list[Any] = []
        self.evaluations: list[tuple[float, Array]] = []
        self._begin(self.generator.random(self.cube.d))

    def _begin(self, start: Array) -> None:
        import cma

        def normal(*shape: int) -> Any:
            return self.generator.standard_normal(shape)

        # Random numbers come from the run's stream; NaN as a seed leaves NumPy's global generator
        # alone.
        options: dict[str, Any] = {
            "bounds": [*self.cube.ends],
            "randn": normal,
            "seed": np.nan,
            "verbose": -9,
            "verb_log": 0,
        }
        if self.cube.mixed is not None:
            low, high = self.cube.ends
            options["integer_variables"] = np.flatnonzero(self.cube.counted).tolist()
            options["CMA_stds"] = high - low
        if self.cube.d == 1:
            options["maxstd"] = np.inf  # its limit on step sizes raises an error in one dimension
        if self.method.population is not None:
            options["popsize"] = self.method.population
        self.strategy = cma.CMAEvolutionStrategy(self.cube.count(start), self.method.sigma, options)
        functions = {
            "fun": lambda i: -self.evaluations[i][0],
            "constraints": lambda i: self.evaluations[i][1],
        }
        quiet = {"logging": 0, "archives": False}
        self.lagrangian = cma.ConstrainedFitnessAL(**functions, **quiet, dimension=self.cube.d)

    @silence_library()
    def ask(self) -> Array:
        if len(self.evaluations) == len(self.generation):
            if self.generation:
                self._advance()
            self.generation = self.strategy.ask()
            self.evaluations = []
        return self.cube.action(self.cube.uncount(self.generation[len(self.evaluations)]))

    @silence_library()
    def refuse(self, x: Array) -> None:
        """Draw another point in the place of the last one."""
        (self.generation[len(self.evaluations)],) = self.strategy.ask(1)

    def tell(self, x: Array, f: float, g: Array) -> None:
        self.evaluations.append((f, g))

    @silence_library()
    def observe(self, x: Array, f: float, g: Array) -> None:
        """Start the strategy at the best of the points that it did not propose."""
        if self.is_best(f, g):
            self._begin(self.cube.unit(x))

    @contextmanager
    def _seed_numpy(self) -> Iterator[None]:
        """Seed NumPy's global generator, by which pycma centres whole numbers, and put it back."""
        if self.cube.mixed is None:
            yield
            return
        state = np.random.get_state()  # noqa: NPY002
        np.random.seed(self.generator.integers(2**31))  # noqa: NPY002
        try:
            yield
        finally:
            np.random.set_state(state)  # noqa: NPY002

    def _advance(self) -> None:
        """End a generation; restart if the strategy's own criteria end a run."""
        # The library's Lagrangian takes no problem without constraints.
        has_constraints = len(self.evaluations[0][1]) > 0
        fitness = [-f for f, _ in self.evaluations]
        if has_constraints:
            fitness = [self.lagrangian(i) for i in range(len(self.evaluations))]
        with self._seed_numpy():
            self.strategy.tell(self.generation, fitness)
        if has_constraints:
            self.lagrangian.update(self.strategy)
        if self.strategy.stop():
            self._begin(self.generator.random(self.cube.d))


@ALGORITHMS.register("cma-es")
@dataclass(kw_only=True)
class CMAES(LibraryMethod):
    """CMA-ES of pycma, with its augmented Lagrangian for constraints (`ConstrainedFitnessAL`) and
    its bounds.

    It begins at a uniformly random point (after a suite's initial design, at its best one), and
    again at a random one when its own criteria end a run. Whole numbers, and the numbers of
    choices, are its `integer_variables`; those that are scaled by logarithms are rounded. On a
    finite set the nearest action is played, and the point as it was asked keeps what was observed
    there.
    """

    source = "pycma (Hansen 2016); Atamna et al. (2017)"
    about = "CMA-ES of the pycma library, with an augmented Lagrangian for constraints"
    cost = "O(d²)"
    extra = "cma"
    libraries = ("cma",)
    optimiser_class = Evolution

    sigma: float = param(0.3, "first step size, in units of the sides", above=0.0)
    population: int | None = param(
        None, "points per generation (popsize); null: 4 + 3 ln d", at_least=3
    )
