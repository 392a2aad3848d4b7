"""The pictures of README, docs/papers.md and docs/speed.md, drawn from what is stored in this
folder.

python -m docs.results.pictures           draws first.png, field.png, speed.png and papers/*.png in docs/_static
python -m docs.results.pictures --field   draws field.png alone, from the bundles
python -m docs.results.pictures --speed   draws speed.png alone, from curves.json
python -m docs.results.pictures --play    plays README's suite, stores it as readme/first.zip, and draws

README's picture shows simple regret of its own suite (readme/first.zip) beside regret and violation
of a paper's figure, as best known; its caption says what the letter of the paper gives
(`compare_by_letter`). docs/_static/papers/ has every figure of the papers, by the letter and as
best known, on the same axes (from gallery.parquet).
"""  # noqa: E501

from __future__ import annotations

import argparse
import json
import re
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.ticker import LogLocator

import cbobench
from cbobench.report.canvas import Image
from cbobench.report.curves import Panel
from cbobench.report.figures import draw_into
from cbobench.report.layout import draw_zeros, finish, grid, set_limits, set_ticks
from cbobench.report.load import Run
from cbobench.report.profiles import Profile
from cbobench.report.style import size_of
from cbobench.results.export import export
from docs.results import gallery
from docs.results.markdown import fill_sections
from docs.results.paper_figures import warn_of_age

HERE = Path(__file__).parent
DOCS = HERE.parent
README, PAPERS, STATIC = DOCS.parent / "README.md", DOCS / "papers.md", DOCS / "_static"
FIRST, BUNDLE, FOLDER = STATIC / "first.png", HERE / "readme" / "first.zip", STATIC / "papers"
FIELD, FIELD_BUNDLES = (
    STATIC / "field.png",
    [HERE / f"low-{part}.zip" for part in ("ours", "light")],
)
CURVES, SPEED = HERE / "curves.json", STATIC / "speed.png"
# Panels of the picture of curves.json: what is varied, and for which number of inputs.
FINITE_PANELS = (
    ("seeds", 1, "Seeds S"),
    ("actions", 1, "Actions n, d = 1"),
    ("actions", 2, "Actions n, d = 2"),
    ("constraints", 1, "Constraints m"),
    ("rounds", 1, "Rounds T"),
)
PAPER = "zhou_ji_fig1b_best", "zhou_ji_fig1c_best"  # regret and violation in README's picture
DPI, SPEED_DPI = 110, 150
STYLES = {  # of speed.png
    "ckb-ucb": {"color": "#0072b2", "marker": "o"},
    "bare NumPy": {"color": "0.55", "marker": "s", "linestyle": "--"},
    "cei": {"color": "#d55e00", "marker": "^"},
}


def read_suite() -> str:
    """README's suite."""
    return re.findall(
        r"^```yaml\n(.*?)^```", README.read_text(encoding="utf-8"), flags=re.M | re.S
    )[0]


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
        halves: Any = image.subfigures(1, 2, width_ratios=[1, 2])
        left, right = halves
        own = left.subplots()
        run = Run(BUNDLE)
        # the picture is of what was played; a test plays it again
        run.__dict__["stale"] = frozenset()
        draw_into(
            run, [own], [Panel("simple_regret", "gramacy", None, statistic="median", log="y")]
        )
        own.set_title("(a) simple regret")
        left.suptitle("Suite first.yaml", fontsize="medium")
        own.set_ylabel("Distance to the optimum")
        pair = right.subplots(1, 2)
        right.suptitle(
            "Zhou & Ji (2022), settings that come nearest to the paper", fontsize="medium"
        )
        titles = "(b) Figure 1b: regret", "(c) Figure 1c: violation"
        for key, axis, title in zip(PAPER, pair, titles, strict=True):
            (panel,), (frame,), known = gallery.restore(key, *gallery.stored())
            panel.draw(axis, frame, known)
            set_limits([axis], [panel])
            draw_zeros(axis, panel)
            axis.set_title(title)
            axis.set_ylabel("Sum over rounds, mean")
            set_ticks(axis, 2.0, size, panel.count_axes)
        for part, axes, columns in ((left, [own], 2), (right, pair, 3)):
            entries = [
                entry
                for axis in axes
                for entry in zip(*axis.get_legend_handles_labels(), strict=True)
            ]
            lines = {label: line for line, label in entries}
            part.legend(
                lines.values(), lines, loc="outside lower center", frameon=False, ncols=columns
            )
        for axis in (own, *pair):
            axis.spines[["top", "right"]].set_visible(False)
    return image


def compare_by_letter() -> float:
    """How many times StageOpt's final mean regret CKB-UCB has in README's figure, by the letter of
    the paper.
    """
    _, rows = gallery.stored()
    curves = rows[rows["figure"] == PAPER[0].replace("_best", "_letter")]
    final = curves[curves["t"] == curves["t"].max()].set_index("label")["mean"]
    return float(final["CKB-UCB"] / final["StageOpt"])


