"""A run on disk: `run.json`, `rounds/<task>.parquet`, `cells/<task>.parquet`, on a local disk or an object store.

A file that exists is complete: it is written under a temporary name and published by an atomic rename (on object
stores by finishing the upload). The footer says what the file is, how many rows it must hold, and which cells.
"""

from __future__ import annotations

import glob
import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from cbobench.errors import DamagedRun, Misuse, masked, one_line, refuse_strange, show
from cbobench.results.schema import FOOTER, SCHEMA_VERSION, required, schema


@dataclass(frozen=True)
class RunFolder:
    """A run folder, given as a local path or a URI such as s3://bucket/prefix. Picklable; secrets are not shown."""

    uri: str

    def __str__(self) -> str:
        return masked(self.uri)

    __repr__ = __str__

    @classmethod
    def at(cls, where: str | Path | Any) -> RunFolder:
        """The folder at a path or URI, or of what holds one (what `cbobench.run` returned); local paths are made
        absolute."""
        if isinstance(folder := getattr(where, "folder", where), cls):
            return folder
        if not isinstance(where, (str, Path)):
            raise Misuse(f"{show(where)} is no run; give a path, a URI, or what cbobench.run returned")
        text = str(where).removeprefix("file://").removeprefix("file:")
        place = text if "://" in text else str(Path(text).absolute())
        refuse_strange(masked(place), "the run folder's name")
        return cls(place)

    @cached_property
    def _place(self) -> tuple[pafs.FileSystem, str]:
        if "://" not in self.uri:
            return pafs.LocalFileSystem(), self.uri
        try:
            fs, base = pafs.FileSystem.from_uri(self.uri)
        except (pa.ArrowInvalid, OSError) as error:
            raise Misuse(masked(f"cannot use {self.uri!r} as a run folder: {error}")) from None
        return fs, base

    @property
    def fs(self) -> pafs.FileSystem:
        return self._place[0]

    @property
    def local(self) -> bool:
        return isinstance(self.fs, pafs.LocalFileSystem)

    def path(self, relative: str) -> str:
        return f"{self._place[1].rstrip('/')}/{relative}"

    def exists(self, relative: str) -> bool:
        return bool(self.fs.get_file_info(self.path(relative)).type == pafs.FileType.File)

    def names(self, kind: str) -> list[str]:
        """Task names with a published file of that kind ("rounds" or "cells"), sorted."""
        selector = pafs.FileSelector(self.path(kind), allow_not_found=True)
        files = [info.base_name for info in self.fs.get_file_info(selector) if info.type == pafs.FileType.File]
        return sorted(name[: -len(".parquet")] for name in files if name.endswith(".parquet") and name[0] not in "._")

    def publish(self, relative: str, write: Callable[[Any], None]) -> None:
        """Write a file so that it appears whole or not at all. `write` gets a binary sink."""
        target = self.path(relative)
        if not self.local:
            sink = pa.BufferOutputStream()
            write(sink)
            with self.fs.open_output_stream(target) as stream:
                stream.write(sink.getvalue())
            return
        folder = Path(target).parent
        folder.mkdir(parents=True, exist_ok=True)
        temporary = folder / f".{Path(target).name}.{os.getpid()}.{time.monotonic_ns()}.tmp"
        try:
            with temporary.open("wb") as stream:
                write(stream)
                stream.flush()
                os.fsync(stream.fileno())
            temporary.replace(target)
        except BaseException:
            with suppress(FileNotFoundError):
                temporary.unlink()
            raise

    def forget(self, tasks: Sequence[str]) -> None:
        """Remove temporary files of tasks that were stopped while they wrote."""
        for task in tasks if self.local else ():
            for left in Path(self.path("")).glob(f"*/.{glob.escape(task)}.parquet.*.tmp"):
                left.unlink(missing_ok=True)

    def read_json(self, relative: str) -> dict[str, Any]:
        try:
            if self.local and not self.exists(relative):  # a pipe or a device would be read for ever
                raise FileNotFoundError
            with self.fs.open_input_stream(self.path(relative)) as stream:
                content = json.loads(stream.read())
        except (FileNotFoundError, NotADirectoryError):
            raise Misuse(f"{self} is not a run folder: it has no {relative}; give the folder of a run") from None
        except (ValueError, RecursionError) as error:
            raise DamagedRun(f"{self.path(relative)} is not JSON: {one_line(error)}") from error
        if not isinstance(content, dict):
            raise DamagedRun(f"{self.path(relative)} is not what cbobench writes")
        return content

    def write_json(self, relative: str, content: dict[str, Any]) -> None:
        text = json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
        self.publish(relative, lambda sink: sink.write(text.encode()))

    def footer(self, kind: str, task: str) -> dict[str, Any]:
        """The footer of a published file, checked against the file.

        Raises:
            DamagedRun: truncated, foreign, of another schema version, or with another number of rows.
        """
        path = self.path(f"{kind}/{task}.parquet")
        try:
            with self.fs.open_input_file(path) as source:
                metadata = pq.read_metadata(source)
            columns = metadata.schema.to_arrow_schema()
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise DamagedRun(f"{path} is not a whole Parquet file ({_first(error)}); {_REPAIR}") from error
        written = (metadata.metadata or {}).get(FOOTER)
        if written is None:
            raise DamagedRun(f"{path} was not written by cbobench; {_REPAIR}")
        try:
            footer: dict[str, Any] = json.loads(written)
            recognised = isinstance(footer, dict) and {"schema", "kind", "rows", "cells", "task"} <= set(footer)
        except (ValueError, RecursionError):
            recognised = False
        if not recognised:
            raise DamagedRun(f"{path} has a footer that cbobench did not write; {_REPAIR}")
        if footer["schema"] != SCHEMA_VERSION:
            raise DamagedRun(
                f"{path} has schema version {show(footer['schema'])}, this cbobench reads {SCHEMA_VERSION}; "
                "use the version that wrote it, or a new run folder"
            )
        if footer["kind"] != kind or footer["rows"] != metadata.num_rows:
            rows = metadata.num_rows
            raise DamagedRun(f"{path} should hold {show(footer['rows'])} rows of {kind}, it has {rows}; {_REPAIR}")
        if footer["task"] != task:
            raise DamagedRun(f"{path} holds the task {show(footer['task'])}; {_REPAIR}")
        types = {field.name: field.type for field in columns}
        if not required(kind) <= set(types) or any(types.get(f.name, f.type) != f.type for f in schema(kind)):
            raise DamagedRun(f"{path} has other columns than cbobench writes; {_REPAIR}")
        return footer

    def read(self, kind: str, task: str, columns: list[str] | None = None) -> pa.Table:
        """The rows of a published file; cells' ids are dictionary-encoded, as they are on disk.

        A metric that was not there when the file was written is null, and one that is not there now is left out.
        """
        tables = list(self.row_groups(kind, task, columns))
        return pa.concat_tables(tables) if tables else pa.schema(_fields(kind, columns)).empty_table()

    def row_groups(self, kind: str, task: str, columns: list[str] | None = None) -> Iterator[pa.Table]:
        """The same, a part of the file at a time: memory does not grow with what was recorded."""
        path = self.path(f"{kind}/{task}.parquet")
        wanted = _fields(kind, columns)
        names = [field.name for field in wanted]
        try:
            with self.fs.open_input_file(path) as source:
                file = pq.ParquetFile(source, read_dictionary=["cell"])
                for number in range(file.num_row_groups):
                    part = file.read_row_group(number, names)
                    part.validate(full=True)
                    found = set(part.column_names)
                    yield pa.table(
                        [part[f.name] if f.name in found else pa.nulls(len(part), f.type) for f in wanted], names=names
                    )
        except (pa.ArrowException, OSError) as error:
            raise DamagedRun(f"{path} cannot be read ({_first(error)}); {_REPAIR}") from error


def _fields(kind: str, columns: list[str] | None) -> list[pa.Field]:
    return [field for field in schema(kind) if columns is None or field.name in columns]


_REPAIR = "move it and its namesake in cells/ or rounds/ away, and run the suite again to play what is missing"


def _first(error: BaseException) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
