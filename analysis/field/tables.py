"""The tables of docs/field's pages: evaluations to reach, defeats, ranks and costs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
import pandas as pd

from analysis.field.groups import PLAIN, plain
from analysis.field.numbers import Field, count_reached
from analysis.markdown import tabulate
from cbobench.algorithms import ALGORITHMS
from cbobench.metrics import Metric
from cbobench.report.figures.profiles import COCO_TARGETS
from cbobench.report.groups import Group
from cbobench.report.quantities import fill_unreached, is_reached, quantities
from cbobench.report.tables.duels import FLOORS, format_rank
from cbobench.report.tables.table import format_number
from cbobench.stats.paired_tests import SIGNIFICANT
from cbobench.words import count_noun, join_words

HEADLINE = 1e-4  # the floor of what pages say in words


def order_by_rank(field: Field, metric: str) -> list[str]:
    """The methods of a group by mean rank, those without one last."""
    return [*dict.fromkeys([*field.rank(metric).index, *field.methods])]


def list_solvers(field: Field) -> pd.Series:
    """The solvers of a group by mean rank, by the name of their best variant."""
    ranks = field.rank(field.section.tables[0][0])
    return ranks.loc[ranks["is_variant"].eq(False), "solver"]


def sum_up(groups: Sequence[Group], quantity: Metric) -> tuple[str, str]:
    """Of a method on many problems: how much it reached of COCO's targets, and how often it found
    nothing feasible.
    """
    values = np.concatenate([fill_unreached(group.values(quantity), quantity) for group in groups])
    reached = (values[:, None] <= np.array(COCO_TARGETS)).mean()
    never = (~is_reached(values)).mean()
    return f"{100 * reached:.1f} %", f"{100 * never:.1f} %"


def sum_up_evaluations(field: Field, name: str) -> list[str]:
    """Of a method: for each target the median evaluations over its problems, and on how many of
    them the target is reached.
    """
    rows = [medians for (method, _), medians in field.evaluations.items() if method == name]
    return [
        f"{format_number(middle, is_count=True)} ({reached}/{len(rows)})"
        for reached, middle in count_reached(rows)
    ]


def sum_up_costs(groups: Sequence[Group]) -> tuple[str, str]:
    """Of a method: how many runs it has, and its rounds' time."""
    seconds = np.concatenate([group.numbers("seconds_per_round") for group in groups])
    runs = f"{sum(group.n for group in groups)}/{sum(group.expected for group in groups)}"
    return runs, format_number(float(1e3 * np.median(seconds)))


def tabulate_methods(field: Field) -> str:
    """A row per method, best first: its mean rank over shared seeds by each metric, the evaluations
    to each target, over many problems what it reached, and what it cost.
    """
    known = [quantities()[metric] for metric, _ in field.section.tables]
    ranked = [field.rank(quantity.name).to_dict("index") for quantity in known]
    head = ["method", *(f"rank by {quantity.symbol}" for quantity in known)]
    head += [f"to {target:g}" for target in field.section.targets]
    head += ["targets reached", "never feasible"] if field.section.absolute else []
    head += ["runs", "ms a round"]
    lines = []
    for name in order_by_rank(field, known[0].name):
        groups = field.methods[name]
        cells = [format_rank(ranks[name]) if name in ranks else "–" for ranks in ranked]
        cells += sum_up_evaluations(field, name)
        cells += sum_up(groups, known[0]) if field.section.absolute else []
        lines.append([f"`{name}`", *cells, *sum_up_costs(groups)])
    return tabulate(head, lines, "l" + "r" * (len(head) - 1)) + "\n"


def tabulate_duels(field: Field, name: str) -> str:
    """One of ours against each other method: by every floor in the end, and by that of the headline
    earlier.
    """
    table = field.duel(name, [*field.earlier, None]).table
    columns = [
        *(f"t = {t}, floor {HEADLINE:g}" for t in field.earlier),
        *(f"floor {floor:g}" for floor in FLOORS),
    ]
    places = [table.columns.index(column) for column in columns]
    lines = [(f"`{plain(row[0])}`", *(row[place] for place in places)) for row in table.rows]
    return tabulate(("rival", *columns), lines, "l" + "r" * len(columns)) + "\n"


def is_foreign(title: str) -> bool:
    """Whether a method is of another library."""
    return "opponents" in ALGORITHMS.get(title.partition("[")[0]).__module__


@cache  # pages, front page, README and the table of answers are of it
def find_verdicts(field: Field, name: str) -> pd.DataFrame:
    """The rows of one method against each other, by the floor of the headline, with a `verdict`:
    above 0 where it is significantly better, below where it is worse.
    """
    frame = field.duel(name).frame
    frame = frame[frame["floor"] == HEADLINE]
    return frame.assign(verdict=frame["effect"].where(frame["p_holm"] < SIGNIFICANT, 0))


def find_equals(field: Field, name: str) -> list[str]:
    """The other methods that are not significantly worse than one, by the floor of the headline."""
    verdicts = find_verdicts(field, name)
    return [*verdicts.loc[verdicts["verdict"] <= 0, "against_label"].map(plain)]


def describe_standing(field: Field, name: str) -> str:
    """A sentence on one of ours one against one, by the floor of the headline."""
    verdicts = find_verdicts(field, name)
    worse = verdicts.loc[verdicts["verdict"] < 0, "against_label"]
    named = join_words(f"`{plain(label)}`" for label in worse) if len(worse) else "none"
    methods = verdicts["against_label"].map(plain)
    solver = field.rank(field.section.tables[0][0])["solver"]
    is_own = methods.map(solver) == solver.get(name)
    solvers = verdicts[~verdicts["is_variant"] & ~is_own & ~methods.isin(PLAIN)]
    is_better = solvers["verdict"] > 0
    foreign = solvers["against"].map(is_foreign)
    counts = [
        f"{is_better[part].sum()} of {count_noun(int(part.sum()), 'solver')} of {whose}"
        for part, whose in ((foreign, "other libraries"), (~foreign, "this project"))
        if part.any()
    ]
    near = [f"`{plain(label)}`" for label in solvers.loc[solvers["verdict"] == 0, "against_label"]]
    undecided = f"; undecided: {', '.join(near)}" if near else ""
    return (
        f"`{name}` is significantly better than {' and '.join(counts)}, worse than {named}"
        f"{undecided}."
    )
