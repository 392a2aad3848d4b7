"""A run beside a planted group of the field: found by digests, counted where that is asked, and
compared over all problems in a few lines.
"""

from __future__ import annotations

import hashlib
import json
import re

import numpy as np
import pytest

import cbobench
from cbobench import resources
from cbobench.cli import main
from cbobench.errors import DamagedRun, Misuse
from cbobench.report import field
from cbobench.suite import yamlio
from tests.report.made import make

N = 10
T = np.array([10, 50, 100])
PROBLEMS = ("P", "Q", "R")


def make_run(folder, levels, seeds=range(N), problems=PROBLEMS, others=()):
    """Methods whose simple regret ends at a level, a little higher from seed to seed; those that
    are no algorithms are variants of random. `others` are further pairs.
    """
    ends = {name: level + 0.001 * np.arange(len(seeds)) for name, level in levels.items()}
    pairs = [*((problem, name) for problem in problems for name in levels), *others]
    ends |= {name: 1 + np.zeros(len(seeds)) for _, name in others}
    return make(
        folder,
        {pair: {"simple_regret": ends[pair[1]], "regret": ends[pair[1]]} for pair in pairs},
        seeds=seeds,
        rounds={pair: {"t": T, "simple_regret": ends[pair[1]][:, None] + 1 / T} for pair in pairs},
    )


def plant(folder, levels):
    """A group "low" of two bundles and a shard that was not played, and one that is counted."""
    names = [*levels]
    listed = {"low-nomad": {"suite": "s"}}
    for name, part in (("low-a", names[:1]), ("low-b", names[1:]), ("held-a", names)):
        run = make_run(folder / name, {method: levels[method] for method in part})
        bundle = folder / f"{name}.zip"
        cbobench.export(run, bundle)
        digest = hashlib.sha256(bundle.read_bytes()).hexdigest()
        listed[name] = {"suite": "s", "sha256": digest}
    (folder / "shards.yaml").write_text(json.dumps({"field": listed}))


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    folder = tmp_path_factory.mktemp("published")
    plant(folder, {"random": 0.5, "sobol": 0.1})
    return folder


@pytest.fixture(autouse=True)
def planted(published, monkeypatch):
    monkeypatch.setattr(field, "LISTED", published / "shards.yaml")


@pytest.fixture
def mine(tmp_path):
    return make_run(tmp_path / "mine", {"mine": 0.3})


def test_a_row_per_rival_with_both_verdicts_and_ranks(mine):
    compared = cbobench.compare(mine, field="low", metric="r", floor=[0.01, 1.0])
    rows = compared.frame.set_index(["against_label", "floor"])
    assert {*rows["algorithm_label"]} == {"mine"}
    worse, better = rows.loc[("sobol", 0.01)], rows.loc[("random", 0.01)]
    assert (worse["won"], worse["tied"], worse["lost"], worse["rank"]) == (0, 0, 3, 1.0)
    assert (better["won"], better["tied"], better["lost"], better["rank"]) == (3, 0, 0, 2.0)
    assert [worse["is_variant"], better["is_variant"]] == [False, True], "of mine, which is better"
    assert {*rows.xs(1.0, level="floor")["tied"]} == {3}
    text = str(compared)
    assert "0/0/3 <0.001-" in text
    assert "3/0/0 <0.001+" in text
    assert "0/3/0 1.000\n" in text
    assert re.search("^ +mine +2.000 +– +–$", text, re.M), "in its place among its rivals"
    assert "(2.000)" in text


def test_floors_are_side_by_side_and_problems_only_where_asked(mine):
    assert [*dict.fromkeys(cbobench.compare(mine, field="low", metric="r").frame["floor"])] == [
        1e-2,
        1e-4,
        1e-6,
        0.0,
    ]
    short = cbobench.compare(mine, field="low")
    assert "problem_label" not in short.frame
    every = cbobench.compare(mine, field="low", all=True)
    assert {*every.frame["problem_label"]} == {*PROBLEMS}
    assert {*every.frame["metric"]} == {"simple_regret"}


