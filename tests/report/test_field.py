"""docs/field.md and its shards: the page is what the bundles say, and every shard names pairs that
there are.
"""

import hashlib
import json
import re
import zipfile
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import cbobench
from cbobench import resources
from cbobench.cli import main
from cbobench.replay.replay import Replay
from cbobench.replay.sources import Draw, Outcome
from cbobench.report.load import Run
from cbobench.report.quantities import quantities
from docs.results import field_page, shards

NUMBERS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
BUNDLES = sorted(shards.FOLDER.glob("*.zip"))


def test_the_page_is_what_the_bundles_say():
    assert field_page.PAGE.read_text(encoding="utf-8") == field_page.render_page(
        shards.FOLDER, shards.read_shards()
    ), "docs/field.md is not of these bundles: python -m docs.results.shards --render"


def test_a_median_of_the_page_is_that_of_the_cells():
    cells = cbobench.load_cells(shards.bundle_of("low-ours"))
    for name, method in field_page.read_methods(
        [Run(shards.bundle_of("low-ours"))], "simple_regret"
    ).items():
        ours = cells[
            cells["algorithm"].str.startswith(name) & cells["problem"].str.startswith("welded-beam")
        ]
        expected = ours["simple_regret"].fillna(np.inf).median()
        medians, counts = field_page.medians_of({name: method}, ["welded-beam"])
        assert counts == [10]
        assert medians[0, 0] == pytest.approx(expected, rel=1e-12)


def test_a_rival_of_few_seeds_takes_no_seed_from_the_others():
    """Each table has the rivals of the same seeds, with ours on these; a rival is judged on the
    seeds it shares.
    """
    seeds = range(10)
    methods = {
        "cei": field_page.Method({"p": dict.fromkeys(seeds, 2.0) | {0: 0.5}}),
        "cobyla": field_page.Method({"p": dict.fromkeys(seeds, 1.0)}),
        "random": field_page.Method({"p": dict.fromkeys(seeds, 0.0)}),
        "botorch-cei": field_page.Method({"p": {0: 0.25, 1: 1.0, 2: 3.0}}),
        "botorch-nei": field_page.Method({"p": {0: 9.0, 1: 9.0, 2: 9.0}}),
    }
    many, sparse = field_page.split_tables(methods)
    assert list(many) == ["cei", "cobyla", "random"]
    assert list(sparse) == ["cei", "botorch-cei", "botorch-nei"]
    assert many["cei"].seeds == tuple(seeds)
    assert sparse["cei"].seeds == (0, 1, 2)
    assert "Medians over 10 seeds" in field_page.table_of(many, ["p"])
    assert "| `botorch-cei` | 1.00 | **1.000** | 2/3 |" in field_page.table_of(sparse, ["p"])
    assert field_page.find_defeats(methods, ["p"]) == [
        field_page.Defeat("p", "cobyla", 10, 1.0, "cei", 2.0, 9),
        field_page.Defeat("p", "botorch-cei", 3, 1.0, "cei", 2.0, 2),
    ]
    ours = {"cei": methods["cei"]}
    assert field_page.split_tables(ours) == [ours]
    strangers = ours | {"slsqp": field_page.Method({"p": {11: 0.0}})}
    assert field_page.find_defeats(strangers, ["p"]) == [], "no seed in common"


def test_a_table_of_many_problems_is_cut_into_two():
    problems = [f"problem-{j}" for j in range(8)]
    methods = {
        "cei": field_page.Method({problem: {0: 2.0} for problem in problems}),
        "cobyla": field_page.Method({problem: {0: 1.0} for problem in problems}),
    }
    _, first, second = field_page.table_of(methods, problems).split("\n\n")
    assert (
        first.splitlines()[0] == "| method | rank | problem-0 | problem-1 | problem-2 | problem-3 |"
    )
    assert (
        second.splitlines()[0]
        == "| method | problem-4 | problem-5 | problem-6 | problem-7 | beats cei |"
    )
    assert second.splitlines()[2] == "| `cobyla` |" + 4 * " **1.000** |" + " 8/8 |"
    assert second.splitlines()[3] == "| `cei` |" + 4 * " 2.000 |" + " – |"


