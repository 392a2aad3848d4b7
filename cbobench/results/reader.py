"""What can be read of a run, wherever its results lie: in a run folder, in a bundle, or in several
of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa
import pyarrow.fs as pafs

from cbobench.errors import Misuse, mask_secrets
from cbobench.results.schema import schema
from cbobench.results.store import RetryingReader, first_line, retry, store_failure

if TYPE_CHECKING:
    from cbobench.results.folder import RunFolder

T = TypeVar("T")


class Reader(ABC):
    """The files of a run, by kind ("rounds", "cells", ...) and task. Shows no secrets.

    Attributes:
        uri: its address, or those of its parts.
        is_reduced: whether it holds what bundles hold: fixed rounds, and those in which simple
            regret improves.
        is_union: whether several runs are read as one.
    """

    uri: str
    is_reduced = False
    is_union = False

    def __str__(self) -> str:
        return mask_secrets(self.uri)

    __repr__ = __str__

    @property
    def improvements_kind(self) -> str:
        """The kind of file with the improvements of simple regret."""
        return "improvements" if self.is_reduced else "rounds"

    @property
    def local(self) -> bool:
        """Whether it lies on a disk of this machine."""
        return "://" not in self.uri

    @abstractmethod
    def names(self, kind: str) -> list[str]:
        """Return the names of the tasks with a published file of a kind ("rounds" or "cells"),
        sorted.
        """

    def calls(self, kind: str) -> list[str]:
        """Return the names of the calls with a file of a kind ("invocations" or "drivers"),
        sorted.
        """
        return []

    def listing(self, kind: str) -> dict[str, pafs.FileInfo]:
        """Return the entries of a folder of the run ("" for the run itself), by name; empty if it
        does not exist.
        """
        return {}

    def replacements(self) -> dict[str, str]:
        """Return by task the shard that has replaced its files (see `results.compact`)."""
        return {}

    def exists(self, relative: str) -> bool:
        """Return whether there is a file of the run."""
        return False

    def path(self, relative: str) -> str:
        """Return the name of a file of the run, for messages."""
        return f"{self}: {relative}"

    @abstractmethod
    def read_json(self, relative: str) -> dict[str, Any]:
        """Return the content of a JSON file. Raises `Misuse` if there is none, `DamagedRun` if it
        is not ours.
        """

    @abstractmethod
    def read_file(
        self, kind: str, task: str, columns: list[str] | None = None
    ) -> tuple[dict[str, Any], pa.Table]:
        """Return footer (see `footer`) and rows of a published file, opening it once."""

    @abstractmethod
    def row_groups(
        self,
        kind: str,
        task: str,
        columns: list[str] | None = None,
        cells: Sequence[str] | None = None,
    ) -> Iterator[pa.Table]:
        """Yield the rows of some cells, or of all, one row group at a time: memory does not grow
        with the file.

        A metric that is newer than the file is null; a metric that no longer exists is left out.
        """

    def footer(self, kind: str, task: str) -> dict[str, Any]:
        """Return the footer of a published file, checked against the file.

        Raises:
            DamagedRun: truncated, foreign, of another schema version, or with another number of
                rows.
        """
        return self.read_file(kind, task, [])[0]

    def read(self, kind: str, task: str, columns: list[str] | None = None) -> pa.Table:
        """Return the rows of a published file; cells' ids are dictionary-encoded, as on disk."""
        return self._concatenate(list(self.row_groups(kind, task, columns)), kind, columns)

    def schema(self, kind: str) -> pa.Schema:
        """Return the columns of a kind of file."""
        return schema(kind)

    def select_fields(self, kind: str, columns: list[str] | None) -> list[pa.Field]:
        """Return the fields of some columns, or of all, in the order of a kind of file."""
        return [field for field in self.schema(kind) if columns is None or field.name in columns]

    def _concatenate(
        self, tables: list[pa.Table], kind: str, columns: list[str] | None
    ) -> pa.Table:
        return (
            pa.concat_tables(tables)
            if tables
            else pa.schema(self.select_fields(kind, columns)).empty_table()
        )

    def count_shared(self) -> tuple[int, int]:
        """Return how many cells several runs hold that are read as one, and of how many the results
        differ.
        """
        return 0, 0

    @abstractmethod
    def refuse_bundle(self, then: str) -> RunFolder:
        """Return the run folder. Raise `Misuse` for what is read-only; `then` says what to do."""


@dataclass(frozen=True, repr=False)
class Address(Reader):
    """A reader at one address: a local path, or a URI such as s3://bucket/prefix. Picklable."""

    uri: str

    @cached_property
    def _place(self) -> tuple[pafs.FileSystem, str]:
        if "://" not in self.uri:
            return pafs.LocalFileSystem(), self.uri
        try:
            fs, base = retry(lambda: pafs.FileSystem.from_uri(self.uri), str(self), True)
        except (pa.ArrowInvalid, OSError) as error:
            raise Misuse(
                mask_secrets(f"cannot use {self.uri!r} as a run folder: {first_line(error)}")
            ) from None
        return fs, base

    @property
    def fs(self) -> pafs.FileSystem:
        """The file system at the address."""
        return self._place[0]

    @property
    def local(self) -> bool:
        return isinstance(self.fs, pafs.LocalFileSystem)

    def _retry(self, call: Callable[[], T], action: str = "reach") -> T:
        """Return the result of a call to the store; turn final errors into `StoreFailure`."""
        try:
            return retry(call, str(self), not self.local)
        except (FileNotFoundError, NotADirectoryError):
            raise
        except OSError as error:
            raise store_failure(action, str(self), error) from error

    @contextmanager
    def _open(self, path: str) -> Iterator[Any]:
        """Open a file to read, with retries. A raised error is the file's own fault."""
        with self._retry(lambda: self.fs.open_input_file(path)) as source:
            yield source if self.local else pa.PythonFile(RetryingReader(source, path), mode="r")
