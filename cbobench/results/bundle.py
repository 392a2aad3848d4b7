"""A bundle: the results of a run in one small file, which readers take in place of the run (format:
docs/bundles.md).

It is an uncompressed zip archive of `run.json`, Parquet tables (every cell's final values, every
metric at fixed rounds, every improvement of simple regret) and `bundle.json`, which names the
origin. A request for what it does not hold is refused, never approximated.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from cbobench.errors import (
    DamagedRun,
    Misuse,
    mask_secrets,
    nearest,
    printable,
    refuse_strange,
    show,
)
from cbobench.metrics import METRICS
from cbobench.results.folder import RunFolder
from cbobench.results.manifest import FILE
from cbobench.results.reader import Address, Reader
from cbobench.results.rounds import read_row_groups
from cbobench.results.schema import ADDED_COLUMNS, schema
from cbobench.results.store import first_line

VERSION = 1
SUFFIX = ".zip"
ABOUT = "bundle.json"
TASK = "bundle"
IMPROVED = "simple_regret"
FILES = {
    "cells": "cells.parquet",
    "rounds": "curves.parquet",
    "improvements": "improvements.parquet",
    "digests": "digests.parquet",
}
"""The tables, by what they are called in a run folder; those from the third on are of bundles
alone.
"""
LEFT_OUT = {
    "cells": {"spec", "traceback", "host"},
    "rounds": {"action", "x", "f", "g", "f_star", "f_plus", "observed_f", "observed_g", "dual"},
}
"""Columns of a run folder that a bundle has not: what `run.json` says, what may name people, and
what is large.
"""
CELL = ["problem", "algorithm", "horizon", "seed"]
KEYS = {*CELL, "cell", "status", "t", "source", "libraries", "attempt", "digest"}
"""What every row says, and what no two cells have in common."""
REMEDY = "export it again: cbobench export RUN"


def is_bundle(place: str) -> bool:
    """Return whether a path or URI names a bundle: a file, or a name that ends with .zip and is no
    directory.
    """
    if "://" in place:
        return place.partition("?")[0].endswith(SUFFIX)
    return Path(place).is_file() or (place.endswith(SUFFIX) and not Path(place).is_dir())


def open_run(run: Any) -> Reader:
    """Open the run at a path or URI, or of an object that has one (the result of `cbobench.run`).

    Local paths are made absolute.
    """
    if isinstance(folder := getattr(run, "folder", run), Reader):
        return folder
    if not isinstance(run, (str, Path)):
        raise Misuse(f"{show(run)} is no run; give a path, a URI, or what cbobench.run returned")
    text = str(run).removeprefix("file://").removeprefix("file:")
    place = text if "://" in text else str(Path(text).absolute())
    refuse_strange(mask_secrets(place), "the run folder's name")
    return Bundle(place) if is_bundle(place) else RunFolder(place)


def bundle_schema(kind: str) -> pa.Schema:
    """Return the columns of a bundle's table, by its kind in `FILES`."""
    if kind == "digests":
        return pa.schema([schema("rounds").field("cell"), pa.field("digest", pa.string())])
    if kind == "improvements":
        keys = [
            schema("rounds").field(name)
            for name in ("cell", "problem", "algorithm", "seed", "t", IMPROVED)
        ]
        return pa.schema(keys)
    return pa.schema([field for field in schema(kind) if field.name not in LEFT_OUT[kind]])


