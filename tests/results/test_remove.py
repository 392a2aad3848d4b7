"""A label stands for one thing in a run, however suites spell it and whatever a user's class says
of itself.

What is superseded is removed by who says so, wherever that is ended.
"""

from __future__ import annotations

import re
import shlex
import shutil
from types import SimpleNamespace

import pandas as pd
import pytest

import cbobench
from cbobench.cli import main
from cbobench.errors import Misuse
from cbobench.report.load import Run
from cbobench.report.summary import summary
from cbobench.results.bundle import open_run
from cbobench.results.compact import compact, remove_pairs
from cbobench.results.folder import SHARD, RunFolder
from cbobench.results.manifest import CALLS, Manifest
from cbobench.results.verify import verify
from cbobench.suite.cells import Grid, Pair
from cbobench.suite.variants import Variant
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
    says = (
        r"holds 'conf' with other parameters \(constraints\.latency_ms\.at_most 40(\.0)? → "
        r"30(\.0)?\); give another "
    )
    with pytest.raises(Misuse, match=says) as refused:
        cbobench.run(suite, out=run, cpus=0)
    assert str(refused.value).endswith(f": cbobench remove {shlex.quote(str(run))} conf")
    assert len(cbobench.load_cells(run)) == 16
    assert (
        cbobench.run(
            changed(folder, SUITE.format(at_most=30).replace("conf\n", "conf-30\n")),
            out=run,
            cpus=0,
        ).played
        == 8
    )


def test_the_command_that_is_advised_makes_room(folder, capsys, monkeypatch):
    run = folder / "run"
    before = cbobench.load_rounds(run, problem="rkhs-1d")
    suite = changed(folder, SUITE.format(at_most=30))
    with pytest.raises(Misuse) as refused:
        cbobench.run(suite, out=run, cpus=0)
    command = shlex.split(str(refused.value).rpartition(": ")[2])[1:]
    assert main(command) == 2
    assert "there is no terminal to ask on; to confirm, add --yes" in capsys.readouterr().err
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    for answer, left in (("", 16), ("n", 16), ("y", 8)):
        monkeypatch.setattr("builtins.input", lambda prompt, answer=answer: answer)
        assert main(command) == 0
        assert len(cbobench.load_cells(run)) == left
    assert "removed 8 cells from" in capsys.readouterr().out
    verdict = verify(open_run(run))
    assert (verdict.damaged, verdict.cells, verdict.expected) == ([], 8, 8)
    pd.testing.assert_frame_equal(before, cbobench.load_rounds(run))
    assert cbobench.run(suite, out=run, cpus=0).played == 8
    assert verify(open_run(run)).cells == 16


def test_what_is_removed_can_be_played_and_merged_again(folder, once):
    run, opened = folder / "run", open_run(folder / "run")
    compact(opened)
    remove_pairs(opened, "conf/*")
    assert cbobench.run(folder / "suite.yaml", out=run, cpus=0).played == 8
    assert (verify(opened).cells, verify(opened).damaged) == (16, [])
    compact(opened)
    assert (verify(opened).cells, verify(opened).damaged) == (16, [])
    assert [file.stem.startswith(SHARD) for file in (run / "cells").iterdir()] == [True]
    assert_same_rows(once / "run", run)


class Killed(BaseException):
    """What ends a removal in the middle."""


@pytest.mark.parametrize(
    ("merged", "apart"),
    [(False, 9), *(pytest.param(merged, 1, marks=pytest.mark.long) for merged in (False, True))],
)
def test_a_removal_that_is_ended_anywhere_leaves_a_run_that_verifies(
    once, tmp_path, merged, apart, monkeypatch
):
    steps, ended = 1, True
    while ended:
        run = tmp_path / str(steps)
        shutil.copytree(once / "run", run)
        opened, left = open_run(run), steps
        if merged:
            compact(opened)

        def step(call, *arguments):
            nonlocal left
            if left == 0:
                raise Killed
            left -= 1
            return call(*arguments)

        with monkeypatch.context() as patched:
            for name in ("remove", "publish"):
                call = getattr(RunFolder, name)
                patched.setattr(
                    RunFolder, name, lambda *arguments, call=call: step(call, *arguments)
                )
            try:
                remove_pairs(opened, "conf")
                ended = False
            except Killed:
                shutil.rmtree(run / "drivers")  # as of a process that is dead
        verdict = verify(opened)
        assert verdict.damaged == [], steps
        assert verdict.cells >= 8
        if ended and verdict.expected == 16:
            remove_pairs(opened, "conf")
        assert (verify(opened).cells, verify(opened).expected, verify(opened).damaged) == (8, 8, [])
        assert {*Manifest.read(opened).labels("problems").values()} == {"rkhs-1d"}
        for name in opened.calls(CALLS):
            assert "conf" not in str(opened.read_json(f"{CALLS}/{name}.json")["grids"])
        steps += apart
    assert steps > 8


