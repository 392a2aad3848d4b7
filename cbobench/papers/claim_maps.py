"""Where a claim holds: a map per claim and suite of its verdicts over the settings swept, with what
they cost.
"""

from __future__ import annotations

import csv
import itertools
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cbobench.papers.claims import Finding, format_value
from cbobench.papers.evidence import Verdict
from cbobench.report.formats import escape_formula
from cbobench.report.layout import save
from cbobench.report.style import SIZES, use_fonts_for
from cbobench.words import count_noun

# colour and symbol, for readers who cannot tell the colours
VERDICT_STYLES: dict[Verdict, tuple[str, str]] = {
    "reproduced": ("#56B4E9", "+"),
    "stronger than claimed": ("#0072B2", "++"),
    "reproduced in part": ("#F0E442", "±"),
    "contradicted": ("#D55E00", "−"),
    "cannot tell": ("0.88", "?"),
}
WORDS = {
    "beta": "width β",
    "c": "factor on OCO's steps",
    "scale": "scale of OCO",
    "beta_scale": "factor on the width β",
    "lam": "noise variance of the model, λ",
    "gain": "information gain γ",
    "R": "noise bound R",
    "B": "norm bound B",
    "G": "norm bound G",
    "h": "threshold h",
    "h_of": "B of h = B/2",
    "expand_rounds": "expansion rounds of StageOpt, T₀",
    "seed_rounds": "random rounds of SGP-UCB, T′",
    "eps": "accuracy ε of StageOpt",
    "L": "Lipschitz constant of StageOpt",
    "metric": "distance of StageOpt",
    "normalise": "normalisation of the data",
    "unit_variance": "unit prior variances",
    "scaled": "scaling of f",
    "supports": "supports of f",
    "instance": "which function",
    "constraint": "form of the constraint",
    "keep": "data kept at a new epoch",
    "first": "first action of an epoch",
    "S": "rounds per epoch, S",
    "mu": "slack μ",
    "lengthscale": "lengthscale of the model",
    "step_scale": "factor on OCO's steps",
    "window": "window W",
    "restart": "rounds between restarts",
    "pending": "actions under way",
}
"""Axes in words, of the parameters that papers leave open."""


def axes_of(findings: Sequence[Finding]) -> list[dict[str, str]]:
    """The swept parameters of every finding, without those that never differ.

    Parameters that vary together are one axis: one parameter of several methods ("beta"), or
    several ("B, G"). The methods are named only if their values differ ("pending of config").
    """
    names = dict.fromkeys(name for f in findings for name in f.axes)
    together: dict[tuple[str, ...], list[str]] = {}
    for name in names:
        values = tuple(format_value(f.axes[name]) if name in f.axes else "–" for f in findings)
        if len(set(values)) > 1:
            together.setdefault(values, []).append(name)
    several = [
        p
        for axis_names in together.values()
        for p in {name.rpartition(".")[2] for name in axis_names}
    ]
    result: list[dict[str, str]] = [{} for _ in findings]
    for values, axis_names in together.items():
        owners_of: dict[str, list[str]] = {}
        for name in axis_names:
            owner, _, parameter = name.rpartition(".")
            owners_of.setdefault(parameter, []).append(owner)
        labels = [
            p if several.count(p) == 1 else f"{p} of {', '.join(owners)}"
            for p, owners in owners_of.items()
        ]
        for axes, value in zip(result, values, strict=True):
            axes[", ".join(labels)] = value
    if len({tuple(axes.items()) for axes in result}) < len(findings):  # so the problems differ
        result = [
            axes | {"problem": f.places.partition(" (")[2][:-1]}
            for f, axes in zip(findings, result, strict=True)
        ]
    return result


def describe_axis(name: str) -> str:
    """An axis in words: "beta_scale of ckb-ucb, ckb-ts" is "factor on the width β of ckb-ucb,
    ckb-ts".
    """
    parameters, of, owners = name.partition(" of ")
    phrases = dict.fromkeys(WORDS.get(p, p) for p in parameters.split(", "))
    return ", ".join(phrases) + of + owners


def _numeric_order(word: str) -> tuple[bool, float]:
    """Sort key: words first, then numbers by size."""
    try:
        return True, float(word)
    except ValueError:
        return False, 0.0


