"""The words beside a figure: what is shown of how many seeds, with which settings, and which run it is of."""

from __future__ import annotations

import hashlib
import json
import string
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from cbobench.report.groups import (
    count_binding,
    describe_failures,
    describe_horizons,
    describe_problems,
    find_arithmetic,
    find_groups,
    select_latest,
)
from cbobench.report.kinds import AnyPanel
from cbobench.report.load import Run
from cbobench.report.quantities import SIMPLE_REGRET, find_undefined_regret
from cbobench.report.recommended import describe_best
from cbobench.results.manifest import VARIANT_KINDS
from cbobench.results.provenance import mixed_note
from cbobench.words import count_noun

WIDTH = 100


@dataclass
class Shown:
    """What the panels of a figure were found to hold.

    Attributes:
        pairs: titles of problems and algorithms drawn, in order.
        absent: those without a good cell.
        negative: labels of metrics that are better when lower and fall below zero.
        undefined: whose metrics are undefined in some seeds, and in how many they are not.
        broken: which curves are undefined in the end, and in how many seeds they are not.
        outside: what leaves a panel, in sentences.
        frames: the rows behind each panel.
    """

    pairs: dict[tuple[str, str], None] = field(default_factory=dict)
    absent: dict[tuple[str, str], None] = field(default_factory=dict)
    negative: dict[str, None] = field(default_factory=dict)
    undefined: dict[str, None] = field(default_factory=dict)
    broken: dict[str, None] = field(default_factory=dict)
    outside: dict[str, None] = field(default_factory=dict)
    frames: list[pd.DataFrame] = field(default_factory=list)


def identity(run: Run) -> str:
    """What names a run: its suite, and a hash of the cells that were asked for. It holds no time."""
    digest = hashlib.sha256("\n".join(sorted(run.whole.cells)).encode())
    return f"{run.record.suite}, grid {digest.hexdigest()[:12]}"


def caption(run: Run, what: str, panels: Sequence[AnyPanel], shown: Shown) -> str:
    """A figure's caption, one paragraph per line of thought, wrapped.

    Args:
        what: the recipe's words.
        shown: what was drawn.
    """
    lines = [what.rstrip(".") + ".", *_panels(panels), _seeds(run, panels, shown), *_notes(run, panels, shown)]
    lines += _settings(run, shown)
    lines.append(f"Run: {identity(run)}.")
    return "\n".join(textwrap.fill(line, WIDTH, break_on_hyphens=False) for line in lines if line) + "\n"


def _panels(panels: Sequence[AnyPanel]) -> list[str]:
    if len(panels) == 1:
        return []
    words = [f"{panel.title}: {panel.about}" if panel.title else panel.about for panel in panels]
    return [" ".join(f"({string.ascii_lowercase[i % 26]}) {word}." for i, word in enumerate(words))]


def _seeds(run: Run, panels: Sequence[AnyPanel], shown: Shown) -> str:
    """Of what and how many, and what the bars, bands or boxes are."""
    counts = {pair: len(run.good(*pair)) for pair in shown.pairs}
    low, high = min(counts.values()), max(counts.values())
    seeds = (
        ("one seed" if low == 1 else count_noun(low, "seed"))
        if low == high
        else f"{low:,} to {count_noun(high, 'seed')}"
    )
    first = " ".join(dict.fromkeys(panel.seen(seeds, counts.values()) for panel in panels))
    asked = {(p, a): run.expected_of(p)[a] for p, a in [*shown.pairs, *shown.absent]}
    labels = run.record.labels("algorithms")
    several = len({problem for problem, _ in asked}) > 1
    where = {title: f" on {label}" if several else "" for title, label in run.record.labels("problems").items()}
    missing = [
        f"{labels[a]}{where[p]} {count:,} of {n:,}"
        for (p, a), n in asked.items()
        if (count := counts.get((p, a), 0)) < n
    ]
    first += f" Incomplete: {', '.join(missing)} seeds." if missing else ""
    return f"{first} {describe_horizons(run, dict.fromkeys(problem for problem, _ in shown.pairs))}."


