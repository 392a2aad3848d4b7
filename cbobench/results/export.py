"""`cbobench export`: writes a run as a bundle (see `results.bundle`); the same run gives the same
bytes.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import zipfile
from collections.abc import Collection, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from cbobench.errors import CbobenchError, Misuse, show
from cbobench.metrics import METRICS
from cbobench.results.bundle import (
    ABOUT,
    FILES,
    IMPROVED,
    LEFT_OUT,
    SUFFIX,
    VERSION,
    bundle_schema,
    open_run,
)
from cbobench.results.digests import PLAYED, Digests, digest_table
from cbobench.results.folder import RunFolder
from cbobench.results.manifest import FILE, Manifest
from cbobench.results.query import NO_POSITION, PublishedCells, cell_positions, read_published
from cbobench.results.reader import Reader
from cbobench.results.schema import DICTIONARY
from cbobench.suite.cells import Grid
from cbobench.suite.variants import Variant

PER_DECADE = 10
CALL_FIELDS = (
    "at",
    "python",
    "versions",
    "commit",
    "dirty",
    "blas",
    "cpu",
    "arithmetic",
    "cpus",
    "threads",
)
"""What a bundle says of each call: not its command line, host and process, which are private."""
PATH_TO_END = re.compile(r"""["'(]*\S*[/\\].*""")
ABSOLUTE = re.compile(r"~|/|[A-Za-z]:[/\\]")
ABSOLUTE_PATH_TO_END = re.compile(
    r"""(?:^|(?<=[\s"'(=:,;]))(?:~\w*/|/+|[A-Za-z]:[/\\]|\\\\)[\w.].*"""
)


class Exported(NamedTuple):
    """The written bundle: its file and size, its cells, and the absolute paths that the suite
    names.
    """

    file: str
    size: int
    done: int
    failed: int
    expected: int
    paths: tuple[str, ...]


def export(
    run: Any, out: str | Path | None = None, rounds: Collection[int] | None = None
) -> Exported:
    """Write the published results of a run into a bundle of one file, whole or not at all.

    Args:
        run: a path or URI, or the result of `cbobench.run`. If it is still being played, the bundle
            says how many cells were asked for.
        out: path or URI that ends with .zip; `<folder's name>.zip` here by default. An earlier
            bundle is replaced.
        rounds: those of every curve that are kept, as far as they are recorded, and the last one;
            None for ten per decade. Claims look at T / 4.

    Returns:
        Its `file`, which `compare`, `summary`, `plot`, `load_cells` and `load_rounds` take as the
        run; its `size` in bytes; how many cells are `done`, `failed` and `expected`; and the
        absolute `paths` that the suite names.

    Raises:
        Misuse: no run, a bundle, or another file in its place.
        CbobenchError: nothing is published yet.

    Example:
        >>> import cbobench
        >>> bundle = cbobench.export("runs/quickstart", "quickstart.zip").file  # doctest: +SKIP
        >>> print(cbobench.compare(bundle))  # doctest: +SKIP
    """
    folder = open_run(run).refuse_bundle("a bundle is exported from a run folder")
    target = open_run(f"{_split_address(folder)[1]}{SUFFIX}" if out is None else out)
    place, file, query = _split_address(target)
    if not file.endswith(SUFFIX) or not target.is_reduced:
        raise Misuse(f"--out is {show(str(out))}; give the name of a file that ends with {SUFFIX}")
    into = RunFolder(f"{place}{query}")
    if into.exists(file):
        try:
            target.read_json(ABOUT)
        except CbobenchError:
            raise Misuse(
                f"{target} is there and no bundle of this version; remove it, or give another --out"
            ) from None
    manifest, published = Manifest.read(folder), read_published(folder, None)
    if not (published.find(manifest.cells.ids) != NO_POSITION).any():
        raise CbobenchError(
            f"{folder} has no cell that was played; nothing to export, see cbobench status"
        )
    files = bundle_files(folder, manifest, published, rounds)
    about = json.loads(files[ABOUT])
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_STORED) as zipped:
        for member, data in files.items():
            # dated 1980, so that the bytes do not depend on the time
            zipped.writestr(zipfile.ZipInfo(member), data)
    into.publish(file, lambda sink: sink.write(archive.getvalue()))
    cells = about["cells"]
    return Exported(
        str(target),
        archive.tell(),
        cells["done"],
        cells["failed"],
        cells["expected"],
        tuple(_absolute_paths(manifest)),
    )


def _split_address(run: Reader) -> tuple[str, str, str]:
    """Return the parent of an address, its name there, and the query of a URI."""
    path, mark, query = run.uri.partition("?") if "://" in run.uri else (run.uri, "", "")
    place, _, name = path.rstrip("/").rpartition("/")
    return place, name, mark + query


