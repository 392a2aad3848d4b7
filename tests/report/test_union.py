"""Several runs and bundles as one table: the cells of all, each once; two methods of one name are
told apart.
"""

from __future__ import annotations

import itertools
import re

import pandas as pd
import pytest

import cbobench
from cbobench.cli import main
from cbobench.errors import Misuse
from cbobench.metrics import METRICS
from cbobench.report.load import Run
from cbobench.report.setups import find_setups
from cbobench.results.export import export
from tests.helpers import long, play_here
from tests.report.made import make

SUITE = {
    "suite": "whole",
    "horizon": 5,
    "seeds": 6,
    "algorithms": ["cei", "random", "sobol"],
    "problems": ["gramacy"],
}


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    """A run of everything; a run of one method, and a bundle of two, one of them also in the
    run.
    """
    folder = tmp_path_factory.mktemp("union")
    for name, methods in (
        ("whole", SUITE["algorithms"]),
        ("mine", ["cei", "random"]),
        ("theirs", ["random", "sobol"]),
    ):
        play_here(SUITE | {"algorithms": methods}, folder / name)
    bundle = export(folder / "theirs", folder / "theirs.zip").file
    return folder / "whole", folder / "mine", bundle


@pytest.mark.parametrize("options", [{"ranks": True}, {"against": "random"}, {}])
def test_a_union_is_compared_as_one_run(parts, options):
    full_run, *remainder = parts
    frames = [cbobench.compare(run, **options).frame for run in (full_run, remainder)]
    keys = [
        name for name in ("problem", "algorithm", "metric", "target", "goal") if name in frames[0]
    ]
    left, right = (
        frame.drop(columns=[name for name in frame if "us_per" in name]).sort_values(
            keys, ignore_index=True
        )
        for frame in frames
    )
    pd.testing.assert_frame_equal(left, right)


def test_the_command_reads_several_as_one_where_only_that_can_be_meant(parts, capsys):
    full_run, ours, bundle = map(str, parts)
    assert main(["compare", ours, bundle, "--ranks"]) == 0
    assert re.search(
        r"6 cells of several runs: the first named counts[;\n]", capsys.readouterr().out
    )
    assert main(["compare", ours, "--union", bundle, full_run]) == 0
    assert "sobol" in capsys.readouterr().out
    assert main(["compare", ours, bundle]) in (1, 3), "two runs are before and after"
    assert "only before" in capsys.readouterr().out
    assert main(["compare", ours, bundle, full_run]) == 2
    assert "3 runs are given; allowed: two" in capsys.readouterr().err
    assert main(["compare", ours, bundle, "--ranks", "--only-changed"]) == 2
    assert "about two runs" in capsys.readouterr().err


def test_a_damaged_run_is_named_and_the_rest_goes_on(parts, tmp_path, capsys):
    _, ours, bundle = map(str, parts)
    cut = tmp_path / "cut.zip"
    cut.write_bytes(b"PK")
    assert main(["compare", ours, str(cut), bundle, "--union"]) == 1
    out, err = capsys.readouterr()
    assert "sobol" in out
    assert err.startswith(f"left out: {cut} is no run folder and no whole bundle")
    assert main(["compare", str(cut), "--union"]) == 1


@pytest.mark.parametrize("option", ["--union", "--ranks"])
def test_a_mistyped_folder_among_several_is_refused(parts, capsys, option):
    _, ours, bundle = map(str, parts)
    assert main(["compare", ours, f"{ours}e", bundle, option]) == 2
    out, err = capsys.readouterr()
    assert (out, "is not a run folder" in err) == ("", True)


def test_one_problem_of_two_kinds_is_refused(parts, tmp_path, capsys):
    noisy = {"problems": [{"gramacy": {"noise_f": 0.5, "label": "gramacy"}}]}
    suite = SUITE | {"algorithms": ["random"]} | noisy
    second_run = play_here(suite, tmp_path / "other")
    assert main(["compare", str(parts[1]), str(second_run.folder), "--ranks"]) == 2
    assert "'gramacy' is another problem in other than in mine (noise_f" in capsys.readouterr().err


def test_methods_of_one_name_are_told_apart_by_their_run(parts, tmp_path):
    """By label, and by title, of which the settings of a suite are no part."""
    other = [{"cei": {"delta": 0.2, "label": "cei"}}, "random"]
    runs = {
        "mine": parts[1],
        "other": play_here(SUITE | {"algorithms": other}, tmp_path / "other"),
        "late": play_here(
            SUITE | {"algorithms": ["cei"], "initial": {"sobol": 2}}, tmp_path / "late"
        ),
    }
    mine = {"algorithms": [{"cei": {"label": "mine"}}]}
    again = play_here(SUITE | mine, tmp_path / "again")
    joined = cbobench.compare([*runs.values(), again], metric="R")
    alone = [cbobench.compare(run, only="*/cei", metric="R").frame for run in runs.values()]
    medians = dict(zip(joined.frame["algorithm_label"], joined.frame["regret"], strict=True))
    del medians["random"]
    assert [*medians] == ["cei", "cei (other)", "cei (late)"]
    assert [*medians.values()] == [frame["regret"].item() for frame in alone]
    assert "from cei to cei (other): delta 0.05 → 0.2" in str(joined)
    pair = cbobench.compare([runs["mine"], runs["other"]], against="cei (other)", metric="r")
    assert [*pair.frame["algorithm_label"]] == ["cei", "random"]


