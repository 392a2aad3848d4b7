"""docs/field.md, the pages below it and their shards: pages are what the bundles say, and every
shard names pairs that there are.
"""

import hashlib
import json
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import cbobench
from analysis import bundles, shards
from analysis.bundles import bundle_of, read_shards
from analysis.field import groups as field_groups
from analysis.field import numbers as field_numbers
from analysis.field import page as field_page
from analysis.field import tables
from analysis.folders import PUBLISHED
from cbobench import resources
from cbobench.errors import Misuse
from cbobench.replay.replay import Outcome, Replay
from cbobench.report.field import GROUPS, group_of, open_played
from cbobench.report.quantities import find_spread, read_spreads
from cbobench.results.provenance import DISTRIBUTIONS
from tests.report.made import make

SHARDS = read_shards("field")
BUNDLES = bundles.list_played(SHARDS)


@pytest.fixture(scope="module")
def fields():
    return field_numbers.open_fields(SHARDS)


def assert_is_rendered(path, text):
    assert path.read_text(encoding="utf-8") == text, (
        f"{path.name} is not of these bundles: make literature ARGS=--render"
    )


def test_a_page_is_what_the_bundles_say(fields):
    page = field_page.render_group(fields["low"], SHARDS)
    assert_is_rendered(field_page.FOLDER / "low.md", page)
    with pytest.raises(AssertionError, match="make literature"):
        assert_is_rendered(field_page.FOLDER / "low.md", page.replace("7", "8", 1))


@pytest.mark.long
def test_the_pages_are_what_the_bundles_say(fields):
    pages = field_page.render_pages(SHARDS, fields)
    assert len(pages) == len(fields) + 3, (
        "front page, README and which to try, beside one for each group"
    )
    for path, text in pages.items():
        assert_is_rendered(path, text)
    for name in fields:
        picture = field_page.FOLDER / f"{name}.png"
        assert 5e3 < picture.stat().st_size < 1e5, "python -m analysis.pictures --field"


def make_field(folder, values, rounds=None, failed=None):
    """A group of made runs: final simple regret by problem, method and seed."""
    cells = {
        (problem, method): {"simple_regret": column, "recommended_regret": column}
        for problem, columns in values.items()
        for method, column in columns.items()
    }
    make(folder, cells, seeds=range(10), horizon=20, rounds=rounds, failed=failed)
    return field_numbers.Field("low", [folder])


def test_evaluations_to_reach_are_counted_over_all_seeds(tmp_path):
    """By hand, round by round: a seed that never gets there is later than any other."""
    rng = np.random.default_rng(1)
    curves = np.minimum.accumulate(
        10 ** rng.uniform(-6, 1, (10, 20)) + np.repeat([0.005, 0.0], [6, 4])[:, None], axis=1
    )
    rounds = {("p", "cei"): {"t": np.arange(1, 21), "simple_regret": curves}}
    field = make_field(tmp_path, {"p": {"cei": curves[:, -1]}}, rounds)
    expected = []
    for target in field_groups.TARGETS:
        first = [
            next((t + 1 for t, value in enumerate(curve) if value <= target), np.inf)
            for curve in curves
        ]
        low, high = sorted(first)[4:6]
        expected.append((low + high) / 2)
    assert field.evaluations == {("cei", "p"): expected}
    assert np.isfinite(expected[0])
    assert expected[-1] == np.inf
    shown = [f"{one:g}".replace("inf", "∞") for one in expected]
    cells = [f"{cell} ({0 if cell == '∞' else 1}/1)" for cell in shown]
    assert tables.sum_up_evaluations(field, "cei") == cells


def test_tables_are_what_compare_prints(fields):
    """Without the page's code: the frame of each table, and the cells as text."""
    field = fields["low"]
    ours = [str(bundle_of(f"low-{name}")) for name in ("ours", "light")]
    for target, position in ((1e-2, 0), (1e-4, 1)):
        frame = cbobench.compare(ours, target=target, metric="rounds_to_target").frame
        for row in frame.to_dict("records"):
            key = row["algorithm_label"], row["problem_label"].partition("[")[0]
            assert field.evaluations[key][position] == row["rounds_to_target_median"] or (
                field.evaluations[key][position] == np.inf
                and not row["rounds_to_target_median"] < np.inf
            )


