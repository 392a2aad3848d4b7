"""Tables of runs made by hand: every number is known, no row knows another, and the text fits the
terminal.
"""

from __future__ import annotations

import csv
import io
import itertools
import json

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import cbobench
from cbobench.errors import Misuse
from cbobench.report.load import Run
from cbobench.report.quantities import quantities
from cbobench.report.tables.table import (
    find_gap,
    format_interval,
    format_number,
)
from cbobench.stats.intervals import interval
from tests.helpers import play_here
from tests.report.made import make

SEEDS = range(10)
RNG = np.random.default_rng(3)
REGRET = {name: RNG.gamma(2.0, 10.0 * i, 10) for i, name in enumerate(("A", "B", "C"), 1)}
SIMPLE = {"A": [None] * 6 + [1.0, 2.0, 3.0, 4.0], "B": [None] * 2 + [5.0] * 8, "C": np.arange(10.0)}
FIRST = {"A": [None] * 6 + [7, 8, 9, 10], "B": [None] * 2 + [3] * 8, "C": [1] * 10}
HEAVY = [1.0] * 9 + [1000.0]


def cells(names="ABC", problems=("P", "Q")):
    return {
        (p, a): {
            "regret": REGRET[a] + 5 * (p == "Q"),
            "regret_plus": REGRET[a] + 5 * (p == "Q"),
            "simple_regret": SIMPLE[a],
            "first_feasible": FIRST[a],
            "violations": HEAVY if a == "B" else [float(i % 3) for i in SEEDS],
            "binds": [i < 4 for i in SEEDS] if p == "Q" else [False] * 10,
        }
        for p, a in itertools.product(problems, names)
    }


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return Run(
        make(
            tmp_path_factory.mktemp("made") / "run",
            cells(),
            seeds=SEEDS,
            failed={("P", "C"): [0, 9]},
        )
    )


def row_of(frame, problem, algorithm):
    return frame[
        (frame["problem_label"] == problem) & (frame["algorithm_label"] == algorithm)
    ].iloc[0]


def test_statistics_of_seeds_are_those_of_numpy(run):
    frame = cbobench.summary(run)
    row = row_of(frame, "Q", "A")
    values = REGRET["A"] + 5
    low, high = interval(values, "mean")
    expected = {"": values.mean(), "_median": np.median(values), "_low": low, "_high": high}
    expected |= {"_q25": np.quantile(values, 0.25), "_q75": np.quantile(values, 0.75)}
    expected |= dict(zip(("_median_low", "_median_high"), interval(values, "median"), strict=True))
    for name, value in expected.items():
        np.testing.assert_allclose(row[f"regret{name}"], value, rtol=1e-12, err_msg=name)
    assert row["regret_defined"] == row["n"] == row["expected"] == 10
    assert (row["binds"], row["binds_known"]) == (4, 10)
    partial = row_of(frame, "P", "C")
    assert (partial["n"], partial["expected"], partial["failed"]) == (8, 10, 2)
    np.testing.assert_allclose(partial["regret"], REGRET["C"][1:9].mean(), rtol=1e-12)


def test_what_was_never_reached_is_worse_than_any_value(run):
    frame = cbobench.summary(run)
    sparse, most = row_of(frame, "P", "A"), row_of(frame, "P", "B")
    assert (
        sparse["simple_regret_defined"],
        sparse["simple_regret"],
        sparse["simple_regret_median"],
    ) == (
        4,
        2.5,
        np.inf,
    )
    assert sparse["simple_regret_q25"] == 3.25, (
        "numpy's quartile of 1, 2, 3, 4 and six values beyond"
    )
    assert most["simple_regret_median"] == 5.0
    assert most["first_feasible_median"] == 3
    assert sparse["first_feasible_defined"] == 4
    text = str(cbobench.compare(run, metric="simple_regret"))
    assert "∞ 4/10" in text
    assert "8/10" in text


def test_an_algorithm_more_moves_no_other_row(tmp_path):
    smaller, extra = (
        make(tmp_path / names, cells(names, ("Q",)), seeds=SEEDS) for names in ("AB", "ABC")
    )
    for produced in (
        cbobench.summary,
        lambda source: cbobench.compare(source, against="A").frame.drop(columns="p_holm"),
    ):  # fmt: skip
        remaining = produced(extra)
        pd.testing.assert_frame_equal(
            produced(smaller), remaining[remaining["algorithm_label"] != "C"].reset_index(drop=True)
        )


