"""What the Parquet files of a run hold: columns, footer, and the writer that a task streams into."""

from __future__ import annotations

import hashlib
import json
from functools import cache
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from cbobench.errors import DamagedRun, show
from cbobench.metrics import METRICS
from cbobench.results.audited import AUDITED

SCHEMA_VERSION = 4
FOOTER, DIGEST = b"cbobench", b"cbobench digest"
COMPRESSION: dict[str, Any] = {"compression": "zstd", "compression_level": 3, "write_page_checksum": True}
KINDS = ("rounds", "cells", "audit")
DICTIONARY = ["cell", "problem", "algorithm", "status", "spec", "host", "cpu", "source", "libraries"]
LATER = {"cpu"}
"""Columns that came after the first files of this version: null where a file has none, which means unknown."""

_KEYS = [("cell", pa.string()), ("problem", pa.string()), ("algorithm", pa.string()), ("seed", pa.int64())]
_VECTOR = pa.list_(pa.float64())


def refuse_version(path: str, given: object) -> None:
    """Raises `DamagedRun` for a file of another version than this one's."""
    if given != SCHEMA_VERSION:
        raise DamagedRun(
            f"{path} has schema version {show(given)}, this cbobench reads {SCHEMA_VERSION}; "
            "use the version that wrote it, or a new run folder"
        )


def required(kind: str) -> set[str]:
    """Columns that every file has, whatever metrics there were when it was written."""
    return set(schema(kind).names) - set(METRICS) - LATER


def schema(kind: str) -> pa.Schema:
    """The columns of "rounds", "cells" or "audit". Problem and algorithm are titles as they were spelt when played."""
    return _schema(kind, tuple(METRICS))


@cache
def _schema(kind: str, measured: tuple[str, ...]) -> pa.Schema:
    if kind == "audit":
        return pa.schema(
            [*_KEYS, ("horizon", pa.int64()), ("attempt", pa.int64()), *((c.name, c.type) for c in AUDITED)]
        )
    metrics = [(name, pa.float64()) for name in measured]
    if kind == "rounds":
        return pa.schema(
            [
                *_KEYS,
                ("t", pa.int64()),
                ("action", pa.int64()),
                ("x", _VECTOR),
                ("f", pa.float64()),
                ("g", _VECTOR),
                ("observed_f", pa.float64()),
                ("observed_g", _VECTOR),
                *metrics,
                ("dual", _VECTOR),
            ]
        )
    return pa.schema(
        [
            *_KEYS,
            ("horizon", pa.int64()),
            ("spec", pa.string()),
            ("status", pa.string()),
            ("error", pa.string()),
            ("traceback", pa.string()),
            *metrics,
            ("f_star", pa.float64()),
            ("f_plus", pa.float64()),
            ("first_feasible", pa.int64()),
            ("longest_streak", pa.int64()),
            ("positive_dual", pa.float64()),
            ("binds", pa.bool_()),
            ("infeasibility_declared", pa.bool_()),
            ("cap_hits", pa.int64()),
            ("redraws", pa.int64()),
            ("feasibility_tolerance", pa.float64()),
            ("seconds", pa.float64()),
            ("seconds_per_round", pa.float64()),
            ("peak_memory_mb", pa.float64()),
            ("host", pa.string()),
            ("cpu", pa.string()),
            ("source", pa.string()),
            ("libraries", pa.string()),
            ("attempt", pa.int64()),
        ]
    )


def footer(kind: str, task: str, cells: list[str], rows: int, attempt: int, **more: Any) -> dict[bytes, bytes]:
    """Schema metadata that makes a file recognisable, and says that a digest stands beside it; `more` is of shards."""
    content = {
        "schema": SCHEMA_VERSION, "kind": kind, "task": task, "cells": cells, "rows": rows, "attempt": attempt,
        "digest": True,
    }  # fmt: skip
    return {FOOTER: json.dumps(content | more).encode()}


class _Hashed:
    """A sink that hashes what is written to it."""

    closed = False

    def __init__(self, sink: Any) -> None:
        self.sink, self.size, self.hash = sink, 0, hashlib.sha256()

    def write(self, data: Any) -> int:
        self.size += memoryview(data).nbytes
        self.hash.update(data)
        self.sink.write(data)
        return memoryview(data).nbytes

    def flush(self) -> None:
        self.sink.flush()


class Writer(pq.ParquetWriter):  # type: ignore[misc]
    """A writer of rounds, cells or audit into an open sink; the file says the digest of its rows and its footer."""

    def __init__(self, sink: Any, kind: str, metadata: dict[bytes, bytes]) -> None:
        columns = schema(kind).with_metadata(metadata)
        dictionary = [name for name in DICTIONARY if name in columns.names]
        self._hashed, self._footer = _Hashed(sink), metadata[FOOTER]
        super().__init__(self._hashed, columns, use_dictionary=dictionary, **COMPRESSION)

    def close(self) -> None:
        if self.is_open:
            self._hashed.hash.update(self._footer)
            self.add_key_value_metadata({DIGEST: f"{self._hashed.size} {self._hashed.hash.hexdigest()}"})
        super().close()


def same_digest(source: Any, metadata: dict[bytes, bytes]) -> bool:
    """Whether a file's rows and footer are those that were written.

    Args:
        source: the open file.
        metadata: of its schema.
    """
    size, _, digest = metadata.get(DIGEST, b"").decode(errors="replace").partition(" ")
    left, found = int(size) if size.isdecimal() else 0, hashlib.sha256()
    source.seek(0)
    while left > 0 and (data := source.read(min(left, 2**20))):
        found.update(data)
        left -= len(data)
    found.update(metadata[FOOTER])
    return found.hexdigest() == digest