def _notes(run: Run, panels: Sequence[AnyPanel], shown: Shown) -> list[str]:
    """What a reader must know of the cells behind the figure."""
    notes = [*shown.outside]
    if shown.negative:
        metrics = " and ".join(shown.negative)
        notes.append(
            f"{metrics} below zero (the grey line): rounds that violate the constraints may earn more than what "
            "regret is against."
        )
    if shown.undefined:
        notes.append(
            f"Undefined in some seeds: {', '.join(shown.undefined)}. Means leave these seeds out; to a median they are "
            "worse than any value. An arrow at the edge: a bar without an end; a point beside it: a median beyond all."
        )
    if shown.broken:
        notes.append(
            f"Undefined in the end: {', '.join(shown.broken)}. A mean is drawn where every seed has a value, a median "
            "where more than half have one."
        )
    problems = dict.fromkeys(problem for problem, _ in shown.pairs)
    found = select_latest(run, find_groups(run, problems=problems))
    if any(SIMPLE_REGRET in (panel.metric, *panel.centres.values()) for panel in panels):
        absent = find_undefined_regret(found).items()
        notes += [f"Simple regret is not defined {why}: {', '.join(labels)}." for why, labels in absent]
    known, labels = count_binding(found), run.record.labels("problems")
    notes += [f"{line}." for line in describe_problems(run, problems)]
    for problem in problems:
        if (arena := (problem, run.horizon_of(problem), None)) in known:
            count, of = known[arena]
            notes.append(f"The constraint binds in {count:,} of {count_noun(of, 'seed')} ({labels[problem]}).")
    drawn = [group for group in found if (group.problem, group.algorithm) in shown.pairs]
    if old := sum(len(group.outdated & {*group.good.index}) for group in drawn):
        cells = count_noun(sum(len(group.good) for group in drawn), "cell")
        notes.append(f"Stale: {old:,} of {cells}, played by code that has changed since.")
    notes += [f"{line[0].upper()}{line[1:]}." for line in (*describe_failures(drawn), *describe_best(run, drawn))]
    if mixed := mixed_note(find_arithmetic(drawn)):
        notes.append(f"The cells were {mixed}.")
    return notes


def _settings(run: Run, shown: Shown) -> list[str]:
    """Every parameter as it was resolved: those that all problems, or all algorithms, share first."""
    lines = []
    titles = {
        "problems": dict.fromkeys(problem for problem, _ in shown.pairs),
        "algorithms": dict.fromkeys(algorithm for _, algorithm in shown.pairs),
    }
    for what, one in zip(VARIANT_KINDS, ("Problem", "Method"), strict=True):
        variants, labels = run.record.variants(what), run.record.labels(what)
        some = [variants[title] for title in titles[what]]
        shared = _shared_parameters(some)
        if len(some) > 1 and shared:
            lines.append(f"Shared by the {what}: {_join_values(shared)}.")
        for title in titles[what]:
            variant = variants[title]
            name = labels[title] if labels[title] == variant.name else f"{labels[title]} ({variant.name})"
            own = {k: v for k, v in variant.values.items() if len(some) == 1 or k not in shared}
            lines.append(f"{one} {name}: {_join_values(own)}." if own else f"{one} {name}.")
    return lines


def _shared_parameters(variants: Sequence[Any]) -> dict[str, Any]:
    """Parameters that two variants or more have, all with the same value."""
    values: dict[str, list[Any]] = {}
    for variant in variants:
        for name, value in variant.values.items():
            values.setdefault(name, []).append(value)
    return {name: some[0] for name, some in values.items() if len(some) > 1 and all(v == some[0] for v in some)}


def _join_values(values: Mapping[str, Any]) -> str:
    words = {
        name: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for name, value in sorted(values.items())
    }
    return ", ".join(f"{name} = {word[:12] + '...' if len(word) > 60 else word}" for name, word in words.items())
