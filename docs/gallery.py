"""The papers' figures as pictures: stored as the rows behind them, drawn again wherever a page shows them.

python docs/gallery.py [--out RUNS]

It takes the runs of `make paper-figures` as they are, and writes docs/gallery.parquet (rows) and docs/gallery.json (what
the panels are, and where they come from). Curves keep at most `POINTS` rounds. The site draws them with `draw`.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cbobench.report.curves import Boxes, Panel
from cbobench.report.figures import Figure, find_recipes
from cbobench.report.layout import finish, grid
from cbobench.report.load import Run
from cbobench.report.planes import TradeOff
from cbobench.report.style import Look, looks, size_of

HERE = Path(__file__).parent
ROWS, ABOUT = HERE / "gallery.parquet", HERE / "gallery.json"
POINTS = 120
KINDS = {kind.__name__: kind for kind in (Panel, Boxes, TradeOff)}
READINGS = ("letter", "best")


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


ZHOU, SHI, GUO = "Zhou & Ji (2022)", "Shi & Eryilmaz (2022)", "Guo, Zhu & Liu (2022)"
SENSORS, STOCKS, HALF = "light sensors", "stocks", "h = B/2"
QUIET, NOISY = "pocket, noiseless g", "pocket, noisy g"
RATES, NOISY_RATES = "rate allocation, noiseless g", "rate allocation, noisy g"
EPOCHS = "Which action an epoch begins with: under a flat prior all tie, and a drawn one costs an epoch of exploring."
WIDTHS = "The width: the theorems' widths exceed the range of f here, so that every method only explores."
FIGURES = (
    PaperFigure(ZHOU, "1a", "zhou_ji_2022_synthetic",
                "Regret over 10,000 rounds, means of 50 trials: CKB-TS and CKB-Rand gain on both safe methods, CKB-UCB is "
                "like them. In the text: N = 3.25, 2.9, 5 for UCB, TS, Rand, 0.3 for StageOpt, 0 for SGP-UCB.",
                (("ZJ2", HALF), ("ZJ10", HALF), ("ZJ3", HALF), ("ZJ3N", HALF)),
                "λ: with the noise variance R² the numbers N appear; with the theorem's 1 + 2/T they do not. How long the "
                "safe methods explore (T₀, T′) decides the order of regret.", HALF),
    PaperFigure(ZHOU, "1b", "zhou_ji_2022_light",
                "Regret over 1,000 rounds: CKB-Rand and StageOpt are best, CKB-TS is worse than CKB-UCB. In the text: no "
                "violation by CKB-UCB, 38 rounds by CKB-Rand.",
                (("ZJ4", SENSORS), ("ZJ10", SENSORS), ("ZJ4N", SENSORS)),
                "How the readings are normalised, which the paper does not say: z-scores make all prior variances equal, so "
                "that the first action is drawn."),
    PaperFigure(ZHOU, "1c", "zhou_ji_2022_light", "V⁺ of the three CKB methods: sublinear.", (("ZJ6", SENSORS),),
                "The same normalisation: z-scores keep CKB-UCB violating to the end."),
    PaperFigure(ZHOU, "2a", "zhou_ji_2022_stocks",
                "Regret over 10,000 rounds under heavy tails: all three CKB methods gain on both safe methods. In the text: "
                "N = 47 for UCB, 21 for Rand.", (("ZJ5", STOCKS), ("ZJ5N", STOCKS)),
                "Normalisation and width: the order holds over each stock's maximum at less than half the theorem's width."),
    PaperFigure(ZHOU, "2b", "zhou_ji_2022_stocks", "The same as an average per round.", (("ZJ5", STOCKS),),
                "As Figure 2a."),
    PaperFigure(ZHOU, "2c", "zhou_ji_2022_stocks", "V⁺ of the three CKB methods: sublinear.", (("ZJ6", STOCKS),),
                "Nothing: it is sublinear in every reading."),
    PaperFigure(SHI, "1", "shi_eryilmaz_2022_tradeoff",
                "Mean regret against violation of Algorithm 2 for five choices of L and S, 20 runs: three of them, joined by "
                "arrows, trade one for the other.", (("SE2", QUIET),), EPOCHS),
    PaperFigure(SHI, "2", "shi_eryilmaz_2022_pocket_noiseless",
                "Box plots of R/t and V/t over 100 runs: those of Algorithm 2 tend to 0, those of OCO and ADMMBO stay.",
                (("SE1", QUIET), ("SE1B", QUIET)), EPOCHS + " OCO moves with its steps, which are ours."),
    PaperFigure(SHI, "3", "shi_eryilmaz_2022_pocket_noiseless", "The means of Figure 2 in the first 100 rounds.",
                (("SE1", QUIET), ("SE1B", QUIET)), "As Figure 2."),
    PaperFigure(SHI, "4", "shi_eryilmaz_2022_pocket_noisy",
                "As Figure 2 with noise on g: Algorithm 3 tends to 0 more slowly than Algorithm 2.", (("SE3", QUIET),),
                EPOCHS),
    PaperFigure(SHI, "5", "shi_eryilmaz_2022_pocket_noisy", "The means of Figure 4.", (("SE3", QUIET),), "As Figure 4."),
    PaperFigure(SHI, "6", "shi_eryilmaz_2022_rate_noiseless",
                "Box plots of utility and V/t over 100 runs: V/t of Algorithm 2 tends to 0; OCO and ADMMBO earn more with "
                "V/t away from 0.", (("SE4", RATES), ("SE4B", RATES)),
                "OCO's steps and the utilities' constants, which the paper does not state."),
    PaperFigure(SHI, "7", "shi_eryilmaz_2022_rate_noiseless", "The means of Figure 6.", (("SE4", RATES), ("SE4B", RATES)),
                "As Figure 6."),
    PaperFigure(SHI, "8", "shi_eryilmaz_2022_rate_noisy", "As Figure 6 with noise on g and Algorithm 3.",
                (("SE4", NOISY_RATES), ("SE4B", NOISY_RATES)), "As Figure 6."),
    PaperFigure(SHI, "9", "shi_eryilmaz_2022_rate_noisy", "The means of Figure 8.",
                (("SE4", NOISY_RATES), ("SE4B", NOISY_RATES)), "As Figure 6."),
    *(PaperFigure(GUO, f"{n}{letter}", f"guo_zhu_liu_2022_{suite}", says + what, ((claim, label),), decides)
      for n, suite, claim, label, says, decides in (
          (1, "classical", "GZL1", "pocket", "RPOL-UCB is best: ",
           f"{WIDTHS} At constant widths RPOL-UCB and CONFIG choose almost alike."),
          (2, "delayed", "GZL2", "pocket, delayed", "With feedback after 15 rounds in the mean, RPOL-CensoredUCB is best: ",
           f"{WIDTHS} Then, what the baselines do with feedback that is under way."),
          (3, "drift", "GZL3", "pocket, drifting", "With functions that change after rounds 100 and 300, RPOL-SWUCB is best: ",
           f"{WIDTHS} Then, the term Γ, which lifts every constraint after a change, and the window."))
      for letter, what in (("a", "average regret."), ("b", "average V⁺."))),
)  # fmt: skip


def find(run: Run, figure: PaperFigure) -> Figure:
    """The recipe's figure of that number."""
    (_, module), *_ = find_recipes(figure.recipe)
    pattern = re.compile(rf"_fig{figure.number}(?![0-9a-z]){'.*h_B_2' if figure.label else ''}")
    return next(made for made in module.figures(run) if pattern.search(made.name) and "_variants" not in made.name)


