"""The papers' suites are kept as bundles: which rounds these hold, when one is true, and what
claims say of them.
"""

from __future__ import annotations

import pytest

import cbobench
from analysis import bundles, shards
from analysis.bundles import read_shards
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
SHARDS = read_shards("papers")
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
    for module in (bundles, shards):
        monkeypatch.setattr(module, "PUBLISHED", tmp_path)
    monkeypatch.setattr(shards, "RUNS", tmp_path / "runs")
    (tmp_path / "shards.yaml").write_text(f"papers:\n  {SUITE}: {{every: 5}}\n")
    return tmp_path


def test_every_suite_of_the_papers_has_a_shard_of_its_name():
    suites = [name for name in resources.suites() if "_2022_" in name]
    assert sorted(SHARDS) == sorted(suites)


@pytest.mark.parametrize("suite", [*SHARDS])
def test_a_bundle_keeps_the_rounds_at_which_claims_look(suite):
    """The last recorded rounds up to T / 4 and T; with ADMMBO up to its last ones."""
    text = yamlio.read(resources.suites()[suite])
    horizon, record = text["horizon"], text["record"]
    recorded = recorded_rounds(horizon, None if record == "all" else record["rounds"])
    ends = [horizon, *(LAST_OF_ADMMBO if "shi_eryilmaz" in suite else ())]
    looked_at = [max(t for t in recorded if t <= end / part) for end in ends for part in (1, 4)]
    assert horizon <= shards.LONGEST
    assert {*looked_at} <= {*shards.rounds_of(SHARDS[suite]), horizon}


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
    said = {"label": "", "place": "", "horizon": 20, "expected": 2}
    play, whole = (Play(one, problem, algorithm, **said) for one in (run, Run(str(played))))
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
    monkeypatch.setattr(shards, "run_until", lambda words, deadline: main([*words, *short]))
    monkeypatch.setattr(shards, "find_edits", lambda *but: "")
    asked = {SUITE: {"every": 5}}
    assert shards.choose_next(asked) == [SUITE]
    assert shards.renew_shard(SUITE, asked[SUITE]) == f"Play {SUITE}: 9 of 9 cells"
    assert bundles.is_whole(SUITE, asked[SUITE])
    kept = cbobench.load_rounds(bundles.bundle_of(SUITE), ["regret"])["t"]
    assert sorted({*kept}) == [1, 5, 10, 15, 20]
    assert f"| {chr(0x2013)} |" in bundles.tabulate_bundles([SUITE], "there")
    (listed,) = (folder / "shards.yaml").read_text().splitlines()[1:]
    first = bundles.digest_of(bundles.bundle_of(SUITE))
    assert listed == f"  {SUITE}: {{every: 5, sha256: {first}}}"

    assert shards.choose_next(asked) == [SUITE]
    assert shards.renew_shard(SUITE, asked[SUITE]) == f"Confirm {SUITE} by 10 drawn cells"
    assert ": 9 equal" in capsys.readouterr().out
    assert shards.choose_next(asked) == []
    table = bundles.tabulate_bundles([SUITE, "never_played"], "there")
    assert f"[`{SUITE}`](there/{SUITE}.zip)" in table
    assert "(9 cells)" in table
    assert "never_played" not in table

    bundles.keep_run(SUITE, shards.RUNS / SUITE, [1])
    assert shards.choose_next(asked) == [SUITE], "another bundle was confirmed"
    assert first not in (folder / "shards.yaml").read_text()
    monkeypatch.setattr(shards, "confirm_shard", lambda name, cells: False)
    monkeypatch.setattr(shards, "play_shard", lambda *arguments: print("played anew"))
    shards.renew_shard(SUITE, asked[SUITE])
    assert capsys.readouterr().out.endswith("played anew\n")


def test_a_bundle_that_says_the_same_is_left_as_it_is(folder, played, tmp_path, capsys):
    """Whoever plays it anew, and whenever; another play of a cell, or another round, is no such."""
    bundles.keep_run(SUITE, played, [1, 5])
    before = bundles.bundle_of(SUITE).read_bytes()
    again = tmp_path / "again"
    words = ["run", SUITE, "--out", str(again), "--horizon", "20", "--cpus", "0"]
    assert main([*words, "--seeds", "2"]) == 0
    bundles.keep_run(SUITE, again, [1, 5])
    assert bundles.bundle_of(SUITE).read_bytes() == before
    assert capsys.readouterr().out.endswith("kB, as before\n")
    assert export(again, tmp_path / "new.zip", [1, 5])
    assert (tmp_path / "new.zip").read_bytes() != before, "negative control: by its own times"
    bundles.keep_run(SUITE, again, [1])
    assert bundles.bundle_of(SUITE).read_bytes() != before


def test_every_bundle_is_the_one_that_is_listed():
    listed = [*read_shards("field").items(), *read_shards("papers").items()]
    for name, shard in listed:
        bundle = bundles.bundle_of(name)
        assert shard.get("sha256") == (bundles.digest_of(bundle) if bundle.exists() else None)
    assert len({*dict(listed)}) == len(listed)
