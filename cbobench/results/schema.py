"""The Parquet files of a run: columns, footer and digest, and the writer for a task's rows."""

from __future__ import annotations

import hashlib
import json
from functools import cache
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from cbobench.errors import DamagedRun, show
from cbobench.metrics import METRICS, REWARD_STEPS

SCHEMA_VERSION = 5
READABLE = (4, SCHEMA_VERSION)
"""Versions that are read. Files of version 4 hold every metric, and no f_star and f_plus."""
FOOTER, DIGEST = b"cbobench", b"cbobench digest"
COMPRESSION: dict[str, Any] = {
    "compression": "zstd",
    "compression_level": 3,
    "write_page_checksum": True,
}
KINDS = ("rounds", "cells", "audit")
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
ADDED_COLUMNS = {
    "cpu",
    "arithmetic",
    "failed_evaluations",
    "failed_fits",
    "f_star",
    "f_plus",
    *RECOMMENDED,
    RULE,
    FITTED,
}
"""Columns that the first files of a readable version do not have: null there, which means
unknown.
"""

_KEYS = [
    ("cell", pa.string()),
    ("problem", pa.string()),
    ("algorithm", pa.string()),
    ("seed", pa.int64()),
]
_VECTOR = pa.list_(pa.float64())


_NUMBER, _NUMBERS, _YES, _COUNT = pa.float64(), pa.list_(pa.float64()), pa.bool_(), pa.int64()


class Column(NamedTuple):
    """A column; null where it does not apply (an algorithm without widths, functions that move)."""

    name: str
    type: pa.DataType
    about: str


AUDIT_COLUMNS: tuple[Column, ...] = (
    Column(
        "rounds",
        _COUNT,
        "rounds in which events were looked at; 0: the theory says nothing here (see notes)",
    ),
    Column(
        "alpha",
        _NUMBER,
        "α: all bounds together are promised to hold in all rounds with probability 1 - α",
    ),
    Column(
        "est",
        _NUMBER,
        "share of rounds in which |f - μ| <= βσ and |g_j - μ_j| <= β_j σ_j at all actions (E^est)",
    ),
    Column("est_each", _NUMBERS, "the same for f, g_1, ..., g_m alone"),
    Column("est_always", _YES, "whether E^est held in every round: what is promised"),
    Column(
        "needed",
        _NUMBERS,
        "largest |f - μ|/(βσ), |g_j - μ_j|/(β_j σ_j) in all rounds; 1 is just enough",
    ),
    Column(
        "optimism",
        _NUMBER,
        "share of rounds in which f̄_t - φ_t·ḡ_t at x* is at least its true value",
    ),
    Column("optimism_always", _YES, "whether in every round"),
    Column(
        "conc",
        _NUMBER,
        "share of rounds with E^conc: estimates within c^(2)σ of the means at all actions",
    ),
    Column("conc_promised", _NUMBER, "the mean over rounds of 1 - p_{2,t}"),
    Column(
        "anti",
        _NUMBER,
        "share of rounds with E^anti: estimates of the best policy optimistic by c^(1)σ",
    ),
    Column("anti_promised", _NUMBER, "p_3"),
    Column("norm", _NUMBERS, "RKHS norms of (f, g_1, ..., g_m); on a box the regularised ones"),
    Column("bound", _NUMBERS, "B, G_1, ..., G_m in use"),
    Column("noise", _NUMBERS, "sub-Gaussian constants of the noise on (f, g_1, ..., g_m)"),
    Column("noise_used", _NUMBERS, "R in use"),
    Column("dual_optimum", _NUMBERS, "φ* of the finite linear program"),
    Column("dual_cap", _NUMBER, "ρ in use"),
    Column("margin", _NUMBER, "δ of the safest policy, a mixture of actions"),
    Column("margin_single", _NUMBER, "δ of the safest action"),
    Column("margin_used", _NUMBER, "δ in use"),
    Column("mixed", _COUNT, "how many actions the best policy π* mixes"),
    Column("gain", _NUMBER, "information gain of the actions played, at the end"),
    Column("gain_used", _NUMBER, "γ in the width of the last round"),
    Column(
        "certified", _COUNT, "different actions outside the seed set that were ever called safe"
    ),
    Column("certified_unsafe", _COUNT, "how many of them are not"),
    Column(
        "regret_bound",
        _NUMBER,
        "bound of R₊ at T, with β_T √(4(T + 2)γ_T) in the place of Σ β_t σ(x_t)",
    ),
    Column("violation_bound", _NUMBER, "bound of V at T, likewise"),
    Column("curve_t", pa.list_(pa.int64()), "rounds of the curves, at most 64"),
    Column(
        "curve_regret",
        _NUMBERS,
        "bound of R₊ after these rounds with the sums of β_t σ(x_t) (optimistic bounds)",
    ),
    Column("curve_violation", _NUMBERS, "bound of V after these rounds, likewise"),
    Column("notes", pa.list_(pa.string()), "why the theorems do not apply to this cell"),
)


