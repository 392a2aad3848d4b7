"""A run on disk: `run.json`, `rounds/<task>.parquet`, `cells/<task>.parquet`, on a local disk or an
object store.

An existing file is complete: it is written under a temporary name and published by an atomic rename
(on object stores by finishing the upload). Its footer holds its kind, its number of rows, and its
cells.
"""

from __future__ import annotations

import glob
import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from cbobench.errors import STRANGE, DamagedRun, Misuse, nearest, one_line, printable, show
from cbobench.metrics import REWARD_STEPS
from cbobench.processes import leave_fork
from cbobench.results.reader import Address
from cbobench.results.rounds import read_row_groups
from cbobench.results.schema import FOOTER, digest_matches, refuse_version, required_columns, schema
from cbobench.results.store import AtomicFile, first_line, is_transient, store_failure, writing
from cbobench.words import list_names

T = TypeVar("T")
P = ParamSpec("P")
READ_ATTEMPTS = 20
RUNS = "runs"  # folder of runs whose folder is not stated
SHARD = "shard-"
"""Prefix of the files that hold what several tasks published; the names of tasks hold a dot."""
REPAIR = (
    "cbobench verify RUN names all that is damaged; once that is removed, the next run plays it "
    "again"
)
_UNREADABLE = (pa.ArrowException, OSError, UnicodeDecodeError)


class FileGone(DamagedRun):
    """A listed file no longer exists."""


class TruncatedFile(DamagedRun):
    """A file cannot be read: an upload broke off and the store kept its beginning, or the file
    changed later.
    """


def retry_if_gone(read: Callable[P, T]) -> Callable[P, T]:
    """Make a function that reads repeat it while files disappear (see `results.compact`)."""

    @wraps(read)
    def read_again(*args: P.args, **options: P.kwargs) -> T:
        for _ in range(READ_ATTEMPTS):
            with suppress(FileGone):
                return read(*args, **options)
        return read(*args, **options)

    return read_again