def test_a_rank_has_one_entry_per_solver(fields):
    """With pandas alone: the best variant of each is ranked among those of the others, and another
    variant in its place.
    """
    field = fields["low"]
    cells = pd.concat(map(cbobench.load_cells, field.bundles))
    cells = cells[cells["seed"] < min(group.n for group in field.groups)]
    regret = cells.assign(simple_regret=cells["simple_regret"].fillna(np.inf))
    medians = regret.pivot_table("simple_regret", "problem", "algorithm_label", "median")
    solvers = cells.groupby("algorithm_label")["algorithm"].first().str.partition("[")[0]
    entries = medians.rank(axis=1).mean().groupby(solvers).idxmin()
    expected = {}
    for label, solver in solvers.items():
        others = [*entries.drop(solver), label]
        expected[field_groups.plain(label)] = medians[others].rank(axis=1).mean()[label]
    ranks = field.rank("simple_regret")
    assert ranks["rank"].to_dict() == pytest.approx(expected)
    assert {*ranks.loc[~ranks["is_variant"], "label"]} == {*entries}
    placed = ranks["label"].map(solvers)
    assert (placed != placed.shift()).sum() == len(entries), "variants stand below their solver"
    page = (field_page.FOLDER / "low.md").read_text(encoding="utf-8")
    assert re.search(r"\| `cobyla` \| [\d.]+ \|", page)
    assert re.search(r"\| `botorch-cei-stock` \| \([\d.]+\) \|", page)


def test_pages_say_how_ours_stand_one_against_one(tmp_path):
    """Both sides: `cei` is far better than one rival and far worse than another one."""
    steps = np.arange(10.0) / 100
    values = {
        problem: {
            "cei": 1 + steps,
            "cobyla": 2 + steps,
            "slsqp": steps,
            "egobox": 1 + steps,
            "random": 2 + steps,
            "sobol": 2 + steps,
        }
        for problem in ("p", "q")
    }
    field = make_field(tmp_path, values)
    assert field.heads == ["cei"]
    said = tables.describe_standing(field, "cei")
    assert said == (
        "`cei` is significantly better than 1 of 3 solvers of other libraries, worse than `slsqp`; "
        "undecided: `egobox`."
    )
    table = tables.tabulate_duels(field, "cei")
    assert "| `cobyla` | 2/0/0 <0.001+ |" in table
    assert "| `slsqp` | 0/0/2 <0.001- |" in table
    assert "| `egobox` | 0/2/0 1.000 |" in table
    assert "worse than none" in tables.describe_standing(field, "slsqp")
    assert {*tables.find_equals(field, "cei")} == {"slsqp", "egobox"}


def test_every_count_of_the_page_is_of_the_cells():
    """Computed beside the page's code, for the methods of ten seeds: who is better on how many
    problems by more than the floor.
    """
    parts = ("ours", "light", "egobox", "botorch-turbo")
    cells = pd.concat(cbobench.load_cells(bundle_of(f"low-{part}")) for part in parts)
    cells = cells.assign(where=cells["problem"].str.partition("[")[0])
    cells["algorithm"] = cells["algorithm_label"].str.partition(" (")[0]
    regret = cells.set_index(["algorithm", "where", "seed"])["simple_regret"].fillna(1e9)
    assert regret.groupby(["algorithm", "where"]).size().eq(10).all()
    page = (field_page.FOLDER / "low.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `([\w-]+)` \| [^|]*\| [^|]*\| [^|]*\| (\d/\d/\d) ", page, re.M))
    for rival in set(regret.index.levels[0]) - {"cei-exact"}:
        medians = (regret[rival] - regret["cei-exact"]).groupby("where").median()
        counts = (medians >= 1e-4).sum(), (medians.abs() < 1e-4).sum(), (medians <= -1e-4).sum()
        assert rows[rival] == "/".join(map(str, counts)), rival


def test_a_page_is_read_in_a_sitting():
    """Problem by problem stands in the open table, which is a page of the site alone."""
    pages = [*field_page.FOLDER.glob("*.md")]
    assert len(pages) >= 8
    for page in pages:
        assert len(re.findall(r"\w\S*", page.read_text(encoding="utf-8"))) <= 1500, page.name


def test_readmes_table_has_ten_seeds_of_all_methods(fields):
    counts = fields["held_out"].run.cells.groupby(["problem", "algorithm"]).size()
    assert (counts == 10).all()


