"""Constrained EI against sampling, its logarithm far out, and its incumbent."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from cbobench.algorithms import improvement
from cbobench.algorithms.improvement import FAR, log_expected_improvement
from cbobench.algorithms.score import ScoreAlgorithm
from cbobench.errors import Misuse
from cbobench.gp.beliefs import Belief, FunctionBelief
from cbobench.play.play import Play, PlayOptions
from cbobench.problems.simulators.simulator import Simulator
from tests.algorithms.easy import bowl
from tests.helpers import actions, long, make, play, prepare_class, problem, watch_asks

ONE = np.ones((1, 1))


def belief(f, f_deviation, g, g_deviation):
    """A belief of one replicate from lists: f (k), g (m, k)."""
    return Belief(
        FunctionBelief(np.array([f]), np.array([f_deviation]), ONE),
        FunctionBelief(np.array([g]), np.array([g_deviation]), ONE[None]),
    )


@pytest.mark.parametrize("best", [0.4, -np.inf])
def test_score_is_the_logarithm_of_an_expectation(best):
    """E[(f - best)⁺ 1{g <= 0}], and P(g <= 0) without an incumbent, by sampling independent f, g_1,
    g_2.
    """
    f, s = np.array([0.5, 0.0, 1.0]), np.array([0.3, 0.6, 0.1])
    g, r = (
        np.array([[-0.2, 0.3, 0.1], [0.1, -1.0, -0.05]]),
        np.array([[0.4, 0.3, 0.2], [0.5, 0.5, 0.1]]),
    )
    algorithm = make("cei")
    algorithm.incumbent = np.array([best])
    algorithm.exhausted = algorithm.measured = None
    algorithm.classes = algorithm.silent = np.zeros((1, 2), dtype=bool)
    z = np.random.default_rng(0).standard_normal((200_000, 3, 3))
    feasible = (g + r * z[:, 1:] <= 0).all(axis=1)
    gain = np.maximum(f + s * z[:, 0] - best, 0.0) if np.isfinite(best) else 1.0
    sampled = (gain * feasible).mean(axis=0)
    score = algorithm.score(belief(f, s, g, r))
    np.testing.assert_allclose(np.exp(score[0]), sampled, rtol=0.04)


def test_log_improvement_where_the_expectation_underflows():
    """φ(z) + zΦ(z) = φ(z)/z² (1 - 3/z² + 15/z⁴ - ...) far out; no step where the three formulas
    meet.
    """
    for z in (-30.0, -300.0, -5000.0):
        series = (
            -0.5 * z**2
            - 0.5 * np.log(2 * np.pi)
            - 2 * np.log(-z)
            + np.log1p(-3 / z**2 + 15 / z**4 - 105 / z**6)
        )
        np.testing.assert_allclose(
            log_expected_improvement(np.array([z]), np.array([1.0]), 0.0), series, rtol=1e-9
        )
    for seam in (-1.0, FAR):
        at_seam = log_expected_improvement(seam * np.array([1 - 1e-9, 1 + 1e-9]), np.ones(2), 0.0)
        np.testing.assert_allclose(at_seam[0], at_seam[1], rtol=1e-8)
    z = np.linspace(-4, 4, 9)
    sampled = np.maximum(z[:, None] + np.random.default_rng(0).standard_normal(200_000), 0.0).mean(
        axis=1
    )
    np.testing.assert_allclose(
        np.exp(log_expected_improvement(2 * z, np.full(9, 2.0), 0.0)) / 2, sampled, rtol=0.15
    )
    assert np.isfinite(log_expected_improvement(np.array([-1e9]), np.array([1e-7]), 0.0)).all()


@pytest.mark.parametrize(("grid", "kernel"), [(15, "given"), (None, "fit")])
def test_incumbent_is_read_at_the_played_points(grid, kernel):
    """On a box from the observations' own weights, on a grid from all means: both as the posterior
    says there.
    """
    from scipy.special import ndtr

    algorithm = make("cei", kernel=kernel, lam="scaled")
    _, chunks = play(bowl(grid=grid, candidates=64), algorithm, seeds=3, horizon=15)
    algorithm.ask(16)
    played = chunks[0].actions
    for s in range(3):
        if grid is None:
            units = algorithm.box.unit(played[:, s])
            mean, variance = algorithm.posterior.at(np.stack([units] * 3))
        else:
            mean, variance = (
                algorithm.posterior.mean[:, :, played[:, s]],
                algorithm.posterior.variance[:, played[:, s]],
            )
        if kernel == "fit":
            means, deviations = mean, np.sqrt(variance)
        else:
            means, deviations = algorithm.running.moments(mean, variance)
        likely = ndtr(-means[s, 1] / deviations[s, 1]) >= 0.95
        assert likely.any()
        np.testing.assert_allclose(algorithm.incumbent[s], means[s, 0][likely].max(), rtol=1e-6)


@pytest.mark.parametrize("name", ["gramacy", *long("gardner-1")])
def test_without_noise_it_finds_the_optimum_of_a_finite_set_and_plays_nothing_twice(name):
    """By default: with a noise variance of one per cent it would stay where it began."""
    task = problem(name, grid=15, noise_f=0.0, noise_g=0.0)
    cells, chunks = play(task, make("cei"), seeds=3, horizon=60)
    assert np.max(cells.metrics.final["simple_regret"]) == 0.0
    assert [len(set(column)) for column in actions(chunks).T] == [60] * 3
    _, chunks = play(task, make("cei", lam="scaled"), seeds=3, horizon=60)
    assert max(len(set(column)) for column in actions(chunks).T) < 60, "negative control"


def play_gramacy(seeds, horizon, **settings):
    task = problem("gramacy", noise_f=0.0, noise_g=0.0)
    return play(task, make("cei", **settings), seeds, horizon)[0]


@pytest.mark.slow
def test_steps_reach_the_boundary_to_rounding_which_products_of_probabilities_do_not():
    """Gramacy's optimum lies on a constraint: P(g <= 0) keeps a margin from it."""
    regrets = {
        anchored: play_gramacy([0], 44, anchored=anchored).metrics.final["simple_regret"]
        for anchored in (True, False)
    }
    assert regrets[True].max() < 1e-10
    assert regrets[False].min() > 1e-8


