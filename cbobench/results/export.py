"""`cbobench export`: writes a run as a bundle, its files in one zip file, which readers take in
place of the run (format: docs/bundles.md). The same run gives the same bytes.

The files are merged and thinned: of the rounds it keeps every metric at fixed rounds, and those in
which simple regret improves. A digest says what was played. Bits of methods on PyTorch depend on
the kind of CPU: of these it keeps all that was played, too. What is not kept is refused, never
approximated.
"""

from __future__ import annotations

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
from numpy.typing import NDArray

from cbobench.errors import CbobenchError, Misuse, show
from cbobench.results.folder import SUFFIX, RunFolder, as_run_folder, open_run
from cbobench.results.manifest import FILE, NO_POSITION, Manifest
from cbobench.results.query import PublishedCells, PublishedTask, cell_positions, read_published
from cbobench.results.schema import IMPROVED, PLAYED, TableWriter, list_kept, make_footer, schema
from cbobench.suite.cells import Grid
from cbobench.suite.variants import Variant

PER_DECADE = 10  # rounds that are kept by default, between 10^k and 10^(k+1)
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
LEFT_OUT = ("spec", "traceback", "host")
"""Columns of cells that a bundle has not: what run.json says, and what may name people."""
OF_THE_CPU = "torch "
"""How the name of a library begins whose bits depend on the kind of CPU, whatever instructions it
is held to.
"""
NAME = "run"  # of the one file of a kind
ENTRY_DATE = (1980, 1, 1, 0, 0, 0)  # so that the bytes do not depend on the time
# to the end of the line, as a path may hold blanks
PATH_TO_END = re.compile(r"""["'(]*\S*[/\\].*""")
# in a home, in a root, or on a drive of Windows
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
    folder = as_run_folder(run, "a bundle is exported from a run folder")
    # By default it lies here under the folder's name, wherever the folder is.
    default = f"{_split_address(folder)[1]}{SUFFIX}"
    target = open_run(default if out is None else out)
    place, file, query = _split_address(target)
    if not file.endswith(SUFFIX) or not target.is_bundle:
        raise Misuse(f"--out is {show(str(out))}; give the name of a file that ends with {SUFFIX}")
    # Only an earlier bundle is replaced: another file of that name is not ours.
    into = RunFolder(f"{place}{query}")
    if into.exists(file):
        try:
            Manifest.read(target)
        except CbobenchError:
            raise Misuse(
                f"{target} is there and no bundle of this version; remove it, or give another --out"
            ) from None

    # What lies in the folder and not in its record was not asked for, and stays out.
    manifest = Manifest.read(folder)
    published = read_published(folder, None)
    positions = published.find(manifest.cells.ids)
    rows = positions[positions != NO_POSITION]
    if not len(rows):
        raise CbobenchError(
            f"{folder} has no cell that was played; nothing to export, see cbobench status"
        )

    # Nothing is written before all is known, so that an error leaves an earlier bundle.
    cells = _take_cells(manifest, published, positions)
    tables = {"cells": cells, **thin_rounds(published, cells, rounds)}
    archive = pack(_public_manifest(manifest), tables)
    into.publish(file, lambda sink: sink.write(archive))
    failed = int(published.failed[rows].sum())
    return Exported(
        file=str(target),
        size=len(archive),
        done=len(rows) - failed,
        failed=failed,
        expected=len(manifest.cells),
        paths=tuple(_absolute_paths(manifest)),
    )


def _split_address(run: RunFolder) -> tuple[str, str, str]:
    """Return the parent of an address, its name there, and the query of a URI."""
    path, mark, query = run.uri.partition("?") if "://" in run.uri else (run.uri, "", "")
    place, _, name = path.rstrip("/").rpartition("/")
    return place, name, mark + query


