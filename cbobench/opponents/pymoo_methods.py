"""Opponents from pymoo (Blank & Deb 2020): `pip install 'cbobench[pymoo]'`."""

from __future__ import annotations

import math
from copy import copy
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from cbobench.algorithms import ALGORITHMS
from cbobench.algorithms.asktell import Given
from cbobench.gp.kernels import Array
from cbobench.gp.mixed_actions import Input, Mixed
from cbobench.opponents.library import GivenCube, LibraryMethod, find_types, silence_library
from cbobench.params import param, required
from cbobench.problems.tables.inputs import InputSpace


class TypedCube:
    """Actions of typed inputs as pymoo's mixed variables.

    One that is scaled by its logarithm is a float. A category is the number of its choice, because
    pymoo makes an array of the options, in which 0.5 beside text becomes "0.5".
    """

    def __init__(self, space: InputSpace | Mixed) -> None:
        self.space = space

    def variables(self) -> dict[str, Any]:
        """pymoo's variables by name."""
        from pymoo.core.variable import Choice, Integer, Real

        def variable(axis: Input) -> Any:
            if axis.kind == "choice":
                return Choice(options=[*range(len(axis.choices))])
            if axis.log:
                return Real(bounds=(math.log(axis.low), math.log(axis.high)))
            if axis.kind == "int":
                return Integer(bounds=(int(axis.low), int(axis.high)))
            return Real(bounds=(axis.low, axis.high))

        return {axis.name: variable(axis) for axis in self.space.types}

    def action(self, values: dict[str, Any]) -> Any:
        """The action that is played for them, of a finite set the nearest one."""
        plain = {
            axis.name: math.exp(values[axis.name]) if axis.log else values[axis.name]
            for axis in self.space.types
        }
        return self.space.decode(plain)

    def unit(self, x: Any) -> dict[str, Any]:
        """pymoo's values of an action, by its coordinates or its index."""
        values = self.space.code(x)
        return {
            axis.name: math.log(values[axis.name]) if axis.log else values[axis.name]
            for axis in self.space.types
        }


class Generations:
    """A population of pymoo's, evaluated one individual per round; after the last one a generation
    is over.
    """

    @silence_library()
    def __init__(self, run: Given, method: PymooMethod) -> None:
        from pymoo.core.problem import Problem
        from pymoo.core.termination import NoTermination

        self.run = run
        self.space = find_types(run.setting.actions) if method.mixed else None
        if self.space is None:
            self.cube: GivenCube | TypedCube = GivenCube(run)
            variables: dict[str, Any] = {"n_var": run.d, "xl": 0.0, "xu": 1.0}
        else:
            self.cube = TypedCube(self.space)
            variables = {"vars": self.cube.variables()}
        problem = Problem(n_obj=1, n_ieq_constr=run.m, **variables)
        self.algorithm = method.algorithm(self.space is not None)
        self.algorithm.setup(problem, termination=NoTermination(), seed=run.seed, verbose=False)
        self.population: Any = []
        self.evaluated = 0

    @silence_library()
    def ask(self) -> Any:
        if self.evaluated == len(self.population):
            if self.evaluated:
                self.algorithm.tell(infills=self.population)
            offspring = self.algorithm.ask()
            self.population = self._repeat() if offspring is None else offspring
            self.evaluated = 0
        return self.cube.action(self.population[self.evaluated].X)

    def _repeat(self) -> Any:
        """Offspring that may be played before, from now on: pymoo gives none where it finds no
        other, and would end.
        """
        from pymoo.core.duplicate import NoDuplicateElimination

        # A copy, because pymoo's default is one object for all runs.
        self.algorithm.mating = copy(self.algorithm.mating)
        self.algorithm.mating.eliminate_duplicates = NoDuplicateElimination()
        self.algorithm.termination.force_termination = False
        return self.algorithm.ask()

    def refuse(self, x: Any) -> None:
        """Put a random individual in the place of the last one."""
        point: Any = self.run.generator.random(self.run.d)
        if isinstance(self.space, Mixed):
            point = self.cube.unit(self.space.scale(point))
        self.population[self.evaluated].X = point

    def tell(self, x: Any, f: float, g: Array) -> None:
        individual = self.population[self.evaluated]
        individual.X = self.cube.unit(x)
        individual.F = np.array([-f])
        individual.G = g
        individual.evaluated.update(("F", "G"))
        self.evaluated += 1

    def observe(self, x: Array, f: float, g: Array) -> None:
        """An individual that was not asked for takes the place of the next one."""
        self.ask()
        self.tell(x, f, g)


@dataclass(kw_only=True)
class PymooMethod(LibraryMethod):
    """Base of pymoo's algorithms for one objective.

    The population is smaller than pymoo's 100, which would be random search over the horizons of
    this field. On a finite set the nearest action is played, and becomes the individual.

    Class attributes:
        mixed: whether typed inputs keep their types.
    """

    mixed: ClassVar[bool]
    cost = "O(d)"
    extra = "pymoo"
    libraries = ("pymoo",)
    optimiser_class = Generations

    population: int = param(20, "size of the population (pop_size; pymoo: 100)", at_least=2)

    @required
    def algorithm(self, typed: bool) -> Any:
        """Return pymoo's algorithm, for mixed variables if inputs are typed."""
        raise NotImplementedError


@ALGORITHMS.register("pymoo-ga")
@dataclass(kw_only=True)
class PymooGA(PymooMethod):
    """pymoo's genetic algorithm with its default operators, for constraints as in Deb (2000).

    Feasible individuals are fitter than others, which are ranked by total violation. Typed inputs
    keep their types (`MixedVariableGA`). Offspring differ from the population until it finds no
    other; then they may repeat it.
    """

    source = "pymoo (Blank & Deb 2020); Deb (2000)"
    about = "genetic algorithm of the pymoo library, feasible ones first"
    mixed = True

    offspring: int = param(
        10, "individuals per generation (n_offsprings; pymoo: the population)", at_least=1
    )

    def algorithm(self, typed: bool) -> Any:
        from pymoo.algorithms.soo.nonconvex.ga import GA
        from pymoo.core.mixed import MixedVariableGA

        return (MixedVariableGA if typed else GA)(
            pop_size=self.population, n_offsprings=self.offspring
        )


@ALGORITHMS.register("pymoo-de")
@dataclass(kw_only=True)
class PymooDE(PymooMethod):
    """pymoo's differential evolution with its default variant, DE/best/1/bin.

    Each individual is replaced by its offspring if that is better: feasible in place of infeasible,
    or less violation, or, if both are feasible, a better f. Typed inputs are points of the cube,
    rounded to an action, which becomes the individual.
    """

    source = "pymoo (Blank & Deb 2020); Storn & Price (1997)"
    about = "differential evolution of the pymoo library, feasible ones first"
    mixed = False

    population: int = param(
        20, "size of the population, and of a generation (pop_size; pymoo: 100)", at_least=4
    )

    def algorithm(self, typed: bool) -> Any:
        from pymoo.algorithms.soo.nonconvex.de import DE

        return DE(pop_size=self.population)