def test_steps_are_the_same_alone_as_beside_a_replicate_without_a_feasible_point():
    """Some seeds of a block step while others still ask the maximiser."""
    block, alone = (play_gramacy(seeds, 14) for seeds in (range(3), [2]))
    played, played_alone = (cells.metrics.final for cells in (block, alone))
    for name, values in played.items():
        np.testing.assert_array_equal(values[2:], played_alone[name], err_msg=name)


def test_a_replicate_plays_as_it_does_alone_before_it_has_searched():
    """After a design both seeds begin with a step; then one steps again, while the other asks the
    maximiser, which has found nothing yet.
    """

    def play_vessel(seeds):
        options = PlayOptions(initial={"sobol": 10})
        task = problem("mixed-vessel")
        return actions([*Play(task, "mixed-vessel", make("cei"), "cei", seeds, 16, options)])

    alone = [play_vessel([seed]) for seed in (0, 1)]
    np.testing.assert_array_equal(play_vessel([0, 1]), np.concatenate(alone, axis=1))


GAIN = 1e-3
MET, BROKEN = 1.5 * GAIN, 2.5 * GAIN  # promises of which GAIN is more, and less, than half


def play_script(
    monkeypatch, step_promise, search_promise, least_width=0.0, search_g=-0.2, incumbent=True
):
    """Which of 12 rounds after a design were steps, as letters, and the widths of these steps.

    Every round is `GAIN` above the best feasible f. A step is feasible from `least_width` on, and
    searches have a g of `search_g`.
    """
    best = [0.0]
    widths, rounds = [], []

    @dataclass(kw_only=True)
    class Slope(Simulator):
        source = about = "a test"
        low, high = (0.0, 0.0), (1.0, 1.0)
        noisy = False
        target = 1.2

        def simulate(self, x, gen):
            if x[1] <= 0.5:
                best[0] = max(best[0], x[0])
            return [x[0], x[1] - 0.5]

    def step(points, observed, modelled, fits, width, floats):
        widths.append(width)
        assert observed[0][observed[1] <= 0].max() == best[0]
        return np.array([best[0] + GAIN, 0.3 if width >= least_width else 0.7]), step_promise

    def search(self, t, box, also):
        if not incumbent:
            self.incumbent[:] = -np.inf
        return np.array([[best[0] + GAIN, 0.5 + search_g]]), np.log([search_promise])

    monkeypatch.setattr(improvement, "step_from_best", step)
    monkeypatch.setattr(ScoreAlgorithm, "maximise", search)
    algorithm = make("cei")
    watch_asks(algorithm, lambda t, chosen: rounds.append("t" if algorithm.stepping[0] else "s"))
    options = PlayOptions(initial={"sobol": 6})
    list(Play(prepare_class(Slope), "test", algorithm, "cei", [0], 18, options))
    return "".join(rounds), widths


@pytest.mark.parametrize(
    ("step_promise", "search_promise", "rounds"),
    [
        (MET, MET, "tttttttttttt"),
        (MET, BROKEN, "tttttttttttt"),
        (BROKEN, MET, "tsssssssssss"),
        (BROKEN, BROKEN, "tstststststs"),
    ],
)
def test_a_round_that_keeps_its_promise_is_followed_by_one_of_its_kind(
    monkeypatch, step_promise, search_promise, rounds
):
    """A step (t) or a search (s); a design promises nothing, and its best feasible f counts."""
    assert play_script(monkeypatch, step_promise, search_promise) == (
        rounds,
        [0.5] * rounds.count("t"),
    )


