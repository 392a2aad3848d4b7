"""Figures from results only: mean curves with error bars, as PDF and PNG with the CSV behind them.

A recipe is a Python file with a function `figures(run) -> list[Figure]`; `cbobench figures` runs every shipped recipe
and draws what the run's problems allow. The files hold no time stamp: the same results give the same bytes.
"""

from __future__ import annotations

import importlib.util
import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pandas as pd

from cbobench import resources
from cbobench.errors import CbobenchError, Misuse, unknown
from cbobench.report.aggregate import CONFIDENCE, curves
from cbobench.report.load import Run

METRIC_LABELS = {
    "regret": "Cumulative regret",
    "regret_plus": "Cumulative regret R₊",
    "violation": "Cumulative violation V",
    "violation_hard": "Stronger cumulative violation V⁺",
    "violations": "Rounds in violation N",
    "reward": "Cumulative reward",
}
ERROR_BARS = 10


@dataclass(frozen=True)
class Panel:
    """Mean curves of one metric on one problem.

    Args:
        metric: a cumulative column of the rounds table.
        problem: title of the problem.
        algorithms: names to show (all by default): registered names, so every variant of them.
        average: divide by t.
        title: above the panel.
    """

    metric: str
    problem: str
    algorithms: Sequence[str] | None = None
    average: bool = False
    title: str = ""


@dataclass(frozen=True)
class Figure:
    """A named figure of one or more panels side by side."""

    name: str
    caption: str
    panels: Sequence[Panel] = field(default_factory=list)


def slug(text: str) -> str:
    """A file name from a label: "h = B/2" becomes "h_B_2"."""
    return re.sub(r"[^A-Za-z0-9.]+", "_", text).strip("_")[:80]


def problems_played(run: Run) -> set[str]:
    """Titles of the problems with at least one good cell of the latest horizon."""
    cells = run.cells
    return set(cells.loc[(cells["status"] == "ok") & (cells["horizon"] == run.horizon), "problem"])


def problems_named(run: Run, name: str) -> list[tuple[str, str]]:
    """(title, label) of the run's problems with a registered name that have at least one good cell."""
    good = problems_played(run)
    labels = run.record.labels("problems")
    return [(title, labels[title]) for title in labels if title.split("[")[0] == name and title in good]


def panel_data(run: Run, panel: Panel) -> pd.DataFrame:
    """The numbers behind a panel: one row per (algorithm, t)."""
    frame = curves(run, panel.metric, panel.problem, average=panel.average)
    if panel.algorithms is not None:
        names = frame["algorithm"].map(lambda title: title.split("[")[0])
        frame = frame[names.isin(list(panel.algorithms))]
    return frame


