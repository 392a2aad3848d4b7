"""docs/field.md, the pages below it and their shards: pages are what the bundles say, and every
shard names pairs that there are.
"""

import hashlib
import json
import re

import numpy as np
import pandas as pd
import pytest

import cbobench
from analysis import bundles, shards
from analysis.bundles import bundle_of, read_shards
from analysis.field import groups as field_groups
from analysis.field import numbers as field_numbers
from analysis.field import page as field_page
from analysis.field import spreads, tables
from analysis.folders import PUBLISHED
from cbobench import resources
from cbobench.errors import Misuse
from cbobench.replay.replay import Outcome, Replay
from cbobench.results.provenance import DISTRIBUTIONS
from cbobench.stats.paired_tests import holm, signed_rank
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
    assert len(pages) == len(fields) + 2, "the front page and README, beside one for each group"
    for path, text in pages.items():
        assert_is_rendered(path, text)
    for name in fields:
        picture = field_page.FOLDER / f"{field_groups.page_of(name)}.png"
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
    assert np.isfinite(expected[1])
    assert expected[-1] == np.inf
    shown = [f"{one:g}".replace("inf", "∞") for one in expected]
    cells = [f"{cell} ({0 if cell == '∞' else 1}/1)" for cell in shown]
    assert tables.sum_up_evaluations(field, "cei") == cells


def test_tables_are_what_compare_prints(fields):
    """Without the page's code: the frame of each table, and the cells as text."""
    field = fields["low"]
    ours = [str(bundle_of(f"low-{name}")) for name in ("ours", "light")]
    for target, position in ((0.01, 1), (1e-5, 3)):
        frame = cbobench.compare(ours, target=target, metric="rounds_to_target").frame
        for row in frame.to_dict("records"):
            key = row["algorithm_label"], row["problem_label"].partition("[")[0]
            assert field.evaluations[key][position] == row["rounds_to_target_median"] or (
                field.evaluations[key][position] == np.inf
                and not row["rounds_to_target_median"] < np.inf
            )
    page = (field_page.FOLDER / "low.md").read_text(encoding="utf-8")
    ranks = cbobench.compare(field.run, ranks=True, metric="r")
    listed = dict(zip(ranks.frame["algorithm_label"], ranks.frame["rank"], strict=True))
    seeds = min(group.n for group in field.groups)
    assert field.rank("simple_regret") == (pytest.approx(listed), seeds)
    assert f"| `cobyla` | {listed['cobyla']:.2f} | " in page


def test_a_rival_is_held_against_the_best_of_ours_seed_by_seed(tmp_path):
    steps = np.arange(10.0)
    never = np.full(10, np.nan)
    values = {
        "tie": {"cei": steps, "scbo": steps + 5, "cobyla": steps, "random": steps - 9},
        "lost": {"cei": steps + 4, "scbo": steps + 2, "cobyla": steps + 3, "random": steps},
        "won": {"cei": steps + 2, "scbo": steps + 3, "cobyla": steps + 1, "random": steps},
        "never": {"cei": never, "scbo": never, "cobyla": never, "random": never},
    }
    field = make_field(tmp_path, values, failed={("won", "cobyla"): [8, 9]})
    pairs = {pair.problem: pair for pair in field.pair_best("simple_regret")}
    assert {pair.rival for pair in pairs.values()} == {"cobyla"}, "random is no rival"
    assert [name for name, pair in pairs.items() if pair.is_defeat] == ["won"]
    assert pairs["tie"].apart == (0.0,) * 10
    assert pairs["won"].apart == (1.0,) * 8, "the seeds that both have"
    assert (pairs["won"].median, pairs["won"].own_median) == (4.5, 5.5)
    beside = {pair.problem: pair for pair in field.pair_reference("simple_regret")}
    assert [pair.is_defeat for pair in beside.values()] == [False, True, True, False]
    table = tables.tabulate_rivals(field, "simple_regret")
    assert "| `cobyla` | 1/4 | " in table
    assert " | 2/4 | < 0.001, better |" in table
    said = tables.describe_defeats(field, "simple_regret")
    assert said == (
        "On 1 of 4 problems a rival has a better median than the best of ours: `cobyla` on won "
        "(8 seeds). Even `random` is better on 3."
    )


def test_a_rival_is_tested_over_all_problems_at_once():
    rng = np.random.default_rng(2)
    apart = {name: rng.normal(shift, 1, (2, 10)) for name, shift in (("a", 0.7), ("b", -0.9))}
    pairs = [
        field_numbers.Pair(f"p{i}", name, 10, 0.0, 0.0, tuple(column.tolist()))
        for name, columns in apart.items()
        for i, column in enumerate(columns)
    ]
    judged = field_numbers.judge_rivals(pairs)
    tests = [signed_rank(*columns) for columns in apart.values()]
    assert [p for p, _ in judged.values()] == holm([p for p, _ in tests]).tolist()
    assert judged["a"][1] > 0 > judged["b"][1]
    assert field_numbers.judge_rivals([]) == {}
    assert tables.show_verdict(0.2, 1.0) == "0.200"
    assert tables.show_verdict(0.01, -1.0) == "0.010, worse"


