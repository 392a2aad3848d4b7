"""docs/literature.md is what its stored findings say; they are `compare`'s numbers, of one run folder or of several."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path

import literature as script
import literature_page as pages
import numpy as np
import pandas as pd
import pytest
import yaml

import cbobench
from cbobench.cli import main
from cbobench.errors import Misuse
from cbobench.report.groups import find_groups
from cbobench.report.load import Run
from cbobench.resources import find_suite
from tests.report.made import make

SEEDS = range(8)
REGRETS = {"cei": 0.1, "scbo": 0.3, "botorch-cei": 0.2, "botorch-scbo": 0.3, "random": 0.9}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """cei beats BoTorch's on every seed, scbo is beaten by it on p and is as good as BoTorch's own."""
    noise = 0.01 * np.random.default_rng(0).random((len(REGRETS), 8))
    cells = {
        (problem, name): {"simple_regret": value + noise[i], "recommended_regret": [np.nan] * 3 + [0.1] * 5}
        for problem in ("p", "q")
        for i, (name, value) in enumerate(REGRETS.items())
    }
    return make(tmp_path_factory.mktemp("literature") / "run", cells, seeds=SEEDS, failed={("q", "random"): [0]})


@pytest.fixture(scope="module")
def measured(run):
    return script.measured(Run(run))


@pytest.fixture
def found(measured):
    """What is measured of the run, a test's own."""
    return deepcopy(measured)


def test_the_pages_are_current():
    full, small = script.read_stored()
    text, readme = pages.PAGE.read_text(), pages.README.read_text()
    assert pages.page(full) == text, "docs/literature.md is stale: python docs/literature.py --render"
    assert pages.in_readme(small, readme) == readme, "README.md is stale: python docs/literature.py --render"
    full["table"][0]["median"] = 123.0
    assert pages.page(full) != text, "negative control"


def replay(fraction: int, seconds: float, out: Path) -> pd.DataFrame:
    """Cells of the stored bundle, every `fraction`-th by its id of those that took less than so many seconds, beside
    the same cells played now."""
    stored = Run(script.BUNDLE).cells
    drawn = stored[(stored["cell"].str[:6].map(lambda cell: int(cell, 16)) % fraction == 0)]
    drawn = drawn[drawn["seconds"] < seconds].set_index("cell")
    now = []
    for (problem, algorithm), cells in drawn.groupby(["problem", "algorithm"]):
        suite = yaml.safe_load(find_suite(script.SMALL).read_text())
        suite |= {"seeds": sorted(map(int, cells["seed"]))}
        suite["problems"] = [entry for entry in suite["problems"] if problem.startswith(f"{next(iter(entry))}[")]
        run = cbobench.run(suite, out=out / str(len(now)), only=f"{problem}/{algorithm}", cpus=0)
        now.append(cbobench.load_cells(run))
    return drawn.merge(pd.concat(now).set_index("cell"), left_index=True, right_index=True, suffixes=("", "_now"))


def differing(cells: pd.DataFrame) -> list[str]:
    """The cells whose regret, violation or recommendation is another one now, to the last bit."""
    columns = ("regret", "violation_hard", "violations", "simple_regret", "recommended_regret")
    equal = [
        (cells[name] == cells[f"{name}_now"]) | (cells[name].isna() & cells[f"{name}_now"].isna()) for name in columns
    ]
    return list(cells.index[~np.logical_and.reduce(equal)])


def test_a_sample_of_the_cells_behind_the_readme_plays_the_same_today(tmp_path):
    cells = replay(fraction=100, seconds=0.2, out=tmp_path)
    assert len(cells) >= 2
    assert differing(cells) == [], "README's table is not what this code plays: make literature-small"
    cells.iloc[0, cells.columns.get_loc("simple_regret")] += 1e-9
    assert differing(cells) == [cells.index[0]], "negative control"


@pytest.mark.long
def test_a_tenth_of_the_cells_behind_the_readme_play_the_same_today(tmp_path):
    cells = replay(fraction=10, seconds=np.inf, out=tmp_path)
    assert len(cells) >= 80
    assert differing(cells) == [], "README's table is not what this code plays: make literature-small"


def test_numbers_are_those_of_compare(run, found):
    frame = cbobench.summary(run)
    rows = found["table"]
    np.testing.assert_allclose([row["median"] for row in rows], frame["simple_regret_median"], rtol=1e-5)
    assert [(row["n"], row["expected"]) for row in rows] == [(8, 8)] * 9 + [(7, 8)]
    ranks = cbobench.compare(run, ranks=True, metric="simple_regret").frame
    assert {row["algorithm"]: row["rank"] for row in script.ranks(find_groups(Run(run)))} == pytest.approx(
        dict(zip(ranks["algorithm"], ranks["rank"], strict=True)), rel=1e-5
    )
    pairs = cbobench.compare(run, against="botorch-cei", metric="simple_regret").frame
    for row in [row for row in found["paired"] if row["against_label"] == "botorch-cei"]:
        same = pairs[(pairs["algorithm"] == row["algorithm"]) & (pairs["problem"] == row["problem"])].iloc[0]
        assert (row["median"], row["p"]) == pytest.approx((same["median"], same["p"]), rel=1e-5)