def bundle_files(
    folder: RunFolder,
    manifest: Manifest,
    published: PublishedCells,
    kept: Collection[int] | None = None,
) -> dict[str, bytes]:
    """Return the files of a run's bundle, by name, with some rounds (see `export`)."""
    ids = manifest.cells.ids
    positions = published.find(ids)
    rows = positions[positions != NO_POSITION]
    pairs = [
        manifest.cells.by_pair[i].pair for i in manifest.cells.of[positions != NO_POSITION].tolist()
    ]
    cells = published.table.drop_columns([*LEFT_OUT["cells"]]).take(pa.array(rows))
    texts = {
        "problem": [p.problem.title for p in pairs],
        "algorithm": [p.algorithm.title for p in pairs],
    }
    texts["error"] = [
        None if text is None else cut_at_path(text) for text in cells["error"].to_pylist()
    ]
    for name, column in texts.items():
        cells = cells.set_column(
            cells.column_names.index(name), name, pa.array(column, pa.string())
        )
    failed = published.failed[rows]
    ok_cells = cells.filter(pa.array(~failed))
    tables, recorded = _tables_of_rounds(folder, published, ok_cells, kept)
    grids = tuple(_public_grid(grid) for grid in manifest.grids)
    calls = tuple(
        {name: call[name] for name in CALL_FIELDS if name in call} for call in manifest.invocations
    )
    public = replace(manifest, grids=grids, invocations=calls)
    tables = {"cells": cells, **tables}
    files = {FILE: _json(public.to_json())} | {
        FILES[kind]: _parquet(kind, table) for kind, table in tables.items()
    }
    about = _describe_tables(
        manifest, cells, {str(horizon): t.tolist() for horizon, t in recorded.items()}
    )
    about |= {"bundle": VERSION, "calls": list(calls)}
    about["files"] = {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
    return {ABOUT: _json(about), **files}


def _describe_tables(
    manifest: Manifest, cells: pa.Table, rounds: dict[str, list[int]]
) -> dict[str, Any]:
    """Return the fields of `bundle.json` that follow from a bundle's record and its tables.

    Args:
        manifest: the record.
        cells: the rows of the cells.
        rounds: those of the curves, by horizon.
    """
    status, seconds = (
        cells["status"].to_pylist(),
        np.asarray(cells["seconds"].to_numpy(), dtype=np.float64),
    )
    is_ok = np.array([state == "ok" for state in status], dtype=bool)
    total = float(np.nansum(seconds[is_ok]))
    cpus, arithmetic, libraries, sources, problems, algorithms = (
        cells[name].to_pylist()
        for name in ("cpu", "arithmetic", "libraries", "source", "problem", "algorithm")
    )
    code: dict[str, set[str]] = {}
    for problem, algorithm, source in zip(problems, algorithms, sources, strict=True):
        code.setdefault(f"{problem}/{algorithm}", set()).add(source)
    return {
        "suite": manifest.suite,
        "about": manifest.about,
        "cells": {
            "expected": len(manifest.cells),
            "done": int(is_ok.sum()),
            "failed": int(np.sum(~is_ok)),
        },
        "rounds": rounds,
        "cpus": sorted({*cpus} - {None}),
        "arithmetic": sorted({*arithmetic} - {None}),
        "libraries": sorted({*libraries}),
        "sources": {title: sorted(hashes) for title, hashes in code.items()},
        "cost": {"seconds": total, "cpu_hours": total / 3600},
    }


def select_fixed_rounds(
    recorded: NDArray[np.int64], kept: Collection[int] | None = None
) -> NDArray[np.int64]:
    """Return the recorded rounds that a bundle holds: of those that are kept, by default the
    nearest to 10^(k/10), k = 0, 1, ..., and the last one.
    """
    if not len(recorded):
        return recorded
    if kept is not None:
        return recorded[np.isin(recorded, [*kept, recorded[-1]])]
    targets = 10 ** (np.arange(np.floor(PER_DECADE * np.log10(recorded[-1])) + 1) / PER_DECADE)
    after = np.searchsorted(recorded, targets).clip(max=len(recorded) - 1)
    before = (after - 1).clip(min=0)
    near = np.where(targets - recorded[before] <= recorded[after] - targets, before, after)
    return np.asarray(recorded[np.unique([*near, len(recorded) - 1])])


def _tables_of_rounds(
    folder: RunFolder,
    published: PublishedCells,
    ok_cells: pa.Table,
    kept: Collection[int] | None,
) -> tuple[dict[str, pa.Table], dict[int, NDArray[np.int64]]]:
    """Return the tables that are made of some cells' rounds, by kind, and the fixed rounds by
    horizon.

    They are curves at fixed rounds, improvements of simple regret, and digests.
    """
    # The files are read twice: which rounds are fixed is known from one cell of each horizon.
    ids, horizons = ok_cells["cell"].to_pylist(), ok_cells["horizon"].to_numpy()
    position = {cell: i for i, cell in enumerate(ids)}
    tasks = published.by_task(ids)
    of = {cell: task for task, task_cells in tasks.items() for cell in task_cells}
    recorded: dict[int, NDArray[np.int64]] = {}
    for horizon in np.unique(horizons).tolist():
        cell = ids[int(np.argmax(horizons == horizon))]
        parts = [
            part["t"].to_numpy() for part in folder.row_groups("rounds", of[cell], _AT, [cell])
        ]
        recorded[horizon] = select_fixed_rounds(np.unique(np.concatenate(parts)), kept)
    # Row groups are cut down one by one: all rounds of a run would not fit into memory.
    names = [field.name for field in bundle_schema("rounds") if field.name in METRICS]
    curve_parts: list[pa.Table] = []
    steps: list[pa.Table] = []
    digests = Digests()
    for task, task_cells in tasks.items():
        task_positions = {cell: position[cell] for cell in task_cells}
        for part in folder.row_groups("rounds", task, ["cell", *PLAYED, *names], task_cells):
            digests.add(part)
            row = cell_positions(part, task_positions)
            part = part.drop_columns(["cell", *PLAYED[1:]]).append_column("row", pa.array(row))
            t, fixed = part["t"].to_numpy(), np.zeros(len(row), dtype=bool)
            for horizon, rounds in recorded.items():
                fixed |= (horizons[row] == horizon) & np.isin(t, rounds)
            curve_parts.append(part.filter(pa.array(fixed)))
            # Only improvements within the part are held in memory; those over all parts are chosen
            # below.
            steps.append(find_improvements(part.select(["row", "t", IMPROVED])))
    # Sorted as the cells are, so that the same run gives the same bytes however its files are
    # merged.
    schema = pa.schema(
        [("t", pa.int64()), *((name, pa.float64()) for name in names), ("row", pa.int64())]
    )
    curves = pa.concat_tables([schema.empty_table(), *curve_parts]).sort_by(
        [("row", "ascending"), ("t", "ascending")]
    )
    schema = pa.schema([schema.field(name) for name in ("row", "t", IMPROVED)])
    improved = find_improvements(pa.concat_tables([schema.empty_table(), *steps]))
    return {
        "rounds": _with_cell_keys("rounds", curves, ok_cells),
        "improvements": _with_cell_keys("improvements", improved, ok_cells),
        "digests": digest_table(ok_cells, digests),
    }, recorded


_AT = ["cell", "t"]


def find_improvements(table: pa.Table) -> pa.Table:
    """Return the rows in which simple regret is smaller than ever before in its cell, sorted by
    cell (`row`) and t.
    """
    table = table.sort_by([("row", "ascending"), ("t", "ascending")])
    values = pd.Series(table[IMPROVED].to_numpy()).fillna(np.inf)
    rows = table["row"].to_numpy()
    smallest_before = values.groupby(rows).cummin().groupby(rows).shift(fill_value=np.inf)
    return table.filter(pa.array((values < smallest_before).to_numpy()))


def _with_cell_keys(kind: str, table: pa.Table, ok_cells: pa.Table) -> pa.Table:
    """Replace the positions of cells in a table of rounds by their keys."""
    keys = ok_cells.select(["cell", "problem", "algorithm", "seed"]).take(table["row"])
    for name in keys.column_names:
        table = table.append_column(name, keys[name])
    return table.select(bundle_schema(kind).names)


def cut_at_path(text: str) -> str:
    """Return the beginning of an error's line, up to the first word that may be a path."""
    return PATH_TO_END.sub("…", text)


def _public_grid(grid: Grid) -> Grid:
    """Return a grid without its command line, and without paths in errors and notes.

    A note is cut only at a certain path, because its names and units (req/s) are the suite's.
    """

    def noted(variants: Iterable[Variant]) -> tuple[Variant, ...]:
        return tuple(replace(v, note=ABSOLUTE_PATH_TO_END.sub("…", v.note)) for v in variants)

    left_out = tuple((pair, cut_at_path(why)) for pair, why in grid.unplayable)
    problems, algorithms = noted(grid.problems), noted(grid.algorithms)
    return replace(grid, problems=problems, algorithms=algorithms, command=(), unplayable=left_out)


def _absolute_paths(manifest: Manifest) -> Iterable[str]:
    """Return absolute paths among the suite's parameters; a bundle holds them as part of a cell's
    name.
    """
    variants = [*manifest.variants("problems").values(), *manifest.variants("algorithms").values()]
    parameters = [
        (v.name, name, value)
        for v in variants
        for part in (v.settings, v.values)
        for name, value in part.items()
    ]
    texts = [(owner, name, value) for owner, name, value in parameters if isinstance(value, str)]
    return sorted(
        {f"{owner}: {name} {value}" for owner, name, value in texts if ABSOLUTE.match(value)}
    )


def _json(content: dict[str, Any]) -> bytes:
    return (json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False) + "\n").encode()


def _parquet(kind: str, table: pa.Table) -> bytes:
    """Write a table as Parquet bytes, with text by dictionary and numbers split by bytes."""
    table_schema = bundle_schema(kind)
    table = table.select(table_schema.names).cast(table_schema)
    sink = io.BytesIO()
    text_columns = [name for name in DICTIONARY if name in table_schema.names]
    floats = [field.name for field in table_schema if pa.types.is_floating(field.type)]
    layout = {
        "use_dictionary": text_columns,
        "use_byte_stream_split": floats,
        "store_schema": False,
    }
    pq.write_table(
        table, sink, compression="zstd", compression_level=9, write_page_checksum=True, **layout
    )
    return sink.getvalue()
