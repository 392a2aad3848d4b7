"""`cbobench compare`: what the seeds of a run came to, who is better than whom, and what changed between two runs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from cbobench.errors import Misuse, show
from cbobench.report import pairs, ranking, runs
from cbobench.report.aggregate import around_medians, gathered, summarised
from cbobench.report.formats import (
    CARRIED,
    FORMATS,
    MEAN,
    SECOND,
    Marked,
    TextTable,
    beside,
    bracket,
    number,
    records,
    render,
    render_html,
)
from cbobench.report.groups import Group, Where, binding, cpus, ends, groups, latest, opened
from cbobench.report.load import Run
from cbobench.report.quantities import HEADLINE, INSTEAD, SHARE, Quantity, chosen, quantities
from cbobench.results.provenance import rounding_note

ABOUT = "median [{around}] over seeds"
MARKED = "* best of its problem by the median, or not separable from the best (paired Wilcoxon, Holm per column, 5 %)"
NEVER = "k/n: only k seeds got there; the others count as worse than any value, the mean is of these k"
PAIRED = (
    "algorithm - against, seed by seed: median [{around}], mean [95 % interval]; n: seeds that both have, of those "
    "asked for; k/n beside a difference: in k of them both got there, the mean is of these, the median counts the "
    "others as lost; p: Wilcoxon's signed-rank test, Holm over the rows of a metric; * significant at 5 %; effect: 1 "
    "where the algorithm is better in every seed, -1 where it is worse; w/t/l: seeds in which it is better, equal, "
    "worse"
)


@dataclass(frozen=True)
class Comparison:
    """A comparison: `frame` holds the numbers, `str()` is the table of a terminal.

    Attributes:
        frame: one row per row of the table, in full precision.
        table: the same for readers.
        worse: between two runs, whether anything is worse or newly failing.
        nothing: why two runs hold nothing that can be compared; empty where they hold something.
        undecided: what of two runs no test can decide with these seeds; empty where there is no such thing.
        unplayable: what the run's suite leaves out because it cannot be played, and why, a line each.
    """

    frame: pd.DataFrame
    table: TextTable
    worse: bool = False
    nothing: str = ""
    undecided: str = ""
    unplayable: tuple[str, ...] = ()

    def render(self, style: str = "table", width: int | None = None) -> str:
        """The comparison in one of `formats.FORMATS`; a table fits `width`, by default the terminal."""
        if style not in FORMATS:
            raise Misuse(f"format is {show(style)}; allowed: {', '.join(FORMATS)}")
        if style in ("csv", "json"):
            floats = set(self.frame.select_dtypes("float"))  # of these NaN is a value, elsewhere there is none
            rows = [
                {str(k): v if k in floats or pd.notna(v) else None for k, v in row.items()}
                for row in self.frame.to_dict("records")
            ]
            return records(rows, style)
        return render(self.table, style, width)

    def __str__(self) -> str:
        return self.render()

    def _repr_html_(self) -> str:
        return render_html(self.table)

    def _repr_markdown_(self) -> str:
        return self.render("markdown")


def compare(
    run: Where,
    other: Where | None = None,
    *,
    only: str | None = None,
    metric: str | Iterable[str] | None = None,
    by: str = "problem",
    target: float | None = None,
    best: bool = False,
    against: str | None = None,
    ranks: bool = False,
    profile: bool = False,
    means: bool = False,
    only_changed: bool = False,
    factor: float = 1.0,
) -> Comparison:
    """Compare the algorithms of a run, or two runs.

    Args:
        run: an open run, a path or URI, or what `cbobench.run` returned.
        other: a second run, such as of another commit: what changed from `run` to it.
        only: a glob over "problem/algorithm", by title, name or label.
        metric: one or more, by name, symbol or label; those that tables show by default.
        by: "problem" or "algorithm" for the order of rows; "binds" sets seeds apart in which the constraint binds.
        target: of simple regret, in units of f: adds the first recorded round at which it was reached.
        best: paired differences to the best algorithm of each problem, instead of what the seeds came to.
        against: the same to this algorithm.
        ranks: average ranks over problems by the median, with the critical difference.
        profile: shares of seeds, and of (problem, target) pairs by round, that come within a precision of f*.
        means: show every column however wide, also in LaTeX, which by default has headline metrics without means.
        only_changed, factor: of two runs, only rows that changed, and by more than this factor.

    Raises:
        Misuse: no run there, a word that names nothing, or options that do not go together.

    Example:
        >>> import cbobench
        >>> print(cbobench.compare("runs/quickstart", metric=["simple_regret", "V⁺"]))  # doctest: +SKIP
        >>> cbobench.compare("runs/quickstart", against="random").frame["p_holm"]  # doctest: +SKIP
        >>> assert not cbobench.compare("runs/before", "runs/after").worse  # doctest: +SKIP
    """
    paired = best or against is not None
    given = {"best": best, "against": against, "ranks": ranks, "profile": profile, "two runs": other}
    asked = [name for name, value in given.items() if value is not None and value is not False]
    if len(asked) > 1:
        raise Misuse(f"{' and '.join(asked)} are different tables; ask for one of them")
    if means and asked:
        raise Misuse(f"means are in the table of what the seeds came to; leave them out with {asked[0]}")
    if other is None and (only_changed or factor != 1.0):
        raise Misuse("only_changed and factor are about two runs; give a second run")
    if other is not None and (target is not None or by != "problem"):
        raise Misuse("target and by are about one run; leave them out, or give no second run")
    if (ranks or profile) and by != "problem":
        raise Misuse("ranks and profiles have one row per algorithm over all problems; leave by out")
    if profile and (metric or target is not None):
        raise Misuse("profiles are of simple regret against targets of their own; leave metric and target out")
    picked = chosen(metric)
    main = [q for q in picked if metric or q.name in HEADLINE]
    one = opened(run)
    unknown = (one.cells["status"] == "ok") & one.cells["f_star"].isna()
    if not metric and unknown.any() and any(group.unmeasured for group in groups(one, only)):
        value = quantities()[INSTEAD]
        picked, main = [value, *picked], [value, *main]
    if asked and (neither := [q.symbol for q in main if q.better is None]):
        raise Misuse(f"of {', '.join(neither)} neither side is better: it is in the table of one run only")
    if other is not None:
        two = one, opened(other)
        changes = Comparison(*runs.compared(*two, only, main, only_changed, factor))
        lines = _rounding([group for each in two for group in groups(each, only)])
        return replace(changes, table=_noted(changes.table, lines))
    found, every = gathered(one, only, by, target)
    if target is not None:
        reached = every[1]
        picked, main = [picked[0], reached, *picked[1:]], [*main, reached]
    said: list[str] = []
    if ranks or profile:  # one play under two horizons is no two problems, nor two cells
        part = one if only is None else one.only(only)
        every_horizon, found = found, latest(part, found)
        if len(found) < len(every_horizon):
            said = [ends(part, dict.fromkeys(group.problem for group in found))]
    title = _title(one, found)
    if paired:
        frame = pairs.differences(one, found, main, against)
        if by == "algorithm" and not frame.empty:
            order = list(dict.fromkeys(group.algorithm for group in found))
            frame = frame.sort_values("algorithm", key=lambda a: a.map(order.index), kind="stable", ignore_index=True)
        if frame.empty:
            raise Misuse(f"{one.folder} holds no two algorithms with values on one problem: nothing to pair")
        note = PAIRED.format(around=around_medians(frame["n"]))
        made = Comparison(frame, pairs.table(frame, main, title, note, by == "algorithm"))
    elif ranks:
        made = Comparison(*ranking.ranked(found, main, title))
    elif profile:
        made = Comparison(*ranking.profiled(one, found, title))
    else:
        frame = summarised(found, every)
        made = Comparison(frame, _text(title, found, frame, picked, main, named=metric is not None, by=by))
        if means:
            made = replace(made, table=replace(made.table, weights=()))
    left_out = tuple((one.record if only is None else one.record.only(only)).unplayable)
    lines = [*said, *_about(one, found), *(f"not played: {line}" for line in left_out), *_rounding(found)]
    return replace(made, table=_noted(made.table, lines), unplayable=left_out)


def _about(run: Run, found: list[Group]) -> list[str]:
    """What the problems of some groups say of their own numbers, and what their algorithms do."""
    variants = run.record.variants("problems")
    titles = {group.problem: group.problem_label for group in found}
    notes = [f"{label}: {variants[title].note}" for title, label in titles.items() if variants[title].note]
    algorithms = run.record.variants("algorithms")
    return [*notes, *dict.fromkeys(note for group in found if (note := algorithms[group.algorithm].note))]


def _noted(table: TextTable, lines: Iterable[str]) -> TextTable:
    """A table with more lines below."""
    return replace(table, note="\n".join([*([table.note] if table.note else []), *lines]))


def _rounding(found: Iterable[Group]) -> list[str]:
    """A line where cells were played on several kinds of CPU."""
    mixed = rounding_note(cpus(found))
    return [mixed] if mixed else []


def _title(run: Run, found: list[Group]) -> str:
    horizons = {group.horizon for group in found}
    return run.record.suite + (f", T = {horizons.pop():,}" if len(horizons) == 1 else "")


def _text(
    title: str,
    found: list[Group],
    frame: pd.DataFrame,
    shown: list[Quantity],
    main: list[Quantity],
    named: bool,
    by: str,
) -> TextTable:
    """The default table of `shown`; in a narrow terminal `main` stays longest."""
    notes, absent = list[str](), list[str]()
    problems = [group.problem_label for group in found]
    if by != "binds" and (binds := binding(found)):
        counts_of = [binds.get(group.arena) for group in found]
        words = ["" if one is None else f"binds in {one[0]}/{one[1]}" for one in counts_of]  # no optimum, not known
        if len(set(words)) == 1:
            absent.append(f"the constraint {words[0]} seeds: there the best action is infeasible")
        else:
            problems = [f"{name} ({word})" if word else name for name, word in zip(problems, words, strict=True)]
            notes.append("binds: seeds in which the best action is infeasible (--by binds sets them apart)")
    first = [("problem", problems), ("algorithm", [group.algorithm_label for group in found])]
    if by == "algorithm":
        first.reverse()
    if len({g.horizon for g in found}) > 1:
        first.append(("T", [f"{g.horizon:,}" for g in found]))
    counts = [g.count for g in found]
    if len(set(counts)) == 1:
        title += f", n = {counts[0]}"
    else:
        first.append(("n", counts))
    columns: list[tuple[str, list[str], int]] = [(name, cells, 0) for name, cells in first]
    found_marks = pairs.marks(found, shown)
    before: list[tuple[Quantity, Any]] = []
    rows = [{str(k): v for k, v in row.items()} for row in frame.to_dict("records")]
    for position, quantity in enumerate(shown):
        medians, means = frame[f"{quantity.name}_median"].to_numpy(), frame[quantity.name].to_numpy()
        twin = next((q for q, old in before if np.array_equal(old, [medians, means], equal_nan=True)), None)
        if not named and (why := _dull(quantity, medians, means, twin, found)):
            absent.append(why)
            continue
        before.append((quantity, [medians, means]))
        mine = found_marks.marked[quantity.name]
        cells = [
            "–" if quantity.relative and group.unmeasured else _cell(row, quantity)
            for group, row in zip(found, rows, strict=True)
        ]
        cells = [Marked(cell) if i in mine else cell for i, cell in enumerate(cells)]
        late = 0 if quantity in main else 2 * SECOND
        columns.append((quantity.symbol, cells, late + position))
        if quantity.better is not None:
            cells = [_mean(row, quantity) for row in rows]
            columns.append((quantity.symbol + MEAN, cells, late + SECOND + position))
    counted = {n for quantity, _ in before for n in frame["n" if quantity.censored else f"{quantity.name}_defined"]}
    notes.insert(0, ABOUT.format(around=around_medians(counted)))
    if any(found_marks.marked.values()):
        notes.append(MARKED + _of(found_marks.blocks))
    if found_marks.powerless:
        notes.append("where the seeds are too few to separate anything, nothing is marked")
    if any("†" in cell for _, cells, _ in columns for cell in cells):
        notes.append(CARRIED)
    censored = {quantity.symbol for quantity in shown if quantity.censored}
    if any("/" in cell for name, cells, _ in columns if name in censored for cell in cells):
        notes.append(NEVER)
    if 1 in {len(g.good) for g in found}:
        notes.append("one seed has no interval")
    if not any(len(g.good) for g in found):
        state = "no cell is good, some failed" if any(g.failures for g in found) else "no cell is done yet"
        notes, absent = [f"{state}; see cbobench status"], []
    note = "; ".join(notes) + (f"\nleft out: {'; '.join(absent)}" if absent else "")
    names, texts, weights = zip(*columns, strict=True)
    return TextTable(names, list(zip(*texts, strict=True)), title, note, left=2, weights=weights)


def _of(blocks: tuple[int, int] | None) -> str:
    return f" on the seeds that both have, at least {blocks[0]}/{blocks[1]}" if blocks else ""


def _dull(quantity: Quantity, medians: Any, means: Any, twin: Quantity | None, found: list[Group]) -> str | None:
    """Why a column tells nothing: it is empty, the same in all rows, or the same as another."""
    if quantity.relative and np.isnan(means).all() and all(group.unmeasured for group in found):
        return f"{quantity.symbol} (no optimum is known)"
    if np.isnan(means).all():
        return f"{quantity.symbol} ({'no seed got there' if quantity.censored and quantity.whole else 'undefined'})"
    if len(found) > 1 and len(set(means)) == 1 and len(set(medians)) == 1:
        return f"{quantity.symbol} ({number(means[0], quantity.whole)} everywhere)"
    if twin is not None:
        return f"{quantity.symbol} (equals {twin.symbol})"
    return None


def _cell(row: dict[str, Any], quantity: Quantity) -> str:
    """median [low, high], and in how many seeds it is defined where that is not all."""
    name = quantity.name
    if quantity.better is None:
        value = row[f"{name}_median"]
        return f"{100 * value:.1f} %" if quantity.bounds == SHARE and value == value else number(value)
    text = bracket(*_median(row, name), quantity.whole)
    defined = row[f"{name}_defined"]
    if defined == row["n"] or not row["n"] or not (defined or quantity.censored):
        return text
    return f"{text} {defined}/{row['n']}"


def _mean(row: dict[str, Any], quantity: Quantity) -> str:
    """The mean in the digits of the median, with its mark."""
    mean = beside(row[quantity.name], *_median(row, quantity.name), quantity.whole)
    return mean + ("†" if row[f"{quantity.name}_carried"] else "")


def _median(row: dict[str, Any], name: str) -> tuple[float, float, float]:
    return row[f"{name}_median"], row[f"{name}_median_low"], row[f"{name}_median_high"]
