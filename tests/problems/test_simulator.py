"""Simulators: what is told, what metrics are of, what regret is against, and what is refused."""

from __future__ import annotations

import builtins
import os
import random
import re
import sys
import time
import warnings
from dataclasses import dataclass
from io import StringIO

import numpy as np
import pytest
import scipy.linalg
import scipy.optimize
import scipy.special
import scipy.stats

import cbobench
from cbobench.algorithms import ALGORITHMS
from cbobench.algorithms.references import Random
from cbobench.cli import main
from cbobench.errors import CellFailure, Misuse
from cbobench.params import build
from cbobench.problems.simulated import SimulationCounts
from cbobench.problems.simulator import Simulator
from cbobench.suite.prepare import _try_start, check_needs
from cbobench.suite.variants import Variant
from cbobench.surroundings import REPLACED
from tests.algorithms.test_contract import check_alone_as_in_a_block
from tests.helpers import actions, make, play, prepare_class, refused

SD = 0.3


@dataclass(kw_only=True)
class Noisy(Simulator):
    """f = 10 - |x - (1, 2)|², g = x_1 + x_2 - 2.5 on [0, 2] x [0, 4], each with noise."""

    source = "a test"
    about = "a bowl"
    low, high = (0.0, 0.0), (2.0, 4.0)

    def simulate(self, x, gen):
        f = 10 - (x[0] - 1) ** 2 - (x[1] - 2) ** 2
        return [f + SD * gen.normal(), x[0] + x[1] - 2.5 + 0.1 * gen.normal()]


@dataclass(kw_only=True)
class Exact(Noisy):
    noisy = False
    calls = 0

    def simulate(self, x, gen):
        type(self).calls += 1
        return 10 - (x[0] - 1) ** 2 - (x[1] - 2) ** 2, x[0] + x[1] - 2.5


def truth(x):
    return 10 - ((x - np.array([1, 2])) ** 2).sum(axis=-1), x.sum(axis=-1) - 2.5


def prepared(cls, attributes=None, **settings):
    return prepare_class(
        type(cls.__name__, (cls,), (attributes or {}) | {"__module__": "mine"}), **settings
    )


# What metrics are of ------------------------------------------------------------------------------


def test_without_noise_metrics_are_the_simulators_own_values():
    task = prepared(Exact)
    type(task).calls = 0
    cells, chunks = play(task, make("random"), seeds=3, horizon=25)
    assert type(task).calls == 75, "each play is one call"
    x, (f, g) = actions(chunks), truth(actions(chunks))
    np.testing.assert_allclose(chunks[0].metrics.f, f, atol=1e-9)
    np.testing.assert_allclose(chunks[0].observed_f, f, atol=1e-9)
    np.testing.assert_allclose(
        chunks[0].metrics.g[..., 0] * task.pilot_facts.divisor[1], g, atol=1e-9
    )
    best = np.where(g <= 0, f, -np.inf).max(axis=0)
    np.testing.assert_allclose(cells.metrics.final["simple_value"], best, atol=1e-9)
    assert x.shape == (25, 3, 2)


def test_of_a_noisy_one_they_are_means_with_streams_of_their_own():
    task = prepared(Noisy, repeats=400)
    _, chunks = play(task, make("random"), seeds=2, horizon=12)
    f, g = truth(actions(chunks))
    np.testing.assert_allclose(chunks[0].metrics.f, f, atol=5 * SD / 20)
    np.testing.assert_allclose(
        chunks[0].metrics.g[..., 0] * task.pilot_facts.divisor[1], g, atol=5 * 0.1 / 20
    )
    assert np.abs(chunks[0].observed_f - f).max() > 5 * SD / 20, (
        "negative control: what is told is noisier"
    )
    error = chunks[0].metrics.f - f
    np.testing.assert_allclose(
        error, np.tile(error[0], (12, 1)), atol=1e-9, err_msg="equal luck at every point"
    )
    assert error[0, 0] != error[0, 1]