def draw_field() -> Image:
    """COCO's data profile over the seven problems without noise of all methods that have ten
    seeds.
    """
    size = replace(size_of("double", 1), dpi=200)
    with size.context():
        image = Image(size, 2.6)
        axis = image.subplots()
        run = Run.union([Run(bundle) for bundle in FIELD_BUNDLES])
        run.__dict__["stale"] = frozenset()  # docs/field.md says which code played and confirmed it
        draw_into(run, [axis], [Profile("data")])
        axis.set(
            xlabel="Evaluations, of which the first 10 are the same for all",
            title="",
            xscale="linear",
            xlim=(8, 61),
        )
        axis.spines[["top", "right"]].set_visible(False)
        # A grey line is one of "3 others", which the first of them names.
        lines, labels = axis.get_legend_handles_labels()
        last = next(
            (i for i, label in enumerate(labels) if label.endswith("others")), len(labels) - 1
        )
        image.legend(
            lines[: last + 1], labels[: last + 1], loc="outside right center", frameon=False
        )
    return image


def draw_speed() -> Image:
    """The curves of what a round costs: on a finite set beside bare NumPy, and on a box."""
    found = json.loads(CURVES.read_text(encoding="utf-8"))
    panels: list[tuple[str, str, list[float], dict[str, list[float]]]] = []
    for curve, inputs, label in FINITE_PANELS:
        of_curve = [
            row for row in found["finite"] if (row["curve"], row["inputs"]) == (curve, inputs)
        ]
        lines = {
            "ckb-ucb": [row["us"] for row in of_curve],
            "bare NumPy": [row.get("bare") for row in of_curve],
        }
        panels.append(("µs per seed and round", label, [row[curve] for row in of_curve], lines))
    for curve, column, label in (
        ("inputs", "inputs", "Inputs d"),
        ("observations", "rounds", "Observations n"),
    ):
        of_curve = [row for row in found["box"] if row["curve"] == curve]
        panels.append(
            (
                "ms a round",
                label,
                [row[column] for row in of_curve],
                {"cei": [row["ms"] for row in of_curve]},
            )
        )
    size = size_of("double", len(panels))
    with size.context():
        image = Image(size, 3.6)
        axes = image.subplots(2, 4).flat
        for axis, (unit, label, x, lines) in zip(axes, panels, strict=False):
            measured = {name: y for name, y in lines.items() if None not in y}
            for name, y in measured.items():
                axis.loglog(x, y, label=name, **STYLES[name])
            axis.set_xlabel(label)
            axis.set_ylabel(unit)
            axis.set_xticks(
                x, [f"{value:,}" if value < 1e4 else f"{value / 1e3:g}k" for value in x]
            )
            axis.set_ylim(
                min(map(min, measured.values())) / 2, 2 * max(map(max, measured.values()))
            )
            axis.yaxis.set_major_locator(LogLocator(subs=(1.0, 3.0)))
            axis.yaxis.set_major_formatter(lambda value, _: f"{value:,g}")
            axis.minorticks_off()
            axis.tick_params(labelsize="small")
            axis.spines[["top", "right"]].set_visible(False)
        legend = axes[len(panels)]
        legend.axis("off")
        entries = {
            label: line
            for axis in axes
            for line, label in zip(*axis.get_legend_handles_labels(), strict=True)
        }
        legend.legend(entries.values(), entries, loc="center", frameon=False)
    return image


def draw_pair(figure: gallery.PaperFigure, about: dict[str, Any], rows: pd.DataFrame) -> Image:
    """A paper's figure by the letter, and beside it as best known; panels of one quantity have the
    same axes.
    """
    panels: list[Any] = []
    frames: list[pd.DataFrame] = []
    looks: list[Any] = []
    readings = [
        gallery.restore(f"{figure.key}_{reading}", about, rows) for reading in gallery.READINGS
    ]
    for (letter, letter_rows), (best, best_rows) in zip(
        *(zip(*one[:2], strict=True) for one in readings), strict=True
    ):
        both = letter, replace(best, problem=letter.problem)
        for words, panel in zip(gallery.READINGS.values(), both, strict=True):
            panels.append(
                replace(
                    panel, title=f"{panel.title}, {words}" if panel.title else words.capitalize()
                )
            )
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
    lines = [note] if (note := warn_of_age(gallery.origin())) else []
    for paper, figures in groupby(gallery.read_figures(), key=lambda figure: figure.paper):
        lines.append(f"### {paper}\n")
        for figure in figures:
            lines.append(f"**Figure {figure.number}.** {figure.says}\n")
            text = f"{paper}, Figure {figure.number}, by the letter and as best known"
            lines.append(f"![{text}](_static/papers/{figure.key}.png)\n")
    return "\n".join(lines)


def in_page(text: str) -> str:
    """docs/papers.md with that section."""
    return fill_sections(text, lambda name: describe_figures() if name == "figures" else None)


def save(image: Image, path: Path, dpi: int) -> None:
    """Write a PNG without a time stamp."""
    image.savefig(path, dpi=dpi, metadata={"Software": None})


def main(arguments: Sequence[str] | None = None) -> None:
    """Draw all pictures."""
    parser = argparse.ArgumentParser(
        description="Draw the pictures of README, docs/papers.md and docs/speed.md."
    )
    parser.add_argument("--play", action="store_true")
    parser.add_argument("--speed", action="store_true")
    parser.add_argument("--field", action="store_true")
    given = parser.parse_args(arguments)
    is_one = given.speed or given.field
    if given.speed or not is_one:
        save(draw_speed(), SPEED, SPEED_DPI)
    if given.field or not is_one:
        save(draw_field(), FIELD, 200)
    if is_one:
        return
    if given.play:
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