@pytest.mark.parametrize(
    "options",
    [{}, {"against": "A"}, {"ranks": True}, {"other": True}],
    ids=str,
)
def test_text_fits_the_terminal(run, options):
    compared = cbobench.compare(
        run, **{name: run if name == "other" else value for name, value in options.items()}
    )
    for width in (66, 200):
        text = compared.render("table", width)
        assert max(map(len, text.splitlines())) <= width
        assert "…" not in text
        assert options or ("not shown at this width: intervals of " in " ".join(text.split())) == (
            width < 200
        )


HEADINGS = ["r", "R", "V⁺", "N"]


@pytest.mark.parametrize("width", [20, 60, 100, 300])
def test_a_table_has_one_shape_at_every_width(run, width):
    """Whatever is constant, empty or equal to another column; V⁺ is 0 everywhere in this run."""
    compared = cbobench.compare(run)
    assert compared.table.columns == ["problem", "algorithm", "n", *HEADINGS]
    head = next(
        line for line in compared.render("table", width).splitlines() if "algorithm" in line
    )
    assert head.split()[-5:] == ["n", *HEADINGS]


def test_every_quantity_is_asked_for_in_one_word(run):
    table = cbobench.compare(run, all=True).table
    assert table.columns[3:] == [quantity.symbol for quantity in quantities().values()]
    assert table.columns[3:7] == HEADINGS
    for options in ({"metric": "R"}, {"ranks": True}):
        with pytest.raises(
            Misuse, match="all shows every quantity in the table of results; leave it out with"
        ):
            cbobench.compare(run, all=True, **options)


def test_notes_take_three_lines(run):
    """What an entry is, who is best, and what is the matter with these cells, if anything is."""
    entry, verdict = cbobench.compare(run).table.note.splitlines()
    assert entry.startswith("median [")
    assert verdict == "r: no method is significantly better than all others"
    part = Run(str(run))
    part.__dict__["stale"] = {*part.cells["cell"][:1]}
    *_, matters = cbobench.compare(part).table.note.splitlines()
    assert matters.startswith("stale: played by code that has changed since; ")


@pytest.mark.parametrize(
    ("name", "noise", "first"),
    [("gramacy", 0.1, "rec. r"), ("gramacy", 0.0, "r"), ("rkhs-1d", 0.1, "r")],
)
def test_under_noise_a_box_is_judged_by_what_is_recommended(tmp_path, name, noise, first):
    """The best value that was played is not seen there; on a finite set it is what methods are
    about.
    """
    levels = {"noise": noise} if name == "rkhs-1d" else {"noise_f": noise, "noise_g": noise}
    suite = {
        "suite": "noise",
        "horizon": 3,
        "seeds": 1,
        "problems": [{name: levels}],
        "algorithms": ["random"],
    }
    done = play_here(suite, tmp_path / "run")
    assert cbobench.compare(done).table.columns[2:] == [first, *HEADINGS[1:]]


def test_one_seed_has_no_interval_and_no_mark(tmp_path):
    produced = {("P", a): {"regret": [1.0 * i]} for i, a in enumerate("AB")}
    text = str(cbobench.compare(make(tmp_path, produced, seeds=[0]), metric="regret"))
    assert "the value of one seed, which has no interval" in text
    assert "*" not in text
    assert "R mean" not in text
    assert "[" not in text.splitlines()[3]


