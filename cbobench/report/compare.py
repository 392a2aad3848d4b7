"""`cbobench compare`: the results of a run, who is better than whom, and what changed between two runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import KW_ONLY, dataclass, replace

import pandas as pd

from cbobench.errors import Misuse, show
from cbobench.options import accept_fields
from cbobench.report.changes import compare_runs
from cbobench.report.formats import FORMATS, TextTable, render, render_html, render_records
from cbobench.report.groups import Group, describe_apart, find_groups
from cbobench.report.load import RunLike, open_run
from cbobench.report.notes import collect_notes, describe_arithmetic
from cbobench.report.paired import find_algorithm, select_paired, tabulate_differences
from cbobench.report.profiles import profile_algorithms
from cbobench.report.quantities import describe_lacks, quantities
from cbobench.report.ranks import rank_algorithms
from cbobench.report.selection import Selection
from cbobench.report.summary import SummaryLook, summarise_groups, tabulate_summary


@dataclass(frozen=True)
class Comparison:
    """A comparison: `frame` holds the numbers, `str()` is the table of a terminal.

    Attributes:
        frame: one row per row of the table, in full precision.
        table: the same for readers.
        worse: between two runs, whether anything is worse or newly failing.
        nothing: why two runs hold nothing that can be compared; empty where they hold something.
        undecided: what of two runs no test can decide with these seeds; empty if all can be decided.
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


@dataclass(frozen=True)
class CompareOptions:
    """What is compared, and how.

    Attributes:
        run: an open run, a path or URI, or what `cbobench.run` returned; or a list of them, read as one run.
        other: a second run, such as of another commit: what changed from `run` to it.
        only: a glob over "problem/algorithm", by title, name or label.
        metric: one or more, by name, symbol or label; by default r, R, V⁺ and N. Without an optimum best f is shown in
            place of r and R; where a box or a table has noise, the regret of what is recommended in place of r.
        all: every quantity in place of these, in the table of results.
        by: "problem" or "algorithm" for the order of rows; "binds" sets seeds apart in which the constraint binds.
        horizon: T; by default the latest of each problem of which a cell is good, "all" for every one.
        target: of simple regret, in units of f: adds the first recorded round at which it was reached.
        best: paired differences to the best algorithm of each problem, instead of the results of every algorithm.
        against: the same to this algorithm.
        ranks: average ranks over problems by the median, and which no method is significantly better than.
        profile: shares of seeds, and of (problem, target) pairs by round, that come within a precision of f*.
        absolute: with the targets of COCO's constrained suite in `profile`, from 100 to 1e-6 in units of f.
        means: a column of means beside each of medians, in the table of results.
        only_changed, factor: of two runs, only rows that changed, and by more than this factor.
    """

    run: RunLike
    other: RunLike | None = None
    _: KW_ONLY
    only: str | None = None
    metric: str | Iterable[str] | None = None
    all: bool = False
    by: str = "problem"
    horizon: int | str | None = None
    target: float | None = None
    best: bool = False
    against: str | None = None
    ranks: bool = False
    profile: bool = False
    absolute: bool = False
    means: bool = False
    only_changed: bool = False
    factor: float = 1.0

    def __post_init__(self) -> None:
        if len(self.kinds) > 1:
            raise Misuse(f"{' and '.join(self.kinds)} are different tables; ask for one of them")
        if self.means and self.kinds:
            raise Misuse(f"means are in the table of results; leave them out with {self.kinds[0]}")
        if self.all and (self.kinds or self.metric):
            other = self.kinds[0] if self.kinds else "metric"
            raise Misuse(f"all shows every quantity in the table of results; leave it out with {other}")
        if self.other is None and (self.only_changed or self.factor != 1.0):
            raise Misuse("only_changed and factor are about two runs; give a second run")
        if self.other is not None and (self.target is not None or self.by != "problem"):
            raise Misuse("target and by are about one run; leave them out, or give no second run")
        if (self.ranks or self.profile) and self.by != "problem":
            raise Misuse("ranks and profiles have one row per algorithm over all problems; leave by out")
        if (self.ranks or self.profile) and self.horizon == "all":
            raise Misuse("ranks and profiles are of one horizon: one play to two is no two problems; give one of them")
        if self.absolute and not self.profile:
            raise Misuse("absolute is about the targets of profiles; ask for profile too, or leave it out")
        if self.profile and (self.metric or self.target is not None):
            raise Misuse("profiles are of simple regret against targets of their own; leave metric and target out")

    @property
    def kinds(self) -> list[str]:
        """The tables that are asked for in place of the table of results."""
        kinds = {"best": self.best, "against": self.against, "ranks": self.ranks, "profile": self.profile}
        return [
            name
            for name, value in (kinds | {"two runs": self.other}).items()
            if value is not None and value is not False
        ]


