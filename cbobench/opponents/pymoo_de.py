"""Another opponent from pymoo (Blank & Deb 2020): `pip install 'cbobench[pymoo]'`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cbobench.algorithms import ALGORITHMS
from cbobench.opponents.pymoo_ga import PymooMethod
from cbobench.params import param


@ALGORITHMS.register("pymoo-de")
@dataclass(kw_only=True)
class PymooDE(PymooMethod):
    """pymoo's differential evolution with its default variant, DE/best/1/bin.

    Each individual is replaced by its offspring if that is better: feasible in place of infeasible, or less violation,
    or, if both are feasible, a better f. Typed inputs are played as points of a finite set.
    """

    source = "pymoo (Blank & Deb 2020); Storn & Price (1997)"
    about = "differential evolution of the pymoo library, feasible ones first"
    mixed = False

    population: int = param(20, "size of the population, and of a generation (pop_size; pymoo: 100)", at_least=4)

    def algorithm(self, typed: bool) -> Any:
        from pymoo.algorithms.soo.nonconvex.de import DE

        return DE(pop_size=self.population)
