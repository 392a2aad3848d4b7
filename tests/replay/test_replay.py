"""Replays of published cells: equal where nothing changed; a planted change and a changed method
are found.
"""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

import cbobench
from cbobench.algorithms.improvement import ConstrainedEI as CEI
from cbobench.cli import main
from cbobench.errors import Misuse
from cbobench.replay.replay import ReplayOptions, plan_replay, replay
from cbobench.replay.sources import Rounds, Source
from cbobench.replay.text import describe_replay, sum_rounds
from cbobench.results.bundle import open_run
from cbobench.results.export import export
from cbobench.results.history import carries_history
from tests.conftest import ROOT
from tests.results.forging import rewrite_bundle, set_column

SUITE = {
    "suite": "replayed", "horizon": 8, "seeds": 12, "record": "all",
    "problems": ["gramacy", {"rkhs-1d": {"h": 0.25}}], "algorithms": ["cei", "random", "sobol"],
}  # fmt: skip


MINE = """from dataclasses import dataclass

from cbobench.algorithms.asktell import AskTell


class Middle:
    def __init__(self, given):
        self.given = given

    def ask(self):
        return self.given.generator.uniform(self.given.low, self.given.high)

    def tell(self, x, f, g):
        pass


@dataclass(kw_only=True)
class Mine(AskTell):
    source, about = "mine", "any point"

    def optimiser(self, given):
        return Middle(given)
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("replay") / "run"
    cbobench.run(SUITE, out=folder, cpus=0)
    return folder


@pytest.fixture(scope="module")
def bundle(run):
    return run.parent / export(run, run.parent / "b.zip").file


def states(replayed):
    return {outcome.candidate.cell.id: outcome.state for outcome in replayed.outcomes}


def test_nothing_differs_where_nothing_changed(run, bundle, capsys):
    assert main(["verify", str(bundle), "--replay", "20", "--seed", "7"]) == 0
    output = capsys.readouterr().out
    assert "\n20 of 72 cells replayed: 20 equal\n" in output
    assert output.startswith("to the last bit: the same numpy ")
    assert "drawn with --seed 7: gramacy / cei seeds " in output
    replayed = replay([str(run)], 72, by_round=True)
    assert not replayed.differs
    assert sum_rounds(replayed.outcomes) == Rounds(same=72 * 8)
    assert main(["verify", str(bundle), "--replay", "5", "--by-round", "--format", "json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert all(
        carries_history(cell["cell"]) and cell["rounds"]["same"] == 8
        for cell in content["replayed"]
    )


def test_a_seed_draws_the_same_cells(bundle):
    first, repeated, of_another_seed = (replay([str(bundle)], 4, seed=seed) for seed in (1, 1, 2))
    assert states(first) == states(repeated) != states(of_another_seed)
    assert replay([str(bundle)], 1).drawn.seed != replay([str(bundle)], 1).drawn.seed, (
        "nobody can foresee the draw"
    )


def planted(column, row):
    """A change of one number of one row."""

    def change(table):
        values = table[column].to_pylist()
        values[row] = (
            [values[row][0] + 1e-9, *values[row][1:]]
            if isinstance(values[row], list)
            else (
                f"{int(values[row], 16) ^ 1:032x}"
                if isinstance(values[row], str)
                else values[row] + 1e-9
            )
        )
        return set_column(table, column, values)

    return change


@pytest.mark.parametrize(
    ("kind", "column", "row", "message"),
    [
        ("digests", "digest", 0, "its actions, observations or recommendation|is not its digest's"),
        ("cells", "regret", 5, "the play is the same, but in the end: R is "),
        ("cells", "recommended_f", 5, "the play is the same, but in the end: recommended_f is "),
        (
            "rounds",
            "violation",
            9,
            "the play is the same, but of the stored rounds from round .* on: V is ",
        ),
        (
            "improvements",
            "simple_regret",
            4,
            "the play is the same, but of the stored rounds from round .* on: r is ",
        ),
        ("history", "observed_f", 3, "the history of the cell [0-9a-f]{16} is not its digest's"),
    ],
)
def test_a_planted_change_is_found_when_its_cell_is_drawn(
    bundle, tmp_path, capsys, kind, column, row, message
):
    changed = rewrite_bundle(bundle, tmp_path / "changed.zip", {kind: planted(column, row)})
    cell = next(iter(open_run(changed).row_groups(kind, "bundle", ["cell"])))["cell"][row].as_py()
    replayed = replay([str(changed)], 72, seed=0)
    differing = {
        outcome.candidate.cell.id: outcome.text
        for outcome in replayed.outcomes
        if outcome.state == "differs"
    }
    assert cell in differing
    assert re.search(message, differing[cell])
    if kind != "history":  # which damages the file, so that none of the pair is believed
        assert kind == "digests" or [*differing] == [cell]
    assert main(["verify", str(changed), "--replay", "72"]) == 1
    capsys.readouterr()


def flipped(self, belief):
    """The score of cei with another sign."""
    return -original(self, belief)


original = CEI.score


def test_a_method_changed_by_one_sign_makes_both_ways_fail(bundle, run, monkeypatch, capsys):
    monkeypatch.setattr(CEI, "score", flipped)
    assert main(["verify", str(bundle), "--replay", "72", "--seed", "0"]) == 1
    output = capsys.readouterr().out
    assert "72 of 72 cells replayed: " in output
    assert "gramacy / cei seed 0 (b.zip): " in output
    assert "random seed 0 (b.zip): " not in output
    replayed = replay([str(run)], 72, by_round=True)
    assert {
        o.candidate.cell.pair.algorithm.name for o in replayed.outcomes if o.state == "differs"
    } == {"cei"}
    assert sum_rounds(replayed.outcomes).others > 50
    assert any("; its score is" in outcome.text for outcome in replayed.outcomes)


def test_the_first_round_that_differs_is_said(run, monkeypatch):
    def late(self, t, actions, feedback):
        tell(self, t, actions, feedback)
        if t == 5:
            self.posterior.update(self.chosen, self.targets(feedback))

    tell = CEI.tell
    monkeypatch.setattr(CEI, "tell", late)
    replayed = replay([str(run)], 72)
    texts = [outcome.text for outcome in replayed.outcomes if outcome.state == "differs"]
    assert texts
    assert all("from round " in text and "(by " in text for text in texts)
    assert not any(f"from round {t} on" in text for text in texts for t in range(1, 6))


def test_other_libraries_choose_the_second_way(bundle, monkeypatch):
    monkeypatch.setattr("cbobench.replay.sources.other_versions", lambda recorded: True)
    replayed = replay([str(bundle)], 5, seed=0)
    assert {outcome.candidate.way for outcome in replayed.outcomes} == {"rounds"}
    assert not replayed.differs
    description = "\n".join(describe_replay(replayed))
    assert (
        "round by round on the published history, as libraries or arithmetic are others"
        in description
    )
    unchecked = replayed.drawn.unchecked
    assert unchecked
    assert description.endswith(
        f"\nchecked: 5 of {5 + unchecked} drawn cells; not checked for lack of a history: "
        f"{unchecked}"
    )


def test_what_cannot_be_replayed_is_named_and_does_not_fail(bundle, monkeypatch, capsys):
    def refuse(self, problem):
        raise Misuse("it needs cma, not installed here")

    monkeypatch.setattr(CEI, "check", refuse)
    assert main(["verify", str(bundle), "--replay", "72"]) == 0
    output = capsys.readouterr().out
    assert "48 of 72 cells replayed: 48 equal" in output
    assert (
        "  12 cells cannot be replayed here: gramacy / cei: it needs cma, not installed here"
        in output
    )


def test_a_replay_that_replays_nothing_confirms_nothing(tmp_path, monkeypatch, capsys):
    (tmp_path / "mine.py").write_text(MINE)
    monkeypatch.chdir(tmp_path)
    suite = SUITE | {"seeds": 2, "problems": ["gramacy"], "algorithms": ["mine:Mine"]}
    export(cbobench.run(suite, out="run", cpus=0).folder, tmp_path / "mine.zip")
    assert main(["verify", "mine.zip", "--replay", "5"]) == 1
    output = capsys.readouterr().out
    assert "0 of 2 cells replayed: 0 equal" in output
    assert "nothing is confirmed, as none of the drawn cells can be replayed: go where" in output
    assert "add --imports, which runs their code" in output
    assert main(["verify", "mine.zip", "--replay", "5", "--imports"]) == 0
    output = capsys.readouterr().out
    assert "2 of 2 cells replayed: 2 equal" in output
    assert "nothing is confirmed" not in output


def test_a_replay_without_a_library_confirms_nothing(bundle, monkeypatch, capsys):
    def refuse(method, problem):
        raise Misuse("it needs cma, not installed here")

    monkeypatch.setattr("cbobench.replay.replay.check_needs", refuse)
    assert main(["verify", str(bundle), "--replay", "3", "--seed", "0"]) == 1
    assert "can be replayed: set up what the lines above name" in capsys.readouterr().out


def test_a_damaged_bundle_is_named_and_the_rest_goes_on(bundle, tmp_path, capsys):
    cut = tmp_path / "cut.zip"
    cut.write_bytes(bundle.read_bytes()[:1000])
    assert main(["verify", str(cut), str(bundle), "--replay", "3"]) == 1
    output = capsys.readouterr().out
    assert "3 of 72 cells replayed: 3 equal" in output
    assert f"  cannot be read: {cut} is a damaged bundle" in output
    assert main(["verify", str(cut), "--replay", "3"]) == 1
    assert "is a damaged bundle" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--replay", "0"], "--replay is 0; it must be a whole number of cells, at least 1"),
        (["--replay", "3", "--seed", "-1"], "--seed is -1; it must be"),
        (["--replay", "3", "--repair"], "leave one out"),
        (["--seed", "3"], "--seed is about --replay; add --replay K"),
        (["other"], "2 runs are given; allowed: one, or several with --replay K"),
    ],
)
def test_wrong_options_are_a_line(bundle, capsys, arguments, message):
    assert main(["verify", str(bundle), *arguments]) == 2
    assert message in capsys.readouterr().err


def test_an_initial_design_and_pending_evaluations_are_asked_by_round(tmp_path):
    suite = SUITE | {"seeds": 3, "initial": {"sobol": 3}, "problems": ["gramacy"]}
    suite |= {"algorithms": ["ckb-ucb", "scbo", "random"]}
    for name, settings in (("alone", {}), ("batch", {"parallel": {"points": 2, "as": "batch"}})):
        run = cbobench.run(suite | settings, out=tmp_path / name, cpus=0)
        replayed = replay([str(run.folder)], 9, by_round=True)
        assert sum_rounds(replayed.outcomes) == Rounds(same=9 * 8), [
            outcome.text for outcome in replayed.outcomes
        ]
        assert np.all([outcome.state == "equal" for outcome in replayed.outcomes])


STORED = sorted((ROOT / "docs" / "results").glob("*.zip"))


def test_what_the_stored_results_say_of_themselves_is_so():
    assert STORED
    assert [line for bundle in STORED for line in Source.open(str(bundle)).contradictions] == []


def test_stored_plays_are_what_is_played_today_but_for_older_recommendations():
    """Whatever rule recommends today; with other libraries or arithmetic another seed may be
    another play.
    """
    bundle = next(bundle for bundle in STORED if bundle.name == "low-light.zip")
    plan = plan_replay(ReplayOptions([str(bundle)], 3, seed=4))
    if any(candidate.way != "bits" for candidate in plan.drawn.candidates):
        pytest.skip("the libraries or the arithmetic are others here")
    replayed = replay([str(bundle)], 3, seed=4)
    assert {outcome.state for outcome in replayed.outcomes} <= {"equal", "unplayable"}
    assert {outcome.recommendation for outcome in replayed.outcomes} <= {"same", "older", "unknown"}