def pack(manifest: Manifest, tables: dict[str, pa.Table]) -> bytes:
    """Return a bundle: the zip file of a run with one table of each kind."""
    record = json.dumps(manifest.to_json(), indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    files = {FILE: record.encode()}
    for kind, table in tables.items():
        files[f"{kind}/{NAME}.parquet"] = _write_table(kind, table)
    archive = io.BytesIO()
    # Stored, as readers refuse members that may expand; the tables in it are compressed.
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_STORED) as zipped:
        for name, content in files.items():
            zipped.writestr(zipfile.ZipInfo(name, ENTRY_DATE), content)
    return archive.getvalue()


def _write_table(kind: str, table: pa.Table) -> bytes:
    """Write a table as the file of a run, as small as can be."""
    ids = table["cell"].unique().to_pylist()
    columns = pa.schema([field for field in schema(kind) if field.name in table.column_names])
    floats = [field.name for field in columns if pa.types.is_floating(field.type)]
    sink = io.BytesIO()
    # It is written once and read often: the smallest file is worth the time.
    with TableWriter(
        sink,
        columns,
        make_footer(kind, NAME, ids, len(table)),
        use_byte_stream_split=floats,
        compression_level=9,
    ) as writer:
        writer.write_table(table.select(columns.names).cast(columns))
    return sink.getvalue()


def _take_cells(
    manifest: Manifest, published: PublishedCells, positions: NDArray[np.int64]
) -> pa.Table:
    """Return the rows of the published cells under their latest names, errors cut before a path.

    Args:
        positions: of every cell in the table of what is published.
    """
    is_published = positions != NO_POSITION
    pairs = [manifest.cells.by_pair[i].pair for i in manifest.cells.of[is_published].tolist()]
    cells = published.table.drop_columns(list(LEFT_OUT)).take(pa.array(positions[is_published]))
    errors = [None if text is None else cut_at_path(text) for text in cells["error"].to_pylist()]
    texts = {
        "problem": [pair.problem.title for pair in pairs],
        "algorithm": [pair.algorithm.title for pair in pairs],
        "error": errors,
    }
    for name, column in texts.items():
        position = cells.column_names.index(name)
        cells = cells.set_column(position, name, pa.array(column, pa.string()))
    return cells


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
    # The nearest recorded round is one of two beside a target; of equally near ones the earlier.
    after = np.searchsorted(recorded, targets).clip(max=len(recorded) - 1)
    before = (after - 1).clip(min=0)
    near = np.where(targets - recorded[before] <= recorded[after] - targets, before, after)
    return np.asarray(recorded[np.unique([*near, len(recorded) - 1])])


def thin_rounds(
    published: PublishedCells, cells: pa.Table, kept: Collection[int] | None
) -> dict[str, pa.Table]:
    """Return what a bundle keeps of the rounds of some cells, by kind: metrics at fixed rounds,
    improvements of simple regret, and of methods whose bits depend on the CPU what was played.
    """
    good = cells.filter(pa.array([status == "ok" for status in cells["status"].to_pylist()]))
    ids = good["cell"].to_pylist()
    horizons = good["horizon"].to_numpy()
    position = {cell: i for i, cell in enumerate(ids)}
    of_the_cpu = np.array([OF_THE_CPU in words for words in good["libraries"].to_pylist()], bool)
    tasks = published.by_task(ids)
    fixed = _find_fixed_rounds(tasks, dict(zip(ids, horizons.tolist(), strict=True)), kept)

    # Row groups are cut down one by one: all rounds of a run would not fit into memory.
    parts: dict[str, list[pa.Table]] = {"rounds": [], "improvements": [], "plays": []}
    for task, task_cells in tasks.items():
        of_task = {cell: position[cell] for cell in task_cells}
        for part in task.rounds(sorted({*list_kept(), *PLAYED}), task_cells):
            row = cell_positions(part, of_task)
            t = part["t"].to_numpy()
            is_fixed = np.zeros(len(row), dtype=bool)
            for horizon, rounds in fixed.items():
                is_fixed |= (horizons[row] == horizon) & np.isin(t, rounds)
            part = part.append_column("row", pa.array(row))
            parts["rounds"].append(part.filter(pa.array(is_fixed)))
            # Only improvements within the part; those over all parts are chosen below.
            parts["improvements"].append(find_improvements(part))
            parts["plays"].append(part.filter(pa.array(of_the_cpu[row])))

    # Sorted as the cells are, so that the same run gives the same bytes however its files are
    # merged.
    tables = {}
    for kind, kind_parts in parts.items():
        names = list_kept() if kind == "rounds" else schema(kind).names
        columns = pa.schema([*(schema(kind).field(name) for name in names), ("row", pa.int64())])
        selected = [part.select(columns.names).cast(columns) for part in kind_parts]
        table = pa.concat_tables([columns.empty_table(), *selected])
        table = table.sort_by([("row", "ascending"), ("t", "ascending")])
        tables[kind] = find_improvements(table) if kind == "improvements" else table
    # Most bundles have no method of the CPU, and no file of plays.
    return {kind: table for kind, table in tables.items() if kind != "plays" or len(table)}


