"""The quantities that tables can show of a cell: its metrics (`cbobench.metrics`) and some other
columns.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np
import pandas as pd
import pyarrow.compute as pc
from numpy.typing import NDArray

from cbobench import resources
from cbobench.errors import Misuse, show, unknown, words_of
from cbobench.metrics import METRICS, Array, Metric
from cbobench.report.groups import Columns, Group
from cbobench.report.load import Run
from cbobench.results.manifest import Variant
from cbobench.results.query import cell_positions
from cbobench.words import count_noun

HEADLINE = ("simple_regret", "regret", "violation_hard", "violations")  # what tables show
SIMPLE_REGRET = "simple_regret"
# shown in place of simple regret where the best value played is not seen
RECOMMENDED_REGRET = "recommended_regret"
SIMPLE_VALUE = "simple_value"  # shown where no optimum is known
ROUNDS_TO_TARGET = "rounds_to_target"
VIOLATION = "violation_hard"
OF_VIOLATION = (VIOLATION, "violation", "recommended_violation")  # in units of all constraints
NO_OPTIMUM = "no optimum"
MOVING = "moving"
UNDEFINED = "undefined"
NO_UNIT = "no unit"
LACKS = {
    NO_UNIT: ("left out, as a constraint of {} has the bound 0 and no `unit:`", ""),
    NO_OPTIMUM: ("no optimum of {} is known", SIMPLE_VALUE),
    MOVING: ("the functions of {} move", "regret"),
    UNDEFINED: ("undefined on {}", ""),
}
"""Why a quantity has no value on some problems, and the name of one that has."""
# stands for what a seed never reached: worse than any value, yet finite, so that quantiles exist
UNREACHED = 1e60


def fill_unreached(values: Array, quantity: Metric) -> Array:
    """The values without NaN: `UNREACHED` on the worse side if the quantity is censored, else left
    out.
    """
    undefined = np.isnan(values)
    if quantity.censored:
        return np.where(undefined, -quantity.sign * UNREACHED, values)
    return values[~undefined]


def is_reached(values: Array | float) -> NDArray[np.bool_]:
    """Where a statistic does not depend on `UNREACHED`."""
    return np.asarray(~(np.abs(values) >= UNREACHED / 1e9))


def restore_infinite(values: Array | float) -> Array:
    """Statistics of `fill_unreached` values; infinite where they depend on `UNREACHED`."""
    return np.where(is_reached(values), values, np.copysign(np.inf, values))


FIRST_FEASIBLE = Metric(
    "first_feasible",
    "first",
    "First feasible round",
    nullable=True,
    cumulative=False,
    is_count=True,
    least=1.0,
)
EXTRA = (
    FIRST_FEASIBLE,
    Metric(
        "longest_streak", "streak", "Most rounds in violation in a row", is_count=True, least=0.0
    ),
    Metric(
        "positive_dual",
        "φ > 0",
        "Share of rounds with a positive dual variable",
        better=None,
        least=0.0,
        most=1.0,
    ),
    Metric(
        "us_per_round", "µs", "Microseconds per seed and round", better=None, least=0.0, shared=True
    ),
)
"""Columns of cells that rounds do not have."""


def read_objective(problem: Variant) -> tuple[str, float, float]:
    """(name, zero, unit) of a problem: zero + unit · f is in its user's units, with the user's
    sign.
    """
    return tuple(problem.objective or ("f", 0.0, 1.0))  # type: ignore[return-value]


OF_REWARD = {"reward", *(m.name for m in METRICS.values() if m.relative), SIMPLE_VALUE}
"""Names of the quantities in units of f."""


def is_in_spreads(problem: Variant) -> bool:
    """Whether what tables show of f is in units of its spread, not in the user's own."""
    return abs(read_objective(problem)[2]) != 1.0


COCOS = ("dimension", "function", "instance")  # settings that name one of COCO's functions


@lru_cache
def read_spreads() -> dict[str, float]:
    """Spreads of f of shipped problems that are played in their own units, by title or name."""
    path = resources.folder("published") / "spreads.json"
    return dict(json.loads(path.read_text(encoding="utf-8")))


def find_spread(problem: Variant) -> float:
    """The spread of f in what tables show of a problem; 1 where it is not known."""
    if is_in_spreads(problem):
        return 1.0
    # However a suite spells it.
    given = {name: value for name, value in problem.settings.items() if name in COCOS}
    return read_spreads().get(replace(problem, given=given).title, 1.0)


def lacks_unit(problem: Variant) -> bool:
    """Whether a constraint of a problem has no unit, so that violations have none either. Of that
    the record has the note alone (`configurations.UNITLESS`).
    """
    return " without a unit" in (problem.note or "")


