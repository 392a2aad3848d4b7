"""The papers' suites are kept as bundles: which rounds these hold, when one is true, and what
claims say of them.
"""

from __future__ import annotations

import pytest

import cbobench
from analysis.papers import bundles, reproduction
from analysis.papers import play as papers
from cbobench import resources
from cbobench.cli import main
from cbobench.errors import CbobenchError
from cbobench.papers.claim_tables import as_record, claims_of, evaluate
from cbobench.papers.evidence import Play
from cbobench.play.block import recorded_rounds
from cbobench.report.load import Run
from cbobench.results.export import export
from cbobench.suite import yamlio

SUITE = "zhou_ji_2022_slack"
LAST_OF_ADMMBO = (90, 50)  # analysis/claims/shi_eryilmaz_2022.py


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """A paper's suite made short, as a run folder."""
    run = tmp_path_factory.mktemp("paper") / SUITE
    assert (
        main(["run", SUITE, "--out", str(run), *["--seeds", "2", "--horizon", "20", "--cpus", "0"]])
        == 0
    )
    return run


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder for bundles."""
    monkeypatch.setattr(bundles, "PUBLISHED", tmp_path)
    monkeypatch.setattr(papers, "RUNS", tmp_path / "runs")
    monkeypatch.setattr("analysis.shards.PUBLISHED", tmp_path)
    return tmp_path


def test_every_suite_of_the_papers_is_played_in_this_order():
    assert [*papers.read_suites()] == [*reproduction.suites()]


@pytest.mark.parametrize("suite", [*papers.read_suites()])
def test_a_bundle_keeps_the_rounds_at_which_claims_look(suite):
    """The last recorded rounds up to T / 4 and T; with ADMMBO up to its last ones."""
    text = yamlio.read(resources.suites()[suite])
    horizon, record = text["horizon"], text["record"]
    recorded = recorded_rounds(horizon, None if record == "all" else record["rounds"])
    ends = [horizon, *(LAST_OF_ADMMBO if "shi_eryilmaz" in suite else ())]
    looked_at = [max(t for t in recorded if t <= end / part) for end in ends for part in (1, 4)]
    assert horizon <= papers.LONGEST
    assert {*looked_at} <= {*papers.rounds_of(papers.read_suites()[suite]), horizon}


def test_claims_say_the_same_of_a_bundle_as_of_its_run(played, tmp_path):
    bundle = export(played, tmp_path / "short.zip", [1, 5]).file
    of_run, of_bundle = (
        [as_record(one) for one in evaluate([str(place)], claims_of(), draws=3)[0]]
        for place in (played, bundle)
    )
    assert of_run == of_bundle
    assert sum(bool(one["parts"]) for one in of_run) > 1


def test_a_round_that_a_bundle_has_not_is_named(played, tmp_path):
    run = Run(export(played, tmp_path / "short.zip", [1, 5]).file)
    problem, algorithm = (
        next(iter(run.record.variants(kind).values())) for kind in ("problems", "algorithms")
    )
    play, whole = (Play(one, problem, algorithm) for one in (run, Run(str(played))))
    for t in (1, 5, 5.9, 20):
        assert play.at("regret", t)[0] == whole.at("regret", t)[0] == int(t)
        assert play.at("regret", t)[1].equals(whole.at("regret", t)[1])
    with pytest.raises(CbobenchError, match="does not keep round 7, .*; give the run folder, or "):
        play.at("regret", 7)


@pytest.mark.slow
def test_a_suite_is_played_once_and_then_confirmed(folder, monkeypatch, capsys):
    """First it is missing; then whole, and not confirmed; where a replay plays other bits it is
    played anew.
    """
    short = ["--seeds", "1", "--horizon", "20", "--cpus", "0"]
    monkeypatch.setattr("analysis.shards.run_until", lambda words, deadline: main([*words, *short]))
    monkeypatch.setattr("analysis.shards.find_edits", lambda *but: "")
    suites = {SUITE: {"every": 5}}
    assert papers.choose_next(suites) == [SUITE]
    papers.renew_suite(SUITE, papers.rounds_of(suites[SUITE]), False)
    assert bundles.is_whole(SUITE)
    kept = cbobench.load_rounds(bundles.bundle_of(SUITE), ["regret"])["t"]
    assert sorted({*kept}) == [1, 5, 10, 15, 20]
    assert f"| {chr(0x2013)} |" in bundles.tabulate_bundles([SUITE])

    assert papers.choose_next(suites) == [SUITE]
    papers.renew_suite(SUITE, papers.rounds_of(suites[SUITE]), False)
    assert ": 9 equal" in capsys.readouterr().out
    assert papers.choose_next(suites) == []
    table = bundles.tabulate_bundles([SUITE, "never_played"])
    assert f"[`{SUITE}`]" in table
    assert "(9 cells)" in table
    assert "yet: `never_played`" in table

    papers.keep_run(papers.RUNS / SUITE, bundles.bundle_of(SUITE), [1])
    assert papers.choose_next(suites) == [SUITE], "another bundle was confirmed"
    monkeypatch.setattr(papers, "confirm_shards", lambda names, cells: names)
    monkeypatch.setattr(papers, "play_suite", lambda *arguments: print("played anew"))
    papers.renew_suite(SUITE, [], False)
    assert capsys.readouterr().out.endswith("played anew\n")