OTHER_COLUMNS = sorted({*METRICS, "f_star", "longest_streak"} - {"regret"})


@pytest.mark.parametrize(
    "column", ["regret", "first_feasible", "recommended_f", *long(*OTHER_COLUMNS)]
)
def test_every_number_of_a_cell_tells_two_results_apart(tmp_path, column):
    """Of bundles, too, and of a run beside a bundle; what is equal, or undefined in both, does not
    differ.
    """
    runs = {}
    for name, value in (("one", 0.5), ("same", 0.5), ("other", 2.0)):
        value = int(2 * value) if "first" in column or "longest" in column else value
        cells = {("P", "A"): {column: [value] * 3} | {"f_plus": [float("nan")] * 3}}
        folder = make(
            tmp_path / name,
            cells,
            seeds=range(3),
            rounds={("P", "A"): {"t": [100], "regret": [[0.0]] * 3}},
        )
        runs[name] = folder, export(folder, tmp_path / f"{name}.zip").file
    for first, second in itertools.product(runs["one"], runs["other"]):
        text = str(cbobench.compare([str(first), str(second)]))
        assert (
            "3 cells of several runs: the first named counts, though the results of 3 differ"
            in text
        )
    for first, second in itertools.product(runs["one"], runs["same"]):
        assert "the first named counts, though" not in str(
            cbobench.compare([str(first), str(second)])
        )
        assert "the first named counts" in str(cbobench.compare([str(first), str(second)]))


@pytest.fixture(scope="module")
def unlike(parts):
    """Runs of a method by another set-up than that of `full_run`, and to another horizon."""
    folder = parts[0].parent
    settings = SUITE | {"suite": "mine", "algorithms": [{"igp-ucb": {"label": "mine"}}]}
    changes = {
        "designed": {"initial": {"sobol": 3}},
        "batched": {"parallel": 2},
        "short": {"horizon": 4},
    }
    for name, change in changes.items():
        play_here(settings | change, folder / name)
    return {name: folder / name for name in changes}


@pytest.mark.parametrize("options", [{"ranks": True}, {"against": "cei"}], ids=str)
@pytest.mark.parametrize(
    ("name", "phrase"),
    [
        (
            "designed",
            r"^initial design differs: none for cei, random, sobol, sobol 3 for mine; play all "
            r"runs with",
        ),
        (
            "batched",
            r"^evaluations under way differs: 1 for cei, random, sobol, 2 \(asynchronous\) for "
            r"mine; play",
        ),
    ],
)
def test_runs_of_unlike_set_ups_are_not_compared(parts, unlike, options, name, phrase):
    with pytest.raises(Misuse, match=phrase):
        cbobench.compare([parts[0], unlike[name]], **options)


def test_a_list_of_unlike_set_ups_says_so_and_marks_nothing(parts, unlike, tmp_path, capsys):
    alone = play_here(SUITE | {"algorithms": ["cei"]}, tmp_path / "alone").folder
    assert main(["compare", str(alone), str(unlike["designed"]), "--union", "--metric", "V+"]) == 0
    unfair = capsys.readouterr().out
    assert "\ninitial design differs: none for cei, sobol 3 for mine\n" in unfair
    assert not re.search(r"[])\d]\* |\* best", unfair)
    assert main(["compare", str(parts[1]), "--union", "--metric", "V+"]) == 0
    fair = capsys.readouterr().out
    assert re.search(r"[])\d]\*", fair)
    assert "differs" not in fair


def test_a_reference_method_has_no_set_up(tmp_path):
    oracle = play_here(SUITE | {"algorithms": ["oracle"]}, tmp_path / "oracle")
    designed = SUITE | {"algorithms": ["random", "oracle"], "initial": {"sobol": 3}}
    second_run = play_here(designed, tmp_path / "other")
    assert find_setups(Run(second_run.folder).record).keys() == {"random"}
    cbobench.compare([oracle, second_run], ranks=True, metric="r")