def test_every_defeat_of_the_bundles_is_counted_on_the_page():
    """Computed from the cells, beside the page's code, for the methods of ten seeds."""
    parts = ("ours", "exact", "light", "egobox", "botorch-turbo")
    cells = pd.concat(cbobench.load_cells(bundle_of(f"low-{part}")) for part in parts)
    cells = cells.assign(
        regret=cells["simple_regret"].fillna(np.inf), where=cells["problem"].str.partition("[")[0]
    )
    cells["algorithm"] = cells["algorithm_label"].str.partition(" (")[0]
    assert cells.groupby(["algorithm", "where"]).size().eq(10).all()
    medians = cells.groupby(["where", "algorithm"])["regret"].median().unstack()
    ours = medians[filter(field_groups.is_ours, medians)].min(axis=1)
    page = (field_page.FOLDER / "low.md").read_text(encoding="utf-8")
    shares = dict(re.findall(r"^\| `([\w-]+)` \| (\d+/7) \| .* \| \d+/7 \|", page, flags=re.M))
    for rival in filter(field_groups.is_rival, medians):
        assert shares[rival] == f"{(medians[rival] < ours).sum()}/7"
    assert shares["cobyqa"] == "1/7"


def test_a_page_is_read_in_a_sitting():
    """Problem by problem stands in the open table, which is a page of the site alone."""
    pages = [*field_page.FOLDER.glob("*.md")]
    assert len(pages) >= 8
    for page in pages:
        assert len(page.read_text(encoding="utf-8").split()) <= 1500, page.name


def test_readmes_ranks_are_of_all_bundles_with_ten_seeds(fields):
    readme = field_page.README.read_text(encoding="utf-8")
    (named,) = re.findall(r"published/low-\{(.*)\}\.zip --ranks", readme)
    whole = {
        bundle.stem
        for bundle in fields["low"].bundles
        if cbobench.load_cells(bundle).groupby(["problem", "algorithm"]).size().min() >= 10
    }
    assert {f"low-{part}" for part in named.split(",")} == whole


def test_what_is_not_played_is_left_out_of_a_union(tmp_path):
    """A bundle's record lists its whole suite, whose methods may have other settings in another."""
    light = field_numbers.open_played([bundle_of("low-light")])
    assert "cei" not in light.record.variants("algorithms")
    assert "cobyla" in {plain.partition("[")[0] for plain in light.record.variants("algorithms")}


def test_spreads_are_those_of_the_tables(measured_data):
    from cbobench.problems.data import DATA_SETS, DataFolder
    from cbobench.problems.tables.measured import HEADERLESS, ROLES

    kept = spreads.read_spreads()
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


def test_a_work_tree_with_changes_is_seen():
    calls = [
        {"commit": 40 * "a", "dirty": False},
        {"commit": 40 * "a", "dirty": True},
        {"commit": None},
    ]
    assert bundles.played_by({"calls": calls}) == "aaaaaaa, aaaaaaa with changes, unknown"


@pytest.mark.parametrize("name", [*SHARDS])
def test_every_shard_names_pairs_of_a_shipped_suite(name):
    shard = SHARDS[name]
    assert set(shard) <= {"suite", "only", "seeds", "sha256"}
    assert resources.find_suite(shard["suite"]).exists()
    assert field_groups.group_of(name) in field_groups.GROUPS
    for pattern in shard["only"]:
        assert pattern == "*" or ("/" in pattern and "[" not in pattern), "* and ? are wildcards"


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
    assert cells["done"] == cells["expected"] == 210
    shard = SHARDS["low-ours"]
    assert bundles.is_whole("low-ours", shard)
    assert not bundles.is_whole("low-ours", shard | {"seeds": 11})
    assert not bundles.is_whole("low-ours", shard | {"only": ["*/cei", "*/never-begun"]})
    monkeypatch.setattr(bundles, "PUBLISHED", tmp_path)
    assert not bundles.is_whole("low-ours", shard)


def test_the_page_says_what_is_missing():
    shard = SHARDS["low-ours"]
    assert bundles.list_missing({"low-ours": shard}) == "All are played."
    asked = {"low-ours": shard | {"seeds": 510}, "low-exact": SHARDS["low-exact"], "none": shard}
    assert bundles.list_missing(asked) == "Begun and not whole: `low-ours`. Not played yet: `none`."


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
