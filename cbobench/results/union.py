"""Several runs and bundles, read as one: a cell that several hold counts as the first of them has
it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from functools import cached_property
from typing import Any, NoReturn

import pyarrow as pa

from cbobench.errors import Misuse, show
from cbobench.results.bundle import SUFFIX, bundle_schema
from cbobench.results.manifest import Manifest, Pair, describe_changes
from cbobench.results.reader import Reader
from cbobench.results.rounds import equal_or_nan, select_cells
from cbobench.results.schema import schema
from cbobench.suite.cells import Grid
from cbobench.suite.settings import describe_setup, ignores_setup
from cbobench.suite.variants import Variant
from cbobench.words import list_names

NO_RESULTS = {
    *("cell", "problem", "algorithm", "seed", "horizon", "error"),
    *(
        "seconds",
        "seconds_per_round",
        "peak_memory_mb",
        "cpu",
        "arithmetic",
        "source",
        "libraries",
        "attempt",
    ),
}
"""Columns of cells that do not tell two results of one cell apart: which cell it is, who played it,
and how fast.
"""


class Union(Reader):
    """Run folders and bundles as one run; with a bundle among them it holds what bundles hold.

    Args:
        parts: the runs; of a cell that several have, the first counts.
    """

    is_union = True

    def __init__(self, parts: Sequence[Reader]) -> None:
        self.parts = tuple(parts)
        self.uri = ", ".join(map(str, parts))
        self.is_reduced = any(part.is_reduced for part in parts)

    def _part(self, task: str) -> tuple[Reader, str]:
        number, _, name = task.partition(":")
        return self.parts[int(number)], name

    def _kind(self, part: Reader, kind: str) -> str:
        """Return what a part calls a kind: a run folder's improvements are among its rounds."""
        return part.improvements_kind if kind == "improvements" else kind

    def names(self, kind: str) -> list[str]:
        """Return the files of all parts, by number and name, without those that shards have
        replaced.
        """
        names = []
        for i, part in enumerate(self.parts):
            replaced = part.replacements()
            names += [
                f"{i:03}:{name}"
                for name in part.names(self._kind(part, kind))
                if name not in replaced
            ]
        return names

    def read_json(self, relative: str) -> NoReturn:
        raise Misuse(f"{self} are several runs, and have no {relative} in common")

    def schema(self, kind: str) -> pa.Schema:
        return bundle_schema(kind) if self.is_reduced else schema(kind)

    def read_file(
        self, kind: str, task: str, columns: list[str] | None = None
    ) -> tuple[dict[str, Any], pa.Table]:
        part, name = self._part(task)
        footer, table = part.read_file(self._kind(part, kind), name, columns)
        if columns == []:
            return footer, table
        table = self._align(kind, table, columns)
        if kind == "cells" and (earlier := self._held_before(int(task.partition(":")[0]))):
            table = table.filter(
                pa.array([cell not in earlier for cell in table["cell"].to_pylist()], pa.bool_())
            )
        return {}, table

    def row_groups(
        self,
        kind: str,
        task: str,
        columns: list[str] | None = None,
        cells: Sequence[str] | None = None,
    ) -> Iterator[pa.Table]:
        part, name = self._part(task)
        for group in part.row_groups(self._kind(part, kind), name, columns, cells):
            yield self._align(kind, group, columns)

    def _align(self, kind: str, table: pa.Table, columns: list[str] | None) -> pa.Table:
        """Return the columns that all parts have, in one order, with plain text."""
        fields = self.select_fields(kind, columns)
        return table.select([field.name for field in fields]).cast(pa.schema(fields))

    @cached_property
    def _ids(self) -> list[set[str]]:
        """The cells of every part."""
        return [set(_read_cells(part, ["cell"])["cell"].to_pylist()) for part in self.parts]

    def _held_before(self, number: int) -> set[str]:
        return set().union(*self._ids[:number])

    def count_shared(self) -> tuple[int, int]:
        shared = {cell for i, ids in enumerate(self._ids) for cell in ids & self._held_before(i)}
        first: dict[str, dict[str, Any]] = {}
        apart = set()
        for part, ids in zip(self.parts, self._ids, strict=True):
            for cell, result in _read_results(part, shared).items() if shared & ids else ():
                if not _agree(result, first.setdefault(cell, result)):
                    apart.add(cell)
        return len(shared), len(apart)

    def refuse_bundle(self, then: str) -> NoReturn:
        raise Misuse(f"{self} are several runs; {then}")


def _read_cells(part: Reader, columns: list[str]) -> pa.Table:
    """Return some columns of the cells of a run, without those that shards have replaced."""
    replaced = part.replacements()
    tables = [
        part.read_file("cells", name, columns)[1]
        for name in part.names("cells")
        if name not in replaced
    ]
    return pa.concat_tables(
        [table.select(columns) for table in tables] or [schema("cells").empty_table()]
    )


def _read_results(part: Reader, cells: Set[str]) -> dict[str, dict[str, Any]]:
    """Return the results of some cells of a run, by id and column.

    A column that is newer than the files is null throughout, which says nothing of a result: it is
    left out.
    """
    columns = [name for name in bundle_schema("cells").names if name not in NO_RESULTS]
    table = _read_cells(part, ["cell", *columns])
    filled = [name for name in ("cell", *columns) if table[name].null_count < len(table)]
    rows = select_cells(table, [*cells]).select(filled).to_pylist()
    return {row.pop("cell"): row for row in rows}


def _agree(left: dict[str, Any], right: dict[str, Any]) -> bool:
    """Return whether two results of a cell are equal in every column that both have; NaN equals
    NaN.
    """
    return all(equal_or_nan(left[name], right[name]) for name in left.keys() & right.keys())