def test_a_change_of_set_up_is_no_change_of_a_method(unlike, tmp_path):
    settings = SUITE | {"suite": "mine", "algorithms": [{"igp-ucb": {"label": "mine"}}]}
    plain = play_here(settings, tmp_path / "plain")
    assert (
        "initial design none and sobol 3 (1)" in cbobench.compare(plain, unlike["designed"]).nothing
    )
    assert (
        "evaluations under way 1 and 2 (asynchronous)"
        in cbobench.compare(plain, unlike["batched"]).nothing
    )


@pytest.mark.parametrize("options", [{"ranks": True}, {"against": "cei"}, {}], ids=str)
def test_a_method_of_another_horizon_is_named(parts, unlike, options):
    text = str(cbobench.compare([unlike["short"], parts[0]], metric="V+", **options))
    assert (
        "\nmine has T = 4, the others T = 5: it is not compared with them; play all to one "
        "horizon; " in text
    )


def test_a_reference_of_another_horizon_is_why_nothing_can_be_paired(parts, unlike):
    with pytest.raises(
        Misuse, match=r"^cei, random, sobol have T = 5, the others T = 4: they are not compared"
    ):
        cbobench.compare([parts[0], unlike["short"]], against="mine")


def test_ranks_are_over_the_seeds_that_all_methods_have(tmp_path):
    """Where one method has the first seeds alone, the others' further ones must not count."""
    few_cells = {("P", "A"): {"regret": [5.0, 6.0]}}
    many = {("P", "B"): {"regret": [9.0, 9.0, 0.0, 0.0, 0.0]}}
    runs = [
        make(tmp_path / "few", few_cells, seeds=range(2)),
        make(tmp_path / "many", many, seeds=range(5)),
    ]
    comparison = cbobench.compare([str(run) for run in runs], ranks=True, metric="regret")
    assert comparison.frame.set_index("algorithm_label")["rank"].to_dict() == {"A": 1.0, "B": 2.0}
    assert "by the 2 seeds that all algorithms were asked for, of up to 5" in str(comparison)


def test_ranks_count_a_method_whose_shared_seeds_all_failed(tmp_path):
    few_cells = {(p, "A"): {"regret": [5.0, 6.0]} for p in "PQ"}
    many = {(p, "B"): {"regret": [1.0] * 5} for p in "PQ"}
    runs = [
        make(tmp_path / "few", few_cells, seeds=range(2)),
        make(tmp_path / "many", many, seeds=range(5), failed={("P", "B"): [0, 1]}),
    ]
    comparison = cbobench.compare([str(run) for run in runs], ranks=True, metric="regret")
    assert comparison.frame.set_index("algorithm_label")["rank"].to_dict() == {"A": 1.5, "B": 1.5}
    assert "asked for: R 2/2" in " ".join(str(comparison).split())


def test_methods_without_a_shared_seed_cannot_be_ranked(tmp_path):
    seeds = {"A": range(2), "B": range(2), "C": range(5, 7)}
    runs = [
        make(tmp_path / a, {("P", a): {"regret": [1.0, 2.0]}}, seeds=held)
        for a, held in seeds.items()
    ]
    with pytest.raises(
        Misuse, match="share no seed on P, so they cannot be ranked: A and C have others"
    ):
        cbobench.compare([str(run) for run in runs], ranks=True, metric="regret")


def test_a_label_is_that_of_the_run_that_has_the_cells(tmp_path):
    """Each of two parts of a suite lists both methods; the later part knows a newer label of the
    first's.
    """

    def part(name, label, only):
        methods = [{"random": {"label": label}}, "sobol"]
        suite = {
            "suite": "s",
            "horizon": 5,
            "seeds": 2,
            "problems": ["gramacy"],
            "algorithms": methods,
        }
        return play_here(suite, tmp_path / name, only=only).folder

    runs = [part("first", "chance", "*/random"), part("second", "dice", "*/sobol")]
    assert set(cbobench.compare([str(run) for run in runs]).frame["algorithm_label"]) == {
        "chance",
        "sobol",
    }


def test_what_ranks_leave_out_is_said_with_the_problems_it_lacks(tmp_path):
    full = {(p, a): {"regret": [1.0, 2.0]} for p in "PQRS" for a in "AB"}
    full["S", "A"] = {"regret": [float("nan")] * 2}
    one, part = {key: full[key] for key in full if key[1] == "A"}, {("P", "C"): full["P", "A"]}
    runs = [
        make(tmp_path / name, cells, seeds=range(2))
        for name, cells in (("full", full), ("part", part), ("one", one))
    ]
    printed = " ".join(str(cbobench.compare(runs[:2], ranks=True, metric="regret")).split())
    assert "of those asked for: R 3/4 (not on S)" in printed
    assert "left out, as they lack good cells on some problems: C (on Q, R, S)" in printed
    with pytest.raises(Misuse, match=r"every problem, which these lack: C \(on Q, R, S\); choose"):
        cbobench.compare(runs[1:], ranks=True)
