"""`cbobench compare`: one row per (problem, algorithm), means over seeds with 95 % intervals, n of expected."""

from __future__ import annotations

import pandas as pd

from cbobench.metrics import METRICS
from cbobench.report.aggregate import summary
from cbobench.report.formats import TextTable, number, plus_minus, records, render
from cbobench.report.load import Run

NOTE = "mean ± half width of the 95 % interval over seeds (Student's t); ~ median; µs: per seed and round"


def compare(run: Run, style: str = "table", width: int | None = None) -> str:
    """The comparison table of a run in one of `formats.FORMATS`."""
    frame = summary(run)
    if style in ("csv", "json"):
        rows = [{str(k): v for k, v in row.items()} for row in frame.to_dict("records")]
        return records(rows, style)
    return render(_text(run, frame), style, width)


def _text(run: Run, frame: pd.DataFrame) -> TextTable:
    several = frame["horizon"].nunique() > 1
    columns = ["problem", "algorithm", *(["T"] if several else []), "n"]
    tabled = [metric for metric in METRICS.values() if metric.tabled]
    for metric in tabled:
        columns += [metric.symbol, *([f"{metric.symbol} ~"] if metric.median else [])]
    columns.append("µs")
    rows = []
    for row in frame.to_dict("records"):
        cells = [row["problem_label"], row["algorithm_label"], *([str(row["horizon"])] if several else [])]
        notes = ", ".join(f"{row[word]} {word}" for word in ("failed", "stale", "unchecked") if row[word])
        cells.append(f"{row['n']}/{row['expected']}" + (f" ({notes})" if notes else ""))
        for metric in tabled:
            cells.append(plus_minus(row[metric.name], row[f"{metric.name}_ci"]))
            if metric.median:
                cells.append(number(row[f"{metric.name}_median"], whole=metric.whole))
        cells.append(number(row["us_per_round"]))
        rows.append(cells)
    horizon = "" if several else f", T = {frame['horizon'].iloc[0]:,}"
    return TextTable(columns, rows, f"{run.record.suite}{horizon}", NOTE)
