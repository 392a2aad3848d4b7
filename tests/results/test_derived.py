"""Sums over rewards are not stored with every round; readers get them as they were during the play,
bit by bit.
"""

from __future__ import annotations

import shutil

import numpy as np
import pyarrow.parquet as pq
import pytest

import cbobench
from cbobench.errors import DamagedRun
from cbobench.metrics import REWARD_STEPS
from cbobench.play import block
from cbobench.results.folder import open_run
from cbobench.results.schema import schema
from cbobench.results.verify import verify
from tests.helpers import assert_same_rows, swept
from tests.results.forging import files, rewrite

SUITE = """\
suite: sums
horizon: 130
seeds: 3
record: {record}
problems: [rkhs-1d, feasible-pocket-drift, gramacy]
algorithms: [random]
"""
SUMS = [*REWARD_STEPS]


@pytest.fixture(autouse=True, scope="module")
def in_parts():
    """Row groups of some rounds, so that cells span several of them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(block.RoundRows, "FLUSH", 100)
        patch.setattr("cbobench.play.play.CHUNK", 7)
        yield


@pytest.fixture(scope="module")
def derived_and_stored(tmp_path_factory, in_parts):
    """A run, and the same with every column stored as it was recorded; to read only."""
    derived = swept(tmp_path_factory.mktemp("derived"), SUITE.format(record="all"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(block, "rounds_schema", lambda complete: schema("rounds"))
        return derived, swept(tmp_path_factory.mktemp("stored"), SUITE.format(record="all"))


@pytest.fixture
def run(derived_and_stored, tmp_path):
    return shutil.copytree(derived_and_stored[0], tmp_path / "derived")


@pytest.fixture
def stored(derived_and_stored, tmp_path):
    return shutil.copytree(derived_and_stored[1], tmp_path / "stored")


def held(run):
    """The columns of sums in each file."""
    return [[name for name in pq.read_schema(file).names if name in SUMS] for file in files(run)]


def test_derived_sums_are_those_of_the_play(run, stored):
    assert held(run) == [[]] * 3
    assert held(stored) == [SUMS] * 3, "otherwise nothing is compared"
    assert pq.ParquetFile(files(run)[0]).num_row_groups > 1
    assert_same_rows(run, stored)
    of_derived, of_stored = (
        open_run(folder).read("rounds", files(run)[0].stem) for folder in (run, stored)
    )
    assert of_derived.schema == of_stored.schema
    assert of_derived.column_names == schema("rounds").names
    assert not verify(open_run(run)).damaged
    drift = cbobench.load_rounds(run, problem="feasible-pocket-drift", seed=0)
    assert drift["f_star"].nunique() > 1, "f* moves during the play, and its sums with it"
    np.testing.assert_allclose(drift["regret"], (drift["f_star"] - drift["f"]).cumsum(), rtol=1e-12)
    assert drift["regret_plus"].isna().all(), "unknown stays unknown"


def test_thinned_rounds_hold_them(run, tmp_path):
    thinned = swept(tmp_path, SUITE.format(record="{rounds: 10}"))
    assert held(thinned) == [SUMS] * 3
    thinned_rounds, all_rounds = cbobench.load_rounds(thinned), cbobench.load_rounds(run)
    keys = ["cell", "t"]
    same = all_rounds.merge(thinned_rounds[keys], on=keys)
    assert len(thinned_rounds) == len(same) == 3 * 3 * 10
    for name in SUMS:
        assert thinned_rounds[name].equals(same[name])


def test_files_of_another_version_are_refused(stored):
    rewrite(files(stored)[0], schema=4)
    with pytest.raises(DamagedRun, match="has schema version 4, this cbobench reads 6"):
        cbobench.load_rounds(stored)


def test_a_missing_round_is_damage(run):
    rewrite(files(run)[0], lambda table: table.filter([i != 5 for i in range(len(table))]))
    with pytest.raises(DamagedRun, match="it lacks rounds of a cell"):
        cbobench.load_rounds(run, columns=["regret"])
    assert "are not what was played" in verify(open_run(run)).damaged[0].why
