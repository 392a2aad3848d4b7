"""One Parquet file of a run: its rows, and its footer, which says what it is and must hold."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from cbobench.errors import DamagedRun, show
from cbobench.results.schema import FOOTER, refuse_version, required, schema

REPAIR = "cbobench verify RUN names all that is damaged, with --repair it is moved away and the next run plays it again"
SMALL = 20_000  # rows below which threads cost more than they save


def fields(kind: str, columns: list[str] | None) -> list[pa.Field]:
    """The columns of a kind of file, or some of them."""
    return [field for field in schema(kind) if columns is None or field.name in columns]


def row_groups_of(file: pq.ParquetFile, kind: str, columns: list[str] | None) -> Iterator[pa.Table]:
    """The rows of a file, a part at a time: what it does not have is null, and what is not known is left out."""
    wanted = fields(kind, columns)
    names = [field.name for field in wanted]
    for number in range(file.num_row_groups):
        part = file.read_row_group(number, names, use_threads=file.metadata.num_rows > SMALL)
        part.validate(full=True)
        found = set(part.column_names)
        yield pa.table([part[f.name] if f.name in found else pa.nulls(len(part), f.type) for f in wanted], names=names)


def footer_of(path: str, kind: str, task: str, metadata: pq.FileMetaData) -> dict[str, Any]:
    """The footer of a file, checked against the file. Raises `DamagedRun` where they disagree."""
    columns = metadata.schema.to_arrow_schema()
    content = (metadata.metadata or {}).get(FOOTER)
    if content is None:
        raise DamagedRun(f"{path} was not written by cbobench; {REPAIR}")
    try:
        footer: dict[str, Any] = json.loads(content)
        recognised = isinstance(footer, dict) and {"schema", "kind", "rows", "cells", "task"} <= set(footer)
    except (ValueError, RecursionError):
        recognised = False
    if not recognised:
        raise DamagedRun(f"{path} has a footer that cbobench did not write; {REPAIR}")
    refuse_version(path, footer["schema"])
    if footer["kind"] != kind or footer["rows"] != metadata.num_rows:
        rows = metadata.num_rows
        raise DamagedRun(f"{path} should hold {show(footer['rows'])} rows of {kind}, it has {rows}; {REPAIR}")
    if footer["task"] != task:
        raise DamagedRun(f"{path} holds the task {show(footer['task'])}; {REPAIR}")
    known = schema(kind)
    if not columns.equals(known):  # of another version, perhaps with other metrics
        types = {field.name: field.type for field in columns}
        missing = required(kind) - set(types)
        if missing or any(types.get(f.name, f.type) != f.type for f in known):
            raise DamagedRun(f"{path} has other columns than cbobench writes; {REPAIR}")
    return footer
