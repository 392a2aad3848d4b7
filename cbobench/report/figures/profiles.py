"""Performance and data profiles of simple regret: the shares of a run's cells, and the panels.

A curve counts every cell that was asked for: one that failed, or never found a feasible action,
solves nothing. It needs no other algorithm: Dolan & Moré (2002) take ratios to the best of the
algorithms at hand, and Moré & Wild (2009) targets from it, so that adding an algorithm moves every
curve; here references and targets belong to the problem, as in COCO (Hansen et al. 2021).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd

from cbobench.errors import Misuse
from cbobench.metrics import METRICS, Array
from cbobench.report.figures.curves import Looks, marker_offset
from cbobench.report.figures.style import legend_label
from cbobench.report.groups import Group, group_by
from cbobench.report.load import Run
from cbobench.report.quantities import LACKS, SIMPLE_REGRET, find_first_rounds, find_lack
from cbobench.report.selection import Selection

PRECISIONS = (1.0, 0.1, 0.01, 0.001)
"""Targets of simple regret in units of |f*| (of 1 where f* is 0), stored with every cell."""
RELATIVE_TARGETS = f"{', '.join(f'{p:g}' for p in PRECISIONS)} times |f*|"
COCO_TARGETS = tuple(10 ** (k / 5) for k in range(10, -31, -1))
"""Targets of simple regret in units of f, of COCO's data profiles of its constrained suite: from
100 to 1e-6.
"""
RATIOS = (
    *(unit * 10 ** (k / 20) for unit in (1e-4, 1e-3, 1e-2, 1e-1, 1.0) for k in range(20)),
    10.0,
)
"""Where the curve of a performance profile has points; `PRECISIONS` are among them."""
POINTS = 200
"""How many points the curve of a data profile has at most."""


def performance(
    groups: Sequence[Group], ratios: Sequence[float], absolute: bool = False
) -> dict[str, Array]:
    """Shares of the cells of each algorithm (by title) whose final simple regret is at most each
    ratio times |f*|.

    Args:
        absolute: times 1 instead.
    """
    result = {}
    for algorithm, own in group_by(groups, "algorithm").items():
        regret = np.concatenate([group.numbers(SIMPLE_REGRET) for group in own])
        scale = np.concatenate([_find_scale(group, absolute) for group in own])
        # A cell without a regret, which is NaN, solves nothing, and still counts.
        is_within = regret <= np.outer(ratios, scale)
        result[algorithm] = is_within.sum(axis=1) / (len(regret) + _count_absent(own))
    return result


def share_solved(
    run: Run, groups: Sequence[Group], shares: Iterable[float], absolute: bool = False
) -> dict[str, Array]:
    """Shares of the (cell, target) pairs of each algorithm (by title) that are solved by each share
    of the horizon.

    A pair is solved at the first recorded round with such a simple regret.

    Args:
        absolute: targets are `COCO_TARGETS` instead of `PRECISIONS` times |f*|.
    """
    at = np.array([*shares])
    targets = np.array(COCO_TARGETS if absolute else PRECISIONS)
    goals = {
        cell: targets * scale
        for group in groups
        for cell, scale in zip(group.good["cell"], _find_scale(group, absolute), strict=True)
    }
    first = find_first_rounds(run, goals)
    result = {}
    for algorithm, algorithm_groups in group_by(groups, "algorithm").items():
        when = [
            first[cell] / group.horizon for group in algorithm_groups for cell in group.good["cell"]
        ]
        never = [np.full(len(targets), np.nan)] * _count_absent(algorithm_groups)
        rounds = np.ravel([*when, *never])
        solved = np.sort(rounds[~np.isnan(rounds)])
        result[algorithm] = np.searchsorted(solved, at, side="right") / len(rounds)
    return result


def has_coco_targets(run: Run, groups: Sequence[Group]) -> bool:
    """Whether profiles of some groups are against COCO's targets, in units of f: where all problems
    are COCO's.

    Raises:
        Misuse: some are COCO's and some are not; targets are the same for a whole table.
    """
    variants = run.record.variants("problems")
    names = {variants[group.problem].name for group in groups}
    if "coco" in names and len(names) > 1:
        raise Misuse(
            "profiles of COCO's problems have targets of their own; choose these or the others "
            "with only, such as 'coco*'"
        )
    return names == {"coco"}


def check_regret_known(groups: Sequence[Group]) -> None:
    """Make sure that there are good cells, and that simple regret is defined on some problem, else
    it is a `Misuse`.
    """
    if not any(group.n for group in groups):
        raise Misuse("no cell was played to its end, so there is no profile; see cbobench status")
    reasons = []
    for label, players in group_by(groups, "problem_label").items():
        lack = find_lack(players, METRICS[SIMPLE_REGRET])
        if lack is None:
            return
        reasons.append(LACKS[lack][0].format(label))
    raise Misuse(f"profiles need simple regret, which is not defined: {', '.join(reasons)}")


def _count_absent(groups: Sequence[Group]) -> int:
    """How many cells were asked for and are not good."""
    return sum(group.expected - group.n for group in groups)


def _find_scale(group: Group, absolute: bool) -> Array:
    """|f*| of each cell, and 1 where it is 0, or everywhere."""
    size = np.abs(group.numbers("f_star"))
    return np.where((size > 0) & (not absolute), size, 1.0)


@dataclass(frozen=True)
class Profile:
    """One curve per algorithm over the cells of each problem's horizon.

    Of several horizons it is the one that figures show of each problem (`Run.horizon_of`).

    Args:
        kind: "performance" (Dolan & Moré 2002), shares within a precision of f* in the end, or
            "data" (COCO: Hansen et al. 2021), shares of (cell, target) pairs solved by a round.
        problems, algorithms: titles, all by default.
    """

    kind: Literal["performance", "data"]
    problems: Sequence[str] | None = None
    algorithms: Sequence[str] | None = None
    problem: ClassVar[str] = "all"
    average: ClassVar[bool] = False
    centres: ClassVar[dict[str, str]] = {"share": SIMPLE_REGRET}
    sides: ClassVar[tuple[None, None]] = (None, None)
    scale: ClassVar[tuple[str, ...]] = ("share",)

    @property
    def title(self) -> str:
        """Above the panel."""
        return f"{self.kind.capitalize()} profile"

    @property
    def quantity(self) -> str:
        """What the CSV calls it."""
        return f"{self.kind}_profile"

    @property
    def about(self) -> str:
        """What is shown, for captions."""
        if self.kind == "performance":
            return (
                "Share of the cells asked for whose final simple regret is at most x times |f*|, "
                "or at most x on COCO's problems"
            )
        return (
            f"Share of (cell, target) pairs solved by round t, targets {RELATIVE_TARGETS}, COCO's "
            "from 100 to 1e-6 in units of f on its problems; solved at the first recorded round "
            "with such a simple regret"
        )

    def groups(self, run: Run) -> list[Group]:
        """The groups that count."""
        return [
            group
            for group in Selection(run).groups
            if (self.problems is None or group.problem in self.problems)
            and (self.algorithms is None or group.algorithm in self.algorithms)
        ]

    def pairs(self, run: Run) -> list[tuple[str, str]]:
        """Titles of the problems and algorithms to show."""
        return [(group.problem, group.algorithm) for group in self.groups(run)]

    def is_absolute(self, run: Run, groups: Sequence[Group]) -> bool:
        """Whether targets are COCO's, in units of f."""
        return has_coco_targets(run, groups)

    def data(self, run: Run) -> pd.DataFrame:
        """One row per algorithm and point: `at` (a ratio, or a share of the horizon, which is round
        `t`), `share`.

        Where problems have different horizons, `t` is NaN.
        """
        # Refused first: a profile of nothing would be 0 everywhere.
        groups = self.groups(run)
        check_regret_known(groups)
        absolute = self.is_absolute(run, groups)
        if self.kind == "performance":
            at = np.array(COCO_TARGETS[::-1] if absolute else RATIOS)
            t = np.full(len(at), np.nan)
            shares = performance(groups, at.tolist(), absolute)
        else:
            horizons = {group.horizon for group in groups}
            last = max(horizons)
            at = np.unique(np.geomspace(1, last, POINTS).round()) / last
            t = (at * (last if len(horizons) == 1 else np.nan)).round(9)
            shares = share_solved(run, groups, at, absolute)
        parts = []
        for algorithm, own in group_by(groups, "algorithm").items():
            expected = sum(group.expected for group in own)
            part = {
                "algorithm": algorithm,
                "label": own[0].algorithm_label,
                "n": expected - _count_absent(own),
                "expected": expected,
                "stale": sum(group.stale for group in own),
                "unit": "f" if absolute else "|f*|",
                "at": at,
                "t": t,
                "share": shares[algorithm],
            }
            parts.append(pd.DataFrame(part))
        return pd.concat(parts, ignore_index=True)

    def draw(self, axis: Any, frame: pd.DataFrame, looks: Looks) -> None:
        """Steps with markers that do not lie upon each other."""
        # Markers are at equal distances on the logarithmic axis, each curve's at its own places.
        curves = list(frame.groupby("algorithm", sort=False))
        in_shares = bool(frame["t"].isna().any())
        for position, (title, group) in enumerate(curves):
            x = group["at" if in_shares else "t"].to_numpy()
            far = np.log(x / x[0]) / np.log(x[-1] / x[0]) if len(x) > 1 else np.zeros(1)
            marks = np.searchsorted(far, marker_offset(position, len(curves))).clip(max=len(x) - 1)
            axis.plot(
                x,
                group["share"],
                label=legend_label(group.iloc[0]),
                markevery=sorted({*marks.tolist()}),
                drawstyle="steps-post",
                **looks[str(title)].line(),
            )
        # A share of 1 is seen below the edge, and 0 is at it.
        axis.set(xscale="log", ylim=(0, 1.03))
        if self.kind == "performance":
            unit = frame["unit"].iloc[0]
            size = "x" if unit == "f" else f"x {unit}"
            across = f"Precision x, in units of {unit}"
            upwards = f"Share of cells with r ≤ {size}"
        else:
            across = "Round t"
            upwards = "Share of targets reached"
            if in_shares:
                across += ", in units of T"
            else:
                axis.set_xlim(left=1)
        axis.set(xlabel=across, ylabel=upwards)

    def describe_seeds(self, seeds: str, counts: Collection[int]) -> str:
        """What is drawn of so many seeds, for captions."""
        sentence = f"{seeds[0].upper()}{seeds[1:]} of each problem"
        return f"{sentence}; a cell that failed, or never played a feasible action, solves nothing."