def thin(frame: pd.DataFrame) -> pd.DataFrame:
    """At most `POINTS` rounds of every curve, the last one included."""
    if "t" not in frame or "seed" in frame:
        return frame
    kept = []
    for _, curve in frame.groupby("algorithm", sort=False):
        where = np.unique(np.linspace(0, len(curve) - 1, min(POINTS, len(curve))).round().astype(int))
        kept.append(curve.iloc[where])
    return pd.concat(kept)


def collect(run: Run, figure: PaperFigure) -> tuple[dict[str, Any], pd.DataFrame]:
    """A figure of a run, as it is stored."""
    made, known = find(run, figure), looks(run.whole)
    panels, frames, shown = [], [], set[str]()
    for i, panel in enumerate(made.panels):
        frame = thin(panel.data(run))
        values = {field.name: getattr(panel, field.name) for field in fields(panel)}
        panels.append(
            {"kind": type(panel).__name__, **{k: list(v) if isinstance(v, tuple) else v for k, v in values.items()}}
        )
        frames.append(frame.assign(panel=i))
        shown |= {*frame["algorithm"]}
    about = {
        "caption": made.caption, "columns": made.columns, "panels": panels,
        "looks": {title: asdict(look) for title, look in known.items() if title in shown},
        "seeds": max((run.expected_of(panel.problem)[title] for panel in made.panels for title in panel.wanted(run)), default=0),
    }  # fmt: skip
    return about, pd.concat(frames)


