"""Rounds to a target, and profiles, of curves made by hand."""

from __future__ import annotations

import numpy as np
import pytest

import cbobench
from cbobench.cli import main
from cbobench.errors import Misuse
from cbobench.metrics import METRICS
from cbobench.report.load import Run
from cbobench.results.folder import RunFolder
from tests.report.made import make

T = [10, 20, 30, 40, 50, 60, 70, 80, 90, 100]
CURVES = {  # of four seeds
    "A": [[np.nan] * 2 + [0.5] * 3 + [0.05] * 5, [2.0] * 9 + [1.0], [np.nan] * 10, [0.0005] * 10],
    "B": [[3.0] * 10] * 4,
}


def made(folder, names="AB", **options):
    cells = {("P", a): {"simple_regret": [curve[-1] for curve in CURVES[a]], "f_star": [-2.0, 1, 1, 0]} for a in names}
    rounds = {("P", a): {"t": T, "simple_regret": CURVES[a]} for a in names}
    return make(folder, cells, seeds=range(4), rounds=rounds, **options)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return Run(made(tmp_path_factory.mktemp("targets") / "run"))


def test_rounds_to_a_target(run):
    frame = cbobench.summary(run, target=0.5)
    a, b = (frame[frame["algorithm_label"] == name].iloc[0] for name in "AB")
    assert (a["rounds_to_target_defined"], a["rounds_to_target"]) == (2, 20.0), "30 and 10; two never"
    assert a["rounds_to_target_median"] == np.inf
    assert b["rounds_to_target_defined"] == 0
    assert np.isnan(b["rounds_to_target_median"])
    assert cbobench.summary(run, target=1)["rounds_to_target_median"][0] == 65, "between 30 and 100"
    assert "∞ 2/4" in str(cbobench.compare(run, target=0.5))
    paired = cbobench.compare(run, target=0.5, against="B").frame.set_index("metric").loc["rounds_to_target"]
    assert (paired["n"], paired["wins"], paired["ties"]) == (4, 2, 2), "two never got there with either"


def cells_only(monkeypatch, method, otherwise):
    """Let a method of run folders read cells alone."""
    read = getattr(RunFolder, method)

    def read_file(self, kind, task, columns=None):
        assert kind == "cells", otherwise
        return read(self, kind, task, columns)

    monkeypatch.setattr(RunFolder, method, read_file)


def test_tables_without_a_target_read_no_rounds(run, monkeypatch):
    cells_only(monkeypatch, "row_groups", "rounds")
    for options in ({}, {"best": True}, {"ranks": True}, {"other": run.folder.uri}):
        assert str(cbobench.compare(run.folder.uri, **options))
    with pytest.raises(AssertionError, match="rounds"):
        cbobench.compare(run, profile=True)


def test_profiles_by_hand(run):
    """References are 2, 1, 1 and (f* = 0) 1: final regrets of A are 0.025, 1, none and 0.0005 of them."""
    frame = cbobench.compare(run, profile=True).frame
    a, b = (frame[frame["algorithm_label"] == name].iloc[0] for name in "AB")
    assert a[["within_1", "within_0.1", "within_0.01", "within_0.001"]].tolist() == [0.75, 0.5, 0.25, 0.25]
    # targets 2, 0.2, 0.02, 0.002 of the first seed: rounds 30, 60, -, -; 1 of the second: 100; the last all at 10
    assert a["solved_by_0.1"] == 4 / 16
    assert a["solved_by_0.5"] == 5 / 16
    assert a["solved_by_1"] == 7 / 16
    assert b[["within_1", "solved_by_1"]].tolist() == [0, 0], "3 is more than 2"


def test_a_run_without_simple_regret_says_so(run, monkeypatch):
    monkeypatch.delitem(METRICS, "simple_regret")
    for options in ({"target": 1.0}, {"profile": True}):
        with pytest.raises(Misuse, match="need the metric simple_regret, which this run does not record"):
            cbobench.compare(run.folder.uri, **options)


@pytest.mark.parametrize("target", ["-0.1", "nan"])
def test_a_target_that_no_regret_can_reach_is_one_line(run, target, capsys):
    assert main(["compare", run.folder.uri, f"--target={target}"]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "simple regret is never negative: give 0 or more" in error
    assert main(["compare", run.folder.uri, "--target=0", "--format", "json"]) == 0
