"""A driver in a process of its own, and an executor whose answers are given."""

from __future__ import annotations

import os
import subprocess

from cbobench.play.task import Receipt
from cbobench.sweep.executors import InlineExecutor
from cbobench.sweep.scheduler import Scheduler
from cbobench.watcher import SILENT
from tests.conftest import cbobench_words
from tests.processes import until

SLOW = """\
suite: slow
horizon: 20
seeds: 12
problems: [rkhs-1d]
algorithms: [dawdling:Dawdling, random]
"""
DAWDLING = """
import os, time
from cbobench.algorithms.ckb import CKBUCB


class Dawdling(CKBUCB):
    def ask(self, t):
        if any(scope[-1] > 1 for scope in self.setting.streams.scopes):
            time.sleep(float(os.environ.get("DAWDLE", "0")))
        return super().ask(t)
"""


def write_slow(folder):
    """A suite whose first seeds are played at once; the others take their time where `DAWDLE` says
    so, and no CPU.
    """
    (folder / "dawdling.py").write_text(DAWDLING)
    (folder / "slow.yaml").write_text(SLOW)
    return folder / "slow.yaml"


def environment_of(folder, **variables):
    """The environment of a process that finds the modules in a folder."""
    return (
        os.environ
        | {"PYTHONPATH": os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])}
        | variables
    )


def start_and_wait(suite, out, cpus, cells, players="as it comes"):
    """A driver in its own process that has published at least so many cells (one per file), and is
    not done.
    """
    command = [*cbobench_words(players), "run", suite, "--out", out, "--cpus", cpus, "--block", 1]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    driver = subprocess.Popen(
        list(map(str, command)), **pipes, text=True, env=os.environ | {"DAWDLE": "0.2"}
    )
    until(
        lambda: len(list((out / "cells").glob("*.parquet"))) >= cells,
        lambda: "too few cells are played",
        driver,
    )
    assert driver.poll() is None, "the run ended too early to be stopped"
    return driver


class FakeExecutor:
    """Ends one task at a time, with the answers given, then with receipts."""

    def __init__(self, slots, answers=()):
        self.slots, self.pending, self.answers, self.submitted = slots, [], list(answers), 0
        self.reports = {}

    def room(self):
        return self.slots - len(self.pending)

    def accepts(self, task):
        return True

    def submit(self, task):
        self.pending.append(task)
        self.submitted += 1

    def collect(self, seconds):
        if self.pending:
            task = self.pending.pop(0)
            answer = self.answers.pop(0) if self.answers else None
            yield task, answer or Receipt(task.name, len(task.cells), 0, task.rounds, ())

    def close(self):
        pass


def scheduler_of(todo, executor=None, watcher=SILENT):
    """Plays a plan; in this process, where no executor is given."""
    return Scheduler(todo, executor or InlineExecutor(todo.suite.problems, todo.folder), watcher)
