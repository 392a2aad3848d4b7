"""An opponent from pymoo (Blank & Deb 2020): `pip install 'cbobench[pymoo]'`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cbobench.algorithms import ALGORITHMS
from cbobench.algorithms.asktell import Given
from cbobench.gp.kernels import Array
from cbobench.opponents.library import GivenCube, LibraryMethod, silence_library
from cbobench.params import param


class Generations:
    """A population of pymoo's, evaluated one individual per round; after the last one a generation is over."""

    def __init__(self, given: Given, method: PymooGA) -> None:
        self.cube = GivenCube(given)
        with silence_library():
            from pymoo.algorithms.soo.nonconvex.ga import GA
            from pymoo.core.problem import Problem
            from pymoo.core.termination import NoTermination

            problem = Problem(n_var=given.d, n_obj=1, n_ieq_constr=given.m, xl=0.0, xu=1.0)
            self.ga = GA(pop_size=method.population, n_offsprings=method.offspring)
            self.ga.setup(problem, termination=NoTermination(), seed=given.seed, verbose=False)
        self.population: Any = []
        self.evaluated = 0

    def ask(self) -> Array:
        if self.evaluated == len(self.population):
            with silence_library():
                if self.evaluated:
                    self.ga.tell(infills=self.population)
                self.population, self.evaluated = self.ga.ask(), 0
        return self.cube.action(self.population[self.evaluated].X)

    def tell(self, x: Array, f: float, g: Array) -> None:
        one = self.population[self.evaluated]
        one.X, one.F, one.G = self.cube.unit(x), np.array([-f]), g
        one.evaluated.update(("F", "G"))
        self.evaluated += 1

    def observe(self, x: Array, f: float, g: Array) -> None:
        """An individual that was not asked for takes the place of the next one."""
        self.ask()
        self.tell(x, f, g)


@ALGORITHMS.register("pymoo-ga")
@dataclass(kw_only=True)
class PymooGA(LibraryMethod):
    """pymoo's genetic algorithm with its default operators, for constraints as in Deb (2000).

    Feasible individuals are fitter than others, which are ranked by total violation. The population is smaller than
    pymoo's 100, which would be random search over the horizons of this field. On a finite set the nearest action is
    played, and becomes the individual.
    """

    source = "pymoo (Blank & Deb 2020); Deb (2000)"
    about = "genetic algorithm of the pymoo library, feasible ones first"
    cost = "O(d)"
    extra = "pymoo"
    libraries = ("pymoo",)

    population: int = param(20, "size of the population (pop_size; pymoo: 100)", at_least=2)
    offspring: int = param(10, "individuals per generation (n_offsprings; pymoo: the population)", at_least=1)

    def optimiser(self, given: Given) -> Generations:
        return Generations(given, self)
