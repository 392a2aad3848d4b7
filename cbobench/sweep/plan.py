"""What a call would play: the cells of its suite, without those that its run folder holds, cut into
tasks.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import inf
from pathlib import Path

from cbobench.call import Call
from cbobench.errors import CbobenchError
from cbobench.play.process import preserve_process, refuse_replaced
from cbobench.problems.data import Site
from cbobench.problems.simulator import Simulator
from cbobench.results.bundle import open_run
from cbobench.results.folder import RunFolder
from cbobench.results.lease import refuse_foreign_folder
from cbobench.results.manifest import FILE, Manifest, rebuild_manifest
from cbobench.results.provenance import invocation
from cbobench.results.query import COLUMNS, read_published
from cbobench.results.simulations import MOST, SimulationStore
from cbobench.suite.cells import Suite
from cbobench.suite.prepare import prepare
from cbobench.suite.settings import pending_notes
from cbobench.suite.text import SuiteText, read_suite
from cbobench.surroundings import take_replaced
from cbobench.sweep import blocks
from cbobench.sweep.executors import usable_cpus
from cbobench.sweep.preparation import ProcessPool
from cbobench.watcher import SILENT, Watcher
from cbobench.words import count_noun

CLUSTER_CPUS = 64  # a guess, as a cluster may grow: it only decides how finely a run is cut
# seconds of a simulation beside which what a round costs Python does not count
SLOW_SIMULATION = 0.1


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
        simulations: those of the problems' pilots, which the sweep keeps.
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
    simulations: SimulationStore
    measured: Sequence[blocks.Measured]

    @property
    def cells(self) -> int:
        """Cells asked for by this call."""
        return len(self.suite.grid.cells)


def plan(call: Call, watcher: Watcher = SILENT, deadline: float = inf) -> Plan:
    """Validate a suite and find what is still to be played. Writes nothing, but what a pilot has
    simulated that fails.

    Args:
        watcher: told what takes long, such as a simulator's pilot, and asked whether one of minutes
            is to go on.
        deadline: of a dry run, by `monotonic`: pilots are cut short, and the watcher hears of each
            step instead.

    Raises:
        Misuse: a wrong suite, or a folder that holds something else. DamagedRun: a broken file in
            the folder.
        Declined: a pilot is not to go on.
    """
    # What shows at once is refused before anything is prepared: the pilot of a simulator may take
    # hours.
    text = read_suite(call)
    path = Path("runs") / text.name if call.out is None else call.out
    folder = open_run(path).refuse_bundle("give a folder for the run")
    # A plan writes nothing: what pilots simulate waits in memory until the sweep holds its lease.
    simulations = SimulationStore(folder, buffered=True)
    pool = None if call.plays_inline else ProcessPool(call.cpus or usable_cpus())
    suite = _prepare_suite(text, Site(watcher=watcher, pool=pool, deadline=deadline), simulations)
    grid = suite.grid
    # Of three sizes only the block, in seeds, is for the life of a run: a resumed run makes the
    # same tasks again. How many cells of several pairs share a task, and into which pieces one is
    # cut while it waits, may differ by call.
    workers = CLUSTER_CPUS if call.address is not None else call.cpus or usable_cpus()
    together = _choose_together(suite, call, workers)
    record, record_notes = _record_call(
        call, suite, folder, call.block or min(together, len(grid.seeds))
    )
    published = read_published(folder, [*COLUMNS, "seconds"])
    by_pair, attempts, stale = blocks.cells_to_play(grid, published, call.kinds_again)
    rules = blocks.TaskRules(record.keep, suite.timeout, suite.demands)
    tasks = blocks.Tasks(by_pair, record.block, rules, attempts, together=call.block or together)
    # Simulations that take long are counted ahead: who pays for them wants to know how many there
    # will be.
    totals = blocks.count_ahead(tasks, suite.problems).items()
    slow = [
        (title, total) for title, total in totals if total.each and total.each >= SLOW_SIMULATION
    ]
    notes = (
        *pending_notes({pair.algorithm.title: pair.algorithm for pair in grid.pairs}.values()),
        *record_notes,
        *simulations.describe_damage(),
        *(total.describe(title, workers) for title, total in slow),
    )
    return Plan(
        call,
        suite,
        folder,
        record,
        tasks,
        done=len(grid.cells) - len(tasks.cells),
        stale=stale,
        notes=notes,
        published_tasks=frozenset(published.tasks),
        simulations=simulations,
        measured=blocks.measure_cells(grid, published),
    )


def _prepare_suite(text: SuiteText, site: Site, simulations: SimulationStore) -> Suite:
    """Prepare a suite; what the user's code leaves of it in this process is undone."""
    try:
        take_replaced()  # of earlier calls in this process
        with preserve_process():  # a user's simulators run
            suite = prepare(text, site, simulations)
        if text.call.plays_inline:
            refuse_replaced("a problem of the suite")
    except BaseException:
        if site.deadline == inf:  # a dry run writes nothing
            _keep_simulations(simulations)
        raise
    return suite


