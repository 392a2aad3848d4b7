"""The words beside a figure, and of a run: what is shown of how many seeds, with which settings,
what to know of its problems and models, and which run it is of.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import string
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from cbobench.metrics import METRICS
from cbobench.report.figures.curves import Panel
from cbobench.report.figures.planes import AnyPanel
from cbobench.report.groups import Arena, Group, find_groups, gather, list_horizons
from cbobench.report.load import Run
from cbobench.report.notes import describe_cells, describe_lacks
from cbobench.report.quantities import SIMPLE_REGRET, describe_unlike
from cbobench.report.selection import Selection
from cbobench.report.setups import describe_horizons
from cbobench.report.tables.summary import count_seeds
from cbobench.results.manifest import VARIANT_KINDS, Variant, VariantKind
from cbobench.results.schema import FITTED
from cbobench.words import count_noun, count_span, list_names

WIDTH = 100
UNKNOWN = "Left out, as no value is known: {}."
BROKEN = (
    "Undefined in the end: {}. A mean is drawn where every seed has a value, a median where more "
    "than half have one."
)
NOUNS: dict[VariantKind, str] = {"problems": "Problem", "algorithms": "Method"}


@dataclass
class FigureContents:
    """What the panels of a figure were found to hold.

    Attributes:
        pairs: titles of problems and algorithms drawn, in order.
        absent: those without a good cell.
        found: pairs of a sentence, such as `UNKNOWN`, and what it is about.
        outside: what leaves a panel, in sentences.
        notes: what the caption says of the legend: methods in grey.
        panels: those that are drawn.
        frames: the rows behind each panel.
    """

    pairs: dict[tuple[str, str], None] = field(default_factory=dict)
    absent: dict[tuple[str, str], None] = field(default_factory=dict)
    found: list[tuple[str, str]] = field(default_factory=list)
    outside: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    panels: list[AnyPanel] = field(default_factory=list)
    frames: list[pd.DataFrame] = field(default_factory=list)

    def describe(self, run: Run, panel: AnyPanel, frame: pd.DataFrame) -> None:
        """Add what a panel with such rows shows, drawn or not."""
        drawn = {*frame.get("algorithm", ())}
        for pair in panel.pairs(run):
            has_cells = pair[1] in drawn and len(run.good(*pair)) > 0
            (self.pairs if has_cells else self.absent)[pair] = None
        ends = [f"{name}_high" for name in panel.centres]
        if np.isinf(frame.reindex(columns=ends).to_numpy(np.float64)).any():
            self.outside.append(
                "An arrow at the edge: a bar without an end; a point beside: an infinite median."
            )
        if isinstance(panel, Panel):
            self.outside += panel.outside(frame)
            if not panel.steps and frame["t"].nunique() < frame["t"].max():
                self.outside.append("Between the rounds that are stored lines are straight.")
            last = frame.groupby("algorithm", sort=False).tail(1)
            broken = last[last[panel.statistic].isna()]
            symbol = panel.metrics[panel.metric].symbol
            for name, label in broken[["algorithm", "label"]].to_numpy():
                good = run.good(panel.problem, name)[panel.metric]
                known = f"known in {good.count():,} of {count_noun(len(good), 'seed')}"
                self.found.append((BROKEN, f"{panel.statistic} of {symbol} of {label} ({known})"))


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
    lines = [f"{summary.rstrip('.')}."]
    if len(panels) > 1:
        parts = []
        for letter, panel in zip(itertools.cycle(string.ascii_lowercase), panels, strict=False):
            title = f"{panel.title}: " if panel.title else ""
            parts.append(f"({letter}) {title}{panel.about}.")
        lines.append(" ".join(parts))
    problems, algorithms = (dict.fromkeys(titles) for titles in zip(*contents.pairs, strict=True))
    lines += [
        _describe_seeds(run, panels, contents),
        *_describe_drawn_cells(run, panels, contents),
        *describe_settings(run, {"problems": problems, "algorithms": algorithms}),
        f"Run: {identity(run)}.",
    ]
    return "".join(textwrap.fill(line, WIDTH, break_on_hyphens=False) + "\n" for line in lines)


def _describe_seeds(run: Run, panels: Sequence[AnyPanel], contents: FigureContents) -> str:
    """Of what and how many, and what the bars, bands or boxes are."""
    counts = {pair: len(run.good(*pair)) for pair in contents.pairs}
    high = max(counts.values())
    seeds = "one seed" if high == 1 else count_span(counts.values(), "seed")
    said = dict.fromkeys(panel.describe_seeds(seeds, counts.values()) for panel in panels)
    sentences = [*said]
    pairs = [*contents.pairs, *contents.absent]
    several = len({problem for problem, _ in pairs}) > 1
    problems, algorithms = (run.record.labels(kind) for kind in VARIANT_KINDS)
    missing = []
    for problem, algorithm in pairs:
        count = counts.get((problem, algorithm), 0)
        expected = run.expected_of(problem)[algorithm]
        place = f" on {problems[problem]}" if several else ""
        if count < expected:
            missing.append(f"{algorithms[algorithm]}{place} {count:,} of {expected:,}")
    if missing:
        sentences.append(f"Incomplete: {', '.join(missing)} seeds.")
    horizons = describe_horizons(run, [problem for problem, _ in contents.pairs])
    return " ".join([*sentences, f"{horizons}."])


def _describe_drawn_cells(
    run: Run, panels: Sequence[AnyPanel], contents: FigureContents
) -> list[str]:
    """What a reader must know of the cells behind the figure."""
    notes = [*contents.notes, *dict.fromkeys(contents.outside)]
    for sentence, texts in gather(dict.fromkeys(contents.found)).items():
        notes.append(sentence.format(", ".join(texts)))
    selection = Selection(run)
    problems = {problem for problem, _ in contents.pairs}
    drawn = [g for g in selection.groups if (g.problem, g.algorithm) in contents.pairs]
    metrics = {metric for panel in panels for metric in panel.centres.values()}
    lines = describe_unlike(run, problems, metrics)
    if SIMPLE_REGRET in metrics:
        of_regret = replace(selection, metric=(SIMPLE_REGRET,))
        lines += [f"not defined: {line}" for line in describe_lacks(of_regret, problems)]
    stale = sum(len(group.outdated & {*group.seeds.tolist()}) for group in drawn)
    if stale:
        cells = count_noun(sum(group.n for group in drawn), "cell")
        lines.append(f"stale: {stale:,} of {cells}, played by code that has changed since")
    lines += describe_facts(run, drawn) + describe_cells(selection, drawn)
    return notes + [f"{line[0].upper()}{line[1:]}." for line in lines]


def describe_run(run: Run) -> list[str]:
    """What a run holds, for a reader, a paragraph each."""
    groups = find_groups(run)
    record = run.record
    horizons = list_horizons({group.horizon for group in groups})
    title = f"{record.suite}: {record.about}" if record.about else record.suite
    titles = {kind: record.variants(kind) for kind in VARIANT_KINDS}
    return [
        title,
        f"T = {horizons}; {count_seeds(groups)}.",
        *describe_settings(run, titles),
        *(f"{line}." for line in describe_facts(run, groups)),
        *(f"not played: {line}." for line in record.unplayable),
    ]


def describe_facts(run: Run, groups: Sequence[Group]) -> list[str]:
    """What is so of problems and models whatever a table shows: where constraints bind, whose
    models were fitted, and what problems say of their numbers.
    """
    problems = run.record.variants("problems")
    labels = run.record.labels("problems")
    titles = dict.fromkeys(group.problem for group in groups)
    said = gather((problems[title].note, labels[title]) for title in titles)
    return [
        *describe_binding(groups),
        *describe_kernels(groups),
        *(f"{', '.join(names)}: {note}" for note, names in said.items() if note),
    ]


def describe_kernels(groups: Iterable[Group]) -> list[str]:
    """A line that says whose models were fitted in the good cells of some groups, and where."""
    fitted = gather(
        (group.problem_label, group.algorithm_label)
        for group in groups
        if 1.0 in group.numbers(FITTED)
    )
    places = gather((", ".join(methods), problem) for problem, methods in fitted.items())
    texts = [f"{methods} ({', '.join(problems)})" for methods, problems in places.items()]
    if texts:
        return [f"kernels fitted to the observations, which no theorem covers: {'; '.join(texts)}"]
    return []


def describe_binding(groups: Iterable[Group]) -> list[str]:
    """A line that says in how many seeds the constraint binds, and on which problems, as far as any
    algorithm's cells tell.
    """
    labels = {group.arena: group.problem_label for group in groups}
    binding: dict[Arena, dict[int, bool]] = {}
    for group in groups:
        for seed, binds in zip(group.seeds.tolist(), group.numbers("binds"), strict=True):
            if not np.isnan(binds):
                binding.setdefault(group.arena, {})[seed] = binds > 0
    problems = gather(
        (f"{sum(seeds.values())}/{len(seeds)} seeds", labels[arena])
        for arena, seeds in binding.items()
    )
    parts = [f"{count} ({list_names(dict.fromkeys(on))})" for count, on in problems.items()]
    if [len(on) for on in problems.values()] == [len(labels)]:
        parts = [*problems]
    note = f"the constraint binds (the highest f is infeasible) in {', '.join(parts)}"
    if parts:
        return [note]
    return []


def describe_settings(run: Run, titles: Mapping[VariantKind, Iterable[str]]) -> list[str]:
    """Every parameter as it was resolved: those that all problems, or all algorithms, share
    first.

    Args:
        titles: of the problems and algorithms that are meant.
    """
    lines = []
    for kind, noun in NOUNS.items():
        variants = run.record.variants(kind)
        labels = run.record.labels(kind)
        shared = _find_shared([variants[title] for title in titles[kind]])
        if shared:
            lines.append(f"Shared by the {kind}: {_join_values(shared)}.")
        for title in titles[kind]:
            variant = variants[title]
            label = labels[title]
            name = label + f" ({variant.name})" * (label != variant.name)
            own = {key: value for key, value in variant.values.items() if key not in shared}
            lines.append(f"{noun} {name}" + f": {_join_values(own)}" * bool(own) + ".")
    return lines


def _find_shared(variants: Sequence[Variant]) -> dict[str, Any]:
    """Parameters that two variants or more have, all with the same value."""
    values = gather(pair for variant in variants for pair in variant.values.items())
    return {name: held[0] for name, held in values.items() if held.count(held[0]) == len(held) > 1}


def _join_values(values: Mapping[str, Any]) -> str:
    # R and V are metrics, too.
    symbols = {metric.symbol for metric in METRICS.values()}
    parts = []
    for name, value in sorted(values.items()):
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        text = f"{text[:12]}..." if len(text) > 60 else text
        parts.append(f"{'parameter ' * (name in symbols)}{name} = {text}")
    return ", ".join(parts)
