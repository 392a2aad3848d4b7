"""`cbobench compare`: the results of a run, who is better than whom, and what changed between two runs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass, replace

import pandas as pd

from cbobench.errors import Misuse, show
from cbobench.metrics import Metric
from cbobench.options import accept_fields
from cbobench.report.changes import compare_runs
from cbobench.report.formats import FORMATS, TextTable, render, render_html, render_records
from cbobench.report.groups import (
    Group,
    count_crossed_seeds,
    describe_apart,
    describe_binding,
    describe_failures,
    describe_horizons,
    describe_variants,
    find_arithmetic,
    find_groups,
    group_by_arena,
    select_horizon,
)
from cbobench.report.load import Run, RunLike, open_run
from cbobench.report.paired import find_algorithm, select_paired, tabulate_differences
from cbobench.report.profiles import profile_algorithms
from cbobench.report.quantities import describe_lacks, find_lack, quantities, select_headline, select_metrics
from cbobench.report.ranks import rank_algorithms
from cbobench.report.summary import SummaryLook, select_groups, summarise_groups, tabulate_summary
from cbobench.results.provenance import mixed_note
from cbobench.results.union import Union, describe_setups
from cbobench.words import count_noun


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
    opened = open_run(options.run)
    shown = _select_shown(opened, options)
    if options.kinds and (neither := [q.symbol for q in shown if q.better is None]):
        raise Misuse(f"of {', '.join(neither)} neither side is better: it is in the table of one run only")
    if options.other is not None:
        after = open_run(options.other)
        changed = options.only_changed, options.factor, options.horizon
        changes = Comparison(*compare_runs(opened, after, options.only, shown, *changed))
        return _add_facts(
            changes, _describe_arithmetic([*find_groups(opened, options.only), *find_groups(after, options.only)])
        )
    every_group, available = select_groups(opened, options.only, options.by, options.target)
    if options.target is not None and available[1] not in shown:
        shown = [*shown[:1], available[1], *shown[1:]]
    selection = opened if options.only is None else opened.only(options.only)
    groups = select_horizon(selection, every_group, options.horizon)
    reference = None if options.against is None else find_algorithm(opened, options.against)
    compared = groups if options.ranks or options.profile else select_paired(groups, reference)
    facts = describe_apart(every_group if options.horizon is None else groups, compared)
    if facts and not options.profile and options.kinds and len({group.algorithm for group in compared}) < 2:
        raise Misuse(facts[0])
    if options.horizon is None and len(groups) < len(every_group):
        facts.append(describe_horizons(selection, dict.fromkeys(group.problem for group in groups)))
    title = _make_title(opened, groups)
    arenas = [[group.algorithm for group in part if len(group.good)] for part in group_by_arena(groups)]
    setups = describe_setups(opened.record, arenas)
    if setups and isinstance(opened.folder, Union) and options.kinds:
        raise Misuse(f"{'; '.join(setups)}; play all runs with the same, or list them without a test: --union")
    if options.kinds and not options.profile:
        _refuse_lacks(groups, shown)
    unplayable = tuple(selection.record.unplayable)
    facts += [
        *setups,
        *(() if options.profile else describe_lacks(groups, shown)),
        *(() if options.kinds or options.by == "binds" else describe_binding(groups)),
        *describe_failures(groups),
        *_describe_shared(opened),
        *describe_variants(opened, groups),
        *_describe_arithmetic(groups),
        *(f"not played: {line}" for line in unplayable),
    ]
    if options.best or options.against is not None:
        comparison = Comparison(*tabulate_differences(opened, groups, shown, title, options.against, options.by))
    elif options.ranks:
        comparison = Comparison(*rank_algorithms(groups, shown, title))
    elif options.profile:
        comparison = Comparison(*profile_algorithms(opened, groups, title, options.absolute))
    else:
        frame = summarise_groups(groups, available)
        look = SummaryLook(options.by, not (setups and isinstance(opened.folder, Union)), options.means)
        return Comparison(frame, tabulate_summary(title, groups, frame, shown, look, facts), unplayable=unplayable)
    return replace(_add_facts(comparison, facts), unplayable=unplayable)


def _select_shown(run: Run, options: CompareOptions) -> list[Metric]:
    """The quantities of a table: those that are asked for, else what a table of these problems shows."""
    if options.all:
        return [*quantities().values()]
    if options.metric:
        return select_metrics(options.metric, options.target)
    return select_headline(run, find_groups(run, options.only))


def _refuse_lacks(groups: list[Group], asked: list[Metric]) -> None:
    """Raise `Misuse` where none of the quantities can have a value, so that there is nothing to pair or to rank."""
    if all(find_lack(arena_groups, quantity) for arena_groups in group_by_arena(groups) for quantity in asked):
        raise Misuse("; ".join(describe_lacks(groups, asked)))


def _add_facts(comparison: Comparison, facts: Iterable[str]) -> Comparison:
    """A comparison with one more line below its table."""
    note = "\n".join(filter(None, [comparison.table.note, "; ".join(facts)]))
    return replace(comparison, table=replace(comparison.table, note=note))


def _describe_arithmetic(groups: Iterable[Group]) -> list[str]:
    """A line where cells were played in several kinds of arithmetic, and in how many seeds these are compared."""
    groups = list(groups)
    if not (mixed := mixed_note(find_arithmetic(groups))):
        return []
    crossed, compared = count_crossed_seeds(groups)
    return [f"{mixed}; {crossed:,} of {count_noun(compared, 'compared seed')} cross kinds" if crossed else mixed]


def _describe_shared(run: Run) -> list[str]:
    """A line where several of the runs that are read as one hold the same cells."""
    if not isinstance(run.folder, Union):
        return []
    shared, apart = run.folder.count_shared()
    differing = f", though the results of {apart:,} differ" if apart else ""
    return [f"{count_noun(shared, 'cell')} of several runs: the first named counts{differing}"] if shared else []


def _make_title(run: Run, groups: list[Group]) -> str:
    horizons = {group.horizon for group in groups}
    return run.record.suite + (f", T = {horizons.pop():,}" if len(horizons) == 1 else "")
