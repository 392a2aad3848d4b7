"""Recommends an action from a model of f and every g_j: the best one that is feasible with a stated
probability; and the play that is worth the most to a recommendation, its knowledge gradient.

A play at x moves the mean of a function at x' by k(x, x') / √(k(x, x) + λ) Z, with Z standard
normal and k the posterior covariance, and takes the square of that factor off its variance at x',
whatever is observed (Frazier, Powell & Dayanik 2009). What a play is worth is the mean of f at what
is recommended after it, on average over Z of f and of every g_j.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from cbobench.gp.actions import Finite
from cbobench.gp.box_actions import ActionSet, Box, sobol
from cbobench.gp.jets import monomials
from cbobench.gp.kernels import Actions, Array, Indices, Mask
from cbobench.gp.posteriors.fitted import FittedPosterior
from cbobench.gp.posteriors.interface import VARIANCE_FLOOR, Moments, Posterior

PROBABILITY = 0.95  # for each constraint separately
LIKELY = 1.6448536269514722  # Φ(LIKELY) = PROBABILITY
AROUND = 64  # points around a candidate at which its Taylor model is evaluated
CLOUD = 32  # rivals around a recommendation at each of three distances
ZOOM = 5  # factor by which they are nearer the second time
SHORT = np.array([0.0, 0.95, 1.0])  # shares of the way

Goal = tuple[Array, Array, Array]
"""What a recommendation goes by: means of f (S, k), means of the constraints (S, m, k), and their
variances (S, m, k) or, where they share them, (S, 1, k)."""


def recommend_action(
    goal: Callable[[Array, Array], Goal],
    posterior: Posterior,
    box: Box | None,
    sure: Mask | None,
    measured: Array | None,
    use_observed: bool,
) -> Actions:
    """Return a model's recommendations: indices (S,) of a finite set, or points (S, d) of a box.

    Args:
        goal: from means (S, p, k) and variances (S, k) or (S, p, k).
        sure: actions of a finite set that are known to be feasible, (S, n).
        measured: exact values of g_j at actions of a finite set, (S, m, n), NaN where unknown.
        use_observed: whether to consider observed points of a box, too, if it has no mesh.
    """
    if box is None:
        return likely_best(goal(posterior.mean, posterior.variance), sure, measured)
    return box.scale(likely_best_point(goal, posterior, box, use_observed and box.mesh is None))


class RunMoments:
    """Means and deviations (1 + m, q) of f and every g_j in one run."""

    actions: ActionSet

    def at(self, inputs: Actions) -> Moments:
        """Return them at indices (q,), or at points (q, d) of a box's cube."""
        raise NotImplementedError

    def at_candidates(self) -> Moments:
        """Return them at all actions of a finite set, or at a box's candidates."""
        actions = self.actions
        return self.at(actions.candidates if isinstance(actions, Box) else np.arange(actions.n))


def recommend_in_run(model: RunMoments, played: Actions, measured: Array | None = None) -> Actions:
    """Return the recommendation of a model of one run: an action of a finite set (1,), or a point
    of a box's cube (1, d).

    Args:
        played: points of a box to consider beside its candidates and points around the best.
        measured: exact values of g_j at actions of a finite set, (1, m, n), NaN where unknown.
    """

    def best_of(inputs: Actions, *moments: Moments) -> Actions:
        pairs = moments or [model.at(inputs)]
        mean, deviation = (np.concatenate(arrays, axis=1) for arrays in zip(*pairs, strict=True))
        goal = mean[None, 0], mean[None, 1:], deviation[None, 1:] ** 2
        forbidden = None if box is None else box.beyond(inputs[None])
        return inputs[likely_best(goal, measured=measured, forbidden=forbidden)]

    actions = model.actions
    box = actions if isinstance(actions, Box) else None
    if isinstance(actions, Finite):
        return best_of(np.arange(actions.n), model.at_candidates())
    point = best_of(
        np.concatenate([actions.candidates, played]), model.at_candidates(), model.at(played)
    )
    for radius in (actions.spacing, actions.spacing / ZOOM, actions.spacing / ZOOM**2):
        point = best_of(np.clip(point + radius * _steps(actions.d), 0.0, 1.0))
    return point


def likely_best(
    goal: Goal,
    sure: Mask | None = None,
    measured: Array | None = None,
    forbidden: Mask | None = None,
) -> Indices:
    """Return the index of the largest value among k points with P(g_j <= 0) >= 0.95 for every j,
    (S,).

    Of equal ones it is the first.

    Without one, return the index of the point whose least probable constraint is the most probable.

    Args:
        sure: points that are known to be feasible, (S, k).
        measured: exact values of g_j, (S, m, k), NaN where unknown.
        forbidden: points that must not be played, (S, k).
    """
    value, mean, variance = goal
    ratio = np.abs(mean)  # (μ/σ)² with the sign of μ saves a root and large arrays
    ratio *= mean
    ratio /= variance
    if measured is not None:
        certain = np.where(measured <= 0, -np.inf, np.inf)
        ratio = np.where(np.isnan(measured), ratio, certain)
    worst = ratio[:, 0] if ratio.shape[1] == 1 else ratio.max(axis=1, initial=-np.inf)
    if forbidden is not None:
        worst = np.where(forbidden, np.inf, worst)
    allowed = worst <= -(LIKELY**2)
    if sure is not None:
        allowed |= sure
    none = ~allowed.any(axis=1)
    least = worst[none].argmin(axis=1)
    # The same array takes the values of f, which saves a large one.
    worst.fill(-np.inf)
    np.copyto(worst, value, where=allowed)
    best = worst.argmax(axis=1)
    best[none] = least
    return best


