"""Values of recorded rounds as arrays, read a part of a file at a time: memory stays small."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cbobench.errors import DamagedRun
from cbobench.results.rows import only_of, positions

if TYPE_CHECKING:
    from cbobench.report.load import Run


def recorded(run: Run, problem: str, algorithm: str) -> NDArray[np.int64]:
    """The recorded rounds of a pair's good cells (`Run.good`), (rounds,); empty where none is good."""
    cells = run.good(problem, algorithm)["cell"]
    found = [np.empty(0, dtype=np.int64)]
    for task, some in [*run.played.by_task(cells).items()][:1]:  # the same for all cells of a horizon
        parts = run.folder.row_groups("rounds", task, ["cell", "t"])
        found += [only_of(part, [*some][:1])["t"].to_numpy() for part in parts]
    return np.unique(np.concatenate(found))


def values_at(
    run: Run, metrics: Sequence[str], problem: str, algorithm: str, t: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Some metrics of a pair's good cells (`Run.good`) at some recorded rounds.

    Args:
        metrics: numeric columns of the rounds table.
        problem, algorithm: titles.
        t: of the recorded rounds, in order, (rounds,).

    Returns:
        (metrics, rounds, cells), cells by id.

    Raises:
        DamagedRun: a cell lacks one of the rounds.
    """
    order = {cell: position for position, cell in enumerate(sorted(run.good(problem, algorithm)["cell"]))}
    found, told = np.empty((len(metrics), len(t), len(order))), 0
    for task, some in run.played.by_task(order).items():
        mine = {cell: order[cell] for cell in some}
        for part in run.folder.row_groups("rounds", task, ["cell", "t", *metrics]):
            column, when = positions(part, mine), part["t"].to_numpy()
            wanted = (column >= 0) & np.isin(when, t)
            row, column = np.searchsorted(t, when[wanted]), column[wanted]
            for metric, table in zip(metrics, found, strict=True):
                table[row, column] = part[metric].to_numpy()[wanted]
            told += len(row)
    if told != len(t) * len(order):
        raise DamagedRun(f"{run.folder} does not hold the same rounds of all cells of a horizon; is it all there?")
    return found