LEGEND = "   ".join(f"{symbol} {verdict}" for verdict, (_, symbol) in VERDICT_STYLES.items())


@dataclass(frozen=True)
class Map:
    """A claim's findings in one suite (or in some, where it takes its algorithms from several) as a
    table.

    Attributes:
        across: the axis of the columns, "" for none. It is the one that leaves the fewest cells
            empty.
        columns: its values.
        rows: what the other axes are; after the first row, what differs from that.
        cells: findings by row and column.
        axes: of every finding, as `axes_of` has them.
    """

    findings: Sequence[Finding]
    axes: Sequence[Mapping[str, str]]
    across: str
    columns: list[str]
    rows: list[str]
    cells: dict[tuple[int, int], Finding]

    @classmethod
    def of(cls, findings: Sequence[Finding]) -> Map:
        """The table of some findings, in their order."""
        axes = axes_of(findings)
        names = list(dict.fromkeys(name for setting in axes for name in setting))

        def row_of(setting: Mapping[str, str], across: str) -> tuple[str, ...]:
            return tuple(setting[name] for name in names if name != across)

        def density(name: str) -> tuple[float, int]:
            width = len({setting[name] for setting in axes})
            return len(findings) / (width * len({row_of(setting, name) for setting in axes})), width

        # A table with few empty cells is read most easily; of axes with equally few the longest
        # goes across.
        across = max(names, key=density, default="")
        columns = sorted(
            dict.fromkeys(setting.get(across, "") for setting in axes), key=_numeric_order
        )
        rows = list(dict.fromkeys(row_of(setting, across) for setting in axes))
        cells = {
            (rows.index(row_of(setting, across)), columns.index(setting.get(across, ""))): f
            for f, setting in zip(findings, axes, strict=True)
        }
        # A row after the first says what differs from it: a whole setting would be a paragraph.
        row_names = [name for name in names if name != across]
        row_labels = [
            ", ".join(
                f"{describe_axis(name)} {'default' if v == 'null' else v}"
                for name, v, base in zip(row_names, row, rows[0], strict=True)
                if i == 0 or v != base
            )
            for i, row in enumerate(rows)
        ]
        return cls(findings, axes, across, columns, row_labels, cells)

    @property
    def claim(self) -> str:
        """The id."""
        return self.findings[0].claim.id

    @property
    def suite(self) -> str:
        """Its name; of several, what the later ones have besides."""
        parts: list[str] = []
        for suite in self.findings[0].suites:
            parts += [word for word in suite.split("-") if word not in parts]
        return "-".join(parts).removeprefix("map-")

    @property
    def minutes(self) -> float:
        """CPU-minutes of all its cells, every cell of a run counted once."""
        return (
            sum({pair: cost for f in self.findings for pair, cost in f.costs.items()}.values()) / 60
        )

    @property
    def common(self) -> list[str]:
        """The decisive settings that all findings share."""
        settings_lists = [f.settings.split(", ") for f in self.findings]
        return [
            word
            for word in settings_lists[0]
            if all(word in settings for settings in settings_lists)
        ]

    def caption(self) -> str:
        """The caption: content and legend."""
        claim, seeds = self.findings[0].claim, sorted({f.n for f in self.findings})
        seed_count = (
            count_noun(seeds[0], "seed") if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]} seeds"
        )
        caption = (
            f"{claim.id}, {claim.source}: {claim.statement}. Over the settings of {self.suite}: "
            f"{LEGEND}, with the "
        )
        caption += (
            "parts of the claim that hold of all; the strip below has the verdict of every part. "
        )
        if len(self.rows) > 1:
            caption += "Rows after the first say what differs from it. "
        caption += (
            f"All have {', '.join(self.common)}. {seed_count}; {self.minutes:.2g} CPU-minutes in "
            "all, every cell "
        )
        return textwrap.fill(caption + "counted once.", 100) + "\n"


def maps_of(findings: Sequence[Finding]) -> list[Map]:
    """One map per claim and suite, in the findings' order. Findings without parts are left out."""
    groups: dict[tuple[str, tuple[str, ...]], list[Finding]] = {}
    for f in findings:
        if f.parts:
            groups.setdefault((f.claim.id, f.suites), []).append(f)
    return [Map.of(group) for group in groups.values()]


