"""What a call would play: the cells of its suite, without those that its run folder holds, cut into
tasks.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import chdir
from dataclasses import dataclass, replace
from pathlib import Path

from cbobench.problems.data import Site
from cbobench.results.folder import RunFolder, as_run_folder
from cbobench.results.lock import refuse_foreign_folder
from cbobench.results.manifest import FILE, Manifest
from cbobench.results.provenance import invocation
from cbobench.results.query import COLUMNS, read_published
from cbobench.results.source import look_again
from cbobench.results.verify import find_damaged
from cbobench.suite.call import Call
from cbobench.suite.cells import Suite
from cbobench.suite.prepare import prepare
from cbobench.suite.settings import pending_notes
from cbobench.suite.text import read_suite
from cbobench.sweep import blocks
from cbobench.sweep.executors import usable_cpus
from cbobench.threads import single_thread
from cbobench.watcher import SILENT, Watcher

CLUSTER_CPUS = 64  # a guess, as a cluster may grow: it only decides how finely a run is cut


@dataclass(frozen=True)
class Plan:
    """What a sweep would do.

    Attributes:
        call: what was asked for.
        suite: validated.
        folder: the run.
        record: what `run.json` will say.
        tasks: still to play, each made when it is asked for.
        done: cells of this call that need not be played.
        stale: those of them that other code played.
        notes: what a reader should know of the folder, a line each.
        published_tasks: files that were published when the plan was made.
        damaged: files to remove, because their cells are played again.
        site: where its problems find their files.
        measured: what cells in the folder took (see `blocks.measure_cells`).
    """

    call: Call
    suite: Suite
    folder: RunFolder
    record: Manifest
    tasks: blocks.Tasks
    done: int
    stale: int
    notes: tuple[str, ...]
    published_tasks: frozenset[str]
    damaged: tuple[str, ...]
    site: Site
    measured: Sequence[blocks.Measured]

    @property
    def cells(self) -> int:
        """Cells asked for by this call."""
        return len(self.suite.grid.cells)


@single_thread()
def plan(call: Call, watcher: Watcher = SILENT) -> Plan:
    """Validate a suite and find what is still to be played. Writes nothing, and simulates nothing.

    Args:
        watcher: told what a reader of the problems' numbers should know.

    Raises:
        Misuse: a wrong suite, or a folder that holds something else. DamagedRun: a broken file in
            the folder.
    """
    look_again()  # a notebook may have edited what it has imported
    text = read_suite(call)
    path = Path("runs") / text.name if call.out is None else call.out
    folder = as_run_folder(path, "give a folder for the run")
    with chdir("."):  # a user's problems prepare themselves
        suite = prepare(text, Site(watcher=watcher))
    grid = suite.grid
    cpus = None if call.address is not None else call.cpus or usable_cpus()
    chosen = blocks.most_cells(suite, cpus or CLUSTER_CPUS, cpus)
    most = call.block or chosen
    damaged = find_damaged(folder) if "damaged" in call.kinds_again else ()
    has_record = folder.exists(FILE) and FILE not in damaged
    record, record_notes = _record_call(suite, folder, has_record)
    without = {Path(file).stem for file in damaged}
    published = read_published(folder, [*COLUMNS, "seconds"], without)
    by_pair, attempts, stale = blocks.cells_to_play(grid, published, call.kinds_again)
    rules = blocks.TaskRules(record.keep, suite.timeout, suite.demands)
    tasks = blocks.Tasks(by_pair, most, rules, attempts)
    notes = (
        *pending_notes({pair.algorithm.title: pair.algorithm for pair in grid.pairs}.values()),
        *record_notes,
    )
    return Plan(
        call=call,
        suite=suite,
        folder=folder,
        record=record,
        tasks=tasks,
        done=len(grid.cells) - len(tasks.cells),
        stale=stale,
        notes=notes,
        published_tasks=frozenset(task.name for task in published.tasks),
        damaged=damaged,
        site=Site(folder=call.data, base=text.path.parent),
        measured=blocks.measure_cells(grid, published),
    )


def _record_call(suite: Suite, folder: RunFolder, has_record: bool) -> tuple[Manifest, list[str]]:
    """Return what `run.json` will say with this call, and notes on it.

    Args:
        has_record: whether there is a `run.json` that is not to be removed.
    """
    grid = suite.grid
    begun = invocation(list(suite.grid.command))
    notes = []
    record = Manifest(
        suite=suite.name,
        about=suite.about,
        keep=suite.keep,
        grids=(grid,),
        invocations=(begun,),
        floor=suite.floor,
    )
    if has_record:
        record = Manifest.read(folder).add_call(grid, suite, begun, str(folder))
    elif folder.names("cells"):
        notes.append(
            f"{folder.path(FILE)} is missing or damaged: it is made again of this call alone; give "
            "the suite that played its cells"
        )
    else:
        refuse_foreign_folder(folder)
    return record, notes


def settle(plan: Plan, folder: RunFolder) -> Plan:
    """Return a plan for its locked folder: without the damaged files, which are removed, without
    the cells that another call has published since the plan was made, and with the calls that it
    has recorded.
    """
    for file in plan.damaged:
        folder.remove(file)
    tasks = plan.tasks
    record = plan.record
    # The names of new files tell nothing of their cells: they may be of pieces, which have names of
    # their own.
    if tasks and {*folder.names("cells")} - plan.published_tasks:
        tasks = tasks.without(read_published(folder))
    if folder.exists(FILE):
        begun = record.invocations[-1]
        record = Manifest.read(folder).add_call(plan.suite.grid, plan.suite, begun, str(folder))
    return replace(plan, folder=folder, tasks=tasks, record=record)
