"""Paired comparisons of runs made by hand: differences, tests, Holm, and what changed between two
runs.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from scipy import stats

import cbobench
from cbobench.cli import main
from cbobench.errors import Misuse
from cbobench.report.load import Run
from cbobench.stats.intervals import interval
from tests.report.made import asked_again, make

N = 20
RNG = np.random.default_rng(11)
HARD = 100 * RNG.standard_cauchy(N)  # how hard a seed is, for every algorithm alike
A, B, C = HARD, HARD + 1 + RNG.uniform(0, 0.5, N), HARD + RNG.normal(0, 1, N)


def make_run(folder, values, **options):
    cells = {(p, a): {"regret": v} for p, settings in values.items() for a, v in settings.items()}
    return make(folder, cells, seeds=range(N), **options)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return Run(make_run(tmp_path_factory.mktemp("pairs") / "run", {"P": {"A": A, "B": B, "C": C}}))


def holm_by_hand(p):
    """Holm (1979) as in textbooks: the smallest times m, the next times m - 1, never decreasing."""
    result, before = [0.0] * len(p), 0.0
    for rank, i in enumerate(sorted(range(len(p)), key=lambda i: p[i])):
        before = max(before, min(1.0, (len(p) - rank) * p[i]))
        result[i] = before
    return result


def test_differences_by_hand(run):
    frame = cbobench.compare(run, metric="regret", against="A").frame
    assert list(frame["algorithm_label"]) == ["B", "C"]
    for row, values in zip(frame.to_dict("records"), (B, C), strict=True):
        apart = values - A
        expected = {
            "n": N,
            "mean": apart.mean(),
            "median": np.median(apart),
            "wins": (apart < 0).sum(),
            "ties": 0,
        }
        expected |= dict(zip(("mean_low", "mean_high"), interval(apart), strict=True))
        expected |= {"p": stats.wilcoxon(apart, method="exact").pvalue, "losses": (apart > 0).sum()}
        ranks = stats.rankdata(np.abs(apart))
        expected["effect"] = (ranks[apart < 0].sum() - ranks[apart > 0].sum()) / ranks.sum()
        for name, value in expected.items():
            np.testing.assert_allclose(row[name], value, rtol=1e-12, err_msg=name)
    np.testing.assert_allclose(frame["p_holm"], holm_by_hand(list(frame["p"])), rtol=1e-12)


def test_over_all_problems_there_is_another_table(tmp_path, run):
    values = {"P": {"A": A, "B": B}, "Q": {"A": A, "B": B}}
    said = "one against one over all problems: --floor F"
    assert said in str(cbobench.compare(make_run(tmp_path / "two", values), against="A"))
    assert said not in str(cbobench.compare(run, against="A")), "of one problem"


def test_only_seeds_that_both_have(tmp_path):
    run = make_run(
        tmp_path / "run", {"P": {"A": A, "B": B}}, failed={("P", "A"): [1, 2], ("P", "B"): [2, 3]}
    )
    row = cbobench.compare(run, metric="regret", against="A").frame.iloc[0]
    remaining = [0, *range(4, N)]
    assert (row["n"], row["expected"]) == (17, 20)
    np.testing.assert_allclose(row["mean"], (B - A)[remaining].mean(), rtol=1e-12)
    assert "17/20" in str(cbobench.compare(run, metric="regret", against="A"))


def test_a_seed_that_never_got_there_has_lost_and_two_are_tied(tmp_path):
    """A finds nothing feasible in 15 of 20 seeds, and is better by 1 in the others: B is the better
    one.
    """
    regret, never = np.arange(float(N)), [None] * N
    values = {
        ("P", "A"): [*never[:15], *regret[15:] - 1],
        ("P", "B"): regret,
        ("Q", "A"): never,
        ("Q", "B"): never,
    }
    cells = {key: {"simple_regret": settings} for key, settings in values.items()}
    compared = cbobench.compare(
        make(tmp_path / "run", cells, seeds=range(N)), metric="r", against="B"
    )
    (_, row), (_, tie) = compared.frame.iterrows()
    assert (row["n"], row["defined"], row["wins"], row["losses"]) == (20, 5, 5, 15)
    assert (row["mean"], row["median"], row["median_high"]) == (-1.0, np.inf, np.inf), (
        "the mean is of the five"
    )
    assert "∞ 5/20" in str(compared)
    assert row["p"] < 0.01
    assert row["effect"] < 0
    assert tie["n"] == 20
    assert tie["defined"] == 0
    assert tie["wins"] == 0
    assert tie["ties"] == 20
    assert tie["losses"] == 0
    assert (tie["p"], tie["effect"], tie["median"]) == (1.0, 0.0, 0.0)
    assert np.isnan(tie["mean"])


# Two runs -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    folder = tmp_path_factory.mktemp("two")
    before = {
        "same": HARD,
        "slower": HARD,
        "faster": HARD,
        "breaks": HARD,
        "mended": HARD,
        "gone": HARD,
    }
    noise = np.where(np.arange(N) % 2, 1.0, -0.99)
    after = {
        "same": HARD + noise,
        "slower": HARD + 2,
        "faster": HARD - 2,
        "breaks": HARD,
        "mended": HARD,
        "new": HARD,
    }
    return (
        Run(make_run(folder / "a", {"P": before}, failed={("P", "mended"): [4, 5]})),
        Run(make_run(folder / "b", {"P": after}, failed={("P", "breaks"): range(3)})),
    )


def test_verdicts(two):
    compared = cbobench.compare(*two, metric="regret")
    result = {}
    for row in compared.frame.to_dict("records"):
        result.setdefault(row["algorithm_label"], []).append(row["verdict"])
    assert result == {
        "same": ["not significant"], "slower": ["worse"], "faster": ["better"],
        "breaks": ["newly failing", "identical"], "mended": ["fixed", "identical"],
        "gone": ["missing"], "new": ["not comparable"],
    }  # fmt: skip
    assert compared.worse
    text = str(compared)
    for phrase in ("newly failing (seeds 0, 1, 2)", "only before", "only after"):
        assert phrase in text
    slower = compared.frame.set_index("algorithm_label").loc["slower"]
    np.testing.assert_allclose(
        [slower["mean"], slower["median"], slower["losses"]], [2, 2, N], rtol=1e-12
    )


def test_only_changed(two):
    compared = cbobench.compare(*two, metric="regret", only_changed=True)
    assert sorted(compared.frame["verdict"]) == [
        "better",
        "fixed",
        "missing",
        "newly failing",
        "worse",
    ]
    assert "not shown: 1 not significant, 2 identical, 1 not comparable" in str(compared)
    same = cbobench.compare(two[0], two[0], metric="regret", only_changed=True)
    assert same.frame.empty
    assert not same.worse
    assert "nothing changed" in str(same)


def test_a_factor_forgives_small_changes(tmp_path):
    base = np.arange(10.0, 10.0 + N)
    before = Run(make_run(tmp_path / "a", {"P": {"A": base, "B": base}}))
    after = Run(make_run(tmp_path / "b", {"P": {"A": 1.1 * base, "B": 3 * base}}))
    verdicts = [
        list(cbobench.compare(before, after, metric="regret", factor=factor).frame["verdict"])
        for factor in (1.0, 2.0, 4.0)
    ]
    assert verdicts == [
        ["worse", "worse"],
        ["not significant", "worse"],
        ["not significant", "not significant"],
    ]
    assert not cbobench.compare(before, after, metric="regret", factor=4.0).worse
    with pytest.raises(Misuse, match=r"factor is 0\.5; it must be a number of at least 1"):
        cbobench.compare(before, after, factor=0.5)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"horizon": 200}, "T = 100 and 200"),
        ({"seeds": range(50, 70)}, "no common seed"),
        ({"facts": {"noise": 2}}, "other problem: noise=1 and 2"),
    ],
)
def test_what_cannot_be_compared_says_why(tmp_path, options, reason, capsys):
    cells = {("P", "A"): {"regret": A}}
    usual = {"seeds": range(N), "facts": {"noise": 1}}
    single, two = (
        make(tmp_path / "a", cells, **usual),
        make(tmp_path / "b", cells, **(usual | options)),
    )
    compared = cbobench.compare(single, two, metric="regret")
    assert list(compared.frame["verdict"]) == ["not comparable"]
    assert reason in str(compared)
    assert not compared.worse
    assert compared.nothing == f"{reason} (1)"
    assert main(["compare", str(single), str(two), "--only-changed"]) == 1
    assert (
        capsys.readouterr().err == f"nothing of {single} and {two} can be compared: {reason} (1)\n"
    )


@pytest.mark.parametrize(
    ("swap", "verdict", "reason"),
    [(1, "not comparable", "only after"), (-1, "missing", "only before")],
)
def test_horizons_that_one_run_lacks_are_said(tmp_path, swap, verdict, reason):
    cells = partial(make, cells={("P", "A"): {"regret": A}}, seeds=range(N))
    single, joined = cells(tmp_path / "a"), tmp_path / "b"
    asked_again(joined, lambda: cells(joined), 200, [lambda: cells(joined, horizon=200)])
    runs = (single, joined)[::swap]
    assert cbobench.compare(*runs, metric="regret", only_changed=True).worse == (
        verdict == "missing"
    )
    compared = cbobench.compare(*runs, metric="regret", horizon="all")
    rows = compared.frame.set_index("horizon")
    assert rows["verdict"].to_dict() == {100: "identical", 200: verdict}
    assert (rows.loc[200, "reason"], compared.nothing) == (reason, "")


def test_exit_codes(two, capsys):
    a, b = (str(run) for run in two)
    assert main(["compare", a, b, "--metric", "regret"]) == 1
    assert main(["compare", a, a, "--metric", "regret"]) == 0
    capsys.readouterr()
    assert main(["compare", a, "--against", "same", "--format", "csv", "--metric", "R"]) == 0
    assert capsys.readouterr().out.startswith("problem,problem_label,horizon,metric,algorithm")