@accept_fields(CompareOptions)
def compare(options: CompareOptions) -> Comparison:
    """Compare the algorithms of a run, or two runs.

    Args: see `CompareOptions`.

    Raises:
        Misuse: no run there, a word that names nothing, or options that do not go together.

    Example:
        >>> import cbobench
        >>> print(cbobench.compare("runs/quickstart", metric=["simple_regret", "V⁺"]))  # doctest: +SKIP
        >>> cbobench.compare("runs/quickstart", against="random").frame["p_holm"]  # doctest: +SKIP
        >>> assert not cbobench.compare("runs/before", "runs/after").worse  # doctest: +SKIP
    """
    metric = [*quantities()] if options.all else options.metric
    selection = Selection.of(options.run, options.only, options.by, metric, options.horizon, options.target)
    kind = next(iter(options.kinds), "results")
    if options.kinds and (neither := [q.symbol for q in selection.shown if q.better is None]):
        raise Misuse(f"of {', '.join(neither)} neither side is better: it is in the table of one run only")
    return TABLES[kind](selection, options)


def tabulate(selection: Selection, means: bool = False) -> Comparison:
    """Every algorithm's results on every problem of a selection."""
    frame = summarise_groups(selection.groups, selection.available)
    notes = collect_notes(selection, select_paired(selection.groups, None))
    is_unfair = bool(selection.setups) and selection.is_union
    table = tabulate_summary(selection, frame, SummaryLook(not is_unfair, means), notes)
    return Comparison(frame, table, unplayable=tuple(selection.part.record.unplayable))


def _compare_pairs(selection: Selection, options: CompareOptions) -> Comparison:
    """Differences by seed to the best algorithm of each problem, or to a named one."""
    reference = None if options.against is None else find_algorithm(selection.run, options.against)
    notes = _collect_fair(selection, select_paired(selection.groups, reference), "paired")
    _refuse_lacks(selection)
    shown = selection.groups, selection.shown, selection.title, options.against, options.by
    return _add_notes(Comparison(*tabulate_differences(selection.run, *shown)), selection, notes)


def _compare_ranks(selection: Selection, options: CompareOptions) -> Comparison:
    """Average ranks over problems."""
    notes = _collect_fair(selection, selection.groups, "ranks")
    _refuse_lacks(selection)
    ranks = Comparison(*rank_algorithms(selection.groups, selection.shown, selection.title))
    return _add_notes(ranks, selection, notes)


def _compare_profiles(selection: Selection, options: CompareOptions) -> Comparison:
    """Shares of seeds that come near the optimum."""
    notes = _collect_fair(selection, selection.groups, "profile")
    shown = selection.groups, selection.title, options.absolute
    return _add_notes(Comparison(*profile_algorithms(selection.run, *shown)), selection, notes)


def _compare_runs(selection: Selection, options: CompareOptions) -> Comparison:
    """What changed from one run to another."""
    assert options.other is not None  # it is what chose this table
    before, after = selection.run, open_run(options.other)
    changed = options.only_changed, options.factor, options.horizon
    changes = Comparison(*compare_runs(before, after, options.only, selection.shown, *changed))
    groups = [*find_groups(before, options.only), *find_groups(after, options.only)]
    return replace(changes, table=changes.table.with_note(describe_arithmetic(groups)))


TABLES: dict[str, Callable[[Selection, CompareOptions], Comparison]] = {
    "results": lambda selection, options: tabulate(selection, options.means),
    "best": _compare_pairs,
    "against": _compare_pairs,
    "ranks": _compare_ranks,
    "profile": _compare_profiles,
    "two runs": _compare_runs,
}
"""What makes each kind of table (`CompareOptions.kinds`)."""


def _collect_fair(selection: Selection, compared: list[Group], of: str) -> list[str]:
    """The notes of a table that tests methods against one another.

    Raises:
        Misuse: methods that were set up unlike, or that have no T in common.
    """
    notes = collect_notes(selection, compared, of)
    others = selection.every_group if selection.horizon is None else selection.groups
    apart = describe_apart(others, compared)
    if apart and of != "profile" and len({group.algorithm for group in compared}) < 2:
        raise Misuse(apart[0])
    if selection.setups and selection.is_union:
        remedy = "play all runs with the same, or list them without a test: --union"
        raise Misuse(f"{'; '.join(selection.setups)}; {remedy}")
    return notes


def _refuse_lacks(selection: Selection) -> None:
    """Raise `Misuse` where none of the quantities can have a value, so that there is nothing to pair or to rank."""
    if len(selection.lacks) == len(selection.arenas) * len(selection.shown):
        raise Misuse("; ".join(describe_lacks(selection.lacks, selection.groups, selection.shown)))


def _add_notes(comparison: Comparison, selection: Selection, notes: list[str]) -> Comparison:
    """A comparison with one more line below its table, and with what could not be played."""
    table = comparison.table.with_note(notes)
    return replace(comparison, table=table, unplayable=tuple(selection.part.record.unplayable))
