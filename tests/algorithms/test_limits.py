"""Limits in which two methods must coincide."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cbobench.algorithms.penalty import psi
from cbobench.algorithms.references import IGPUCB
from cbobench.params import build
from tests.helpers import actions, long, long_cases, make, play, problem

T = 40
ALONE = {"beta": 1.5, "B": "sup"}  # equal widths
SAME = ALONE | {"G": "sup"}
TASKS = {
    "finite": {"name": "rkhs", "d": 2, "n": 60},  # no symmetric points: rounding breaks no ties
    "box": {"name": "feasible-pocket", "candidates": 64},
}
# every day one limit on a box
FINITE_AND_BOX = ["finite", *long("box")]


def played(task, algorithm, horizon=T, seeds=2):
    return actions(play(problem(**task), algorithm, seeds=seeds, horizon=horizon, key="limit")[1])


def same_streams(algorithm, name):
    """Streams are named by the algorithm; twins must draw from the same ones."""
    algorithm.name = name
    return algorithm


def agree(varied, plain, task):
    """Two algorithms with the same streams make the same plays; on a box, up to rounding in the
    maximiser.
    """
    plays, theirs = (played(TASKS[task], same_streams(a, "twin")) for a in (varied, plain))
    if task == "finite":
        np.testing.assert_array_equal(plays, theirs)
    else:
        # the root of how far rounding moves a maximum
        np.testing.assert_allclose(plays, theirs, atol=1e-5)
    return plays


@pytest.mark.parametrize("task", FINITE_AND_BOX)
def test_restart_after_the_horizon_is_ckb(task):
    plays = agree(make("ckb-restart", restart=T, **SAME), make("ckb-ucb", **SAME), task)
    restarted = played(TASKS[task], same_streams(make("ckb-restart", restart=10, **SAME), "twin"))
    assert not np.array_equal(restarted, plays)


def test_a_window_of_the_whole_horizon_is_rpol():
    plays = agree(
        make("rpol-sw", window=T, variation="none", **SAME), make("rpol-ucb", **SAME), "finite"
    )
    windowed = played(
        TASKS["finite"], same_streams(make("rpol-sw", window=10, variation="none", **SAME), "twin")
    )
    assert not np.allclose(windowed, plays)


@pytest.mark.parametrize(("task", "delay"), [("finite", 1e-12), *long_cases(("box", None))])
def test_no_delay_is_rpol(task, delay):
    """Without delays, and with delays that are always 0 but go the whole way of delayed
    feedback.
    """
    prompt, late = TASKS[task], TASKS[task] | {"delay": delay}
    censored = played(late, same_streams(make("rpol-censored", lag=0.0, **SAME), "twin"))
    plain = played(prompt, same_streams(make("rpol-ucb", **SAME), "twin"))
    also_plain = played(late, same_streams(make("rpol-ucb", **SAME), "twin"))
    np.testing.assert_allclose(censored, plain, atol=1e-5)
    np.testing.assert_allclose(also_plain, plain, atol=1e-5)


@pytest.mark.parametrize("task", FINITE_AND_BOX)
def test_a_large_exact_penalty_is_config(task):
    plays = agree(make("epbo", rho=1e5, **SAME), make("config", **SAME), task)
    mild = played(TASKS[task], same_streams(make("epbo", rho=0.01, **SAME), "twin"))
    assert not np.allclose(mild, plays)


def constant_cost(level):
    """rkhs-1d with g replaced by a constant, shown before acting."""
    task = problem("rkhs-1d", full_information=True, noise=0.1)
    draw = type(task).draw

    def constant(generators):
        drawn = draw(task, generators)
        return replace(drawn, g=np.full_like(drawn.g, level))

    task.draw = constant
    return task


@pytest.mark.parametrize(("name", "bounds"), [("scgp-ucb", {}), ("ckb-ucb", {"G": 1e6})])
def test_without_an_active_constraint_the_dual_rests_and_the_method_is_igp(name, bounds):
    """A constant, very negative g keeps Q and φ at 0."""
    wide = {"beta": 1.5, "B": 1e6}
    _, dual_play = play(
        constant_cost(-5.0), same_streams(make(name, **wide, **bounds), "twin"), horizon=T
    )
    _, igp = play(constant_cost(-5.0), same_streams(make("igp-ucb", **wide), "twin"), horizon=T)
    np.testing.assert_array_equal(actions(dual_play), actions(igp))
    assert not dual_play[0].duals.any()


def test_no_penalty_is_igp():
    agree(make("fixed-penalty", kappa=0.0, **SAME), make("igp-ucb", **ALONE), "finite")


class Inner(IGPUCB):
    """IGP-UCB on the inner target of Algorithm 2 with κ = 1."""

    def targets(self, feedback):
        return (feedback.f - (psi(feedback.g, "exponential", 1.0, 1.0) - 1).sum(axis=1))[:, None]


@pytest.mark.parametrize("task", TASKS)
def test_one_epoch_is_igp_on_the_inner_target(task):
    alone, same = ({"kernel": "given"} | settings for settings in (ALONE, SAME))
    agree(make("penalty-noiseless", S=T, **same), build(Inner, alone), task)
    agree(make("penalty-noisy", S=T, **same), make("igp-ucb", **alone), task)