def draw_maps(findings: Sequence[Finding], folder: Path) -> Iterator[tuple[Map, list[Path]]]:
    """Write every map as PDF, PNG, CSV and TXT (the caption); yields it with the paths."""
    folder.mkdir(parents=True, exist_ok=True)
    for map in maps_of(findings):
        stem = f"map_{map.claim}_{map.suite.replace('-', '_')}"
        paths = [folder / f"{stem}.{kind}" for kind in ("pdf", "png", "csv", "txt")]
        caption = map.caption()
        image = draw_map(map)
        save(
            image, paths[:2], SIZES["double"].dpi, caption, {"Title": f"{map.claim} in {map.suite}"}
        )
        _write(map, paths[2])
        paths[3].write_text(caption, encoding="utf-8")
        yield map, paths


def _write(map: Map, path: Path) -> None:
    rows: list[Mapping[str, Any]] = [
        {
            "claim": f.claim.id,
            "where": f.places,
            **axes,
            "verdict": f.verdict,
            "parts": len(f.parts),
            "parts_that_hold": f.held,
            "n": f.n,
            "expected": f.expected,
            "cpu_minutes": round(f.seconds / 60, 3),
            "settings": f.settings,
        }
        for f, axes in zip(map.findings, map.axes, strict=True)
    ]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(
            {name: escape_formula(value) for name, value in row.items()} for row in rows
        )


def draw_map(map: Map) -> Any:
    """A map as a matplotlib image."""
    import matplotlib as mpl
    from matplotlib.patches import Rectangle

    from cbobench.report.canvas import Image

    size = SIZES["double"]
    with size.context():
        use_fonts_for([*map.rows, *map.columns])
        # Rows are as high as their labels, which are broken between settings alone.
        labels = [
            textwrap.fill(row.replace(" ", "\xa0").replace(",\xa0", ", "), 44) for row in map.rows
        ]
        heights = [max(0.3, 0.14 * label.count("\n") + 0.2) for label in labels]
        edges = [sum(heights[:i]) for i in range(len(heights) + 1)]
        image = Image(size, 0.6 + edges[-1])
        axis = image.subplots()
        # A cell's colour and symbol say the verdict; the strip below shows whether all parts are
        # alike, which the verdict of a claim hides. Parts are sorted, as their order says nothing
        # and a share is read at a glance.
        for (i, j), f in map.cells.items():
            top, height = edges[i], heights[i]
            colour, symbol = VERDICT_STYLES[f.verdict]
            axis.add_patch(
                Rectangle(
                    (j - 0.5, top), 1, height, facecolor=colour, edgecolor="white", linewidth=1.5
                )
            )
            band = (j - 0.47, top + 0.66 * height)
            axis.add_patch(Rectangle(band, 0.94, 0.28 * height, facecolor="white"))
            share = 0.94 / len(f.parts)
            order = [*VERDICT_STYLES]
            for k, part in enumerate(sorted(f.parts, key=lambda part: order.index(part.verdict))):
                shade = VERDICT_STYLES[part.verdict][0]
                place = (j - 0.47 + (k + 0.1) * share, top + 0.7 * height)
                axis.add_patch(
                    Rectangle(
                        place,
                        0.8 * share,
                        0.2 * height,
                        facecolor=shade,
                        edgecolor="0.25",
                        linewidth=0.4,
                    )
                )
            seeds = "" if f.n == f.expected else f" ({f.n}/{f.expected} seeds)"
            word = f"{symbol} {f.held}/{len(f.parts)}{seeds}"
            axis.text(
                j,
                top + 0.36 * height,
                word,
                fontweight="bold",
                fontsize=size.small,
                va="center",
                ha="center",
            )
        axis.set(
            xlim=(-0.5, len(map.columns) - 0.5),
            ylim=(edges[-1], 0),
            xlabel=describe_axis(map.across),
        )
        axis.set_xticks(range(len(map.columns)), map.columns)
        centres = [(a + b) / 2 for a, b in itertools.pairwise(edges)]
        axis.set_yticks(centres, labels, fontsize=size.small)
        axis.tick_params(length=0)
        for spine in axis.spines.values():
            spine.set_visible(False)
        title = f"{map.claim}: {map.findings[0].claim.statement}"
        image.suptitle(
            textwrap.fill(title, 90) + f"\n{LEGEND}", fontsize=mpl.rcParams["axes.titlesize"]
        )
    return image
