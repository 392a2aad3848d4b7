"""`cbobench audit`: the promises of the theorems beside the measurements, per problem and
algorithm.

Intervals are over seeds, because rounds are dependent; those of shares are exact (Clopper–Pearson).
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cbobench.errors import Misuse
from cbobench.report.curves import Panel
from cbobench.report.figures import Figure, draw, slug
from cbobench.report.formats import render, render_records
from cbobench.report.load import Run
from cbobench.report.numbers import format_number
from cbobench.report.text_table import TextTable
from cbobench.stats.growth import exponent
from cbobench.stats.intervals import Array, proportion

WITHOUT = ("no widths", "functions move")  # notes of plays without a theorem
NOTE = (
    "k of n with its exact 95 % interval (Clopper–Pearson), else the median with the least and "
    "the largest over seeds; "
    "kept, broken, open: what the interval says of a promise; δ, φ*: of the finite linear "
    "program (box: its candidates)"
)


@dataclass(frozen=True)
class Line:
    """One finding of a pair: the measured value beside the theory's.

    Attributes:
        check: the compared quantity.
        theory: the value that is promised or in use, or NaN.
        measured: a share if `count` and `of` are given, else a median over seeds.
        low, high: the interval of a share, or the minimum and maximum over seeds.
        verdict: "kept", "broken" or "open" for a promise about seeds; else empty.
        about: a remark.
    """

    check: str
    theory: float
    measured: float
    low: float = float("nan")
    high: float = float("nan")
    count: int | None = None
    of: int | None = None
    verdict: str = ""
    about: str = ""


def audit(run: Run, style: str = "table", width: int | None = None) -> str:
    """The audit of a run in one of `formats.FORMATS`.

    Raises:
        Misuse: the run is not audited, or none of its cells is there.
    """
    rows = findings(run)
    if style in ("csv", "json"):
        return render_records(rows, style)
    several = len({row["horizon"] for row in rows}) > 1
    columns = ["problem / algorithm", "what", "theory", "measured", "interval or range", "so"]
    labels = {kind: run.record.labels(kind) for kind in ("problems", "algorithms")}
    body = []
    for row in rows:
        pair = f"{labels['problems'][row['problem']]} / {labels['algorithms'][row['algorithm']]}"
        pair += f", T = {row['horizon']:,}" if several else ""
        counted = f"{pair}, {row['n']}/{row['expected']} seeds"
        body.append([counted, row["check"], format_number(row["theory"]), *_summarise_row(row)])
    return render(
        TextTable(columns, body, f"{run.record.suite}: audit", NOTE, left=2, folded=True),
        style,
        width,
    )


def _summarise_row(row: dict[str, Any]) -> list[str]:
    spread = (
        f"[{format_number(row['low'])}, {format_number(row['high'])}]"
        if np.isfinite(row["low"])
        else ""
    )
    measured = (
        f"{row['count']:,} of {row['of']:,}"
        if row["count"] is not None
        else format_number(row["measured"])
    )
    interval = (
        f"{format_number(row['measured'])} {spread}".strip() if row["count"] is not None else spread
    )
    return [measured, interval, " ".join(word for word in (row["verdict"], row["about"]) if word)]


def findings(run: Run) -> list[dict[str, Any]]:
    """Every line of every expected pair, as dictionaries."""
    if not run.record.audit:
        raise Misuse(
            f"{run.folder} is not audited; add `audit: true` to its suite and run it with "
            "another --out"
        )
    audit_rows = run.audit
    if audit_rows.empty:
        raise Misuse(f"{run.folder} holds no audited cell yet; run its suite to the end")
    measured = run.cells[["cell", "regret_plus", "violation"]]
    frame = audit_rows.merge(measured, on="cell", how="left", validate="one_to_one")
    rows = []
    for pair in run.expected.to_dict("records"):
        key = {name: pair[name] for name in ("problem", "algorithm", "horizon")}
        cells = frame[(frame[list(key)] == pd.Series(key)).all(axis=1)]
        about = {**key, "n": len(cells), "expected": pair["expected"]}
        lines = (
            [*_lines(cells), *_growth(run, key, cells)]
            if len(cells)
            else [Line("nothing was audited", np.nan, np.nan)]
        )
        rows += [{**about, **asdict(line)} for line in lines]
    return rows


def _lines(cells: pd.DataFrame) -> Iterator[Line]:
    alpha = _numbers(cells, "alpha")
    promised = 1 - float(alpha[0]) if len(alpha) else np.nan
    outside = sum(any(not note.startswith("CKB: ") for note in notes) for notes in cells["notes"])
    yield from _share("bounds hold in all rounds (E^est)", cells["est_always"], promised, outside)
    yield from _spread("share of rounds in which they hold", cells, "est")
    needed = cells["needed"].dropna()
    if len(needed):
        yield _seeds(
            "largest |f - μ|/(βσ), |g - μ|/(βσ)", needed.map(max).to_numpy(dtype=np.float64), 1.0
        )
    # a cap is of CKB alone
    function = "Lagrangian f - φ·g" if cells["dual_cap"].notna().any() else "f and every g"
    yield from _share(
        f"{function} optimistic at x* in all rounds", cells["optimism_always"], np.nan, 0
    )
    yield from _spread(f"share of rounds with {function} optimistic at x*", cells, "optimism")
    for name, check in (
        ("conc", "share of rounds with E^conc"),
        ("anti", "share of rounds with E^anti"),
    ):
        yield from _spread(check, cells, name, *_numbers(cells, f"{name}_promised")[:1])
    yield from _ratio("RKHS norm / bound in use, largest of f and g", cells, "norm", "bound")
    yield from _ratio("noise / R in use", cells, "noise", "noise_used")
    yield from _duals(cells)
    yield from _margins(cells)
    yield from _spread("γ_T of the actions played", cells, "gain", _middle(cells, "gain_used"))
    yield from _safety(cells)
    for metric, bound, check in (
        ("regret_plus", "regret_bound", "R₊"),
        ("violation", "violation_bound", "V"),
    ):
        bounded = cells.dropna(subset=[metric, bound])
        if len(bounded):
            share = bounded[metric].to_numpy() / bounded[bound].to_numpy()
            yield _seeds(f"{check} / the theorem's bound", share, 1.0)
    for note, count in Counter(itertools.chain(*cells["notes"])).items():
        yield Line(
            f"outside the theorem: {note}", np.nan, count / len(cells), count=count, of=len(cells)
        )


def _numbers(cells: pd.DataFrame, name: str) -> Array:
    return cells[name].dropna().to_numpy(dtype=np.float64)


def _middle(cells: pd.DataFrame, name: str) -> float:
    values = _numbers(cells, name)
    return float(np.median(values)) if len(values) else np.nan


def _seeds(check: str, values: Array, theory: float, about: str = "") -> Line:
    """The median over seeds, with minimum and maximum."""
    return Line(
        check,
        theory,
        float(np.median(values)),
        float(values.min()),
        float(values.max()),
        about=about,
    )


def _spread(
    check: str, cells: pd.DataFrame, name: str, theory: float = float("nan")
) -> Iterator[Line]:
    values = _numbers(cells, name)
    if len(values):
        yield _seeds(check, values, theory)


def _share(check: str, yes: pd.Series, promised: float, outside: int) -> Iterator[Line]:
    """A promise about seeds is kept or broken if the interval lies on one side of it."""
    outcomes = yes.dropna().astype(bool)
    if len(outcomes) == 0:
        return
    count, total = int(outcomes.sum()), len(outcomes)
    low, high = proportion(count, total)
    verdict = (
        ""
        if np.isnan(promised)
        else "kept"
        if low >= promised
        else "broken"
        if high < promised
        else "open"
    )
    about = f"not promised to {outside} of {total}: see below" if outside and verdict else ""
    yield Line(check, promised, count / total, low, high, count, total, verdict, about)


def _ratio(check: str, cells: pd.DataFrame, true: str, used: str) -> Iterator[Line]:
    complete_cells = cells.dropna(subset=[true, used])
    if complete_cells.empty:
        return
    pairs = zip(complete_cells[true], complete_cells[used], strict=True)
    ratio = np.array(
        [max(a / b if b > 0 else np.inf for a, b in zip(t, u, strict=False)) for t, u in pairs]
    )
    above = int((ratio > 1 + 1e-6).sum())
    yield _seeds(check, ratio, 1.0, f"too small in {above} of {len(ratio)}")


def _duals(cells: pd.DataFrame) -> Iterator[Line]:
    solved = cells.dropna(subset="dual_optimum")
    if solved.empty:
        return
    best = np.array([max(duals, default=0.0) for duals in solved["dual_optimum"]])
    cap = solved["dual_cap"].to_numpy(dtype=np.float64)
    positive = f"positive in {int((best > 0).sum())} of {len(best)}"
    if np.isnan(cap).all():
        yield _seeds("φ*", best, np.nan, positive)
    else:
        above, twice = int((cap >= best).sum()), int((cap >= 2 * best).sum())
        about = f"{positive}; ρ >= φ* in {above}, ρ >= 2φ* in {twice}"
        yield _seeds("φ* (theory: ρ in use, median)", best, float(np.nanmedian(cap)), about)


def _margins(cells: pd.DataFrame) -> Iterator[Line]:
    solved = cells.dropna(subset="margin")
    if solved.empty:
        return
    mixed, single = solved[["margin", "margin_single"]].to_numpy(dtype=np.float64).T
    twice = int((mixed > 2 * np.maximum(single, 0.0)).sum())
    used = _middle(solved, "margin_used")
    yield _seeds(
        "δ of the safest policy (theory: δ in use)",
        mixed,
        used,
        f"over twice the action's in {twice}",
    )
    yield _seeds("δ of the safest action", single, used)
    count = int((solved["mixed"] > 1).sum())
    yield Line("π* is a mixture", np.nan, count / len(solved), count=count, of=len(solved))


def _safety(cells: pd.DataFrame) -> Iterator[Line]:
    """Unsafe actions beyond the seed set that a method called safe."""
    certified = cells.dropna(subset="certified")
    if certified.empty:
        return
    alpha = _middle(cells, "alpha")
    count, total = int(certified["certified_unsafe"].sum()), int(certified["certified"].sum())
    low, high = proportion(count, total)
    share = count / total if total else np.nan
    yield Line(
        "unsafe among actions called safe",
        np.nan,
        share,
        low,
        high,
        count,
        total,
        "",
        "actions as if independent",
    )
    wrong = certified["certified_unsafe"] > 0
    low, high = proportion(int(wrong.sum()), len(wrong))
    verdict = "kept" if high <= alpha else "broken" if low > alpha else "open"
    yield Line(
        "seeds with any",
        alpha,
        float(wrong.mean()),
        low,
        high,
        int(wrong.sum()),
        len(wrong),
        verdict,
    )


def _growth(run: Run, key: dict[str, Any], cells: pd.DataFrame) -> Iterator[Line]:
    """Growth exponents of R₊ and V⁺ over the second half of the rounds, with intervals over
    seeds.
    """
    if key["horizon"] != run.horizon_of(key["problem"]):
        return
    beyond = any(note in WITHOUT for notes in cells["notes"] for note in notes)
    promised = np.nan if beyond else 0.5
    for metric, symbol in (("regret_plus", "R₊"), ("violation_hard", "V⁺")):
        t, values = run.series(metric, key["problem"], key["algorithm"])
        if len(t) < 4 or values.shape[1] == 0 or np.isnan(values).any():
            continue
        growth = exponent(t, values)
        if np.isfinite(growth.exponent):
            drawn = np.isfinite(growth.low)
            about = (
                "second half, resampled seeds"
                if drawn
                else "second half; no interval: some means are negative"
            )
            yield Line(
                f"{symbol} grows as t to the power",
                promised,
                growth.exponent,
                growth.low,
                growth.high,
                about=about,
            )


BOUNDS = {"regret_plus": "curve_regret", "violation": "curve_violation"}


@dataclass(frozen=True)
class Bounded(Panel):
    """R₊ or V of one algorithm (the only one of `titles`), and the mean over seeds of its bound."""

    def data(self, run: Run) -> pd.DataFrame:
        """One row per recorded round; `bound` in some of them."""
        frame, rows = super().data(run), run.audit
        column = BOUNDS[self.metric]
        is_plotted = (rows["problem"] == self.problem) & rows["algorithm"].isin(
            self.algorithm_titles(run)
        )
        bound_rows = rows[
            is_plotted & (rows["horizon"] == run.horizon_of(self.problem)) & rows[column].notna()
        ]
        if bound_rows.empty:
            return frame.assign(bound=np.nan)
        mean = np.stack(bound_rows[column].to_list()).mean(axis=0)
        return frame.merge(
            pd.DataFrame({"t": bound_rows["curve_t"].iloc[0], "bound": mean}), on="t", how="left"
        )

    def draw(self, axis: Any, frame: pd.DataFrame, looks: Any) -> None:
        """The curve, and its bound dotted."""
        super().draw(axis, frame, looks)
        bound_rows = frame[frame["bound"].notna()]
        axis.set_xscale("log")
        if (frame[self.statistic] > 0).any():
            axis.set_yscale("log")
        else:  # shows a curve that stays at 0
            axis.set_yscale(
                "symlog", linthresh=bound_rows["bound"].min() if len(bound_rows) else 1.0
            )
        axis.plot(
            bound_rows["t"],
            bound_rows["bound"],
            color="0.2",
            linestyle=":",
            label="bound of the theorem (mean)",
        )


def draw_bounds(run: Run, folder: Path) -> Iterator[Path]:
    """Draw one figure per pair whose bound is known after every round (CKB with UCB); gives the
    paths.

    Raises:
        Misuse: there is no such pair.
    """
    rows = run.audit.dropna(subset="curve_t")
    bound_rows = rows[rows["horizon"] == rows["problem"].map(run.horizon_of)]
    pairs = [
        (str(p), str(a))
        for p, a in bound_rows[["problem", "algorithm"]].drop_duplicates().to_numpy().tolist()
    ]
    if not pairs:
        raise Misuse(
            f"{run.folder} has no pair with a bound to draw; audit ckb-ucb on a problem that "
            "stays the same"
        )
    problems, algorithms = run.record.labels("problems"), run.record.labels("algorithms")
    for problem, algorithm in pairs:
        name = f"bounds_{slug(problems[problem])}_{slug(algorithms[algorithm])}"
        played = run.good(problem, algorithm)
        metrics = [metric for metric in BOUNDS if played[metric].notna().all()]
        panels = [Bounded(metric, problem, titles=[algorithm], log="xy") for metric in metrics]
        caption = (
            f"{algorithms[algorithm]} on {problems[problem]}: what the theorem bounds, and what "
            "was measured"
        )
        yield from draw(run, Figure(name, caption, panels), folder)
