"""docs/field.md and its shards: the page is what the bundles say, and every shard names pairs that there are."""

import hashlib
import json
from types import SimpleNamespace

import field_page
import numpy as np
import pytest
import shards

import cbobench
from cbobench import resources
from cbobench.cli import main
from cbobench.replay.outcomes import Outcome
from cbobench.replay.replay import Replay
from cbobench.replay.sources import Draw
from cbobench.report.quantities import quantities

BUNDLES = sorted(shards.FOLDER.glob("*.zip"))


def test_the_page_is_what_the_bundles_say():
    assert field_page.PAGE.read_text(encoding="utf-8") == field_page.render_page(shards.FOLDER, shards.read_shards()), (
        "docs/field.md is not of these bundles: python docs/shards.py --render"
    )


def test_a_median_of_the_page_is_that_of_the_cells():
    cells = cbobench.load_cells(shards.bundle_of("low-ours"))
    for name, method in field_page.read_methods([shards.bundle_of("low-ours")], "simple_regret").items():
        own = cells[cells["algorithm"].str.startswith(name) & cells["problem"].str.startswith("welded-beam")]
        expected = own["simple_regret"].fillna(np.inf).median()
        medians, counts = field_page.medians_of({name: method}, ["welded-beam"])
        assert counts == [10]
        assert medians[0, 0] == pytest.approx(expected, rel=1e-12)


def test_medians_are_over_the_seeds_that_all_methods_have():
    few = field_page.Method({"p": {0: 1.0, 1: 3.0}})
    many = field_page.Method({"p": {0: 5.0, 1: 7.0, 2: 1e9}})
    medians, counts = field_page.medians_of({"few": few, "many": many}, ["p"])
    assert counts == [2]
    assert medians[:, 0].tolist() == [2.0, 6.0]


@pytest.mark.parametrize("name", list(shards.read_shards()))
def test_every_shard_names_pairs_of_a_shipped_suite(name):
    shard = shards.read_shards()[name]
    assert set(shard) <= {"suite", "only", "seeds"}
    assert resources.find_suite(shard["suite"]).exists()
    assert field_page.group_of(name) in field_page.GROUPS
    for pattern in shard["only"]:
        assert pattern == "*" or "/" in pattern


def test_a_shard_is_whole_only_with_all_its_cells(tmp_path, monkeypatch):
    assert BUNDLES, "no shard is kept"
    cells = shards.read_about("low-ours")["cells"]
    assert cells["done"] == cells["expected"] == 210
    assert shards.is_whole("low-ours")
    monkeypatch.setattr(shards, "FOLDER", tmp_path)
    assert not shards.is_whole("low-ours")
    assert shards.read_about("low-ours") is None


def test_only_the_bundle_that_was_replayed_is_confirmed(tmp_path):
    bundle = tmp_path / "low-ours.zip"
    bundle.write_bytes(b"played")
    digest = hashlib.sha256(b"played").hexdigest()
    confirmed = {"low-ours": {"bundle": digest, "commit": 40 * "a", "cells": 3}}
    assert field_page.confirmed_by(bundle, confirmed) == "aaaaaaa (3 cells)"
    bundle.write_bytes(b"played again")
    assert field_page.confirmed_by(bundle, confirmed) == "–"


def outcome(state="equal", way="bits"):
    return Outcome(SimpleNamespace(way=way), state)


