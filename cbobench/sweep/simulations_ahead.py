"""The simulations that a plan takes, of each of its simulators: said before they are made."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from cbobench.problems.base import Problem
from cbobench.problems.pilot import PILOT
from cbobench.problems.simulation_totals import CellRounds, SimulationTotals, count_simulations
from cbobench.problems.simulator import Simulator
from cbobench.suite.cells import PairCells
from cbobench.suite.variants import INITIAL
from cbobench.sweep.blocks import Tasks


def count_ahead(tasks: Tasks, problems: Mapping[str, Problem]) -> dict[str, SimulationTotals]:
    """Return the simulations of the cells to play, by the title of their simulator.

    Args:
        problems: prepared, by title.
    """
    cells_of: dict[str, list[PairCells]] = defaultdict(list)
    for pair_cells in tasks.by_pair:
        cells_of[pair_cells.pair.problem.title].append(pair_cells)
    totals = {}
    for title, pairs in cells_of.items():
        problem = problems[title]
        if isinstance(problem, Simulator):
            cells = [cell for pair_cells in pairs for cell in len(pair_cells) * [_rounds_of(pair_cells, tasks)]]
            totals[title] = count_simulations(problem, cells, problem.pilot_facts.seconds)
    return totals


def _rounds_of(pair_cells: PairCells, tasks: Tasks) -> CellRounds:
    design = pair_cells.pair.algorithm.values.get(INITIAL) or {}
    return CellRounds(pair_cells.horizon, tasks.options.keep, design.get(PILOT, 0))
