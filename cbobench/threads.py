"""One BLAS thread per process: more would compete between workers, and a product split over threads
has other bits.

Also: what this process and those that it has started took and may have; threads that the user's
code leaves behind do not keep a process alive.
"""

from __future__ import annotations

import os
import resource
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import lru_cache
from importlib.machinery import ExtensionFileLoader
from math import inf
from types import ModuleType
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def pin_threads() -> None:
    """Set one thread in the environment, for this process (before NumPy is imported) and its
    children.
    """
    for variable in THREAD_VARIABLES:
        os.environ.setdefault(variable, "1")


@contextmanager
def single_thread() -> Iterator[None]:
    """Use one BLAS thread inside the block, whatever the environment said when NumPy was
    imported, also of libraries that are loaded inside it.

    A block inside another one costs next to nothing. As a decorator, of what is kept for plays:
    whoever asks for it first, it has the bits that a play would give it.
    """
    global _blocks
    with _lock:
        if not _blocks:
            _limits.callback(setattr, ExtensionFileLoader, "exec_module", _load)
            ExtensionFileLoader.exec_module = _load_limited  # type: ignore[method-assign, assignment]
            _limit()
        _blocks += 1
    try:
        yield
    finally:
        with _lock:
            _blocks -= 1
            if not _blocks:
                _limits.close()


_lock = threading.Lock()
_blocks = 0  # that have begun and not ended, of all threads, which share the libraries
_limits = ExitStack()  # what the end of the last of them puts back
_load = ExtensionFileLoader.exec_module


def _load_limited(loader: ExtensionFileLoader, module: ModuleType) -> None:
    """Load a compiled module inside a block, with the libraries that it brings."""
    _load(loader, module)
    _find_libraries.cache_clear()
    _limit()


def _limit() -> None:
    _limits.enter_context(_find_libraries(len(sys.modules)).limit(limits=1))


@lru_cache(maxsize=1)
def _find_libraries(modules: int) -> ThreadpoolController:
    """Find the libraries that run threads in this process, which takes a millisecond; again once
    more is imported.
    """
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def has_lingering_threads() -> bool:
    """Whether threads are left that would keep this process alive."""
    exempt = (threading.main_thread(), threading.current_thread())
    return any(not thread.daemon and thread not in exempt for thread in threading.enumerate())


def exit_process(code: int) -> NoReturn:
    """End this process, whatever threads are left."""
    if has_lingering_threads():
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(code)
    sys.exit(code)


def read_children_seconds() -> float:
    """Return the CPU time of the programs that this process has started and waited for, and of
    those that these have waited for, in seconds.
    """
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return ended.ru_utime + ended.ru_stime


def address_space_limit() -> float:
    """Return the kB of address space that this process may have (`ulimit -v`), as a rule inf."""
    with suppress(AttributeError):  # there are systems without limits
        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        if limit == resource.RLIM_INFINITY:
            return inf
        return limit / 1024
    return inf