def _keep_simulations(simulations: SimulationStore) -> None:
    """Keep what a pilot that did not come to its end has simulated, but for failures: its cause may
    be mended.
    """
    with suppress(CbobenchError):  # a folder that holds something else
        if simulations.waiting and not Manifest.exists(simulations.folder):
            refuse_foreign_folder(simulations.folder)
        simulations.flush(simulations.folder, failures=False)


def _choose_together(suite: Suite, call: Call, workers: int) -> int:
    """How many cells share a task: as many as memory and the number of workers allow."""
    limit = blocks.memory_limit(
        suite, None if call.address is not None else call.cpus or usable_cpus()
    )
    simulators = [problem for problem in suite.problems.values() if isinstance(problem, Simulator)]
    is_slow = any(simulator.pilot_facts.seconds > SLOW_SIMULATION for simulator in simulators)
    least = 1 if is_slow else blocks.MIN_BLOCK
    return min(
        blocks.block_size(1, len(suite.grid.cells), workers, least, suite.grid.horizon), limit
    )


def _count_most_simulations(suite: Suite) -> int:
    """The most simulations that a suite can take of its slow simulators."""
    slow = {
        title: problem.simulations
        for title, problem in suite.problems.items()
        if isinstance(problem, Simulator) and problem.simulation_seconds >= SLOW_SIMULATION
    }
    most = sum(counts.pilot for counts in slow.values())
    for pair_cells in suite.grid.cells.by_pair:
        counts = slow.get(pair_cells.pair.problem.title)
        if counts is not None:
            recorded = min(pair_cells.horizon, suite.keep or pair_cells.horizon)
            of_cell = pair_cells.horizon * counts.of_round + counts.beside_rounds(recorded)
            most += len(pair_cells) * of_cell
    return most


def _record_call(
    call: Call, suite: Suite, folder: RunFolder, block: int
) -> tuple[Manifest, list[str]]:
    """Return what `run.json` will say with this call, and notes on it; `block` is that of a new
    run.
    """
    grid, begun = suite.grid, invocation(list(suite.grid.command))
    if most := _count_most_simulations(suite):
        begun[MOST] = most
    notes = []
    if Manifest.exists(folder):
        record = Manifest.read(folder).add_call(grid, suite, begun, str(folder))
    elif folder.names("cells"):
        notes.append(
            f"{folder.path(FILE)} is missing: it is made again from what the published cells say"
        )
        record = rebuild_manifest(folder).add_call(grid, suite, begun, str(folder))
    else:
        refuse_foreign_folder(folder)
        record = Manifest(suite.name, suite.about, suite.keep, block, (grid,), (begun,))
    if call.block and call.block != record.block:
        seeds_per_task = count_noun(record.block, "seed")
        notes.append(
            f"this run plays {seeds_per_task} per task, as it began; for another --block, give a "
            "new --out"
        )
    return record, notes
