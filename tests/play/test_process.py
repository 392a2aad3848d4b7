"""What user code changes of its process: no other cell meets it, and a worker that cannot be restored plays no more."""

from __future__ import annotations

import ctypes
import gc
import locale
import os
import platform
import resource
import signal
import socket
import sys
import threading
from itertools import compress
from pathlib import Path

import numpy as np
import pytest

import cbobench
from cbobench.float_state import float_controls
from cbobench.play.process import preserve_process
from cbobench.registry import import_object
from cbobench.results.bundle import open_run
from cbobench.results.verify import verify
from cbobench.sweep import children
from cbobench.sweep.run import execute, plan
from tests.helpers import assert_same_rows
from tests.processes import assert_gone

UPWARD = {"x86_64": 0x800, "aarch64": 0x400000}.get(platform.machine(), 0x800)  # FE_UPWARD
C = ctypes.CDLL(None)

HARMFUL = """
import ctypes
import os
from dataclasses import dataclass
from cbobench.algorithms.ckb import CKBUCB
from cbobench.algorithms.references import Random
from cbobench.params import param
from cbobench.problems.simulator import Simulator

HARM = []


def harm():
    if "round" in HARM:
        ctypes.CDLL(None).fesetround(UPWARD)
    if "fork" in HARM:
        HARM.remove("fork")  # once: a fork that went on would fork again
        if pid := os.fork():
            print(pid, file=open("forks", "a"))
    if "nice" in HARM:
        os.nice(1)
    if "pid" in HARM:
        print(os.getpid(), file=open("pids", "a"))


class Method(CKBUCB):
    def ask(self, t):
        if t == 3 and any(scope[-1] in (1, 4) for scope in self.setting.streams.scopes):
            harm()
        return super().ask(t)


@dataclass(kw_only=True)
class Slope(Simulator):
    source = "a test"
    about = "a slope"
    low, high = (0.0,), (1.0,)

    def simulate(self, x, gen):
        value = [x[0] / 3 + 0.1 * gen.normal(), x[0] / 7 - 0.1]
        if gen.random() < 0.1:
            harm()
        return value
""".replace("UPWARD", str(UPWARD))


