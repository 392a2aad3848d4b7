"""Pairs that cannot be played: refused, left out by --only, or left out by the suite and said
everywhere.
"""

from __future__ import annotations

import json

import pytest

import cbobench
from cbobench.cli import main
from cbobench.errors import Misuse
from cbobench.results.folder import open_run
from cbobench.results.manifest import Manifest
from tests.helpers import load, play_here

SUITE = """\
suite: u
horizon: 5
seeds: 2
skip: unplayable
problems: [gramacy, rkhs-1d]
algorithms: [random, safeopt, scgp-ucb]
"""
SAFE = (
    "safeopt on gramacy: it needs a finite action set and a safe seed set, which the problem lacks"
)
SHOWN = (
    "scgp-ucb on gramacy, rkhs-1d: it needs full information of the constraints, which the "
    "problem lacks"
)


@pytest.fixture
def run(write_suite, tmp_path):
    play_here(write_suite(SUITE), tmp_path / "run")
    return tmp_path / "run"


def test_tables_and_status_say_it(run, capsys):
    assert main(["status", str(run)]) == 0
    assert f"  not played: {SAFE}\n  not played: {SHOWN}\n" in capsys.readouterr().out
    assert main(["status", str(run), "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["unplayable"] == [SAFE, SHOWN]
    for options in ([], ["--against", "random"]):
        assert main(["compare", str(run), *options]) == 0
        assert " ".join(capsys.readouterr().out.split()).count("not played: ") == 2
    assert main(["compare", str(run), "--format", "csv"]) == 0
    assert capsys.readouterr().err == f"not played: {SAFE}\nnot played: {SHOWN}\n"
    assert cbobench.compare(run, only="rkhs-1d").unplayable == (SHOWN.replace("gramacy, ", ""),)


def test_a_run_says_it_before_it_plays(write_suite, capsys):
    suite = str(write_suite(SUITE))
    assert main(["run", suite, "--dry-run"]) == 0
    assert capsys.readouterr().out.endswith(f"not played: {SAFE}\nnot played: {SHOWN}\n")
    notes: list[str] = []
    cbobench.run(suite, cpus=0, on_note=notes.append)
    assert notes[:2] == [f"not played: {SAFE}", f"not played: {SHOWN}"]


def test_what_becomes_playable_is_no_longer_left_out(run, write_suite):
    suite = write_suite(
        SUITE.replace("rkhs-1d]", "rkhs-1d: {full_information: true, label: shown}]")
    )
    assert load(suite).grid.unplayable
    extended = write_suite(SUITE.replace("gramacy", "gramacy: {grid: 5}"))
    play_here(extended, run)
    lines = Manifest.read(open_run(run)).unplayable
    assert lines == [SAFE, SHOWN.replace("rkhs-1d", "rkhs-1d, gramacy[grid=5]")]


def test_without_skip_the_pair_is_refused_with_what_to_do(write_suite):
    with pytest.raises(Misuse) as caught:
        load(write_suite(SUITE.replace("skip: unplayable\n", "")))
    assert "safeopt cannot play gramacy: it needs a finite action set" in str(caught.value)
    assert str(caught.value).endswith(
        "to leave such pairs out: --only, or `skip: unplayable` in the suite"
    )


@pytest.mark.parametrize("only", ["*/random", "rkhs-1d/safeopt"])
def test_only_is_applied_first(write_suite, only):
    grid = load(write_suite(SUITE.replace("skip: unplayable\n", "")), only=only).grid
    assert grid.pairs
    assert not grid.unplayable


def test_a_missing_extra_is_named_with_its_command(write_suite, monkeypatch):
    monkeypatch.setattr("cbobench.opponents.library.find_spec", lambda name: None)
    suite = SUITE.replace("skip: unplayable\n", "").replace(
        "[gramacy, rkhs-1d]", "[gramacy: {label: plant}]"
    )
    with pytest.raises(
        Misuse,
        match="optuna-tpe cannot play plant: it needs optuna, not installed here; .*optuna]'",
    ):
        load(write_suite(suite.replace("[random, safeopt, scgp-ucb]", "[random, optuna-tpe]")))
