"""Simulators: what is told, what metrics are of, what regret is against, and what is refused."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass

import numpy as np
import pytest

from cbobench.algorithms import ALGORITHMS
from cbobench.check.problems import play_at_random, repeatable
from cbobench.cli import main
from cbobench.errors import CellFailure, Misuse
from cbobench.problems.simulators.simulator import Simulator
from cbobench.suite.prepare import check_needs
from tests.algorithms.test_contract import check_alone_as_in_a_block
from tests.helpers import actions, long_cases, make, play, play_here, prepare_class, refused

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
    np.testing.assert_allclose(chunks[0].metrics.g[..., 0], g, atol=1e-9)
    best = np.where(g <= 0, f, -np.inf).max(axis=0)
    np.testing.assert_allclose(cells.metrics.final["simple_value"], best, atol=1e-9)
    assert x.shape == (25, 3, 2)


def test_of_a_noisy_one_they_are_means_with_streams_of_their_own():
    task = prepared(Noisy, repeats=400)
    _, chunks = play(task, make("random"), seeds=2, horizon=12)
    f, g = truth(actions(chunks))
    np.testing.assert_allclose(chunks[0].metrics.f, f, atol=5 * SD / 20)
    np.testing.assert_allclose(chunks[0].metrics.g[..., 0], g, atol=5 * 0.1 / 20)
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
    np.testing.assert_allclose(values, np.stack(truth(x), axis=1), atol=5 * SD / 20)
    _, same = play(every, make("random"), seeds=2, horizon=12, asked=[6])
    np.testing.assert_array_equal(
        same[0].observed_f, chunks[0].observed_f, err_msg="methods are told the same"
    )
    assert "those of the recommended point in the end of means of 400" in end.note()


def test_methods_meet_the_same_noise_at_a_round():
    noises = []
    for name in ("random", "scbo"):
        _, chunks = play(prepared(Noisy), make(name), seeds=2, horizon=8)
        noises.append(chunks[0].observed_f - truth(actions(chunks))[0])
    np.testing.assert_allclose(*noises, atol=1e-9)
    assert len(np.unique(noises[0].round(9))) == 16


@pytest.mark.parametrize(
    ("name", "repeats"),
    [("random", 0), ("random", 3), *long_cases(("nei", 3))],
)
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


GIVEN = {"B": 10.0, "G": 5.0, "R": 0.3, "delta": 0.5}


@pytest.mark.parametrize(
    ("name", "settings", "lacking"),
    [
        ("ckb-ucb", {}, "B, G, delta, R"),
        ("ckb-ucb", {"beta": 2.0}, "B, G, delta"),
        ("ckb-ucb", GIVEN | {"R": "true"}, "R"),
        ("epbo", {}, "B, R, G"),
        ("epbo", {"beta": 2.0}, ""),
        ("config", {"B": "sup", "G": 5.0, "R": 0.3}, "B"),
        ("rpol-censored", {"beta": 2.0}, "B, R, G"),
        ("penalty-noisy", {}, "B, R"),
        ("fixed-penalty", {"beta": 2.0}, ""),
        ("igp-ucb", {"B": 10.0}, "R"),
        *[(name, {}, "") for name in ("cei", "scbo", "furbo", "nei", "admmbo", "bandit-oco")],
    ],
)
def test_what_nobody_knows_is_named_before_anything_is_simulated(name, settings, lacking):
    task = prepared(Noisy, {"simulate": lambda self, x, gen: pytest.fail("it is simulated")})
    if not lacking:
        make(name, **settings).check(task)
        return
    numbers = ", ".join(f"{word}: NUMBER" for word in lacking.split(", "))
    with refused(f"it reads {lacking} of the problem, which nobody knows; give {numbers}$"):
        make(name, **settings).check(task)


@pytest.mark.parametrize("name", ["ckb-ucb", "ckb-ts", "vq-ucb"])
def test_what_is_given_is_played_with(name):
    cells, _ = play(prepared(Noisy, repeats=0), make(name, **GIVEN), seeds=2, horizon=4)
    assert (cells.algorithm.bounds == [10.0, 5.0]).all()
    assert (cells.algorithm.noise_constants() == 0.3).all()
    exact, _ = play(prepared(Exact), make(name, **GIVEN | {"R": "true"}), seeds=1, horizon=4)
    assert (exact.algorithm.noise_constants() == 0.0).all(), "as the class says"


@pytest.mark.parametrize("name", ["cei", "scbo", "admmbo", "epbo"])
def test_noise_that_nobody_knows_is_fitted(name):
    settings = {"lam": "true", **({"beta": 2.0} if name == "epbo" else {})}
    with refused("lam is true, which is R², and R of this problem is not known; give lam: NUMBER"):
        make(name, **settings).check(prepared(Noisy))
    make(name, **settings).check(prepared(Exact))
    settings.pop("lam")
    play(prepared(Noisy, repeats=0), make(name, **settings), seeds=2, horizon=5)


# Units --------------------------------------------------------------------------------------------

LIMITS = {
    "money": {"at_most": 2e6},
    "slope": {"at_least": 0.0},
    "share": {"at_most": 0.0, "unit": 0.25},
    "heat": {"at_least": -3.0, "at_most": 6.0},
}


def named(self, x, gen):
    return {
        "cost": 1e6 * x[0],
        "money": 1e6 * x[1],
        "slope": x[0] - 1.0,
        "share": x[0] - 0.5,
        "heat": 9.0 * x[0] - 6.0,
    }


def test_f_is_in_its_own_unit_and_a_constraint_in_multiples_of_its_bound():
    task = prepare_class(
        dataclass(kw_only=True)(
            type(
                "Units",
                (Simulator,),
                {"low": (0.0, 0.0), "high": (2.0, 4.0), "simulate": named, "__module__": "mine"}
                | {"objective": {"minimise": "cost"}, "constraints": LIMITS, "noisy": False},
            )
        )
    )
    assert task.units == [2e6, None, 0.25, 6.0, 3.0]
    _, (chunk,) = play(task, make("random"), seeds=2, horizon=9)
    a, b = chunk.actions[..., 0], chunk.actions[..., 1]
    np.testing.assert_allclose(chunk.observed_f, -1e6 * a)
    expected = [
        (b - 2) / 2,
        1.0 - a,
        (a - 0.5) / 0.25,
        (9 * a - 6 - 6.0) / 6.0,
        (-3.0 - (9 * a - 6)) / 3.0,
    ]
    np.testing.assert_allclose(chunk.observed_g, np.stack(expected, axis=-1), atol=1e-12)
    total = np.maximum(chunk.observed_g, 0.0).sum(axis=-1).cumsum(axis=0)
    np.testing.assert_allclose(chunk.metrics.values["violation_hard"], total)
    note = task.note()
    assert "money at most 2e+06 in units of 2e+06, slope at least 0 without a unit" in note
    assert "share at most 0 in units of 0.25" in note


# Constraints --------------------------------------------------------------------------------------

NO_CONSTRAINT = """
from dataclasses import dataclass
import numpy as np
from cbobench.problems.formulas.box import BoxProblem
from cbobench.problems.simulators.simulator import Simulator


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
    """Also by commands that read no suite; in a suite, before those above it."""
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
            play_here(suite | {"problems": ["unbound:One", f"unbound:{cls}"]}, tmp_path / "run")
        assert main(["check", f"unbound:{cls}"]) == 1
        out, _ = capsys.readouterr()
        assert re.search(f"FAIL  can be made +{says}", out)
    assert not (tmp_path / "simulated").exists()
    assert not (tmp_path / "run").exists()


