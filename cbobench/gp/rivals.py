"""The next play that is worth the most to what a model recommends: its knowledge gradient.

A play at x moves the mean of a function at x' by k(x, x') / √(k(x, x) + λ) Z, with Z standard
normal and k the posterior covariance, and takes the square of that factor off its variance at x',
whatever is observed (Frazier, Powell & Dayanik 2009). What a play is worth is the mean
of f at what is recommended after it (see `cbobench.gp.recommend`), on average over Z of f and of
every g_j.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cbobench.gp.box_actions import Box, sobol
from cbobench.gp.kernels import Array
from cbobench.gp.posteriors.fitted import FittedPosterior
from cbobench.gp.posteriors.interface import VARIANCE_FLOOR
from cbobench.gp.recommend import LIKELY, ZOOM

CLOUD = 32  # rivals around a recommendation at each of three distances


def rivals_around(points: Array, model: FittedPosterior, box: Box) -> Array:
    """Return the rivals (S, r, d) of recommended points of the cube (S, d): these, all observed
    points, and points around.
    """
    steps = 2 * sobol(box.d, CLOUD) - 1
    clouds = [points[:, None] + box.spacing / ZOOM**i * steps for i in range(3)]
    near = np.clip(np.concatenate(clouds, axis=1), 0.0, 1.0)
    return np.concatenate([points[:, None], model.observations(), near], axis=1)


def worth_of_plays(model: FittedPosterior, rivals: NDArray[np.generic], normals: Array) -> Array:
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