@dataclass(frozen=True, repr=False)
class RunFolder(Address):
    """A run folder: a reader that also publishes.

    Attributes:
        uri: a local path or a URI such as s3://bucket/prefix.
        driver: id of the call that plays into it, once it holds a lease (see `results.lease`).
        scratch: a folder of that call on its machine, for this user alone.
    """

    driver: str = ""
    scratch: str = ""

    def path(self, relative: str) -> str:
        return f"{self._place[1].rstrip('/')}/{relative}"

    def refuse_bundle(self, then: str) -> RunFolder:
        return self

    def exists(self, relative: str) -> bool:
        place = self.path(relative).rstrip("/")
        return bool(self._retry(lambda: self.fs.get_file_info(place)).type == pafs.FileType.File)

    def listing(self, kind: str) -> dict[str, pafs.FileInfo]:
        selector = pafs.FileSelector(self.path(kind), allow_not_found=True)
        return {
            info.base_name: info for info in self._retry(lambda: self.fs.get_file_info(selector))
        }

    def names(self, kind: str) -> list[str]:
        return self._published_names(kind, ".parquet")

    def calls(self, kind: str) -> list[str]:
        return self._published_names(kind, ".json")

    def _published_names(self, kind: str, suffix: str) -> list[str]:
        files = [
            name for name, info in self.listing(kind).items() if info.type == pafs.FileType.File
        ]
        # a terminal may see them
        ours = [name for name in files if name[0] not in "._" and not STRANGE.search(name)]
        return sorted(name[: -len(suffix)] for name in ours if name.endswith(suffix))

    def publish(self, relative: str, write: Callable[[Any], None]) -> None:
        """Write a file so that it appears whole or not at all. `write` gets a binary sink, and is
        called once.

        Raises:
            StoreFailure: it cannot be written. An error that `write` raises passes unchanged.
        """
        target = self.path(relative)
        if not self.local:
            # The file is made in memory, because an upload may be repeated and `write` is called
            # once.
            sink, origin = pa.BufferOutputStream(), os.getpid()
            write(sink)
            leave_fork(origin)
            value = sink.getvalue()
            self._retry(lambda: self._upload(target, value), "write to")
            return
        folder = Path(target).parent
        with writing(str(self)):
            if not self.driver:
                self._retry(lambda: folder.parent.mkdir(parents=True, exist_ok=True), "write to")
            # No parents: a run folder that was removed during play is not created again.
            self._retry(lambda: folder.mkdir(exist_ok=True), "write to")
        file = AtomicFile(Path(target), str(self))
        try:
            file.open()
            write(file)
            file.publish()
        except BaseException:
            file.discard()
            raise

    def _upload(self, target: str, value: pa.Buffer) -> None:
        """Upload a file and check its size, because a broken stream may publish its beginning."""
        with self._in_parent(target, lambda: self.fs.open_output_stream(target)) as stream:
            stream.write(value)
        size = self.fs.get_file_info(target).size
        if size != value.size:
            raise OSError(f"{size} of {value.size} bytes were stored")

    def _in_parent(self, target: str, call: Callable[[], T]) -> T:
        """Return the result of a call that writes to a path, after creating its parent if the store
        has folders.
        """
        try:
            return call()
        except FileNotFoundError:
            self.fs.create_dir(target.rpartition("/")[0], recursive=True)
            return call()

    def remove(self, relative: str) -> None:
        """Remove a file if it exists."""
        with suppress(FileNotFoundError):
            self._retry(lambda: self.fs.delete_file(self.path(relative)), "write to")

    def remove_temporary(self, tasks: Sequence[str]) -> None:
        """Remove temporary files of tasks that were stopped while writing."""
        for task in tasks if self.local else ():
            for left in Path(self.path("")).glob(f"*/.{glob.escape(task)}.parquet.*.tmp"):
                with suppress(OSError):  # it stays a leftover, which the next call removes
                    left.unlink()

    def read_json(self, relative: str) -> dict[str, Any]:
        def call() -> bytes:
            # a pipe or a device: reading it never ends
            if self.local and not self.exists(relative):
                raise FileNotFoundError
            with self.fs.open_input_stream(self.path(relative)) as stream:
                return bytes(stream.read())

        try:
            content = json.loads(self._retry(call))
        except (FileNotFoundError, NotADirectoryError):
            raise Misuse(
                f"{self} is not a run folder: {self._describe_absence(relative)}"
            ) from None
        except (ValueError, RecursionError) as error:
            raise DamagedRun(f"{self.path(relative)} is not JSON: {one_line(error)}") from error
        if not isinstance(content, dict):
            raise DamagedRun(f"{self.path(relative)} is not what cbobench writes")
        return content

    def _describe_absence(self, relative: str) -> str:
        """Return why there is no such file, and which run may be meant."""
        place, remedy = Path(self.uri), "give the folder of a run"
        if not self.local:
            return f"it has no {relative}; {remedy}"
        # the second is where `cbobench run` puts a suite of that name
        runs = {
            file.parent.name: file.parent
            for pattern in ("*", f"{RUNS}/*")
            for file in sorted(place.parent.glob(f"{pattern}/{relative}"))
        }
        if close := nearest(place.name, runs):
            remedy = f"did you mean {printable(str(runs[close]))}?"
        elif runs:
            remedy += f": {printable(list_names(map(os.path.relpath, runs.values())))}"
        return f"it {f'has no {relative}' if place.exists() else 'does not exist'}; {remedy}"

    def write_json(self, relative: str, content: dict[str, Any]) -> None:
        text = json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
        self.publish(relative, lambda sink: sink.write(text.encode()))

    @retry_if_gone  # shards may be merged meanwhile
    def replacements(self) -> dict[str, str]:
        shards = (name for name in self.names("cells") if name.startswith(SHARD))
        return {
            task: name for name in shards for task in self.footer("cells", name).get("replaces", ())
        }

    def published_tasks(self) -> set[str]:
        """Return the names of the tasks whose cells are published, including those that shards have
        replaced.
        """
        return {*self.names("cells"), *self.replacements()}

    @contextmanager
    def _parquet(
        self, kind: str, task: str, **options: Any
    ) -> Iterator[tuple[Any, pq.ParquetFile]]:
        """Open a published file as bytes and as Parquet.

        Raises:
            FileGone: it does not exist.
            TruncatedFile: it cannot be read.
        """
        path, fault = self.path(f"{kind}/{task}.parquet"), "is not a whole Parquet file"
        try:
            with self._open(path) as source:
                file = pq.ParquetFile(source, page_checksum_verification=True, **options)
                fault = "cannot be read"
                yield source, file
        except FileNotFoundError as error:
            raise FileGone(f"{path} is missing") from error
        except _UNREADABLE as error:
            # no damage
            if isinstance(error, OSError) and self.local and is_transient(error, False):
                raise store_failure("reach", str(self), error) from error
            raise TruncatedFile(f"{path} {fault} ({first_line(error)}); {REPAIR}") from error

    def read_file(
        self, kind: str, task: str, columns: list[str] | None = None
    ) -> tuple[dict[str, Any], pa.Table]:
        with self._parquet(kind, task) as (_, file):
            footer = read_footer(self.path(f"{kind}/{task}.parquet"), kind, task, file.metadata)
            tables = (
                list(read_row_groups(file, self.select_fields(kind, columns)))
                if columns != []
                else []
            )
        return footer, self._concatenate(tables, kind, columns)

    def row_groups(
        self,
        kind: str,
        task: str,
        columns: list[str] | None = None,
        cells: Sequence[str] | None = None,
    ) -> Iterator[pa.Table]:
        """Yield the rows of some cells, or of all, one row group at a time.

        If a shard has replaced the file since it was listed, yield the shard's rows, which include
        the file's.
        """
        try:
            with self._parquet(kind, task, read_dictionary=["cell"]) as (_, file):
                yield from read_row_groups(file, self.select_fields(kind, columns), cells)
        except FileGone:
            shard = self.replacements().get(task)
            if shard is None:
                raise
            yield from self.row_groups(kind, shard, columns, cells)

    def digest_matches(self, kind: str, task: str) -> bool:
        """Return whether a published file has its original bytes."""
        with self._parquet(kind, task) as (source, file):
            return digest_matches(source, file.metadata.metadata or {})


