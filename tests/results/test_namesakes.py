"""A label stands for one thing in a run, however suites spell it and whatever a user's class says
of itself.
"""

from __future__ import annotations

import re
import shutil
from types import SimpleNamespace

import pytest

import cbobench
from cbobench.errors import Misuse
from cbobench.report.load import Run
from cbobench.report.tables.status import look
from cbobench.report.tables.summary import summary
from cbobench.results.folder import open_run
from cbobench.results.manifest import Manifest
from cbobench.suite.cells import Grid, Pair
from cbobench.suite.variants import Variant
from tests.helpers import play_here
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
    play_here(folder / "suite.yaml", folder / "run", block=2)
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
        r"30(\.0)?\); give another --out or another label$"
    )
    with pytest.raises(Misuse, match=says):
        play_here(suite, run)
    assert len(cbobench.load_cells(run)) == 16
    assert (
        play_here(
            changed(folder, SUITE.format(at_most=30).replace("conf\n", "conf-30\n")), run
        ).played
        == 8
    )


def test_two_variants_of_one_label_are_told_apart_by_what_differs(folder, monkeypatch):
    """In runs of versions that did not refuse them."""
    monkeypatch.setattr(Manifest, "_refuse_namesakes", lambda *arguments: None)
    play_here(changed(folder, SUITE.format(at_most=30)), folder / "run")
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
    return Manifest("s", "", None, (Grid((*problems,), (*algorithms,), 7, (1,), pairs),), ())


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
    call = SimpleNamespace(name="s", about="", keep=None, floor=None)
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


def test_a_read_label_that_is_another_methods_name_has_its_title_beside_it():
    """No table lets a method stand under the name of another one."""
    stored = record_of([named("p", "P")], [named("random", "CEI"), named("cei", "cei")]).to_json()
    record = Manifest.from_json(stored, "run.json")
    assert record.labels("algorithms") == {"random": "CEI (random)", "cei": "cei"}
    assert Manifest.from_json(record.to_json(), "run.json") == record


def test_what_the_latest_suite_does_not_name_is_left_out_in_a_line(write_suite, tmp_path):
    """As if it had never been asked for, even after a call for a part of the suite."""
    wide = write_suite(SPELT.format(seeds=3, problems="  - rkhs-1d\n"))
    play_here(wide, tmp_path / "run")
    narrow = write_suite(wide.read_text().replace(", oracle", ", ckb-ucb"))
    play_here(narrow, tmp_path / "run")
    play_here(narrow, tmp_path / "run", only="*/random")
    play_here(narrow, tmp_path / "fresh")
    kept, fresh = (Run(tmp_path / name) for name in ("run", "fresh"))
    assert (kept.cells["cell"] == fresh.cells["cell"]).all()
    says = "not shown: 3 cells of rkhs-1d / oracle, which the suite no longer names"
    assert says in " ".join(str(cbobench.compare(kept)).split())
    assert "not shown" not in str(cbobench.compare(fresh))
    status = look(tmp_path / "run")
    assert status.state.counts()["done"] == 6
    assert any(says in line for line in status.describe())


SPELT = "suite: o\nhorizon: 5\nseeds: {seeds}\nproblems:\n{problems}algorithms: [random, oracle]\n"


def test_cells_of_two_spellings_are_named_alike(write_suite, tmp_path):
    """Six seeds under one spelling, then three of them under another: one problem, spelt as
    last.
    """
    first = write_suite(SPELT.format(seeds=6, problems="  - rkhs-1d\n"), "one.yaml")
    second = write_suite(SPELT.format(seeds=3, problems="  - rkhs-1d: {h: 0.5}\n"), "two.yaml")
    play_here(first, tmp_path / "o")
    assert play_here(second, tmp_path / "o").played == 0
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
        play_here(write_suite(text, name), tmp_path / "o")
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
        "from cbobench.problems.rkhs.functions import RKHS1D\n\n\nclass Toy(RKHS1D):\n    "
        "feasibility_tolerance = 1e-12\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    suite = write_suite(SPELT.format(seeds=2, problems="  - toy_tolerant:Toy\n"))
    play_here(suite, tmp_path / "o")
    assert set(cbobench.load_cells(tmp_path / "o")["feasibility_tolerance"]) == {1e-12}
    import toy_tolerant

    for value, message in (
        (0.0, r"\(feasibility_tolerance 1e-12 → None\)"),
        (-1.0, "feasibility_tolerance is -1.0; it must be at least 0"),
    ):
        monkeypatch.setattr(toy_tolerant.Toy, "feasibility_tolerance", value)
        with pytest.raises(Misuse, match=message):
            play_here(suite, tmp_path / "o")
