"""Several runs read as one: a cell that several hold counts as the first of them has it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cbobench.errors import Misuse, show
from cbobench.results.folder import SUFFIX
from cbobench.results.manifest import NO_POSITION, Manifest, Pair, describe_changes, find_namesake
from cbobench.results.query import PublishedCells
from cbobench.results.rounds import equal_or_nan
from cbobench.suite.cells import Grid
from cbobench.suite.variants import Variant

NO_RESULTS = {
    *("cell", "problem", "algorithm", "seed", "horizon", "spec", "error", "traceback"),
    *("seconds", "seconds_per_round", "peak_memory_mb"),
    *("host", "cpu", "arithmetic", "source", "libraries", "attempt"),
}
"""Columns of cells that do not tell two results of one cell apart: which cell it is, who played it,
and how fast.
"""


def join_published(parts: Sequence[PublishedCells]) -> PublishedCells:
    """Return the cells of several runs, all read with the same columns."""
    # of equal ids, np.unique takes that of the first run
    ids, first = np.unique(np.concatenate([part.ids for part in parts]), return_index=True)
    rows = _number_on([part.rows for part in parts], [len(part.table) for part in parts])
    return PublishedCells(
        ids=ids,
        rows=rows[first],
        table=pa.concat_tables([part.table for part in parts]),
        task=_number_on([part.task for part in parts], [len(part.tasks) for part in parts]),
        origin=_number_on([part.origin for part in parts], [len(part.origins) for part in parts]),
        tasks=[task for part in parts for task in part.tasks],
        origins=[origin for part in parts for origin in part.origins],
        failed=np.concatenate([part.failed for part in parts]),
        attempt=np.concatenate([part.attempt for part in parts]),
    )


def _number_on(positions: Sequence[NDArray[np.int64]], sizes: Sequence[int]) -> NDArray[np.int64]:
    """Return positions in several lists of some sizes as those in all lists, one after the
    other.
    """
    starts = np.cumsum([0, *sizes[:-1]]).tolist()
    return np.concatenate([part + start for part, start in zip(positions, starts, strict=True)])


def count_shared(parts: Sequence[PublishedCells]) -> tuple[int, int]:
    """Return how many cells several runs hold, and of how many the results differ."""
    ids, counts = np.unique(np.concatenate([part.ids for part in parts]), return_counts=True)
    shared = ids[counts > 1]
    if not len(shared):
        return 0, 0
    first: dict[int, dict[str, Any]] = {}
    apart = set()
    for part in parts:
        rows = part.find(shared)
        held = rows != NO_POSITION
        # A column that is newer than the files is null throughout, which says nothing of a result.
        table = part.table.select([name for name in part.table.column_names if _tells(part, name)])
        results = table.take(pa.array(rows[held])).to_pylist()
        for cell, result in zip(shared[held].tolist(), results, strict=True):
            if not _agree(result, first.setdefault(cell, result)):
                apart.add(cell)
    return len(shared), len(apart)


def _tells(part: PublishedCells, name: str) -> bool:
    """Return whether a column of cells tells two results of one cell apart."""
    return name not in NO_RESULTS and part.table[name].null_count < len(part.table)


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
    # Runs whose folders have one name are told apart by their addresses.
    if len({*short_names}) < len(names):
        short_names = [*names]
    calls = tuple(call for manifest in manifests for call in manifest.invocations)
    suites = list(dict.fromkeys(manifest.suite for manifest in manifests))
    floor, *others = {manifest.floor for manifest in manifests}
    joined = replace(
        manifests[0],
        suite=" + ".join(suites),
        grids=(),
        invocations=(),
        floor=None if others else floor,
    )

    # In the order of the runs, so that the first keep their names.
    problems: dict[str, Variant] = {}
    holders: dict[str, str] = {}
    spelt: dict[str, Variant] = {}
    for manifest, name in zip(manifests, short_names, strict=True):
        own = {variant.key: variant for variant in manifest.variants("problems").values()}
        for key, problem in own.items():
            if key not in problems and (old := find_namesake(problem, problems.values())):
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


def _tell_apart(variant: Variant, earlier: Mapping[str, Variant], name: str) -> Variant:
    """Return a method of a run as it is, or named by the run where its name stands for another one
    earlier; a note says in what they differ.

    Args:
        earlier: the methods of earlier runs, by key.
    """
    old = find_namesake(variant, earlier.values())
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
