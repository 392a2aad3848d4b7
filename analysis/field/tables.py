"""The tables of docs/field's pages: evaluations to reach, final regret, defeats, costs."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from analysis.field.groups import EXACT, PLAIN, REFERENCE, plain
from analysis.field.numbers import Field, Pair, count_reached, judge_rivals
from analysis.markdown import tabulate, wrap
from cbobench.report.figures.profiles import COCO_TARGETS
from cbobench.report.quantities import fill_unreached, is_reached, quantities
from cbobench.report.tables.paired import format_p
from cbobench.report.tables.summary import tabulate as tabulate_results
from cbobench.report.tables.table import Best, Marked, format_number
from cbobench.stats.paired_tests import SIGNIFICANT
from cbobench.words import count_noun, join_words

MOST_COLUMNS = 4  # of a table beside the methods' names


def cut_table(names: Sequence[str], columns: dict[str, list[str]]) -> str:
    """Columns beside the methods' names; those that a page has no room for side by side stand in a
    table of their own below.
    """
    parts = []
    for heads in np.array_split(list(columns), math.ceil(len(columns) / MOST_COLUMNS)):
        lines = [
            [f"`{name}`", *(columns[head][i] for head in heads)] for i, name in enumerate(names)
        ]
        parts.append(tabulate(["method", *heads], lines, "l" + "r" * len(heads)) + "\n")
    return "\n".join(parts)


def show_evaluations(value: float) -> str:
    """A number of evaluations as a cell of a table."""
    return format_number(value, is_count=True)


def order_by_evaluations(field: Field) -> list[str]:
    """The methods of a group by how many pairs of problem and target they reach, most first; of
    those that reach as many, by the evaluations that it takes them.
    """

    def judge(name: str) -> tuple[int, float]:
        medians = np.array([field.evaluations[name, problem] for problem in list_problems(name)])
        reached = np.isfinite(medians)
        return -int(reached.sum()), float(medians[reached].mean()) if reached.any() else np.inf

    def list_problems(name: str) -> list[str]:
        return [plain(group.problem_label) for group in field.methods[name]]

    return sorted(field.methods, key=judge)


def tabulate_targets(field: Field) -> str:
    """A row per method: for each target the median evaluations over its problems, and on how many
    the target is reached.
    """
    lines = []
    for name in order_by_evaluations(field):
        rows = [medians for (method, _), medians in field.evaluations.items() if method == name]
        cells = [
            f"{show_evaluations(middle)} ({reached}/{len(rows)})"
            for reached, middle in count_reached(rows)
        ]
        lines.append((f"`{name}`", *cells))
    head = ("method", *(f"{target:g}" for target in field.section.targets))
    return tabulate(head, lines, "l" + "r" * len(field.section.targets)) + "\n"


def tabulate_evaluations(field: Field) -> str:
    """A row per method with its median evaluations to each target, problem by problem."""
    names = order_by_evaluations(field)
    columns = {
        problem: [
            " / ".join(map(show_evaluations, field.evaluations[name, problem]))
            if (name, problem) in field.evaluations
            else "–"
            for name in names
        ]
        for problem in field.problems
    }
    return cut_table(names, columns)


def order_by_rank(field: Field, metric: str) -> list[str]:
    """The methods of a group by mean rank, those without one last."""
    ranks, _ = field.rank(metric)
    return [*ranks, *(name for name in field.methods if name not in ranks)]


def tabulate_final(field: Field, metric: str) -> str:
    """A row per method: its mean rank over shared seeds, and on each problem the median over its
    own seeds with its interval, as `cbobench compare` prints them.
    """
    ranks, _ = field.rank(metric)
    names = order_by_rank(field, metric)
    selection = field.select(metric)
    table = tabulate_results(selection).table
    place = list(table.columns).index(selection.shown[0].symbol)
    cells = {
        (plain(group.algorithm_label), plain(group.problem_label)): mark(row[place])
        for group, row in zip(selection.groups, table.rows, strict=True)
    }
    columns = {
        "rank": [f"{ranks[name]:.2f}" if name in ranks else "–" for name in names],
        "seeds": [count_own(field, name) for name in names],
    }
    columns |= {
        problem: [cells.get((name, problem), "–") for name in names] for problem in field.problems
    }
    return cut_table(names, columns)


def count_own(field: Field, name: str) -> str:
    """How many seeds a method has of its problems, the fewest and the most."""
    counts = sorted({group.n for group in field.methods[name]})
    return "–".join(map(str, dict.fromkeys((counts[0], counts[-1]))))


def mark(cell: str) -> str:
    """A cell of `cbobench compare` in Markdown."""
    if isinstance(cell, Best):
        return f"**{cell}**"
    return f"{cell}\\*" if isinstance(cell, Marked) else str(cell)


def sum_up(field: Field, metric: str) -> str:
    """A row per method over many problems: how much it reached of COCO's targets, and how often it
    found nothing feasible.
    """
    quantity, (ranks, _) = quantities()[metric], field.rank(metric)
    lines = []
    for name in order_by_rank(field, metric):
        values = np.concatenate(
            [fill_unreached(group.values(quantity), quantity) for group in field.methods[name]]
        )
        reached = (values[:, None] <= np.array(COCO_TARGETS)).mean()
        shown = f"{100 * reached:.1f} %", f"{100 * (~is_reached(values)).mean():.1f} %"
        rank = f"{ranks[name]:.2f}" if name in ranks else "–"
        lines.append((f"`{name}`", rank, f"{len(field.methods[name])}", *shown))
    few, most = format_number(COCO_TARGETS[-1]), format_number(COCO_TARGETS[0])
    head = ("method", "rank", "problems", "targets reached", "never feasible")
    about = wrap(f"Targets are COCO's {len(COCO_TARGETS)}, from {most} to {few}.")
    return f"{about}\n{tabulate(head, lines, 'lrrrr')}\n"


def tabulate_rivals(field: Field, metric: str) -> str:
    """A row per rival, those that are better most often first: beside the best of ours, and beside
    `cei`: on how many problems its median is better, all runs won, tied and lost, and whether that
    could be luck.
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
                results = np.array([pair.results for pair in own]).sum(axis=0).tolist()
                share = f"{-defeats[-1]}/{len(own)}"
                cells += [share, "/".join(map(str, results)), show_verdict(*verdicts[rival])]
            else:
                cells += 3 * ["–"]
        lines.append((defeats, cells))
    head = ["rival", "better than the best of ours on", "w/t/l", "p (Holm)"]
    head += [f"better than {REFERENCE} on", "w/t/l", "p (Holm)"]
    lines.sort(key=lambda line: line[0])
    return tabulate(head, [cells for _, cells in lines], "lrrlrrl") + "\n"