@pytest.mark.parametrize(
    ("outcomes", "unread"),
    [
        ([outcome(), outcome("differs")], ()),
        ([outcome(), outcome("unplayable")], ()),
        ([outcome(), outcome(way="round")], ()),
        ([outcome()], ("bundle is damaged",)),
    ],
)
def test_what_confirms_a_shard_and_what_does_not(tmp_path, monkeypatch, outcomes, unread):
    monkeypatch.setattr(shards, "FOLDER", tmp_path)
    monkeypatch.setattr(shards, "describe_replay", lambda replayed: ["…"])
    monkeypatch.setattr(shards, "invocation", lambda command: {"commit": 40 * "b", "dirty": False, "at": "today"})
    for name in ("low-ours", "low-light", "ten-ours"):
        (tmp_path / f"{name}.zip").write_bytes(name.encode())
    drawn, bad = Draw((), 0, {}, 0, 0, 0), str(tmp_path / "low-light.zip")

    def replay(runs, cells):
        return Replay(drawn, *((tuple(outcomes), unread) if runs == [bad] else ((outcome(), outcome()), ())))

    monkeypatch.setattr(shards, "replay", replay)
    with pytest.raises(SystemExit, match="not confirmed: low-light"):
        shards.confirm_shards(["low-ours", "low-light", "ten-ours"], 2)
    confirmed = json.loads((tmp_path / field_page.CONFIRMED).read_text())
    assert sorted(confirmed) == ["low-ours", "ten-ours"], "the others are confirmed, before and after"
    assert field_page.confirmed_by(tmp_path / "ten-ours.zip", confirmed) == "bbbbbbb (2 cells)"


def test_code_without_a_commit_confirms_nothing(monkeypatch):
    monkeypatch.setattr(shards, "find_edits", lambda: " M cbobench/rng.py")
    monkeypatch.setattr(shards, "invocation", lambda command: {"commit": 40 * "b", "dirty": True, "at": "today"})
    with pytest.raises(SystemExit, match="commit first"):
        shards.confirm_shards(["low-ours"], 1)


def test_only_what_is_strictly_better_beats_ours():
    inf, nan = np.inf, np.nan
    medians = np.array([[1.0, inf, 2.0, nan], [1.0, inf, 1.0, inf], [5.0, 7.0, 9.0, nan], [9.0, 8.0, 9.0, nan]])
    names, problems = ["cei", "cma-es", "cobyla", "slsqp"], ["tie", "lost", "beaten", "never"]
    said = field_page.describe_standing(medians, names, problems)
    assert said.startswith("On 2 of 4 problems another method beats the best of `cei`: lost (`cobyla` 7.000 against ∞)")
    assert "beaten (`cma-es` 1.000 against 2.000)" in said
    assert "tie" not in said
    assert "never" not in said
    assert field_page.describe_standing(medians[1:], names[1:], problems) == "None of ours is played yet."
    few = field_page.describe_standing(medians[:2], names[:2], problems)
    assert few == "Beside `cei`, only `cma-es` is played yet.", "two methods make no field"
    assert field_page.describe_standing(medians[:2], ["cei", "random"], problems) == "No rival is played yet."


def test_runs_are_held_against_those_of_the_same_seed():
    reference = field_page.Method({"p": {0: 1.0, 1: 2.0}, "q": {0: 1.0}})
    method = field_page.Method({"p": {0: 0.5, 1: 2.0, 2: 0.0}, "q": {0: 3.0}, "r": {0: 0.0}})
    assert field_page.count_wins(method, reference) == "1/3"


def test_many_problems_are_summed_up_by_what_was_reached():
    targets = np.array(field_page.COCO_TARGETS)
    near, never = float(targets[9]), field_page.fill_unreached(np.array([np.nan]), quantities()["simple_regret"])[0]
    methods = {
        "near": field_page.Method({"p": {0: near}, "q": {0: near}}, [1.0], 2, 2),
        "never": field_page.Method({"p": {0: float(never)}, "q": {0: 1e9}}, [2.0], 2, 2),
    }
    text = field_page.sum_up(methods, ["p", "q"])
    share = 100 * (near <= targets).mean()
    assert f"| `near` | 1.00 | {share:.1f} % | 2/2 | 0.0 % | 2/2 |" in text
    assert "| `never` | 2.00 | 0.0 % | 0/2 | 50.0 % | 2/2 |" in text


@pytest.mark.parametrize("name", ["low-ours", "low-light", "noisy-ours", "noisy-light", "batches-ours"])
def test_drawn_cells_of_the_shards_are_played_again_bit_by_bit(name, capsys):
    """Those of BoTorch need PyTorch, and those of ten dimensions half a minute each: `make replay` draws from all."""
    assert main(["verify", str(shards.bundle_of(name)), "--replay", "2", "--seed", "3"]) == 0
    assert "2 equal" in capsys.readouterr().out
