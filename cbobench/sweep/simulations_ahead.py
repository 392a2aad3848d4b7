"""The simulations that a plan takes, of each of its simulators: said before they are made."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping

from cbobench.problems.base import Problem
from cbobench.problems.pilot import PILOT
from cbobench.problems.simulation_totals import CellRounds, SimulationTotals, count_simulations
from cbobench.problems.simulator import Simulator
from cbobench.suite.variants import INITIAL
from cbobench.sweep.blocks import Tasks


def count_ahead(tasks: Tasks, problems: Mapping[str, Problem]) -> dict[str, SimulationTotals]:
    """Return the simulations of the cells to play, by the title of their simulator.

    Args:
        problems: prepared, by title.
    """
    counts: dict[str, Counter[CellRounds]] = defaultdict(Counter)
    for pair_cells in tasks.by_pair:
        design = pair_cells.pair.algorithm.values.get(INITIAL) or {}
        rounds = CellRounds(pair_cells.horizon, tasks.options.keep, design.get(PILOT, 0))
        counts[pair_cells.pair.problem.title][rounds] += len(pair_cells)
    totals = {}
    for title, cells in counts.items():
        problem = problems[title]
        if isinstance(problem, Simulator):
            totals[title] = count_simulations(problem, cells, problem.pilot_facts.seconds)
    return totals
