"""Wrong problems, as a user meets them: one line before the sweep, or a failed cell that names the
round.
"""

from __future__ import annotations

import numpy as np
import pytest

import cbobench
from cbobench.errors import CellFailure, Misuse
from cbobench.gp.kernels import kernel, pivoted_cholesky
from cbobench.gp.posteriors.features import FeaturePosterior
from tests.helpers import long, play, play_here, problem
from tests.helpers import make as algorithm

MINE = """
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from cbobench.gp.actions import Finite
from cbobench.params import param
from cbobench.problems.rkhs.pocket import FeasiblePocket
from cbobench.problems.rkhs.functions import RKHS1D

ROUND = 20


class Channel:
    def __init__(self, inner, how, even):
        self.inner, self.how, self.even = inner, how, even

    def before(self, t):
        return self.inner.before(t)

    def at(self, t, actions):
        told = self.inner.at(t, actions)
        f, g = told.f.copy(), told.g.copy()
        if t != ROUND:
            return told
        if self.how == "late" and told.arrivals is not None and len(told.arrivals.value):
            return replace(told, arrivals=replace(told.arrivals, value=np.nan * told.arrivals.value))
        if self.how == "f":
            f[self.even] = np.nan
        if self.how == "g":
            g[self.even] = np.inf
        if self.how == "shape":
            g = g[:, 0]
        if self.how == "raise":
            raise KeyError("sensor")
        return replace(told, f=f, g=g)


@dataclass(kw_only=True)
class Told(RKHS1D):
    how: str = param("", "what is told in round 20")

    def feedback(self, instances, streams):
        even = np.array([scope[-1] % 2 == 0 for scope in streams.scopes])
        return Channel(super().feedback(instances, streams), self.how, even)


@dataclass(kw_only=True)
class ToldBox(FeasiblePocket):
    how: str = param("", "what is told in round 20")

    def feedback(self, instances, streams):
        even = np.array([scope[-1] % 2 == 0 for scope in streams.scopes])
        return Channel(super().feedback(instances, streams), self.how, even)


@dataclass(kw_only=True)
class Drawn(RKHS1D):
    what: str = param("f", "which array is wrong")
    value: str = param("nan", "what stands in it")

    def draw(self, generators):
        drawn = super().draw(generators)
        values = getattr(drawn, self.what).copy()
        if self.value == "shape":
            return replace(drawn, **{self.what: values[..., :1]})
        values[..., -1] = float(self.value)
        return replace(drawn, **{self.what: values})


@dataclass(kw_only=True)
class Matrix(RKHS1D):
    how: str = param("", "what is wrong with it")

    @cached_property
    def actions(self):
        right = RKHS1D().actions
        K = right.covariance.copy()
        if self.how == "indefinite":
            K[[0, 99], [99, 0]] = 0.9
        if self.how == "missing":
            K[3, 4] = np.nan
        if self.how == "skew":
            K[0, 50] += 0.3
        if self.how == "large":
            K *= 2
        if self.how == "oblong":
            K = K[:50]
        return Finite(K, right.points, "se")


@dataclass(kw_only=True)
class Holed(FeasiblePocket):
    def formula(self, x):
        return np.where(x[..., :1] < 0.5, np.nan, super().formula(x))
"""  # noqa: E501


@pytest.fixture
def play_wrong(write_suite, tmp_path, monkeypatch):
    (tmp_path / "mine_wrong.py").write_text(MINE)
    monkeypatch.syspath_prepend(str(tmp_path))

    def run(task, *methods, seeds=2, horizon=40):
        lines = [
            f"suite: w\nhorizon: {horizon}\nseeds: {seeds}\nproblems:\n  - {task}\nalgorithms:"
        ]
        suite = write_suite("\n".join([*lines, *[f"  - {m}" for m in methods], ""]))
        play_here(suite, tmp_path / "w")
        return cbobench.load_cells(tmp_path / "w")

    return run


FINITE = ("ckb-ucb", "rpol-sw: {window: 5, variation: none}", "scbo")


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("f", r"^round 20: an observation of replicate 0 is not a number: \(f, g\) = \(nan, -?\d"),
        (
            "g",
            r"^round 20: an observation of replicate 0 is not a number: \(f, g\) = \(-?\d.*, inf\)",
        ),
    ],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    "task",
    ["Told: {how: %s}", *long("ToldBox: {how: %s, candidates: 64}")],
)
def test_an_observation_that_is_no_number_ends_its_cell_alone(play_wrong, task, how, message):
    methods = FINITE if task.startswith("Told:") else ("rpol-ucb", "random")
    cells = play_wrong("mine_wrong:" + task % how, *methods)
    assert (cells.loc[cells["seed"] == 1, "status"] == "ok").all()
    failed = cells[cells["seed"] == 0]
    assert (failed["status"] == "failed").all()
    assert failed["error"].str.contains(message).all(), failed["error"].tolist()