def likely_best_point(
    goal: Callable[[Array, Array], Goal], posterior: Posterior, box: Box, use_observed: bool
) -> Array:
    """Return the recommended points of a box, in its unit cube, (S, d): the best candidate or
    observed action, refined.

    Refined by its second-order model: the best of `AROUND` points around it, then of as many near
    that one. What it says is taken if it is better indeed, or points short of it are: where a
    constraint ends, the model may be beyond.

    Args:
        goal: from means (S, p, k) and variances (S, k) or (S, p, k).
        use_observed: whether to look at the observed actions, too, of functions observed together;
            a mesh needs none.
    """
    rows = np.arange(len(posterior.mean))
    start = box.candidates[likely_best(goal(posterior.mean, posterior.variance))]
    # An observed action may lie between candidates, and be better than all of them.
    if use_observed:
        mean, variance, _ = posterior.at_observations()
        which = likely_best(goal(mean, np.maximum(variance, VARIANCE_FLOOR)))
        pair = np.stack([start, posterior.observations()[rows, which]], axis=1)
        start = pair[rows, likely_best(goal(*posterior.at(pair)))]

    # The second-order model costs one jet for thousands of points, and holds near the start.
    jet = posterior.jet(start[:, None])
    end = start
    per_function = jet.variance.ndim == 4
    reach = min(box.spacing, box.lengthscale / 4)
    for radius in (reach, reach / ZOOM):
        steps = np.where(box.held, 0.0, radius * _steps(box.d))
        points = np.minimum(np.maximum(end[:, None] + steps, 0.0), 1.0)
        models = monomials(points - start[:, None])
        mean = jet.mean[:, :, 0] @ models
        variance = (jet.variance[:, :, 0] if per_function else jet.variance) @ models
        variance = np.maximum(variance, VARIANCE_FLOOR)
        moments = goal(mean, variance if per_function else variance[:, 0])
        end = points[rows, likely_best(moments, forbidden=box.beyond(points))]

    # The posterior has the last word, over points short of the end, too, and the start itself.
    points = start[:, None] + SHORT[:, None] * (end - start)[:, None]
    mean, variance = posterior.at(points[:, 1:])
    mean = np.concatenate([jet.mean[..., 0], mean], axis=2)
    variance = np.concatenate([np.maximum(jet.variance[..., 0], VARIANCE_FLOOR), variance], axis=-1)
    return points[rows, likely_best(goal(mean, variance), forbidden=box.beyond(points))]


@lru_cache(maxsize=16)
def _steps(d: int) -> Array:
    """Return steps (1 + `AROUND`, d): the zero step, which stays in place, then a Sobol sequence in
    [-1, 1]^d.
    """
    return np.concatenate([np.zeros((1, d)), 2 * sobol(d, AROUND) - 1])


def rivals_around(points: Array, model: FittedPosterior, box: Box) -> Array:
    """Return the rivals (S, r, d) of recommended points of the cube (S, d): these, all observed
    points, and points around.
    """
    steps = 2 * sobol(box.d, CLOUD) - 1
    clouds = [points[:, None] + box.spacing / ZOOM**i * steps for i in range(3)]
    near = np.clip(np.concatenate(clouds, axis=1), 0.0, 1.0)
    # What is forbidden is no rival: the recommendation stands there once more.
    near = np.where(box.beyond(near)[..., None], points[:, None], near)
    return np.concatenate([points[:, None], model.observations(), near], axis=1)


def worth_of_plays(model: FittedPosterior, rivals: Actions, normals: Array) -> Array:
    """Return the expected mean of f at what is recommended among r rivals after a play of each,
    (S, r).

    Where no rival satisfies every constraint with the probability that a recommendation needs, it
    counts as the least mean of f among rivals.

    Args:
        rivals: actions (S, r) of a finite set, or points of a box's cube (S, r, d).
        normals: draws of Z, (S, N, p).
    """
    mean, covariance = model.joint(rivals)
    own = np.maximum(covariance.diagonal(axis1=2, axis2=3), VARIANCE_FLOOR)
    noise = (model.ratio * model.amplitude**2)[..., None]
    moves = covariance / np.sqrt(own + noise)[:, :, None]  # by where, and by the play
    left = np.sqrt(np.maximum(own[..., None] - moves * moves, 0.0))
    least = mean[:, 0].min(axis=1)[:, None, None]
    total = np.zeros_like(mean[:, 0])
    for z in normals.swapaxes(0, 1):
        after = mean[..., None] + moves * z[..., None, None]
        allowed = (after[:, 1:] + LIKELY * left[:, 1:] <= 0).all(axis=1)
        total += np.where(allowed, after[:, 0], least).max(axis=1)
    return total / normals.shape[1]
