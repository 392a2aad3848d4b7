"""Means over seeds with their 95 % confidence intervals."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cbobench.metrics import METRICS
from cbobench.report.load import Run

CONFIDENCE = 0.95


def half_width(values: NDArray[np.float64], axis: int = 0, confidence: float = CONFIDENCE) -> NDArray[np.float64]:
    """Half width of Student's t interval of the mean along an axis; not a number for fewer than two values."""
    from scipy.special import stdtrit  # scipy.stats would take five times as long to import

    n = values.shape[axis]
    if n < 2:
        return np.full(np.delete(values.shape, axis), np.nan)
    quantile = stdtrit(n - 1, (1 + confidence) / 2)
    return np.asarray(quantile * values.std(axis=axis, ddof=1) / np.sqrt(n))


def summary(run: Run) -> pd.DataFrame:
    """One row per (problem, algorithm, horizon), in the suite's order, with labels.

    Columns: `n` (cells that are ok), `expected`, `failed`, `stale`, `unchecked` (stale or not is not known: no code is
    at hand), and for every metric `<metric>` (mean over seeds), `<metric>_ci` (half width of the 95 % interval) and
    `<metric>_median`; `us_per_round` is the median over cells.
    A group with n < expected is a partial result and shows it.
    """
    cells, problems, algorithms = run.cells, run.record.labels("problems"), run.record.labels("algorithms")
    keys = ["problem", "algorithm", "horizon"]
    groups = dict(list(cells.groupby(keys, sort=False)))
    rows = []
    for problem, algorithm, horizon, expected in run.expected.itertuples(index=False):
        group = groups.get((problem, algorithm, horizon), cells.iloc[:0])
        good = group[group["status"] == "ok"]
        row = {
            "problem": problem,
            "algorithm": algorithm,
            "problem_label": problems[problem],
            "algorithm_label": algorithms[algorithm],
            "horizon": horizon,
            "n": len(good),
            "expected": expected,
            "failed": int((group["status"] == "failed").sum()),
            "stale": int(group["cell"].isin(run.stale).sum()),
            "unchecked": int(group["cell"].isin(run.unchecked).sum()),
        }
        for metric in (m.name for m in METRICS.values() if m.tabled):
            values = good[metric].to_numpy(dtype=np.float64)
            some = len(values) > 0
            row[metric] = values.mean() if some else np.nan
            row[f"{metric}_ci"] = float(half_width(values))
            row[f"{metric}_median"] = np.median(values) if some else np.nan
        row["us_per_round"] = 1e6 * good["seconds_per_round"].median() if len(good) else np.nan
        rows.append(row)
    return pd.DataFrame(rows)