def test_or_the_observed_values_as_they_were_told(monkeypatch):
    """Of one point, too, those of their rounds."""
    task, algorithm = prepared(Noisy, repeats=0), make("random")
    monkeypatch.setattr(algorithm, "ask", lambda t: np.full((2, 2), 1.0 + t // 6))
    _, chunks = play(task, algorithm, seeds=2, horizon=9)
    assert len(np.unique(chunks[0].metrics.f)) == 18
    np.testing.assert_allclose(chunks[0].metrics.f, chunks[0].observed_f, atol=1e-12)
    np.testing.assert_allclose(chunks[0].metrics.g, chunks[0].observed_g, atol=1e-12)
    assert "observed values, with their noise" in task.note()


def test_only_what_is_recommended_in_the_end_may_be_measured():
    every, end = prepared(Noisy, repeats=400), prepared(Noisy, repeats=400, measure="end")
    cells, chunks = play(end, make("random"), seeds=2, horizon=12, asked=[6])
    np.testing.assert_allclose(chunks[0].metrics.f, chunks[0].observed_f, atol=1e-12)
    x, values = cells.recommendations.last
    shift, divisor = end.pilot_facts.shift, end.pilot_facts.divisor
    np.testing.assert_allclose(
        values * divisor + shift, np.stack(truth(x), axis=1), atol=5 * SD / 20
    )
    _, same = play(every, make("random"), seeds=2, horizon=12, asked=[6])
    np.testing.assert_array_equal(
        same[0].observed_f, chunks[0].observed_f, err_msg="methods are told the same"
    )
    assert every.simulations == SimulationCounts(65, 401, 0, 400), "where there is no regret"
    assert prepared(Noisy, {"target": 9.0}, repeats=400).simulations.recommended == 400
    assert end.simulations == SimulationCounts(65, 1, 0, 400)
    assert "those of the recommended point in the end of means of 400" in end.note()


def test_methods_meet_the_same_noise_at_a_round():
    noises = []
    for name in ("random", "ckb-ucb"):
        _, chunks = play(prepared(Noisy), make(name), seeds=2, horizon=8)
        noises.append(chunks[0].observed_f - truth(actions(chunks))[0])
    np.testing.assert_allclose(*noises, atol=1e-9)
    assert len(np.unique(noises[0].round(9))) == 16


@pytest.mark.parametrize(("name", "repeats"), [("random", 0), ("random", 3), ("ckb-ucb", 3)])
def test_blocks_change_no_bit(name, repeats):
    task = prepared(Noisy, repeats=repeats, candidates=64)
    check_alone_as_in_a_block(task, name, 12)
    block, _ = play(task, make(name), seeds=3, horizon=12)
    unknown = {metric for metric, values in block.metrics.final.items() if np.isnan(values).all()}
    relative = {"regret", "regret_plus", "regret_positive", "simple_regret", "recommended_regret"}
    assert unknown - {"recommended_violation"} == relative
    assert repeats == 0 or "recommended_violation" not in unknown, (
        "only where nothing was observed there"
    )


# What regret is against ---------------------------------------------------------------------------


def test_a_target_may_be_reached_and_beaten():
    task = prepared(Exact, {"target": 9.0})
    cells, chunks = play(task, make("random"), seeds=2, horizon=40)
    f, g = truth(actions(chunks))
    best = np.maximum.accumulate(np.where(g <= 0, f, -np.inf))
    np.testing.assert_allclose(
        chunks[0].metrics.values["regret"], (9 - f).cumsum(axis=0), atol=1e-9
    )
    expected = np.where(np.isfinite(best), np.maximum(9 - best, 0), np.nan)
    np.testing.assert_allclose(chunks[0].metrics.values["simple_regret"], expected, atol=1e-9)
    assert cells.metrics.stars[0].tolist() == [9.0, 9.0]
    assert "against the target 9" in task.note()


def test_the_best_known_point_is_simulated_like_any_other():
    task = prepared(Exact, {"best_known": (0.75, 1.75)})
    cells, _ = play(task, make("oracle"), seeds=2, horizon=5)
    np.testing.assert_allclose(cells.metrics.stars[0], 10 - 2 / 16, atol=1e-9)
    assert not np.abs(cells.metrics.final["regret"]).any()
    noisy = play(
        prepared(Noisy, {"best_known": (0.7, 1.7)}, repeats=5), make("oracle"), seeds=2, horizon=3
    )[0]
    assert np.abs(noisy.metrics.final["regret"]).max() < 1e-9, (
        "under the scenarios of its own replicate"
    )
    assert noisy.metrics.stars[0, 0] != noisy.metrics.stars[0, 1]


def test_no_oracle_without_a_known_optimum():
    for attributes in ({}, {"target": 9.0}):
        with pytest.raises(
            Misuse, match="it needs a known optimum, which the problem lacks; can play it: .*random"
        ):
            check_needs(ALGORITHMS.get("oracle"), prepared(Exact, attributes))
    check_needs(ALGORITHMS.get("oracle"), prepared(Exact, {"best_known": (0.5, 1.0)}))


def test_learners_are_told_the_pilot_alone():
    task = prepared(Noisy, pilot=2048, scaled=False)
    np.testing.assert_allclose(task.pilot_facts.noise, [SD, 0.1], rtol=0.1)
    assert task.pilot_facts.slater == 1.0
    scaled = prepared(Noisy, pilot=2048)
    np.testing.assert_allclose(
        scaled.pilot_facts.noise * scaled.pilot_facts.divisor, [SD, 0.1], rtol=0.1
    )
    assert scaled.pilot_facts.share == pytest.approx(0.34, abs=0.05)


def test_a_margin_that_is_not_known_is_not_made_up():
    task = prepared(Exact, {"simulate": lambda self, x, gen: [x[0], 1.0 + x[1]]})
    with pytest.raises(CellFailure, match="nor its Slater margin; give delta: NUMBER"):
        play(task, make("ckb-ucb"), seeds=1, horizon=2)
    with pytest.raises(CellFailure, match="give delta: NUMBER"):  # and so before anything is played
        _try_start(Variant("ckb-ucb", {}, {}, "", {}), task, task.known_instance(), 2)
    cells, _ = play(task, make("cei", lam=0.01), seeds=1, horizon=4)
    assert cells.metrics.final["violations"][0] == 4
    assert np.isnan(cells.metrics.final["simple_value"][0])


# Constraints --------------------------------------------------------------------------------------

NO_CONSTRAINT = """
from dataclasses import dataclass
import numpy as np
from cbobench.problems.box import BoxProblem
from cbobench.problems.simulator import Simulator


@dataclass(kw_only=True)
class Box(BoxProblem):
    source, about = "ours", "a bowl"
    low, high, m = (0.0, 0.0), (1.0, 1.0), MANY

    def formula(self, x):
        return np.stack([-(x[..., 0] - 0.3) ** 2], axis=-1)


@dataclass(kw_only=True)
class Run(Simulator):
    source, about = "ours", "a bowl"
    low, high, m, noisy = (0.0, 0.0), (1.0, 1.0), MANY, False

    def simulate(self, x, gen):
        print("simulated", file=open("simulated", "a"))
        return [-((x[0] - 0.3) ** 2)]


class One(Run):
    m = 1
"""


@pytest.mark.parametrize("many", ["0", "-1", "1.0", "True", "None"])
def test_a_class_without_constraints_is_refused_before_anything_is_simulated(
    tmp_path, monkeypatch, capsys, many
):
    """Also by commands that read no suite; in a suite, before the pilots of those above it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "unbound", raising=False)
    (tmp_path / "unbound.py").write_text(NO_CONSTRAINT.replace("MANY", many))
    for cls in ("Box", "Run"):
        says = f"{cls}: m is {many}; it must be a whole number of at least 1: give a constraint g_1"
        suite = {
            "suite": "s",
            "horizon": 5,
            "seeds": 2,
            "algorithms": ["random"],
            "problems": [f"unbound:{cls}"],
        }
        with pytest.raises(Misuse, match=says):
            cbobench.run(
                suite | {"problems": ["unbound:One", f"unbound:{cls}"]},
                out=tmp_path / "run",
                cpus=0,
            )
        assert main(["reference", f"unbound:{cls}"]) == 2
        assert main(["check", f"unbound:{cls}"]) == 1
        out, err = capsys.readouterr()
        assert says in err
        assert re.search(f"FAIL  can be made +{says}", out)
    assert not (tmp_path / "simulated").exists()
    assert not (tmp_path / "run").exists()


# What a run leaves --------------------------------------------------------------------------------

LEAVES = {
    "errors": (lambda: np.seterr(all="raise"), np.geterr),
    "handler of errors": (lambda: np.seterrcall(print), np.geterrcall),
    "folder": (lambda: os.chdir("/"), os.getcwd),
    "output": (lambda: setattr(sys, "stdout", StringIO()), lambda: sys.stdout),
    "warnings": (lambda: warnings.simplefilter("error"), lambda: [*warnings.filters]),
    "function": (lambda: setattr(np, "exp", abs), lambda: np.exp),
    "function of linear algebra": (
        lambda: setattr(np.linalg, "cholesky", abs),
        lambda: np.linalg.cholesky,
    ),
    "function of SciPy": (
        lambda: setattr(scipy.linalg, "cho_solve", abs),
        lambda: scipy.linalg.cho_solve,
    ),
    "function of its distributions": (
        lambda: setattr(scipy.special, "ndtr", abs),
        lambda: scipy.special.ndtr,
    ),
    "function of its optimisers": (
        lambda: setattr(scipy.optimize, "minimize", abs),
        lambda: scipy.optimize.minimize,
    ),
    "function of its statistics": (
        lambda: setattr(scipy.stats, "rankdata", abs),
        lambda: scipy.stats.rankdata,
    ),
    "function of Python": (lambda: setattr(builtins, "divmod", abs), lambda: divmod),
    "clock": (lambda: setattr(time, "thread_time", abs), lambda: time.thread_time),
    "draw": (lambda: setattr(random, "gauss", abs), lambda: random.gauss),
    "generator": (lambda: setattr(np.random, "default_rng", abs), lambda: np.random.default_rng),
}


@pytest.mark.parametrize("trace", LEAVES)
@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("many", [False, True])
def test_what_a_run_sets_reaches_no_other_and_no_method(trace, fails, many):
    leave, look = LEAVES[trace]
    before, met = look(), []

    def simulate(self, x, gen):
        if not many:
            met.append(look() == before)
        leave()
        if fails and x[0] > 1.8:
            raise ArithmeticError
        return [x[0], x[1] - 1.0]

    class Looking(Random):
        def tell(self, t, chosen, feedback):
            met.append(look() == before)

    together = (
        {"simulate_many": lambda s, x, gens: [s.simulate(point, None) for point in x]}
        if many
        else {}
    )
    task = prepared(Exact, {"simulate": simulate} | together)
    assert look() == before
    play(task, build(Looking, {}), seeds=2, horizon=5)
    assert look() == before
    REPLACED.clear()
    assert len(met) == (5 if many else 79)
    assert all(met)


# Refusals -----------------------------------------------------------------------------------------

RNG = np.random.default_rng(0)
WRONG = {
    "no simulate": (
        Simulator,
        {"low": (0.0,), "high": (1.0,)},
        r"Simulator does not define simulate\(self, x, gen\)",
    ),
    "no box": (Simulator, {"high": (1.0,)}, "does not define low; write low = "),
    "corners": (Exact, {"low": (3.0, 0.0)}, "give as many of each, and each low below its high"),
    "both": (Exact, {"target": 1.0, "best_known": (1.0, 1.0)}, "regret is against one of them"),
    "outside": (Exact, {"best_known": (5.0, 1.0)}, "no point of the box"),
    "infeasible": (
        Exact,
        {"best_known": (1.5, 1.5)},
        r"best_known is not feasible: .* g_1 = 0\.5; give a point",
    ),
    "endless target": (
        Exact,
        {"target": float("nan")},
        "target is nan; it must be a finite number",
    ),
    "target in words": (Exact, {"target": "low"}, "target is 'low'; it must be a finite number"),
    "raises": (
        Exact,
        {"simulate": lambda s, x, gen: 1 / 0},
        r"simulate fails at x = \[.*ZeroDivisionError",
    ),
    "shape": (
        Exact,
        {"simulate": lambda s, x, gen: [1.0]},
        r"simulate gives a list of 1; it must be \(2,\), f and m = 1 constraints: return \[f, "
        r"g_1\]",
    ),
    "scalar": (
        Exact,
        {"simulate": lambda s, x, gen: 1.0},
        r"simulate gives shape \(\); it must be \(2,\)",
    ),
    "nan": (
        Exact,
        {"simulate": lambda s, x, gen: [np.nan, 0.0]},
        r"64 of 64 pilot simulations fail; the first: Exact: simulate gives \[nan, 0\.0\] at x = ",
    ),
    "unseeded": (
        Noisy,
        {"simulate": lambda s, x, gen: [RNG.normal(), 0.0]},
        "other values for an equal generator; draw from the generator it is given",
    ),
    "secretly noisy": (
        Exact,
        {"simulate": Noisy.simulate},
        "noisy is False, but simulate depends on its generator",
    ),
}


@pytest.mark.parametrize(("cls", "attributes", "message"), WRONG.values(), ids=WRONG)
def test_wrong_simulators_are_one_line(cls, attributes, message):
    with refused(message):
        prepared(cls, attributes)


def test_what_fails_in_a_play_is_a_failed_cell():
    task = prepared(Exact, on_failure="fail")
    type(task).simulate = lambda self, x, gen: [np.inf, 0.0]
    with pytest.raises(CellFailure, match=r"round 1: Exact: simulate gives \[inf, 0\.0\]"):
        play(task, make("random"), seeds=1, horizon=2)


def test_what_is_observed_may_arrive_late_and_metrics_do_not_wait():
    late, at_once = prepared(Noisy, delay=4.0, pilot=16), prepared(Noisy, pilot=16)
    assert at_once.offers() - late.offers() == {"feedback at once"}
    cells, chunks = play(late, make("random"), seeds=2, horizon=25)
    _, same = play(at_once, make("random"), seeds=2, horizon=25)
    assert np.isnan(chunks[0].observed_f).all()
    np.testing.assert_array_equal(chunks[0].metrics.f, same[0].metrics.f)
    g = same[0].observed_g[..., 0]
    on_the_way = {
        (t, s): value
        for pending in cells.channel.waiting.values()
        for s, t, j, value in pending
        if j == 1
    }
    assert 0 < len(on_the_way) < g.size / 2
    assert all(g[t - 1, s] == value for (t, s), value in on_the_way.items())
    model, _ = play(late, make("ckb-ucb", B="sup", G="sup"), seeds=2, horizon=25)
    assert (np.asarray(model.algorithm.posterior.gain) > 0).all()
    with pytest.raises(Misuse, match="it needs feedback at once"):
        check_needs(ALGORITHMS.get("cei"), late)