@pytest.mark.parametrize("setting", [{"search_g": 0.2}, {"incumbent": False}])
def test_a_search_that_is_infeasible_or_has_no_incumbent_keeps_no_promise(monkeypatch, setting):
    assert play_script(monkeypatch, BROKEN, MET, **setting)[0] == "tstststststs"


@pytest.mark.parametrize(
    ("least_width", "widths"),
    [
        (0.0, [0.5] * 6),
        (2.0, [0.5, 1.0, 2.0, 1.0, 2.0, 1.0]),
        (9.0, [0.5, 1.0, 2.0, 4.0, 4.0, 4.0]),
    ],
)
def test_steps_keep_a_greater_distance_while_they_are_infeasible(monkeypatch, least_width, widths):
    rounds, seen = play_script(monkeypatch, BROKEN, BROKEN, least_width)
    assert (rounds, seen) == ("tstststststs", widths)


def test_boxes_on_which_a_round_takes_too_long_are_refused_with_the_methods_to_take():
    with pytest.raises(Misuse, match=r"60 inputs with 15 constraints .*; take scbo or furbo$"):
        make("cei").check(problem("rover-60"))
    make("cei").check(problem("ackley-50"))
    make("cei", kernel="given").check(problem("rover-60"))


def test_noise_and_a_finite_set_have_no_steps():
    for task in (problem("gramacy", noise_f=0.1, noise_g=0.0), problem("rkhs-1d")):
        with_steps, without = (
            play(task, make("cei", anchored=anchored), 1, 12)[0].metrics.final["regret"]
            for anchored in (True, False)
        )
        assert with_steps == without


@dataclass(kw_only=True)
class Fragile(Simulator):
    """The best point lies beside where runs fail, outside a disc."""

    source = about = "a test"
    low, high = (0.0, 0.0), (1.0, 1.0)
    noisy = False
    target = 1.2

    def simulate(self, x, gen):
        if (x[0] - 0.5) ** 2 + (x[1] - 0.4) ** 2 > 0.2:
            raise ArithmeticError("diverged")
        return [np.sin(2 * x[0]) + x[1], -1.0]


def best_and_failed(algorithm):
    """The best f of the runs that succeeded, and how many of the last 20 failed, of two seeds."""
    points = actions(play(prepare_class(Fragile), algorithm, 2, 30)[1])
    failed = (points[..., 0] - 0.5) ** 2 + (points[..., 1] - 0.4) ** 2 > 0.2
    f = np.where(failed, 0.0, np.sin(2 * points[..., 0]) + points[..., 1])
    return f.max(axis=0), failed[-20:].sum(axis=0)


@pytest.mark.slow
def test_a_simulator_that_fails_beside_its_best_point_fails_seldom():
    """Of the last 20 plays five at most, while random search may fail oftener and ends lower."""
    best, failed = best_and_failed(make("cei"))
    random_best, random_failed = best_and_failed(make("random"))
    assert failed.max() <= 5 < random_failed.max()
    assert best.min() > 1.7 > random_best.max()


@pytest.mark.parametrize(("failures", "best"), [(3, 1), (4, 0)])
def test_after_many_infeasible_plays_what_a_class_hardly_allows_comes_behind(failures, best):
    algorithm = make("cei")
    algorithm.exhausted = algorithm.measured = None
    algorithm.incumbent = np.array([0.0])
    algorithm.silent, algorithm.classes = np.array([[False]]), np.array([[True]])
    algorithm.failures, algorithm.told = np.array([failures]), 10
    beliefs = belief([0.1, 9.0, 9.0], [0.1] * 3, [[-1.5, -0.5, 0.5]], [[1.0] * 3])
    assert int(algorithm.score(beliefs)[0].argmax()) == best
    algorithm.classes = np.array([[False]])
    assert int(algorithm.score(beliefs)[0].argmax()) == 1, "of a number it may be anywhere"
    algorithm.classes, algorithm.silent = np.array([[True]]), np.array([[True]])
    assert np.ptp(algorithm.score(beliefs)[0, 1:]) == 0, "a silent constraint says nothing"


@pytest.mark.parametrize("value", [-1.0, 1.0])
def test_a_constraint_that_never_changes_is_played(value):
    class Constant(Fragile):
        def simulate(self, x, gen):
            return [x[0], value]

    points = actions(play(prepare_class(Constant), make("cei"), 1, 14)[1])[:, 0]
    if value > 0:
        inside = ((points > 1e-3) & (points < 1 - 1e-3)).all(axis=1)
        assert inside[6:].all(), "drawn from the whole box, as nothing says where it is feasible"
    else:
        assert points[:, 0].max() == pytest.approx(1.0, abs=1e-3)
