"""The papers' figures, drawn from the bundles of their suites: by the letter, and beside it as best
known.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

import yaml

from analysis.bundles import bundle_of
from analysis.folders import PROSE
from analysis.papers.figures import recipe_of
from cbobench.report.figures.curves import Panel
from cbobench.report.figures.figures import Figure, find_recipes
from cbobench.report.figures.layout import Image, finish, grid
from cbobench.report.figures.style import looks, size_of
from cbobench.report.load import Run

FIGURES = PROSE / "figures.yaml"
READINGS = {"": "by the letter", "_fit": "as best known"}
"""By how the names of their suites end."""


@dataclass(frozen=True)
class PaperFigure:
    """One of the papers' figures.

    Attributes:
        paper, number: as cited.
        suite: by the letter; the one of the nearest reading is called NAME_fit.
        says: what the paper's figure shows, in our words.
        claims: (claim, problem), as docs/reproduction.md names them.
        decides: what the difference comes from.
        label: of the problem, where the suite has several.
    """

    paper: str
    number: str
    suite: str
    says: str
    claims: tuple[tuple[str, str], ...]
    decides: str
    label: str = ""

    @property
    def key(self) -> str:
        """A short name for files and anchors."""
        return f"{self.suite.partition('_2022')[0]}_fig{self.number}"

    @property
    def recipe(self) -> str:
        """The recipe that draws it."""
        return recipe_of(self.suite)


def read_figures() -> tuple[PaperFigure, ...]:
    """The 21 figures, in the papers' order."""
    entries = yaml.safe_load(FIGURES.read_text(encoding="utf-8"))
    return tuple(
        PaperFigure(**entry | {"claims": tuple(map(tuple, entry["claims"]))}) for entry in entries
    )


def find(run: Run, figure: PaperFigure) -> Figure:
    """The recipe's figure of that number, with the first variant of every method."""
    (_, module), *_ = find_recipes(figure.recipe)
    pattern = re.compile(rf"_fig{figure.number}(?![0-9a-z]){'.*h_B_2' if figure.label else ''}")
    made = next(
        one
        for one in module.figures(run)
        if pattern.search(one.name) and "_variants" not in one.name
    )
    names = run.record.variants("algorithms")
    panels: list[Any] = []
    for panel in made.panels:
        if isinstance(panel, Panel):
            first = {names[title].name: title for title in reversed(panel.algorithm_titles(run))}
            panel = replace(panel, algorithms=tuple(reversed(first.values())))
        panels.append(panel)
    return replace(made, panels=panels)


def draw_pair(figure: PaperFigure) -> Image:
    """A paper's figure by the letter, and beside it as best known; panels of one quantity have the
    same axes.
    """
    runs = [Run(str(bundle_of(f"{figure.suite}{ending}"))) for ending in READINGS]
    panels: list[Any] = []
    drawn: list[tuple[Any, ...]] = []
    for pair in zip(*(find(run, figure).panels for run in runs), strict=True):
        for run, panel, words in zip(runs, pair, READINGS.values(), strict=True):
            title = f"{panel.title}, {words}" if panel.title else words.capitalize()
            # Both are of one problem, however the suites set it: so they are laid out together.
            panels.append(replace(panel, title=title, problem=pair[0].problem))
            drawn.append((panel.data(run), looks(run.full_record)))
    size = replace(size_of("double", len(panels)), panel=1.6, tallest=20.0)
    with size.context():
        image, axes = grid(panels, size, 2)
        for axis, panel, (rows, known) in zip(axes, panels, drawn, strict=True):
            panel.draw(axis, rows, known)
        for two in zip(axes[::2], axes[1::2], strict=True):
            lows, highs = zip(*(axis.dataLim.intervalx for axis in two), strict=True)
            for axis in two:
                axis.dataLim.intervalx = min(lows), max(highs)
        finish(image, axes, panels, size)
    return image