def test_every_defeat_of_the_bundles_is_on_the_page():
    """Computed from the cells, beside the page's code: on pressure-vessel two rivals of ten seeds
    beat ours.
    """
    cells = pd.concat(
        cbobench.load_cells(shards.bundle_of(f"low-{part}")) for part in ("ours", "light")
    )
    cells = cells.assign(
        regret=cells["simple_regret"].fillna(np.inf), where=cells["problem"].str.partition("[")[0]
    )
    assert cells.groupby(["algorithm", "where"]).size().eq(10).all()
    medians = cells.groupby(["where", "algorithm"])["regret"].median().unstack()
    ours = [name for name in medians if name.partition("[")[0] in field_page.OURS]
    page = field_page.PAGE.read_text(encoding="utf-8").partition("\n## The same,")[0]
    listed = {
        tuple(pair)
        for pair in re.findall(r"^\| ([\w-]+) \| `([\w-]+)` .* of 10 seeds \|$", page, flags=re.M)
    }
    expected = {
        (problem, rival)
        for problem, row in medians.iterrows()
        for rival in set(medians) - {*ours, *field_page.PLAIN}
        if row[rival] < row[ours].min()
    }
    assert listed == expected
    assert {("pressure-vessel", "slsqp"), ("pressure-vessel", "cobyla")} <= listed


def test_readme_says_of_the_field_what_the_page_lists():
    readme = " ".join(
        (field_page.PAGE.parents[1] / "README.md").read_text(encoding="utf-8").split()
    )
    counts = []
    for group, rivals in (("low", ("slsqp", "cobyla")), ("noisy", ("botorch-cei", "botorch-nei"))):
        runs = [Run(bundle) for bundle in field_page.bundles_of(group, BUNDLES)]
        methods = field_page.read_methods(runs, "simple_regret")
        problems = {problem for method in methods.values() for problem in method.values}
        beaten = {
            item.problem
            for item in field_page.find_defeats(methods, sorted(problems))
            if item.rival in rivals
        }
        counts += [NUMBERS[len(beaten) - 1], NUMBERS[len(problems) - 1]]
    seeds = {NUMBERS[len(methods[name].seeds) - 1] for name in ("botorch-cei", "botorch-nei")}
    sparse, all_quiet, many, all_noisy = counts
    assert f"without noise `slsqp` or `cobyla` on {sparse} of {all_quiet} problems" in readme
    message = f"under noise BoTorch's methods by the best point on {many} of {all_noisy}"
    assert f"{message} ({' or '.join(seeds)} seeds)" in readme


def test_the_page_says_by_which_settings_the_theory_played():
    page = " ".join(field_page.PAGE.read_text(encoding="utf-8").split())
    theory, noisy = ([Run(shards.bundle_of(name))] for name in ("low-theory", "noisy-ours"))
    letter = (
        "Not by the letter of the papers: every width β is multiplied by 0.2 (`beta_scale`); B "
        "and G are the suprema "
        "of |f| and |g| over the box (`sup`), where theorems ask for norms."
    )
    assert page.count(letter) == 2
    assert field_page.describe_settings(noisy) == letter
    message = field_page.describe_settings(theory).removeprefix(letter)
    assert message.startswith(
        " The noise variance λ of the models is set to 0.0001 in `admmbo`, `ckb-ucb`, "
    )
    assert "By the letter" not in page


def test_who_plays_by_the_letter_is_not_said_to_depart_from_it(monkeypatch):
    settings: dict = {}
    variant = SimpleNamespace(settings=settings, values={})
    monkeypatch.setattr(
        field_page, "played_variants", lambda runs: {"ckb-ucb[kernel=fit]": variant}
    )
    settings |= {"beta_scale": 1.0, "B": "norm", "G": "norm", "lam": "theory"}
    assert field_page.describe_settings([]) == ""
    settings |= {"lam": 0.25}
    assert (
        field_page.describe_settings([])
        == "The noise variance λ of the models is set to 0.25 in `ckb-ucb`."
    )
    settings |= {"lam": "theory", "beta_scale": 0.5}
    assert field_page.describe_settings([]) == (
        "Not by the letter of the papers: every width β is multiplied by 0.5 (`beta_scale`)."
    )


