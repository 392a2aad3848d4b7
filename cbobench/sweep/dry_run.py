"""`--dry-run`: cells, tasks, disk, and the time by what cells in the run folder took.

Nothing is written, and nothing is played. Pairs of which the folder has no cell go by those of the
same problem and algorithm with other parameters; of others the time is not known.
"""

from __future__ import annotations

from cbobench.gp.box_actions import Box
from cbobench.results.manifest import count_recorded
from cbobench.sweep.executors import usable_cpus
from cbobench.sweep.plan import Plan
from cbobench.sweep.scheduler import Pace
from cbobench.words import count_noun, duration, list_names

CELL_SECONDS = 0.002  # of a cell, beside its rounds
ROW_SECONDS = 2e-6  # of a recorded round: its metrics, to write it and to read it again
TASK_SECONDS = 0.012  # to publish its files, and to hand it out
# of a recorded round: each coordinate, f and g; all its metrics
NUMBER_BYTES = 8
METRIC_BYTES = 30


def estimate(plan: Plan, cpus: int | None) -> str:
    """Return lines on cells, time and disk, for the CPUs here (or `cpus`)."""
    return "\n".join(
        [
            f"{plan.suite.name}: {plan.cells - plan.done:,} of {count_noun(plan.cells, 'cell')} to "
            f"play, in {count_noun(len(plan.tasks), 'task')} -> {plan.folder}",
            _describe_time(plan, cpus),
            _describe_disk(plan),
        ]
    )


def _describe_time(plan: Plan, cpus: int | None) -> str:
    """Return a line on how long a plan takes, or of which algorithms that is not known."""
    pace = Pace(plan.measured)
    work = TASK_SECONDS * len(plan.tasks)
    unknown = []
    # A sum over pairs, as a plan may have a million cells.
    for pair_cells in plan.tasks.by_pair:
        cells = len(pair_cells)
        seconds = pace.expected(pair_cells.pair, cells * pair_cells.horizon)
        if seconds is None:
            unknown.append(pair_cells.pair.algorithm.label)
            continue
        recorded = count_recorded(pair_cells.horizon, plan.record.keep)
        work += seconds + cells * (CELL_SECONDS + ROW_SECONDS * recorded)
    if unknown:
        named = list_names(dict.fromkeys(unknown))
        return f"time: not known of {named}; play a seed of each first, such as with --seeds 1"
    # Tasks of several CPUs leave fewer workers, and no more are busy than there are tasks.
    workers = usable_cpus() if cpus is None else max(1, cpus)
    widest = max((demand.cpus for demand in plan.suite.demands.values()), default=1)
    busy = max(1, min(workers // widest, len(plan.tasks)))
    return (
        f"time: about {duration(work / busy)} on {workers:,} CPU(s) ({duration(work)} of work), by "
        "what cells in the folder took"
    )


def _describe_disk(plan: Plan) -> str:
    """Return how large the files of a plan will be, in words."""
    size = 0.0
    for pair_cells in plan.tasks.by_pair:
        problem = plan.suite.problems[pair_cells.pair.problem.title]
        coordinates = problem.actions.d if isinstance(problem.actions, Box) else 0
        numbers = 2 * (1 + problem.constraints) + coordinates
        recorded = count_recorded(pair_cells.horizon, plan.record.keep)
        size += len(pair_cells) * recorded * (NUMBER_BYTES * numbers + METRIC_BYTES)
    disk = f"{size / 1e6:.0f} MB" if size < 1e9 else f"{size / 1e9:.1f} GB"
    return f"disk: about {disk} in {count_noun(2 * len(plan.tasks), 'file')}"