def draw(run: Run, figure: Figure, folder: Path) -> list[Path]:
    """Write one figure as PDF, PNG and CSV into `folder`; the paths written."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt
    import seaborn as sns

    colours = dict(
        zip(run.record.labels("algorithms"), itertools.cycle(sns.color_palette("colorblind", 10)), strict=False)
    )
    folder.mkdir(parents=True, exist_ok=True)
    data = [panel_data(run, panel) for panel in figure.panels]
    with sns.axes_style("ticks"), sns.plotting_context("notebook"), mpl.rc_context({"pdf.fonttype": 42}):
        size = (5.2 * len(figure.panels), 4.0)
        image, axes = plt.subplots(1, len(figure.panels), figsize=size, squeeze=False, layout="constrained")
        for axis, panel, frame in zip(axes[0], figure.panels, data, strict=True):
            _draw_panel(axis, panel, frame, colours)
        shown = [pair for axis in axes[0] for pair in zip(*axis.get_legend_handles_labels(), strict=True)]
        entries = {label: line for line, label in shown}
        image.legend(
            entries.values(), entries, loc="outside lower center", fontsize="x-small", frameon=False,
            ncols=min(len(entries), 3 * len(figure.panels)) or 1,
        )  # fmt: skip
        image.suptitle(plain(figure.caption), fontsize="small")
        paths = [folder / f"{figure.name}.{kind}" for kind in ("pdf", "png", "csv")]
        image.savefig(paths[0], metadata={"CreationDate": None, "Title": figure.caption.replace("\n", " ")})
        image.savefig(paths[1], dpi=150, metadata={"Software": None})
        plt.close(image)
    for panel, frame in zip(figure.panels, data, strict=True):
        frame.insert(0, "problem", panel.problem)
        frame.insert(1, "metric", ("average_" if panel.average else "") + panel.metric)
    pd.concat(data).to_csv(paths[2], index=False)
    return paths


def plain(text: str) -> str:
    """A label that matplotlib shows as it is: no formulas, and not hidden from the legend by a leading underscore."""
    return ("\u200b" if text.startswith("_") else "") + text.replace("$", r"\$")


def _draw_panel(axis: Any, panel: Panel, frame: pd.DataFrame, colours: dict[str, Any]) -> None:
    import seaborn as sns

    groups = list(frame.groupby("algorithm", sort=False))
    for position, (title, group) in enumerate(groups):
        n, expected = int(group["n"].iloc[0]), int(group["expected"].iloc[0])
        label = plain(group["label"].iloc[0]) + ("" if n == expected else f" ({n} of {expected})")
        colour = colours[str(title)]
        sns.lineplot(x=group["t"], y=group["mean"], ax=axis, color=colour, label=label, errorbar=None)
        step = max(1, len(group) // ERROR_BARS)
        start = step * (position + 1) // (len(groups) + 1)  # stagger, so that bars do not hide each other
        some = group.iloc[start::step]
        axis.errorbar(some["t"], some["mean"], some["ci"], fmt="none", ecolor=colour, capsize=2, elinewidth=1)
    label = METRIC_LABELS[panel.metric]
    axis.set(xlabel="Round t", ylabel=label.replace("Cumulative", "Average") if panel.average else label)
    axis.set_title(plain(panel.title), fontsize="medium")
    axis.margins(x=0.02)
    if axis.get_legend() is not None:
        axis.get_legend().remove()  # one legend under all panels, where it hides no curve
    sns.despine(ax=axis)


def seeds_note(run: Run) -> str:
    """What the error bars are, for captions."""
    counts = (
        run.cells[(run.cells["status"] == "ok") & (run.cells["horizon"] == run.horizon)]
        .groupby(["problem", "algorithm"])
        .size()
    )
    low, high = (0, 0) if counts.empty else (int(counts.min()), int(counts.max()))
    seeds = str(low) if low == high else f"{low} to {high}"
    return f"means of {seeds} seeds, bars: {CONFIDENCE:.0%} intervals"


def load_recipe(path: Path) -> ModuleType:
    """A recipe file as a module."""
    spec = importlib.util.spec_from_file_location(f"cbobench_recipe_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise Misuse(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # a recipe of the user's may fail in any way
        raise Misuse(f"{path} cannot be run: {type(error).__name__}: {str(error).splitlines()[0]}") from error
    if not hasattr(module, "figures"):
        raise Misuse(f"{path} is not a recipe: it has no function figures(run)")
    return module


def draw_all(run: Run, folder: Path, recipe: str | None = None) -> Iterator[tuple[Figure, list[Path]]]:
    """Draw every figure that the shipped recipes know for this run.

    Args:
        recipe: only this one (a name or a path).

    Raises:
        Misuse: no such recipe. CbobenchError: the run has no good cell to draw.
    """
    if not (run.cells["status"] == "ok").any():
        raise CbobenchError(f"{run.folder.uri} has no good cell yet, so there is nothing to draw; see cbobench status")
    known = resources.recipes()
    chosen = known
    if recipe is not None:
        path = Path(recipe)
        if recipe not in known and not path.is_file():
            raise unknown("recipe", recipe, known, then="or give the path of a Python file")
        chosen = {recipe: known.get(recipe, path)}
    names: dict[str, int] = {}
    for path in chosen.values():
        for figure in load_recipe(path).figures(run):
            count = names[figure.name] = names.get(figure.name, 0) + 1
            unique = figure if count == 1 else replace(figure, name=f"{figure.name}_{count}")
            yield unique, draw(run, unique, folder)


def main(recipe: str, before: Callable[[Run], None] = lambda run: None) -> None:
    """A recipe run as a script: `python analysis/NAME.py RUN [OUT]`; `before` may print something of the run first."""
    import sys

    if len(sys.argv) not in (2, 3):
        raise SystemExit(f"usage: python {Path(recipe).name} RUN [OUT]")
    try:
        run = Run(sys.argv[1])
        before(run)
        out = Path(sys.argv[2] if len(sys.argv) == 3 else "figures")
        for figure, paths in draw_all(run, out, recipe):
            print(f"{figure.name}: {paths[0].with_suffix('')} {' '.join(path.suffix for path in paths)}")
    except CbobenchError as error:
        print(f"cbobench: {error}", file=sys.stderr)
        raise SystemExit(error.exit_code) from None