def test_what_is_played_is_read_from_the_bundles():
    expected = {
        "low-light": "60 evaluations, the first 10 a Sobol design.",
        "ten-ours": "150 evaluations, the first 20 a Sobol design.",
        "batches-ours": "80 evaluations, the first 8 a Sobol design, in batches of 4: a batch "
        "is chosen "
        "before any of "
        "its results is known.",
    }
    for name, phrases in expected.items():
        assert field_page.describe_play([Run(shards.bundle_of(name))]) == phrases


def test_the_prose_has_no_numbers_of_its_own():
    names = r"`[^`]*`|\b(keane|ackley|ridge)-\d+|\bf5\b"
    assert (
        re.findall(r".*\d.*", re.sub(names, "", field_page.PROSE.read_text(encoding="utf-8"))) == []
    )
    for section in field_page.GROUPS.values():
        assert not re.search(r"\d", section.title + section.words), section.title


def test_a_work_tree_with_changes_is_seen():
    """Of every bundle, from its file alone."""
    page = field_page.PAGE.read_text(encoding="utf-8")
    changed = 0
    for bundle in BUNDLES:
        with zipfile.ZipFile(bundle) as archive:
            calls = json.loads(archive.read("bundle.json"))["calls"]
        (row,) = [line for line in page.splitlines() if line.startswith(f"| [`{bundle.stem}`]")]
        assert ("with changes" in row) == any(call["dirty"] for call in calls), bundle.stem
        changed += "with changes" in row
    assert f"{changed} of {len(BUNDLES)} shards were played *with changes*" in page
    calls = [
        {"commit": 40 * "a", "dirty": False},
        {"commit": 40 * "a", "dirty": True},
        {"commit": None},
    ]
    assert field_page.played_by({"calls": calls}) == "aaaaaaa, aaaaaaa with changes, unknown"


def test_medians_are_over_the_seeds_that_all_methods_have():
    few_cells = field_page.Method({"p": {0: 1.0, 1: 3.0}})
    many = field_page.Method({"p": {0: 5.0, 1: 7.0, 2: 1e9}})
    medians, counts = field_page.medians_of({"few": few_cells, "many": many}, ["p"])
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
    shard = shards.read_shards()["low-ours"]
    assert shards.is_whole("low-ours", shard)
    assert not shards.is_whole("low-ours", shard | {"seeds": 11})
    assert not shards.is_whole("low-ours", shard | {"only": ["*/cei", "*/never-begun"]})
    monkeypatch.setattr(shards, "FOLDER", tmp_path)
    assert not shards.is_whole("low-ours", shard)
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
    monkeypatch.setattr(
        shards, "invocation", lambda command: {"commit": 40 * "b", "dirty": False, "at": "today"}
    )
    for name in ("low-ours", "low-light", "ten-ours"):
        (tmp_path / f"{name}.zip").write_bytes(name.encode())
    drawn, unconfirmed = Draw((), 0, {}, 0, 0, 0), str(tmp_path / "low-light.zip")

    def replay(runs, cells):
        return Replay(
            drawn,
            *((tuple(outcomes), unread) if runs == [unconfirmed] else ((outcome(), outcome()), ())),
        )

    monkeypatch.setattr(shards, "replay", replay)
    assert shards.confirm_shards(["low-ours", "low-light", "ten-ours"], 2) == ["low-light"]
    confirmed = json.loads((tmp_path / field_page.CONFIRMED).read_text())
    assert sorted(confirmed) == ["low-ours", "ten-ours"], (
        "the others are confirmed, before and after"
    )
    assert field_page.confirmed_by(tmp_path / "ten-ours.zip", confirmed) == "bbbbbbb (2 cells)"


