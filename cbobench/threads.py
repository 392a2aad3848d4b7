"""One BLAS thread per process: threads of several workers multiply, and a product cut over threads has other bits."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def pin_threads() -> None:
    """Say one thread in the environment, for this process (before NumPy is imported) and those it starts."""
    for variable in THREAD_VARIABLES:
        os.environ.setdefault(variable, "1")


@contextmanager
def single_thread() -> Iterator[None]:
    """One BLAS thread within, whatever the environment said when NumPy was imported."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        yield
