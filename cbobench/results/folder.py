"""A run on disk: `run.json`, `rounds/<task>.parquet`, `cells/<task>.parquet`, on a local disk or an object store.

A file that exists is complete: it is written under a temporary name and published by an atomic rename (on object
stores by finishing the upload). The footer says what the file is, how many rows it must hold, and which cells.
"""

from __future__ import annotations

import glob
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from cbobench.errors import DamagedRun, Misuse, masked, nearest, one_line, printable, refuse_strange, show
from cbobench.results.files import REPAIR as REPAIR
from cbobench.results.files import fields, footer_of, row_groups_of
from cbobench.results.schema import same_digest, schema
from cbobench.results.store import Sink, Steady, failure, first, patient, written

T = TypeVar("T")
LOOKS = 20
SHARD = "shard-"
"""How the names of files begin that hold what several tasks published; those of tasks hold a dot."""
_UNREADABLE = (pa.ArrowException, OSError, UnicodeDecodeError)


class Vanished(DamagedRun):
    """A file that was listed is not there any more."""


def looked(read: Callable[[], T]) -> T:
    """What a reader found, who looks again where files go while he reads."""
    for _ in range(LOOKS):
        with suppress(Vanished):
            return read()
    return read()


class Unfinished(DamagedRun):
    """A file without an end: a store kept the beginning of an upload that broke off, or it was cut short later."""


