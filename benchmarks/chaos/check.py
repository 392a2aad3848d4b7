"""What is held against the undisturbed run: each cell once, equal to the last bit, failed where it
must and only there.

The files are read by pyarrow alone, as anybody would: what a loader of ours might mend is seen
here.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq

from benchmarks.chaos.cells import ENDS, SEED
from cbobench.errors import one_line

# Of the machine and the moment, not of the play.
VOLATILE = {
    "seconds",
    "seconds_per_round",
    "peak_memory_mb",
    "host",
    "source",
    "libraries",
    "attempt",
    "traceback",
}
# What no message of a run may hold: stack dumps, of Python and of Ray, and Ray's own log.
DUMPS = re.compile(
    r"Traceback \(most|Fatal Python error|^\s+File \"|\*\*\* "
    r"SIG|^\[\d{4}-|StackTrace|^\((raylet|pid=|\w+ pid=)"
)


def rows(run: Path) -> tuple[pa.Table, pa.Table]:
    """All cells of a run, and the rounds of the tasks whose cells are published."""
    cells = sorted((run / "cells").glob("[!.]*.parquet"))
    # A task whose cells all failed may have no rounds; rounds that should be there are missed by
    # their cells.
    played = [path for name in cells if (path := run / "rounds" / name.name).exists()]
    return join(cells), join(played)


def join(paths: list[Path]) -> pa.Table:
    """One table of several files, with the columns of the first."""
    columns = pq.read_schema(paths[0]).remove_metadata()
    return pa.concat_tables([pq.ParquetFile(path).read().cast(columns) for path in paths])


def poison_of(algorithm: str, seed: int) -> str | None:
    """How a cell misbehaves, by the title of its algorithm."""
    found = re.search(r"Poison\[?.*how=([\w-]+)", algorithm)
    if "Poison" not in algorithm or seed != SEED:
        return None
    return found.group(1) if found else "raise"


def differences(well: Path, run: Path) -> list[str]:
    """What is wrong with a disturbed run that has been resumed to its end; nothing, it is hoped."""
    try:
        (cells, rounds), (right_cells, right_rounds) = rows(run), rows(well)
    except (OSError, pa.ArrowException, IndexError) as error:
        return [f"cannot be read: {one_line(error)}"]
    found = []
    counts = Counter(cells["cell"].to_pylist())
    expected = set(right_cells["cell"].to_pylist())
    found += [f"lost: {len(lost)} cells ({min(lost)})"] if (lost := expected - set(counts)) else []
    found += (
        [f"foreign: {len(more)} cells ({min(more)})"] if (more := set(counts) - expected) else []
    )
    found += [f"double: {name}" for name, count in counts.items() if count > 1]
    found += wrong_ends(cells)
    ok = pa.compute.field("status") == "ok"
    good = sorted(set(cells.filter(ok)["cell"].to_pylist()) & expected)
    found += unequal("cells", cells, right_cells, good, ["cell"])
    found += unequal("rounds", rounds, right_rounds, good, ["cell", "t"])
    if orphans := set(rounds["cell"].to_pylist()) - set(good):
        found.append(f"rounds of {len(orphans)} cells that did not end well")
    return found


def wrong_ends(cells: pa.Table) -> list[str]:
    """Cells that failed and should not have, or the other way round, or for another reason."""
    found = []
    for row in cells.select(["algorithm", "seed", "status", "error"]).to_pylist():
        how = poison_of(row["algorithm"], row["seed"])
        reason = ENDS[how] if how is not None else None
        name = f"{row['algorithm']} seed {row['seed']}"
        if reason is None and row["status"] != "ok":
            found.append(f"healthy, but failed: {name}: {row['error']}")
        elif reason is not None and (
            row["status"] != "failed" or not re.search(reason, row["error"])
        ):
            found.append(f"poisoned, but {row['status']}: {name}: {row['error']}")
    return found


def unequal(
    kind: str, one: pa.Table, other: pa.Table, cells: list[str], keys: list[str]
) -> list[str]:
    """Columns in which the rows of some cells differ between two tables."""
    chosen = [
        table.filter(pa.compute.is_in(table["cell"], pa.array(cells, pa.string()))).sort_by(
            [(k, "ascending") for k in keys]
        )
        for table in (one, other)
    ]
    if len(chosen[0]) != len(chosen[1]):
        return [f"{kind}: {len(chosen[0])} rows for {len(chosen[1])}"]
    return [
        f"{kind}: {name} differs"
        for name in other.column_names
        if name not in VOLATILE and not same(*(table[name] for table in chosen))
    ]


def same(one: pa.ChunkedArray, other: pa.ChunkedArray) -> bool:
    """Whether two columns hold the same bits; NaN is NaN."""
    return one.equals(other) or repr(one.to_pylist()) == repr(other.to_pylist())


def dumps(text: str) -> list[str]:
    """Lines of a run's messages that are no message for a user."""
    return [line for line in text.splitlines() if DUMPS.search(line)]