def collect_all(runs: Path) -> tuple[dict[str, Any], pd.DataFrame]:
    """Every figure in both readings."""
    about, rows = {}, []
    for figure in FIGURES:
        for reading in READINGS:
            name = figure.suite + ("_fit" if reading == "best" else "")
            key = f"{figure.key}_{reading}"
            about[key], frame = collect(Run(str(runs / name)), figure)
            about[key]["suite"] = name
            rows.append(frame.assign(figure=key))
    found = pd.concat(rows, ignore_index=True)
    numeric = found.select_dtypes("float64").columns
    return about, found.astype(dict.fromkeys(numeric, "float32"))


def draw(key: str, about: dict[str, Any], rows: pd.DataFrame) -> Any:
    """A stored figure as a matplotlib image, to be closed by the caller."""
    frame, own = rows[rows["figure"] == key], about[key]
    panels = []
    for one in own["panels"]:
        values = {k: tuple(v) if isinstance(v, list) else v for k, v in one.items() if k != "kind"}
        panels.append(KINDS[one["kind"]](**values))
    known = {title: Look(**{k: tuple(v) if isinstance(v, list) else v for k, v in look.items()})
             for title, look in own["looks"].items()}  # fmt: skip
    size = size_of("double" if len(panels) > 1 or len(known) > 6 else "single", len(panels))
    with size.context():
        image, axes = grid(panels, size, own["columns"])
        for i, (axis, panel) in enumerate(zip(axes, panels, strict=True)):
            some = frame[frame["panel"] == i]
            absent = [name for name in some.columns.difference(["low", "high"]) if some[name].isna().all()]
            panel.draw(axis, some.drop(columns=absent), known)
        finish(image, axes, panels, size)
    return image


def stored() -> tuple[dict[str, Any], pd.DataFrame]:
    """What is in the repository."""
    return json.loads(ABOUT.read_text(encoding="utf-8")), pd.read_parquet(ROWS)


def entries() -> Iterator[tuple[PaperFigure, str]]:
    """Every figure with its reading."""
    return ((figure, reading) for figure in FIGURES for reading in READINGS)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Store the papers' figures.")
    parser.add_argument("--out", type=Path, default=Path("runs/paper"))
    options = parser.parse_args()
    about, rows = collect_all(options.out)
    ABOUT.write_text(json.dumps(about, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    rows.to_parquet(ROWS, compression="zstd", index=False)
    print(f"{len(about)} figures, {len(rows):,} rows, {(ROWS.stat().st_size + ABOUT.stat().st_size) / 1e6:.2f} MB")
