"""The default noise of engineering designs is in proportion to the spread of f near the optimum,
and `show` says so.
"""

from __future__ import annotations

import re

import numpy as np
import pytest

from cbobench.cli import main
from cbobench.params import build
from cbobench.problems import PROBLEMS
from cbobench.problems.formulas.literature import Design
from tests.helpers import problem

DESIGNS = [n for n in PROBLEMS.names() if issubclass(PROBLEMS.get(n), Design)]


def share_of_spread(name: str, noise: float) -> float:
    """noise over the deviation of f, in units of its deviation over the box, at feasible points
    near the optimum.
    """
    task, gen = build(PROBLEMS.get(name), {}), np.random.default_rng(3)
    d, corner, sides = len(task.low), np.array(task.low), np.array(task.high) - np.array(task.low)
    best = (np.array(task.reference.x) - corner) / sides
    low, high = np.clip(best - 0.1, 0, 1), np.clip(best + 0.1, 0, 1)
    near = task.formula(corner + sides * (low + gen.random((2**14, d)) * (high - low)))
    spread_over_box = task.formula(corner + sides * gen.random((2**14, d)))[:, 0].std()
    return float(noise * spread_over_box / near[(near[:, 1:] <= 0).all(axis=1), 0].std())


@pytest.mark.parametrize("name", DESIGNS)
def test_the_noise_of_a_design_is_a_twentieth_of_the_spread_near_the_optimum(name):
    task = problem(name)
    share = share_of_spread(name, task.noise_f)
    assert share == pytest.approx(0.05, rel=0.1)
    assert task.noise_ratio() == pytest.approx(share, rel=0.1)
    assert problem(name, noise_f=2 * task.noise_f).noise_ratio() == pytest.approx(
        2 * task.noise_ratio()
    )
    raw = task.noise_f * task.scaling[1][0]
    assert raw < 0.2 * abs(task.reference.f)


def test_show_says_how_large_the_noise_is(capsys):
    assert main(["show", "welded-beam"]) == 0
    assert re.search(
        r"^default noise on f: (4\.9|5\.?)\d* % of f's deviation",
        capsys.readouterr().out,
        flags=re.M,
    )
    assert main(["show", "rkhs-1d"]) == 0
    assert "noise on f:" not in capsys.readouterr().out
