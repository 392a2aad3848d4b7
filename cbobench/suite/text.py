"""Reads a suite file and builds what its entries name: every error names file and line, before
anything is prepared.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

from cbobench import params, resources
from cbobench.algorithms import ALGORITHMS
from cbobench.errors import (
    Misuse,
    mask_secrets,
    nearest,
    refuse_strange,
    show,
    unknown,
    wrong_value,
)
from cbobench.problems import PROBLEMS
from cbobench.problems.base import Problem
from cbobench.problems.tables.past import FILE
from cbobench.suite import yamlio
from cbobench.suite.call import Call
from cbobench.suite.cells import Pair
from cbobench.suite.settings import (
    KEYS,
    SPREAD,
    Demand,
    apply_settings,
    parse_initial,
    parse_parallel,
    parse_resources,
)
from cbobench.suite.values import is_floor, is_whole, parse_whole
from cbobench.suite.variants import Variant, short
from cbobench.suite.yamlio import (
    MAX_CELLS,
    MAX_HORIZON,
    MAX_PAIRS,
    MAX_SEED,
    MAX_SEEDS,
    MAX_VARIANTS,
    Located,
    LocatedList,
    SourceLine,
    copy_without_lines,
)

DEFAULT_KEEP = 1000
NAME = re.compile(r"[A-Za-z0-9][\w .-]*")
OF_MODELS = (
    "is the problem's: methods with kernel: given take it from there (as in problems: rkhs: "
    "{lengthscale: …}), with "
    "kernel: fit they learn it"
)

ABOUT_SETTING = re.compile(
    r"unknown parameter '(\w+)'|(?:^|: )(\w+)(?=: | is | names | needs | holds )|: (input) (?=')"
)
"""Where errors of an entry name the setting that they are about."""
NEEDED = ("suite", "horizon", "seeds", "problems", "algorithms")
MAX_FACTORS = 8  # of a product that is refused, which are named


@dataclass(frozen=True)
class Entry:
    """A name with the values of each of its settings: one, or those of its `{sweep: [...]}`.

    Attributes:
        resources: what the suite says that a task of it needs.
        lines: of its settings in the file.
    """

    name: str
    axes: Mapping[str, Sequence[Any]]
    swept: frozenset[str]
    label: str | None
    line: int
    resources: Any = None
    lines: Mapping[str, int] = field(default_factory=dict)

    def find_line(self, complaint: str) -> int:
        """Return the line of the setting that an error is about, the entry's where it names
        none.
        """
        for match in ABOUT_SETTING.finditer(complaint):
            name = next(filter(None, match.groups()))
            for key in (name, f"{name}s"):  # "input 'gas'" is of inputs
                if key in self.lines:
                    return self.lines[key]
        # "rows 'ovens.csv' does not exist"
        return self.lines.get(complaint.partition(" ")[0], self.line)

    @property
    def count(self) -> int:
        """Number of variants."""
        return prod(map(len, self.axes.values()))

    def settings(self) -> Iterator[dict[str, Any]]:
        """Yield the settings of every variant: the product of the axes."""
        for values in product(*self.axes.values()):
            yield dict(zip(self.axes, values, strict=True))


def entries(content: Located, key: str, at: SourceLine) -> list[Entry]:
    items = content[key]
    if not isinstance(items, LocatedList) or not items:
        allowed = "a list of names, or of name: {parameters}"
        raise wrong_value(key, items, allowed, at(content.lines[key]))
    result = []
    for item, line in zip(items, items.lines, strict=True):
        named = {item: None} if isinstance(item, str) else item
        if not isinstance(named, dict) or len(named) != 1:
            raise Misuse(
                f"{at(line)}{show(item)} is not an entry; write a name, or name: {{parameters}}"
            )
        name, settings = next(iter(named.items()))
        if settings is None:
            settings = copy_without_lines({})
        if not isinstance(settings, Located):
            raise wrong_value(f"what stands for {name}", settings, "{parameters}", at(line))
        if key == "problems" and "resources" in settings:
            raise Misuse(f"{at(line)}{name} is a problem; resources are those of an algorithm")
        result.append(_entry(name, settings, line, at))
    return result


def _entry(name: str, settings: Located, line: int, at: SourceLine) -> Entry:
    label = settings.get("label")
    if label is not None and (not isinstance(label, str) or not label.strip()):
        raise wrong_value("label", label, "text", at(line))
    axes: dict[str, Sequence[Any]] = {}
    swept_keys = set()
    for key, value in settings.items():
        if key in ("label", "resources"):
            continue
        swept = isinstance(value, Mapping) and "sweep" in value
        values = _swept(value["sweep"]) if swept else [value]
        if swept and (list(value) != ["sweep"] or not values):
            allowed = "a value, {sweep: [values]}, or whole numbers as {sweep: 1-54}"
            raise wrong_value(key, value, allowed, at(settings.lines[key]))
        axes[key] = values if isinstance(values, range) else params.plain(values)
        if swept:
            swept_keys.add(key)
    counts = {key: len(values) for key, values in axes.items()}
    refuse_product(counts, MAX_VARIANTS, f"variants of {show(name)}", at(line))
    return Entry(
        name=name,
        axes=axes,
        swept=frozenset(swept_keys),
        label=label,
        line=line,
        resources=settings.get("resources"),
        lines=settings.lines,
    )


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
    if isinstance(values, list):
        return values
    return []


def build_problems(
    entry: Entry, at: SourceLine, imports: bool, beside: Sequence[Path], stored: bool = False
) -> Iterator[tuple[Problem, Variant]]:
    """Yield the problems of an entry, not prepared yet, with variants that have their names but not
    their identity.

    Args:
        stored: whether the entry is of a cell, whose settings are complete.
    """
    cls = PROBLEMS.get(entry.name, location=at(entry.line), imports=imports, beside=beside)
    for problem, variant in _build_variants(entry, cls, {}, at):
        settings = variant.settings if stored else cls.complete(variant.settings)
        if settings != variant.settings:
            problem = params.build(cls, settings)
        yield problem, replace(variant, settings=settings, values=settings)


def algorithm_variants(
    entry: Entry, at: SourceLine, shared: Mapping[str, Any], imports: bool, beside: Sequence[Path]
) -> list[Variant]:
    """Return the algorithms of an entry, each with what the suite shares that it has."""
    location = at(entry.line)
    cls = ALGORITHMS.get(entry.name, location=location, imports=imports, beside=beside)
    try:
        params.refuse_unfinished(cls)
    except Misuse as error:
        raise Misuse(f"{location}{error}") from None
    names = {p.name for p in params.params_of(cls)}
    if "lengthscale" in entry.axes and "lengthscale" not in names and "kernel" in names:
        raise Misuse(f"{location}{entry.name}: 'lengthscale' {OF_MODELS}")
    common = {name: value for name, value in shared.items() if name in names}
    return [variant for _, variant in _build_variants(entry, cls, common, at)]


def _build_variants(
    entry: Entry, cls: type[Any], common: dict[str, Any], at: SourceLine
) -> Iterator[tuple[Any, Variant]]:
    """Yield what each combination of an entry's settings builds, with its variant.

    Args:
        common: settings that the suite shares.
    """
    for given in entry.settings():
        try:
            built = params.build(cls, common | given)
        except Misuse as error:
            raise Misuse(f"{at(entry.find_line(str(error)))}{entry.name}: {error}") from error
        settings = params.resolve(cls, common | given)
        values = params.identity(cls, settings)
        # resolved values: 1 and 1.0 are equal
        named = {name: settings[name] for name in given}
        variant = Variant(
            name=entry.name, given=named, values=values, label=entry.label or "", settings=settings
        )
        swept = [f"{name} = {short(named[name])}" for name in named if name in entry.swept]
        label = variant.title
        if entry.label is not None:
            label = f"{entry.label} ({', '.join(swept)})" if swept else entry.label
        yield built, replace(variant, label=label)


def refuse_product(counts: Mapping[str, int], limit: int, noun: str, location: str) -> None:
    """Raise `Misuse` for more combinations than allowed, before they are made.

    Args:
        counts: the number of each factor, by name.
    """
    size = prod(counts.values())
    if size > limit:
        factors = [f"{count:,} {name}" for name, count in counts.items() if count > 1]
        ellipsis = f" x … ({len(factors):,} in all)" if len(factors) > MAX_FACTORS else ""
        # Python refuses to write a number of thousands of digits.
        text = f"{size:,}" if size < 10**15 else "over 10^15"
        raise Misuse(
            f"{location}{' x '.join(factors[:MAX_FACTORS])}{ellipsis} = {text} {noun}; allowed: "
            f"{limit:,}; "
            "cut it into several suites"
        )


@dataclass(frozen=True)
class SuiteText:
    """What a suite says, with what a call changes in it, checked as far as that takes no time.

    Attributes:
        call: which part is played; T and the seeds are those that it asks for.
        command: its command line, without secrets.
        path: of the file, "the suite" for a mapping.
        lines: of the keys.
        name, about: for readers.
        horizon, seeds: of every cell.
        keep: rounds that are recorded, None for all.
        timeout, skips: seconds per cell, whether pairs may be unplayable.
        floor: below which differences count as ties, None where nothing is said.
        initial: the initial design (see `parse_initial`).
        algorithms: with what a task of each needs.
        problems: by entry, those that are built and not prepared; their variants have no identity
            yet.
        selected: titles of problem and algorithm of the pairs that the call asks for.
    """

    call: Call
    command: tuple[str, ...]
    path: Path
    lines: Mapping[str, int]
    name: str
    about: str
    horizon: int
    seeds: Sequence[int]
    keep: int | None
    timeout: float | None
    skips: bool
    floor: float | None
    initial: dict[str, Any]
    algorithms: list[tuple[Variant, Demand]]
    problems: list[tuple[Entry, list[tuple[Problem, Variant]]]]
    selected: Collection[tuple[str, str]]

    @property
    def at(self) -> SourceLine:
        """Gives the start of an error."""
        return SourceLine(self.path)

    def place(self, key: str) -> str:
        """Return the start of an error that is about a key."""
        return self.at(self.lines.get(key, 0))


def read_suite(call: Call) -> SuiteText:
    """Read a suite and refuse what shows without preparing a problem.

    Raises:
        Misuse: anything unknown, missing, out of range or impossible, or more cells than a run may
            have.
    """
    is_mapping = isinstance(call.suite, Mapping)
    path = Path("the suite") if is_mapping else resources.find_suite(str(call.suite))
    refuse_strange(str(path), "the suite's file name")
    content = yamlio.load(call.suite, path)
    at = SourceLine(path)

    def place(key: str) -> str:
        return at(content.lines.get(key, 0))

    command = tuple(mask_secrets(word) for word in call.command)
    for word in command:
        refuse_strange(word, "the command line:")
    _check_keys(content, at)

    # Values come before entries, whose classes have to be imported.
    chosen = {"horizon": call.horizon, "seeds": call.seeds}
    content |= {key: value for key, value in chosen.items() if value is not None}
    horizon = parse_whole("horizon", content["horizon"], 1, MAX_HORIZON, place("horizon"))
    seeds = _parse_seeds(content["seeds"], place("seeds"))
    shared = _parse_shared(content.get("shared"), place("shared"))
    keep = _parse_keep(content.get("record", {"rounds": DEFAULT_KEEP}), place("record"))
    timeout = _parse_timeout(content.get("timeout"), place("timeout"))
    skips = _parse_skip(content.get("skip"), place("skip"))
    floor = _parse_floor(content.get("floor"), place("floor"))
    name = _parse_name(content["suite"], place("suite"))
    about = _parse_about(content.get("about"), place("about"))

    # Counted before anything is made of them: a sweep of a few words may stand for billions of
    # cells.
    listed = {key: entries(content, key, at) for key in ("problems", "algorithms")}
    counts = {key: sum(entry.count for entry in key_entries) for key, key_entries in listed.items()}
    refuse_product(counts, MAX_PAIRS, "pairs", f"{path}: ")
    if call.only is None:
        _refuse_many_cells(prod(counts.values()), seeds, path)

    parallel: dict[str, Any] = {}
    if "parallel" in content:
        parallel = parse_parallel(content["parallel"], horizon, place("parallel"))
    initial: dict[str, Any] = {}
    if "initial" in content:
        initial = parse_initial(content["initial"], horizon, place("initial"), path.parent)
    if FILE in initial and parallel:
        raise Misuse(
            f"{place('parallel')}parallel is {parallel['points']}, but past measurements (initial: "
            "file) are told one at a time; remove one of them"
        )

    # Of entries, algorithms come first: they are few, and of problems some read files.
    imports = call.imports
    beside = [path.parent, Path()]
    common = (SPREAD if parallel else {}) | shared
    algorithms: list[tuple[Variant, Demand]] = []
    for entry in listed["algorithms"]:
        variants = algorithm_variants(entry, at, common, imports, beside)
        demand = parse_resources(entry.resources, at(entry.lines.get("resources", entry.line)))
        algorithms += [(apply_settings(v, initial, parallel), demand) for v in variants]
    played = [variant for variant, _ in algorithms]
    check_unique(played, "algorithm", path)
    _check_shared(shared, played, place("shared"))
    problems = [
        (entry, [*build_problems(entry, at, imports, beside)]) for entry in listed["problems"]
    ]
    built = [variant for _, entry_problems in problems for _, variant in entry_problems]
    selected = _select_pairs(built, played, call.only)
    _refuse_many_cells(len(selected), seeds, path)  # `only` may leave few of too many
    return SuiteText(
        call=call,
        command=command,
        path=path,
        lines=content.lines,
        name=name,
        about=about,
        horizon=horizon,
        seeds=seeds,
        keep=keep,
        timeout=timeout,
        skips=skips,
        floor=floor,
        initial=initial,
        algorithms=algorithms,
        problems=problems,
        selected=selected,
    )


def _check_keys(content: yamlio.Located, at: SourceLine) -> None:
    """Raise `Misuse` for a key of a suite that is unknown, or missing."""
    for key in content:
        if key not in KEYS:
            raise unknown("key", key, KEYS, location=at(content.lines.get(key, 0)))
    for key in NEEDED:
        if key not in content:
            needed = ", ".join(NEEDED)
            raise Misuse(f"{at.path}: the key {key!r} is missing; needed: {needed}")


def _select_pairs(
    problems: Sequence[Variant], algorithms: Sequence[Variant], only: str | None
) -> Collection[tuple[str, str]]:
    """Return the titles of problem and algorithm of the pairs that a call asks for.

    Raises:
        Misuse: there is none.
    """
    every = [Pair(problem, algorithm) for problem in problems for algorithm in algorithms]
    pairs = [pair for pair in every if pair.matches(only)]
    if not pairs:
        aliases = [
            alias
            for pair in every
            for alias in (pair.title, *pair.problem.aliases, *pair.algorithm.aliases)
        ]
        close = nearest(str(only), aliases)
        examples = ", ".join(f"{pair.problem.brief}/{pair.algorithm.brief}" for pair in every[:6])
        hint = f"did you mean {close!r}? " if close else ""
        raise Misuse(
            f"--only {show(only)} matches nothing; {hint}pairs are {examples}, ... (use * as a "
            "wildcard)"
        )
    return {(pair.problem.title, pair.algorithm.title) for pair in pairs}


def _check_shared(shared: Mapping[str, Any], algorithms: Sequence[Variant], location: str) -> None:
    """Raise `Misuse` for a shared parameter that no algorithm has."""
    known = {p.name for v in algorithms for p in params.params_of(ALGORITHMS.get(v.name))}
    for name in shared:
        if name not in known:
            raise unknown(
                "shared parameter",
                name,
                known,
                location=location,
                then="no algorithm of this suite has it",
            )


def _refuse_many_cells(pairs: int, seeds: Sequence[int], path: Path) -> None:
    refuse_product({"pairs": pairs, "seeds": len(seeds)}, MAX_CELLS, "cells", f"{path}: ")


def check_unique(variants: Sequence[Variant], noun: str, path: Path) -> None:
    """Raise `Misuse` for two that have a title, a label or an identity in common."""
    for attribute in ("title", "label", "key"):
        first_variants: dict[str, Variant] = {}
        for variant in variants:
            value = getattr(variant, attribute)
            if value in first_variants:
                hint = "remove one" if attribute != "label" else "give them different labels"
                first = first_variants[value].label
                suffix = "" if first == variant.label else f", once as {show(variant.label)}"
                raise Misuse(f"{path}: {noun} {show(first)} stands twice{suffix}; {hint}")
            first_variants[value] = variant
    titles = {variant.title: variant for variant in variants}
    for variant in variants:
        if titles.get(variant.label, variant) is not variant or variant.borrows_name:
            raise Misuse(
                f"{path}: the label {show(variant.label)} of {show(variant.title)} is the name of "
                "another method or problem; give it another label"
            )


def _parse_seeds(value: Any, location: str) -> Sequence[int]:
    seeds: Sequence[Any] = ()
    if isinstance(value, list):
        seeds = tuple(value)
    elif is_whole(value):
        seeds = range(value)
    elif isinstance(value, Mapping) and {*value} == {"first", "count"}:
        are_whole = all(map(is_whole, value.values()))
        seeds = range(value["first"], value["first"] + value["count"]) if are_whole else ()
    # Of what is far too long only the beginning is looked at, of a range its ends.
    shown = seeds[: MAX_SEEDS + 1]
    looked_at = shown if isinstance(value, list) else [*shown[:1], *shown[-1:]]
    are_seeds = all(is_whole(seed) and 0 <= seed <= MAX_SEED for seed in looked_at)
    if not are_seeds or not 0 < len(shown) <= MAX_SEEDS or len({*shown}) < len(shown):
        raise wrong_value(
            "seeds",
            value,
            "a count, a list of whole numbers, or {first: a, count: n}; from 1 to "
            f"{MAX_SEEDS:,} different ones, of at least 0 and at most {MAX_SEED:,}",
            location,
        )
    return seeds


def _parse_shared(value: Any, location: str) -> dict[str, Any]:
    if value is not None and not isinstance(value, Mapping):
        raise wrong_value("shared", value, "a mapping of parameters to values", location)
    return dict(value or {})


def _parse_keep(value: Any, location: str) -> int | None:
    if value == "all":
        return None
    if not isinstance(value, Mapping) or {*value} != {"rounds"}:
        raise wrong_value("record", value, "all, or {rounds: a whole number}", location)
    return parse_whole("record: rounds", value["rounds"], 1, MAX_HORIZON, location)


def _parse_timeout(value: Any, location: str) -> float | None:
    is_number = is_whole(value) or isinstance(value, float)
    if value is not None and not (is_number and 0 < value < float("inf")):
        raise wrong_value("timeout", value, "a number of seconds per cell, above 0", location)
    return value


def _parse_skip(value: Any, location: str) -> bool:
    if value not in (None, "unplayable"):
        raise wrong_value("skip", value, "unplayable", location)
    return value is not None


def _parse_floor(value: Any, location: str) -> float | None:
    if value is None:
        return None
    if not is_floor(value):
        allowed = "a number from 0, below which differences of regret are ties, such as 1e-4"
        raise wrong_value("floor", value, allowed, location)
    return float(value)


def _parse_name(name: Any, location: str) -> str:
    if not isinstance(name, str) or not NAME.fullmatch(name):
        allowed = "a name of letters, digits, - _ . and spaces"
        raise wrong_value("suite", name, allowed, location)
    return name


def _parse_about(about: Any, location: str) -> str:
    if not isinstance(about or "", str):
        raise wrong_value("about", about, "text", location)
    return about or ""
