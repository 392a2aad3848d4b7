"""`cbobench compare`: the results of a run, who is better than whom, and what changed between two
runs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass, replace
from pathlib import Path

from cbobench.errors import Misuse, show
from cbobench.params import accept_fields
from cbobench.report.field import count_asked, find_own, open_beside
from cbobench.report.load import RunLike, list_values, open_run
from cbobench.report.quantities import quantities
from cbobench.report.selection import Selection
from cbobench.report.tables.changes import compare_runs
from cbobench.report.tables.duels import FLOORS, duel, shorten
from cbobench.report.tables.formats import Comparison
from cbobench.report.tables.paired import compare_pairs
from cbobench.report.tables.ranks import rank_algorithms
from cbobench.report.tables.summary import tabulate
from cbobench.suite.values import is_floor, is_whole
from cbobench.words import count_noun


@dataclass(frozen=True)
class CompareOptions:
    """What is compared, and how.

    Attributes:
        run: an open run, a path or URI, or what `cbobench.run` returned; or a list of them, read as
            one run.
        other: a second run, such as of another commit: what changed from `run` to it.
        only: a glob over "problem/algorithm", by title, name or label.
        metric: one or more, by name, symbol or label; by default r, R, V⁺ and N. Without an optimum
            best f is shown in place of r and R; where a box or a table has noise, the regret of
            what is recommended in place of r.
        all: every quantity in place of these, in the table of results.
        horizon: T; by default the latest of each problem of which a cell is good, "all" for every
            one.
        target: of simple regret, in units of f: adds the first recorded round at which it was
            reached.
        against: paired differences to this algorithm, instead of the results of every algorithm.
        floor: `against` one method, a row for each other one: on how many problems that method
            wins, ties and loses, where smaller differences are ties (in spreads of f where these
            are known); several are side by side, after the one that the suite states.
        rounds: the same after these rounds of longer plays; by default after the last.
        field: the run's method beside a group of the published field, such as "low" (see
            `report.field.GROUPS`), as with a floor; by several floors unless one is given.
            `against` names the method where the run has several; `all`: differences problem by
            problem in place of that.
        published: where the bundles of the field lie; by default in the clone that this is.
        ranks: average ranks over problems by the median, and which no method is significantly
            better than.
        only_changed, factor: of two runs, only rows that changed, and by more than this factor.
    """

    run: RunLike
    other: RunLike | None = None
    _: KW_ONLY
    only: str | None = None
    metric: str | Iterable[str] | None = None
    all: bool = False
    horizon: int | str | None = None
    target: float | None = None
    against: str | None = None
    floor: float | Iterable[float] | None = None
    rounds: int | Iterable[int] | None = None
    field: str | None = None
    published: str | Path | None = None
    ranks: bool = False
    only_changed: bool = False
    factor: float = 1.0

    def __post_init__(self) -> None:
        kind = " and ".join(self.kinds)
        over_problems = self.ranks or self.has_duels or self.field
        one_run = self.other is None
        for is_refused, why in (
            (len(self.kinds) > 1, f"{kind} are different tables; ask for one of them"),
            (
                self.all and self.field is None and (kind or self.metric),
                "all shows every quantity in the table of results; leave it out with "
                f"{kind or 'metric'}",
            ),
            (
                self.has_duels and self.against is None and self.field is None,
                "a floor, and rounds, are of one method against each other one; name it with "
                "against",
            ),
            (
                self.floor is not None and not all(map(is_floor, list_values(self.floor))),
                f"floor is {show(self.floor)}; allowed: numbers from 0, differences that count as "
                "none, such as 1e-4",
            ),
            (
                self.rounds is not None
                and not all(is_whole(t) and t > 0 for t in list_values(self.rounds)),
                f"rounds are {show(self.rounds)}; allowed: whole numbers from 1",
            ),
            (
                self.all and self.has_duels,
                "all shows problem by problem, without floors and rounds; leave one of them out",
            ),
            (
                one_run and (self.only_changed or self.factor != 1.0),
                "only_changed and factor are about two runs; give a second run",
            ),
            (
                not one_run and self.target is not None,
                "target is about one run; leave it out, or give no second run",
            ),
            (
                over_problems and self.horizon == "all",
                "ranks and floors are of one horizon: one play to two is no two problems; give one "
                "of them",
            ),
        ):
            if is_refused:
                raise Misuse(why)

    def select(self, run: RunLike, metric: str | Iterable[str] | None) -> Selection:
        """What is compared of a run.

        Raises:
            Misuse: something is compared of which neither side is better.
        """
        selection = Selection.of(
            run, self.only, metric=metric, horizon=self.horizon, target=self.target
        )
        if self.kinds and (neither := [q.symbol for q in selection.shown if q.better is None]):
            raise Misuse(
                f"of {', '.join(neither)} neither side is better: it is in the table of one run "
                "only"
            )
        return selection

    def duel(self, selection: Selection, name: str, floors: Iterable[float] = ()) -> Comparison:
        """A method against each other one; by some floors unless others are given."""
        if self.floor is not None:
            floors = list_values(self.floor)
        return duel(selection, name, floors, [*list_values(self.rounds)] or [None])

    @property
    def has_duels(self) -> bool:
        """Whether a method is compared over all problems with each other one."""
        return self.floor is not None or self.rounds is not None

    @property
    def kinds(self) -> list[str]:
        """The tables that are asked for in place of the table of results."""
        kinds = ("against" if self.field is None else "field", "ranks")
        asked = [kind for kind in kinds if getattr(self, kind) not in (None, False)]
        if self.other is None:
            return asked
        return [*asked, "two runs"]


def compare_beside(options: CompareOptions, group: str) -> Comparison:
    """A run's method beside a group of the field: over all problems, or problem by problem."""
    name = find_own(options.run, options.against)
    beside = open_beside(options.run, group, options.published)
    selection = options.select(beside, options.metric)
    if options.all:
        compared = compare_pairs(replace(selection, metric=selection.shown[0].name), name)
    else:
        compared = shorten(options.duel(selection, name, FLOORS))
    notes = [count_asked(options.run, group)]
    _, differing = beside.shared
    if differing:
        notes.append(f"{count_noun(differing, 'cell')} of both runs differ: yours count")
    return replace(compared, table=compared.table.with_note([*filter(None, notes)]))


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
    """  # noqa: E501
    if options.field is not None:
        return compare_beside(options, options.field)
    metric = [*quantities()] if options.all else options.metric
    selection = options.select(options.run, metric)
    name = options.against
    if name is not None and options.has_duels:
        return options.duel(selection, name)
    if name is not None:
        return compare_pairs(selection, name)
    if options.ranks:
        return rank_algorithms(selection)
    if options.other is None:
        return tabulate(selection)
    return compare_runs(selection, open_run(options.other), options.only_changed, options.factor)
