"""Pairs taken out of a run: what is superseded, once somebody has said that it may go (`cbobench remove`).

Files go first, a task's cells before its rounds, then the calls' records, `run.json` last. Wherever that is ended, the
run verifies: what is gone is missing, and the same command goes on.
"""

from __future__ import annotations

from cbobench.errors import Misuse, show
from cbobench.results.compact import drop
from cbobench.results.drivers import Claim, drivers
from cbobench.results.folder import RunFolder
from cbobench.results.record import CALLS, RunRecord
from cbobench.suite.cells import Cells


def matching(folder: RunFolder, glob: str) -> Cells:
    """The cells of the matching pairs, played or not.

    Args:
        glob: as of `RunRecord.only`.

    Raises:
        Misuse: no run there, or the glob matches nothing, or everything.
    """
    record = RunRecord.read(folder)
    if record.without(record.keys(glob)) is None:
        raise Misuse(f"{show(glob)} matches all of {folder}; remove the folder itself, or give another --out")
    return Cells(record.only(glob).cells.strips)


def remove(folder: RunFolder, glob: str) -> None:
    """Take the matching pairs out of a run, with all that was played of them.

    Raises:
        Misuse: as `matching`, or someone plays into the folder.
    """
    for driver, alive in drivers(folder):
        if alive:
            raise Misuse(f"{folder} is played by {driver}; remove from it when that has ended")
    with Claim(folder, Cells(RunRecord.read(folder).cells.strips)) as claim:
        claim.beat_by_itself()
        there, cells = claim.there, matching(folder, glob)
        record = RunRecord.read(there)
        keys = record.keys(glob)
        drop(there, {cell.id for cell in cells}, record.block)
        for name in there.calls(CALLS):
            file = f"{CALLS}/{name}.json"
            call = RunRecord.from_json(there.read_json(file), there.path(file)).without(keys)
            if call is None:
                there.remove(file)
            else:
                there.write_json(file, call.to_json())
        left = record.without(keys)
        assert left is not None
        left.write(there)