def test_all_of_a_run_is_not_removed(folder, capsys):
    assert main(["remove", str(folder / "run"), "*", "--yes"]) == 2
    assert "matches all of" in capsys.readouterr().err
    assert main(["remove", str(folder / "run"), "cont", "--yes"]) == 2
    assert "did you mean 'conf'" in capsys.readouterr().err
    assert len(cbobench.load_cells(folder / "run")) == 16


def test_two_variants_of_one_label_are_told_apart_by_what_differs(folder, monkeypatch):
    """In runs of versions that did not refuse them."""
    monkeypatch.setattr(Manifest, "_refuse_namesakes", lambda *arguments: None)
    cbobench.run(changed(folder, SUITE.format(at_most=30)), out=folder / "run", cpus=0)
    labels = [*Manifest.read(open_run(folder / "run")).labels("problems").values()]
    assert labels[0] == "rkhs-1d"
    assert all(
        re.fullmatch(r"conf \(constraints\.latency_ms\.at_most = (30|40)(\.0)?\)", label)
        for label in labels[1:]
    )
    assert len({*labels}) == 3
    assert '{"' not in str(cbobench.compare(folder / "run"))


def named(name, label, **settings):
    return Variant(name, settings, {"n": 3, "h": 1, **settings}, label, {})


def record_of(problems, algorithms):
    pairs = tuple(Pair(problem, algorithm) for problem in problems for algorithm in algorithms)
    return Manifest("s", "", None, 1, (Grid((*problems,), (*algorithms,), 7, (1,), pairs),), ())


def test_labels_of_one_name_are_told_apart_in_every_kind():
    """By the parameters that differ and by no others; where none does, by titles. What stands alone
    is as it is.
    """
    problems = [named("p", "P", h=1), named("p", "P", h=2), named("q", "Q", h=2)]
    algorithms = [named("a", "A"), named("b", "A"), named("c", "C")]
    record = record_of(problems, algorithms)
    assert record.labels("problems") == {
        "p[h=1]": "P (h = 1)",
        "p[h=2]": "P (h = 2)",
        "q[h=2]": "Q",
    }
    assert record.labels("algorithms") == {"a": "A (a)", "b": "A (b)", "c": "C"}


@pytest.mark.parametrize(
    ("problem", "message"),
    [
        (named("p", "P", h=2), "holds 'P' with other parameters (h 1 → 2)"),
        (named("q", "P"), "holds 'P' with other parameters (name 'p' → 'q')"),
        (named("q", "p[h=1]"), "holds 'p[h=1]' with other parameters (name 'p' → 'q')"),
        (named("P", "Q"), "holds 'Q' with other parameters (name 'p' → 'P')"),
    ],
    ids=["label", "label of another", "label is a title", "title is a label"],
)
def test_a_name_of_another_problem_is_refused(problem, message):
    """Its label or its title, as either names a problem."""
    record, later = (
        record_of([variant], [named("a", "A")]) for variant in (named("p", "P", h=1), problem)
    )
    call = SimpleNamespace(name="s", about="", keep=None)
    with pytest.raises(Misuse, match=re.escape(message)):
        record.add_call(later.grids[0], call, {}, "run")
    assert (
        len(
            record.add_call(
                record_of([named("q", "Q")], [named("a", "A")]).grids[0], call, {}, "run"
            ).grids
        )
        == 2
    )


@pytest.mark.parametrize(
    ("before", "after", "way"),
    [
        (
            "{ckb-ucb: {V: 2, label: b}}",
            "{ckb-ucb: {V: 3, label: b}}",
            "or another label, or remove the folder$",
        ),
        (
            "{ckb-ucb: {V: 2, label: b}}, random",
            "{ckb-ucb: {V: 3, label: b}}",
            "what is superseded: .* b$",
        ),
        (
            "ckb-ucb, {ckb-ucb: {V: 2, label: b}}",
            "{ckb-ucb: {V: 3, label: ckb-ucb}}",
            "or another label$",
        ),
    ],
)
def test_what_is_advised_removes_nothing_else(write_suite, tmp_path, before, after, way):
    """Where no word means what is superseded alone, there is no such advice."""
    text = "suite: s\nhorizon: 3\nseeds: 1\nproblems: [gramacy]\nalgorithms: [{}]\n"
    cbobench.run(write_suite(text.format(before)), out=tmp_path / "run", cpus=0)
    with pytest.raises(Misuse, match=way):
        cbobench.run(write_suite(text.format(after)), out=tmp_path / "run", cpus=0)