class Bundle(Address):
    """A bundle, at a local path or a URI that ends with .zip.

    Its rounds are the fixed ones; those in which simple regret improves are tables of
    `improvements_kind`.
    """

    is_reduced = True

    @cached_property
    def _files(self) -> dict[str, bytes]:
        """The files of the archive, each checked against `bundle.json`.

        Raises:
            Misuse: no such file, or no bundle.
            DamagedRun: a truncated or changed bundle, or another version.
        """
        # Whoever made the file chose its bytes: nothing of it is believed before its digests are
        # compared.
        data = self._read()
        try:
            with zipfile.ZipFile(io.BytesIO(data)) as archive:
                members = [
                    info
                    for info in archive.infolist()
                    if info.filename in {ABOUT, FILE, *FILES.values()}
                ]
                # A compressed member may expand to any size.
                large = any(info.compress_type != zipfile.ZIP_STORED for info in members)
                files = {} if large else {info.filename: archive.read(info) for info in members}
        except (
            zipfile.BadZipFile,
            EOFError,
            NotImplementedError,
            RuntimeError,
            ValueError,
        ) as error:
            if not data.startswith(b"PK"):
                self._refuse("it is no zip archive")
            raise DamagedRun(
                f"{self} is a damaged bundle ({first_line(error)}); {REMEDY}"
            ) from error
        if ABOUT not in files:
            self._refuse(f"it has no {ABOUT}")
        about = self._json(files[ABOUT], ABOUT)
        if about.get("bundle") != VERSION:
            raise DamagedRun(
                f"{self} has bundle version {show(about.get('bundle'))}, this cbobench reads "
                f"{VERSION}; use the "
                "version that wrote it, or export the run again"
            )
        digests = about.get("files")
        for name in (FILE, *FILES.values()):
            digest = digests.get(name) if isinstance(digests, dict) else None
            if name not in files or hashlib.sha256(files[name]).hexdigest() != digest:
                raise DamagedRun(
                    f"{self} is a damaged bundle ({name} is not what was exported); {REMEDY}"
                )
        return files

    def _read(self) -> bytes:
        try:
            if self.local and not Path(self.uri).is_file():  # reading a pipe or a device never ends
                raise FileNotFoundError
            with self._open(self._place[1]) as source:
                return bytes(source.read())
        except (FileNotFoundError, NotADirectoryError):
            place = Path(self.uri)
            close = nearest(
                place.stem,
                [file.stem for file in place.parent.glob(f"*{SUFFIX}")] if self.local else [],
            )
            suggestion = (
                f"; did you mean {printable(str(place.with_name(close + SUFFIX)))}?"
                if close
                else ""
            )
            raise Misuse(
                f"{self} is not a run folder or a bundle: there is no such file{suggestion}"
            ) from None

    def _refuse(self, why: str) -> NoReturn:
        raise Misuse(
            f"{self} is not a run folder or a bundle: {why}; give what cbobench run or cbobench "
            "export wrote"
        )

    def _json(self, data: bytes, name: str) -> dict[str, Any]:
        try:
            content = json.loads(data)
        except (ValueError, RecursionError):
            content = None
        if not isinstance(content, dict):
            raise DamagedRun(
                f"{self} is a damaged bundle ({name} is not what cbobench writes); {REMEDY}"
            )
        return content

    @property
    def about(self) -> dict[str, Any]:
        """Return the content of `bundle.json`."""
        return self.read_json(ABOUT)

    def exists(self, relative: str) -> bool:
        return relative in self._files

    def names(self, kind: str) -> list[str]:
        return [TASK] if FILES.get(kind) in self._files else []

    def read_json(self, relative: str) -> dict[str, Any]:
        return self._json(self._files[relative], relative)

    def read_file(
        self, kind: str, task: str, columns: list[str] | None = None
    ) -> tuple[dict[str, Any], pa.Table]:
        tables = [] if columns == [] else list(self.row_groups(kind, task, columns))
        return {}, self._concatenate(tables, kind, columns)

    def row_groups(
        self,
        kind: str,
        task: str,
        columns: list[str] | None = None,
        cells: Sequence[str] | None = None,
    ) -> Iterator[pa.Table]:
        table_schema, fields = self.schema(kind), self.select_fields(kind, columns)
        try:
            file = pq.ParquetFile(io.BytesIO(self._files[FILES[kind]]), read_dictionary=["cell"])
            types = {field.name: field.type for field in file.schema_arrow}
            strange = [
                f.name for f in table_schema if types.get(f.name, f.type) not in (f.type, _CODED)
            ]
            if strange or set(table_schema.names) - set(types) - set(METRICS) - ADDED_COLUMNS:
                raise DamagedRun(
                    f"{self} has other columns in {FILES[kind]} than cbobench writes; {REMEDY}"
                )
            for part in read_row_groups(file, fields, cells):
                self._check(kind, part)
                yield part
        except (pa.ArrowException, OSError, UnicodeDecodeError, KeyError) as error:
            raise DamagedRun(
                f"{self} is a damaged bundle ({FILES[kind]}: {first_line(error)}); {REMEDY}"
            ) from error

    def _check(self, kind: str, part: pa.Table) -> None:
        """Raise `DamagedRun` for rows that no export writes: a matching digest is no proof."""
        why = [
            f"a row without {name}"
            for name in part.column_names
            if name in KEYS and part[name].null_count
        ]
        measured = [name for name in part.column_names if name in METRICS]
        why += [f"an infinite {name}" for name in measured if pc.any(pc.is_inf(part[name])).as_py()]
        if "status" in part.column_names and not {*pc.unique(part["status"]).to_pylist()} <= {
            "ok",
            "failed",
        }:
            why.append("a status other than ok and failed")
        if (
            kind == "cells"
            and {*CELL} <= {*part.column_names}
            and len(part.group_by(CELL).aggregate([])) < len(part)
        ):
            why.append("a cell twice")
        if "t" in part.column_names and pc.any(pc.less(part["t"], 1)).as_py():
            why.append("a round before the first")
        if why:
            raise DamagedRun(f"{self} is a damaged bundle ({FILES[kind]} has {why[0]}); {REMEDY}")

    def schema(self, kind: str) -> pa.Schema:
        return bundle_schema(kind)

    def refuse_bundle(self, then: str) -> NoReturn:
        raise Misuse(f"{self} is a file; {then}")


_CODED = pa.dictionary(pa.int32(), pa.string())
