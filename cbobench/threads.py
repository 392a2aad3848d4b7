"""One BLAS thread per process: more would compete between workers, and a product split over threads
has other bits.

Also: threads that the user's code leaves behind do not keep a process alive.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
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
    imported.
    """
    with _find_libraries(len(sys.modules)).limit(limits=1):
        yield


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
