"""The penalty methods' bound on their inner target, which grows with κ, and the cap on κ, which is
counted.
"""

from __future__ import annotations

import numpy as np
import pytest

from cbobench.errors import Misuse
from tests.helpers import actions, long, make, play, problem, setting, watch_asks


@pytest.mark.parametrize(
    ("name", "settings"), [("penalty-noisy", {"mu": 3.0, "S": 5}), ("fixed-penalty", {})]
)
def test_the_bound_holds_whatever_kappa_is(name, settings):
    """Assumption 5, |f - Σ κ_j g_j|_k < B, with the norms of the drawn functions; f's own norm does
    not do.
    """
    task = problem("rkhs", n=40, m=2)
    algorithm = make(name, **settings)
    cells, _ = play(task, algorithm, seeds=6, horizon=40)
    functions = cells.instances.functions
    target = functions[:, 0] - (algorithm.price[:, :, None] * functions[:, 1:]).sum(axis=1)
    norms = task.actions.norm(target)
    assert algorithm.price.max() > 0.5
    assert (norms < algorithm.bounds[:, 0]).all()
    assert (norms > algorithm.bound_f[:, 0]).any(), (
        "negative control: the bound of f alone does not hold"
    )


def test_the_width_follows_the_bound():
    """B + κ G at κ = 0 and 3, by hand: β = B + R √(2(γ + 1 + ln(2L/α))) of noise √(1 + 4κ²), as R
    is 1 and 2.
    """
    algorithm = make("penalty-noisy", S=50)
    algorithm.start(setting(np.eye(3), norm=np.array([[2.0, 5.0]]), noise=np.array([[1.0, 2.0]])))
    constant = np.sqrt(2 * (1 + np.log(2 * 2 / 0.1)))  # L = 2 epochs
    for kappa in (0.0, 3.0):
        algorithm.price = np.array([[kappa]])
        algorithm.set_width()
        expected = 2 + 5 * kappa + np.sqrt(1 + 4 * kappa**2) * constant
        np.testing.assert_allclose(algorithm.width.at(np.zeros(1)), [[expected]])


def test_a_curved_penalty_counts_as_its_chord():
    """Λ(g) = e^g - 1 up to |g| = 2: the chord (e² - 1)/2, times the bound of g."""
    facts = {"norm": np.array([[1.0, 6.0]]), "sup": np.array([[1.0, 2.0]])}
    algorithm = make("penalty-noiseless")
    algorithm.start(setting(np.eye(3), **facts))
    np.testing.assert_allclose(algorithm.bounds, [[1 + 6 * (np.exp(2) - 1) / 2]])
    largest = make("penalty-noiseless", G="sup")
    largest.start(setting(np.eye(3), **facts))
    np.testing.assert_allclose(largest.bounds, [[1 + np.exp(2) - 1]])


def test_cap_hits_by_hand():
    """κ = 1 and a cap of 2: ψ(0.5) = 1.65 stays below it, twice that does not."""
    algorithm = make("penalty-noiseless", cap=2.0)
    algorithm.start(setting(np.eye(3), replicates=2, constraints=2))
    means = np.array([[0.5, -1.0], [0.0, 0.0]])
    for hits in ([0, 0], [1, 0], [2, 0]):
        algorithm.price = algorithm.update_price(means)
        assert algorithm.cap_hits.tolist() == hits
    np.testing.assert_allclose(algorithm.price, [[2.0, 1.0], [1.0, 1.0]])
    assert make("ckb-ucb").cap_hits is None


@pytest.mark.parametrize("task", [("rkhs-1d", {}), *long(("feasible-pocket", {"noise_g": 0.0}))])
@pytest.mark.parametrize("first", ["last", "best"])
def test_an_epoch_starts_where_it_is_told_to(task, first):
    """The data are forgotten all the same; the best action is that of the inner target under the
    new κ, by hand.
    """
    name, settings = task
    T, S = 24, 8
    algorithm = make("penalty-noiseless", keep=False, first=first, S=S)
    prices = {}
    watch_asks(algorithm, lambda t, chosen: prices.setdefault(t, algorithm.price.copy()))
    _, chunks = play(problem(name, **settings), algorithm, 3, T)
    _, tied = play(problem(name, **settings), make("penalty-noiseless", keep=False, S=S), 3, T)
    played = actions(chunks)
    f, g = (
        np.concatenate([getattr(chunk, name) for chunk in chunks])
        for name in ("observed_f", "observed_g")
    )
    np.testing.assert_array_equal(played[:S], actions(tied)[:S])
    assert (played[S] != actions(tied)[S]).any(), "negative control"
    for start in (S, 2 * S):
        epoch = slice(start - S, start)
        value = f[epoch] - (prices[start + 1] * (np.exp(np.maximum(g[epoch], 0)) - 1)).sum(axis=2)
        chosen = value.argmax(axis=0) if first == "best" else np.full(3, S - 1)
        np.testing.assert_allclose(
            played[start], played[epoch][chosen, np.arange(3)], rtol=0, atol=1e-15
        )


def test_where_an_epoch_starts_needs_a_forgotten_one():
    with pytest.raises(Misuse, match="needs keep: false"):
        make("penalty-noisy", first="best")


@pytest.mark.parametrize("inner", ["ucb", "ts"])
def test_an_epoch_on_a_box_may_begin_with_the_last_action(inner):
    """Also where paths are sampled over candidates, whose actions are indices to the method."""
    algorithm = make("penalty-noisy", inner=inner, keep=False, S=4, first="last")
    chosen = actions(
        play(problem("feasible-pocket", candidates=64), algorithm, seeds=2, horizon=9)[1]
    )
    np.testing.assert_allclose(chosen[[4, 8]], chosen[[3, 7]], rtol=1e-12)