@dataclass(frozen=True)
class RunFolder:
    """A run folder, given as a local path or a URI such as s3://bucket/prefix. Picklable; secrets are not shown.

    Attributes:
        uri: where it is.
        driver: the call that plays there, once it does (see `results.drivers`).
    """

    uri: str
    driver: str = ""
    steps = "rounds"  # the kind of file that says when simple regret became better

    def __str__(self) -> str:
        return masked(self.uri)

    __repr__ = __str__

    @classmethod
    def at(cls, where: str | Path | Any) -> RunFolder:
        """The folder at a path or URI, or of what holds one (what `cbobench.run` returned); local paths are made
        absolute. A file is a bundle (see `results.bundle`)."""
        if isinstance(folder := getattr(where, "folder", where), cls):
            return folder
        if not isinstance(where, (str, Path)):
            raise Misuse(f"{show(where)} is no run; give a path, a URI, or what cbobench.run returned")
        text = str(where).removeprefix("file://").removeprefix("file:")
        place = text if "://" in text else str(Path(text).absolute())
        refuse_strange(masked(place), "the run folder's name")
        from cbobench.results.bundle import Bundle, is_bundle

        return Bundle(place) if is_bundle(place) else cls(place)

    @cached_property
    def _place(self) -> tuple[pafs.FileSystem, str]:
        if "://" not in self.uri:
            return pafs.LocalFileSystem(), self.uri
        try:
            fs, base = patient(lambda: pafs.FileSystem.from_uri(self.uri), str(self), True)
        except (pa.ArrowInvalid, OSError) as error:
            raise Misuse(masked(f"cannot use {self.uri!r} as a run folder: {first(error)}")) from None
        return fs, base

    @property
    def fs(self) -> pafs.FileSystem:
        return self._place[0]

    @property
    def local(self) -> bool:
        return isinstance(self.fs, pafs.LocalFileSystem)

    def path(self, relative: str) -> str:
        return f"{self._place[1].rstrip('/')}/{relative}"

    def _patient(self, call: Callable[[], T], what: str = "reach") -> T:
        """The answer of the store, however often it has to be asked; what does not pass is said in one line."""
        try:
            return patient(call, str(self), not self.local)
        except (FileNotFoundError, NotADirectoryError):
            raise
        except OSError as error:
            raise failure(what, str(self), error) from error

    def refuse_file(self, then: str) -> RunFolder:
        """The folder itself. Raises `Misuse` where it is a file, which can only be read: what to do is `then`."""
        return self

    def schema(self, kind: str) -> pa.Schema:
        """The columns of a kind of file."""
        return schema(kind)

    def exists(self, relative: str) -> bool:
        place = self.path(relative).rstrip("/")
        return bool(self._patient(lambda: self.fs.get_file_info(place)).type == pafs.FileType.File)

    def listing(self, kind: str) -> dict[str, pafs.FileInfo]:
        """What lies in a folder of the run ("" for the run's own), by name; nothing where there is none."""
        selector = pafs.FileSelector(self.path(kind), allow_not_found=True)
        return {info.base_name: info for info in self._patient(lambda: self.fs.get_file_info(selector))}

    def names(self, kind: str) -> list[str]:
        """Task names with a published file of that kind ("rounds" or "cells"), sorted."""
        return self._named(kind, ".parquet")

    def calls(self, kind: str) -> list[str]:
        """Names of calls with a file of that kind ("invocations" or "drivers"), sorted."""
        return self._named(kind, ".json")

    def _named(self, kind: str, suffix: str) -> list[str]:
        files = [name for name, info in self.listing(kind).items() if info.type == pafs.FileType.File]
        return sorted(name[: -len(suffix)] for name in files if name.endswith(suffix) and name[0] not in "._")

    def publish(self, relative: str, write: Callable[[Any], None]) -> None:
        """Write a file so that it appears whole or not at all. `write` gets a binary sink, and is called once.

        Raises:
            StoreFailure: it cannot be written; what `write` raises comes as it is.
        """
        target = self.path(relative)
        if not self.local:
            sink = pa.BufferOutputStream()
            write(sink)
            value = sink.getvalue()
            self._patient(lambda: self._upload(target, value), "write to")
            return
        folder = Path(target).parent
        with written(str(self)):
            if not self.driver:
                folder.parent.mkdir(parents=True, exist_ok=True)
            folder.mkdir(exist_ok=True)  # a run folder that is removed while it is played is not made again
        stream = Sink(Path(target), str(self))
        try:
            stream.open()
            write(stream)
            stream.publish()
        except BaseException:
            stream.discard()
            raise

    def _upload(self, target: str, value: pa.Buffer) -> None:
        """Upload a file, and look whether all of it is there: a stream that breaks off may publish its beginning."""
        try:
            stream = self.fs.open_output_stream(target)
        except FileNotFoundError:  # a store with folders
            self.fs.create_dir(target.rpartition("/")[0], recursive=True)
            stream = self.fs.open_output_stream(target)
        with stream:
            stream.write(value)
        size = self.fs.get_file_info(target).size
        if size != value.size:
            raise OSError(f"{size} of {value.size} bytes were stored")

    def move(self, relative: str, to: str) -> None:
        """Give a file another name."""

        def call() -> None:
            try:
                self.fs.move(self.path(relative), self.path(to))
            except FileNotFoundError:  # a store with folders
                self.fs.create_dir(self.path(to).rpartition("/")[0], recursive=True)
                self.fs.move(self.path(relative), self.path(to))

        self._patient(call, "write to")

    def remove(self, relative: str) -> None:
        """Remove a file, if it is there."""
        with suppress(FileNotFoundError):
            self._patient(lambda: self.fs.delete_file(self.path(relative)), "write to")

    def forget(self, tasks: Sequence[str]) -> None:
        """Remove temporary files of tasks that were stopped while they wrote."""
        for task in tasks if self.local else ():
            for left in Path(self.path("")).glob(f"*/.{glob.escape(task)}.parquet.*.tmp"):
                left.unlink(missing_ok=True)

    def read_json(self, relative: str) -> dict[str, Any]:
        def call() -> bytes:
            if self.local and not self.exists(relative):  # a pipe or a device would be read for ever
                raise FileNotFoundError
            with self.fs.open_input_stream(self.path(relative)) as stream:
                return bytes(stream.read())

        try:
            content = json.loads(self._patient(call))
        except (FileNotFoundError, NotADirectoryError):
            place = Path(self.uri)
            beside = [file.parent.name for file in place.parent.glob(f"*/{relative}")] if self.local else []
            close = nearest(place.name, beside)
            meant = f"did you mean {printable(str(place.with_name(close)))}?" if close else "give the folder of a run"
            raise Misuse(f"{self} is not a run folder: it has no {relative}; {meant}") from None
        except (ValueError, RecursionError) as error:
            raise DamagedRun(f"{self.path(relative)} is not JSON: {one_line(error)}") from error
        if not isinstance(content, dict):
            raise DamagedRun(f"{self.path(relative)} is not what cbobench writes")
        return content

    def write_json(self, relative: str, content: dict[str, Any]) -> None:
        text = json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
        self.publish(relative, lambda sink: sink.write(text.encode()))

    @contextmanager
    def _opened(self, path: str) -> Iterator[Any]:
        """A file to read; what fails in passing is repeated, so that what is raised is the file's own fault."""
        with self._patient(lambda: self.fs.open_input_file(path)) as source:
            yield source if self.local else pa.PythonFile(Steady(source, path), mode="r")

    def footer(self, kind: str, task: str) -> dict[str, Any]:
        """The footer of a published file, checked against the file.

        Raises:
            DamagedRun: truncated, foreign, of another schema version, or with another number of rows.
        """
        return self.checked(kind, task, [])[0]

    def replacements(self) -> dict[str, str]:
        """The shard that has replaced what a task published (see `results.compact`), by task."""

        def read() -> dict[str, str]:
            shards = (name for name in self.names("cells") if name.startswith(SHARD))
            return {task: name for name in shards for task in self.footer("cells", name).get("replaces", ())}

        return looked(read)  # shards are merged, too

    def published(self) -> set[str]:
        """Names of the tasks whose cells are published, and of what shards have replaced."""
        return {*self.names("cells"), *self.replacements()}

    def checked(self, kind: str, task: str, columns: list[str] | None = None) -> tuple[dict[str, Any], pa.Table]:
        """Footer (see `footer`) and rows (see `read`) of a published file, which is opened once."""
        damaged: type[DamagedRun] = Unfinished
        path, fault = self.path(f"{kind}/{task}.parquet"), "is not a whole Parquet file"
        try:
            with self._opened(path) as source:
                file = pq.ParquetFile(source, page_checksum_verification=True)
                footer = footer_of(path, kind, task, file.metadata)
                damaged, fault = DamagedRun, "cannot be read"
                tables = list(row_groups_of(file, kind, columns)) if columns != [] else []
        except FileNotFoundError as error:
            raise Vanished(f"{path} is missing") from error
        except _UNREADABLE as error:
            raise damaged(f"{path} {fault} ({first(error)}); {REPAIR}") from error
        return footer, pa.concat_tables(tables) if tables else pa.schema(fields(kind, columns)).empty_table()

    def intact(self, kind: str, task: str) -> bool:
        """Whether a published file holds to the byte what was written, by its digest."""
        path = self.path(f"{kind}/{task}.parquet")
        try:
            with self._opened(path) as source:
                return same_digest(source, pq.ParquetFile(source).metadata.metadata or {})
        except FileNotFoundError as error:
            raise Vanished(f"{path} is missing") from error

    def read(self, kind: str, task: str, columns: list[str] | None = None) -> pa.Table:
        """The rows of a published file; cells' ids are dictionary-encoded, as they are on disk.

        A metric that was not there when the file was written is null, and one that is not there now is left out.
        """
        tables = list(self.row_groups(kind, task, columns))
        return pa.concat_tables(tables) if tables else pa.schema(fields(kind, columns)).empty_table()

    def row_groups(self, kind: str, task: str, columns: list[str] | None = None) -> Iterator[pa.Table]:
        """The same, a part of the file at a time: memory does not grow with what was recorded.

        Where a shard has replaced the file since it was listed, the rows of the shard, which are more.
        """
        path = self.path(f"{kind}/{task}.parquet")
        try:
            with self._opened(path) as source:
                file = pq.ParquetFile(source, read_dictionary=["cell"], page_checksum_verification=True)
                yield from row_groups_of(file, kind, columns)
        except FileNotFoundError as error:
            shard = self.replacements().get(task)
            if shard is None:
                raise Vanished(f"{path} is missing") from error
            yield from self.row_groups(kind, shard, columns)
        except _UNREADABLE as error:
            raise DamagedRun(f"{path} cannot be read ({first(error)}); {REPAIR}") from error
