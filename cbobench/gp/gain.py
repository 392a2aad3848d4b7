"""The information gain gamma_t in a confidence width: three readings of a quantity the papers leave open.

`played` is the gain of the actions played so far, which the posterior keeps for nothing. `greedy` bounds the maximum
over all sets: the gain of greedily chosen actions divided by 1 - 1/e (submodularity; Srinivas et al. 2010). `rate` is
the order of growth that the papers quote, with constant 1.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from cbobench.errors import Misuse
from cbobench.gp.actions import Finite
from cbobench.gp.box import Box
from cbobench.gp.kernels import SMOOTHNESS, Array
from cbobench.gp.posteriors.features import FeaturePosterior

GainName = Literal["played", "greedy", "rate"]


def greedy_gain(actions: Finite | Box, lam: float, horizon: int) -> Array:
    """Upper bounds of gamma_0, ..., gamma_T, shape (T + 1,): greedy gains / (1 - 1/e); a box by its candidates."""
    if isinstance(actions, Box):
        actions = actions.grid
    posterior = FeaturePosterior(actions.features, lam, 1, 1, actions.prior)
    gains = np.zeros(horizon + 1)
    nothing = np.zeros((1, 1))
    for t in range(1, horizon + 1):
        posterior.update(posterior.variance.argmax(axis=1), nothing)
        gains[t] = posterior.gain[0]
    return gains / (1 - np.exp(-1))


def gain_rate(actions: Finite | Box, horizon: int) -> Array:
    """The papers' orders of gamma_0, ..., gamma_T, shape (T + 1,).

    (ln t)^(d+1) for the SE kernel, d ln t for the linear one (Srinivas et al. 2010), and
    t^(d/(2 nu + d)) for a Matérn kernel (Vakili et al. 2021, without the logarithm).

    Raises:
        Misuse: the covariance is a given matrix, for which no rate is known.
    """
    t = np.maximum(np.arange(horizon + 1, dtype=np.float64), 1.0)
    given = isinstance(actions, Finite) and (actions.points is None or actions.kernel_name == "given")
    if given:
        raise Misuse("gain is 'rate', but a given covariance has no closed-form rate; allowed here: played, greedy")
    d = actions.d
    if actions.kernel_name == "se":
        rate = np.log(t) ** (d + 1)
    elif actions.kernel_name == "linear":
        rate = d * np.log(t)
    else:
        rate = t ** (d / (2 * SMOOTHNESS[actions.kernel_name] + d))
    rate[0] = 0.0
    return np.asarray(rate)
