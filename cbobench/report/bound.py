"""What the theorems bound, drawn over what was measured."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cbobench.errors import Misuse
from cbobench.report.figures import Figure, draw, slug
from cbobench.report.load import Run
from cbobench.report.panels import Panel

BOUNDS = {"regret_plus": "curve_regret", "violation": "curve_violation"}


@dataclass(frozen=True)
class Bounded(Panel):
    """R₊ or V of one algorithm (the only one of `titles`), and the mean over seeds of its bound."""

    def data(self, run: Run) -> pd.DataFrame:
        """One row per recorded round; `bound` in some of them."""
        frame, rows = super().data(run), run.audit
        column = BOUNDS[self.metric]
        mine = (rows["problem"] == self.problem) & rows["algorithm"].isin(self.wanted(run))
        known = rows[mine & (rows["horizon"] == run.horizon_of(self.problem)) & rows[column].notna()]
        if known.empty:
            return frame.assign(bound=np.nan)
        mean = np.stack(known[column].to_list()).mean(axis=0)
        return frame.merge(pd.DataFrame({"t": known["curve_t"].iloc[0], "bound": mean}), on="t", how="left")

    def draw(self, axis: Any, frame: pd.DataFrame, looks: Any) -> None:
        """The curve, and its bound dotted."""
        super().draw(axis, frame, looks)
        known = frame[frame["bound"].notna()]
        axis.set_xscale("log")
        if (frame[self.statistic] > 0).any():
            axis.set_yscale("log")
        else:  # a curve that stays at 0 is seen
            axis.set_yscale("symlog", linthresh=known["bound"].min() if len(known) else 1.0)
        axis.plot(known["t"], known["bound"], color="0.2", linestyle=":", label="bound of the theorem (mean)")


def draw_bounds(run: Run, folder: Path) -> Iterator[Path]:
    """One figure per pair whose bound is known after every round (CKB with UCB): the paths written.

    Raises:
        Misuse: there is none.
    """
    rows = run.audit
    known = rows[rows["curve_t"].notna() & (rows["horizon"] == rows["problem"].map(run.horizon_of))]
    pairs = [(str(p), str(a)) for p, a in known[["problem", "algorithm"]].drop_duplicates().to_numpy().tolist()]
    if not pairs:
        raise Misuse(f"{run.folder} has no pair with a bound to draw; audit ckb-ucb on a problem that stays the same")
    problems, algorithms = run.record.labels("problems"), run.record.labels("algorithms")
    for problem, algorithm in pairs:
        name = f"bounds_{slug(problems[problem])}_{slug(algorithms[algorithm])}"
        played = run.good(problem, algorithm)
        metrics = [metric for metric in BOUNDS if played[metric].notna().all()]
        panels = [Bounded(metric, problem, titles=[algorithm], log="xy") for metric in metrics]
        caption = f"{algorithms[algorithm]} on {problems[problem]}: what the theorem bounds, and what was measured"
        yield from draw(run, Figure(name, caption, panels), folder)