def _find_fixed_rounds(
    tasks: dict[PublishedTask, list[str]], horizons: dict[str, int], kept: Collection[int] | None
) -> dict[int, NDArray[np.int64]]:
    """Return the rounds to keep, by horizon, which are known from one cell of each."""
    fixed: dict[int, NDArray[np.int64]] = {}
    for task, task_cells in tasks.items():
        for cell in task_cells:
            if horizons[cell] not in fixed:
                parts = [part["t"].to_numpy() for part in task.rounds(["cell", "t"], [cell])]
                fixed[horizons[cell]] = select_fixed_rounds(np.unique(np.concatenate(parts)), kept)
    return fixed


def find_improvements(table: pa.Table) -> pa.Table:
    """Return the rows in which simple regret is smaller than ever before in its cell, sorted by
    cell (`row`) and t.
    """
    table = table.sort_by([("row", "ascending"), ("t", "ascending")])
    # What is no number improves on nothing, and any number on what is none.
    values = pd.Series(table[IMPROVED].to_numpy()).fillna(np.inf)
    rows = table["row"].to_numpy()
    smallest_before = values.groupby(rows).cummin().groupby(rows).shift(fill_value=np.inf)
    return table.filter(pa.array((values < smallest_before).to_numpy()))


def cut_at_path(text: str) -> str:
    """Return the beginning of an error's line, up to the first word that may be a path."""
    return PATH_TO_END.sub("…", text)


def _public_manifest(manifest: Manifest) -> Manifest:
    """Return a manifest without what is private: command lines, hosts, and paths in reasons."""
    calls = [
        {name: call[name] for name in CALL_FIELDS if name in call} for call in manifest.invocations
    ]
    return replace(
        manifest, grids=tuple(map(_public_grid, manifest.grids)), invocations=tuple(calls)
    )


def _public_grid(grid: Grid) -> Grid:
    """Return a grid without its command line, and without paths in errors and notes.

    A note is cut only at a certain path, because its names and units (req/s) are the suite's.
    """

    def noted(variants: Iterable[Variant]) -> tuple[Variant, ...]:
        return tuple(replace(v, note=ABSOLUTE_PATH_TO_END.sub("…", v.note)) for v in variants)

    left_out = tuple((pair, cut_at_path(why)) for pair, why in grid.unplayable)
    problems = noted(grid.problems)
    algorithms = noted(grid.algorithms)
    return replace(grid, problems=problems, algorithms=algorithms, command=(), unplayable=left_out)


def _absolute_paths(manifest: Manifest) -> Iterable[str]:
    """Return absolute paths among the suite's parameters; a bundle holds them as part of a cell's
    name.
    """
    variants = [*manifest.variants("problems").values(), *manifest.variants("algorithms").values()]
    # A set, as settings and values may both hold it.
    paths = {
        f"{variant.name}: {name} {value}"
        for variant in variants
        for part in (variant.settings, variant.values)
        for name, value in part.items()
        if isinstance(value, str) and ABSOLUTE.match(value)
    }
    return sorted(paths)