SPELT = "suite: o\nhorizon: 5\nseeds: {seeds}\nproblems:\n{problems}algorithms: [random, oracle]\n"


def test_cells_of_two_spellings_are_named_alike(write_suite, tmp_path):
    """Six seeds under one spelling, then three of them under another: one problem, spelt as
    last.
    """
    first = write_suite(SPELT.format(seeds=6, problems="  - rkhs-1d\n"), "one.yaml")
    second = write_suite(SPELT.format(seeds=3, problems="  - rkhs-1d: {h: 0.5}\n"), "two.yaml")
    cbobench.run(first, out=tmp_path / "o", cpus=0)
    assert cbobench.run(second, out=tmp_path / "o", cpus=0).played == 0
    frame = summary(Run(tmp_path / "o"))
    assert frame[["problem", "n", "expected"]].values.tolist() == [["rkhs-1d[h=0.5]", 6, 6]] * 2
    assert len(cbobench.load_cells(tmp_path / "o", problem="rkhs-1d")) == 12


def test_what_is_chosen_goes_by_todays_labels(write_suite, tmp_path):
    """Another horizon, and the label has gone to another problem: it stands for that one alone."""
    problem = "  - rkhs-1d: {{h: {}, label: {}}}\n".format
    suite = SPELT.replace("horizon: 5", "horizon: {horizon}")
    first = suite.format(horizon=5, seeds=1, problems=problem(0.25, "syn"))
    second = suite.format(horizon=6, seeds=1, problems=problem(0.25, "old") + problem(0.5, "syn"))
    for name, text in (("one.yaml", first), ("two.yaml", second)):
        cbobench.run(write_suite(text, name), out=tmp_path / "o", cpus=0)
    run = Run(tmp_path / "o")
    assert {*run.only("syn").cells["problem"]} == {"rkhs-1d[h=0.5]"}
    assert {*run.only("old/*").cells["horizon"]} == {5, 6}
    assert len(run.only("rkhs-1d").cells) == len(run.cells) == 6
    with pytest.raises(
        Misuse,
        match="unknown pair 'sin'; did you mean 'syn'.; allowed: old, oracle, random, rkhs-1d, "
        "syn;",
    ):
        run.only("sin")
    with pytest.raises(
        Misuse, match="unknown problem 'sin'; did you mean 'syn'.; allowed: old, rkhs-1d, syn$"
    ):
        run.titles("problem", "sin")


def test_a_value_that_disappears_is_a_change(write_suite, tmp_path, monkeypatch):
    """A tolerance that a class no longer declares: the same title would stand for two problems."""
    (tmp_path / "toy_tolerant.py").write_text(
        "from cbobench.problems.rkhs import RKHS1D\n\n\nclass Toy(RKHS1D):\n    "
        "feasibility_tolerance = 1e-12\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    suite = write_suite(SPELT.format(seeds=2, problems="  - toy_tolerant:Toy\n"))
    cbobench.run(suite, out=tmp_path / "o", cpus=0)
    assert set(cbobench.load_cells(tmp_path / "o")["feasibility_tolerance"]) == {1e-12}
    import toy_tolerant

    for value, message in (
        (0.0, r"\(feasibility_tolerance 1e-12 → None\)"),
        (-1.0, "feasibility_tolerance is -1.0; it must be at least 0"),
    ):
        monkeypatch.setattr(toy_tolerant.Toy, "feasibility_tolerance", value)
        with pytest.raises(Misuse, match=message):
            cbobench.run(suite, out=tmp_path / "o", cpus=0)


def test_a_wrong_option_of_run_is_a_line(write_suite):
    suite = write_suite(SPELT.format(seeds=2, problems="  - rkhs-1d\n"))
    for options, message in (
        ({"cpu": 0}, "unknown option 'cpu'; did you mean 'cpus'"),
        ({"seeds": [0, 5]}, r"seeds is \[0, 5\]; it must be a whole number"),
        ({"again": "stael"}, "unknown kind of cell to play again 'stael'; did you mean 'stale'"),
    ):
        with pytest.raises(Misuse, match=message):
            cbobench.run(suite, **options)
