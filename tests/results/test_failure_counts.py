"""Failures are counted by kind, in a line during a run and at its end."""

from __future__ import annotations

import re

from cbobench.cli import main
from cbobench.results.query import FailureCounts
from tests.sweep.poison import suite_of, write_poison


def test_what_differs_in_numbers_alone_is_one_kind():
    tally = FailureCounts(
        [f"rkhs-1d / random[a=2] seed {s}: round {s + 1}: action -{s} is not in 0..9" for s in range(10)]
    )
    tally.add("rkhs-1d / random seed 3: timed out after 62 s")
    tally.add("rkhs-1d / random seed 4: timed out after 71 s")
    assert str(tally) == "12 failed: 10 x action -0 is not in 0..9, 2 x timed out after 62 s"
    assert tally.examples()[1] == "rkhs-1d / random seed 3: timed out after 62 s"
    many = FailureCounts(f"p / a seed 1: {kind * 50}: no" for kind in "ABCDEFG")
    assert str(many).endswith(", 2 other kinds")
    assert len(str(many)) < 500


def test_failures_are_told_by_kind_during_a_run_and_at_its_end(write_suite, tmp_path, monkeypatch, capsys):
    write_poison(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    text = suite_of(["ansi", "memory"]).replace("{how", "{every: true, how")
    suite = write_suite(text)
    assert main(["run", str(suite), "--out", "t", "--cpus", "0", "--block", "2"]) == 1
    error = capsys.readouterr().err
    assert re.search(r"bell \(poison_plugin.py:\d+\)", error)
    lines = re.sub(r" \(poison_plugin.py:\d+\)", "", error).splitlines()
    ansi = r"4 x ValueError: red \x1b[31m and \x07 bell"
    assert lines[2] == ansi.replace("4 x", "2 failed: 2 x")
    assert lines[3] == f"4 failed: {ansi.replace('4', '2', 1)}, 2 x MemoryError"
    assert f"8 failed: {ansi}, 4 x MemoryError" in lines[4:]
    assert sum(line.startswith("failed: ") for line in lines) == 2