def join_manifests(manifests: Sequence[Manifest], names: Sequence[str]) -> Manifest:
    """Return the manifest of several runs read as one.

    A method whose title or label stands for another one in an earlier run is named by its run, too:
    "cei (low-ours)".

    Args:
        names: of the runs.

    Raises:
        Misuse: a problem is another one in two of them.
    """
    # A run of a part of a suite lists all of it; the spelling that counts is that of the run that
    # has the cells.
    manifests = [manifest.without(set()) or manifest for manifest in manifests]
    short_names = [name.rpartition("/")[2].removesuffix(SUFFIX) for name in names]
    if len({*short_names}) < len(names):
        short_names = [*names]
    calls = tuple(call for manifest in manifests for call in manifest.invocations)
    suites = list(dict.fromkeys(manifest.suite for manifest in manifests))
    joined = replace(manifests[0], suite=" + ".join(suites), grids=(), invocations=())
    problems: dict[str, Variant] = {}
    holders: dict[str, str] = {}
    spelt: dict[str, Variant] = {}
    for manifest, name in zip(manifests, short_names, strict=True):
        own = {variant.key: variant for variant in manifest.variants("problems").values()}
        for key, problem in own.items():
            if key not in problems and (old := _find_namesake(problem, problems)):
                raise Misuse(
                    f"{show(problem.label)} is another problem in {name} than in "
                    f"{holders[old.key]} ({describe_changes(old, problem)}); leave one of the runs "
                    "out, or play it again"
                )
        problems |= own
        holders |= dict.fromkeys(own, name)
        # A method that several runs have is spelt as in the first.
        told_apart = {
            variant.key: _tell_apart(variant, spelt, name)
            for variant in manifest.variants("algorithms").values()
        }
        spelt = told_apart | spelt
        for grid in manifest.grids:
            joined = joined.append_call(_respell(grid, spelt), joined.about, {})
    return replace(joined, invocations=calls)


def _find_namesake(variant: Variant, earlier: Mapping[str, Variant]) -> Variant | None:
    """Return another variant, of some by key, whose title or label is one of its own."""
    return next(
        (
            old
            for old in earlier.values()
            if old.key != variant.key and {old.title, old.label} & {variant.title, variant.label}
        ),
        None,
    )


def _tell_apart(variant: Variant, earlier: Mapping[str, Variant], name: str) -> Variant:
    """Return a method of a run as it is, or named by the run where its name stands for another one
    earlier; a note says in what they differ.

    Args:
        earlier: the methods of earlier runs, by key.
    """
    old = _find_namesake(variant, earlier)
    if old is None:
        return variant
    label = f"{variant.label} ({name})"
    change = f"from {old.label} to {label}: {describe_changes(old, variant)}"
    return replace(
        variant,
        given=variant.given | {"run": name},
        label=label,
        note="; ".join(filter(None, [variant.note, change])),
    )


def _respell(grid: Grid, spelt: Mapping[str, Variant]) -> Grid:
    """Return a grid with its methods as they are spelt, by key."""

    def rename(pair: Pair) -> Pair:
        return replace(pair, algorithm=spelt[pair.algorithm.key])

    return replace(
        grid,
        algorithms=tuple(spelt[variant.key] for variant in grid.algorithms),
        pairs=tuple(map(rename, grid.pairs)),
        unplayable=tuple((rename(pair), why) for pair, why in grid.unplayable),
    )


def find_setups(manifest: Manifest) -> dict[str, dict[str, str]]:
    """Return what suites set for their methods alike (see `describe_setup`), by title of the
    algorithm.

    Reference methods, which ignore it, are left out. One of the user's own is not known as such
    without its code: it has the set-up of the methods that were asked for with it.
    """
    titles = {variant.key: title for title, variant in manifest.variants("algorithms").items()}
    bare = describe_setup(Variant("", {}, {}, "", {}))
    setups: dict[str, dict[str, str]] = {}
    for grid in manifest.grids:
        described = {algorithm.key: describe_setup(algorithm) for algorithm in grid.algorithms}
        shared = {
            key: word
            for setup in described.values()
            for key, word in setup.items()
            if word != bare[key]
        }
        for algorithm in grid.algorithms:
            if algorithm.key in titles and not ignores_setup(algorithm):
                setup = described[algorithm.key]
                setups[titles[algorithm.key]] = shared | {
                    k: word for k, word in setup.items() if word != bare[k]
                }
    return {title: bare | setup for title, setup in setups.items()}


def compare_setups(before: Variant, after: Variant) -> str:
    """Return in what the set-up of an algorithm differs between two runs; "" if it does not."""
    setups = describe_setup(before), describe_setup(after)
    return ", ".join(
        f"{key} {word} and {setups[1][key]}"
        for key, word in setups[0].items()
        if word != setups[1][key]
    )


def describe_setups(manifest: Manifest, arenas: Iterable[Sequence[str]]) -> list[str]:
    """Return a line for each part of the set-up in which methods differ that are compared.

    Args:
        arenas: titles of the algorithms that play the same problem to the same horizon, for each
            such problem.
    """
    setups, labels = find_setups(manifest), manifest.labels("algorithms")
    methods: dict[str, dict[str, dict[str, None]]] = {}
    for titles in arenas:
        compared = [title for title in titles if title in setups]
        for key in setups[compared[0]] if compared else ():
            if len({setups[title][key] for title in compared}) > 1:
                for title in compared:
                    methods.setdefault(key, {}).setdefault(setups[title][key], {})[
                        labels[title]
                    ] = None
    return [
        f"{key} differs: "
        f"{', '.join(f'{word} for {list_names(names)}' for word, names in by_word.items())}"
        for key, by_word in methods.items()
    ]
