"""Nodes whose environment asks for other instructions play the same bits: a sweep over both is one sweep."""

from __future__ import annotations

import os

import pytest

import cbobench
from cbobench import arithmetic
from cbobench.arithmetic import BEYOND, PORTABLE, reason_against
from tests.helpers import assert_same_rows
from tests.sweep.heads import NODE, free_port, head

SUITE = """\
suite: mixed
horizon: 12
seeds: 10
record: all
problems: [rkhs-1d, gramacy: {candidates: 64}]
algorithms: [ckb-ucb, gp-ts, scbo]
"""


@pytest.mark.long
@pytest.mark.skipif(bool(reason_against()), reason=f"plays natively: {reason_against()}")
def test_a_cluster_of_mixed_nodes_plays_the_same_bits(write_suite, tmp_path, command):
    suite, port = write_suite(SUITE), free_port()
    plain = {name: value for name, value in os.environ.items() if name != arithmetic.DISABLED}
    environment = plain | {"RAY_AUTH_MODE": "disabled"}
    common = ["--node-ip-address=127.0.0.1", "--num-cpus=1", "--object-store-memory=80000000"]
    hostile = environment | {arithmetic.KERNEL: "Sandybridge"}
    held = environment | {arithmetic.DISABLED: " ".join(("X86_V3", *BEYOND))}
    with (
        head([*common, f"--port={port}"], hostile, tmp_path / "head.log"),
        head([*common, f"--address=127.0.0.1:{port}"], held, tmp_path / "node.log", NODE),
    ):
        words = ["run", suite, "--out", tmp_path / "run", "--block", 1, "--address", f"127.0.0.1:{port}"]
        done = command(*words, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    here = command("run", suite, "--out", tmp_path / "here", "--cpus", 0, env=environment)
    assert here.returncode == 0, here.stderr
    kinds = {*cbobench.load_cells(tmp_path / "run")["arithmetic"]}
    assert kinds == {PORTABLE, "native: Haswell, X86_V2"}, "both have played"
    assert_same_rows(tmp_path / "run", tmp_path / "here")