def test_every_format_holds_the_same_numbers(run):
    compared = cbobench.compare(run, only="P/*")
    content = json.loads(compared.render("json"))
    rows = list(csv.DictReader(io.StringIO(compared.render("csv"))))
    assert len(content) == len(rows) == 3
    for first, second in zip(content, rows, strict=True):
        assert float(second["regret"]) == first["regret"]
    assert content[0]["simple_regret_median"] == rows[0]["simple_regret_median"] == "inf", (
        "null is what is undefined"
    )
    assert compared.render("markdown") == compared._repr_markdown_()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"metric": "regrt"}, "unknown metric 'regrt'; did you mean 'regret'"),
        ({"metric": [3]}, "metric is .3.; give a name, or a list of names"),
        ({"only": "Z*"}, "unknown pair 'Z.'; .*wildcards"),
        ({"against": "D"}, "unknown algorithm 'D'; allowed: A, B, C"),
        ({"against": "random"}, "'random' names 3 algorithms of this run; give one of"),
        ({"ranks": True, "against": "A"}, "against and ranks are different tables"),
        ({"only_changed": True}, "give a second run"),
        ({"other": "x", "target": 0.1}, "target is about one run"),
        ({"ranks": True, "metric": ["R", "µs"]}, "of µs neither side is better"),
        (
            {"target": float("nan")},
            "target is nan; simple regret is never negative: give 0 or more",
        ),
        ({"target": -0.1}, "target is -0.1; simple regret is never negative: give 0 or more"),
        ({"only": "P/A", "against": "A"}, "no two algorithms"),
        ({"only": "P/A", "ranks": True}, "ranks need two algorithms"),
    ],
)
def test_wrong_words_are_refused_in_one_line(run, options, message):
    with pytest.raises(Misuse, match=message) as caught:
        cbobench.compare(run, **options)
    assert "\n" not in str(caught.value)


def test_values_that_are_no_numbers_are_left_out(tmp_path):
    values = [1.0, 2.0, np.nan, 4.0, np.inf, 6.0, 7.0]
    run = make(
        tmp_path / "run",
        {("P", "A"): {"regret": values}, ("P", "B"): {"regret": [0.0] * 7}},
        seeds=range(7),
    )
    row = row_of(cbobench.summary(run), "P", "A")
    assert (row["n"], row["regret_defined"], row["regret"], row["regret_median"]) == (
        7,
        5,
        4.0,
        4.0,
    )
    assert "5/7" in str(cbobench.compare(run, metric="regret"))


@pytest.mark.parametrize(
    ("value", "is_count", "text"),
    [
        (0, False, "0"),
        (1234567.0, False, "1.23e+06"),
        (12345.6, False, "12,346"),
        (1.23456, False, "1.235"),
        (float("nan"), False, "–"),
        (0.00001, False, "1.00e-05"),
        (0.5, True, "0.5"),
        (2.0, True, "2"),
        (0.0, True, "0"),
        (0.25, True, "0.2500"),
    ],
)
def test_numbers(value, is_count, text):
    assert format_number(value, is_count=is_count) == text


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((64.28, 45.2, 74.1), "64 [45, 74]"),
        ((119.093, 118.16, 119.62), "119.1 [118.2, 119.6]"),
        ((3.0, float("nan"), float("nan")), "3.000"),
        ((33.5, 26.3, float("inf")), "33.5 [26.3, ∞]"),
        ((0.0, 0.0, 9.6e-4), "0 [0, 9.6e-04]"),
        ((float("inf"), 3.0, float("inf")), "∞"),
        ((0.0, 0.0, 0.0), "0 [0, 0]"),
        ((-17.2, -24.9, -0.3), "-17 [-25, 0]"),
        ((0.8042, 0.8042 - 1e-9, 0.8042 + 1e-12), "0.8042 [0.8042, 0.8042]"),
        ((3.4e-4, 3.4e-4, 3.4001e-4), "3.40e-04 [3.40e-04, 3.40e-04]"),
    ],
)
def test_brackets(arguments, text):
    assert format_interval(*arguments) == text


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        ((1e9, 1e9 + 100, 1e9 + 300), ["1,000,000,000", "1,000,000,100", "1,000,000,300"]),
        ((0.98031, 0.98034, 0.5), ["0.98031", "0.98034", "0.50000"]),
        ((-12.1, -12.2), ["-12.10", "-12.20"]),
        ((1234.5, 1234.6), ["1,234.5", "1,234.6"]),
        ((0.3, 0.3 + 1e-16, np.nan, np.inf), ["0.3000", "0.3000", "–", "∞"]),
        ((5.0,), ["5.000"]),
        ((0.0, 1e9), ["0", "1.00e+09"]),
    ],
)
def test_numbers_that_differ_are_told_apart(values, texts):
    assert [format_number(value, apart=find_gap(values)) for value in values] == texts


