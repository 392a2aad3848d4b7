"""Processes that are started: the signals that theirs inherit, and what becomes of one that
stops.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import time

import pytest

from cbobench.sweep import children
from cbobench.sweep.children import become_worker, spawn
from cbobench.sweep.interrupt import SIGNALS, interruptible


def look_at_signals():
    """Which of the signals a program ignores that is started here, and the handlers of a fork."""
    status = subprocess.run(
        ["cat", "/proc/self/status"], capture_output=True, text=True, check=True
    ).stdout
    mask = int(
        next(line for line in status.splitlines() if line.startswith("SigIgn")).split()[1], 16
    )
    ours, theirs = multiprocessing.Pipe()
    pid = os.fork()
    if pid == 0:
        theirs.send([str(signal.getsignal(number)) for number in SIGNALS])
        os._exit(0)
    os.waitpid(pid, 0)
    return [number.name for number in SIGNALS if mask >> (number - 1) & 1], ours.recv()


def serve_look(link):
    become_worker(link)
    link.send(look_at_signals())
    time.sleep(1000)


@pytest.fixture
def worker(forking):
    """Starts a worker that serves by a function, and ends it."""
    started = []

    def start(serve):
        started.append(spawn("", serve))
        return started[-1]

    yield start
    for child in started:
        child.end()


def test_what_a_worker_starts_ends_by_signals_as_elsewhere(worker):
    outside = look_at_signals()
    assert outside[0] == []
    assert worker(serve_look).link.recv() == outside


@pytest.mark.parametrize("handler", [signal.SIG_IGN, lambda number, frame: None])
def test_a_handler_of_the_drivers_program_reaches_no_fork_of_a_worker(worker, handler):
    """Services set such ones; a pool that a run makes would never end."""
    outside = look_at_signals()
    before = signal.signal(signal.SIGTERM, handler)
    try:
        child = worker(serve_look)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert child.link.recv() == outside


def test_what_the_driver_starts_ends_by_signals_as_elsewhere():
    outside = look_at_signals()
    with interruptible(), interruptible():
        assert look_at_signals() == outside
    assert look_at_signals() == outside


def test_what_a_run_under_nohup_starts_outlives_the_terminal(monkeypatch):
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with interruptible():
            ignored, handlers = look_at_signals()
    finally:
        signal.signal(signal.SIGHUP, before)
    assert ignored == ["SIGHUP"]
    assert handlers[SIGNALS.index(signal.SIGHUP)] == str(signal.SIG_IGN)


def serve_pools(link):
    """Pools are ended as soon as they are there: their processes may not have begun."""
    become_worker(link)
    for _ in range(20):
        with multiprocessing.get_context("fork").Pool(2) as pool:
            pool.map(abs, [1, 2])
    link.send("done")


@pytest.mark.slow
def test_pools_of_processes_end_in_a_worker(worker):
    assert worker(serve_pools).link.recv() == "done"


def serve_stopped(link):
    link.send("stopped")
    os.kill(os.getpid(), signal.SIGSTOP)


def test_a_long_message_to_a_worker_that_is_stopped_holds_nobody_up(worker, monkeypatch):
    monkeypatch.setattr(children, "MESSAGE_SECONDS", 1)
    child = worker(serve_stopped)
    assert child.link.recv() == "stopped"
    with pytest.raises(BlockingIOError):
        child.link.send(bytes(10**7))
