"""Entries of vectors and labels as plain columns of recorded rounds."""

from __future__ import annotations

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
    whole = cbobench.load_rounds(run)
    plain = cbobench.load_rounds(run, columns=["g_1", "g_2", "x_1", "dual_1", "observed_g_2"])
    assert plain.columns.tolist()[-5:] == ["g_1", "g_2", "x_1", "dual_1", "observed_g_2"]
    assert not {"g", "x", "dual", "observed_g", "f"} & set(plain.columns)
    for name in ("g_1", "g_2", "x_1", "dual_1", "observed_g_2"):
        vector, k = name[:-2], int(name[-1]) - 1
        expected = [row[k] if row is not None and len(row) > k else np.nan for row in whole[vector]]
        np.testing.assert_array_equal(plain[name], np.array(expected, dtype=float), err_msg=name)
    assert plain["g_2"].isna().sum() == plain["x_1"].notna().sum() == len(plain) / 2
    both = cbobench.load_rounds(run, columns=["g_1", "g"], problem="two")
    assert [row[0] for row in both["g"]] == both["g_1"].tolist()


def test_labels_on_request(run):
    frame = cbobench.load_rounds(run, columns=["label", "problem_label", "t"])
    assert dict(zip(frame["algorithm"], frame["label"], strict=True)) == {"ckb-ucb": "CKB", "random": "random"}
    assert set(frame["problem_label"]) == {"two", "no-fixed-penalty"}
    assert "label" not in cbobench.load_rounds(run, columns="regret")
    none = cbobench.load_rounds(run, columns=["label", "g_1"], status="failed")
    assert (len(none), none.columns.tolist()[-2:]) == (0, ["g_1", "label"])


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
