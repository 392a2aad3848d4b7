"""What calls that were killed have left in a run: temporary files, and rounds whose cells were played again."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

from cbobench.errors import DamagedRun, Misuse, show
from cbobench.results.drivers import drivers
from cbobench.results.folder import SHARD, RunFolder
from cbobench.results.published import played
from cbobench.results.record import FILE
from cbobench.results.schema import KINDS
from cbobench.results.store import born, machine

OURS = {FILE, *KINDS, "drivers", "invocations", "log", "quarantine"}
TEMPORARY = re.compile(r"\..+\.([\w-]+)\.(\d+)\.\d+\.tmp")
"""Name of a file that is being written: whose machine, which process."""


def refuse_foreign(folder: RunFolder) -> None:
    """Raises `Misuse` where a folder without run.json is not empty, or no folder."""
    if folder.exists(""):
        raise Misuse(f"{folder} is a file; give a folder for the run")
    others = [name for name in folder.listing("") if name not in OURS and not name.startswith(".run.json.")]
    within = [name for kind in KINDS for name in folder.listing(kind) if not name.endswith((".parquet", ".tmp"))]
    if others or within:
        what = show(min(others or within))
        raise Misuse(f"{folder} is not empty and not a run folder: it holds {what}; give another --out")


def leftovers(folder: RunFolder, call: str) -> list[Path]:
    """Temporary files that nobody writes any more: of ended processes of this machine, of others if nobody else plays.

    Args:
        call: the one that asks, whose own work has not begun or is over.
    """
    places = [Path(folder.path(kind)) for kind in ("", *(OURS - {FILE}))] if folder.local else []
    dead, elsewhere = [], []
    for path in (path for place in places for path in place.glob(".*.tmp")):
        match = TEMPORARY.fullmatch(path.name)
        if match is None or match[1] != machine():
            elsewhere += [path] if path.parent.name in KINDS else []
        elif not born(int(match[2])):
            dead.append(path)
    # Looked at after the files: a call is there before it begins its first of these, and until after its last.
    if elsewhere and not any(alive for driver, alive in drivers(folder, call) if driver.id != call):
        dead += elsewhere
    return dead


def orphans(folder: RunFolder) -> list[str]:
    """Tasks whose rounds are there and whose cells are not: of a worker that was ended in between, or is just there."""
    return sorted({*folder.names("rounds")} - {*folder.names("cells")})


def sweep_up(folder: RunFolder, call: str, over: bool = False) -> int:
    """Remove what nobody will miss; returns how many files.

    Rounds without cells go when each of their cells is published by another task, by the same attempt or a later one:
    what a straggler then publishes does not count (see `played`). Tasks whose cells other tasks have published, too,
    stay: each cell counts once, a call that played one looks for it at its end, and a reader who has listed one is led
    on by a shard only. `cbobench compact` makes one row of each.

    Args:
        call: the one that asks.
        over: whether everything of this call is published; only then rounds are looked at.
    """
    files = leftovers(folder, call)
    for path in files:
        path.unlink(missing_ok=True)
    removed = len(files)
    lost = [task for task in orphans(folder) if not task.startswith(SHARD)] if over else []  # a shard's cells come
    with suppress(DamagedRun):  # not ours to judge: `verify` names what is damaged
        rows = played(folder) if lost else {}
        for task in lost:
            footer = folder.footer("rounds", task)
            if all(c in rows and rows[c].attempt >= footer.get("attempt", 0) for c in footer["cells"]):
                folder.remove(f"rounds/{task}.parquet")
                folder.remove(f"audit/{task}.parquet")
                removed += 1
    return removed
