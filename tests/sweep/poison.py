"""A plug-in that does harm in one way of many, written to a folder from which suites import it."""

from __future__ import annotations

from pathlib import Path

from tests.sweep.helpers import environment_of

CODE = '''
import asyncio
import ctypes
import faulthandler
import os
import random
import signal
import sys
import threading
import time
import warnings
from dataclasses import dataclass

import numpy as np

from cbobench.algorithms.references import Random
from cbobench.params import param


class Mute(Exception):
    def __str__(self):
        raise ValueError("no text")


class Base(BaseException):
    pass


def fail(how):
    if how == "surrogate":
        raise ValueError("a lone \\ud800 surrogate")
    if how == "mute":
        raise Mute
    if how == "base":
        raise Base("of no Exception")
    if how == "keyboard":
        raise KeyboardInterrupt
    if how == "generator":
        raise GeneratorExit("of a generator")
    if how == "cancelled":
        raise asyncio.CancelledError
    if how == "ansi":
        raise ValueError("red \\x1b[31m and \\x07 bell\\nsecond line")
    if how == "long":
        raise ValueError("x" * 1_000_000)
    if how == "stop":
        raise StopIteration
    if how == "memory":
        raise MemoryError


def harm(how):
    faulthandler.disable()  # that of who runs the tests
    if how == "seterr":
        np.seterr(all="raise")
    if how == "seed":
        np.random.seed(1)
        random.seed(1)
    if how == "warnings":
        warnings.simplefilter("error")
    if how == "thread":
        threading.Thread(target=time.sleep, args=(1000,)).start()
    if how == "hang":
        while True:
            time.sleep(0.01)
    if how == "deaf hang":
        while True:
            try:
                time.sleep(0.01)
            except BaseException:
                pass
    if how == "exit":
        os._exit(1)
    if how == "abort":
        os.abort()
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "segfault":
        ctypes.string_at(0)
    if how == "eat":
        eaten = [bytearray(2**27) for _ in range(20)]
        time.sleep(20)


@dataclass(kw_only=True)
class Poison(Random):
    """Harms at round 3 where seed 2 is played."""

    how: str = param("none", "how")
    every: bool = param(False, "in every cell")

    def ask(self, t):
        if t == 3 and (self.every or any(scope[-1] == 2 for scope in self.setting.streams.scopes)):
            fail(self.how)
            harm(self.how)
        return super().ask(t)


class Tender(Random):
    """Fails where anything was left behind."""

    def ask(self, t):
        np.float64(1e-200) * np.float64(1e-200)
        np.float64(1.0) / np.float64(0.0)
        assert np.random.get_state()[1][0] != 1, "seed"
        return super().ask(t)
'''

RAISED = {
    "surrogate": r"round 3: ValueError: a lone \ud800 surrogate",
    "mute": "round 3: Mute: (its text cannot be shown)",
    "base": "round 3: Base: of no Exception",
    "keyboard": "round 3: KeyboardInterrupt",
    "generator": "round 3: GeneratorExit: of a generator",
    "cancelled": "round 3: CancelledError",
    "ansi": r"round 3: ValueError: red \x1b[31m and \x07 bell",
    "long": "round 3: ValueError: x",
    "memory": "round 3: MemoryError",
}


def suite_of(hows, methods="", seeds=4):
    """A suite of poison cells."""
    return (
        f"suite: p\nhorizon: 5\nseeds: {seeds}\nproblems: [rkhs-1d]\nalgorithms:\n"
        f"  - poison_plugin:Poison: {{how: {{sweep: [{', '.join(hows)}]}}}}\n{methods}"
    )


def write_poison(folder: Path) -> dict[str, str]:
    """Write the plug-in; the environment in which it can be imported."""
    (folder / "poison_plugin.py").write_text(CODE)
    return environment_of(folder)


LEFT = [
    "seterr",
    "seed",
    "warnings",
    "thread",
]

DIED = {
    "exit": "the cell crashed its worker 3 times",
    "abort": "the cell crashed its worker (SIGABRT) 3 times",
    "segfault": "the cell crashed its worker (SIGSEGV) 3 times",
    "kill": "the cell had its worker killed (SIGKILL: did the machine run out of memory?) 3 times",
}
