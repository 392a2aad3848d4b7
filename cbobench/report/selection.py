"""What is shown of a run: its groups and quantities, and what is lacking, computed once for every
table.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from cbobench.metrics import Metric
from cbobench.report.groups import (
    Arena,
    Group,
    find_groups,
    group_by,
    select_horizon,
)
from cbobench.report.load import Run, RunLike, open_run
from cbobench.report.quantities import (
    NO_UNIT,
    OF_REWARD,
    VIOLATION,
    add_rounds_to_target,
    find_lack,
    is_in_spreads,
    lacks_unit,
    name_metrics,
    quantities,
    rounds_to_target,
    select_headline,
    select_metrics,
    take_round,
)
from cbobench.report.setups import describe_setups
from cbobench.words import join_words, list_names


@dataclass(frozen=True)
class Selection:
    """A part of a run as a reader chose it.

    Attributes:
        run: the whole run.
        only: a glob over "problem/algorithm".
        metric: what readers call the quantities to show; the headline by default.
        horizon: T, "all", or None for the latest of each problem.
        target: of simple regret, whose rounds are one quantity more.
        after: the round that is shown of longer plays; None for the last.
    """

    run: Run
    only: str | None = None
    metric: str | Iterable[str] | None = None
    horizon: int | str | None = None
    target: float | None = None
    after: int | None = None

    @classmethod
    def of(cls, run: RunLike, only: str | None = None, **choices: Any) -> Selection:
        """Open a run and select of it.

        Raises:
            Misuse: no run there. Wrong words are refused where they are first needed.
        """
        return cls(open_run(run), only, **choices)

    @cached_property
    def part(self) -> Run:
        """The run of the selected pairs alone."""
        if self.only is None:
            return self.run
        return self.run.only(self.only)

    @cached_property
    def every_group(self) -> list[Group]:
        """The groups of all horizons."""
        groups = find_groups(self.run, self.only)
        if self.target is None:
            return groups
        return add_rounds_to_target(self.run, groups, self.target)

    @property
    def every_shown(self) -> list[Group]:
        """The groups of the horizons that a reader asks for; of all where none is named."""
        if self.horizon is None:
            return self.every_group
        return self.groups

    @cached_property
    def groups(self) -> list[Group]:
        """The groups of the horizon that is shown."""
        if self.after is None:
            return self.ended
        return take_round(self.run, self.ended, self.after)

    @cached_property
    def ended(self) -> list[Group]:
        """The same groups in the end."""
        return select_horizon(self.part, self.every_group, self.horizon)

    @cached_property
    def arenas(self) -> dict[Arena, list[Group]]:
        """The groups that can be compared with one another, by problem and T."""
        return group_by(self.groups, "arena")

    @cached_property
    def metrics(self) -> dict[str, Metric]:
        """The metrics in the words of the problems' user (see `quantities.name_metrics`)."""
        variants = self.run.record.variants("problems")
        titles = {group.problem for group in find_groups(self.run, self.only)}
        return name_metrics(variants[title] for title in titles)

    @cached_property
    def available(self) -> list[Metric]:
        """Every quantity that the groups hold."""
        return self._add_target([*quantities(self.metrics).values()])

    @cached_property
    def shown(self) -> list[Metric]:
        """The quantities of a table: those that are asked for, else the headline of these
        problems.
        """
        if self.metric:
            table_quantities = select_metrics(self.metric, self.target, self.metrics)
        else:
            headline = select_headline(self.run, find_groups(self.run, self.only))
            table_quantities = [self.metrics[quantity.name] for quantity in headline]
        return self._add_target(table_quantities)

    def _add_target(self, by_default: list[Metric]) -> list[Metric]:
        """Some quantities, the rounds to the target after the first of them where there is one."""
        if self.target is None:
            return by_default
        rounds = rounds_to_target(self.target)
        is_named = rounds in by_default
        if is_named:
            return by_default
        return [*by_default[:1], rounds, *by_default[1:]]

    @cached_property
    def lacks(self) -> dict[tuple[Arena, str], str]:
        """By arena and name of a quantity, why it has no value there (see
        `quantities.find_lack`).
        """
        variants = self.run.record.variants("problems")
        lacks = {}
        for quantity in self.shown:
            # What a reader asks for is shown, whatever it adds up.
            is_summed = quantity.name == VIOLATION and not self.metric
            for arena, groups in group_by(self.ended, "arena").items():
                lack = find_lack(groups, quantity)
                if is_summed and lacks_unit(variants[arena[0]]):
                    lack = NO_UNIT
                if lack:
                    lacks[arena, quantity.name] = lack
        return lacks

    @property
    def columns(self) -> list[Metric]:
        """What a table has a column for: what is shown, but for what no problem has a unit for."""
        return [
            quantity
            for quantity in self.shown
            if {self.lacks.get((arena, quantity.name)) for arena in self.arenas} != {NO_UNIT}
        ]

    @cached_property
    def setups(self) -> list[str]:
        """A line for each way in which methods that are compared were set up unlike."""
        arenas = [
            [group.algorithm for group in groups if group.n] for groups in self.arenas.values()
        ]
        return describe_setups(self.run.record, arenas)

    @property
    def unplayable(self) -> tuple[str, ...]:
        """What the suite leaves out because it cannot be played, and why, a line each."""
        return tuple(self.part.record.unplayable)

    @property
    def units(self) -> str:
        """Which of the quantities that are shown are in spreads of f, not in f's own units, for
        headings; "" if none is.
        """
        variants = self.run.record.variants("problems")
        problems = {g.problem: g.problem_label for g in self.groups}
        scaled = [label for t, label in problems.items() if is_in_spreads(variants[t])]
        symbols = [q.symbol for q in self.shown if q.name in OF_REWARD] if scaled else []
        suffix = "" if len(scaled) == len(problems) else f" on {list_names(scaled)}"
        if symbols:
            return f"; {join_words(symbols)} in spreads of f{suffix}"
        return ""

    @property
    def is_union(self) -> bool:
        """Whether several runs are read as one."""
        return len(self.run.folders) > 1

    @property
    def title(self) -> str:
        """The suite, and T where it is one."""
        horizons = {group.horizon for group in self.groups}
        return self.run.record.suite + (f", T = {horizons.pop():,}" if len(horizons) == 1 else "")
