"""The pictures of README, docs/papers.md and docs/speed.md, drawn from what is stored in this
folder.

python -m analysis.pictures           draws first.png, field.png, speed.png and papers/*.png in docs/_static
python -m analysis.pictures --field   draws field.png and docs/field/*.png alone, from the bundles
python -m analysis.pictures --speed   draws speed.png alone, from curves.json

README's first picture is what `make demo` draws: the suite `first` is played for it.
docs/_static/papers/ has every figure of the papers, by the letter and as best known, on the same
axes (from the bundles).
"""  # noqa: E501

from __future__ import annotations

import argparse
import json
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path

import numpy as np
from matplotlib.ticker import LogLocator

import cbobench
from analysis.bundles import read_shards
from analysis.field.groups import SIMPLE, is_ours
from analysis.field.numbers import Field, open_fields
from analysis.field.tables import list_solvers
from analysis.folders import DOCS, PUBLISHED
from analysis.markdown import fill_sections
from analysis.papers import gallery
from cbobench.report.figures.figures import MOST, compose, draw_into, find_recipes
from cbobench.report.figures.layout import Image
from cbobench.report.figures.profiles import Profile
from cbobench.report.figures.style import Size, size_of
from cbobench.report.groups import Group
from cbobench.report.load import Run

PAPERS, STATIC = DOCS / "papers.md", DOCS / "_static"
FIRST, FOLDER = STATIC / "first.png", STATIC / "papers"
FIELD, GROUPS_FOLDER = STATIC / "field.png", DOCS / "field"
OWN_COLOURS = {
    "cei": "#0072b2",
    "cei-exact": "#003f6b",
    "scbo": "#009e73",
    "furbo": "#56b4e9",
    "nei": "#332288",
}
RIVAL_COLOURS = [
    "#d55e00",
    "#cc79a7",
    "#e69f00",
    "#882255",
    "#000000",
    "#aa4499",
    "#999933",
    "#661100",
]
CURVES, SPEED = PUBLISHED / "curves.json", STATIC / "speed.png"
# Panels of the picture of curves.json: what is varied, and for which number of inputs.
FINITE_PANELS = (
    ("seeds", 1, "Seeds S"),
    ("actions", 1, "Actions n, d = 1"),
    ("actions", 2, "Actions n, d = 2"),
    ("constraints", 1, "Constraints m"),
    ("rounds", 1, "Rounds T"),
)
DPI, SPEED_DPI = 110, 150
STYLES = {  # of speed.png
    "ckb-ucb": {"color": "#0072b2", "marker": "o"},
    "bare NumPy": {"color": "0.55", "marker": "s", "linestyle": "--"},
    "cei": {"color": "#d55e00", "marker": "^"},
}


def draw_first(folder: Path | str) -> Image:
    """README's first picture: what `make demo` draws of the suite `first`, played into a folder."""
    run = Run(cbobench.run("first", out=folder, cpus=0).folder)
    (_, recipe), size = next(find_recipes("summary")), size_of(None, 1)
    (figure,) = recipe.figures(run, ["simple_regret"])
    with size.context():
        return compose(run, figure, size)[0]


def select_seeds(group: Group, seeds: frozenset[int]) -> Group:
    """The group of some of the seeds."""
    return replace(
        group,
        expected_seeds=group.expected_seeds & seeds,
        rows=group.rows[np.isin(group.seeds, [*seeds])],
        failures=group.failures & seeds,
    )


@dataclass(frozen=True)
class SharedProfile(Profile):
    """A profile over the problems that every method has, and the seeds that all have on one,
    against COCO's targets where regret has one unit on all problems.
    """

    absolute: bool = False

    def is_absolute(self, run: Run, groups: Sequence[Group]) -> bool:
        return self.absolute

    def groups(self, run: Run) -> list[Group]:
        every = [group for group in super().groups(run) if group.n]
        counts = Counter(group.problem for group in every)
        most = max(counts.values())
        groups = [group for group in every if counts[group.problem] == most]
        shared = frozenset.intersection(*(group.expected_seeds for group in groups))
        return [select_seeds(group, shared) for group in groups]