def show_verdict(p: float, effect: float) -> str:
    """A test of a rival as a cell: its p, and who is better where that is no luck."""
    if not p < SIGNIFICANT:
        return format_p(p)
    return f"{format_p(p)}, {'better' if effect > 0 else 'worse'}"


def list_defeats(pairs: Sequence[Pair]) -> str:
    """A row per rival and problem on which it is better."""
    head = ("rival", "problem", "median", "ours", "median", "w/t/l", "p (Holm)")
    lines = []
    for pair in pairs:
        sure = "\\*" if pair.p < SIGNIFICANT else ""
        lines.append(
            (
                *(f"`{pair.rival}`", pair.problem, format_number(pair.median)),
                *(f"`{pair.own}`", format_number(pair.own_median)),
                "/".join(map(str, pair.results)),
                f"{format_p(pair.p)}{sure}",
            )
        )
    return tabulate(head, lines, "llrlrrr") + "\n"


def list_costs(field: Field) -> str:
    """A row per method: how many runs it has, their rounds' time, the failed fits."""
    lines = []
    for name, groups in field.methods.items():
        seconds = np.concatenate([group.numbers("seconds_per_round") for group in groups])
        fits = int(np.nansum([np.nansum(group.numbers("failed_fits")) for group in groups]))
        runs = f"{sum(group.n for group in groups)}/{sum(group.expected for group in groups)}"
        time = format_number(float(1e3 * np.median(seconds)))
        lines.append((f"`{name}`", runs, time, f"{fits:,}" if fits else "–"))
    return tabulate(("method", "runs", "ms a round", "failed fits"), lines, "lrrr") + "\n"


def count_rivals(defeats: Sequence[Pair]) -> dict[str, list[str]]:
    """The problems on which each rival is better, by rival, most problems first."""
    by_rival: dict[str, list[str]] = {}
    for pair in defeats:
        by_rival.setdefault(pair.rival, []).append(pair.problem)
    return dict(sorted(by_rival.items(), key=lambda item: -len(item[1])))


def describe_defeats(field: Field, metric: str, most: int = 3) -> str:
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
        listed = "; ".join(name_rivals(defeats, most))
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


def name_rivals(defeats: Sequence[Pair], most: int) -> list[str]:
    """Who is better than ours, and where, those first that are so most often; the others as a
    number.
    """
    by_rival = count_rivals(defeats)
    said = []
    for rival, problems in list(by_rival.items())[:most]:
        # "hartmann-4, 1 %" is one of them.
        listed = join_words(problem.replace(", ", " at ") for problem in problems)
        where = listed if len(problems) <= most else str(len(problems))
        seeds = min(pair.seeds for pair in defeats if pair.rival == rival)
        said.append(f"`{rival}` on {where} ({count_noun(seeds, 'seed')})")
    more = len(by_rival) - most
    return said + ([count_noun(more, "other rival")] if more > 0 else [])
