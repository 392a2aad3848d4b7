"""Reads and validates a suite file: every error names file and line, before anything runs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from math import prod
from pathlib import Path
from typing import Any

from cbobench import params
from cbobench.algorithms import ALGORITHMS
from cbobench.errors import Misuse, nearest, refuse_strange, show, unknown
from cbobench.options import accept_fields
from cbobench.problems import PROBLEMS
from cbobench.problems.data import Site
from cbobench.problems.pilot import PILOT
from cbobench.problems.simulated import Store
from cbobench.problems.simulation_totals import CellRounds, count_simulations
from cbobench.problems.simulator import Simulator
from cbobench.suite import yamlio
from cbobench.suite.cells import Grid, Pair, Suite
from cbobench.suite.checks import check_pairs, check_shared, check_unique
from cbobench.suite.entries import (
    Entry,
    SourceLine,
    algorithm_variants,
    build_problems,
    entries,
    prepare_variants,
)
from cbobench.suite.settings import KEYS, ONE, SPREAD, apply_settings, check_initial, parse_initial, parse_parallel
from cbobench.suite.yamlio import (
    MAX_CELLS,
    MAX_HORIZON,
    MAX_PAIRS,
    MAX_SEED,
    MAX_SEEDS,
    check_texts,
    refuse_product,
)
from cbobench.words import count_noun

DEFAULT_KEEP = 1000
NAME = re.compile(r"[A-Za-z0-9][\w .-]*")


@dataclass(frozen=True)
class LoadOptions:
    """Which suite is read, what a call changes in it, and who is told.

    Attributes:
        source: the YAML file, or a mapping with the same content.
        data: the folder of `--data`.
        horizon, seeds: replace the file's T and number of seeds.
        only: a glob over "problem/algorithm" (see `Pair.matches`) that selects the pairs to play. Other pairs need not
            be playable.
        imports: whether import paths (`package.module:Class`) are allowed; their modules are also searched beside the
            suite and in the current folder (see `registry.find_beside`).
        command: the command line, for the record.
        say: called with one line before a step that may take long.
        site: whom problems tell and ask, and where they simulate; its folders are those of this call.
        store: gives, for the suite's name, what gives the store of a problem's simulations (see `SimulationStore.of`).
    """

    source: Path | Mapping[str, Any]
    _: KW_ONLY
    data: Path | None = None
    horizon: int | None = None
    seeds: int | None = None
    only: str | None = None
    imports: bool = True
    command: Sequence[str] = ()
    say: Callable[[str], None] = lambda text: None
    site: Site = Site()
    store: Callable[[str], Callable[[str], Store | None]] = lambda suite: lambda problem: None


@accept_fields(LoadOptions)
def load(options: LoadOptions) -> Suite:
    """Read and validate a suite file; prepare its problems.

    Args: see `LoadOptions`.

    Raises:
        Misuse: anything unknown, missing, out of range or impossible.
    """
    source, only, imports, command = options.source, options.only, options.imports, options.command
    content = yamlio.read(source) if isinstance(source, Path) else yamlio.copy_without_lines(source)
    path = source if isinstance(source, Path) else Path("the suite")
    at = SourceLine(path)
    check_texts(content, at)
    for word in command:
        refuse_strange(word, "the command line:")
    T = _check_keys(content, path, at, options.horizon)
    chosen = _seeds(content["seeds"] if options.seeds is None else options.seeds, at(content.lines["seeds"]))
    shared = content.get("shared", {})
    if shared is None:
        shared = {}
    if not isinstance(shared, Mapping):
        raise Misuse(f"{at(content.lines['shared'])}shared is {show(shared)}; it must map parameters to values")
    listed = {key: entries(content, key, at) for key in ("problems", "algorithms")}
    cells = _count_cells(listed, chosen, path)
    if only is None:
        refuse_product(cells, MAX_CELLS, "cells", f"{path}: ")
    beside = [path.parent, Path()]
    initial = parse_initial(content["initial"], T, at(content.lines["initial"])) if "initial" in content else {}
    parallel = parse_parallel(content["parallel"], T, at(content.lines["parallel"])) if "parallel" in content else {}
    common = (SPREAD if parallel else {}) | dict(shared)
    with_demands = [
        (v, e.demand) for e in listed["algorithms"] for v in algorithm_variants(e, at, common, imports, beside)
    ]
    with_demands = [(apply_settings(variant, initial, parallel), demand) for variant, demand in with_demands]
    skip = content.get("skip")
    if skip not in (None, "unplayable"):
        raise Misuse(f"{at(content.lines['skip'])}skip is {show(skip)}; allowed: unplayable")
    keep = _keep(content.get("record", {"rounds": DEFAULT_KEEP}), at(content.lines.get("record", 0)))
    audit = content.get("audit", False)
    if not isinstance(audit, bool):
        raise Misuse(f"{at(content.lines['audit'])}audit is {show(audit)}; allowed: true, false")
    for noun, setting in (("an initial design", initial), ("several evaluations under way", parallel)):
        if audit and setting:
            raise Misuse(f"{at(content.lines['audit'])}audit is true, but no theorem is of {noun}; remove one")
    timeout = content.get("timeout")
    number = isinstance(timeout, int | float) and not isinstance(timeout, bool)
    if timeout is not None and not (number and 0 < timeout < float("inf")):
        location = at(content.lines["timeout"])
        raise Misuse(f"{location}timeout is {show(timeout)}; allowed: a number of seconds per cell, above 0")
    name, about = content["suite"], content.get("about") or ""
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise Misuse(
            f"{at(content.lines['suite'])}suite is {show(name)}; allowed: a name of letters, digits, - _ . and spaces"
        )
    if not isinstance(about, str):
        raise Misuse(f"{at(content.lines['about'])}about is {show(about)}; it must be text")
    algorithms = [variant for variant, _ in with_demands]
    # Faults of algorithms are reported before problems are prepared, which may take long.
    check_shared(shared, algorithms, at(content.lines.get("shared", 0)), imports)
    check_unique(algorithms, "algorithm", path)
    # So are those of all problems that show without a pilot.
    built = [(entry, [*build_problems(entry, at, imports, beside)]) for entry in listed["problems"]]
    if prod(cells.values()) > MAX_CELLS:  # `only` may leave few of them
        unprepared = [variant for _, entry_problems in built for _, variant in entry_problems]
        cells["pairs"] = sum(Pair(v, algorithm).matches(only) for v in unprepared for algorithm in algorithms)
        refuse_product(cells, MAX_CELLS, "cells", f"{path}: ")
    uncounted = {CellRounds(T, keep, initial.get(PILOT, 0)): len(chosen)}

    def wait(text: str) -> None:
        """Say of a long pilot, before it is begun, what the run takes in all."""
        if uncounted:
            for line in _count_simulations(listed, uncounted, at, beside, imports):
                options.site.say(line)
            uncounted.clear()
        options.site.say(text)

    site = replace(options.site, folder=options.data, base=path.parent, say=_once(wait))
    store_of, with_problems = options.store(name), []
    for i, (entry, entry_problems) in enumerate(built, 1):
        options.say(f"prepares {entry.name} ({i} of {len(built)})")
        kept = replace(site, store=store_of(entry.name))
        with_problems += prepare_variants(
            entry, entry_problems, at, kept, lambda v: any(Pair(v, a).matches(only) for a in algorithms)
        )
    check_unique([variant for variant, _ in with_problems], "problem", path)
    problems = {variant.title: problem for variant, problem in with_problems}
    check_initial(initial, problems, at(content.lines.get("initial", 0)))
    every = [Pair(variant, algorithm) for variant, _ in with_problems for algorithm in algorithms]
    pairs = [pair for pair in every if pair.matches(only)]
    if not pairs:
        aliases = [alias for p in every for alias in (p.title, *p.problem.aliases, *p.algorithm.aliases)]
        close = nearest(str(only), aliases)
        examples = ", ".join(f"{pair.problem.brief}/{pair.algorithm.brief}" for pair in every[:6])
        hint = f"did you mean {close!r}? " if close else ""
        raise Misuse(f"--only {show(only)} matches nothing; {hint}pairs are {examples}, ... (use * as a wildcard)")
    options.say(f"starts every algorithm on every problem ({count_noun(len(pairs), 'pair')})")
    unplayable = check_pairs(pairs, problems, site, T, path, skip is not None)
    left_out = {id(pair) for pair, _ in unplayable}
    pairs = [pair for pair in pairs if id(pair) not in left_out]
    demands = {variant.title: demand for variant, demand in with_demands if demand != ONE}
    variants = tuple(v for v, _ in with_problems), tuple(algorithms)
    grid = Grid(*variants, T, tuple(chosen), tuple(pairs), tuple(command), tuple(unplayable))
    return Suite(name, about, keep, grid, problems, audit, timeout, demands)


def _check_keys(content: yamlio.Located, path: Path, at: SourceLine, horizon: int | None = None) -> int:
    """Refuse keys that are unknown or missing; return T, which `horizon` replaces."""
    for key in content:
        if key not in KEYS:
            raise unknown("key", key, KEYS, location=at(content.lines[key]))
    for key in ("suite", "horizon", "seeds", "problems", "algorithms"):
        if key not in content:
            raise Misuse(f"{path}: the key {key!r} is missing; needed: suite, horizon, seeds, problems, algorithms")
    T = content["horizon"] if horizon is None else horizon
    if not _whole(T) or not 1 <= T <= MAX_HORIZON:
        line = at(content.lines["horizon"])
        raise Misuse(f"{line}horizon is {show(T)}; it must be a whole number of at least 1, at most {MAX_HORIZON}")
    return int(T)


def _count_cells(listed: Mapping[str, list[Entry]], seeds: Sequence[int], path: Path) -> dict[str, int]:
    """How many pairs and seeds a suite has; too many pairs are refused before any is made."""
    counts = {key: sum(entry.count for entry in key_entries) for key, key_entries in listed.items()}
    refuse_product(counts, MAX_PAIRS, "pairs", f"{path}: ")
    return {"pairs": prod(counts.values()), "seeds": len(seeds)}


def count_before(source: Path) -> list[str]:
    """A line per simulator of a suite on the simulations that a run of all its cells takes; nothing is prepared.

    Raises:
        Misuse: the suite cannot be read, names what there is not, or has more cells than a run may have.
    """
    content, at = yamlio.read(source), SourceLine(source)
    horizon, beside = _check_keys(content, source, at), [source.parent, Path()]
    listed = {key: entries(content, key, at) for key in ("problems", "algorithms")}
    seeds = _seeds(content["seeds"], at(content.lines["seeds"]))
    refuse_product(_count_cells(listed, seeds, source), MAX_CELLS, "cells", f"{source}: ")
    keep = _keep(content.get("record", {"rounds": DEFAULT_KEEP}), at(content.lines.get("record", 0)))
    at_initial = at(content.lines.get("initial", 0))
    initial = parse_initial(content["initial"], horizon, at_initial) if "initial" in content else {}
    return _count_simulations(listed, {CellRounds(horizon, keep, initial.get(PILOT, 0)): len(seeds)}, at, beside)


def _count_simulations(
    listed: Mapping[str, list[Entry]],
    cells: Mapping[CellRounds, int],
    at: SourceLine,
    beside: Sequence[Path],
    imports: bool = True,
) -> list[str]:
    """A line per simulator on the simulations of all cells, which each pair of a suite has."""
    of_all: Counter[CellRounds] = Counter()
    for entry in listed["algorithms"]:
        cls = ALGORITHMS.get(entry.name, location=at(entry.line), imports=imports, beside=beside)
        for rounds, count in cells.items():
            of_all[rounds._replace(from_pilot=0) if cls.reference else rounds] += count * entry.count
    lines = []
    for entry in listed["problems"]:
        location = at(entry.line)
        cls = PROBLEMS.get(entry.name, location=location, imports=imports, beside=beside)
        for settings in entry.settings() if issubclass(cls, Simulator) else ():
            problem = params.build(cls, settings, location=f"{location}{entry.name}: ")
            lines.append(count_simulations(problem, of_all, problem.takes).describe(entry.label or entry.name))
    return lines


def _once(say: Callable[[str], None]) -> Callable[[str], None]:
    """Say every line once: variants of one entry have the same to say."""
    said: set[str] = set()

    def say_new(text: str) -> None:
        if text not in said:
            said.add(text)
            say(text)

    return say_new


def _seeds(value: Any, location: str) -> Sequence[int]:
    if _whole(value) and 0 < value <= MAX_SEEDS:
        return range(value)
    if isinstance(value, list) and value and all(_whole(s) and 0 <= s <= MAX_SEED for s in value):
        if len(set(value)) < len(value):
            raise Misuse(f"{location}seeds holds a number twice: {show(value)}")
        return tuple(value)
    if isinstance(value, Mapping) and set(value) == {"first", "count"}:
        first, count = value["first"], value["count"]
        if _whole(first) and _whole(count) and 0 <= first <= MAX_SEED - count and 0 < count <= MAX_SEEDS:
            return range(first, first + count)
    forms = "a count, a list of whole numbers, or {first: a, count: n}"
    negative = isinstance(value, list) and any(_whole(s) and s < 0 for s in value)
    forms = "seeds of at least 0 in a list" if negative else forms
    limits = f"from 1 to {MAX_SEEDS:,} of them, none above {MAX_SEED:,}"
    raise Misuse(f"{location}seeds is {show(value)}; allowed: {forms}; {limits}")


def _keep(value: Any, location: str) -> int | None:
    if value == "all":
        return None
    if isinstance(value, Mapping) and set(value) == {"rounds"} and _whole(value["rounds"]) and value["rounds"] > 0:
        return int(value["rounds"])
    raise Misuse(f"{location}record is {show(value)}; allowed: all, or {{rounds: a whole number of at least 1}}")


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
