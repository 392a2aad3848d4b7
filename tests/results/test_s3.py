"""A run in a bucket of a real S3 server (moto's, on loopback) that answers 500 and 503, is slow,
hangs up, goes away.

What is asked for here of pyarrow and of the network is asked for of the code alone, and in CI, by
test_outage.py.
"""

from __future__ import annotations

import contextlib
import importlib.util
import subprocess
import sys

import pytest

import cbobench
from cbobench.call import Call
from cbobench.results import store
from cbobench.results.folder import open_run
from cbobench.results.verify import verify
from cbobench.sweep.plan import plan
from tests.conftest import ROOT
from tests.helpers import assert_same_rows

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
    monkeypatch.setattr(store, "FIRST_PAUSE", 0.01)
    monkeypatch.setattr(store, "LONGEST_PAUSE", 0.5)


@pytest.mark.parametrize("how", [["errors=0.4"], ["cut=0.3", "slow=0.1"], ["away=4"]], ids=" ".join)
def test_a_store_that_fails_loses_nothing(small_suite, tmp_path, keys, how):
    suite = small_suite(horizon=20, seeds=1)
    cbobench.run(suite, out=tmp_path / "here", cpus=0)
    with bucket(*how) as (address, heal):
        outcome = cbobench.run(suite, out=address, cpus=0, block=1)
        assert (outcome.played, outcome.failed, outcome.absent) == (3, 0, ())
        heal()
        folder = open_run(address)
        assert verify(folder).damaged == []
        assert [len(folder.names(kind)) for kind in ("rounds", "cells")] == [3, 3]
        assert_same_rows(tmp_path / "here", address)
        assert len(plan(Call(suite, out=address)).tasks) == 0
