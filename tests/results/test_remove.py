"""A label stands for one thing in a run; what is superseded is removed by who says so, wherever that is ended."""

from __future__ import annotations

import shutil

import pytest

import cbobench
from cbobench.cli import main
from cbobench.errors import Misuse
from cbobench.results.bundle import open_run
from cbobench.results.compact import compact, remove_pairs
from cbobench.results.folder import SHARD, RunFolder
from cbobench.results.manifest import CALLS, Manifest
from cbobench.results.verify import verify
from tests.helpers import assert_same_rows
from tests.problems.test_configurations import grid

SUITE = """\
suite: t
horizon: 5
seeds: 4
problems:
  - rkhs-1d
  - table:
      label: conf
      layout: configurations
      rows: c.csv
      inputs: [width, rate]
      objective: accuracy
      constraints: {{latency_ms: {{at_most: {at_most}}}, spare_mb: {{at_least: 100}}}}
algorithms: [random, {{oracle: {{label: best}}}}]
"""


@pytest.fixture(scope="module")
def once(tmp_path_factory):
    """A suite, and its run with a bound of 40."""
    folder = tmp_path_factory.mktemp("once")
    grid().to_csv(folder / "c.csv", index=False)
    (folder / "suite.yaml").write_text(SUITE.format(at_most=40))
    cbobench.run(folder / "suite.yaml", out=folder / "run", cpus=0, block=2)
    return folder


@pytest.fixture
def folder(once, tmp_path):
    """A copy of it."""
    shutil.copytree(once, tmp_path / "o")
    return tmp_path / "o"


def changed(folder, text):
    (folder / "suite.yaml").write_text(text)
    return folder / "suite.yaml"


def test_a_label_with_other_parameters_is_refused_and_the_difference_named(folder):
    suite, run = changed(folder, SUITE.format(at_most=30)), folder / "run"
    says = r"holds 'conf' with other parameters \(constraints\.latency_ms\.at_most 40(\.0)? → 30(\.0)?\); give another "
    with pytest.raises(Misuse, match=says) as refused:
        cbobench.run(suite, out=run, cpus=0)
    assert str(refused.value).endswith("with cbobench remove")
    assert len(cbobench.load_cells(run)) == 16
    assert (
        cbobench.run(changed(folder, SUITE.format(at_most=30).replace("conf\n", "conf-30\n")), out=run, cpus=0).played
        == 8
    )


def test_what_is_removed_can_be_played_and_merged_again(folder, once):
    run, there = folder / "run", open_run(folder / "run")
    compact(there)
    for _ in range(2):
        remove_pairs(there, "conf/*")
        assert cbobench.run(folder / "suite.yaml", out=run, cpus=0).played == 8
        assert (verify(there).cells, verify(there).damaged) == (16, [])
        compact(there)
        assert (verify(there).cells, verify(there).damaged) == (16, [])
        assert [file.stem.startswith(SHARD) for file in (run / "cells").iterdir()] == [True]
        assert_same_rows(once / "run", run)


class Killed(BaseException):
    """What ends a removal in the middle."""


@pytest.mark.parametrize(
    ("merged", "apart"), [(False, 5), *(pytest.param(merged, 1, marks=pytest.mark.long) for merged in (False, True))]
)
def test_a_removal_that_is_ended_anywhere_leaves_a_run_that_verifies(once, tmp_path, merged, apart, monkeypatch):
    steps, ended = 1, True
    while ended:
        run = tmp_path / str(steps)
        shutil.copytree(once / "run", run)
        there, left = open_run(run), steps
        if merged:
            compact(there)

        def step(call, *given):
            nonlocal left
            if left == 0:
                raise Killed
            left -= 1
            return call(*given)

        with monkeypatch.context() as patched:
            for name in ("remove", "publish"):
                call = getattr(RunFolder, name)
                patched.setattr(RunFolder, name, lambda *given, call=call: step(call, *given))
            try:
                remove_pairs(there, "conf")
                ended = False
            except Killed:
                shutil.rmtree(run / "drivers")  # as of a process that is dead
        found = verify(there)
        assert found.damaged == [], steps
        assert found.cells >= 8
        if ended and found.expected == 16:
            remove_pairs(there, "conf")
        assert (verify(there).cells, verify(there).expected, verify(there).damaged) == (8, 8, [])
        assert {*Manifest.read(there).labels("problems").values()} == {"rkhs-1d"}
        for name in there.calls(CALLS):
            assert "conf" not in str(there.read_json(f"{CALLS}/{name}.json")["grids"])
        steps += apart
    assert steps > 8


def test_all_of_a_run_is_not_removed(folder, capsys):
    assert main(["remove", str(folder / "run"), "*", "--yes"]) == 2
    assert "matches all of" in capsys.readouterr().err
    assert main(["remove", str(folder / "run"), "cont", "--yes"]) == 2
    assert "did you mean 'conf'" in capsys.readouterr().err
    assert len(cbobench.load_cells(folder / "run")) == 16


def test_another_variant_under_the_same_label_is_refused(write_suite, tmp_path):
    text = "suite: s\nhorizon: 3\nseeds: 1\nproblems: [gramacy]\nalgorithms: [{}]\n"
    cbobench.run(write_suite(text.format("{ckb-ucb: {V: 2, label: b}}")), out=tmp_path / "run", cpus=0)
    with pytest.raises(Misuse, match="take it out of the run with cbobench remove$"):
        cbobench.run(write_suite(text.format("{ckb-ucb: {V: 3, label: b}}")), out=tmp_path / "run", cpus=0)