def test_what_is_not_played_is_left_out_of_a_union(tmp_path):
    """A bundle's record lists its whole suite, whose methods may have other settings in another."""
    light = open_played([bundle_of("low-light")])
    assert "cei" not in light.record.variants("algorithms")
    assert "cobyla" in {plain.partition("[")[0] for plain in light.record.variants("algorithms")}


def test_spreads_are_those_of_the_tables(measured_data):
    from cbobench.problems.data import DATA_SETS, DataFolder
    from cbobench.problems.tables.measured import HEADERLESS, ROLES

    kept = {name: spread for name, spread in read_spreads().items() if "measured" in name}
    assert set(kept) == set(ROLES) <= set(DATA_SETS)
    for name, spread in kept.items():
        roles = ROLES[name]
        objective = roles["objective"]
        objective = objective["minimise"] if isinstance(objective, dict) else objective
        header = [*roles["inputs"], objective, *roles["constraints"]]
        names = header if name in HEADERLESS else None
        file = DataFolder(measured_data).find(name)
        frame = pd.read_csv(file, keep_default_na=False, names=names)
        means = frame.groupby([*roles["inputs"]])[objective].mean()
        assert spread == pytest.approx(means.std(ddof=0), rel=1e-5)


def test_spreads_of_mixed_designs_are_those_of_their_values(fields):
    """Of the vessel by its formula, over values drawn here; no design of the group lacks one."""
    rng = np.random.default_rng(0)
    shell, head = rng.integers(1, 100, (2, 100_000)) / 16
    radius, length = rng.uniform(10, 200, (2, 100_000))
    price = 0.6224 * shell * radius * length + 1.7781 * head * radius**2
    price += 3.1661 * shell**2 * length + 19.84 * shell**2 * radius
    spreads = fields["mixed"].spreads
    assert spreads["mixed-vessel"] == pytest.approx(np.std(price), rel=0.02)
    assert len(spreads) == 7
    assert 1 not in spreads.values()


def test_spreads_of_coco_are_those_over_its_box(fields):
    """By other points, and for every problem of the group; the problem's title finds it."""
    cocoex = pytest.importorskip("cocoex", reason="pip install 'cbobench[coco]'")
    suite = cocoex.Suite("bbob-constrained", "", "dimensions: 2 function_indices: 7")
    points = np.random.default_rng(0).uniform(-5, 5, (20_000, 2))
    problem = suite.get_problem_by_function_dimension_instance(7, 2, 3)
    spread = np.std([problem(point) for point in points])
    (variant,) = [v for t, v in fields["coco_2"].variants.items() if "=7,instance=3" in t]
    assert find_spread(variant) == pytest.approx(spread, rel=0.05)
    renamed = replace(variant, given={"function": 7})
    assert find_spread(renamed) == find_spread(variant), "however a suite spells it"
    assert all(find_spread(variant) != 1 for variant in fields["coco_2"].variants.values())


def test_a_work_tree_with_changes_is_seen():
    calls = [
        {"commit": 40 * "a", "dirty": False},
        {"commit": 40 * "a", "dirty": True},
        {"commit": None},
    ]
    assert bundles.played_by({"calls": calls}) == "aaaaaaa, aaaaaaa with changes, unknown"


def test_every_group_has_a_page_and_a_word_of_the_command():
    assert {*GROUPS} == {*field_groups.GROUPS}


@pytest.mark.parametrize("name", [*SHARDS])
def test_every_shard_names_pairs_of_a_shipped_suite(name):
    shard = SHARDS[name]
    assert set(shard) <= {"suite", "only", "seeds", "every", "price", "sha256"}
    assert resources.find_suite(shard["suite"]).exists()
    assert group_of(name) in field_groups.GROUPS
    for pattern in shard["only"]:
        assert "/" in pattern
        assert "[" not in pattern, "* and ? are wildcards"


def test_the_libraries_of_the_bundles_are_those_that_the_requirements_install():
    pinned = {
        tuple(line.strip().split("=="))
        for file in PUBLISHED.glob("requirements*.txt")
        for line in file.read_text(encoding="utf-8").splitlines()
        if "==" in line
    }
    for bundle in BUNDLES:
        libraries = [
            library.partition("+")[0].split()  # without the build of PyTorch
            for group in cbobench.load_cells(bundle)["libraries"].unique()
            for library in group.split(", ")
        ]
        played = {(DISTRIBUTIONS.get(name, name), version) for name, version in libraries}
        assert played <= pinned, f"{bundle.name}: {played - pinned}"


