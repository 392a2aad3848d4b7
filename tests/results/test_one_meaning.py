"""A name means one thing in a run, however suites spell it and whatever a user's class says of itself."""

from __future__ import annotations

import pytest

import cbobench
from cbobench.errors import Misuse
from cbobench.report.load import Run
from cbobench.report.summary import summary

SUITE = "suite: o\nhorizon: 5\nseeds: {seeds}\nproblems:\n{problems}algorithms: [random, oracle]\n"


def test_cells_of_two_spellings_are_named_alike(write_suite, tmp_path):
    """Six seeds under one spelling, then three of them under another: one problem, spelt as last."""
    first = write_suite(SUITE.format(seeds=6, problems="  - rkhs-1d\n"), "one.yaml")
    second = write_suite(SUITE.format(seeds=3, problems="  - rkhs-1d: {h: 0.5}\n"), "two.yaml")
    cbobench.run(first, out=tmp_path / "o", cpus=0)
    assert cbobench.run(second, out=tmp_path / "o", cpus=0).played == 0
    frame = summary(Run(tmp_path / "o"))
    assert frame[["problem", "n", "expected"]].values.tolist() == [["rkhs-1d[h=0.5]", 6, 6]] * 2
    assert len(cbobench.load_cells(tmp_path / "o", problem="rkhs-1d")) == 12


def test_what_is_chosen_goes_by_todays_labels(write_suite, tmp_path):
    """Another horizon, and the label has gone to another problem: it stands for that one alone."""
    problem = "  - rkhs-1d: {{h: {}, label: {}}}\n".format
    suite = SUITE.replace("horizon: 5", "horizon: {horizon}")
    first = suite.format(horizon=5, seeds=1, problems=problem(0.25, "syn"))
    second = suite.format(horizon=6, seeds=1, problems=problem(0.25, "old") + problem(0.5, "syn"))
    for name, text in (("one.yaml", first), ("two.yaml", second)):
        cbobench.run(write_suite(text, name), out=tmp_path / "o", cpus=0)
    run = Run(tmp_path / "o")
    assert {*run.only("syn").cells["problem"]} == {"rkhs-1d[h=0.5]"}
    assert {*run.only("old/*").cells["horizon"]} == {5, 6}
    assert len(run.only("rkhs-1d").cells) == len(run.cells) == 6
    with pytest.raises(
        Misuse, match="unknown pair 'sin'; did you mean 'syn'.; allowed: old, oracle, random, rkhs-1d, syn;"
    ):
        run.only("sin")
    with pytest.raises(Misuse, match="unknown problem 'sin'; did you mean 'syn'.; allowed: old, rkhs-1d, syn$"):
        run.titles("problem", "sin")


def test_a_value_that_disappears_is_a_change(write_suite, tmp_path, monkeypatch):
    """A tolerance that a class no longer declares: the same title would stand for two problems."""
    (tmp_path / "toy_tolerant.py").write_text(
        "from cbobench.problems.rkhs import RKHS1D\n\n\nclass Toy(RKHS1D):\n    feasibility_tolerance = 1e-12\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    suite = write_suite(SUITE.format(seeds=2, problems="  - toy_tolerant:Toy\n"))
    cbobench.run(suite, out=tmp_path / "o", cpus=0)
    assert set(cbobench.load_cells(tmp_path / "o")["feasibility_tolerance"]) == {1e-12}
    import toy_tolerant

    for value, message in ((0.0, r"\(feasibility_tolerance 1e-12 → None\)"),
                           (-1.0, "feasibility_tolerance is -1.0; it must be at least 0")):  # fmt: skip
        monkeypatch.setattr(toy_tolerant.Toy, "feasibility_tolerance", value)
        with pytest.raises(Misuse, match=message):
            cbobench.run(suite, out=tmp_path / "o", cpus=0)


SHAPES = '''
from cbobench.algorithms.references import Random


class Shapes(Random):
    """Says things of the wrong shape."""

    @property
    def cap_hits(self):
        return 3
'''


def test_a_wrong_option_of_run_is_a_line(write_suite):
    suite = write_suite(SUITE.format(seeds=2, problems="  - rkhs-1d\n"))
    for options, message in (
        ({"cpu": 0}, "unknown option 'cpu'; did you mean 'cpus'"),
        ({"seeds": [0, 5]}, r"seeds is \[0, 5\]; it must be a whole number"),
        ({"again": "stael"}, "unknown kind of cell to play again 'stael'; did you mean 'stale'"),
    ):
        with pytest.raises(Misuse, match=message):
            cbobench.run(suite, **options)
