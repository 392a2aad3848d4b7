"""What each play begins with, whatever its process has played before: global generators seeded from
a stream named by its cells, the default rules for warnings and floating-point errors, captured
output. And whose code beside ours a play imports: what it changes in its process must reach no
other play.

A process that plays a company's cells plays no others. It may be forked from one that has imported
nobody else's code, and else begins as a fresh interpreter.
"""

from __future__ import annotations

import io
import random
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from cbobench import registry
from cbobench.algorithms import ALGORITHMS
from cbobench.rng import Part, generator

QUIET = (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning)
CAPTURED_BYTES = 100  # bytes of printed output


@contextmanager
def isolate_play(*name: Part) -> Iterator[None]:
    """Seed the global generators from the stream of that name.

    Afterwards they are as before, and so are the rules for warnings and floating-point errors.
    """
    state = random.getstate()
    numpy_state = np.random.get_state(legacy=False)  # noqa: NPY002
    bits = np.random.get_bit_generator()  # type: ignore[attr-defined]
    with np.errstate(), warnings.catch_warnings():
        seed = generator(*name, "global")
        # NumPy's global functions draw from this kind unless a program sets another.
        _set_generator(np.random.MT19937(int(seed.integers(2**32))))
        random.seed(int(seed.integers(2**32)))
        try:
            yield
        finally:
            random.setstate(state)
            _set_generator(bits)
            np.random.set_state(numpy_state)  # noqa: NPY002 - what a program draws from goes on


@contextmanager
def default_warnings() -> Iterator[None]:
    """Use Python's and NumPy's default rules for warnings and floating-point errors inside the
    block.
    """
    with (
        np.errstate(divide="warn", over="warn", invalid="warn", under="ignore"),
        warnings.catch_warnings(),
    ):
        warnings.resetwarnings()
        for category in QUIET:
            warnings.simplefilter("ignore", category)
        yield


class CapturedOutput(io.BufferedIOBase):
    """Discards printed output except its first bytes."""

    name = "<captured>"

    def __init__(self) -> None:
        self.beginning = b""

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return 2

    def write(self, data: Any) -> int:
        self.beginning += bytes(data[: CAPTURED_BYTES - len(self.beginning)])
        return len(data)

    def close(self) -> None:
        """Stay open: code that kept a stream of an earlier play may still write to it."""

    def line(self) -> str:
        """Return the first printed line, or ""."""
        lines = self.beginning.decode(errors="replace").strip().splitlines()
        if lines:
            return lines[0]
        return ""


@contextmanager
def captured_output() -> Iterator[CapturedOutput]:
    """Capture what Python prints inside the block; a worker on another machine shows nothing."""
    captured = CapturedOutput()
    streams = [
        io.TextIOWrapper(captured, "utf-8", "backslashreplace", write_through=True)
        for _ in range(2)
    ]
    with redirect_stdout(streams[0]), redirect_stderr(streams[1]):
        yield captured


def _set_generator(bits: Any) -> None:
    np.random.set_bit_generator(bits)  # type: ignore[attr-defined]


class Company(NamedTuple):
    """Top-level modules that are not ours.

    Attributes:
        users: those of import paths.
        libraries: those of a method of ours, from other libraries.
    """

    users: frozenset[str] = frozenset()
    libraries: frozenset[str] = frozenset()

    @property
    def may_fork(self) -> bool:
        """Whether this process has imported nobody's code but that of this company."""
        if registry.IMPORTED:  # a user's module may have imported any library
            return self.users >= registry.IMPORTED
        return not (_list_libraries() - self.libraries) & sys.modules.keys()


def find_company(problem: str, algorithm: str | None = None) -> Company:
    """Return whose code playing a pair imports, or preparing a problem alone.

    Args:
        problem, algorithm: registered names or import paths.
    """
    paths = [name for name in (problem, algorithm or "") if ":" in name]
    users = frozenset(map(registry.find_stranger, paths)) - {""}
    if users or algorithm is None:
        return Company(users)
    return Company(libraries=frozenset(ALGORITHMS.get(algorithm).libraries))


@cache
def _list_libraries() -> frozenset[str]:
    """Return the libraries of all methods of ours."""
    names = ALGORITHMS.names()
    return frozenset(library for name in names for library in ALGORITHMS.get(name).libraries)
