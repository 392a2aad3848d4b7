"""Reads a suite file: every error names file and line, before anything is prepared."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from cbobench import params, resources
from cbobench.algorithms import ALGORITHMS
from cbobench.call import Call
from cbobench.errors import Misuse, mask_secrets, refuse_strange, show, unknown
from cbobench.problems.base import Problem
from cbobench.problems.tables.past import FILE
from cbobench.suite import yamlio
from cbobench.suite.cells import Pair
from cbobench.suite.entries import Entry, SourceLine, algorithm_variants, build_problems, entries
from cbobench.suite.settings import (
    KEYS,
    SPREAD,
    Demand,
    apply_settings,
    parse_initial,
    parse_parallel,
)
from cbobench.suite.variants import Variant, borrows_name
from cbobench.suite.yamlio import (
    MAX_CELLS,
    MAX_HORIZON,
    MAX_PAIRS,
    MAX_SEED,
    MAX_SEEDS,
    check_texts,
    refuse_product,
)

DEFAULT_KEEP = 1000
NAME = re.compile(r"[A-Za-z0-9][\w .-]*")


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
        initial: the initial design (see `parse_initial`).
        algorithms: with what a task of each needs.
        problems: by entry, those that are built and not prepared; their variants have no identity
            yet.
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
    initial: dict[str, Any]
    algorithms: list[tuple[Variant, Demand]]
    problems: list[tuple[Entry, list[tuple[Problem, Variant]]]]

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
    if isinstance(call.suite, Mapping):
        path, content = Path("the suite"), yamlio.copy_without_lines(call.suite)
    else:
        path = resources.find_suite(call.suite)
        content = yamlio.read(path)
    at = SourceLine(path)

    def place(key: str) -> str:
        return at(content.lines.get(key, 0))

    # What may not be printed is refused before any error quotes it.
    check_texts(content, at)
    command = tuple(mask_secrets(word) for word in call.command)
    for word in command:
        refuse_strange(word, "the command line:")
    _check_keys(content, path, at)
    T = _parse_horizon(
        content["horizon"] if call.horizon is None else call.horizon, place("horizon")
    )
    seeds = _parse_seeds(content["seeds"] if call.seeds is None else call.seeds, place("seeds"))
    # Counted before anything is made of them: a sweep of a few words may stand for billions of
    # cells.
    listed = {key: entries(content, key, at) for key in ("problems", "algorithms")}
    counts = {key: sum(entry.count for entry in key_entries) for key, key_entries in listed.items()}
    refuse_product(counts, MAX_PAIRS, "pairs", f"{path}: ")
    if call.only is None:
        _refuse_many_cells(prod(counts.values()), seeds, path)
    # Values come before entries, whose classes have to be imported.
    initial = (
        parse_initial(content["initial"], T, place("initial"), path.parent)
        if "initial" in content
        else {}
    )
    parallel = (
        parse_parallel(content["parallel"], T, place("parallel")) if "parallel" in content else {}
    )
    if FILE in initial and parallel:
        raise Misuse(
            f"{place('parallel')}parallel is {parallel['points']}, but past measurements (initial: "
            "file) are told one at a time; remove one of them"
        )
    shared = _parse_shared(content.get("shared"), place("shared"))
    keep = _parse_keep(content.get("record", {"rounds": DEFAULT_KEEP}), place("record"))
    timeout = _parse_timeout(content.get("timeout"), place("timeout"))
    skip = content.get("skip")
    if skip not in (None, "unplayable"):
        raise Misuse(f"{place('skip')}skip is {show(skip)}; allowed: unplayable")
    name, about = _parse_names(content, place("suite"), place("about"))
    # Of entries, algorithms come first: they are few, and of problems some read files.
    imports, beside = call.imports, [path.parent, Path()]
    common = (SPREAD if parallel else {}) | shared
    algorithms = [
        (apply_settings(variant, initial, parallel), entry.demand)
        for entry in listed["algorithms"]
        for variant in algorithm_variants(entry, at, common, imports, beside)
    ]
    variants = [variant for variant, _ in algorithms]
    _check_shared(shared, variants, place("shared"))
    check_unique(variants, "algorithm", path)
    problems = [
        (entry, [*build_problems(entry, at, imports, beside)]) for entry in listed["problems"]
    ]
    if call.only is not None:  # it may leave few of too many
        built = [variant for _, entry_problems in problems for _, variant in entry_problems]
        pairs = sum(
            Pair(problem, algorithm).matches(call.only)
            for problem in built
            for algorithm in variants
        )
        _refuse_many_cells(pairs, seeds, path)
    return SuiteText(
        call,
        command,
        path,
        content.lines,
        name,
        about,
        horizon=T,
        seeds=seeds,
        keep=keep,
        timeout=timeout,
        skips=skip is not None,
        initial=initial,
        algorithms=algorithms,
        problems=problems,
    )


def _refuse_many_cells(pairs: int, seeds: Sequence[int], path: Path) -> None:
    refuse_product({"pairs": pairs, "seeds": len(seeds)}, MAX_CELLS, "cells", f"{path}: ")


def _check_keys(content: yamlio.Located, path: Path, at: SourceLine) -> None:
    """Raise `Misuse` for keys that are unknown or missing."""
    for key in content:
        if key not in KEYS:
            raise unknown("key", key, KEYS, location=at(content.lines[key]))
    for key in ("suite", "horizon", "seeds", "problems", "algorithms"):
        if key not in content:
            raise Misuse(
                f"{path}: the key {key!r} is missing; needed: suite, horizon, seeds, problems, "
                "algorithms"
            )


def _check_shared(shared: Mapping[str, Any], algorithms: Iterable[Variant], location: str) -> None:
    """Raise `Misuse` for a shared parameter that no algorithm has."""
    names = {
        p.name for variant in algorithms for p in params.params_of(ALGORITHMS.get(variant.name))
    }
    for name in shared:
        if name not in names:
            raise unknown(
                "shared parameter",
                name,
                names,
                location=location,
                then="no algorithm of this suite has it",
            )


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
        if titles.get(variant.label, variant) is not variant or borrows_name(variant):
            raise Misuse(
                f"{path}: the label {show(variant.label)} of {show(variant.title)} is the name of "
                "another method or problem; give it another label"
            )


def _parse_horizon(value: Any, location: str) -> int:
    if not _is_whole(value) or not 1 <= value <= MAX_HORIZON:
        raise Misuse(
            f"{location}horizon is {show(value)}; it must be a whole number of at least 1, at "
            f"most {MAX_HORIZON}"
        )
    return int(value)


def _parse_seeds(value: Any, location: str) -> Sequence[int]:
    if _is_whole(value) and 0 < value <= MAX_SEEDS:
        return range(value)
    if (
        isinstance(value, list)
        and value
        and all(_is_whole(seed) and 0 <= seed <= MAX_SEED for seed in value)
    ):
        if len(set(value)) < len(value):
            raise Misuse(f"{location}seeds holds a number twice: {show(value)}")
        return tuple(value)
    if isinstance(value, Mapping) and set(value) == {"first", "count"}:
        first, count = value["first"], value["count"]
        if (
            _is_whole(first)
            and _is_whole(count)
            and 0 <= first <= MAX_SEED - count
            and 0 < count <= MAX_SEEDS
        ):
            return range(first, first + count)
    forms = "a count, a list of whole numbers, or {first: a, count: n}"
    if isinstance(value, list) and any(_is_whole(seed) and seed < 0 for seed in value):
        forms = "seeds of at least 0 in a list"
    limits = f"from 1 to {MAX_SEEDS:,} of them, none above {MAX_SEED:,}"
    raise Misuse(f"{location}seeds is {show(value)}; allowed: {forms}; {limits}")


def _parse_shared(value: Any, location: str) -> dict[str, Any]:
    if value is not None and not isinstance(value, Mapping):
        raise Misuse(f"{location}shared is {show(value)}; it must map parameters to values")
    return dict(value or {})


def _parse_keep(value: Any, location: str) -> int | None:
    if value == "all":
        return None
    if (
        isinstance(value, Mapping)
        and set(value) == {"rounds"}
        and _is_whole(value["rounds"])
        and value["rounds"] > 0
    ):
        return int(value["rounds"])
    raise Misuse(
        f"{location}record is {show(value)}; allowed: all, or {{rounds: a whole number of at "
        "least 1}"
    )


def _parse_timeout(value: Any, location: str) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if value is not None and not (is_number and 0 < value < float("inf")):
        raise Misuse(
            f"{location}timeout is {show(value)}; allowed: a number of seconds per cell, above 0"
        )
    return value


def _parse_names(
    content: Mapping[str, Any], name_location: str, about_location: str
) -> tuple[str, str]:
    name, about = content["suite"], content.get("about") or ""
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise Misuse(
            f"{name_location}suite is {show(name)}; allowed: a name of letters, digits, - _ . "
            "and spaces"
        )
    if not isinstance(about, str):
        raise Misuse(f"{about_location}about is {show(about)}; it must be text")
    return name, about


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
