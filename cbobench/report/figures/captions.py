"""The words beside a figure: what is shown of how many seeds, with which settings, and which run it
is of.
"""

from __future__ import annotations

import hashlib
import string
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from cbobench.metrics import METRICS
from cbobench.report.figures.curves import Panel
from cbobench.report.figures.planes import AnyPanel
from cbobench.report.load import Run
from cbobench.report.notes import collect_notes, describe_horizons, describe_unlike
from cbobench.report.quantities import SIMPLE_REGRET, find_undefined_regret
from cbobench.report.selection import Selection
from cbobench.report.tables.contents import describe_settings
from cbobench.results.manifest import VARIANT_KINDS
from cbobench.words import count_noun

WIDTH = 100


@dataclass
class FigureContents:
    """What the panels of a figure were found to hold.

    Attributes:
        pairs: titles of problems and algorithms drawn, in order.
        absent: those without a good cell.
        negative: labels of metrics that are better when lower and fall below zero.
        undefined: whose metrics are undefined in some seeds, and in how many they are not.
        broken: which curves are undefined in the end, and in how many seeds they are not.
        outside: what leaves a panel, in sentences.
        unknown: panels that are left out, as no value of them is known.
        notes: what the legend says in sentences: methods in grey, and curves that coincide.
        panels: those that are drawn.
        frames: the rows behind each panel.
    """

    pairs: dict[tuple[str, str], None] = field(default_factory=dict)
    absent: dict[tuple[str, str], None] = field(default_factory=dict)
    negative: dict[str, None] = field(default_factory=dict)
    undefined: dict[str, None] = field(default_factory=dict)
    broken: dict[str, None] = field(default_factory=dict)
    outside: dict[str, None] = field(default_factory=dict)
    unknown: dict[str, None] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    panels: list[AnyPanel] = field(default_factory=list)
    frames: list[pd.DataFrame] = field(default_factory=list)

    def describe(self, run: Run, panel: AnyPanel, frame: pd.DataFrame) -> None:
        """Add what a panel with such rows shows, drawn or not."""
        drawn = {*frame.get("algorithm", ())}
        for pair in panel.pairs(run):
            has_cells = pair[1] in drawn and len(run.good(*pair)) > 0
            (self.pairs if has_cells else self.absent)[pair] = None
        if isinstance(panel, Panel):
            self.outside |= dict.fromkeys(panel.outside(frame))
            if not panel.steps and frame["t"].nunique() < frame["t"].max():
                self.outside["Between the rounds that are stored lines are straight."] = None
            for name, curve in frame.groupby("algorithm", sort=False):
                if np.isnan(curve[panel.statistic].iloc[-1]):
                    good = run.good(panel.problem, str(name))[panel.metric]
                    self.broken[
                        f"{panel.statistic} of {panel.metrics[panel.metric].symbol} of "
                        f"{curve['label'].iloc[0]} "
                        f"(known in {good.notna().sum():,} of {count_noun(len(good), 'seed')})"
                    ] = None
        for column, name in panel.centres.items():
            metric = METRICS[name]
            if column in frame and metric.better == "lower" and (frame[column] < 0).any():
                self.negative[metric.label_of(panel.average)] = None
            if f"{column}_defined" in frame:
                rows = frame[["label", f"{column}_defined", "n"]].itertuples(index=False)
                self.undefined |= {
                    f"{metric.symbol} of {label} (known in {known} of {n})": None
                    for label, known, n in rows
                    if known < n
                }


def identity(run: Run) -> str:
    """What names a run: its suite, and a hash of the cells that were asked for. It holds no
    time.
    """
    digest = hashlib.sha256("\n".join(sorted(run.full_record.cells)).encode())
    return f"{run.record.suite}, grid {digest.hexdigest()[:12]}"


def caption(run: Run, summary: str, contents: FigureContents) -> str:
    """A figure's caption, one paragraph per line of thought, wrapped.

    Args:
        summary: the recipe's words.
        contents: what was drawn.
    """
    panels = contents.panels
    descriptions = [
        f"({string.ascii_lowercase[i % 26]}) {panel.title}{': ' * bool(panel.title)}{panel.about}."
        for i, panel in enumerate(panels)
    ]
    problems, algorithms = (dict.fromkeys(titles) for titles in zip(*contents.pairs, strict=True))
    lines = [
        summary.rstrip(".") + ".",
        *[" ".join(descriptions)] * (len(panels) > 1),
        _describe_seeds(run, panels, contents),
        *_describe_cells(run, panels, contents),
        *describe_settings(run, {"problems": problems, "algorithms": algorithms}),
        f"Run: {identity(run)}.",
    ]
    return "".join(textwrap.fill(line, WIDTH, break_on_hyphens=False) + "\n" for line in lines)


def _describe_seeds(run: Run, panels: Sequence[AnyPanel], contents: FigureContents) -> str:
    """Of what and how many, and what the bars, bands or boxes are."""
    counts = {pair: len(run.good(*pair)) for pair in contents.pairs}
    low, high = min(counts.values()), max(counts.values())
    seeds = "one seed" if high == 1 else f"{low:,} to " * (low < high) + count_noun(high, "seed")
    first = " ".join(
        dict.fromkeys(panel.describe_seeds(seeds, counts.values()) for panel in panels)
    )
    pairs = [*contents.pairs, *contents.absent]
    several = len({problem for problem, _ in pairs}) > 1
    problems, labels = (run.record.labels(kind) for kind in VARIANT_KINDS)
    missing = [
        f"{labels[a]}{f' on {problems[p]}' * several} {count:,} of {expected:,}"
        for p, a in pairs
        if (count := counts.get((p, a), 0)) < (expected := run.expected_of(p)[a])
    ]
    first += f" Incomplete: {', '.join(missing)} seeds." * bool(missing)
    return f"{first} {describe_horizons(run, [problem for problem, _ in contents.pairs])}."


def _describe_cells(run: Run, panels: Sequence[AnyPanel], contents: FigureContents) -> list[str]:
    """What a reader must know of the cells behind the figure."""
    notes = [*contents.notes, *contents.outside]
    for found, between, sentence in (
        (contents.unknown, ", ", "Left out, as no value is known: {}."),
        (
            contents.negative,
            " and ",
            "{} below zero (the grey line): rounds that violate the constraints may earn more "
            "than what regret is against.",
        ),
        (
            contents.undefined,
            ", ",
            "Undefined in some seeds: {}. Means leave these seeds out; to a median they are worse "
            "than any value. An arrow at the edge: a bar without an end; a point beside it: a "
            "median beyond all.",
        ),
        (
            contents.broken,
            ", ",
            "Undefined in the end: {}. A mean is drawn where every seed has a value, a median "
            "where more than half have one.",
        ),
    ):
        if found:
            notes.append(sentence.format(between.join(found)))
    selection = Selection(run)
    problems = {problem for problem, _ in contents.pairs}
    metrics = {metric for panel in panels for metric in (panel.metric, *panel.centres.values())}
    notes += [f"{line}." for line in describe_unlike(run, problems, metrics)]
    if SIMPLE_REGRET in metrics:
        absent = find_undefined_regret(g for g in selection.groups if g.problem in problems)
        notes += [
            f"Simple regret is not defined {why}: {', '.join(labels)}."
            for why, labels in absent.items()
        ]
    drawn = [g for g in selection.groups if (g.problem, g.algorithm) in contents.pairs]
    return notes + [
        f"{line[0].upper()}{line[1:]}." for line in collect_notes(selection, drawn, of="figure")
    ]