# Refusals -----------------------------------------------------------------------------------------

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
    "endless target": (
        Exact,
        {"target": float("nan")},
        "target is nan; it must be a finite number",
    ),
    "target in words": (Exact, {"target": "low"}, "target is 'low'; it must be a finite number"),
}


@pytest.mark.parametrize(("cls", "attributes", "message"), WRONG.values(), ids=WRONG)
def test_wrong_simulators_are_one_line(cls, attributes, message):
    with refused(message):
        prepared(cls, attributes)


RNG = np.random.default_rng(0)


def test_a_best_known_point_that_is_infeasible_fails_the_cell():
    task = prepared(Exact, {"best_known": (1.5, 1.5)})
    with pytest.raises(
        CellFailure, match=r"best_known is not feasible: .* g_1 = 0\.5; give a point"
    ):
        play(task, make("random"), seeds=1, horizon=2)


@pytest.mark.parametrize(
    ("cls", "attributes", "message"),
    [
        (Noisy, {"simulate": lambda s, x, gen: [RNG.normal(), 0.0]}, "played twice differ"),
        (Exact, {"simulate": Noisy.simulate}, "noisy is False, but simulate depends on its gen"),
        (Exact, {}, ""),
        (Noisy, {}, ""),
    ],
)
def test_check_finds_randomness_that_is_not_the_generators(cls, attributes, message):
    task = prepared(cls, attributes, repeats=1)
    findings = [str(finding) for finding in repeatable(play_at_random(task, "mine:It"))]
    assert [message in finding for finding in findings] == [True] * bool(message)


def test_what_is_observed_may_arrive_late_and_metrics_do_not_wait():
    late, at_once = prepared(Noisy, delay=4.0), prepared(Noisy)
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
    model, _ = play(late, make("ckb-ucb", **GIVEN), seeds=2, horizon=25)
    assert (np.asarray(model.algorithm.posterior.gain) > 0).all()
    with pytest.raises(Misuse, match="it needs feedback at once"):
        check_needs(ALGORITHMS.get("cei"), late)
