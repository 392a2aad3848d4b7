"""The entries of a suite file under `problems` and `algorithms`, and the variants of each."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cbobench import params
from cbobench.algorithms import ALGORITHMS
from cbobench.errors import Misuse, show
from cbobench.problems import PROBLEMS
from cbobench.problems.base import Problem
from cbobench.suite import yamlio
from cbobench.suite.settings import ONE, Demand, parse_resources
from cbobench.suite.variants import Variant, short
from cbobench.suite.yamlio import MAX_VARIANTS, refuse_product

OF_MODELS = (
    "is the problem's: methods with kernel: given take it from there (as in problems: rkhs: "
    "{lengthscale: …}), with "
    "kernel: fit they learn it"
)

ABOUT_SETTING = re.compile(
    r"unknown parameter '(\w+)'|(?:^|: )(\w+)(?=: | is | names | needs | holds )|: (input) (?=')"
)
"""Where errors of an entry name the setting that they are about."""


@dataclass(frozen=True)
class SourceLine:
    """A place in a suite file, at the start of an error."""

    path: Path

    def __call__(self, line: int) -> str:
        return f"{self.path}:{line}: " if line else f"{self.path}: "


@dataclass(frozen=True)
class Entry:
    """A name with the values of each of its settings: one, or those of its `{sweep: [...]}`.

    Attributes:
        lines: of its settings in the file, and of those within one by both names, such as
            "constraints.late".
    """

    name: str
    axes: Mapping[str, Sequence[Any]]
    swept: frozenset[str]
    label: str | None
    line: int
    demand: Demand
    lines: Mapping[str, int] = field(default_factory=dict)

    def find_line(self, complaint: str) -> int:
        """Return the line of the setting that an error is about, the entry's where it names
        none.
        """
        for match in ABOUT_SETTING.finditer(complaint):
            name = next(filter(None, match.groups()))
            name = name if name in self.lines else f"{name}s"  # "input 'gas'" is of inputs
            if name in self.lines:
                inner = re.search(r"'([^']+)'", complaint[match.start() :])
                return self.lines.get(
                    f"{name}.{inner.group(1)}" if inner else name, self.lines[name]
                )
        # "rows 'ovens.csv' does not exist"
        return self.lines.get(complaint.partition(" ")[0], self.line)

    @property
    def count(self) -> int:
        """Number of variants."""
        return math.prod(map(len, self.axes.values()))

    def settings(self) -> Iterator[dict[str, Any]]:
        """Yield the settings of every variant: the product of the axes."""
        for values in itertools.product(*self.axes.values()):
            yield dict(zip(self.axes, values, strict=True))


def entries(content: yamlio.Located, key: str, at: SourceLine) -> list[Entry]:
    items = content[key]
    if not isinstance(items, yamlio.LocatedList) or not items:
        problem = f"{at(content.lines[key])}{key} is {show(items)}"
        raise Misuse(f"{problem}; allowed: a list of names, or of name: {{parameters}}")
    result = []
    for item, line in zip(items, items.lines, strict=True):
        if isinstance(item, str):
            result.append(Entry(item, {}, frozenset(), None, line, ONE))
        elif isinstance(item, yamlio.Located) and len(item) == 1:
            name, settings = next(iter(item.items()))
            if settings is None:
                settings = yamlio.copy_without_lines({})
            if not isinstance(settings, yamlio.Located):
                raise Misuse(
                    f"{at(line)}parameters of {show(name)} must be a mapping, not {show(settings)}"
                )
            label = settings.get("label")
            if label is not None and (not isinstance(label, str) or not label.strip()):
                raise Misuse(f"{at(line)}label is {show(label)}; it must be text")
            if key == "problems" and "resources" in settings:
                raise Misuse(f"{at(line)}{name} is a problem; resources are those of an algorithm")
            result.append(_entry(name, settings, label, line, at))
        else:
            raise Misuse(
                f"{at(line)}{show(item)} is not an entry; write a name, or name: {{parameters}}"
            )
    return result


def _entry(
    name: str, settings: yamlio.Located, label: str | None, line: int, at: SourceLine
) -> Entry:
    axes: dict[str, Sequence[Any]] = {}
    swept_keys = set()
    for key, value in settings.items():
        if key in ("label", "resources"):
            continue
        swept = isinstance(value, Mapping) and "sweep" in value
        values = _swept(value["sweep"]) if swept else [value]
        if swept and (list(value) != ["sweep"] or not values):
            allowed = "a value, {sweep: [values]}, or whole numbers as {sweep: 1-54}"
            raise Misuse(f"{at(settings.lines[key])}{key} is {show(value)}; allowed: {allowed}")
        axes[key] = values if isinstance(values, range) else params.plain(values)
        if swept:
            swept_keys.add(key)
    counts = {key: len(values) for key, values in axes.items()}
    refuse_product(counts, MAX_VARIANTS, f"variants of {show(name)}", at(line))
    demand = parse_resources(settings.get("resources"), at(settings.lines.get("resources", line)))
    inner = {key: value for key, value in settings.items() if isinstance(value, yamlio.Located)}
    lines = {
        f"{key}.{name}": number
        for key, value in inner.items()
        for name, number in value.lines.items()
    }
    return Entry(name, axes, frozenset(swept_keys), label, line, demand, lines | settings.lines)


def _swept(values: Any) -> Sequence[Any]:
    """The values of a sweep: a list, or the whole numbers from the first to the last of "1-54";
    none if it is neither.

    A range may be far too long to be listed, and there may be many: it stays a range, which has at
    most one value more than an entry may have variants.
    """
    if isinstance(values, str) and (
        ends := re.fullmatch(r"(\d{1,18}) *- *(\d{1,18})", values, re.ASCII)
    ):
        first, last = map(int, ends.groups())
        return range(first, min(last, first + MAX_VARIANTS) + 1)
    return values if isinstance(values, list) else []


def build_problems(
    entry: Entry, at: SourceLine, imports: bool, beside: Sequence[Path]
) -> Iterator[tuple[Problem, Variant]]:
    """Yield the problems of an entry, not prepared yet, with variants that have their names but not
    their identity.
    """
    location = at(entry.line)
    cls = PROBLEMS.get(entry.name, location=location, imports=imports, beside=beside)
    for settings in entry.settings():
        problem: Problem = _build(cls, settings, entry, at)
        resolved = params.resolve(cls, settings)
        yield problem, _variant(entry, settings, resolved, resolved)


def _build(cls: type[Any], settings: Mapping[str, Any], entry: Entry, at: SourceLine) -> Any:
    try:
        return params.build(cls, settings)
    except Misuse as error:
        raise Misuse(f"{at(entry.find_line(str(error)))}{entry.name}: {error}") from error


def algorithm_variants(
    entry: Entry, at: SourceLine, shared: Mapping[str, Any], imports: bool, beside: Sequence[Path]
) -> list[Variant]:
    location = at(entry.line)
    cls = ALGORITHMS.get(entry.name, location=location, imports=imports, beside=beside)
    try:
        params.refuse_unfinished(cls)
    except Misuse as error:
        raise Misuse(f"{location}{error}") from None
    names = {p.name for p in params.params_of(cls)}
    common = {name: value for name, value in shared.items() if name in names}
    result = []
    for settings in entry.settings():
        if "lengthscale" in settings and "lengthscale" not in names and "kernel" in names:
            raise Misuse(f"{location}{entry.name}: 'lengthscale' {OF_MODELS}")
        _build(cls, common | settings, entry, at)
        resolved = params.resolve(cls, common | settings)
        result.append(_variant(entry, settings, params.identity(cls, resolved), resolved))
    return result


def _variant(
    entry: Entry, entry_settings: dict[str, Any], values: dict[str, Any], settings: dict[str, Any]
) -> Variant:
    # resolved values: 1 and 1.0 are equal
    entry_settings = {name: settings[name] for name in entry_settings}
    label = (
        entry.label
        if entry.label is not None
        else Variant(entry.name, entry_settings, values, "", settings).title
    )
    swept = {k: v for k, v in entry_settings.items() if k in entry.swept}
    if entry.label is not None and swept:
        label += f" ({', '.join(f'{k} = {short(v)}' for k, v in swept.items())})"
    return Variant(entry.name, entry_settings, values, label, settings)