def test_a_shard_is_whole_only_with_all_its_cells(tmp_path, monkeypatch):
    assert BUNDLES, "no shard is kept"
    cells = bundles.read_about(bundle_of("low-ours"))["cells"]
    assert cells["done"] == cells["expected"] == 280
    shard = SHARDS["low-ours"]
    assert bundles.is_whole("low-ours", shard)
    assert not bundles.is_whole("low-ours", shard | {"seeds": 11})
    assert not bundles.is_whole("low-ours", shard | {"only": ["*/cei", "*/never-begun"]})
    monkeypatch.setattr(bundles, "PUBLISHED", tmp_path)
    assert not bundles.is_whole("low-ours", shard)


def test_the_page_says_what_is_missing():
    shard = SHARDS["low-ours"] | {"price": 9}
    assert bundles.list_missing({"low-ours": shard}) == "All are played."
    asked = {"low-ours": shard | {"seeds": 510}, "low-light": SHARDS["low-light"], "none": shard}
    assert bundles.list_missing(asked) == (
        "Begun and not whole: `low-ours` (9). Not played yet: `none` (9)."
    )


def test_only_the_bundle_that_was_replayed_is_confirmed(tmp_path, monkeypatch):
    monkeypatch.setattr(bundles, "PUBLISHED", tmp_path)
    bundle = bundle_of("low-ours")
    bundle.write_bytes(b"played")
    digest = hashlib.sha256(b"played").hexdigest()
    confirmed = {"low-ours": {"bundle": digest, "commit": 40 * "a", "cells": 3}}
    (tmp_path / bundles.CONFIRMED).write_text(json.dumps(confirmed))
    assert bundles.confirmed_by("low-ours") == "aaaaaaa (3 cells)"
    bundle.write_bytes(b"played again")
    assert bundles.confirmed_by("low-ours") == "–"


def outcome(state="equal"):
    return Outcome(None, state)


@pytest.mark.parametrize(
    ("outcomes", "unread"),
    [
        ([outcome(), outcome("differs")], ()),
        ([outcome(), outcome("not checked")], ()),
        ([outcome()], ("bundle is damaged",)),
    ],
)
def test_what_confirms_a_shard_and_what_does_not(tmp_path, monkeypatch, outcomes, unread):
    for module in (bundles, shards):
        monkeypatch.setattr(module, "PUBLISHED", tmp_path)
    monkeypatch.setattr(shards, "find_edits", lambda *but: "")
    monkeypatch.setattr(shards, "describe_replay", lambda replayed: ["…"])
    monkeypatch.setattr(
        shards, "invocation", lambda command: {"commit": 40 * "b", "dirty": False, "at": "today"}
    )
    for name in ("low-ours", "low-light", "ten-ours"):
        (tmp_path / f"{name}.zip").write_bytes(name.encode())
    unconfirmed = str(tmp_path / "low-light.zip")

    def replay(runs, cells):
        if runs == [unconfirmed]:
            return Replay(0, 9, tuple(outcomes), unread)
        return Replay(0, 9, (outcome(), outcome()))

    monkeypatch.setattr(shards, "replay", replay)
    equal = [shards.confirm_shard(name, 2) for name in ("low-ours", "low-light", "ten-ours")]
    assert equal == [True, False, True]
    confirmed = json.loads((tmp_path / bundles.CONFIRMED).read_text())
    assert sorted(confirmed) == ["low-ours", "ten-ours"], (
        "the others are confirmed, before and after"
    )
    assert bundles.confirmed_by("ten-ours") == "bbbbbbb (2 cells)"


def test_code_without_a_commit_confirms_nothing(monkeypatch):
    monkeypatch.setattr(shards, "find_edits", lambda *but: " M cbobench/rng.py")
    monkeypatch.setattr(
        shards, "invocation", lambda command: {"commit": 40 * "b", "dirty": True, "at": "today"}
    )
    with pytest.raises(Misuse, match="commit first"):
        shards.confirm_shard("low-ours", 1)
