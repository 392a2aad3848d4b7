"""What a reader may ask a run for: columns, labels, titles and registered names; nearest words are
shown.
"""

from __future__ import annotations

import re

import numpy as np
import pytest

import cbobench
from cbobench.errors import Misuse
from tests.helpers import swept

SUITE = """\
suite: columns
horizon: 12
seeds: 2
problems:
  - rkhs: {m: 2, n: 20, label: two}
  - no-fixed-penalty
algorithms:
  - ckb-ucb: {label: CKB}
  - random
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return swept(tmp_path_factory.mktemp("columns"), SUITE)


def test_entries_of_vectors_are_plain_columns(run):
    full_run = cbobench.load_rounds(run)
    plain = cbobench.load_rounds(run, columns=["g_1", "g_2", "x_1", "dual_1", "observed_g_2"])
    assert plain.columns.tolist()[-5:] == ["g_1", "g_2", "x_1", "dual_1", "observed_g_2"]
    assert not {"g", "x", "dual", "observed_g", "f"} & set(plain.columns)
    for name in ("g_1", "g_2", "x_1", "dual_1", "observed_g_2"):
        vector, k = name[:-2], int(name[-1]) - 1
        expected = [
            row[k] if row is not None and len(row) > k else np.nan for row in full_run[vector]
        ]
        np.testing.assert_array_equal(plain[name], np.array(expected, dtype=float), err_msg=name)
    assert plain["g_2"].isna().sum() == plain["x_1"].notna().sum() == len(plain) / 2
    two_columns = cbobench.load_rounds(run, columns=["g_1", "g"], problem="two")
    assert [row[0] for row in two_columns["g"]] == two_columns["g_1"].tolist()


def test_labels_on_request(run):
    frame = cbobench.load_rounds(run, columns=["label", "problem_label", "t"])
    assert set(frame["label"]) == {"CKB", "random"}
    assert "label" not in cbobench.load_rounds(run, columns="regret")
    none = cbobench.load_rounds(run, columns=["label", "g_1"], status="failed")
    assert (len(none), none.columns.tolist()[-2:]) == (0, ["g_1", "label"])


def test_labels_have_the_same_names_in_all_frames(run):
    rounds = cbobench.load_rounds(run, columns=["algorithm_label", "problem_label"])
    for frame in (rounds, cbobench.load_cells(run), cbobench.summary(run)):
        labels = dict(zip(frame["algorithm"], frame["algorithm_label"], strict=True))
        assert labels == {"ckb-ucb": "CKB", "random": "random"}
        assert set(frame["problem_label"]) == {"two", "no-fixed-penalty"}


def test_coordinates_of_actions_without_any_are_refused(run):
    with pytest.raises(
        Misuse, match="'x_1': the actions of 'two' are numbers without coordinates; take 'action'"
    ):
        cbobench.load_rounds(run, columns=["x_1"], problem="two")


def test_an_unknown_column_or_filter_lists_all_that_there_are(run):
    for ask, allowed in (
        (lambda: cbobench.load_rounds(run, columns=["qqq"]), cbobench.load_rounds(run).columns),
        (
            lambda: cbobench.load_cells(run, qqq=1),
            [n for n in cbobench.load_cells(run) if not n.endswith("_label")],
        ),
    ):
        with pytest.raises(Misuse, match="allowed: ") as error:
            ask()
        assert {*allowed} <= {*str(error.value).partition("allowed: ")[2].split(", ")}


@pytest.mark.parametrize("load", [cbobench.load_rounds, cbobench.load_cells])
def test_every_column_is_in_the_docstring(run, load):
    named = {*re.findall(r"`(\w+)`", load.__doc__)}
    assert {*load(run).columns} <= named


@pytest.mark.parametrize("name", ["g_0", "f_1"])
def test_other_names_are_refused(run, name):
    with pytest.raises(Misuse, match=f"unknown column '{name}'"):
        cbobench.load_rounds(run, columns=[name])


def test_cells_say_what_became_of_duals_and_constraints(run):
    cells = cbobench.load_cells(run)
    rounds = cbobench.load_rounds(run, columns=["dual_1", "dual_2"])
    share = ((rounds["dual_1"] > 0) | (rounds["dual_2"] > 0)).groupby(rounds["cell"]).mean()
    for cell in cells.itertuples():
        if cell.algorithm == "random":
            assert np.isnan(cell.positive_dual)
        else:
            assert cell.positive_dual == pytest.approx(share[cell.cell], abs=1e-12)
    assert cells.loc[cells["problem"] == "no-fixed-penalty", "binds"].all()
    assert cells["binds"].notna().all()


WORDS = """\
suite: filters
horizon: 20
seeds: 3
problems:
  - rkhs-1d: {h: 0.25, label: quarter}
  - rkhs-1d: {label: half}
algorithms:
  - ckb-rand: {beta_scale: {sweep: [0.2, 1.0]}, label: Rand}
  - ckb-ucb: {label: UCB}
  - ckb-ucb: {slack: 0.1}
"""


@pytest.fixture(scope="module")
def variants(tmp_path_factory):
    return swept(tmp_path_factory.mktemp("filters"), WORDS)


@pytest.mark.parametrize(
    ("filters", "cells"),
    [
        ({"algorithm": "UCB"}, 6),  # a label
        ({"algorithm": "ckb-ucb"}, 6),  # a title, which is also the name of two variants
        ({"algorithm": "ckb-ucb[slack=0.1]"}, 6),  # a title
        ({"algorithm": "ckb-rand"}, 12),  # the name of two variants, and no title
        ({"algorithm": "Rand (beta_scale = 0.2)"}, 6),
        ({"algorithm": ["UCB", "ckb-rand"]}, 18),
        ({"problem": "quarter"}, 12),
        ({"problem": "rkhs-1d[h=0.25]", "algorithm": "UCB", "seed": [0, 2]}, 2),
        ({"status": "failed"}, 0),  # none has failed: an empty frame is the answer
        ({"horizon": 20, "seed": 1}, 8),
    ],
)
def test_words_that_a_reader_may_use(variants, filters, cells):
    assert len(cbobench.load_cells(variants, **filters)) == cells
    assert len(cbobench.load_rounds(variants, ["regret"], **filters)) == 20 * cells


@pytest.mark.parametrize(
    ("filters", "message"),
    [
        ({"algorithm": "UBC"}, "unknown algorithm 'UBC'; did you mean 'UCB'"),
        ({"algorithm": ["UCB", "stageopt"]}, "unknown algorithm 'stageopt'; allowed: Rand"),
        ({"problem": "quartr"}, "unknown problem 'quartr'; did you mean 'quarter'"),
        ({"seed": 3}, "unknown seed 3; allowed: 0, 1, 2"),
        ({"horizon": 21}, "unknown horizon 21; allowed: 20"),
        ({"status": "faild"}, "unknown status 'faild'; did you mean 'failed'"),
        ({"sead": 3}, "unknown filter 'sead'; did you mean 'seed'"),
    ],
)
def test_words_that_match_nothing_are_refused(variants, filters, message):
    with pytest.raises(Misuse, match=message):
        cbobench.load_cells(variants, **filters)
    with pytest.raises(Misuse, match=message):
        cbobench.load_rounds(variants, **filters)