def test_victories_defeats_and_what_is_missing_are_said(found):
    text = pages.page(found)
    for said in (
        "- `cei` against `botorch-cei`: better on 2 of 2 problems, no significant difference on 0, worse on none",
        "- `scbo` against `botorch-cei`: better on 0 of 2 problems, no significant difference on 0, worse on p, q",
        "- `scbo` against `botorch-scbo`: better on 0 of 2 problems, no significant difference on 2, worse on none",
        "too few seeds on 0",
    ):
        assert said in text
    assert "| `random` | – | 15/16 (1 failed) |" in pages.overall(found)
    assert "by the median simple regret over 2 problems, among the 4 methods that have all 8 seeds on each" in text
    assert (found["hours"], found["hours_of_opponents"]) == (0.0219, 0.00889), "79 and 32 seconds"
    assert "Playing all of this took 0.02190 hours of one core, 0.008890 of them for `botorch-cei`" in text
    assert "| 5/8 |" in text, "recommendations that are feasible"
    assert "Added to the suite since, with no results yet: `cei`, `scbo`, `admmbo`, " in text
    played = found | {"table": [found["table"][0] | {"algorithm": "admmbo"}]}
    assert pages.not_played(played)[:3] == ["cei", "scbo", "ckb-ucb"]
    readme = "a\n<!-- literature -->\nold\n<!-- end -->\nb"
    assert pages.overall(found) in pages.in_readme(found, readme)
    with pytest.raises(Misuse, match="README.md has 0 tables"):
        pages.in_readme(found, "a\nb")


def test_a_defeat_is_named_though_the_adjustment_hides_it(found):
    for row in found["paired"]:
        row |= {"p": 0.04, "p_holm": 0.3, "effect": -1.0 if row["problem_label"] == "p" else 1.0}
    text = pages.page(found)
    assert "no significant difference on 1, worse on p unadjusted, too few seeds on 0" in text
    assert "**worse unadjusted**" in text
    for row in found["paired"]:
        row |= {"n": 3, "p": 1.0, "p_holm": 1.0}
    assert "no significant difference on 0, worse on none, too few seeds on 2" in pages.page(found), (
        "3 seeds separate nothing"
    )


def test_time_is_compared_problem_by_problem(found):
    for row in found["table"]:
        row["ms_per_round"] = 1.0 if row["algorithm_label"] in script.OURS else 30.0
    for row in found["table"][:1]:
        assert (row["problem_label"], row["algorithm_label"]) == ("p", "cei")
        row["ms_per_round"] = 5.0
    text = pages.verdicts(found)
    assert "`cei` against `botorch-cei`: better on 2 of 2 problems" in text
    assert "least 6.000, on p; below 10: p (6.000))" in text
    assert "`scbo` against `botorch-cei`" in text.partition("least 30.00, on p)")[0]
    assert pages.costs(found)["random[called=cei]"] == 3.0, "each problem counts once"
    found["table"][0]["ms_per_round"] = None
    assert "random[called=cei]" not in pages.costs(found)


def test_few_seeds_and_none_that_found_anything(tmp_path):
    regrets = {("p", "cei"): [0.1, 0.2, 0.3], ("p", "random"): [np.nan] * 3, ("p", "sobol"): [np.nan, np.nan, 0.5]}
    cells = {key: {"simple_regret": values} for key, values in regrets.items()}
    found = script.measured(Run(make(tmp_path, cells, seeds=range(3))))
    text = pages.of_problem(found["table"])
    assert "| `cei` | 0.2 |" in text, "no interval of three seeds"
    assert "| `random` | ∞ |" in text
    assert "| `sobol` | ∞ |" in text


def test_the_page_says_who_played_and_refuses_several_kinds_of_cpu(run, found, monkeypatch):
    found |= {"commit": "abc1234", "date": "2026-01-02", "since": ["All is new."]}
    start = pages.page(found)[:200]
    origin = "**Played on 2026-01-02 with the code of commit abc1234 (suite `literature_full`).**"
    assert f"{origin} Since then:\n\n- All is new.\n" in start
    monkeypatch.setattr(script, "find_cpus", lambda groups: {"a", "b"})
    with pytest.raises(Misuse, match=r"cells of 2 kinds of CPU \(a, b\)"):
        script.measured(Run(run))


def test_without_opponents_the_page_says_so(tmp_path):
    alone = make(tmp_path, {("p", "cei"): {"simple_regret": [0.1] * 8}}, seeds=SEEDS)
    found = script.measured(Run(alone))
    assert (found["paired"], found["ranks"]) == ([], [])
    assert "Not played yet." in pages.page(found)


def test_several_folders_are_one_run(tmp_path):
    suite = {"suite": "small", "horizon": 12, "seeds": 2, "problems": ["gramacy"], "algorithms": ["random", "sobol"]}
    for name in ("random", "sobol"):
        cbobench.run(suite, out=tmp_path / name, only=f"*/{name}", cpus=0)
    whole = script.run_of([tmp_path / "random", tmp_path / "sobol"], tmp_path / "both")
    rows = script.measured(whole)["table"]
    assert [(row["algorithm"], row["n"]) for row in rows] == [("random", 2), ("sobol", 2)]
    with pytest.raises(Misuse):
        script.run_of([tmp_path / "random", tmp_path / "none"], tmp_path / "again")


def test_a_bundle_is_a_run_alone_and_refused_among_several(run, found, tmp_path):
    bundle = tmp_path / "A.zip"
    assert main(["export", str(run), "--out", str(bundle)]) == 0
    assert script.measured(script.run_of([bundle], tmp_path / "none"))["table"] == found["table"]
    for folders in ([run, bundle], [bundle, run]):
        with pytest.raises(Misuse, match=r"A\.zip is a bundle, and only run folders are read as one; give it alone"):
            script.run_of(folders, tmp_path / "both")
