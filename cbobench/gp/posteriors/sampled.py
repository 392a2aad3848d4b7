"""Noise-free GPs through joint posterior samples of functions at the points where they were
observed.

In units of s and from the centre, an observation is y = h + noise, where h is f(x) and a deviation
of √`NUGGET`, which keeps factors regular where points repeat. With the noise variance λ less the
nugget, λ' >= 0, and M = (K + λI)⁻¹, the posterior of h has the mean y - λ' M y and the covariance
λ' (I - λ' M). Given h, f has the posterior of observations whose noise variance is the nugget: each
sample of h has a mean of its own, and all share one variance.
"""

from __future__ import annotations

import copy

import numpy as np

from cbobench.gp.kernels import Array
from cbobench.gp.posteriors.fitted import FittedPosterior
from cbobench.gp.posteriors.interface import VARIANCE_FLOOR

NUGGET = 1e-8


class SampledPosterior(FittedPosterior):
    """Posteriors of p functions given each of K joint samples of what was observed.

    Args:
        model: what was observed, c times, and the hyperparameters; left as it is.
        normals: standard normal draws, (S, p, K, c).

    Attributes:
        samples: h, (S, p, K, c), in units of what is modelled.
        mean: (S, p K, M), the K of f first.
        variance: (S, p, M).
    """

    def __init__(self, model: FittedPosterior, normals: Array) -> None:
        vars(self).update(vars(model))
        c = model.count
        centre, amplitude = model.centre[..., None, None], model.amplitude[..., None, None]
        noise = np.maximum(model.ratio - NUGGET, 0.0)[..., None, None]
        root = model.root[:, :, :c, :c]
        precision = root.mT @ root
        mean = model.standardised()[:, :, None] - noise * (model.pulls @ root)
        spread = np.linalg.cholesky(np.eye(c) - noise * precision)
        h = mean + np.sqrt(noise) * (normals @ spread.mT)
        self.samples = centre + amplitude * h
        # From here on it is a fitted posterior with another λ, and K means.
        covariance = model.cross(model.points, model.points) + NUGGET * np.eye(c)
        self.root = np.linalg.inv(np.linalg.cholesky(covariance))
        self.sample_pulls = h @ self.root.mT
        white = self.root @ model.cross(model.points, self.sites)
        means = centre + amplitude * (self.sample_pulls @ white)
        self.mean = means.reshape(len(means), -1, white.shape[3])
        unit = np.maximum(1 - (white * white).sum(axis=2), VARIANCE_FLOOR)
        self.variance = amplitude[..., 0] ** 2 * unit

    def given_first(self, count: int) -> SampledPosterior:
        """Return the posterior given the first samples alone, but for its beliefs at candidates."""
        first = copy.copy(self)
        first.sample_pulls = self.sample_pulls[:, :, :count]
        return first

    @property
    def pulls(self) -> Array:
        return self.sample_pulls


def stratify_normals(generator: np.random.Generator, count: int, shape: tuple[int, ...]) -> Array:
    """Return standard normal draws (count, *shape): in every place one of each of as many strata of
    equal probability (a Latin hypercube, McKay et al. 1979).
    """
    from scipy.special import ndtri  # imported late: SciPy takes long to load

    strata = generator.permuted(np.broadcast_to(np.arange(count), (*shape, count)), axis=-1)
    return np.moveaxis(ndtri((strata + generator.random((*shape, count))) / count), -1, 0)
