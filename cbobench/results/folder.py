"""A run on disk: `run.json`, `rounds/<task>.parquet`, `cells/<task>.parquet`, in a folder, in an
object store, or in a zip file (a bundle, see `results.export`), which is only read.

An existing file is complete: it is written under a temporary name and published by an atomic rename
(on object stores by finishing the upload). Its footer holds its kind, its number of rows, and its
cells.
"""

from __future__ import annotations

import glob
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property, wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar
from zipfile import ZIP_STORED, BadZipFile

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from cbobench.errors import (
    STRANGE,
    DamagedRun,
    Misuse,
    mask_secrets,
    nearest,
    one_line,
    printable,
    refuse_strange,
    show,
)
from cbobench.metrics import REWARD_STEPS
from cbobench.results.rounds import read_row_groups
from cbobench.results.schema import FOOTER, REQUIRED, digest_matches, refuse_version, schema
from cbobench.results.store import (
    ATTEMPTS,
    GONE_WORD,
    AtomicFile,
    first_line,
    is_away,
    leave_fork,
    store_failure,
    writing,
)
from cbobench.words import list_names

T = TypeVar("T")
P = ParamSpec("P")
READ_ATTEMPTS = 20  # of a read under which files disappear
RUNS = "runs"  # folder of runs whose folder is not stated
SUFFIX = ".zip"  # of bundles
SHARD = "shard-"
"""Prefix of the files that hold what several tasks published; the names of tasks hold a dot."""
REPAIR = (
    "cbobench verify RUN names all that is damaged, and cbobench run SUITE --again damaged plays it"
)
_UNREADABLE = (pa.ArrowException, OSError, UnicodeDecodeError, BadZipFile)


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
class RunFolder:
    """The files of a run, by kind ("rounds", "cells", ...) and task. Picklable; shows no secrets.

    Attributes:
        uri: a local path or a URI such as s3://bucket/prefix; of a bundle it ends with .zip.
        driver: who plays into it, once the lock is held (see `results.lock`).
    """

    uri: str
    driver: str = ""

    def __str__(self) -> str:
        return mask_secrets(self.uri)

    __repr__ = __str__

    @cached_property
    def is_bundle(self) -> bool:
        """Whether it is a zip file, which can only be read."""
        if not self.local:
            return self.uri.partition("?")[0].endswith(SUFFIX)
        place = Path(self.uri)
        return place.is_file() or (place.suffix == SUFFIX and not place.is_dir())

    @cached_property
    def is_thinned(self) -> bool:
        """Whether of its rounds only some are left, and those in which simple regret improves (see
        `results.export`).
        """
        return bool(self.names("improvements"))

    @property
    def local(self) -> bool:
        """Whether it lies on a disk of this machine."""
        return "://" not in self.uri

    @cached_property
    def _place(self) -> tuple[pafs.FileSystem, str]:
        place = (pafs.LocalFileSystem(), self.uri) if self.local else find_store(self.uri)
        if self.is_bundle:
            return (self._open_archive(*place), "")
        return place

    def _open_archive(self, fs: pafs.FileSystem, path: str) -> pafs.FileSystem:
        """Return the file system in a bundle.

        Raises:
            Misuse: no such file, or one that export did not write.
            DamagedRun: no whole zip file.
        """
        from fsspec.implementations.zip import ZipFileSystem  # takes as long as a small table

        try:
            # reading a pipe or a device never ends
            if fs.get_file_info(path).type != pafs.FileType.File:
                raise FileNotFoundError
            archive = ZipFileSystem(fs.open_input_file(path))
        except (FileNotFoundError, NotADirectoryError):
            place = Path(self.uri)
            names = [file.name for file in place.parent.glob(f"*{SUFFIX}")] if self.local else []
            close = nearest(place.name, names)
            if close:
                suggestion = f"; did you mean {printable(str(place.with_name(close)))}?"
            else:
                suggestion = ""
            raise Misuse(f"{self} does not exist{suggestion}") from None
        except (BadZipFile, OSError, ValueError, NotImplementedError) as error:
            raise DamagedRun(
                f"{self} is no run folder and no whole bundle ({first_line(error)}); export it "
                "again: cbobench export RUN"
            ) from None
        # a compressed member may expand to any size
        if any(member.compress_type != ZIP_STORED for member in archive.zip.infolist()):
            raise Misuse(f"{self} is no bundle: its files are compressed; export it again")
        return pafs.PyFileSystem(pafs.FSSpecHandler(archive))

    @property
    def fs(self) -> pafs.FileSystem:
        """The file system at the address."""
        return self._place[0]

    def _ask(self, call: Callable[[], T], action: str = "reach") -> T:
        """Return the result of a call to the store; turn its errors into `StoreFailure`."""
        try:
            return call()
        except (FileNotFoundError, NotADirectoryError):
            raise
        except OSError as error:
            raise store_failure(action, str(self), error) from error

    @contextmanager
    def _open(self, relative: str) -> Iterator[Any]:
        """Open a file to read."""
        with self._ask(lambda: self.fs.open_input_file(self._at(relative))) as source:
            if self.is_bundle:
                # Python's zipfile does not step back in a file
                yield pa.BufferReader(source.read())
            else:
                yield source

    def _at(self, relative: str) -> str:
        """Return the path of a file in the file system."""
        return f"{self._place[1].rstrip('/')}/{relative}".rstrip("/")

    def path(self, relative: str) -> str:
        """Return the path of a file, for messages, and on a disk for who writes."""
        if self.is_bundle:
            return f"{self}/{relative}"
        return f"{self._at('')}/{relative}"

    def exists(self, relative: str) -> bool:
        """Return whether there is a file of the run."""
        place = self._at(relative)
        return bool(self._ask(lambda: self.fs.get_file_info(place)).type == pafs.FileType.File)

    def listing(self, kind: str) -> dict[str, pafs.FileInfo]:
        """Return the entries of a folder of the run ("" for the run itself), by name; empty if it
        does not exist.
        """
        selector = pafs.FileSelector(self._at(kind), allow_not_found=True)
        return {info.base_name: info for info in self._ask(lambda: self.fs.get_file_info(selector))}

    def names(self, kind: str, suffix: str = ".parquet") -> list[str]:
        """Return the names of the published files of a kind, sorted: of its tasks, or others."""
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
            # Made in memory first: an error of `write` must not publish a beginning.
            sink = pa.BufferOutputStream()
            origin = os.getpid()
            write(sink)
            leave_fork(origin)
            self._ask(lambda: self._upload(target, sink.getvalue()), "write to")
            return

        folder = Path(target).parent
        with writing(str(self)):
            # A run folder that was removed during play is not created again.
            folder.mkdir(parents=not self.driver, exist_ok=True)
        # Any exception discards the file, a signal between two lines, too.
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
        with self.fs.open_output_stream(target) as stream:
            stream.write(value)
        size = self.fs.get_file_info(target).size
        if size != value.size:
            raise OSError(f"{size} of {value.size} bytes were stored")

    def remove(self, relative: str) -> None:
        """Remove a file if it exists."""
        with suppress(FileNotFoundError):
            self._ask(lambda: self.fs.delete_file(self.path(relative)), "write to")

    def remove_tasks(self, tasks: Iterable[str]) -> None:
        """Remove the files of some tasks, their cells first: they count with their rounds alone."""
        for task in tasks:
            self.remove(f"cells/{task}.parquet")
            self.remove(f"rounds/{task}.parquet")

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
            with self.fs.open_input_stream(self._at(relative)) as stream:
                return bytes(stream.read())

        try:
            content = json.loads(self._ask(call))
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
        place = Path(self.uri)
        remedy = "give the folder of a run"
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
        if place.exists():
            return f"it has no {relative}; {remedy}"
        return f"it does not exist; {remedy}"

    def write_json(self, relative: str, content: dict[str, Any]) -> None:
        text = json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
        self.publish(relative, lambda sink: sink.write(text.encode()))

    @contextmanager
    def _parquet(
        self, kind: str, task: str, **options: Any
    ) -> Iterator[tuple[Any, pq.ParquetFile, dict[str, Any]]]:
        """Open a published file: as bytes, as Parquet, and its footer, checked against the file.

        Raises:
            FileGone: it does not exist.
            TruncatedFile: it cannot be read.
        """
        path = self.path(f"{kind}/{task}.parquet")
        fault = "is not a whole Parquet file"
        try:
            with self._open(f"{kind}/{task}.parquet") as source:
                file = pq.ParquetFile(source, page_checksum_verification=True, **options)
                # its end, which was written last, is there: a later fault is another one
                fault = "cannot be read"
                yield source, file, read_footer(path, kind, task, file.metadata)
        except FileNotFoundError as error:
            raise FileGone(f"{path} is missing") from error
        except _UNREADABLE as error:
            # a bucket may say only during the read that the object is not there
            if GONE_WORD in str(error):
                raise FileGone(f"{path} is missing") from error
            if is_away(error):  # no damage
                raise store_failure("reach", str(self), error) from error
            raise TruncatedFile(f"{path} {fault} ({first_line(error)}); {REPAIR}") from error

    def footer(self, kind: str, task: str) -> dict[str, Any]:
        """Return the footer of a published file, checked against the file.

        Raises:
            DamagedRun: truncated, foreign, of another schema version, or with another number of
                rows.
        """
        with self._parquet(kind, task) as (_, _, footer):
            return footer

    def read(self, kind: str, task: str, columns: list[str] | None = None) -> pa.Table:
        """Return some columns, or all, of a published file, which is checked against its footer."""
        with self._parquet(kind, task) as (_, file, _):
            fields = [field for field in schema(kind) if columns is None or field.name in columns]
            tables = [pa.Table.from_batches([], pa.schema(fields))]
            return pa.concat_tables([*tables, *read_row_groups(file, fields)])

    def row_groups(
        self,
        kind: str,
        task: str,
        columns: list[str] | None = None,
        cells: Sequence[str] | None = None,
    ) -> Iterator[pa.Table]:
        """Yield the rows of some cells, or of all, one row group at a time: memory does not grow
        with the file.

        What a file lacks is null (a metric that is newer, what a bundle leaves out); a metric that
        no longer exists is left out.
        """
        with self._parquet(kind, task, read_dictionary=["cell"]) as (_, file, _):
            fields = [field for field in schema(kind) if columns is None or field.name in columns]
            yield from read_row_groups(file, fields, cells)

    def digest_matches(self, kind: str, task: str) -> bool:
        """Return whether a published file has its original bytes."""
        with self._parquet(kind, task) as (source, file, _):
            return digest_matches(source, file.metadata.metadata or {})


