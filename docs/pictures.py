"""The pictures of README and of docs/papers.md, drawn from what is stored in this folder.

python docs/pictures.py           draws docs/first.png and docs/papers/
python docs/pictures.py --play    plays README's suite, stores it as docs/first.zip, and draws

README's picture shows simple regret of its own suite (docs/first.zip) beside regret and violation of a paper's figure;
docs/papers/ has every figure of the papers, by the letter and as best known, on the same axes (docs/gallery.parquet).
"""

from __future__ import annotations

import argparse
import re
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

import gallery
import pandas as pd

import cbobench
from cbobench.report.canvas import Image
from cbobench.report.curves import Panel
from cbobench.report.figures import draw_into
from cbobench.report.layout import draw_zeros, finish, grid, set_limits, set_ticks
from cbobench.report.load import Run
from cbobench.report.style import size_of
from cbobench.results.export import export

HERE = Path(__file__).parent
README, PAPERS = HERE.parent / "README.md", HERE / "papers.md"
FIRST, BUNDLE, FOLDER = HERE / "first.png", HERE / "first.zip", HERE / "papers"
PAPER = "zhou_ji_fig1b_best", "zhou_ji_fig1c_best"  # regret and violation in README's picture
WORDS = {"letter": "by the letter", "best": "as best known"}
DPI = 110


def read_suite() -> str:
    """README's suite."""
    return re.findall(r"^```yaml\n(.*?)^```", README.read_text(encoding="utf-8"), flags=re.M | re.S)[0]


def play() -> None:
    """Play README's suite, and store it."""
    with tempfile.TemporaryDirectory() as place:
        suite = Path(place) / "first.yaml"
        suite.write_text(read_suite(), encoding="utf-8")
        done = cbobench.run(suite, out=Path(place) / "run", cpus=0)
        export(done.folder, BUNDLE)


def draw_first() -> Image:
    """README's picture."""
    size = replace(size_of("double", 3), dpi=200)
    with size.context():
        image = Image(size, 2.75)
        left, right = image.subfigures(1, 2, width_ratios=[1, 2])
        own = left.subplots()
        run = Run(BUNDLE)
        run.__dict__["stale"] = frozenset()  # the picture is of what was played; a test plays it again
        draw_into(run, [own], [Panel("simple_regret", "gramacy", None, statistic="median", log="y")])
        own.set_title("(a) first.yaml: simple regret")
        own.set_ylabel("Distance to the optimum")
        pair = right.subplots(1, 2)
        titles = "(b) Zhou & Ji, Figure 1b: regret", "(c) Figure 1c: violation"
        for key, axis, title in zip(PAPER, pair, titles, strict=True):
            (panel,), (frame,), known = restore(key, *gallery.stored())
            panel.draw(axis, frame, known)
            set_limits([axis], [panel])
            draw_zeros(axis, panel)
            axis.set_title(title)
            axis.set_ylabel("Sum over rounds, mean")
            set_ticks(axis, 2.0, size, panel.count_axes)
        for part, axes, columns in ((left, [own], 2), (right, pair, 3)):
            entries = [entry for axis in axes for entry in zip(*axis.get_legend_handles_labels(), strict=True)]
            lines = {label: line for line, label in entries}
            part.legend(lines.values(), lines, loc="outside lower center", frameon=False, ncols=columns)
        for axis in (own, *pair):
            axis.spines[["top", "right"]].set_visible(False)
    return image


def restore(key: str, about: dict[str, Any], rows: pd.DataFrame) -> tuple[list[Any], list[pd.DataFrame], Any]:
    """Panels, their rows and the looks of a stored figure."""
    own, frame = about[key], rows[rows["figure"] == key]
    panels, known = gallery.restore_panels(own), gallery.restore_looks(own)
    parts = [frame[frame["panel"] == i] for i in range(len(panels))]
    return panels, [p.drop(columns="f_star") if p["f_star"].isna().all() else p for p in parts], known


def draw_pair(figure: gallery.PaperFigure, about: dict[str, Any], rows: pd.DataFrame) -> Image:
    """A paper's figure by the letter, and beside it as best known; panels of one quantity have the same axes."""
    panels: list[Any] = []
    frames: list[pd.DataFrame] = []
    looks: list[Any] = []
    readings = [restore(f"{figure.key}_{reading}", about, rows) for reading in WORDS]
    for (letter, letter_rows), (best, best_rows) in zip(*(zip(*one[:2], strict=True) for one in readings), strict=True):
        for words, panel in zip(WORDS.values(), (letter, replace(best, problem=letter.problem)), strict=True):
            panels.append(replace(panel, title=f"{panel.title}, {words}" if panel.title else words.capitalize()))
        frames += [letter_rows, best_rows]
        looks += [one[2] for one in readings]
    size = replace(size_of("double", len(panels)), panel=1.6, tallest=20.0)
    with size.context():
        image, axes = grid(panels, size, 2)
        for axis, panel, frame, known in zip(axes, panels, frames, looks, strict=True):
            panel.draw(axis, frame, known)
        for pair in zip(axes[::2], axes[1::2], strict=True):
            ends = [axis.dataLim.intervalx for axis in pair]
            for axis in pair:
                axis.dataLim.intervalx = min(low for low, _ in ends), max(high for _, high in ends)
        finish(image, axes, panels, size)
    return image


def describe_figures() -> str:
    """The section of docs/papers.md with a picture of each figure."""
    lines = []
    for paper, figures in groupby(gallery.read_figures(), key=lambda figure: figure.paper):
        lines.append(f"### {paper}\n")
        for figure in figures:
            lines.append(f"**Figure {figure.number}.** {figure.says}\n")
            text = f"{paper}, Figure {figure.number}, by the letter and as best known"
            lines.append(f"![{text}](papers/{figure.key}.png)\n")
    return "\n".join(lines)


def in_page(text: str) -> str:
    """docs/papers.md with that section."""
    section = f"<!-- figures -->\n{describe_figures()}\n<!-- end -->"
    return re.sub(r"<!-- figures -->\n.*?<!-- end -->", lambda _: section, text, flags=re.S)


def save(image: Image, path: Path, dpi: int) -> None:
    """Write a PNG without a time stamp."""
    image.savefig(path, dpi=dpi, metadata={"Software": None})


def main(arguments: Sequence[str] | None = None) -> None:
    """Draw all pictures."""
    parser = argparse.ArgumentParser(description="Draw the pictures of README and docs/papers.md.")
    parser.add_argument("--play", action="store_true")
    if parser.parse_args(arguments).play:
        play()
    save(draw_first(), FIRST, 200)
    FOLDER.mkdir(exist_ok=True)
    about, rows = gallery.stored()
    for figure in gallery.read_figures():
        save(draw_pair(figure, about, rows), FOLDER / f"{figure.key}.png", DPI)
    PAPERS.write_text(in_page(PAPERS.read_text(encoding="utf-8")), encoding="utf-8")
    sizes = [path.stat().st_size for path in FOLDER.glob("*.png")]
    print(f"{FIRST.name}, {len(sizes)} figures of papers, {sum(sizes) / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