def test_the_table_has_at_most_25_lines(tmp_path, monkeypatch, capsys):
    """The first by rank are shown, all are in the other formats."""
    monkeypatch.setenv("COLUMNS", "80")
    plant(tmp_path, {f"rival {k:02}": 1.0 + k for k in range(30)})
    monkeypatch.setattr(field, "LISTED", tmp_path / "shards.yaml")
    run = make_run(tmp_path / "mine", {"mine": 0.3})
    assert main(["compare", str(run), "--field", "low"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 25
    assert [line.split()[0] for line in lines[3:5]] == ["mine", "rival"]
    assert "not shown: 16 rows; --format csv has all" in lines
    assert main(["compare", str(run), "--field", "low", "--format", "csv"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1 + 30 * 4
    assert main(["compare", str(run), "--field", "low", "--format", "latex"]) == 0
    assert r"\begin{tabular}" in capsys.readouterr().out


def test_bundles_lie_where_they_are_said_to(mine, published, tmp_path, monkeypatch, capsys):
    """A package without a clone has the list alone."""
    alone = tmp_path / "package"
    alone.mkdir()
    (alone / "shards.yaml").write_bytes((published / "shards.yaml").read_bytes())
    monkeypatch.setattr(field, "LISTED", alone / "shards.yaml")
    assert main(["compare", str(mine), "--field", "low"]) == 2
    said = capsys.readouterr().err
    assert "low-a.zip is missing" in said
    assert "--published CLONE/published" in said
    assert len(said.splitlines()) == 1
    options = ["compare", str(mine), "--field", "low", "--published", str(published)]
    assert main(options) == 0
    (alone / "low-a.zip").write_bytes((published / "low-b.zip").read_bytes())
    (alone / "low-b.zip").write_bytes((published / "low-b.zip").read_bytes())
    with pytest.raises(Misuse, match=r"low-a.zip is not the bundle that this cbobench knows"):
        cbobench.compare(mine, field="low")


def test_what_cannot_be_held_beside_a_group_is_refused_in_a_line(mine, tmp_path):
    two = make_run(tmp_path / "two", {"mine": 0.3, "other": 0.2})
    strange = make_run(tmp_path / "strange", {"mine": 0.3}, problems=["S"])
    for run, options, why in (
        (mine, {"field": "lw"}, "unknown group 'lw'; did you mean 'low'"),
        (mine, {"field": "ten"}, "nothing of ten is published yet"),
        (two, {"field": "low"}, "several methods; name yours with --against: mine, other"),
        (
            strange,
            {"field": "low"},
            "is set up as in low, which has P, Q, R; docs",
        ),
        (mine, {"field": "low", "ranks": True}, "field and ranks are different tables"),
        (mine, {"field": "low", "other": two}, "field and two runs are different tables"),
        (mine, {"field": "low", "horizon": "all"}, "of one horizon"),
        (
            mine,
            {"field": "low", "all": True, "rounds": 50},
            "all shows problem by problem, without",
        ),
        (mine, {"field": "low", "metric": "µs"}, "of µs neither side is better"),
    ):
        with pytest.raises(Misuse, match=why) as refused:
            cbobench.compare(run, **options)
        assert "\n" not in str(refused.value)
    named = cbobench.compare(two, field="low", against="mine", metric="r", floor=0)
    assert [*named.frame["against_label"]] == ["sobol", "other", "random"]


def test_variants_of_one_solver_have_no_rank(tmp_path):
    run = make_run(tmp_path / "run", {"mine": 0.3, "other": 0.2})
    compared = cbobench.compare(run, against="mine", floor=0)
    assert compared.frame["rank"].isna().all()
    assert "of a variant" in str(compared)


def test_only_shared_problems_and_seeds_count(tmp_path):
    run = make_run(tmp_path / "run", {"mine": 0.3}, seeds=range(4), problems=["Q", "S"])
    frame = cbobench.compare(run, field="low", metric="r", floor=0).frame
    assert [*frame["n"]] == [4, 4]


def test_how_often_a_folder_asks_is_said_where_it_is_counted(mine, tmp_path, monkeypatch, capsys):
    for times in ("1 time", "2 times"):
        assert f"has asked for held_out {times}" in str(cbobench.compare(mine, field="held_out"))
    assert "has asked for" not in str(cbobench.compare(mine, field="low"))
    assert "has asked for held_out 3 times" in str(
        cbobench.compare(mine, field="held_out", all=True)
    )
    other = make_run(tmp_path / "other", {"other": 0.2})
    text = str(cbobench.compare([other, mine], field="held_out", against="mine"))
    assert re.search("other has asked for held_out 1 time; .*mine has asked .* 4 times", text)
    (other / field.ASKED).write_text("{}")
    with pytest.raises(DamagedRun, match="asked.json holds {}, no count; restore it"):
        cbobench.compare(other, field="held_out")
    bundle = cbobench.export(mine, tmp_path / "mine.zip").file
    with pytest.raises(Misuse, match="counts how often it is asked for: give the run folder"):
        cbobench.compare(bundle, field="held_out")
    assert len(cbobench.compare(bundle, field="low").frame) == 8


def test_the_curve_among_them_is_drawn(tmp_path, unpainted, capsys):
    """Whatever other methods played on other problems."""
    run = make_run(tmp_path / "run", {"mine": 0.3}, others=[("S", "late")])
    words = ["figures", str(run), "--field", "held_out", "--out", str(tmp_path / "figures")]
    assert main(words) == 0
    assert "has asked for held_out 1 time" in capsys.readouterr().err
    numbers = [path.read_text() for path in (tmp_path / "figures").glob("*.csv")]
    assert len(numbers) == len(PROBLEMS)
    assert all(name in text for text in numbers for name in ("mine", "sobol", "random"))


def test_a_package_carries_the_list_of_the_shards():
    listed = yamlio.read(resources.folder("published") / "shards.yaml")["field"]
    assert {field.group_of(name) for name in listed} == {*field.GROUPS}
    assert field.group_of("low-theory") == "low_theory"
    assert field.group_of("low-botorch-turbo") == "low"
    assert field.group_of("held-light") == "held_out"
