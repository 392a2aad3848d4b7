"""Cells of several pairs play in one block where they may: their bits are those of a cell alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import cbobench
from cbobench.algorithms import ALGORITHMS
from cbobench.algorithms.ckb import CKBUCB
from cbobench.params import shared_values
from cbobench.problems.rkhs.functions import RKHS1D
from cbobench.suite.call import Call
from cbobench.sweep.plan import plan
from tests.helpers import assert_same_rows, long, play_here

SUITE = """\
suite: variants
horizon: 6
seeds: 2
problems: [rkhs-1d, {rkhs-1d: {h: 0.25}}]
algorithms:
  - ckb-ucb: {beta_scale: {sweep: [0.1, 0.2, 0.4]}, V: {sweep: [theory, 3.0, 5.0]}}
  - ckb-rand: {beta_scale: {sweep: [0.1, 0.2]}, law: {sweep: [normal, uniform]}}
  - random
"""


def test_pairs_that_may_share_a_block_do(write_suite, tmp_path):
    tasks = plan(Call(write_suite(SUITE), out=tmp_path / "r", cpus=1)).tasks
    cells = {}
    for task in tasks:
        cells.setdefault(task.pair.problem.title, []).append(len(task.cells))
        assert len({shared(cell) for cell in task.cells}) == 1
    # V: theory, and V: a number; two laws; random
    assert [sorted(sizes) for sizes in cells.values()] == [[2, 4, 4, 6, 12]] * 2
    alone = plan(Call(write_suite(SUITE), out=tmp_path / "r", cpus=1, block=1)).tasks
    assert {len(task.cells) for task in alone} == {1}


def shared(cell):
    values = shared_values(ALGORITHMS.get(cell.pair.algorithm.name), cell.pair.algorithm.settings)
    return cell.pair.problem.title, cell.pair.algorithm.name, str(values)


@pytest.mark.parametrize("cpus", [0, *long(2)])
def test_the_bits_are_those_of_a_cell_alone(write_suite, tmp_path, cpus):
    cbobench.run(write_suite(SUITE), out=tmp_path / "together", cpus=cpus)
    play_here(write_suite(SUITE), tmp_path / "alone", block=1)
    assert len(cbobench.load_cells(tmp_path / "together")) == 2 * (9 + 4 + 1) * 2
    assert_same_rows(tmp_path / "together", tmp_path / "alone")


@dataclass(kw_only=True)
class Fails(CKBUCB):
    """Fails where its slack is large."""

    def ask(self, t):
        if t == 3 and np.max(self.slack) > 0.5:
            raise ValueError("too slack")
        return super().ask(t)


def test_a_cell_that_fails_leaves_the_others_of_its_block(write_suite, tmp_path):
    text = "suite: t\nhorizon: 5\nseeds: 2\nproblems: [rkhs-1d]\nalgorithms:\n"
    text += f"  - {__name__}:Fails: {{slack: {{sweep: [0.1, 0.9]}}}}\n"
    out = play_here(write_suite(text), tmp_path / "r")
    assert (out.tasks, out.failed) == (1, 2)
    assert [error.partition(": ")[0] for error in out.errors] == [
        f"rkhs-1d / {__name__}:Fails[slack=0.9] seed {seed}" for seed in (0, 1)
    ]
    good = cbobench.load_cells(out)
    assert sorted(good[good["status"] == "ok"]["algorithm"]) == [f"{__name__}:Fails[slack=0.1]"] * 2


def test_instances_are_drawn_once_for_all_algorithms(write_suite, tmp_path, monkeypatch):
    text = "suite: t\nhorizon: 5\nseeds: 3\nproblems: [rkhs-1d]\nalgorithms:\n"
    text += f"  - random\n  - ckb-ucb\n  - {__name__}:Spoils\n  - igp-ucb\n"
    drawn, draw = [], RKHS1D.draw

    def count(self, generators):
        drawn.append(len(generators))
        return draw(self, generators)

    monkeypatch.setattr(RKHS1D, "draw", count)
    play_here(write_suite(text), tmp_path / "r")
    assert drawn.count(3) == 1
    alone = play_here(write_suite(text), tmp_path / "alone", block=1)
    assert_same_rows(tmp_path / "r", alone)


@dataclass(kw_only=True)
class Spoils(CKBUCB):
    """Changes what it is given, which is its own."""

    def start(self, setting):
        setting.norm[:] *= 3
        super().start(setting)
