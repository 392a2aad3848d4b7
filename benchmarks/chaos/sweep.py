"""One sweep in a process of its own, what is done to it, and what it said."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from benchmarks.chaos import check
from cbobench.errors import CbobenchError
from cbobench.report.tables.status import read_status
from cbobench.results.folder import open_run

# in the environment of every process that a sweep starts, with the sweep's own word
MARK = "CBOBENCH_CHAOS"
# seconds that workers may outlive their driver: one writes what it has, one is being forked
GRACE = 90.0
STOPPED = re.compile(r"stopped: .*; to go on: cbobench run ")
SIGNALS = {"SIGINT": signal.SIGINT, "SIGTERM": signal.SIGTERM, "SIGHUP": signal.SIGHUP}


class Hung(Exception):
    """A sweep did not end in time."""


@dataclass
class Sweep:
    """`cbobench run` on one folder, started again whenever it was ended.

    Attributes:
        name: of the trial, for the account.
        words: behind `cbobench run`.
        out: the run folder.
        deadline: of the whole trial, on the monotonic clock.
        faults: what was injected, counted by kind.
        wrong: what must not have happened, a line each.
    """

    name: str
    words: list[str]
    out: Path
    environment: dict[str, str]
    generator: np.random.Generator
    deadline: float
    faults: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    process: subprocess.Popen[bytes] | None = None
    starts: int = 0
    second: Sweep | None = None
    host: list[str] = field(default_factory=list)  # words that run a command where the driver is

    def __post_init__(self) -> None:
        self.mark = f"{MARK}={self.name}-{os.getpid()}"
        self.log = self.out.parent / f"{self.out.name}.log"

    def start(self) -> None:
        """Start, or go on."""
        self.process = self.spawn(self.log)
        self.starts += 1

    def start_second(self) -> None:
        """The same command again beside it, which is refused in a line unless the first ends."""
        self.second = Sweep(
            self.name, self.words, self.out, self.environment, self.generator, self.deadline
        )
        self.second.log = self.log.with_suffix(".second")
        self.second.start()
        self.faults["second driver"] += 1

    def spawn(self, log: Path) -> subprocess.Popen[bytes]:
        words = [
            *self.host,
            sys.executable,
            "-m",
            "cbobench",
            "run",
            *self.words,
            "--out",
            str(self.out),
        ]
        environment = self.environment | dict([self.mark.split("=")])
        with log.with_suffix(".out").open("wb") as out, log.open("wb") as errors:
            return subprocess.Popen(
                words, env=environment, stdout=out, stderr=errors, start_new_session=True
            )

    @property
    def alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def published(self) -> int:
        """Files of cells that are there."""
        return len(list((self.out / "cells").glob("[!.]*.parquet")))

    def moment(self) -> bool:
        """Wait until the sweep has published something more, and a moment longer; whether it still
        runs.
        """
        before = self.published()
        while self.alive and self.published() == before:
            self.in_time()
            time.sleep(0.02)
        time.sleep(float(self.generator.uniform(0.0, 0.2)))
        return self.alive

    def in_time(self) -> None:
        if time.monotonic() > self.deadline:
            raise Hung

    def end(self, ended_by: str | None = None) -> int:
        """Wait for the end, and judge what it said.

        Args:
            ended_by: the signal it was sent, or None.
        """
        assert self.process is not None
        while self.process.poll() is None:
            self.in_time()
            time.sleep(0.02)
        code, text = self.process.returncode, self.log.read_text(errors="replace")
        for line in check.dumps(text)[:3]:
            self.wrong.append(
                f"after {ended_by or 'no signal'}, a stack dump: {line.strip()[:150]}"
            )
        orderly = code in (0, 1) or (code == 130 and STOPPED.search(text))
        # which holds the folder: this one begins, or was refused
        if self.second is not None and ended_by in SIGNALS:
            orderly = orderly or code in (2, 130, -SIGNALS[ended_by])
        if ended_by in SIGNALS and not orderly:
            self.wrong.append(
                f"{ended_by}: exit code {code} and {(text.splitlines() or ['no line'])[-1][:150]!r}"
            )
        return code

    def finish(self, code: int) -> None:
        """Go on undisturbed to the end, which must have that exit code, and a table on standard
        output.
        """
        if self.second is not None:
            if self.alive:
                self.end()
            if (second := self.second.end()) not in (0, 1, 2):
                self.wrong.append(f"a second driver: exit code {second}")
            self.wrong += [f"a second driver: {line}" for line in self.second.wrong]
        if not self.alive:  # ended by a fault, or refused because the second one held the folder
            self.start()
        found = self.end()
        text = self.log.with_suffix(".out").read_text(errors="replace")
        if found != code or not text.startswith("chaos"):
            last = (self.log.read_text(errors="replace").splitlines() or [""])[-1]
            self.wrong.append(f"the end: exit code {found} for {code}, {text[:40]!r}: {last[:200]}")

    def read_beside(self) -> None:
        """A reader of a run that is being written or was just cut is never refused."""
        try:
            if (self.out / "run.json").exists():
                read_status(open_run(self.out))
        except CbobenchError as error:
            self.wrong.append(f"a reader beside it: {error}")

    def processes(self) -> list[int]:
        """What this sweep has started and is still there, by the mark in its environment."""
        found = []
        for environ in Path("/proc").glob("[0-9]*/environ"):
            with contextlib.suppress(OSError):
                if self.mark.encode() in environ.read_bytes().split(b"\0"):
                    found.append(int(environ.parent.name))
        return found

    def workers(self) -> list[int]:
        """The worker processes on this machine."""
        drivers = [
            sweep.process.pid
            for sweep in (self, self.second)
            if sweep is not None and sweep.process is not None
        ]
        return [pid for pid in self.processes() if pid not in drivers]

    def close(self) -> None:
        """Nothing may be left over; what is, is ended."""
        until = time.monotonic() + GRACE
        while (left := self.processes()) and time.monotonic() < until:
            time.sleep(0.1)
        if left:
            self.wrong.append(f"{len(left)} processes outlived the sweep by {GRACE:.0f} s")
        self.kill()

    def kill(self) -> None:
        for pid in self.processes():
            send(pid, signal.SIGKILL)
        if self.process is not None:
            self.process.wait()


def send(pid: int, number: int) -> bool:
    """A signal to a process that may have gone meanwhile; whether it was there."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True


