"""The Parquet files of a run: columns, footer and digest, and the writer for a task's rows."""

from __future__ import annotations

import hashlib
import json
from functools import cache
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from cbobench.errors import DamagedRun, show
from cbobench.metrics import METRICS, REWARD_STEPS

SCHEMA_VERSION = 6
FOOTER = b"cbobench"
DIGEST = b"cbobench digest"
COMPRESSION: dict[str, Any] = {
    "compression": "zstd",
    "compression_level": 3,
    "write_page_checksum": True,
}
KINDS = ("rounds", "cells")
# columns with few different texts, which are written as codes
DICTIONARY = [
    "cell",
    "problem",
    "algorithm",
    "status",
    "spec",
    "host",
    "cpu",
    "arithmetic",
    "source",
    "libraries",
]
RECOMMENDED = ("recommended_action", "recommended_x", "recommended_f", "recommended_g")
FITTED = "fitted"
"""Whether a method's models were fitted, or had the problem's kernel; null without models."""
RULE = "recommendation_rule"
RECOMMENDATION_RULE = 3
"""Which rule chose a cell's recommendations. From 2 on it is the best point measured where there is
no noise; with 3, `scbo`, `furbo` and BoTorch's methods go by their models where there is noise.
Cells of rules before 2 do not say theirs.
"""
IMPROVED = "simple_regret"
PLAYED = ("t", "action", "x", "observed_f", "observed_g")
"""What is known of a round once it is played; a digest covers it (see `results.rounds`)."""
_TYPES = {
    "bool": pa.bool_(),
    "float": pa.float64(),
    "int": pa.int64(),
    "text": pa.string(),
    "vector": pa.list_(pa.float64()),
}
_ROUNDS = """
    cell text, problem text, algorithm text, seed int, t int, action int, x vector,
    f float, g vector, f_star float, f_plus float, observed_f float, observed_g vector,
    METRICS, dual vector
"""
_CELLS = """
    cell text, problem text, algorithm text, seed int, horizon int, spec text,
    status text, digest text, error text, traceback text,
    METRICS, f_star float, f_plus float, first_feasible int, longest_streak int,
    positive_dual float, binds bool, infeasibility_declared bool, cap_hits int, redraws int,
    failed_evaluations int, failed_fits int, fitted bool,
    recommended_action int, recommended_x vector, recommended_f float, recommended_g vector,
    recommendation_rule int, feasibility_tolerance float,
    seconds float, seconds_per_round float, peak_memory_mb float,
    host text, cpu text, arithmetic text, source text, libraries text, attempt int
"""
"""The columns of rounds and of cells in order, with their types; metrics are numbers."""
REQUIRED = {
    "rounds": {"cell", "seed", "t"},
    "cells": {"cell", "seed", "horizon", "status", "source", "libraries", "attempt"},
    "improvements": {"cell", "t", IMPROVED},
    "plays": {"cell", *PLAYED},
}
"""By kind, the columns that every file has. Which others there are depends on the version that
wrote it, and on what a bundle keeps.
"""


def list_kept() -> list[str]:
    """Return the columns of rounds that a bundle keeps."""
    return ["cell", "problem", "algorithm", "seed", "t", *METRICS]


def refuse_version(path: str, version: object) -> None:
    """Raise `DamagedRun` if a file has a schema version that this cbobench does not read."""
    if version != SCHEMA_VERSION:
        raise DamagedRun(
            f"{path} has schema version {show(version)}, this cbobench reads {SCHEMA_VERSION}; use "
            "the version that wrote it, or a new run folder"
        )


def rounds_schema(complete: bool) -> pa.Schema:
    """Return the columns that a file of rounds holds; one with every round leaves out what
    `results.rounds` adds.
    """
    return pa.schema(
        [field for field in schema("rounds") if not (complete and field.name in REWARD_STEPS)]
    )


def schema(kind: str) -> pa.Schema:
    """Return the columns of "rounds" or "cells", or of what only bundles have: "improvements" of
    simple regret, and "plays". Problem and algorithm are titles, spelt as when played.
    """
    return _schema(kind, tuple(METRICS))


@cache
def _schema(kind: str, measured: tuple[str, ...]) -> pa.Schema:
    metrics = ", ".join(f"{name} float" for name in measured)
    text = _CELLS if kind == "cells" else _ROUNDS
    columns = pa.schema(
        [
            (name, _TYPES[kind_of_value])
            for name, kind_of_value in map(str.split, text.replace("METRICS", metrics).split(","))
        ]
    )
    kept = {"improvements": ("cell", "t", IMPROVED), "plays": ("cell", *PLAYED)}.get(kind)
    if kept is None:
        return columns
    return pa.schema([columns.field(name) for name in kept])


def make_footer(kind: str, task: str, cells: list[str], rows: int) -> dict[bytes, bytes]:
    """Return schema metadata that identifies a file."""
    content = {"schema": SCHEMA_VERSION, "kind": kind, "task": task, "cells": cells, "rows": rows}
    return {FOOTER: json.dumps(content).encode()}


class _HashingSink:
    """A sink that hashes the bytes it passes on."""

    closed = False

    def __init__(self, sink: Any) -> None:
        self.sink = sink
        self.size = 0
        self.hash = hashlib.sha256()

    def write(self, data: Any) -> int:
        self.size += memoryview(data).nbytes
        self.hash.update(data)
        self.sink.write(data)
        return memoryview(data).nbytes

    def flush(self) -> None:
        self.sink.flush()


class TableWriter(pq.ParquetWriter):  # type: ignore[misc]
    """Writes rounds or cells into an open sink, and a digest of rows and footer into the
    file.
    """

    def __init__(
        self, sink: Any, columns: pa.Schema, metadata: dict[bytes, bytes], **layout: Any
    ) -> None:
        columns = columns.with_metadata(metadata)
        dictionary = [name for name in DICTIONARY if name in columns.names]
        self._sink = _HashingSink(sink)
        self._footer = metadata[FOOTER]
        self._ended = False
        options = {"use_dictionary": dictionary, **COMPRESSION, **layout}
        super().__init__(self._sink, columns, **options)

    def close(self) -> None:
        # a file whose end failed is given up; the garbage collector must not end it once more
        if self._ended:
            return
        self._ended = True
        # The digest cannot cover the file's own end, where it stands; of that it covers the footer.
        if self.is_open:
            self._sink.hash.update(self._footer)
            self.add_key_value_metadata(
                {DIGEST: f"{self._sink.size} {self._sink.hash.hexdigest()}"}
            )
        super().close()


def digest_matches(source: Any, metadata: dict[bytes, bytes]) -> bool:
    """Return whether a file's rows and footer have the stored digest.

    Args:
        source: the open file.
        metadata: of its schema.
    """
    size, _, digest = metadata.get(DIGEST, b"").decode(errors="replace").partition(" ")
    left = int(size) if size.isdecimal() else 0
    hasher = hashlib.sha256()
    source.seek(0)
    # Piece by piece, as a file may be larger than memory.
    while left > 0 and (data := source.read(min(left, 2**20))):
        hasher.update(data)
        left -= len(data)
    hasher.update(metadata[FOOTER])
    return hasher.hexdigest() == digest
