"""What user code changes of its process: no other cell meets it, and a worker that cannot be
restored plays no more.
"""

from __future__ import annotations

import ctypes
import gc
import locale
import os
import platform
import random
import resource
import signal
import socket
import sys
import threading
import warnings
from itertools import compress
from pathlib import Path

import numpy as np
import pytest

import cbobench
from cbobench.call import Call
from cbobench.errors import Advice, CbobenchError
from cbobench.float_state import float_controls
from cbobench.play.process import preserve_process
from cbobench.registry import import_object
from cbobench.results.folder import open_run
from cbobench.results.verify import verify
from cbobench.sweep import children
from cbobench.sweep.plan import plan
from cbobench.sweep.run import execute
from tests.helpers import assert_same_rows
from tests.processes import assert_gone

UPWARD = {"x86_64": 0x800, "aarch64": 0x400000}.get(platform.machine(), 0x800)  # FE_UPWARD
C = ctypes.CDLL(None)

HARMFUL = """
import ctypes
import os
from dataclasses import dataclass
import numpy as np
from cbobench.algorithms.ckb import CKBUCB
from cbobench.algorithms.references import Random
from cbobench.params import param
from cbobench.problems.simulator import Simulator

HARM, EXP = [], np.exp
if os.path.exists("harm"):  # a fresh interpreter
    with open("harm") as file:
        HARM += file.read().split()


def harm():
    if "round" in HARM:
        ctypes.CDLL(None).fesetround(UPWARD)
    if "fork" in HARM:
        HARM.remove("fork")  # once: a fork that went on would fork again
        if pid := os.fork():
            print(pid, file=open("forks", "a"))
    if "nice" in HARM:
        os.nice(1)
    if "exp" in HARM:
        np.exp = lambda v, *rest, **words: EXP(v, *rest, **words) * (1 - 1e-7)
    if "pid" in HARM:
        with open("pids", "a") as file:
            print(os.getpid(), file=file)


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
             "problems": [{"harmful:Slope": {"repeats": 2}}]}  # fmt: skip


NUMBERS = {"ckb-ucb": ["g", "observed_g", "dual"], "random": ["g", "observed_g"]}


@pytest.mark.parametrize(("suite", "innocent"), [(METHOD, "ckb-ucb"), (SIMULATOR, "random")])
def test_how_one_cell_rounds_changes_no_other(harmful, suite, innocent):
    cbobench.run(suite, out="whole", cpus=0)
    harmful.HARM.append("round")
    before = float_controls()
    assert cbobench.run(suite, out="run", cpus=0).failed == 0
    assert float_controls() == before
    unharmed, run = (cbobench.load_rounds(name) for name in ("whole", "run"))
    owners = list(zip(run["algorithm"], run["seed"], strict=True))
    unharmed, run = (
        [[v.tolist() for v in frame[name]] for name in NUMBERS[innocent]]
        for frame in (unharmed, run)
    )
    is_innocent = np.ones(len(owners), dtype=bool)
    if suite is METHOD:  # the cell at fault has other values, and nobody else
        is_innocent = [owner != ("harmful:Method", 1) for owner in owners]
        assert unharmed != run
    for expected, harmed in zip(unharmed, run, strict=True):
        assert list(compress(expected, is_innocent)) == list(compress(harmed, is_innocent))
    assert any(owner[0] == innocent for owner in owners)


def test_a_module_that_changes_how_the_processor_rounds(harmful, tmp_path):
    """As one does that was compiled for speed: all that is played after its import would have other
    bits.
    """
    (tmp_path / "fast_math.py").write_text(
        f"import ctypes\nctypes.CDLL(None).fesetround({UPWARD})\nMethod = int\n"
    )
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
    todo = plan(Call(suite, out="run", cpus=1, engine="processes"))
    harmful.HARM.append("fork")
    outcome = execute(todo)
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


@pytest.mark.parametrize("suite", [METHOD, SIMULATOR])
@pytest.mark.parametrize("engine", ["processes", pytest.param("ray", marks=pytest.mark.long)])
def test_a_function_of_numpy_that_one_cell_replaces_changes_no_other(harmful, suite, engine):
    """Methods of the same cell, and of those that the worker plays next, which is replaced."""
    with_kernels = {
        "problems": [*suite["problems"], {"rkhs-1d": {"h": 0.25, "label": "beside"}}],
        "seeds": 2,
    }
    suite = (
        suite | with_kernels | {"algorithms": list(dict.fromkeys([*suite["algorithms"], "cei"]))}
    )
    cbobench.run(suite, out="whole", cpus=0)
    harmful.HARM += ["exp", "pid"]
    Path("harm").write_text("exp pid")
    assert cbobench.run(suite, out="run", cpus=1, engine=engine, block=1).failed == 0
    assert np.exp is harmful.EXP
    unharmed, run = (cbobench.load_rounds(name) for name in ("whole", "run"))
    innocent = unharmed["algorithm"] != "harmful:Method"
    assert innocent.sum() > 8
    for name in ("g", "observed_g", "dual", "observed_f"):
        expected, harmed = (
            [np.asarray(v).tolist() for v in frame.loc[innocent, name]] for frame in (unharmed, run)
        )
        assert repr(expected) == repr(harmed), name
    pids = Path("pids").read_text().split()
    assert len({*pids}) > 1


@pytest.mark.parametrize(
    ("suite", "who"),
    [(METHOD, "rkhs-1d / harmful:Method"), (SIMULATOR, "harmful:Slope.* / random")],
)
def test_where_no_worker_can_be_replaced_the_run_ends(harmful, suite, who):
    """In a line that names the function; what is published stays, and another call goes on."""
    harmful.HARM.append("exp")
    says = f"{who}: its code replaces numpy.exp, which all other code uses; .*--cpus 1$"
    with pytest.raises(CbobenchError, match=says):
        cbobench.run(suite, out="run", cpus=0)
    assert np.exp is harmful.EXP
    harmful.HARM.clear()
    outcome = cbobench.run(suite, out="run", cpus=0)
    assert (outcome.failed, len(cbobench.load_cells("run"))) == (0, outcome.cells)
    assert outcome.played < outcome.cells


def test_a_module_that_replaces_a_function_says_so(tmp_path):
    (tmp_path / "patching.py").write_text(
        "import numpy\nnumpy.exp = numpy.log\nnumpy.mine = 1\nMethod = int\n"
    )
    before = np.exp
    with pytest.warns(Advice, match=r"^patching replaces numpy\.exp for all code; it is put back$"):
        import_object("patching:Method", beside=[tmp_path])
    assert np.exp is before
    assert np.mine == 1, "what is only added meets nobody"
    del np.mine


def do_nothing(*args):
    """A hook."""


def block(number):
    signal.pthread_sigmask(signal.SIG_BLOCK, [number])


CHANGES = {
    "umask": (
        lambda: os.umask(os.umask(0)) and os.umask(0o137),
        lambda: (mask := os.umask(0), os.umask(mask))[0],
    ),
    "thread hook": (
        lambda: setattr(threading, "excepthook", do_nothing),
        lambda: threading.excepthook,
    ),
    "hook": (lambda: setattr(sys, "excepthook", do_nothing), lambda: sys.excepthook),
    "profile": (lambda: sys.setprofile(do_nothing), sys.getprofile),
    "recursion": (lambda: sys.setrecursionlimit(3000), sys.getrecursionlimit),
    "collection": (gc.disable, gc.isenabled),
    "locale": (
        lambda: locale.setlocale(locale.LC_ALL, "C.UTF-8"),
        lambda: locale.setlocale(locale.LC_ALL),
    ),
    "limit": (
        lambda: resource.setrlimit(
            resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1])
        ),
        lambda: resource.getrlimit(resource.RLIMIT_CORE),
    ),
    "mask": (lambda: block(signal.SIGUSR1), lambda: signal.pthread_sigmask(signal.SIG_BLOCK, ())),
    "timer": (
        lambda: signal.setitimer(signal.ITIMER_REAL, 1000),
        lambda: signal.getitimer(signal.ITIMER_REAL),
    ),
    "timeout": (lambda: socket.setdefaulttimeout(7), socket.getdefaulttimeout),
    "cpus": (
        lambda: os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}),
        lambda: os.sched_getaffinity(0),
    ),
    "folder": (lambda: os.chdir("/"), os.getcwd),
    "streams": (lambda: setattr(sys, "stdout", None), lambda: sys.stdout),
    "rules for warnings": (lambda: warnings.simplefilter("error"), lambda: [*warnings.filters]),
    "handler": (
        lambda: signal.signal(signal.SIGUSR1, do_nothing),
        lambda: signal.getsignal(signal.SIGUSR1),
    ),
    "numbers": (lambda: random.seed(1), random.getstate),
    "numbers of NumPy": (lambda: np.random.seed(1), lambda: repr(np.random.get_state())),  # noqa: NPY002
    "function": (lambda: setattr(np.linalg, "norm", do_nothing), lambda: np.linalg.norm),
    "constant": (lambda: setattr(np, "pi", np.zeros(2)), lambda: np.pi),
    "absent function": (lambda: delattr(np, "exp"), lambda: np.exp),
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