def find_store(uri: str) -> tuple[pafs.FileSystem, str]:
    """Return the file system of a URI, and the path in it. Raises `Misuse` for none of ours."""
    try:
        fs, path = pafs.FileSystem.from_uri(uri)
    except (pa.ArrowInvalid, OSError) as error:
        raise Misuse(
            mask_secrets(f"cannot use {uri!r} as a run folder: {first_line(error)}")
        ) from None
    if fs.type_name == "s3":
        # An address cannot say how often a request is repeated, nor that a small file is one.
        _, (options,) = fs.__reduce__()
        options["allow_delayed_open"] = True
        again = pafs.AwsStandardS3RetryStrategy(max_attempts=ATTEMPTS)
        fs = pafs.S3FileSystem(**options, retry_strategy=again)
    return fs, path


def open_run(run: Any) -> RunFolder:
    """Open the run at a path or URI, or of an object that has one (the result of `cbobench.run`).

    Local paths are made absolute.
    """
    if isinstance(folder := getattr(run, "folder", run), RunFolder):
        return folder
    if not isinstance(run, (str, Path)):
        raise Misuse(f"{show(run)} is no run; give a path, a URI, or what cbobench.run returned")
    text = str(run).removeprefix("file://").removeprefix("file:")
    place = text if "://" in text else str(Path(text).absolute())
    refuse_strange(mask_secrets(place), "the run folder's name")
    return RunFolder(place)


def as_run_folder(run: Any, then: str) -> RunFolder:
    """Open a run that is a folder. Raise `Misuse` for a bundle; `then` says what to do."""
    folder = open_run(run)
    if folder.is_bundle:
        raise Misuse(f"{folder} is a file; {then}")
    return folder


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
    # A file that was put in another's place is whole, and still not what its name says.
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
        missing = REQUIRED[kind] - set(types)
        if missing or any(types.get(f.name, f.type) != f.type for f in expected):
            raise DamagedRun(f"{path} has other columns than cbobench writes; {REPAIR}")
    footer["complete"] = not REWARD_STEPS.keys() & {*columns.names}  # whether readers derive them
    return footer
