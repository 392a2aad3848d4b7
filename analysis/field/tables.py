"""The tables of docs/field's pages: evaluations to reach, defeats, ranks and costs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from analysis.field.groups import EXACT, PLAIN, REFERENCE
from analysis.field.numbers import Field, Pair, count_reached, judge_rivals
from analysis.markdown import tabulate
from cbobench.metrics import Metric
from cbobench.report.figures.profiles import COCO_TARGETS
from cbobench.report.groups import Group
from cbobench.report.quantities import fill_unreached, is_reached, quantities
from cbobench.report.tables.paired import format_p
from cbobench.report.tables.table import format_number
from cbobench.stats.paired_tests import SIGNIFICANT
from cbobench.words import count_noun, join_words

MOST_NAMED = 3  # rivals of a sentence, and problems of a rival


def order_by_rank(field: Field, metric: str) -> list[str]:
    """The methods of a group by mean rank, those without one last."""
    ranks, _ = field.rank(metric)
    return [*ranks, *(name for name in field.methods if name not in ranks)]


def describe_targets() -> str:
    """What the share of targets is of."""
    few, most = format_number(COCO_TARGETS[-1]), format_number(COCO_TARGETS[0])
    return f"*Targets reached* is of COCO's {len(COCO_TARGETS)}, from {most} to {few}."


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


def list_failed_fits(field: Field) -> str:
    """How many fits of which method failed, of those that had any: "`cei` 7, `furbo` 1"."""
    counts = {
        name: int(sum(np.nansum(group.numbers("failed_fits")) for group in groups))
        for name, groups in field.methods.items()
    }
    return ", ".join(f"`{name}` {count:,}" for name, count in counts.items() if count)


def tabulate_methods(field: Field) -> str:
    """A row per method, best first: its mean rank over shared seeds by each metric, the evaluations
    to each target, over many problems what it reached, and what it cost.
    """
    known = [quantities()[metric] for metric, _ in field.section.tables]
    ranked = [field.rank(quantity.name)[0] for quantity in known]
    head = ["method", *(f"rank by {quantity.symbol}" for quantity in known)]
    head += [f"to {target:g}" for target in field.section.targets]
    head += ["targets reached", "never feasible"] if field.section.absolute else []
    head += ["runs", "ms a round"]
    lines = []
    for name in order_by_rank(field, known[0].name):
        groups = field.methods[name]
        cells = [f"{ranks[name]:.2f}" if name in ranks else "–" for ranks in ranked]
        cells += sum_up_evaluations(field, name)
        cells += sum_up(groups, known[0]) if field.section.absolute else []
        lines.append([f"`{name}`", *cells, *sum_up_costs(groups)])
    return tabulate(head, lines, "l" + "r" * (len(head) - 1)) + "\n"


def tabulate_rivals(field: Field, metric: str) -> str:
    """A row per rival, those that are better most often first: beside the best of ours, and beside
    `cei`, on how many problems its median is better, and whether that could be luck.
    """
    sides = field.pair_best(metric), field.pair_reference(metric)
    judged = [judge_rivals(pairs) for pairs in sides]
    lines = []
    for rival in field.rivals:
        defeats, cells = [], [f"`{rival}`"]
        for pairs, verdicts in zip(sides, judged, strict=True):
            own = [pair for pair in pairs if pair.rival == rival]
            defeats.append(-sum(pair.is_defeat for pair in own))
            if own:
                cells += [f"{-defeats[-1]}/{len(own)}", show_verdict(*verdicts[rival])]
            else:
                cells += ["–", "–"]
        lines.append((defeats, cells))
    head = ["rival", "better than the best of ours on", "p (Holm)"]
    head += [f"better than {REFERENCE} on", "p (Holm)"]
    lines.sort(key=lambda line: line[0])
    return tabulate(head, [cells for _, cells in lines], "lrlrl") + "\n"


def show_verdict(p: float, effect: float) -> str:
    """A test of a rival as a cell: its p, and who is better where that is no luck."""
    if not p < SIGNIFICANT:
        return format_p(p)
    return f"{format_p(p)}, {'better' if effect > 0 else 'worse'}"


def count_rivals(defeats: Sequence[Pair]) -> dict[str, list[str]]:
    """The problems on which each rival is better, by rival, most problems first."""
    by_rival: dict[str, list[str]] = {}
    for pair in defeats:
        by_rival.setdefault(pair.rival, []).append(pair.problem)
    return dict(sorted(by_rival.items(), key=lambda item: -len(item[1])))


def describe_defeats(field: Field, metric: str) -> str:
    """A sentence on where a rival is better than the best of ours, and others on what that hides;
    problems are named where a rival has few.
    """
    if not field.own:
        return "None of ours is played yet."
    if not field.rivals:
        return "No rival is played yet."
    pairs = field.pair_best(metric)
    defeats = [pair for pair in pairs if pair.is_defeat]
    played = {pair.problem for pair in pairs}
    if not defeats:
        count = count_noun(len(played), "problem")
        said = [f"No rival has a better median than the best of ours on any of {count}."]
    else:
        share = f"{len(find_beaten(pairs))} of {count_noun(len(played), 'problem')}"
        listed = "; ".join(name_rivals(defeats))
        said = [f"On {share} a rival has a better median than the best of ours: {listed}."]
    if beaten := find_beaten(field.pair_inexact(metric)):
        said.append(f"Without `{EXACT}`, a rival is better on {len(beaten)}.")
    if beaten := find_beaten(field.pair_plain(metric)):
        names = " or ".join(f"`{name}`" for name in PLAIN if name in field.methods)
        said.append(f"Even {names} is better on {len(beaten)}.")
    return " ".join(said)


def find_beaten(pairs: Sequence[Pair]) -> set[str]:
    """The problems on which somebody is better than ours."""
    return {pair.problem for pair in pairs if pair.is_defeat}


def name_rivals(defeats: Sequence[Pair]) -> list[str]:
    """Who is better than ours, and where, those first that are so most often; the others as a
    number.
    """
    by_rival = count_rivals(defeats)
    said = []
    for rival, problems in list(by_rival.items())[:MOST_NAMED]:
        # "hartmann-4, 1 %" is one of them.
        listed = join_words(problem.replace(", ", " at ") for problem in problems)
        where = listed if len(problems) <= MOST_NAMED else str(len(problems))
        seeds = min(pair.seeds for pair in defeats if pair.rival == rival)
        said.append(f"`{rival}` on {where} ({count_noun(seeds, 'seed')})")
    more = len(by_rival) - MOST_NAMED
    return said + ([count_noun(more, "other rival")] if more > 0 else [])