def describe_unlike(run: Run, problems: Iterable[str], metrics: Iterable[str]) -> list[str]:
    """A line where metrics (names) that are shown because a reader asks for them add up violations
    without a unit, on some of the problems (titles).
    """
    variants = run.record.variants("problems")
    labels = run.record.labels("problems")
    lacking = [labels[title] for title in dict.fromkeys(problems) if lacks_unit(variants[title])]
    symbols = [METRICS[name].symbol for name in OF_VIOLATION if name in [*metrics]]
    why = LACKS[NO_UNIT][0].format(", ".join(lacking)).removeprefix("left out, ")
    if lacking and symbols:
        return [f"{', '.join(symbols)}: a sum of unlike units, {why}"]
    return []


def name_metrics(problems: Iterable[Variant]) -> dict[str, Metric]:
    """`METRICS`; the best feasible value in the words, units and direction of the problems' user,
    if all have the same and f differs from it by its sign at most.
    """
    objectives = {read_objective(problem) for problem in problems}
    if len(objectives) != 1:
        return METRICS
    name, zero, unit = objectives.pop()
    if (name, unit) == ("f", 1.0) or zero or abs(unit) != 1.0:
        return METRICS
    best = replace(
        METRICS[SIMPLE_VALUE],
        symbol=f"best {name}",
        label=f"Best feasible {name} so far",
        better="higher" if unit > 0 else "lower",
        unit=unit,
    )
    return METRICS | {SIMPLE_VALUE: best}


def quantities(metrics: Mapping[str, Metric] = METRICS) -> dict[str, Metric]:
    """Everything that a table can show, by name: what it shows first."""
    by_name = {**metrics, **{extra.name: extra for extra in EXTRA}}
    order = [name for name in HEADLINE if name in by_name]
    return {name: by_name[name] for name in [*order, *(n for n in by_name if n not in order)]}


def select_headline(run: Run, groups: Iterable[Group]) -> list[Metric]:
    """What a table of some groups shows: r, R, V⁺ and N.

    Without an optimum the best f takes the place of r and R, and stands before them where only some
    problems have none. Under noise the best value of a box or a table is not seen, so there the
    regret of what is recommended is shown.
    """
    groups = list(groups)
    variants = run.record.variants("problems")
    names = [*HEADLINE]
    if any(is_noisy(variants[group.problem]) for group in groups):
        names[0] = RECOMMENDED_REGRET
    if any(group.unmeasured for group in groups):
        measured = any(group.n and not group.unmeasured for group in groups)
        names = [SIMPLE_VALUE, *(names if measured else names[2:])]
    by_name = quantities()
    return [by_name[name] for name in names]


def is_noisy(problem: Variant) -> bool:
    """Whether a problem on a box, or on a table of configurations, says that its observations have
    noise.
    """
    has_coordinates = any(name != "action" for name, _ in problem.inputs or ())
    levels = [value for name, value in problem.values.items() if name.split("_")[0] == "noise"]
    # Whether the rows of a table scatter is no parameter: of that the record has the note alone.
    says_noisy = "; noisy, " in (problem.note or "")
    return has_coordinates and (says_noisy or any(value not in (None, 0) for value in levels))


def select_metrics(
    names: str | Iterable[str],
    target: float | None = None,
    metrics: Mapping[str, Metric] = METRICS,
) -> list[Metric]:
    """The quantities that a reader names, each by name, symbol, label or heading, in the words of
    the problems' user (`metrics`) or our own.

    With a target its `rounds_to_target` are one that can be named. Of a heading only letters, signs
    and digits count: "r mean", "Simple regret r, median", "violation_hard", "V+".

    Raises:
        Misuse: a word that none of them answers to, or rounds to a target without one.
    """
    by_name = quantities(metrics)
    if target is not None:
        by_name[ROUNDS_TO_TARGET] = rounds_to_target(target)
    known = (*quantities().values(), *by_name.values())
    headings = {_reduce_heading(q.label.removesuffix(q.symbol)): by_name[q.name] for q in known}
    for q in known:
        for word in (q.label, q.name, q.symbol):
            headings[_reduce_heading(word)] = by_name[q.name]
    result: dict[str, Metric] = {}
    for word in words_of("metric", names):
        quantity = headings.get(_reduce_heading(word))
        if quantity is not None:
            result[quantity.name] = quantity
        elif target is None and (word == ROUNDS_TO_TARGET or word.startswith("t(r ")):
            raise Misuse(
                f"{show(word)} needs a target of simple regret; give it, such as --target 0.1"
            )
        else:
            raise unknown("metric", word, by_name)
    return list(result.values())


STATISTIC = re.compile(r",? (mean|median)$")  # what headings and axes add to the name of a metric


def _reduce_heading(text: str) -> str:
    """A heading without its statistic, capitals, spaces and hyphens; a symbol of one or two letters
    as it stands.
    """
    text = STATISTIC.sub("", text.strip()).strip().replace("⁺", "+").replace("₊", "+")
    if len(text) < 3:
        return text
    return re.sub(r"[\s_-]+", "", text.lower())


