"""Variants of methods and problems put together: which readings of a paper are tested with which."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cbobench.results.manifest import Variant

Choice = dict[str, list[Variant]]


def short(value: Any) -> str:
    """A parameter's value in a word."""
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)


def named(variants: Iterable[Variant], name: str) -> list[Variant]:
    """Those with a registered name."""
    return [variant for variant in variants if variant.name == name]


def varying(variants: Sequence[Variant], within: Sequence[str] = ()) -> list[str]:
    """Parameters that several variants of one name have with different values."""
    names = dict.fromkeys(name for variant in variants for name in variant.values)
    return [
        name
        for name in names
        if name not in within and len({short(variant.values.get(name)) for variant in variants}) > 1
    ]


@dataclass(frozen=True)
class _Kind:
    """Variants of one name that differ `within` only, with what tells them from others of the name."""

    name: str
    shared: Mapping[str, str]  # parameters that other names vary, too
    own: Mapping[str, str]
    variants: list[Variant]


def choices(variants: Sequence[Variant], within: Sequence[str] = ()) -> Iterator[Choice]:
    """Ways to take one variant per name, but several where they differ in `within` only; every variant is in one.

    Names that vary the same parameter go together where they have the same value of it. Of the readings of one method
    only, at most one is another than the first; where a value is one method's alone, the others are taken that agree
    most with it, the first of them.
    """
    names = list(dict.fromkeys(variant.name for variant in variants))
    vary = {name: varying(named(variants, name), within) for name in names}
    several = {p for p in itertools.chain(*vary.values()) if sum(p in some for some in vary.values()) > 1}
    kinds: dict[str, list[_Kind]] = {name: [] for name in names}
    for variant in variants:
        value = {p: short(variant.values.get(p)) for p in vary[variant.name]}
        shared, own = ({p: w for p, w in value.items() if (p in several) is wanted} for wanted in (True, False))
        known = next((k for k in kinds[variant.name] if (k.shared, k.own) == (shared, own)), None)
        if known is None:
            kinds[variant.name].append(known := _Kind(variant.name, shared, own, []))
        known.variants.append(variant)
    first = {(name, short(k.shared)): k for name in names for k in reversed(kinds[name])}
    seen: list[tuple[_Kind, ...]] = [()]
    for name in names:  # one name after the other: the product of all would be long
        seen = [(*chosen, kind) for chosen in seen for kind in kinds[name] if _go_together((*chosen, kind), first)]
    for kind in itertools.chain(*kinds.values()):
        if not any(kind in chosen for chosen in seen):
            near = [kind if name == kind.name else max(kinds[name], key=lambda k: _agree(k, kind)) for name in names]
            seen.append(tuple(near))
    yield from ({k.name: k.variants for k in chosen} for chosen in seen)


def _go_together(chosen: Sequence[_Kind], first: Mapping[tuple[str, str], _Kind]) -> bool:
    """Whether the last agrees with all before, and at most one of all is another than the first of its name."""
    *before, last = chosen
    others = sum(kind is not first[kind.name, short(kind.shared)] for kind in chosen)
    return others <= 1 and all(_agree(kind, last) == len(kind.shared.keys() & last.shared) for kind in before)


def _agree(a: _Kind, b: _Kind) -> int:
    """How many of the parameters that both vary have the same value."""
    return sum(a.shared[p] == b.shared[p] for p in a.shared.keys() & b.shared)
