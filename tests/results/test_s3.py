"""A run in a bucket of a real S3 server (moto's, on loopback) that answers 500 and 503, is slow,
hangs up, goes away.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import subprocess
import sys

import pytest

import cbobench
from cbobench.errors import Misuse
from cbobench.results import folder as folders
from cbobench.results import lock
from cbobench.results.folder import open_run
from cbobench.results.lock import find_player, hold
from cbobench.results.store import StoreFailure
from cbobench.results.verify import verify
from cbobench.suite.call import Call
from cbobench.sweep.plan import plan
from tests.conftest import ROOT
from tests.helpers import assert_same_rows, play_here
from tests.results.holders import count_holders

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not all(importlib.util.find_spec(name) for name in ("moto", "flask", "flask_cors")),
        reason="moto's S3 server is not installed: pip install 'cbobench[s3test]'",
    ),
]


@contextlib.contextmanager
def bucket(*how: str):
    """A run folder's address on a server that fails like that, and how to heal it; it ends with its
    standard input.
    """
    words = [sys.executable, "-m", "benchmarks.chaos.store", *how]
    with subprocess.Popen(
        words, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        port = int(server.stdout.readline())
        address = f"s3://bucket/run?endpoint_override=127.0.0.1:{port}&scheme=http&region=us-east-1"
        yield address, lambda: print("well", file=server.stdin, flush=True)
        server.stdin.close()


@pytest.fixture
def keys(monkeypatch):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setattr(lock, "ASK_SECONDS", 0.5)
    monkeypatch.setattr(lock, "RENEW_SECONDS", 0.5)


@pytest.mark.parametrize("how", [["errors=0.1"], ["cut=0.1", "slow=0.1"], ["away=4"]], ids=" ".join)
def test_a_store_that_fails_loses_nothing(small_suite, tmp_path, keys, how):
    suite = small_suite(horizon=20, seeds=1)
    play_here(suite, tmp_path / "here")
    with bucket(*how) as (address, heal):
        outcome = play_here(suite, address, block=1)
        assert (outcome.played, outcome.failed, outcome.absent) == (3, 0, ())
        heal()
        folder = open_run(address)
        assert verify(folder).damaged == []
        assert [len(folder.names(kind)) for kind in ("rounds", "cells")] == [3, 3]
        assert_same_rows(tmp_path / "here", address)
        assert len(plan(Call(suite, out=address)).tasks) == 0


def test_of_calls_that_come_at_once_one_plays(keys):
    with bucket() as (address, _):
        assert count_holders(address, calls=3) == 1
        assert find_player(open_run(address)) == ""


def test_a_second_call_is_refused_in_a_line_until_the_lock_expires(small_suite, keys, monkeypatch):
    suite = small_suite(horizon=20, seeds=1)
    with bucket() as (address, _):
        with hold(open_run(address)):
            who = f"being played by another call .process {os.getpid()} on .*; wait for it"
            with pytest.raises(Misuse, match=who):
                play_here(suite, address)
        monkeypatch.setattr(lock, "RENEW_SECONDS", 600.0)
        monkeypatch.setattr(lock, "EXPIRES_AFTER", 3.0)
        with hold(open_run(address)):  # as of a call that was killed
            assert play_here(suite, address).played == 3
        assert play_here(suite, address).played == 0


def test_a_store_that_stays_away_ends_the_run_in_one_line(small_suite, keys, monkeypatch):
    suite = small_suite(horizon=20, seeds=1)
    monkeypatch.setattr(folders, "ATTEMPTS", 2)
    monkeypatch.setattr(lock, "EXPIRES_AFTER", 0.0)
    with bucket("away=900") as (address, heal):
        with pytest.raises(StoreFailure, match="that is mended the same command resumes") as error:
            play_here(suite, address, block=1)
        assert "\n" not in str(error.value)
        with pytest.raises(StoreFailure, match="cannot reach"):
            cbobench.load_cells(address)
        heal()
        assert play_here(suite, address).played == 3
        assert len(cbobench.load_cells(address)) == 3