def refuse_version(path: str, version: object) -> None:
    """Raise `DamagedRun` if a file has a schema version that this cbobench does not read."""
    if version not in READABLE:
        raise DamagedRun(
            f"{path} has schema version {show(version)}, this cbobench reads {READABLE[0]} to "
            f"{READABLE[-1]}; "
            "use the version that wrote it, or a new run folder"
        )


def required_columns(kind: str) -> set[str]:
    """Return the columns that every file has; metrics depend on the version that wrote it."""
    return set(schema(kind).names) - set(METRICS) - ADDED_COLUMNS


def rounds_schema(complete: bool) -> pa.Schema:
    """Return the columns that a file of rounds holds; one with every round leaves out what
    `results.rounds` adds.
    """
    return pa.schema(
        [field for field in schema("rounds") if not (complete and field.name in REWARD_STEPS)]
    )


def schema(kind: str) -> pa.Schema:
    """Return the columns of "rounds", "cells" or "audit". Problem and algorithm are titles, spelt
    as when played.
    """
    return _schema(kind, tuple(METRICS))


@cache
def _schema(kind: str, measured: tuple[str, ...]) -> pa.Schema:
    if kind == "audit":
        return pa.schema(
            [
                *_KEYS,
                ("horizon", pa.int64()),
                ("attempt", pa.int64()),
                *((c.name, c.type) for c in AUDIT_COLUMNS),
            ]
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
                ("f_star", pa.float64()),
                ("f_plus", pa.float64()),
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
            ("failed_evaluations", pa.int64()),
            ("failed_fits", pa.int64()),
            (FITTED, pa.bool_()),
            ("recommended_action", pa.int64()),
            ("recommended_x", _VECTOR),
            ("recommended_f", pa.float64()),
            ("recommended_g", _VECTOR),
            (RULE, pa.int64()),
            ("feasibility_tolerance", pa.float64()),
            ("seconds", pa.float64()),
            ("seconds_per_round", pa.float64()),
            ("peak_memory_mb", pa.float64()),
            ("host", pa.string()),
            ("cpu", pa.string()),
            ("arithmetic", pa.string()),
            ("source", pa.string()),
            ("libraries", pa.string()),
            ("attempt", pa.int64()),
        ]
    )


def make_footer(
    kind: str, task: str, cells: list[str], rows: int, attempt: int, **shard_fields: Any
) -> dict[bytes, bytes]:
    """Return schema metadata that identifies a file and announces its digest; `shard_fields` are
    those of shards.
    """
    content = {
        "schema": SCHEMA_VERSION,
        "kind": kind,
        "task": task,
        "cells": cells,
        "rows": rows,
        "attempt": attempt,
    }
    return {FOOTER: json.dumps(content | {"digest": True} | shard_fields).encode()}


class _HashingSink:
    """A sink that hashes the bytes it passes on."""

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


class TableWriter(pq.ParquetWriter):  # type: ignore[misc]
    """Writes rounds, cells or audit into an open sink, and a digest of rows and footer into the
    file.
    """

    def __init__(self, sink: Any, columns: pa.Schema, metadata: dict[bytes, bytes]) -> None:
        columns = columns.with_metadata(metadata)
        dictionary = [name for name in DICTIONARY if name in columns.names]
        self._sink, self._footer, self._ended = _HashingSink(sink), metadata[FOOTER], False
        super().__init__(self._sink, columns, use_dictionary=dictionary, **COMPRESSION)

    def close(self) -> None:
        # a file whose end failed is given up; the garbage collector must not end it once more
        if self._ended:
            return
        self._ended = True
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
    left, hasher = int(size) if size.isdecimal() else 0, hashlib.sha256()
    source.seek(0)
    while left > 0 and (data := source.read(min(left, 2**20))):
        hasher.update(data)
        left -= len(data)
    hasher.update(metadata[FOOTER])
    return hasher.hexdigest() == digest
