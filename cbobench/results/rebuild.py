"""`run.json` made again from the cells of a run: each published cell says what it is (its `spec`)."""

from __future__ import annotations

import json
import re
from typing import Any

from cbobench.errors import DamagedRun, Misuse
from cbobench.results.folder import RunFolder
from cbobench.results.record import FILE, UNKNOWN, RunRecord
from cbobench.suite.cells import Cell, Grid, Pair
from cbobench.suite.variants import Variant

COLUMNS = ["cell", "problem", "algorithm", "seed", "horizon", "spec", "status"]


def rebuilt(folder: RunFolder) -> RunRecord:
    """The record of the cells that are published: what was asked for and never played is not in it.

    Labels are titles, and parameters that a title does not name count as the suite's.

    Raises:
        Misuse: no cells. DamagedRun: a file that cannot be read, or a cell that does not say what it is.
    """
    pairs: dict[tuple[str, str], Pair] = {}
    seeds: dict[tuple[int, tuple[str, str]], set[int]] = {}
    block = 1
    kept: dict[int, int] = {}
    for task in folder.names("cells"):
        footer, table = folder.checked("cells", task, COLUMNS)
        rows = table.to_pylist()
        block = max(block, footer.get("block", len(rows)))
        good = sum(row["status"] == "ok" for row in rows)
        for row in rows:
            cell = cell_of(row, folder.path(f"cells/{task}.parquet"))
            key = cell.pair.key
            pairs.setdefault(key, cell.pair)
            seeds.setdefault((cell.horizon, key), set()).add(cell.seed)
        if good and rows[0]["horizon"] not in kept:
            kept[rows[0]["horizon"]] = folder.footer("rounds", task)["rows"] // good
    if not pairs:
        raise Misuse(f"{folder} is not a run folder: it has no {FILE} and no cells; give the folder of a run")
    thinned = [count for horizon, count in kept.items() if count < horizon]
    alike: dict[tuple[int, tuple[int, ...]], list[Pair]] = {}
    for (horizon, key), some in sorted(seeds.items()):
        alike.setdefault((horizon, tuple(sorted(some))), []).append(pairs[key])
    grids = []
    for (horizon, numbers), played in alike.items():
        problems, algorithms = (
            {p.problem.key: p.problem for p in played},
            {p.algorithm.key: p.algorithm for p in played},
        )
        grids.append(Grid((*problems.values(),), (*algorithms.values(),), horizon, numbers, tuple(played)))
    audit = bool(folder.names("audit"))
    return RunRecord(UNKNOWN, "", max(thinned, default=None), block, tuple(grids), ({"rebuilt": True},), audit)


def cell_of(row: dict[str, Any], path: str) -> Cell:
    """The cell of a published row. Raises `DamagedRun` where its id, its columns and its `spec` disagree."""
    try:
        spec = json.loads(row["spec"])
        problem, algorithm = (_variant(spec[what], row[what]) for what in ("problem", "algorithm"))
        cell = Cell(Pair(problem, algorithm), spec["horizon"], spec["seed"])
        said = (cell.id, cell.horizon, cell.seed) == (row["cell"], row["horizon"], row["seed"])
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
        said = False
    if not said:
        raise DamagedRun(f"{path} holds a cell {row['cell']} that does not say what it is")
    return cell


def _variant(spec: dict[str, Any], title: str) -> Variant:
    """What is called by a title; the parameters that the title names are those that were given."""
    values = dict(spec["values"])
    named = re.findall(r"(?:\[|,)(\w+)=", title[len(spec["name"]) :])
    given = {name: values[name] for name in named if name in values}
    return Variant(spec["name"], given, values, title, given)
