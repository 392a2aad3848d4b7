"""Whatever a user's module does to its process, cells of others are what they are without it."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import cbobench
from cbobench.play.isolation import Company, find_company
from tests.helpers import long, play_here
from tests.processes import assert_gone

WORST = """
import faulthandler, os, signal, sys, time, warnings
import numpy as np
from cbobench.algorithms.references import Random
from cbobench.gp.kernels import Kernel
from cbobench.params import param
from dataclasses import dataclass
from tests.helpers import long

CALL, EXP = Kernel.__call__, np.exp


def spoil():
    Kernel.__call__ = lambda self, *given, **words: CALL(self, *given, **words) * (1 - 1e-7)
    np.exp = lambda *given, **words: EXP(*given, **words) * (1 - 1e-7)
    np.seterr(all="ignore")
    np.random.seed(1)
    warnings.simplefilter("error")
    os.chdir("/")
    os.environ["OMP_NUM_THREADS"] = "7"
    for number in (signal.SIGTERM, signal.SIGUSR1):
        signal.signal(number, signal.SIG_IGN)
    if "torch" in sys.modules:
        sys.modules["torch"].set_grad_enabled(False)


spoil()


@dataclass(kw_only=True)
class Worst(Random):
    how: str = param("nothing", "how")

    def ask(self, t):
        faulthandler.disable()  # that of who runs the tests
        spoil()
        if t == 3 and any(scope[-1] == 1 for scope in self.setting.streams.scopes):
            if self.how == "fork":
                with open(FORKS, "a") as forks:
                    forks.write(f"{os.fork()} ")
                if not os.fork():
                    time.sleep(1000)
            if self.how == "stop":
                os.kill(os.getpid(), signal.SIGSTOP)
            if self.how == "end":
                os._exit(0)
        return super().ask(t)
"""
HOWS = {"nothing": 0, "fork": 0, "end": 1, "stop": 1}
"""Failed cells."""


RUN = """
from cbobench.sweep import scheduler
scheduler.SILENCE = 10.0
from cbobench.cli import main
main(["run", "suite.yaml", "--out", "run", "--cpus", "2", "--block", "1", "--engine", "{engine}"])
"""


def rounds_of(run, cells):
    """All that is recorded of the rounds of some cells."""
    frame = cbobench.load_rounds(run)
    frame = frame[frame["cell"].isin(cells)].sort_values(["cell", "t"])
    return repr([[np.asarray(value).tolist() for value in row] for row in frame.to_numpy()])


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["processes", *long("ray")])
def test_the_worst_module_fails_its_own_cells_alone(tmp_path, monkeypatch, write_suite, engine):
    monkeypatch.chdir(tmp_path)
    forks = tmp_path / "forks"
    (tmp_path / "worst.py").write_text(f"FORKS = {str(forks)!r}\n{WORST}")
    text = "suite: s\nhorizon: 8\nseeds: 2\nproblems: [rkhs-1d]\nalgorithms:\n"
    ours = "  - ckb-ucb\n"
    theirs = f"  - worst:Worst: {{how: {{sweep: [{', '.join(HOWS)}]}}}}\n"
    play_here(write_suite(text + ours), "whole")
    write_suite(text + ours + theirs)
    subprocess.run([sys.executable, "-c", RUN.format(engine=engine)], timeout=600)
    whole, cells = cbobench.load_cells("whole"), cbobench.load_cells("run")
    failed = cells[cells["status"] == "failed"]
    assert len(cells) == 10
    assert {*failed["seed"]} == {1}
    assert {how: failed["algorithm"].str.contains(how).sum() for how in HOWS} == HOWS
    assert rounds_of("run", whole["cell"]) == rounds_of("whole", whole["cell"])
    assert_gone([int(pid) for pid in forks.read_text().split()])


def test_whose_code_a_pair_plays():
    assert find_company("rkhs-1d", "cei") == Company()
    assert find_company("mine.tasks:Task", "cei") == Company(frozenset({"mine"}))
    assert find_company("cbobench.problems.rkhs.functions:RKHS", "cei") == Company()
    assert find_company("rkhs-1d", "optuna-tpe") == Company(libraries=frozenset({"optuna"}))


def test_who_plays_a_users_code_unguarded_says_so(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "unguarded.py").write_text(
        "from cbobench.algorithms.references import Random\n\n\nclass Mine(Random):\n    pass\n"
    )
    suite = {"suite": "s", "horizon": 2, "seeds": 1, "problems": ["rkhs-1d"]}
    notes = []
    for algorithm in ("random", "unguarded:Mine"):
        suite = suite | {"algorithms": [algorithm]}
        play_here(suite, algorithm[:6], on_note=notes.append)
    assert notes == [
        "played by this process",
        "played by this process, unguarded: what unguarded changes in it stays; --cpus 1 keeps it "
        "apart",
    ]