def kill_worker(sweep: Sweep) -> None:
    """SIGKILL to one of its workers."""
    workers = sweep.workers()
    if workers and send(int(sweep.generator.choice(workers)), signal.SIGKILL):
        sweep.faults["worker killed"] += 1


def pause_worker(sweep: Sweep) -> None:
    """A worker that does nothing for a while."""
    workers = sweep.workers()
    if not workers:
        return
    pid = int(sweep.generator.choice(workers))
    if send(pid, signal.SIGSTOP):
        time.sleep(float(sweep.generator.uniform(0.2, 1.0)))
        send(pid, signal.SIGCONT)
        sweep.faults["worker paused"] += 1


def kill_driver(sweep: Sweep) -> None:
    """SIGKILL to the driver, and on at once, while its workers may still write."""
    assert sweep.process is not None
    sweep.process.kill()
    sweep.process.wait()
    sweep.faults["driver killed"] += 1
    sweep.start()


def interrupt(sweep: Sweep) -> None:
    """SIGINT, SIGTERM or SIGHUP to the driver, which says how to go on."""
    assert sweep.process is not None
    name = str(sweep.generator.choice(list(SIGNALS)))
    sweep.process.send_signal(SIGNALS[name])
    sweep.end(name)
    sweep.faults[name] += 1
    if not sweep.process.returncode:
        return  # it was just done
    sweep.start()
