"""What claims are judged by: plays, parts of a claim, and the five verdicts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

import numpy as np
import pandas as pd

from cbobench.errors import CbobenchError
from cbobench.play.block import recorded_rounds
from cbobench.report.load import Run
from cbobench.results.manifest import Variant, VariantKind
from cbobench.stats.paired_tests import SIGNIFICANT, holm

Verdict = Literal[
    "reproduced",
    "stronger than claimed",
    "reproduced in part",
    "contradicted",
    "cannot tell",
    "not in these runs",
]
HOLDS = ("reproduced", "stronger than claimed")
MOST_SEEDS = 100_000  # a larger number of seeds that would tell is not worth naming


@dataclass(frozen=True)
class Play:
    """One algorithm on one problem in a run: its good cells (`Run.good`).

    Attributes:
        seeds: drawn with replacement for a simulated replication; None for the cells as they are.
        paper: in a simulated replication, the same play with the seeds that stand for the paper's
            trials.
    """

    run: Run
    problem: Variant
    algorithm: Variant
    seeds: tuple[int, ...] | None = None
    paper: Play | None = None

    @property
    def label(self) -> str:
        """The algorithm's label in its run."""
        return _labels(self.run, "algorithms")[self.algorithm.title]

    @property
    def place(self) -> str:
        """The problem's label in its run."""
        return _labels(self.run, "problems")[self.problem.title]

    @property
    def horizon(self) -> int:
        """T of its cells."""
        return self.run.horizon_of(self.problem.title)

    @property
    def expected(self) -> int:
        """Seeds that were asked for."""
        return _expected(self.run, self.problem.title).get(self.algorithm.title, 0)

    def final(self, column: str) -> pd.Series:
        """A column of the cells by seed, such as a metric at T; seeds where it is undefined are
        left out.
        """
        return self._draw(_final(self.run, column, self.problem.title, self.algorithm.title))

    def at(self, metric: str, t: float) -> tuple[int, pd.Series]:
        """The last recorded round up to t (else the first), and the metric there by seed.

        Raises:
            CbobenchError: the run is a bundle that does not keep that round.
        """
        curve = _curve(self.run, metric, self.problem.title, self.algorithm.title)
        if curve.empty:
            return round(t), pd.Series(dtype=np.float64)
        recorded = recorded_rounds(self.horizon, self.run.record.keep)
        last = int(recorded[max(0, int(np.searchsorted(recorded, t, side="right")) - 1)])
        if last not in curve.index:
            raise CbobenchError(
                f"{self.run} does not keep round {last}, at which a claim looks; give the "
                f"run folder, or export it again with --rounds {last} and the others"
            )
        return last, self._draw(curve.iloc[int(np.searchsorted(curve.index, last))].dropna())

    def average(self, metric: str, t: float) -> pd.Series:
        """The metric over the rounds up to the last recorded one of these, by seed."""
        rounds, values = self.at(metric, t)
        return values / rounds

    def _draw(self, values: pd.Series) -> pd.Series:
        if self.seeds is None:
            return values
        drawn = values.reindex(self.seeds)
        drawn.index = pd.RangeIndex(len(drawn))
        return drawn.dropna()


# A simulated replication asks for these once per part: they are most of its time.
@lru_cache(maxsize=1024)
def _labels(run: Run, kind: VariantKind) -> dict[str, str]:
    return run.record.labels(kind)


@lru_cache(maxsize=1024)
def _expected(run: Run, problem: str) -> dict[str, int]:
    return run.expected_of(problem)


@lru_cache(maxsize=1024)
def _final(run: Run, column: str, problem: str, algorithm: str) -> pd.Series:
    good = run.good(problem, algorithm)
    return (
        pd.Series(good[column].to_numpy(dtype=np.float64), index=good["seed"].to_numpy())
        .dropna()
        .sort_index()
    )


