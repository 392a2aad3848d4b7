"""The words beside a figure: what is shown of how many seeds, with which settings, and which run it
is of.
"""

from __future__ import annotations

import hashlib
import string
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from cbobench.metrics import METRICS
from cbobench.report.contents import describe_settings
from cbobench.report.curves import Panel
from cbobench.report.load import Run
from cbobench.report.notes import collect_notes, describe_horizons, describe_unlike
from cbobench.report.planes import AnyPanel
from cbobench.report.quantities import SIMPLE_REGRET, find_undefined_regret
from cbobench.report.selection import Selection
from cbobench.results.manifest import VariantKind
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
        drawn_titles = (
            set(frame[frame["n"] > 0 if "n" in frame else slice(None)]["algorithm"])
            if len(frame)
            else set()
        )
        for problem, title in panel.pairs(run):
            has_cells = title in drawn_titles and len(run.good(problem, title)) > 0
            (self.pairs if has_cells else self.absent)[problem, title] = None
        if isinstance(panel, Panel):
            self.outside |= dict.fromkeys(panel.outside(frame))
            if not panel.steps and frame["t"].nunique() < frame["t"].max():
                self.outside["Between the rounds that are stored lines are straight."] = None
            for name, curve in frame.groupby("algorithm", sort=False):
                if np.isnan(curve[panel.statistic].iloc[-1]):
                    good = run.good(panel.problem, str(name))[panel.metric]
                    curve_name = (
                        f"{panel.statistic} of {panel.metrics[panel.metric].symbol} of "
                        f"{curve['label'].iloc[0]}"
                    )
                    count = f"known in {good.notna().sum():,} of {count_noun(len(good), 'seed')}"
                    self.broken[f"{curve_name} ({count})"] = None
        for column, metric in panel.centres.items():
            if column in frame and METRICS[metric].better == "lower" and (frame[column] < 0).any():
                self.negative[METRICS[metric].label_of(panel.average)] = None
            if f"{column}_defined" in frame:
                for row in frame[frame[f"{column}_defined"] < frame["n"]].to_dict("records"):
                    counts = f"{row[f'{column}_defined']} of {row['n']}"
                    self.undefined[
                        f"{METRICS[metric].symbol} of {row['label']} (known in {counts})"
                    ] = None


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
    lines = [
        summary.rstrip(".") + ".",
        *_describe_panels(panels),
        _describe_seeds(run, panels, contents),
        *_describe_cells(run, panels, contents),
    ]
    titles: dict[VariantKind, Iterable[str]] = {
        "problems": dict.fromkeys(problem for problem, _ in contents.pairs),
        "algorithms": dict.fromkeys(algorithm for _, algorithm in contents.pairs),
    }
    lines += describe_settings(run, titles)
    lines.append(f"Run: {identity(run)}.")
    return (
        "\n".join(textwrap.fill(line, WIDTH, break_on_hyphens=False) for line in lines if line)
        + "\n"
    )


def _describe_panels(panels: Sequence[AnyPanel]) -> list[str]:
    if len(panels) == 1:
        return []
    descriptions = [
        f"{panel.title}: {panel.about}" if panel.title else panel.about for panel in panels
    ]
    return [
        " ".join(
            f"({string.ascii_lowercase[i % 26]}) {description}."
            for i, description in enumerate(descriptions)
        )
    ]


def _describe_seeds(run: Run, panels: Sequence[AnyPanel], contents: FigureContents) -> str:
    """Of what and how many, and what the bars, bands or boxes are."""
    counts = {pair: len(run.good(*pair)) for pair in contents.pairs}
    low, high = min(counts.values()), max(counts.values())
    seeds = (
        ("one seed" if low == 1 else count_noun(low, "seed"))
        if low == high
        else f"{low:,} to {count_noun(high, 'seed')}"
    )
    first = " ".join(
        dict.fromkeys(panel.describe_seeds(seeds, counts.values()) for panel in panels)
    )
    expected_counts = {
        (p, a): run.expected_of(p)[a] for p, a in [*contents.pairs, *contents.absent]
    }
    labels = run.record.labels("algorithms")
    several = len({problem for problem, _ in expected_counts}) > 1
    problem_suffix = {
        title: f" on {label}" if several else ""
        for title, label in run.record.labels("problems").items()
    }
    missing = [
        f"{labels[a]}{problem_suffix[p]} {count:,} of {n:,}"
        for (p, a), n in expected_counts.items()
        if (count := counts.get((p, a), 0)) < n
    ]
    first += f" Incomplete: {', '.join(missing)} seeds." if missing else ""
    problems = dict.fromkeys(problem for problem, _ in contents.pairs)
    return f"{first} {describe_horizons(run, problems)}."


def _describe_cells(run: Run, panels: Sequence[AnyPanel], contents: FigureContents) -> list[str]:
    """What a reader must know of the cells behind the figure."""
    notes = [*contents.notes, *contents.outside]
    if contents.unknown:
        notes.append(f"Left out, as no value is known: {', '.join(contents.unknown)}.")
    if contents.negative:
        negative = " and ".join(contents.negative)
        notes.append(
            f"{negative} below zero (the grey line): rounds that violate the constraints may earn "
            "more than what "
            "regret is against."
        )
    if contents.undefined:
        notes.append(
            f"Undefined in some seeds: {', '.join(contents.undefined)}. Means leave these seeds "
            "out; to a median they "
            "are worse than any value. An arrow at the edge: a bar without an end; a point "
            "beside it: a median beyond "
            "all."
        )
    if contents.broken:
        notes.append(
            f"Undefined in the end: {', '.join(contents.broken)}. A mean is drawn where every "
            "seed has a value, a "
            "median where more than half have one."
        )
    selection = Selection(run)
    problems = {problem for problem, _ in contents.pairs}
    metrics = {metric for panel in panels for metric in (panel.metric, *panel.centres.values())}
    notes += [f"{line}." for line in describe_unlike(run, problems, metrics)]
    if SIMPLE_REGRET in metrics:
        absent = find_undefined_regret(
            group for group in selection.groups if group.problem in problems
        )
        notes += [
            f"Simple regret is not defined {why}: {', '.join(labels)}."
            for why, labels in absent.items()
        ]
    drawn = [
        group for group in selection.groups if (group.problem, group.algorithm) in contents.pairs
    ]
    return notes + [
        f"{line[0].upper()}{line[1:]}." for line in collect_notes(selection, drawn, of="figure")
    ]