@pytest.mark.parametrize(
    ("arguments", "apart", "text"),
    [
        ((1e9 + 123, 1e9 + 101, 1e9 + 149), 0.0, "1,000,000,123 [1,000,000,101, 1,000,000,149]"),
        ((1e9, 1e9, 1e9), 0.0, "1.00e+09 [1.00e+09, 1.00e+09]"),
        ((1e9, 1e9, 1e9), 300.0, "1,000,000,000 [1,000,000,000, 1,000,000,000]"),
        ((0.98034, 0.98031, 0.98036), 2e-5, "0.98034 [0.98031, 0.98036]"),
        ((0.98, 0.9, 1.1), 1e-6, "0.98 [0.90, 1.10]"),
        ((0.98, 0.98, 0.98), 1e-6, "0.980000 [0.980000, 0.980000]"),
    ],
)
def test_ends_that_differ_are_told_apart(arguments, apart, text):
    """To two digits of half a width at most: what is closer than that is no difference."""
    assert format_interval(*arguments, apart=apart) == text


def test_ranks_by_hand(run):
    """Ranks of the medians on P and Q; what C failed in on P counts as worse than any value."""
    frame = cbobench.compare(run, ranks=True, metric="regret").frame
    medians = [np.median([*REGRET["C"][1:9], np.inf, np.inf]), np.median(REGRET["C"])]
    pair_of_runs = [[np.median(REGRET["A"]), np.median(REGRET["B"]), last] for last in medians]
    ranks = stats.rankdata(pair_of_runs, axis=1).mean(axis=0)
    np.testing.assert_allclose(frame["rank"], ranks, rtol=1e-12)
    assert set(zip(frame["blocks"], frame["expected"], strict=True)) == {(2, 2)}
    assert frame["beaten"].isna().all(), "two problems tell nothing"
    text = " ".join(str(cbobench.compare(run, ranks=True)).split())
    assert "of those asked for: r 2/2, R 2/2" in text
    assert (
        "too few problems to mark who is best: 2 comparisons of a method need 6 problems, there "
        "are r 2, R 2" in text
    )
    assert "*" not in text


@pytest.mark.parametrize(
    ("counts", "arguments"),
    [
        ((5,), "range: 93.8 % for 5 seeds"),
        ((4, 2, 1), "range: 87.5 % for 4, 50 % for 2 seeds"),
        ((10, 3, 1), "95 % interval, or range below 6 seeds: 75 % for 3"),
        ((1,), "95 % interval"),
    ],
)
def test_what_few_seeds_attain_is_said(tmp_path, counts, arguments):
    produced = {("P", f"A{n}"): {"regret": np.arange(10.0) + n} for n in counts}
    failed = {("P", f"A{n}"): range(n, 10) for n in counts}
    run = make(tmp_path / "run", produced, seeds=range(10), failed=failed)
    text = cbobench.compare(run, metric="regret").table.note
    assert text.startswith(
        f"median [{arguments}] over seeds" if max(counts) > 1 else "the value of one seed"
    )
    twice = cbobench.compare(run, run, metric="regret").table.note
    assert f"median [{arguments}]" in twice


def test_times_of_a_block_have_no_interval(run):
    frame = cbobench.summary(run)
    assert (frame["us_per_round"] > 0).all()
    np.testing.assert_array_equal(frame["us_per_round"], frame["us_per_round_median"])
    for end in ("low", "high", "median_low", "median_high", "q25", "q75"):
        assert frame[f"us_per_round_{end}"].isna().all()
        assert frame[f"violations_{end}"].notna().all()
    assert {
        row["us_per_round_low"] for row in json.loads(cbobench.compare(run).render("json"))
    } == {None}


def test_latex_is_what_a_paper_prints(run):
    """Headline metrics in a float."""
    text = cbobench.compare(run).render("latex")
    lines = text.splitlines()
    body = lines[lines.index(r"\toprule") + 1 : lines.index(r"\bottomrule")]
    headings = [
        line.removesuffix(r" \\").split(" & ") for line in body if line.endswith(r"P & Q \\")
    ]
    assert headings == [[symbol, "P", "Q"] for symbol in ("r", "R", "V$^+$", "N")]
    assert {row.count("&") for row in body if row != r"\midrule"} == {2}
    caption = next(line for line in lines if line.startswith(r"\caption{"))
    assert "made, T = 100" in caption
    assert "Median [95~\\% interval] over seeds; bold: best; $^\\dagger$ no method" in caption
    assert text.count("{") - text.count(r"\{") == text.count("}") - text.count(r"\}")