@lru_cache(maxsize=64)
def _curve(run: Run, metric: str, problem: str, algorithm: str) -> pd.DataFrame:
    t, values = run.series(metric, problem, algorithm)
    seeds = run.good(problem, algorithm).sort_values("cell")["seed"]
    return pd.DataFrame(values, t, seeds).sort_index(axis=1)


@dataclass(frozen=True)
class Part:
    """One measured part of a claim.

    Attributes:
        rule: the name of its rule (`cbobench.papers.rules.RULES`).
        subject: the quantity, with the methods' labels.
        paper: what the claim says of it.
        verdict: "reproduced", "stronger than claimed", "contradicted" or "cannot tell".
        value, low, high: ours with its 95 % interval; NaN where there is none.
        n, expected: complete seeds, and how many were asked for.
        p: how likely values at least so far off would be if the claim were true; NaN where the
            rule has none. `judge` adjusts it.
        needed: about how many seeds would tell; infinite if none would, 0 if the seeds do tell.
    """

    rule: str
    subject: str
    paper: str
    verdict: Verdict
    value: float
    low: float
    high: float
    n: int
    expected: int
    p: float = math.nan
    needed: float = 0.0

    @classmethod
    def open(
        cls, rule: str, subject: str, paper: str, n: int, expected: int, value: float = math.nan
    ) -> Part:
        """A part that cannot be told, because it has no interval."""
        return cls(
            rule=rule,
            subject=subject,
            paper=paper,
            verdict="cannot tell",
            value=value,
            low=math.nan,
            high=math.nan,
            n=n,
            expected=expected,
            needed=math.inf,
        )

    def count_needed(self, *bounds: float) -> Part:
        """Return it with about how many seeds would tell its value from some bounds, if it cannot
        be told.
        """
        if self.verdict != "cannot tell":
            return self
        needed = count_seeds_needed(self.n, self.value, self.low, self.high, *bounds)
        return replace(self, needed=needed)

    @property
    def holds(self) -> bool:
        """Whether it is as claimed, or stronger."""
        return self.verdict in HOLDS


def judge(parts: Iterable[Part]) -> list[Part]:
    """Adjust p by Holm over all parts: a contradiction that is no longer significant becomes
    "cannot tell".

    All parts together make a claim, so that each is held to 5 %; but any one contradicts it, which
    needs adjustment.
    """
    part_list = list(parts)
    adjusted = holm([part.p for part in part_list])
    return [
        replace(part, p=float(p), verdict="cannot tell")
        if part.verdict == "contradicted" and p >= SIGNIFICANT
        else replace(part, p=float(p))
        for part, p in zip(part_list, adjusted, strict=True)
    ]


def verdict_of(parts: Sequence[Part]) -> Verdict:
    """The verdict of a claim from those of its parts.

    All hold: reproduced, or stronger than claimed if a part is. Some hold: reproduced in part. None
    holds: contradicted if a part is, else cannot tell.
    """
    verdicts = {part.verdict for part in parts}
    if verdicts and verdicts <= {*HOLDS}:
        return "stronger than claimed" if "stronger than claimed" in verdicts else "reproduced"
    if verdicts & {*HOLDS}:
        return "reproduced in part"
    return "contradicted" if "contradicted" in verdicts else "cannot tell"


def count_seeds_needed(n: int, value: float, low: float, high: float, *bounds: float) -> float:
    """About how many seeds would tell a value from the nearest bound four times in five.

    The half-width of a 95 % interval shrinks like 1/√n; the distance must be 2.8 standard errors
    instead of 1.96.
    """
    distance = min(abs(value - bound) for bound in bounds)
    half = (high - low) / 2
    if not (math.isfinite(half) and math.isfinite(distance)) or n < 2:
        return math.inf
    needed = math.inf if distance == 0 else n * (half / distance * 2.8 / 1.96) ** 2
    return math.inf if needed > MOST_SEEDS else float(max(n + 1, math.ceil(needed)))
