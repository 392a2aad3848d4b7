"""Calls that ask for the lock of a run at once."""

from __future__ import annotations

import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor

from cbobench.errors import Misuse
from cbobench.results.folder import open_run
from cbobench.results.lock import hold
from tests.processes import PATIENCE


def count_holders(run, calls):
    """How many calls hold the lock of a run until all have asked; the others are refused."""
    tried = threading.Barrier(calls)

    def holds(_):
        with contextlib.suppress(Misuse), hold(open_run(run)):
            tried.wait(PATIENCE)
            return True
        tried.wait(PATIENCE)
        return False

    with ThreadPoolExecutor(calls) as threads:
        return sum(threads.map(holds, range(calls)))
