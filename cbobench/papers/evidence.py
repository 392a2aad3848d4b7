"""What claims are judged by: plays, parts of a claim, and the five verdicts."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

import numpy as np
import pandas as pd

from cbobench.errors import CbobenchError
from cbobench.play.block import recorded_rounds
from cbobench.report.load import Run
from cbobench.results.manifest import Variant
from cbobench.stats.paired_tests import SIGNIFICANT, holm

Verdict = Literal[
    "reproduced",
    "stronger than claimed",
    "reproduced in part",
    "contradicted",
    "cannot tell",
    "not in these runs",
]
HOLDS = {"reproduced", "stronger than claimed"}
MOST_SEEDS = 100_000  # a larger number of seeds that would tell is not worth naming


@dataclass(frozen=True)
class Play:
    """One algorithm on one problem in a run: its good cells (`Run.good`).

    Attributes:
        label: the algorithm's label in its run.
        place: the problem's label in its run.
        horizon: T of its cells.
        expected: seeds that were asked for.
        seeds: drawn with replacement for a simulated replication; None for the cells as they are.
        paper: in a simulated replication, the same play with the seeds that stand for the paper's
            trials.
    """

    run: Run
    problem: Variant
    algorithm: Variant
    label: str
    place: str
    horizon: int
    expected: int
    seeds: list[int] | None = None
    paper: Play | None = None

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
            return max(1, round(t)), pd.Series(dtype=np.float64)
        recorded = recorded_rounds(self.horizon, self.run.record.keep)
        last = recorded[recorded <= t].max(initial=recorded[0])
        if last not in curve.index:
            raise CbobenchError(
                f"{self.run} does not keep round {last}, at which a claim looks; give the "
                f"run folder, or export it again with --rounds {last} and the others"
            )
        return last, self._draw(curve.T[last].dropna())

    def average(self, metric: str, t: float | None) -> pd.Series:
        """The metric over the rounds up to the last recorded one of these, by seed; at T without
        a round.
        """
        if t is None:
            return self.final(metric)
        rounds, values = self.at(metric, t)
        return values / rounds

    def _draw(self, values: pd.Series) -> pd.Series:
        if self.seeds is None:
            return values
        return values.reindex(self.seeds).reset_index(drop=True).dropna()


# A simulated replication asks for these once per part: they are most of its time.
@lru_cache(maxsize=1024)
def _final(run: Run, column: str, problem: str, algorithm: str) -> pd.Series:
    values = run.good(problem, algorithm).set_index("seed")[column]
    return values.astype(np.float64).dropna().sort_index()


@lru_cache(maxsize=64)
def _curve(run: Run, metric: str, problem: str, algorithm: str) -> pd.DataFrame:
    t, values = run.series(metric, problem, algorithm)
    seeds = run.good(problem, algorithm).sort_values("cell")["seed"]
    return pd.DataFrame(values, t, seeds).sort_index(axis=1)


@dataclass(frozen=True, kw_only=True)
class Part:
    """One measured part of a claim; what a rule has not decided cannot be told.

    Attributes:
        rule: the name of its rule, as docs/reproduction.md has it.
        what: the quantity, with the methods' labels.
        paper: what the claim says of it.
        verdict: "reproduced", "stronger than claimed", "contradicted" or "cannot tell".
        value, low, high: ours with its 95 % interval; NaN where there is none.
        n, expected: complete seeds, and how many were asked for.
        p: how likely values at least so far off would be if the claim were true; NaN where the
            rule has none. `judge` adjusts it.
        needed: about how many seeds would tell; infinite if none would, 0 if the seeds do tell.
    """

    rule: str
    what: str
    paper: str
    verdict: Verdict = "cannot tell"
    value: float = math.nan
    low: float = math.nan
    high: float = math.nan
    n: int
    expected: int
    p: float = math.nan
    needed: float = math.inf

    @property
    def holds(self) -> bool:
        """Whether it is as claimed, or stronger."""
        return self.verdict in HOLDS

    def decide(
        self,
        verdict: Verdict,
        value: float,
        low: float,
        high: float,
        *bounds: float,
        p: float = math.nan,
        scale: Callable[[float], float] = float,
    ) -> Part:
        """The part with what the seeds say of it.

        Args:
            bounds: those of which the interval must lie on one side; if it cannot be told, they say
                how many seeds would tell. None where more seeds would not.
            scale: the function of the value in which the interval is as long on both sides.
        """
        needed = 0.0
        if verdict == "cannot tell":
            needed = count_seeds_needed(self.n, *map(scale, (value, low, high, *bounds)))
        return replace(self, verdict=verdict, value=value, low=low, high=high, p=p, needed=needed)


def judge(parts: Sequence[Part], trusted: bool = True) -> list[Part]:
    """Adjust p by Holm over all parts: a contradiction that is no longer significant becomes
    "cannot tell", as does every one where the rule is not `trusted`.

    All parts together make a claim, so that each is held to 5 %; but any one contradicts it, which
    needs adjustment.
    """
    judged = []
    for part, p in zip(parts, holm([part.p for part in parts]), strict=True):
        verdict = part.verdict
        if verdict == "contradicted" and (p >= SIGNIFICANT or not trusted):
            verdict = "cannot tell"
        judged.append(replace(part, p=float(p), verdict=verdict))
    return judged


def verdict_of(parts: Sequence[Part]) -> Verdict:
    """The verdict of a claim from those of its parts.

    All hold: reproduced, or stronger than claimed if a part is. Some hold: reproduced in part. None
    holds: contradicted if a part is, else cannot tell.
    """
    verdicts = {part.verdict for part in parts}
    if verdicts & HOLDS and verdicts - HOLDS:
        return "reproduced in part"
    decisive: tuple[Verdict, ...] = ("stronger than claimed", "reproduced", "contradicted")
    for verdict in decisive:
        if verdict in verdicts:
            return verdict
    return "cannot tell"


def count_seeds_needed(n: int, value: float, low: float, high: float, *bounds: float) -> float:
    """About how many seeds would tell a value from the nearest bound four times in five.

    The half-width of a 95 % interval shrinks like 1/√n; the distance must be 2.8 standard errors
    instead of 1.96.
    """
    distance = min((abs(value - bound) for bound in bounds), default=0.0)
    if n < 2 or distance == 0:
        return math.inf
    half = (high - low) / 2
    needed = n * (half / distance * 2.8 / 1.96) ** 2
    is_few = needed <= MOST_SEEDS  # NaN is not
    if not is_few:
        return math.inf
    return float(max(n + 1, math.ceil(needed)))
