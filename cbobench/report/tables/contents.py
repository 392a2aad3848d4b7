"""What a run holds: its problems, methods and every parameter, and what to know of its problems and
models; for `cbobench show RUN` and captions.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from cbobench.metrics import METRICS
from cbobench.report.groups import find_groups, gather
from cbobench.report.load import Run
from cbobench.report.notes import describe_facts
from cbobench.report.tables.summary import count_seeds
from cbobench.results.manifest import VARIANT_KINDS, Variant, VariantKind

NOUNS: dict[VariantKind, str] = {"problems": "Problem", "algorithms": "Method"}


def describe_run(run: Run) -> list[str]:
    """What a run holds, for a reader, a paragraph each."""
    groups, record = find_groups(run), run.record
    horizons = ", ".join(f"{t:,}" for t in sorted({group.horizon for group in groups}))
    title = f"{record.suite}: {record.about}" if record.about else record.suite
    titles = {kind: record.variants(kind) for kind in VARIANT_KINDS}
    return [
        title,
        f"T = {horizons}; {count_seeds(groups)}.",
        *describe_settings(run, titles),
        *(f"{line}." for line in describe_facts(run, groups)),
        *(f"not played: {line}." for line in record.unplayable),
    ]


def describe_settings(run: Run, titles: Mapping[VariantKind, Iterable[str]]) -> list[str]:
    """Every parameter as it was resolved: those that all problems, or all algorithms, share
    first.

    Args:
        titles: of the problems and algorithms that are meant.
    """
    lines = []
    for kind, noun in NOUNS.items():
        variants, labels = run.record.variants(kind), run.record.labels(kind)
        shared = _find_shared([variants[title] for title in titles[kind]])
        if shared:
            lines.append(f"Shared by the {kind}: {_join_values(shared)}.")
        for title in titles[kind]:
            variant, label = variants[title], labels[title]
            name = label + f" ({variant.name})" * (label != variant.name)
            own = {key: value for key, value in variant.values.items() if key not in shared}
            lines.append(f"{noun} {name}" + f": {_join_values(own)}" * bool(own) + ".")
    return lines


def _find_shared(variants: Sequence[Variant]) -> dict[str, Any]:
    """Parameters that two variants or more have, all with the same value."""
    values = gather(pair for variant in variants for pair in variant.values.items())
    return {
        name: held[0]
        for name, held in values.items()
        if len(held) > 1 and all(value == held[0] for value in held)
    }


def _join_values(values: Mapping[str, Any]) -> str:
    # R and V are metrics, too.
    symbols = {metric.symbol for metric in METRICS.values()}
    parts = []
    for name, value in sorted(values.items()):
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        text = f"{text[:12]}..." if len(text) > 60 else text
        parts.append(f"{'parameter ' * (name in symbols)}{name} = {text}")
    return ", ".join(parts)
