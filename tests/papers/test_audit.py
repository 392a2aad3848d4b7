"""The theory audit: events beside a dense recomputation from what was played, constants by hand; it
changes nothing.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.optimize import linprog

from cbobench.gp.beliefs import UCB, FunctionBelief, RandUCB
from cbobench.papers.audit import Audit
from cbobench.play.play import Play
from cbobench.rng import Streams
from tests.helpers import LEARNERS, actions, entry, make, problem

T, S = 40, 3


def watched(task, algorithm, seeds=S, horizon=T, key="test", look=None):
    """A finished play, its chunks, and its audit; `look` follows the audit in every round."""
    seeds = list(range(seeds)) if isinstance(seeds, int) else seeds
    cells = Play(task, key, algorithm, algorithm.name, seeds, horizon)
    audit = Audit(cells)
    return cells, list(cells.chunks([audit.observe, look or (lambda t: None)])), audit


def audited(task, name, seeds=S, horizon=T, key="test", **settings):
    """A finished play, its chunks, and its audit rows."""
    cells, chunks, audit = watched(task, make(name, **settings), seeds, horizon, key)
    return cells, chunks, audit.rows()


class Dense:
    """Beliefs of replicate s before each round, from Gaussian process regression with all matrices
    written out.
    """

    def __init__(self, task, cells, chunks, s):
        K, lam = task.actions.covariance, 1 + 2 / T
        self.x = actions(chunks)[:, s]
        y = np.concatenate(
            [np.concatenate([c.observed_f[:, s, None], c.observed_g[:, s]], axis=1) for c in chunks]
        )
        p = y.shape[1]
        instances = cells.instances
        self.mean, self.deviation, self.beta = (
            np.empty((T, p, len(K))),
            np.empty((T, len(K))),
            np.empty((T, p)),
        )
        for t in range(T):
            x = self.x[:t]
            A = K[np.ix_(x, x)] + lam * np.eye(t)
            solved = np.linalg.solve(A, K[x])
            self.mean[t] = y[:t].T @ solved
            self.deviation[t] = np.sqrt(np.diag(K) - (K[x] * solved).sum(axis=0))
            gain = np.linalg.slogdet(np.eye(t) + K[np.ix_(x, x)] / lam)[1] / 2
            root = np.sqrt(2 * (gain + 1 + np.log(p / 0.1)))
            self.beta[t] = instances.norm[s] + instances.noise[s] * root
        self.truth = np.concatenate([instances.f[s][None], instances.g[s]])
        self.needed = (
            np.abs(self.truth - self.mean) / (self.beta[:, :, None] * self.deviation[:, None])
        ).max(axis=2)


def policy(f, g):
    """π* of a program, by an interior-point solver, (n,)."""
    solved = linprog(-f, g, np.zeros(len(g)), np.ones((1, len(f))), [1.0], method="highs-ipm")
    return np.where(solved.x > 1e-7, solved.x, 0.0)


@pytest.fixture(scope="module")
def task():
    return problem("rkhs", constraint="independent", m=2, n=30, noise_share=1.0)


@pytest.mark.parametrize("name", ["ckb-ucb", "ckb-ts", "ckb-rand", "rpol-ucb", "sgp-ucb"])
def test_events_are_those_of_a_dense_recomputation(task, name):
    cells, chunks, rows = audited(task, name)
    for s, row in enumerate(rows):
        dense = Dense(task, cells, chunks, s)
        held = dense.needed <= 1
        assert row["rounds"] == T
        np.testing.assert_allclose(row["est_each"], held.mean(axis=0))
        assert row["est"] == held.all(axis=1).mean()
        assert row["est_always"] == held.all()
        np.testing.assert_allclose(row["needed"], dense.needed.max(axis=0), rtol=1e-6)


@pytest.mark.parametrize("name", ["ckb-ucb", "ckb-ts", "ckb-rand"])
def test_estimates_are_those_of_a_dense_recomputation(task, name):
    """E^conc, E^anti and optimism at x*, with the draws of every round taken from the algorithm as
    it goes.
    """
    algorithm, draws = make(name), []

    def look(t):
        b = algorithm.belief
        if name == "ckb-ts":
            draws.append(np.concatenate([b.f.path[:, None], b.constraint.path], axis=1).copy())
        elif name == "ckb-rand":
            draws.append(
                np.concatenate(
                    [algorithm.explore_f.z[:, None], algorithm.explore_g.z], axis=1
                ).copy()
            )
        else:
            draws.append(np.broadcast_to(np.array([1.0, -1.0, -1.0])[:, None], (S, 3, 1)))

    cells, chunks, audit = watched(task, algorithm, look=look)
    dual = np.concatenate([np.zeros((1, S, 2)), *[c.duals for c in chunks]])
    n, sign, shares = 30, np.array([1.0, -1.0, -1.0]), set()
    for s, row in enumerate(audit.rows()):
        dense = Dense(task, cells, chunks, s)
        f, g = dense.truth[0], dense.truth[1:]
        best, star = policy(f, g), np.where((g <= 0).all(axis=0), f, -np.inf).argmax()
        bounds = cells.instances.norm[s][:, None]
        conc = anti = optimism = 0
        for t in range(T):
            draw, width = draws[t][s], dense.beta[t][:, None]
            step = width * (draw if name == "ckb-ts" else draw * dense.deviation[t])
            estimate, radius = dense.mean[t] + step, width * dense.deviation[t]
            root = {"ckb-ts": np.log(n * (t + 1)), "ckb-rand": np.log(t + 1), "ckb-ucb": 0.25}[name]
            conc += (np.abs(step) <= 2 * np.sqrt(root) * radius * (1 + 1e-9)).all()
            anti += (sign * (step @ best) >= (radius @ best) * (1 - 1e-9)).all()
            clipped, phi = np.clip(estimate, -bounds, bounds)[:, star], dual[t, s]
            optimism += clipped[0] - phi @ clipped[1:] >= f[star] - phi @ g[:, star]
        assert (row["conc"], row["anti"], row["optimism"]) == (conc / T, anti / T, optimism / T)
        shares.add((row["conc"], row["optimism"]))
    assert name == "ckb-ucb" or len(shares) > 1


def test_bounds_of_the_theorem_are_the_inequalities_of_its_proof(task):
    cells, chunks, rows = audited(task, "ckb-ucb", slack=0.01)
    marks, marked = rows[0]["curve_t"], 0
    for s, row in enumerate(rows):
        dense = Dense(task, cells, chunks, s)
        spread = 2 * (dense.beta * dense.deviation[np.arange(T), dense.x][:, None]).cumsum(axis=0)
        B, G = cells.instances.norm[s, 0], cells.instances.norm[s, 1:]
        delta = cells.instances.slater[s]
        rho = 4 * B / delta
        V = G * np.sqrt(T) / rho
        played = dense.truth[:, dense.x]
        for t, regret, violation in zip(
            marks, row["curve_regret"], row["curve_violation"], strict=True
        ):
            steps = (t * (G + 0.01) ** 2 / (2 * V)).sum()
            chi = spread[t - 1]
            assert regret == pytest.approx(chi[0] + steps + 2 * B * t * 0.01 / delta, rel=1e-9)
            all_in = chi[0] + rho * chi[1:].sum() + (V * rho**2 / 2).sum() + steps
            assert violation == pytest.approx(2 / rho * all_in - t * 0.01, rel=1e-9)
            assert t * cells.instances.f_plus[s] - played[0, :t].sum() <= regret
            marked += 1
        assert row["curve_regret"][-1] <= row["regret_bound"]
        assert row["curve_violation"][-1] <= row["violation_bound"]
    assert marked == len(marks) * S


def test_bounds_hold_where_everything_assumed_is_so():
    """The promise of 1 - α, and the negative control: with B ten times too small it is broken."""
    task = problem("rkhs-1d", constraint="independent")
    _, _, rows = audited(task, "ckb-ucb", seeds=20, horizon=150, key="rkhs-1d")
    assert sum(row["est_always"] for row in rows) >= 0.9 * 20
    assert all(row["notes"] == [] for row in rows)

    class Tenth(type(make("ckb-ucb"))):
        def set_bounds(self, setting):
            super().set_bounds(setting)
            self.bound_f, self.bound_g = self.bound_f / 10, self.bound_g / 10

    wrong = watched(task, Tenth(), 20, 150, "rkhs-1d")[2].rows()
    assert sum(row["est_always"] for row in wrong) == 0
    assert all({"B < |f|", "G < |g|"} <= set(row["notes"]) for row in wrong)


ELSEWHERE = ["gardner-1", "feasible-pocket-drift"]


@pytest.mark.parametrize(
    ("name", "place"),
    [
        *(entry(name, "rkhs-1d") for name in LEARNERS),
        *itertools.product(["ckb-ucb", "rpol-sw"], ELSEWHERE),
        *(entry(name, place, long=True) for name in LEARNERS for place in ELSEWHERE),
    ],
)
def test_an_audit_changes_no_bit(name, place):
    task = problem(place, **({} if place == "rkhs-1d" else {"candidates": 64}))
    if make(name).needs - task.offers():
        pytest.skip("does not play here")
    make(name).check(task)
    bare = list(Play(task, "test", make(name), name, [0, 1], 8))
    _, chunks, rows = audited(task, name, seeds=2, horizon=8)
    assert (actions(bare) == actions(chunks)).all()
    for bare_chunk, audited_chunk in zip(bare, chunks, strict=True):
        np.testing.assert_array_equal(bare_chunk.observed_g, audited_chunk.observed_g)
        np.testing.assert_array_equal(bare_chunk.duals, audited_chunk.duals)
    assert len(rows) == 2
    assert all(row["notes"] for row in rows) or place != "feasible-pocket-drift"


@pytest.mark.parametrize("name", ["ckb-ucb", "ckb-ts", "ckb-rand", "stageopt"])
def test_a_cell_is_audited_alone_as_in_a_block(task, name):
    _, _, block = audited(task, name)
    _, _, alone = audited(task, name, seeds=[1])
    assert alone == [block[1]]


@pytest.mark.parametrize(
    ("settings", "note"),
    [
        ({"slack": 0.6}, "CKB: slack > δ/2"),
        ({"rho": 0.5}, "CKB: ρ < 4B/δ"),
        ({"beta": 2.0}, "β is a constant"),
        ({"beta_scale": 0.5}, "β is scaled"),
        ({"lam": 0.1}, "λ is not 1 + 2/T"),
        ({"V": 3.0}, "CKB: V is not G√T/ρ"),
        ({"G": 0.01}, "G < |g|"),
        ({"gain": "rate"}, "γ is a rate"),
        ({"delta": 5.0}, "CKB: δ exceeds the true one"),
    ],
)
def test_what_is_outside_the_theorem_is_noted(settings, note):
    task = problem("rkhs-1d", constraint="independent")
    _, _, good = audited(task, "ckb-ucb", seeds=2, horizon=10)
    _, _, outside = audited(task, "ckb-ucb", seeds=2, horizon=10, **settings)
    assert all(note not in row["notes"] for row in good)
    assert all(note in row["notes"] for row in outside)


def test_wrong_claims_of_safety_are_counted():
    """With widths of 0 a safe method calls safe what is not; the count is that of its safe sets,
    recomputed.
    """
    task = problem("rkhs-1d", constraint="independent")
    for name in ("stageopt", "sgp-ucb", "safeopt"):
        algorithm, safe = make(name, beta=0.05), []
        cells, _, audit = watched(
            task, algorithm, 6, 60, look=lambda t, a=algorithm, s=safe: s.append(a.safe.copy())
        )
        ever = np.any(safe, axis=0)
        instances = cells.instances
        beyond = ever & ~instances.seed_set
        unsafe = beyond & (instances.g[:, 0] > 0)
        rows = audit.rows()
        assert [row["certified"] for row in rows] == beyond.sum(axis=1).tolist()
        assert [row["certified_unsafe"] for row in rows] == unsafe.sum(axis=1).tolist()
        assert unsafe.any()


@pytest.mark.parametrize(
    ("place", "name"),
    [
        ("feasible-pocket", "ckb-ucb"),
        ("feasible-pocket", "ckb-ts"),
        ("feasible-pocket-delayed", "ckb-ucb"),
    ],
)
def test_a_box_is_looked_at_in_its_candidates(place, name):
    """Needed widths and deviations of what is played, from the beliefs of every round and the
    problem's formula.
    """
    task, algorithm = problem(place, candidates=128), make(name, kernel="given")
    needed, spread = np.zeros((2, 2)), np.zeros((2, 2))

    def points(task):
        return (
            task.actions.scale(task.actions.candidates)
            if name == "ckb-ucb"
            else task.actions.grid.points
        )

    def look(t):
        nonlocal spread, needed
        b = algorithm.belief
        values = task.formula(points(task))
        f = np.abs(values[:, 0] - b.f.mean) / (b.f.width * b.f.deviation)
        g = np.abs(values[:, 1] - b.constraint.mean[:, 0]) / (
            b.constraint.width[..., 0] * b.constraint.deviation[:, 0]
        )
        needed = np.maximum(needed, np.stack([f.max(axis=1), g.max(axis=1)], axis=1))
        if name == "ckb-ucb":
            mean, variance = algorithm.posterior.at(algorithm.chosen[:, None])
            at = algorithm.view(mean, variance, algorithm.chosen[:, None])
            radii = (
                at.f.width * at.f.deviation,
                at.constraint.width[:, 0] * at.constraint.deviation[:, 0],
            )
            spread = spread + np.concatenate(radii, axis=1)

    _, _, audit = watched(task, algorithm, 2, 25, look=look)
    rows = audit.rows()
    np.testing.assert_allclose([row["needed"] for row in rows], needed, rtol=1e-9)
    if name == "ckb-ucb":
        np.testing.assert_allclose(audit.events.spread, spread, rtol=1e-9)
    assert ("feedback is delayed" in rows[0]["notes"]) == (place == "feasible-pocket-delayed")
    values = task.formula(points(task))
    best = policy(values[:, 0], values[:, 1:].T)
    assert rows[0]["mixed"] == (best > 0).sum()


ROUNDS = 30


@pytest.fixture(scope="module")
def pair():
    return problem("rkhs", constraint="independent", m=2, n=40)


def gain_of(pair, x):
    """Information gain of the actions x, from the whole kernel matrix."""
    K = pair.actions.covariance[np.ix_(x, x)]
    return np.linalg.slogdet(np.eye(len(x)) + K / (1 + 2 / ROUNDS))[1] / 2


@pytest.mark.parametrize("name", ["ckb-ucb", "ckb-ts", "ckb-rand"])
def test_bounds_at_the_horizon_are_those_of_the_papers(pair, name):
    """Theorem 1 by (13), (15) and Lemma 2; Theorem 2 by (22): typed in again from the appendix, for
    each seed alone.
    """
    cells, chunks, rows = audited(pair, name, horizon=ROUNDS)
    i, n, alpha, m = cells.instances, 40, 0.1, 2
    for s, row in enumerate(rows):
        x = actions(chunks)[:, s]
        B, G = i.norm[s, 0], i.norm[s, 1:]
        rho = 4 * B / i.slater[s]
        V = G * np.sqrt(ROUNDS) / rho
        root = np.sqrt(2 * (gain_of(pair, x[:-1]) + 1 + np.log((1 + m) / alpha)))
        beta = i.norm[s] + i.noise[s] * root
        sigmas = np.sqrt(4 * (ROUNDS + 2) * gain_of(pair, x))
        assert row["gain"] == row["gain_used"] == pytest.approx(gain_of(pair, x), rel=1e-9)
        if name == "ckb-ucb":
            regret, penalised_regret = (
                2 * beta[0] * sigmas,
                2 * (beta[0] + rho * beta[1:].sum()) * sigmas,
            )
        else:
            factor = 2 * np.sqrt(np.log(n * ROUNDS if name == "ckb-ts" else ROUNDS))
            c = (1 + factor) * beta
            p3 = (1 / (4 * np.e * np.sqrt(np.pi))) ** (1 + m)
            kappa = 4 * B + 4 * rho * G.sum()
            total = c[0] + rho * c[1:].sum()
            missed = sum(min(1, 1 / t**2) + min(1, m / t**2) for t in range(1, ROUNDS + 1))
            regret = penalised_regret = (1 + 2 / p3) * (
                total * sigmas + total * kappa * np.sqrt(2 * ROUNDS * np.log(1 / alpha))
            )
            regret = penalised_regret = regret + missed * kappa
            assert row["anti_promised"] == pytest.approx(p3)
            assert row["conc_promised"] == pytest.approx(1 - missed / ROUNDS)
        steps = (ROUNDS * G**2 / (2 * V)).sum()
        assert row["regret_bound"] == pytest.approx(regret + steps, rel=1e-9)
        assert row["violation_bound"] == pytest.approx(
            2 / rho * (penalised_regret + (V * rho**2 / 2).sum() + steps), rel=1e-9
        )


def test_norms_noise_and_margins_are_those_of_the_draw(pair):
    """The audit fits norms to values; the draw knows them from its weights."""
    cells, _, rows = audited(pair, "ckb-ucb", horizon=ROUNDS, B=3.0, G="sup", R=0.2, delta=0.25)
    i = cells.instances
    np.testing.assert_allclose([row["norm"] for row in rows], i.norm, rtol=1e-6)
    np.testing.assert_allclose(
        [row["bound"] for row in rows], np.stack([[3.0, *sup[1:]] for sup in i.sup])
    )
    np.testing.assert_array_equal([row["noise"] for row in rows], i.noise)
    assert [row["noise_used"] for row in rows] == [[0.2] * 3] * 3
    assert [row["margin_single"] for row in rows] == i.slater.tolist()
    assert [(row["margin_used"], row["dual_cap"]) for row in rows] == [(0.25, 48.0)] * 3


@pytest.mark.parametrize(
    "explore",
    [
        UCB(+1),
        RandUCB(),
        RandUCB("uniform", points=20),
        RandUCB("discrete-gaussian", points=30, low=0.0, high=3.0),
        RandUCB("discrete-gaussian", low=-4.0, high=1.5),
        RandUCB("discrete-gaussian", sign=-1, low=-1.5, high=2.0),
    ],
)
def test_explorations_keep_what_they_promise(explore):
    """Of 4,000 draws, at least as many are optimistic by one width, and within c^(2), as theory
    says.
    """
    explore.start(Streams([("test", s) for s in range(4000)]), "explore f", (), 1)
    belief = FunctionBelief(np.zeros((4000, 3)), np.ones((4000, 3)), np.full((4000, 1), 2.0))
    for t in (1, 2, 5, 20):
        explore.begin(t)
        away = explore(belief) / 2.0
        np.testing.assert_allclose(
            away, np.broadcast_to(np.reshape(explore.multiple, (-1, 1)), away.shape)
        )
        optimistic = (getattr(explore, "sign", 1) * away >= 1).all(axis=1).mean()
        near = (np.abs(away) <= explore.concentration(t, 3)).all(axis=1)
        assert optimistic >= explore.optimism() - 0.03
        assert near.mean() >= 1 - explore.misses(t)
        if isinstance(explore, RandUCB) and explore.law != "normal":
            assert optimistic == pytest.approx(explore.optimism(), abs=0.03)


def test_the_margin_of_a_box_is_not_that_of_its_candidates():
    """A program on candidates finds less slack than a box has: δ in use, the true one, is not
    called too large.
    """
    pocket = problem("feasible-pocket")
    _, _, rows = audited(pocket, "ckb-ucb", horizon=ROUNDS, kernel="given")
    assert rows[0]["margin"] < rows[0]["margin_used"]
    assert not any("δ exceeds" in note for note in rows[0]["notes"])
    assert any(
        "δ exceeds" in note
        for note in audited(pocket, "ckb-ucb", horizon=ROUNDS, kernel="given", delta=0.9)[2][0][
            "notes"
        ]
    )


def test_of_fitted_models_an_audit_says_that_no_theorem_is():
    (row,) = audited(problem("feasible-pocket"), "ckb-ucb", seeds=1, horizon=8)[2]
    assert (row["rounds"], row.get("est"), row.get("regret_bound")) == (0, None, None)
    assert "models are fitted" in row["notes"]