@pytest.mark.parametrize(
    "task",
    [
        *long("Told: {how: late, delay: 2.0}"),
        "ToldBox: {how: late, delay: 2.0, candidates: 64}",
    ],
)
def test_a_late_observation_that_is_no_number_ends_its_cell(play_wrong, task):
    cells = play_wrong("mine_wrong:" + task, "rpol-censored", seeds=3)
    failed = cells.loc[cells["status"] == "failed", "error"]
    assert len(failed)
    assert failed.str.contains(
        r"^round 20: the observation of round \d+ that arrives for replicate 0 is not a"
    ).all()


@pytest.mark.parametrize(
    ("how", "message"),
    [
        (
            "shape",
            r"^round 20: feedback has shapes f \(1,\) and g \(1,\); they must be \(1,\) and \(1, "
            r"1\)$",
        ),
        ("raise", r"^round 20: KeyError: 'sensor' \(mine_wrong.py:\d+\)$"),
    ],
)
def test_what_a_channel_does_wrong_has_its_round(play_wrong, how, message):
    cells = play_wrong(f"mine_wrong:Told: {{how: {how}}}", "ckb-ucb", "random")
    assert cells["error"].str.contains(message).all()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("what: f, value: nan", r"^f\[0, 99\] of the drawn instances is nan; it must be finite$"),
        ("what: g, value: nan", r"^g\[0, 0, 99\] of the drawn instances is nan"),
        (
            "what: norm, value: nan",
            r"^norm\[0, 1\] of the drawn instances is nan; it must be at least 0, or infinite",
        ),
        (
            "what: noise, value: '-1'",
            r"^noise\[0, 1\] of the drawn instances is -1; it must be at least 0, or "
            r"infinite where unknown$",
        ),
        (
            "what: f, value: shape",
            r"^f of the drawn instances has shape \(1, 1\); it must be \(1, 100\)$",
        ),
        (
            "what: norm, value: shape",
            r"^norm of the drawn instances has shape \(1, 1\); it must be \(1, 2\)$",
        ),
    ],
)
def test_a_draw_that_cannot_be_played_is_said(play_wrong, settings, message):
    cells = play_wrong(f"mine_wrong:Drawn: {{{settings}}}", "ckb-ucb", "random")
    assert cells["error"].str.contains(message).all(), cells["error"].tolist()


def test_an_infinite_norm_is_allowed(play_wrong):
    cells = play_wrong("mine_wrong:Drawn: {what: norm, value: inf}", "ckb-ucb: {B: sup, G: sup}")
    assert (cells["status"] == "ok").all()


@pytest.mark.parametrize(
    ("how", "message"),
    [
        (
            "indefinite",
            r"not positive semi-definite \(lowest eigenvalue -0\.\d+\); project or repair it",
        ),
        ("missing", "holds 1 missing or infinite entries"),
        ("skew", r"not symmetric \(largest difference 0\.3\)"),
        ("large", r"a variance of 2; the theory needs k\(x, x\) <= 1"),
        ("oblong", r"has shape \(50, 100\); a covariance is square"),
    ],
)
def test_a_matrix_that_is_no_covariance_is_refused_before_the_sweep(
    play_wrong, tmp_path, how, message
):
    with pytest.raises(Misuse, match=f"the covariance of its actions.*{message}"):
        play_wrong(f"mine_wrong:Matrix: {{how: {how}}}", "ckb-ucb")
    assert not (tmp_path / "w").exists()


def test_a_hole_that_no_sample_met_ends_the_cell_when_it_is_played():
    task = problem("feasible-pocket", candidates=64)
    task.formula = lambda x, true_formula=task.formula: true_formula(x)
    cells, _ = play(task, algorithm("random"), seeds=2, horizon=5)
    cells.metrics.instances = cells.instances
    object.__setattr__(cells.instances, "formula", lambda x: np.full((*x.shape[:-1], 2), np.nan))
    with pytest.raises(
        CellFailure, match=r"round 6: f is nan at the action of replicate 0; it must be finite"
    ):
        cells.metrics.add(np.ones((3, 2, 2)))


def test_a_large_matrix_shows_in_its_features():
    """Eigenvalues of more than 1,000 rows are not looked at; the pivots tell."""
    K = kernel("se", 0.2)(np.linspace(0, 1, 60)[:, None], np.linspace(0, 1, 60)[:, None])
    K[[0, 59], [59, 0]] = 0.9
    with pytest.raises(Misuse, match="not positive semi-definite"):
        pivoted_cholesky(K.diagonal(), K.__getitem__)


def test_a_lambda_that_features_lose_is_refused(play_wrong):
    phi = np.eye(3)
    assert FeaturePosterior(phi, 1e-8, 1, 1).lam == 1e-8
    with pytest.raises(
        CellFailure, match="λ = 1e-09 is lost in feature space; allowed: 1e-08 and more"
    ):
        FeaturePosterior(phi, 1e-9, 1, 1)
    cells = play_wrong("rkhs-1d", "ckb-ucb: {lam: 1.0e-300}")
    assert cells["error"].str.contains("λ = 1e-300 is lost in feature space").all()