def find_lack(arena_groups: Sequence[Group], quantity: Metric) -> str | None:
    """Why a quantity has no value on the problem of some groups, whatever is played: a key of
    `LACKS`.

    None where it has one, or where none of the groups got there, which is a result.
    """
    if _has_value(arena_groups, quantity.name):
        return None
    if quantity.relative and any(group.unmeasured for group in arena_groups):
        return NO_OPTIMUM
    if quantity.name in (SIMPLE_REGRET, SIMPLE_VALUE, ROUNDS_TO_TARGET):
        # A best value so far would be there, had the functions stood still.
        stood = _has_value(arena_groups, SIMPLE_VALUE)
        if not stood and _has_value(arena_groups, FIRST_FEASIBLE.name):
            return MOVING
        return None
    if quantity.censored or not any(group.n for group in arena_groups):
        return None
    return UNDEFINED


def _has_value(groups: Iterable[Group], name: str) -> bool:
    """Whether a column of any good cell of some groups has a value."""
    return any(np.isfinite(group.numbers(name)).any() for group in groups)


def rounds_to_target(target: float) -> Metric:
    """The quantity that `add_rounds_to_target` adds."""
    label = f"First recorded round with a simple regret of at most {target:g}"
    return replace(
        FIRST_FEASIBLE,
        name=ROUNDS_TO_TARGET,
        symbol=f"t(r ≤ {target:g})",
        label=label,
        relative=True,
    )


def add_rounds_to_target(run: Run, groups: list[Group], target: float) -> list[Group]:
    """The groups, their cells with a column `rounds_to_target`, NaN where the target was not
    reached.

    Memory grows with the cells, and not with what was recorded.

    Raises:
        Misuse: a target that is no number or negative.
    """
    is_number = isinstance(target, (int, float)) and not isinstance(target, bool)
    if not is_number or not 0 <= target < math.inf:
        raise Misuse(
            f"target is {show(target)}; simple regret is never negative: give 0 or more, in the "
            "units of f"
        )
    goals = {cell: np.array([float(target)]) for group in groups for cell in group.good["cell"]}
    first = find_first_rounds(run, goals)
    result = []
    for group in groups:
        column = [first[cell][0] for cell in group.good["cell"]]
        columns = Columns(group.good.assign(rounds_to_target=column))
        result.append(replace(group, columns=columns, rows=np.arange(group.n)))
    return result


def take_round(run: Run, groups: list[Group], t: int) -> list[Group]:
    """The groups as they were after a round: what rounds hold in place of what cells hold in the
    end.

    Raises:
        Misuse: a cell whose round t was not recorded.
    """
    names = ["cell", "t", *METRICS]
    cells = [cell for group in groups for cell in group.good["cell"]]
    parts = [
        part.filter(pc.field("t") == t).to_pandas()
        for task, ids in run.played.by_task(cells).items()
        for part in task.rounds(names, ids)
    ]
    frame = pd.concat([pd.DataFrame(columns=names), *parts]).set_index("cell").drop(columns="t")
    if absent := sum(cell not in frame.index for cell in cells):
        raise Misuse(
            f"round {t:,} of {count_noun(absent, 'cell')} was not recorded; give a round that all "
            "have (cbobench.load_rounds lists them), or none for the last"
        )
    result = []
    for group in groups:
        values = frame.loc[[*group.good["cell"]]].set_index(group.good.index)
        columns = Columns(group.good.assign(**values))
        result.append(replace(group, columns=columns, rows=np.arange(group.n)))
    return result


def find_first_rounds(run: Run, goals: Mapping[str, Array]) -> dict[str, Array]:
    """The first recorded round of some cells with a simple regret of at most each goal.

    Args:
        goals: (k,) by cell id, the same k for all, none larger than the one before it.

    Returns:
        (k,) by cell id; NaN where it was never reached.
    """
    result: dict[str, Array] = {}
    for task, cells in run.played.by_task(goals).items():
        position = {cell: i for i, cell in enumerate(cells)}
        limits = np.array([goals[cell] for cell in cells])
        first = np.full(limits.shape, np.inf)
        for part in task.improvements(cells):
            row = cell_positions(part, position)
            t = part["t"].to_numpy()
            values = part[SIMPLE_REGRET].to_numpy()
            hit = row >= 0
            for k in range(limits.shape[1]):
                # Goals fall from one to the next, so a round that misses one misses all after it.
                row = row[hit]
                t = t[hit]
                values = values[hit]
                # Simple regret is NaN before the first feasible action, which reaches no goal.
                with np.errstate(invalid="ignore"):
                    hit = values <= limits[row, k]
                np.minimum.at(first[:, k], row[hit], t[hit])
        first[np.isinf(first)] = np.nan
        result |= dict(zip(cells, first, strict=True))
    return result
