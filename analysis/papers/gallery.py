"""The papers' figures as pictures: stored as the rows behind them, drawn again wherever a page
shows them.

python -m analysis.papers.gallery

It takes the bundles of the papers' suites, and writes gallery.parquet (rows) and gallery.json (the
panels, and their suites). Curves keep at most `POINTS` rounds. The site draws
them with `draw`, and `pictures.py` draws those of docs/papers.md.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import numpy as np
import pandas as pd
import yaml

from analysis.folders import PROSE, PUBLISHED
from analysis.papers.bundles import bundle_of
from cbobench.report.figures.curves import Boxes, Panel
from cbobench.report.figures.figures import Figure, find_recipes
from cbobench.report.figures.layout import finish, grid
from cbobench.report.figures.planes import TradeOff
from cbobench.report.figures.style import Look, looks, size_of
from cbobench.report.load import Run

ROWS, ABOUT = PUBLISHED / "gallery.parquet", PUBLISHED / "gallery.json"
FIGURES = PROSE / "figures.yaml"
POINTS = 120
KINDS = {kind.__name__: kind for kind in (Panel, Boxes, TradeOff)}
READINGS = {"letter": "by the letter", "best": "as best known"}


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
        return self.suite.partition("_2022")[0] + "_2022"


def read_figures() -> tuple[PaperFigure, ...]:
    """The 21 figures, in the papers' order."""
    entries = yaml.safe_load(FIGURES.read_text(encoding="utf-8"))
    return tuple(
        PaperFigure(
            **entry | {"claims": tuple((claim, problem) for claim, problem in entry["claims"])}
        )
        for entry in entries
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
            panel = replace(panel, algorithms=None, titles=tuple(reversed(first.values())))
        panels.append(panel)
    return replace(made, panels=panels)


def thin(frame: pd.DataFrame) -> pd.DataFrame:
    """At most `POINTS` rounds of every curve, the last one included."""
    if "t" not in frame or "seed" in frame:
        return frame
    kept = []
    for _, curve in frame.groupby("algorithm", sort=False):
        where = np.unique(
            np.linspace(0, len(curve) - 1, min(POINTS, len(curve))).round().astype(int)
        )
        kept.append(curve.iloc[where])
    return pd.concat(kept)


def collect(run: Run, figure: PaperFigure) -> tuple[dict[str, Any], pd.DataFrame]:
    """A figure of a run, as it is stored."""
    made, known = find(run, figure), looks(run.full_record)
    panels, frames = [], []
    for i, panel in enumerate(made.panels):
        # What is not compared is how quantities are called, which JSON does not hold.
        values = {one.name: getattr(panel, one.name) for one in fields(panel) if one.compare}
        panels.append({"kind": type(panel).__name__, **values})
        frames.append(thin(panel.data(run)).assign(panel=i))
    rows = pd.concat(frames)
    shown = {*rows["algorithm"]}
    stored_looks = {title: asdict(look) for title, look in known.items() if title in shown}
    return {
        "caption": made.caption,
        "columns": made.columns,
        "panels": panels,
        "looks": stored_looks,
    }, rows


def collect_all() -> tuple[dict[str, Any], pd.DataFrame]:
    """Every figure in both readings."""
    about, rows = {}, []
    for figure in read_figures():
        for reading in READINGS:
            name = figure.suite + ("_fit" if reading == "best" else "")
            key = f"{figure.key}_{reading}"
            about[key], frame = collect(Run(str(bundle_of(name))), figure)
            about[key]["suite"] = name
            rows.append(frame.assign(figure=key))
    found = pd.concat(rows, ignore_index=True)
    numeric = found.select_dtypes("float64").columns
    return about, found.astype(dict.fromkeys(numeric, "float32"))


def _with_tuples(stored: dict[str, Any]) -> dict[str, Any]:
    """What was stored as JSON, with the tuples that it made lists of."""
    return {k: tuple(v) if isinstance(v, list) else v for k, v in stored.items()}


def restore(
    key: str, about: dict[str, Any], rows: pd.DataFrame
) -> tuple[list[Any], list[pd.DataFrame], dict[str, Look]]:
    """A stored figure: its panels, the rows of each, and how each method is shown, by title."""
    panels = []
    for one in about[key]["panels"]:
        values = _with_tuples(one)
        panels.append(KINDS[values.pop("kind")](**values))
    known = {title: Look(**_with_tuples(look)) for title, look in about[key]["looks"].items()}
    frame = rows[rows["figure"] == key]
    parts = [frame[frame["panel"] == i] for i in range(len(panels))]
    return (
        panels,
        [p.drop(columns="f_star") if p["f_star"].isna().all() else p for p in parts],
        known,
    )


def draw(key: str, about: dict[str, Any], rows: pd.DataFrame) -> Any:
    """A stored figure as a matplotlib image."""
    panels, frames, known = restore(key, about, rows)
    size = size_of("double" if len(panels) > 1 or len(known) > 6 else "single", len(panels))
    with size.context():
        image, axes = grid(panels, size, about[key]["columns"])
        for axis, panel, frame in zip(axes, panels, frames, strict=True):
            panel.draw(axis, frame, known)
        finish(image, axes, panels, size)
    return image


def stored() -> tuple[dict[str, Any], pd.DataFrame]:
    """What is in the repository."""
    return json.loads(ABOUT.read_text(encoding="utf-8")), pd.read_parquet(ROWS)


def entries() -> Iterator[tuple[PaperFigure, str]]:
    """Every figure with its reading."""
    return ((figure, reading) for figure in read_figures() for reading in READINGS)


def main() -> None:
    """Store the papers' figures."""
    about, rows = collect_all()
    ABOUT.write_text(json.dumps(about, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    rows.to_parquet(ROWS, compression="zstd", index=False)
    print(
        f"{len(about)} figures, {len(rows):,} rows, "
        f"{(ROWS.stat().st_size + ABOUT.stat().st_size) / 1e6:.2f} MB"
    )


if __name__ == "__main__":
    main()