def read_footer(path: str, kind: str, task: str, metadata: pq.FileMetaData) -> dict[str, Any]:
    """Return the footer of a file, checked against the file. Raises `DamagedRun` if they
    disagree.
    """
    columns = metadata.schema.to_arrow_schema()
    content = (metadata.metadata or {}).get(FOOTER)
    if content is None:
        raise DamagedRun(f"{path} was not written by cbobench; {REPAIR}")
    try:
        footer: dict[str, Any] = json.loads(content)
        recognised = isinstance(footer, dict) and {
            "schema",
            "kind",
            "rows",
            "cells",
            "task",
        } <= set(footer)
    except (ValueError, RecursionError):
        recognised = False
    if not recognised:
        raise DamagedRun(f"{path} has a footer that cbobench did not write; {REPAIR}")
    refuse_version(path, footer["schema"])
    if footer["kind"] != kind or footer["rows"] != metadata.num_rows:
        rows = metadata.num_rows
        raise DamagedRun(
            f"{path} should hold {show(footer['rows'])} rows of {kind}, it has {rows}; {REPAIR}"
        )
    if footer["task"] != task:
        raise DamagedRun(f"{path} holds the task {show(footer['task'])}; {REPAIR}")
    expected = schema(kind)
    if not columns.equals(expected):  # of another version, whose metrics may differ
        types = {field.name: field.type for field in columns}
        missing = required_columns(kind) - set(types)
        if missing or any(types.get(f.name, f.type) != f.type for f in expected):
            raise DamagedRun(f"{path} has other columns than cbobench writes; {REPAIR}")
    footer["complete"] = not REWARD_STEPS.keys() & {*columns.names}  # whether readers derive them
    return footer