@pytest.fixture
def harmful(tmp_path, monkeypatch):
    """A module whose method and simulator do harm where `HARM` says so; workers are forked."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "harmful", raising=False)
    monkeypatch.setattr(children, "can_fork", lambda: True)
    (tmp_path / "harmful.py").write_text(HARMFUL)
    return __import__("harmful")


METHOD = {"suite": "s", "horizon": 8, "seeds": 3, "problems": ["rkhs-1d"],
          "algorithms": ["harmful:Method", "ckb-ucb"]}  # fmt: skip
SIMULATOR = {"suite": "s", "horizon": 8, "seeds": 3, "algorithms": ["random"],
             "problems": [{"harmful:Slope": {"pilot": 8, "repeats": 2}}]}  # fmt: skip


NUMBERS = {"ckb-ucb": ["g", "observed_g", "dual"], "random": ["g", "observed_g"]}


@pytest.mark.parametrize(("suite", "innocent"), [(METHOD, "ckb-ucb"), (SIMULATOR, "random")])
def test_how_one_cell_rounds_changes_no_other(harmful, suite, innocent):
    cbobench.run(suite, out="whole", cpus=0)
    harmful.HARM.append("round")
    before = float_controls()
    assert cbobench.run(suite, out="run", cpus=0).failed == 0
    assert float_controls() == before
    whole, run = (cbobench.load_rounds(name) for name in ("whole", "run"))
    owners = list(zip(run["algorithm"], run["seed"], strict=True))
    whole, run = ([[v.tolist() for v in frame[name]] for name in NUMBERS[innocent]] for frame in (whole, run))
    others = np.ones(len(owners), dtype=bool)
    if suite is METHOD:  # the cell at fault has other values, and nobody else
        others = [owner != ("harmful:Method", 1) for owner in owners]
        assert whole != run
    for one, other in zip(whole, run, strict=True):
        assert list(compress(one, others)) == list(compress(other, others))
    assert any(owner[0] == innocent for owner in owners)


def test_a_module_that_changes_how_the_processor_rounds(harmful, tmp_path):
    """As one does that was compiled for speed: all that is played after its import would have other bits."""
    (tmp_path / "fast_math.py").write_text(f"import ctypes\nctypes.CDLL(None).fesetround({UPWARD})\nMethod = int\n")
    before = float_controls()
    import_object("fast_math:Method", beside=[tmp_path])
    assert float_controls() == before
    C.fesetround(UPWARD)
    try:
        assert float_controls() != before, "negative control"
        cbobench.run(METHOD, out="run", cpus=0)
        assert float_controls() != before, "what a program set for itself is left to it"
    finally:
        C.fesetround(0)
    cbobench.run(METHOD, out="whole", cpus=0)
    assert_same_rows("whole", "run")


@pytest.mark.parametrize("suite", [METHOD, SIMULATOR])
def test_a_fork_that_returns_publishes_nothing(harmful, suite):
    todo = plan(suite, out="run", cpus=1, engine="processes")
    harmful.HARM.append("fork")
    outcome = execute(todo, cpus=1, engine="processes")
    assert (outcome.failed, outcome.absent) == (0, ())
    assert verify(open_run("run")).damaged == []
    forks = [int(pid) for pid in Path("forks").read_text().split()]
    assert len(forks) == 1
    assert_gone(forks)
    harmful.HARM.clear()
    cbobench.run(suite, out="whole", cpus=0)
    assert_same_rows("whole", "run")


def test_a_worker_that_cannot_be_restored_plays_no_more(harmful, tmp_path):
    harmful.HARM += ["pid", "nice"]
    suite = METHOD | {"algorithms": ["harmful:Method"], "seeds": [1, 4]}
    assert cbobench.run(suite, out="run", cpus=1, engine="processes", block=1).played == 2
    assert len({*(tmp_path / "pids").read_text().split()}) == 2


def nothing(*args):
    """A hook."""


def block(number):
    signal.pthread_sigmask(signal.SIG_BLOCK, [number])


CHANGES = {
    "umask": (lambda: os.umask(os.umask(0)) and os.umask(0o137), lambda: (mask := os.umask(0), os.umask(mask))[0]),
    "thread hook": (lambda: setattr(threading, "excepthook", nothing), lambda: threading.excepthook),
    "hook": (lambda: setattr(sys, "excepthook", nothing), lambda: sys.excepthook),
    "profile": (lambda: sys.setprofile(nothing), sys.getprofile),
    "recursion": (lambda: sys.setrecursionlimit(3000), sys.getrecursionlimit),
    "collection": (gc.disable, gc.isenabled),
    "locale": (lambda: locale.setlocale(locale.LC_ALL, "C.UTF-8"), lambda: locale.setlocale(locale.LC_ALL)),
    "limit": (
        lambda: resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1])),
        lambda: resource.getrlimit(resource.RLIMIT_CORE),
    ),
    "mask": (lambda: block(signal.SIGUSR1), lambda: signal.pthread_sigmask(signal.SIG_BLOCK, ())),
    "timer": (lambda: signal.setitimer(signal.ITIMER_REAL, 1000), lambda: signal.getitimer(signal.ITIMER_REAL)),
    "timeout": (lambda: socket.setdefaulttimeout(7), socket.getdefaulttimeout),
    "cpus": (lambda: os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}), lambda: os.sched_getaffinity(0)),
    "descriptor": (lambda: os.close(0), lambda: os.path.sameopenfile(0, 0)),
    "rounding": (lambda: C.fesetround(UPWARD), float_controls),
}


@pytest.mark.parametrize("change", CHANGES)
def test_the_process_is_restored(change):
    spoil, look = CHANGES[change]
    before = look()
    with preserve_process():
        spoil()
    assert look() == before
