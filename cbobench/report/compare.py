"""`cbobench compare`: what the seeds of a run came to, who is better than whom, and what changed between two runs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import pandas as pd

from cbobench.errors import Misuse, show
from cbobench.report.changes import compare_runs
from cbobench.report.formats import FORMATS, TextTable, render, render_html, render_records
from cbobench.report.groups import (
    Group,
    Where,
    count_crossed_seeds,
    describe_failures,
    describe_horizons,
    describe_problems,
    find_arithmetic,
    find_groups,
    open_run,
    select_latest,
)
from cbobench.report.load import Run
from cbobench.report.paired import tabulate_differences
from cbobench.report.quantities import HEADLINE, SIMPLE_VALUE, Quantity, quantities, select_metrics
from cbobench.report.ranks import profile_algorithms, rank_algorithms
from cbobench.report.recommended import describe_best
from cbobench.report.summary import select_groups, summarise_groups, tabulate_summary
from cbobench.results.provenance import mixed_note
from cbobench.words import count_noun


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
            return render_records(rows, style)
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
    absolute: bool = False,
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
        absolute: with the targets of COCO's constrained suite in `profile`, from 100 to 1e-6 in units of f.
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
    kinds = {"best": best, "against": against, "ranks": ranks, "profile": profile, "two runs": other}
    asked = [name for name, value in kinds.items() if value is not None and value is not False]
    two_runs = "two runs" in asked
    if len(asked) > 1:
        raise Misuse(f"{' and '.join(asked)} are different tables; ask for one of them")
    if means and asked:
        raise Misuse(f"means are in the table of what the seeds came to; leave them out with {asked[0]}")
    if not two_runs and (only_changed or factor != 1.0):
        raise Misuse("only_changed and factor are about two runs; give a second run")
    if two_runs and (target is not None or by != "problem"):
        raise Misuse("target and by are about one run; leave them out, or give no second run")
    if (ranks or profile) and by != "problem":
        raise Misuse("ranks and profiles have one row per algorithm over all problems; leave by out")
    if absolute and not profile:
        raise Misuse("absolute is about the targets of profiles; ask for profile too, or leave it out")
    if profile and (metric or target is not None):
        raise Misuse("profiles are of simple regret against targets of their own; leave metric and target out")
    one = open_run(run)
    shown, main = _select_columns(one, only, metric)
    if asked and (neither := [q.symbol for q in main if q.better is None]):
        raise Misuse(f"of {', '.join(neither)} neither side is better: it is in the table of one run only")
    if other is not None:
        after = open_run(other)
        changes = Comparison(*compare_runs(one, after, only, main, only_changed, factor))
        return _add_notes(changes, _describe_arithmetic([*find_groups(one, only), *find_groups(after, only)]))
    found, every = select_groups(one, only, by, target)
    if target is not None:
        shown, main = [shown[0], every[1], *shown[1:]], [*main, every[1]]
    part = one if only is None else one.only(only)
    notes = list[str]()
    last = select_latest(part, found)
    if (ranks or profile) and len(last) < len(found):  # one play under two horizons is no two problems, nor two cells
        found = last
        notes = [describe_horizons(part, dict.fromkeys(group.problem for group in found))]
    title = _title(one, found)
    if best or against is not None:
        made = Comparison(*tabulate_differences(one, found, main, title, against, by))
    elif ranks:
        made = Comparison(*rank_algorithms(found, main, title))
    elif profile:
        made = Comparison(*profile_algorithms(one, found, title, absolute))
    else:
        frame = summarise_groups(found, every)
        table = tabulate_summary(title, found, frame, shown, main, named=metric is not None, by=by)
        made = Comparison(frame, replace(table, weights=()) if means else table)
    unplayable = tuple(part.record.unplayable)
    notes += describe_best(one, select_latest(part, found)) if not asked else []
    notes += describe_failures(found)
    notes += [
        *_describe_variants(one, found),
        *(f"not played: {line}" for line in unplayable),
        *_describe_arithmetic(found),
    ]
    return replace(_add_notes(made, notes), unplayable=unplayable)


def _select_columns(
    run: Run, only: str | None, metric: str | Iterable[str] | None
) -> tuple[list[Quantity], list[Quantity]]:
    """The quantities of a table, and those of them that a narrow terminal shows."""
    shown = select_metrics(metric)
    main = [q for q in shown if metric or q.name in HEADLINE]
    no_reference = (run.cells["status"] == "ok") & run.cells["f_star"].isna()
    if not metric and no_reference.any() and any(group.unmeasured for group in find_groups(run, only)):
        value = quantities()[SIMPLE_VALUE]
        return [value, *shown], [value, *main]
    return shown, main


def _describe_variants(run: Run, found: list[Group]) -> list[str]:
    """What the problems of some groups say of their own numbers, and what their algorithms do."""
    notes = describe_problems(run, dict.fromkeys(group.problem for group in found))
    algorithms = run.record.variants("algorithms")
    return [*notes, *dict.fromkeys(note for group in found if (note := algorithms[group.algorithm].note))]


def _add_notes(made: Comparison, lines: Iterable[str]) -> Comparison:
    """A comparison with more lines below its table."""
    note = "\n".join([*([made.table.note] if made.table.note else []), *lines])
    return replace(made, table=replace(made.table, note=note))


def _describe_arithmetic(found: Iterable[Group]) -> list[str]:
    """A line where cells were played in several kinds of arithmetic, and in how many seeds these are compared."""
    found = list(found)
    if not (mixed := mixed_note(find_arithmetic(found))):
        return []
    crossed, compared = count_crossed_seeds(found)
    return [f"{mixed}; {crossed:,} of {count_noun(compared, 'compared seed')} cross kinds" if crossed else mixed]


def _title(run: Run, found: list[Group]) -> str:
    horizons = {group.horizon for group in found}
    return run.record.suite + (f", T = {horizons.pop():,}" if len(horizons) == 1 else "")