def test_code_without_a_commit_confirms_nothing(monkeypatch):
    monkeypatch.setattr(shards, "find_edits", lambda *but: " M cbobench/rng.py")
    monkeypatch.setattr(
        shards, "invocation", lambda command: {"commit": 40 * "b", "dirty": True, "at": "today"}
    )
    with pytest.raises(SystemExit, match="commit first"):
        shards.confirm_shards(["low-ours"], 1)


def test_only_what_is_strictly_better_beats_ours():
    never = float(field_page.fill_unreached(np.array([np.nan]), quantities()["simple_regret"])[0])
    problems = ["tie", "lost", "beaten", "never"]
    by_name = {
        "cei": [1.0, never, 2.0, never],
        "cma-es": [1.0, never, 1.0, never],
        "cobyla": [5.0, 7.0, 9.0, never],
        "slsqp": [9.0, 8.0, 1.5, never],
    }
    methods = {
        name: field_page.Method(
            {problem: {0: value} for problem, value in zip(problems, values, strict=True)}
        )
        for name, values in by_name.items()
    }
    defeats = field_page.find_defeats(methods, problems)
    assert [(item.problem, item.rival) for item in defeats] == [
        ("lost", "cobyla"),
        ("lost", "slsqp"),
        ("beaten", "cma-es"),
        ("beaten", "slsqp"),
    ], "all of them, not the best alone"
    assert "| lost | `cobyla` | 7.000 | `cei` | ∞ | 1 of 1 seed |" in field_page.list_defeats(
        defeats
    )
    message = field_page.describe_standing(methods, problems)
    assert message == "On 2 of 4 problems a rival has a better median than `cei`."
    without = {name: method for name, method in methods.items() if name != "cei"}
    assert field_page.describe_standing(without, problems) == "None of ours is played yet."
    sparse = {name: methods[name] for name in ("cei", "cma-es")}
    assert field_page.describe_standing(sparse, problems) == (
        "On 1 of 4 problems a rival has a better median than `cei`. Only `cma-es` is played "
        "beside ours yet."
    )
    alone = {"cei": methods["cei"], "random": methods["cobyla"]}
    assert field_page.describe_standing(alone, problems) == "No rival is played yet."
    assert field_page.find_defeats(alone, problems) == []


def test_runs_are_held_against_those_of_the_same_seed():
    reference = field_page.Method({"p": {0: 1.0, 1: 2.0}, "q": {0: 1.0}})
    method = field_page.Method({"p": {0: 0.5, 1: 2.0, 2: 0.0}, "q": {0: 3.0}, "r": {0: 0.0}})
    assert field_page.count_wins(method, reference) == "1/3"


def test_many_problems_are_summed_up_by_what_was_reached():
    targets = np.array(field_page.COCO_TARGETS)
    near, never = (
        float(targets[9]),
        field_page.fill_unreached(np.array([np.nan]), quantities()["simple_regret"])[0],
    )
    methods = {
        "near": field_page.Method({"p": {0: near}, "q": {0: near}}, [1.0], 2, 2),
        "never": field_page.Method({"p": {0: float(never)}, "q": {0: 1e9}}, [2.0], 2, 2),
    }
    text = field_page.sum_up(methods, ["p", "q"])
    share = 100 * (near <= targets).mean()
    assert f"| `near` | 1.00 | {share:.1f} % | 2/2 | 0.0 % |" in text
    assert "| `never` | 2.00 | 0.0 % | 0/2 | 50.0 % |" in text
    assert "| `near` | 2/2 | 1.000 | – |" in field_page.list_costs(methods)


@pytest.mark.parametrize("name", ["low-light", "noisy-light"])
def test_drawn_cells_of_the_shards_are_played_again_bit_by_bit(name, capsys):
    """Shards whose methods are the same here. Those of BoTorch need PyTorch, and those of ten
    dimensions half a minute each: `make replay` draws from all. Beside other libraries they are
    compared round by round.
    """
    assert main(["verify", str(shards.bundle_of(name)), "--replay", "2", "--seed", "3"]) == 0
    printed = capsys.readouterr().out
    assert "2 equal" in printed or ("other libraries" in printed and "checked: 2 of" in printed)
