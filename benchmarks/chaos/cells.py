"""Cells that do harm: an algorithm that misbehaves in seed 1 of its pair, in one way of many, and
is `ckb-ucb` else.

With CHAOS_WELL in the environment it behaves in every seed: the undisturbed run that others are
held against.
"""

from __future__ import annotations

import collections
import ctypes
import itertools
import os
import resource
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NoReturn

import numpy as np

from cbobench.algorithms.base import Setting
from cbobench.algorithms.ckb import CKBUCB
from cbobench.params import param, state
from cbobench.problems.base import Actions

SEED, ROUND = 1, 5
HEADROOM = 200 * 2**20  # bytes that a cell may eat before its process has no more
# What becomes of the cell: what its failed row says, or None where it is as good as any.
ENDS = {
    "raise": "ValueError: on purpose",
    "base": "Harm",
    "interrupt": "KeyboardInterrupt",
    "exit": "SystemExit",
    "surrogate": "ValueError",
    "memory": "MemoryError",
    **dict.fromkeys(("os-exit", "abort", "segfault"), r"crashed its worker.* 3 times"),
    **dict.fromkeys(("hang", "stuck"), r"timed out after \d+ s"),
    "print": None,
    "directory": None,
    "thread": None,
    "numpy": None,
}


class Harm(BaseException):
    """No Exception: `except Exception` lets it pass."""


@dataclass(kw_only=True)
class Poison(CKBUCB):
    """CKB-UCB that does harm in one seed."""

    how: str = param("raise", "what it does")
    bad: bool = state()

    def start(self, setting: Setting) -> None:
        super().start(setting)
        self.bad = "CHAOS_WELL" not in os.environ and any(
            scope[-1] == SEED for scope in setting.streams.scopes
        )

    def ask(self, t: int) -> Actions:
        if t == ROUND and self.bad:
            HARMS[self.how]()
        return super().ask(t)


def eat_memory() -> None:
    """Ask for memory until there is none; the limit is given back, what was eaten goes with the
    exception.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + HEADROOM, hard))
    eaten = []
    try:
        while True:
            eaten.append(bytearray(16 * 2**20))
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def fail(error: type[BaseException], *arguments: object) -> NoReturn:
    """Raise an error, made anew each time."""
    raise error(*arguments)


HARMS: dict[str, Callable[[], object]] = {
    "raise": partial(fail, ValueError, "on purpose\nand in two lines"),
    "base": partial(fail, Harm, "passes by"),
    "interrupt": partial(fail, KeyboardInterrupt),
    "exit": partial(sys.exit, 0),
    "surrogate": partial(fail, ValueError, "\ud800"),
    "memory": eat_memory,
    "os-exit": partial(os._exit, 0),
    "abort": os.abort,
    "segfault": partial(ctypes.string_at, 0),
    "hang": partial(time.sleep, 3600),
    # No Python runs in it, and no signal is looked at.
    "stuck": lambda: collections.deque(itertools.repeat(None), maxlen=0),
    "print": partial(print, "Traceback of a cell that prints", flush=True),
    "directory": partial(os.chdir, "/"),
    "thread": lambda: threading.Thread(target=time.sleep, args=(3600,)).start(),
    "numpy": partial(np.seterr, all="raise"),
}
"""What one cell does to the process that plays it."""
