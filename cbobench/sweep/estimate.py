"""`--dry-run`: cells, tasks, disk, and a time from some rounds that are really played (nothing is written).

Takes the times of played cells from the run folder. Then tries one pair per algorithm, and the other pairs until the
time is up (`BUDGET` seconds, pilots of simulators included; see `sweep.trial`). A pair that was not tried gets the mean
of the pairs with the same names, or of the same algorithm. What is extrapolated from the first rounds is named, and
where a round did not end in time, the estimate is a lower bound. The pilot of a simulator, which is cut short, tells
how long its simulations take.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import replace
from math import inf
from statistics import fmean

from cbobench.gp.box_actions import Box
from cbobench.problems.base import Problem
from cbobench.problems.simulator import Simulator
from cbobench.results.compact import MANY
from cbobench.suite.cells import Pair
from cbobench.sweep.blocks import RETURN_AFTER, count_ahead
from cbobench.sweep.executors import usable_cpus
from cbobench.sweep.plan import Plan
from cbobench.sweep.trial import KINDS, PAIR_SECONDS, Cost, Trial
from cbobench.watcher import SILENT, Watcher
from cbobench.words import count_noun, duration, part_of

BUDGET = 20.0  # seconds on the clock, for all that is played, the pilots of simulators among it
MIN_BUDGET = 5.0  # of them, where preparing took longer
ALL_TRIALS = 15.0  # of them for the trials of all pairs, as far as each has `MIN_TRIAL`
MIN_TRIAL = 0.02
PLAYED = 3  # rounds that must end in the time of a pair: a simulation that is slower is not waited for
CELL_SECONDS = 0.002  # of a cell, beside its rounds
ROW_SECONDS = 2e-6  # of a recorded round: its metrics, to write it and to read it again
TASK_SECONDS = 0.012  # to publish its files, and to hand it out
STARTUP_SECONDS = 4.0  # imports, worker processes, the table
NUMBER_BYTES, METRIC_BYTES = 8.0, 30.0  # of a recorded round: of each coordinate, f and g; of all its metrics
UNSURE = {
    "tried": "",
    "extrapolated": "extrapolated from the rounds that the time allowed",
    "at least": "a lower bound, as a round took longer than the time allowed",
    "not tried": "not estimated, and not counted, as they could not be tried in time",
}


def time_limit() -> float:
    """When planning and estimating that begin now must end, by `monotonic`: pilots are cut short and trials end."""
    return time.monotonic() + BUDGET


def estimate(
    plan: Plan,
    cpus: int | None,
    watcher: Watcher = SILENT,
    whose: str = "",
    deadline: float = inf,
) -> str:
    """Lines on cells, time, disk and simulations. Measures on this machine, for its CPUs (or `cpus`).

    Args:
        watcher: told of a step that may take long.
        whose: words on whose CPUs they are, if not this machine's.
        deadline: see `time_limit`.
    """
    known, tried = try_pairs(plan, watcher, deadline)
    # The algorithms by pair, of pairs that were not tried up to their last round.
    unsure: dict[str, dict[str, str]] = {kind: {} for kind in (*KINDS, "not tried")}
    size, work, longest = 0.0, TASK_SECONDS * len(plan.tasks), 0.0
    for cells in plan.tasks.by_pair:
        title, problem = cells.pair.title, plan.suite.problems[cells.pair.problem.title]
        cost = known.get(title)
        if cost is None or cost.kind != "tried":
            unsure["not tried" if cost is None else cost.kind][title] = cells.pair.algorithm.label
        recorded = min(cells.horizon, plan.record.keep or cells.horizon)
        per_cell = (0.0 if cost is None else cost.seconds) * cells.horizon + CELL_SECONDS + ROW_SECONDS * recorded
        work += per_cell * len(cells)
        longest = max(longest, min(RETURN_AFTER, per_cell * min(len(cells), plan.record.block)))
        numbers = 2 * (1 + problem.constraints) + (problem.actions.d if isinstance(problem.actions, Box) else 0)
        size += len(cells) * recorded * (NUMBER_BYTES * numbers + METRIC_BYTES)
    workers = max(1, cpus if cpus is not None else usable_cpus())
    wide = max((demand.cpus for demand in plan.suite.demands.values()), default=1)
    wall = max(work / max(1, min(workers // wide, len(plan.tasks))), longest)
    pairs = len({cells.pair.title for cells in plan.tasks.by_pair})
    unknown, least = unsure["not tried"], unsure["at least"]
    coverage = f"; {part_of(tried, pairs, 'pair')} known" if tried < pairs - len(unknown) else ""
    simulators = [problem for problem in plan.suite.problems.values() if isinstance(problem, Simulator)]
    begin = STARTUP_SECONDS * (cpus != 0) + sum(s.pilot_facts.seconds * s.simulations.pilot for s in simulators)
    startup = f", plus about {duration(begin)} to start" if begin and plan.tasks else ""
    took = f"{'more than' if unknown or least else 'about'} {duration(wall)} on {workers:,} CPU(s){whose}{startup}"
    took = "not estimated" if unknown and len(unknown) == pairs else f"{took} ({duration(work)} of work{coverage})"
    disk = f"{size / 1e6:.0f} MB" if size < 1e9 else f"{size / 1e9:.1f} GB"
    files = count_noun(len(plan.tasks) * (3 if plan.record.audit else 2), "file")
    return "\n".join(
        [
            f"{plan.suite.name}: {plan.cells - plan.done:,} of {count_noun(plan.cells, 'cell')} to play, in "
            f"{count_noun(len(plan.tasks), 'task')} -> {plan.folder}",
            f"time: {took}",
            *(f"{UNSURE[kind]}: {_count_pairs(labels)}" for kind, labels in unsure.items() if labels),
            f"disk: about {disk} in {files}{', merged when the run ends' if len(plan.tasks) > MANY else ''}",
            *_describe_simulations(plan, workers),
        ]
    )


def _count_pairs(labels: Mapping[str, str]) -> str:
    """Name algorithms, given by pair, with how many pairs each has."""
    counts = Counter(labels.values()).items()
    return ", ".join(f"{label} ({count_noun(count, 'pair')})" for label, count in counts)


def _describe_simulations(plan: Plan, workers: int) -> list[str]:
    """A line per simulator: how many simulations the sweep takes, and how long each."""
    totals = count_ahead(plan.tasks, plan.suite.problems)
    lines = [total.describe(title, workers) for title, total in totals.items()]
    if lines and (kept_count := len(plan.simulations.names)):
        lines.append(f"{count_noun(kept_count, 'simulation')} kept in the run, not to be paid for again")
    return lines


def try_pairs(plan: Plan, watcher: Watcher = SILENT, deadline: float = inf) -> tuple[dict[str, Cost], int]:
    """What a seed-round costs, by the title of a pair, and how many pairs were measured themselves."""
    deadline = min(max(deadline, time.monotonic() + MIN_BUDGET), time.monotonic() + BUDGET)
    known = {
        # What cells say is CPU time: to wait for a simulator is none.
        pair.title: Cost(max(seconds / rounds, _simulation_seconds(plan.suite.problems[pair.problem.title])))
        for pair, seconds, rounds in plan.measured
    }
    untried = []
    for task in plan.tasks.of_pairs():
        problem = plan.suite.problems[task.pair.problem.title]
        least = _simulation_seconds(problem)
        if least * PLAYED > PAIR_SECONDS:
            known.setdefault(task.pair.title, Cost(least))  # nobody waits for what is known
        elif task.pair.title not in known:
            untried.append(task)
    first = {task.pair.algorithm.name: task for task in reversed(untried)}
    untried.sort(key=lambda task: first[task.pair.algorithm.name] is not task)
    left = deadline - time.monotonic()
    if untried:
        watcher.note(f"tries {count_noun(len(untried), 'pair')} of which nothing is known, for {left:.0f} s at most")
    end = time.monotonic() + min(left, ALL_TRIALS)
    slow: set[str] = set()  # algorithms that are not tried elsewhere: there would be no time for the others
    for i, task in enumerate(untried):
        if task.pair.algorithm.name in slow or (i and time.monotonic() >= deadline):
            continue
        share = min(PAIR_SECONDS, max(MIN_TRIAL, (end - time.monotonic()) / (len(untried) - i)))
        problem = plan.suite.problems[task.pair.problem.title]
        cost = Trial(problem, task, plan.record.keep, share, deadline).cost()
        if cost is None or cost.kind == "at least":
            slow.add(task.pair.algorithm.name)
        if cost is not None:
            cost = replace(cost, seconds=max(cost.seconds, _simulation_seconds(problem)))
            known = {cell.pair.title: cost for cell in task.cells} | known
    pairs = {cells.pair.title: cells.pair for cells in plan.tasks.by_pair}
    similar: dict[tuple[str, ...], list[Cost]] = defaultdict(list)
    for title in pairs.keys() & known.keys():
        for key in _names(pairs[title]):
            similar[key].append(known[title])
    means = {title: _mean(similar[key]) for title, p in pairs.items() for key in reversed(_names(p)) if key in similar}
    return means | known, len(pairs.keys() & known.keys())


def _mean(costs: list[Cost]) -> Cost:
    """Return the mean of some costs, as sure as the least sure of them."""
    return Cost(fmean(cost.seconds for cost in costs), max((cost.kind for cost in costs), key=KINDS.index))


def _names(pair: Pair) -> tuple[tuple[str, ...], ...]:
    """Keys that similar pairs share, the closest first."""
    return (pair.problem.name, pair.algorithm.name), (pair.algorithm.name,)


def _simulation_seconds(problem: Problem) -> float:
    """Wall time of a seed-round's simulations, a lower bound for the seed-round."""
    return problem.round_seconds if isinstance(problem, Simulator) else 0.0
