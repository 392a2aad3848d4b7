"""Figures from results only: curves, boxes and trade-offs, as PDF and PNG with the CSV behind them.

A recipe is a Python file with a function `figures(run) -> list[Figure]`; `cbobench figures` runs every shipped recipe
and draws what the run's problems allow. The files hold no time stamp: the same results give the same bytes.
"""

from __future__ import annotations

import importlib.util
import itertools
import re
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pandas as pd

from cbobench import resources
from cbobench.errors import CbobenchError, Misuse, unknown
from cbobench.report.aggregate import CONFIDENCE
from cbobench.report.load import Run
from cbobench.report.panels import AnyPanel, Boxes, Panel, TradeOff, plain

__all__ = ["Boxes", "Figure", "Panel", "TradeOff", "draw", "draw_all", "main"]


@dataclass(frozen=True)
class Figure:
    """A named figure of one or more panels, in rows of `columns`."""

    name: str
    caption: str
    panels: Sequence[AnyPanel] = field(default_factory=list)
    columns: int = 4


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
    return [(title, labels[title]) for title in run.named("problem", [name]) if title in good]


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
    paths = [folder / f"{figure.name}.{kind}" for kind in ("pdf", "png", "csv")]
    with sns.axes_style("ticks"), sns.plotting_context("notebook"), mpl.rc_context({"pdf.fonttype": 42}):
        columns = min(len(figure.panels), figure.columns)
        rows = -(-len(figure.panels) // columns)
        size = (5.2 * columns, 4.0 * rows)
        image, grid = plt.subplots(rows, columns, figsize=size, squeeze=False, layout="constrained")
        axes = list(grid.flat)
        for axis in axes[len(figure.panels) :]:
            axis.set_visible(False)
        _draw_panels(run, figure, axes, colours, paths[2])
        shown = [pair for axis in axes for pair in zip(*axis.get_legend_handles_labels(), strict=True)]
        entries = {label: line for line, label in shown}
        if entries:
            image.legend(
                entries.values(), entries, loc="outside lower center", fontsize="x-small", frameon=False,
                ncols=min(len(entries), 3 * columns),
            )  # fmt: skip
        wrapped = [line for part in figure.caption.splitlines() for line in textwrap.wrap(part, 75 * columns)]
        image.suptitle(plain("\n".join(wrapped)), fontsize="small" if columns > 1 else "x-small")
        image.savefig(paths[0], metadata={"CreationDate": None, "Title": figure.caption.replace("\n", " ")})
        image.savefig(paths[1], dpi=150, metadata={"Software": None})
        plt.close(image)
    return paths


def _draw_panels(run: Run, figure: Figure, axes: Sequence[Any], colours: dict[str, Any], path: Path) -> None:
    """Draw every panel, and write the rows behind them as one CSV.

    Rows of panels that are alike are written one by one, and not kept; columns of unlike ones are joined.
    """
    alike = {type(panel) for panel in figure.panels} in ({Panel}, {Boxes})
    kept: list[pd.DataFrame] = []
    part = path.with_suffix(".part")
    try:
        with part.open("w", newline="", encoding="utf-8") as file:
            for position, panel in enumerate(figure.panels):
                frame = panel.data(run)
                panel.draw(axes[position], frame, colours)
                frame.insert(0, "problem", panel.problem)
                frame.insert(1, "metric", panel.quantity)
                if alike:
                    frame.to_csv(file, index=False, header=position == 0)
                else:
                    kept.append(frame)
                del frame
            if kept:
                pd.concat(kept).to_csv(file, index=False)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def seeds_note(run: Run, of: str = "means") -> str:
    """What is shown of how many seeds, for captions: means with error bars, or boxes over the seeds."""
    counts = (
        run.cells[(run.cells["status"] == "ok") & (run.cells["horizon"] == run.horizon)]
        .groupby(["problem", "algorithm"])
        .size()
    )
    low, high = (0, 0) if counts.empty else (int(counts.min()), int(counts.max()))
    seeds = str(low) if low == high else f"{low} to {high}"
    bars = f"bars: {CONFIDENCE:.0%} intervals" if of == "means" else "quartiles, whiskers to 1.5 times their distance"
    return f"{of} of {seeds} seeds, {bars}"


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