def place_profiles(field: Field, size: Size, panels: Mapping[str, Sequence[str]]) -> Image:
    """COCO's data profile of a group of docs/field, once for each panel's methods, by title, over
    the seeds that these share.
    """
    horizon = max(group.horizon for group in field.groups)
    # A method looks the same in every panel.
    colours, free = OWN_COLOURS.copy(), iter(RIVAL_COLOURS)
    with size.context():
        image = Image(size, 2.9)
        axes = image.subplots(1, len(panels), sharey=True, squeeze=False)[0]
        for axis, (title, names) in zip(axes, panels.items(), strict=True):
            titles = [field.methods[name][0].algorithm for name in names]
            profile = SharedProfile("data", algorithms=titles, absolute=field.is_alike)
            draw_into(field.run, [axis], [profile], titles[:MOST])
            limits = horizon / 8, 1.02 * horizon
            axis.set(xlabel="Evaluations", ylabel="", title=title, xscale="linear", xlim=limits)
            axis.spines[["top", "right"]].set_visible(False)
            lines, labels = axis.get_legend_handles_labels()
            # A grey line is one of "6 others", which the first of them names.
            first = next((i for i, one in enumerate(labels) if one.endswith("others")), len(labels))
            for line, label in zip(lines[:first], labels, strict=False):
                name = label.partition("[")[0].partition(" ")[0]
                if name not in colours:
                    colours[name] = next(free)
                colour = colours[name]
                line.set(color=colour, markeredgecolor=colour)
                if line.get_markerfacecolor() not in ("white", "none"):
                    line.set_markerfacecolor(colour)
            place = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0), "frameon": False}
            axis.legend(lines[: first + 1], labels[: first + 1], **place)
        axes[0].set_ylabel("Share of targets reached")
    return image


def draw_group(field: Field) -> Image:
    """The picture of a page of docs/field: ours and the best rivals in colour, all others grey."""
    first = [name for name in field.methods if is_ours(name)]
    ranked = field.rank(field.section.tables[0][0]).index
    names = [*dict.fromkeys([*first, *list_solvers(field).index, *ranked])]
    return place_profiles(field, size_of("double", 1), {"": names})


def draw_field(fields: Mapping[str, Field]) -> Image:
    """README's picture, of the held-out group: ours beside every solver that played all of it; then
    beside the best of these and those that played a part, on that part.
    """
    held = fields["held_out"]
    own = [name for name in held.methods if is_ours(name)]
    rivals = [name for name in list_solvers(held).index if name not in own]
    partial = [name for name in held.methods if name not in held.rank(SIMPLE).index]
    few = rivals[: MOST - len(own) - len(partial)]
    titled = {}
    for names in ([*own, *rivals], [*own, *few, *partial]):
        played = ({group.problem for group in held.methods[name]} for name in names)
        titled[f"{len(set.intersection(*played))} problems"] = names
    return place_profiles(held, size_of("double", 2), titled)


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


def describe_figures() -> str:
    """The section of docs/papers.md with a picture of each figure."""
    lines = []
    for paper, figures in groupby(gallery.read_figures(), key=lambda figure: figure.paper):
        lines.append(f"### {paper}\n")
        for figure in figures:
            lines.append(f"**Figure {figure.number}.** {figure.says}\n")
            text = f"{paper}, Figure {figure.number}, by the letter and as best known"
            lines.append(f"![{text}](_static/papers/{figure.key}.png)\n")
            shown = f"Left by the letter (`{figure.suite}`)"
            lines.append(f"{shown}, right as best known (`{figure.suite}_fit`).\n")
    return "\n".join(lines)


def in_page(text: str) -> str:
    """docs/papers.md with that section."""
    return fill_sections(text, lambda name: describe_figures() if name == "figures" else None)


def draw_papers() -> None:
    """Draw every figure of the papers, and show them in docs/papers.md."""
    FOLDER.mkdir(exist_ok=True)
    for figure in gallery.read_figures():
        save(gallery.draw_pair(figure), FOLDER / f"{figure.key}.png", DPI)
    PAPERS.write_text(in_page(PAPERS.read_text(encoding="utf-8")), encoding="utf-8")


def save(image: Image, path: Path, dpi: int) -> None:
    """Write a PNG without a time stamp."""
    image.savefig(path, dpi=dpi, metadata={"Software": None})


def main(arguments: Sequence[str] | None = None) -> None:
    """Draw all pictures."""
    parser = argparse.ArgumentParser(
        description="Draw the pictures of README, docs/papers.md and docs/speed.md."
    )
    parser.add_argument("--speed", action="store_true")
    parser.add_argument("--field", action="store_true")
    given = parser.parse_args(arguments)
    is_one = given.speed or given.field
    if given.speed or not is_one:
        save(draw_speed(), SPEED, SPEED_DPI)
    if given.field or not is_one:
        fields = open_fields(read_shards("field"))
        save(draw_field(fields), FIELD, 200)
        for name, field in fields.items():
            save(draw_group(field), GROUPS_FOLDER / f"{name}.png", DPI)
    if is_one:
        return
    with tempfile.TemporaryDirectory() as place:
        save(draw_first(place), FIRST, 200)
    draw_papers()
    sizes = [path.stat().st_size for path in FOLDER.glob("*.png")]
    print(f"{FIRST.name}, {len(sizes)} figures of papers, {sum(sizes) / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
