"""A sweep from suite file to published results: plan, play, resume, extend, stop."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field, fields, replace
from math import inf
from pathlib import Path
from typing import Any

from cbobench import resources
from cbobench.arithmetic import describe_arithmetic, is_as_requested
from cbobench.errors import CbobenchError, Misuse, mask_secrets, show, unknown
from cbobench.options import accept_fields
from cbobench.play.process import preserve_process, refuse_replaced
from cbobench.problems.data import Site
from cbobench.problems.simulated import Store
from cbobench.problems.simulator import Simulator
from cbobench.results.bundle import open_run
from cbobench.results.compact import compact_if_large
from cbobench.results.folder import RunFolder
from cbobench.results.lease import Lease, new_call_id, refuse_foreign_folder, remove_leftovers
from cbobench.results.manifest import FILE, Manifest, rebuild_manifest
from cbobench.results.provenance import invocation
from cbobench.results.query import COLUMNS, read_published
from cbobench.results.simulations import SimulationStore
from cbobench.suite.cells import Suite
from cbobench.suite.settings import pending_notes
from cbobench.suite.suite_file import load
from cbobench.surroundings import take_replaced
from cbobench.sweep import blocks
from cbobench.sweep.executors import Executor, usable_cpus
from cbobench.sweep.interrupt import interruptible
from cbobench.sweep.preparation import ProcessPool, prepare_problems
from cbobench.sweep.progress import Journal, RoundCounter
from cbobench.sweep.run_options import Budget, EngineOptions, RunOptions, StopOptions, SuiteOptions
from cbobench.sweep.scheduler import Scheduler, choose_engine, start_executor
from cbobench.words import count_noun

CLUSTER_CPUS = 64  # a guess, as a cluster may grow: it only decides how finely a run is cut
SLOW_SIMULATION = 0.1  # seconds of a simulation beside which what a round costs Python does not count


@dataclass(frozen=True)
class Outcome:
    """What a sweep did; of its `tasks`, the `absent` ones said that they were done and are not in the folder.

    Where its budget was `spent`, cells are left to play. A notebook shows the run's comparison.
    """

    folder: RunFolder
    cells: int
    played: int
    failed: int
    errors: tuple[str, ...]
    stopped: bool
    tasks: int
    absent: tuple[str, ...]
    spent: bool = False

    def _repr_html_(self) -> str:
        import cbobench  # a sweep knows no table but by the package's public names

        return cbobench.compare(self)._repr_html_()


@dataclass(frozen=True)
class Plan:
    """What a sweep would do.

    Attributes:
        suite: validated.
        folder: the run.
        record: what `run.json` will say.
        tasks: still to play, each made when it is asked for.
        done: cells of this call that need not be played.
        stale: those of them that other code played.
        notes: what a reader should know of the folder, a line each.
        simulations: those of the problems' pilots, which the sweep keeps.
        published_tasks: files that were published when the plan was made.
        measured: what cells in the folder took (see `blocks.measure_cells`).
        loading: arguments of `load` that gave the suite.
    """

    suite: Suite
    folder: RunFolder
    record: Manifest
    tasks: blocks.Tasks
    done: int
    stale: int
    notes: tuple[str, ...] = ()
    published_tasks: frozenset[str] = frozenset()
    simulations: SimulationStore | None = None
    measured: Sequence[blocks.Measured] = ()
    loading: Mapping[str, Any] = field(default_factory=dict)

    @property
    def cells(self) -> int:
        """Cells asked for by this call."""
        return len(self.suite.grid.cells)


@dataclass(frozen=True)
class PlanOptions(EngineOptions, SuiteOptions):
    """What is played, and who is told while it is planned.

    Attributes:
        command: the command line, for the record.
        say: told in a line what is begun that may take long.
        site: told what takes long, such as a simulator's pilot; asked whether a pilot of more than three minutes is to
            go on; and when a dry run must end. The rest of it is filled in.
    """

    _: KW_ONLY
    command: Sequence[str] = ()
    say: Callable[[str], None] = lambda text: None
    site: Site = Site()


@accept_fields(PlanOptions)
def plan(options: PlanOptions) -> Plan:
    """Validate a suite and find what is still to be played. Writes nothing.

    Args: see `PlanOptions`.

    Raises:
        Misuse: a wrong suite, or a folder that holds something else. DamagedRun: a broken file in the folder.
        Declined: a pilot is not to go on.
    """
    suite, out, cpus, address, block = options.suite, options.out, options.cpus, options.address, options.block
    for name, number in (("seeds", options.seeds), ("horizon", options.horizon), ("cpus", cpus), ("block", block)):
        if not (number is None or isinstance(number, int)):
            raise Misuse(f"{name} is {show(number)}; it must be a whole number")
        if name != "cpus" and number is not None and number < 1:
            raise Misuse(f"{name} is {number}; it must be at least 1")
    if cpus is not None and cpus < 0:
        raise Misuse(f"cpus is {cpus}; it must be at least 0 (0: in this process)")
    choose_engine(options.engine, cpus, address)
    again = (options.again,) if isinstance(options.again, str) else options.again
    for word in again:
        if word not in ("failed", "stale"):
            raise unknown("kind of cell to play again", word, ("failed", "stale"))
    if not isinstance(suite, str | Path | Mapping):
        raise Misuse(f"{show(suite)} is no suite; give a file, the name of a shipped suite, or a mapping")
    command = [mask_secrets(word) for word in options.command]
    source = suite if isinstance(suite, Mapping) else resources.find_suite(suite)
    simulations: SimulationStore | None = None

    def store(name: str) -> Callable[[str], Store]:
        nonlocal simulations
        simulations = SimulationStore(_run_folder(name, out), buffered=True)
        return simulations.of

    loading: dict[str, Any] = {
        "source": source,
        "data": options.data,
        "horizon": options.horizon,
        "seeds": options.seeds,
        "only": options.only,
        "imports": options.imports,
        "command": command,
    }
    plays_inline = cpus == 0 or options.engine == "inline"
    take_replaced()  # of earlier calls in this process
    try:
        workers = 0 if plays_inline else cpus or usable_cpus()
        pool = ProcessPool(workers) if workers else None
        with preserve_process():  # a user's simulators run
            loaded = load(**loading, site=replace(options.site, pool=pool), say=options.say, store=store)
        if plays_inline:
            refuse_replaced("a problem of the suite")
    except BaseException:
        if simulations is not None and options.site.deadline == inf:  # not in a dry run
            _keep_simulations(simulations)
        raise
    grid = loaded.grid
    folder = _run_folder(loaded.name, out)
    call = invocation(list(command))
    limit = blocks.memory_limit(loaded, None if address is not None else cpus or usable_cpus())
    notes = pending_notes({pair.algorithm.title: pair.algorithm for pair in grid.pairs}.values())
    workers = CLUSTER_CPUS if address is not None else cpus or usable_cpus()
    slow = any(isinstance(p, Simulator) and p.pilot_facts.seconds > SLOW_SIMULATION for p in loaded.problems.values())
    least = 1 if slow else blocks.MIN_BLOCK
    together = min(blocks.block_size(1, len(grid.cells), workers, least, grid.horizon), limit)
    if Manifest.exists(folder):
        record = Manifest.read(folder).add_call(grid, loaded, call, str(folder))
    elif folder.names("cells"):
        notes += (f"{folder.path(FILE)} is missing: it is made again from what the published cells say",)
        record = rebuild_manifest(folder).add_call(grid, loaded, call, str(folder))
    else:
        refuse_foreign_folder(folder)
        size = block or min(together, len(grid.seeds))
        record = Manifest(loaded.name, loaded.about, loaded.keep, size, (grid,), (call,), loaded.audit)
    if block and block != record.block:
        seeds_per_task = count_noun(record.block, "seed")
        notes += (f"this run plays {seeds_per_task} per task, as it began; for another --block, give a new --out",)
    notes += tuple(simulations.describe_damage() if simulations is not None else ())
    published = read_published(folder, [*COLUMNS, "seconds"])
    by_pair, attempts, stale = blocks.cells_to_play(grid, published, again)
    tasks = blocks.Tasks(
        by_pair,
        record.block,
        blocks.TaskOptions(record.keep, record.audit, loaded.timeout, loaded.demands),
        attempts,
        together=block or together,
    )
    ahead = blocks.count_ahead(tasks, loaded.problems)
    notes += tuple(t.describe(title, workers) for title, t in ahead.items() if t.each and t.each >= SLOW_SIMULATION)
    return Plan(
        loaded,
        folder,
        record,
        tasks,
        done=len(grid.cells) - len(tasks.cells),
        stale=stale,
        notes=notes,
        published_tasks=frozenset(published.tasks),
        simulations=simulations,
        measured=blocks.measure_cells(grid, published),
        loading=loading,
    )


def _keep_simulations(simulations: SimulationStore) -> None:
    """Keep what a pilot that did not come to its end has simulated, but for failures: its cause may be mended."""
    with suppress(CbobenchError):  # a folder that holds something else
        if simulations.waiting and not Manifest.exists(simulations.folder):
            refuse_foreign_folder(simulations.folder)
        simulations.flush(simulations.folder, failures=False)


def _run_folder(suite: str, out: str | Path | None) -> RunFolder:
    return open_run(Path("runs") / suite if out is None else out).refuse_bundle("give a folder for the run")


@dataclass(frozen=True)
class ExecuteOptions(StopOptions, EngineOptions):
    """How a plan is played.

    Attributes:
        sweep_plan: what is played.
        on_start: called before the first task begins, with what counts the rounds.
        when_played: called with the outcome as soon as it is known, before Ray is shut down (which takes a second).
    """

    sweep_plan: Plan
    _: KW_ONLY
    on_start: Callable[[RoundCounter], None] = lambda counter: None
    when_played: Callable[[Outcome], None] = lambda outcome: None


@accept_fields(ExecuteOptions)
def execute(options: ExecuteOptions) -> Outcome:
    """Play a plan.

    Args: see `ExecuteOptions`.

    Ctrl-C, SIGTERM or SIGHUP stops it: what is published stays, and the same command resumes (`stopped` is then true).
    """
    sweep_plan, address = options.sweep_plan, options.address
    journal = Journal(sweep_plan)

    def note(text: str) -> None:
        journal.record_note(text)
        options.on_note(text)

    def end(outcome: Outcome) -> None:
        journal.record_end(outcome)
        options.when_played(outcome)

    finished_tasks: list[str] = []  # names of the tasks that are said to be done
    errors: list[str] = []
    played = failed = 0
    stopped, limit = False, Budget(options.budget)
    scheduler: Scheduler | None = None
    folder = sweep_plan.folder
    inline = choose_engine(options.engine, options.cpus, address) == "inline"
    arithmetic_notes = describe_arithmetic(fresh=not inline and not is_as_requested()) if address is None else []
    unplayable_notes = [f"not played: {line}" for line in sweep_plan.record.unplayable]
    for text in (*sweep_plan.notes, *unplayable_notes, *arithmetic_notes):
        note(text)

    def outcome() -> Outcome:
        published = folder.published_tasks() if finished_tasks else set()
        absent = tuple(name for name in finished_tasks if name not in published)
        spent = scheduler is not None and scheduler.spent
        cells, tasks = sweep_plan.cells, len(finished_tasks)
        return Outcome(folder, cells, played, failed, tuple(errors), stopped, tasks, absent, spent)

    if not sweep_plan.tasks:
        _write_record(sweep_plan, new_call_id())
        done = outcome()
        end(done)
        return done
    with interruptible() as interrupted, Lease(sweep_plan.folder, sweep_plan.tasks.cells, note) as lease:
        executor: Executor | None = None
        try:
            sweep_plan = _refresh_plan(sweep_plan, lease)
            if inline:
                lease.start_heartbeat_thread()
            if sweep_plan.simulations is not None:
                sweep_plan.simulations.flush(sweep_plan.folder)
            if sweep_plan.tasks:
                problems = sweep_plan.suite.problems
                if not inline and not is_as_requested():
                    problems = prepare_problems(sweep_plan.loading, sweep_plan.folder)
                executor = start_executor(
                    problems,
                    sweep_plan.folder,
                    sweep_plan.tasks,
                    options,
                    ship=options.ship,
                    note=note,
                )
                pace = blocks.Pace(sweep_plan.suite.problems, sweep_plan.measured)
                scheduler = Scheduler(sweep_plan.folder, sweep_plan.tasks, executor, pace, note, limit)
                work = pace.total(sweep_plan.tasks)
                expected = None if work is None else work / min(executor.slots, len(sweep_plan.tasks.cells))
                counter = RoundCounter(sweep_plan.tasks, scheduler.rounds_in_play, expected)
                in_play, best = scheduler.cells_in_play, scheduler.best_seen
                options.on_start(counter)
                lease.report_progress(lambda: counter.report() | {"playing": in_play(), "best": best()})
            _write_record(sweep_plan, lease.id)
            for receipt in () if scheduler is None else scheduler.play():
                finished_tasks.append(receipt.task)
                errors += receipt.errors
                failed += receipt.failed
                played += receipt.ok + receipt.failed
                counter.add(receipt)
                journal.record_receipt(receipt)
                options.on_receipt(receipt)
                interrupted.check()
                if options.fail_fast and receipt.failed:
                    stopped = True
                    break
            if not stopped:
                if not inline:
                    lease.start_heartbeat_thread()  # nobody forks any more, and to merge takes minutes
                remove_leftovers(sweep_plan.folder, lease.id, over=True)
                compact_if_large(sweep_plan.folder, note)
        except KeyboardInterrupt:
            stopped = True
        finally:
            interrupted.ignoring = True
            try:
                if sys.exception() is None:
                    done = outcome()
                    end(done)
            finally:
                if executor is not None:
                    executor.close()
    return done


def _refresh_plan(sweep_plan: Plan, lease: Lease) -> Plan:
    """The plan for the leased folder, without the cells that another call has published since it was made."""
    if removed := remove_leftovers(sweep_plan.folder, lease.id):
        lease.note(f"removed {removed} unfinished files of calls that were killed")
    tasks = sweep_plan.tasks
    # The names of new files tell nothing of their cells: they may be of pieces, which have names of their own.
    if sweep_plan.folder.published_tasks() - sweep_plan.published_tasks:
        tasks = tasks.without(read_published(sweep_plan.folder))
    return replace(sweep_plan, folder=lease.folder, tasks=tasks)


def _write_record(sweep_plan: Plan, name: str) -> None:
    """Write run.json, keeping what another call may have added since the plan was made."""
    record = sweep_plan.record
    if Manifest.exists(sweep_plan.folder):
        current = Manifest.read(sweep_plan.folder)
        if len(current.invocations) >= len(record.invocations):
            suite, call = sweep_plan.suite, record.invocations[-1]
            record = current.add_call(suite.grid, suite, call, str(sweep_plan.folder))
    record.publish_call(sweep_plan.folder, name)


@accept_fields(RunOptions)
def run(options: RunOptions) -> Outcome:
    """`cbobench run` as a function: `plan`, then `execute`.

    Args: see `RunOptions`.

    Returns:
        What was done. `cbobench.compare`, `summary`, `plot`, `load_cells` and `load_rounds` take it as the run.

    Raises:
        Misuse: a wrong suite, folder or option.

    Example:
        >>> import cbobench
        >>> suite = {  # doctest: +SKIP
        ...     "suite": "my-study", "horizon": 100, "seeds": 10,
        ...     "problems": ["gardner-1"], "algorithms": ["cei", {"ckb-rand": {"beta_scale": 0.2}}],
        ... }
        >>> done = cbobench.run(suite, out="runs/my-study")  # doctest: +SKIP
        >>> print(cbobench.compare(done))  # doctest: +SKIP
    """
    command = [] if isinstance(options.suite, Mapping) else ["cbobench", "run", str(options.suite)]
    for name in ("out", "seeds", "horizon", "only", "data") if command else ():
        value = getattr(options, name)
        command += [f"--{name}", str(value)] if value is not None else []
    todo = plan(**_select_fields(options, SuiteOptions, EngineOptions), command=command)
    return execute(todo, **_select_fields(options, EngineOptions, StopOptions))


def _select_fields(options: RunOptions, *kinds: type[Any]) -> dict[str, Any]:
    return {f.name: getattr(options, f.name) for kind in kinds for f in fields(kind)}
