"""Confidence widths beta_t of the kernelized bandits and the information gain gamma_t in them.

The theory form is Chowdhury & Gopalan (2017), Theorem 2, as used in Zhou & Ji (2022), Theorem 1:

    beta_t = B + R sqrt(2 (gamma_{t-1} + 1 + ln(F / alpha))),

with F functions sharing the failure probability alpha (F = 2 gives the paper's ln(2 / alpha)). It
asks for lambda = 1 + 2/T. `self-normalised` is the form that is valid for any lambda
(Abbasi-Yadkori 2013): beta_t = B + (R / sqrt(lambda)) sqrt(2 (gamma_{t-1} + ln(F / alpha))). A
number is that number, every round.

The papers leave gamma_t open; three readings of it are offered. `played` is the gain of the actions
played so far, which the posterior keeps anyway. `greedy` bounds the maximum over all sets: the gain
of greedily chosen actions divided by 1 - 1/e (submodularity; Srinivas et al. 2010). `rate` is the
order of growth that the papers quote, with constant 1.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from cbobench.errors import Misuse
from cbobench.gp.actions import Finite
from cbobench.gp.box_actions import ActionSet, Box
from cbobench.gp.kernels import SMOOTHNESS, Array
from cbobench.gp.posteriors.features import FeaturePosterior

WidthForm = Literal["theory", "self-normalised"]


class Width:
    """beta_t for the functions of S replicates.

    Args:
        bound: the norm bounds (B, G_1, ..., G_m) per replicate, (S, F).
        noise: sub-Gaussian constants R, (S, F).
        alpha: failure probability of all bounds together; like `scale` and `form` a number, or
            numbers (S, 1).
        scale: a factor on beta_t (1 is the theory; smaller is common practice, and is recorded).
        form: one of `WidthForm`, or a constant width.
        lam: lambda, for the self-normalised form; a number, or (S, F).
        shares: how many events share alpha; F by default.
    """

    def __init__(
        self,
        bound: Array,
        noise: Array,
        *,
        alpha: float | Array,
        scale: float | Array = 1.0,
        form: WidthForm | float | Array = "theory",
        lam: float | Array = 1.0,
        shares: int | None = None,
    ) -> None:
        events = bound.shape[1] if shares is None else shares
        # A number is used as it is, without the scale.
        self.constant = None if isinstance(form, str) else np.full_like(bound, form)
        log = np.log(events / alpha)
        normalised = isinstance(form, str) and form == "self-normalised"
        self.bound = scale * bound
        self.slope = scale * np.sqrt(2.0) * noise / (np.sqrt(lam) if normalised else 1.0)
        self.offset = log if normalised else 1.0 + log

    def at(self, gain: Array) -> Array:
        """Return widths (S, F) of the round after a gain of gamma_{t-1}, (S,), or (S, F) if each
        function has one.
        """
        if self.constant is not None:
            return self.constant
        root = np.sqrt((gain[:, None] if gain.ndim == 1 else gain) + self.offset)
        return self.bound + self.slope * root


GainName = Literal["played", "greedy", "rate"]


def greedy_gain(actions: ActionSet, lam: float, horizon: int) -> Array:
    """Return upper bounds of gamma_0, ..., gamma_T, shape (T + 1,): greedy gains / (1 - 1/e); on a
    box over its candidates.
    """
    if isinstance(actions, Box):
        actions = actions.grid
    posterior = FeaturePosterior(actions.features, lam, 1, 1, actions.prior)
    gains = np.zeros(horizon + 1)
    # Variances and gains do not depend on the observed values.
    no_values = np.zeros((1, 1))
    for t in range(1, horizon + 1):
        posterior.update(posterior.variance.argmax(axis=1), no_values)
        gains[t] = posterior.gain[0]
    return gains / (1 - np.exp(-1))


def gain_rate(actions: ActionSet, horizon: int) -> Array:
    """Return the papers' orders of gamma_0, ..., gamma_T, shape (T + 1,).

    (ln t)^(d+1) for the SE kernel, d ln t for the linear one (Srinivas et al. 2010), and t^(d/(2 nu
    + d)) for a Matérn kernel (Vakili et al. 2021, without the logarithm).

    Raises:
        Misuse: the covariance is a given matrix, for which no rate is known.
    """
    # Round 0 is set at the end: a logarithm of it does not exist.
    t = np.maximum(np.arange(horizon + 1, dtype=np.float64), 1.0)

    # Of a given matrix neither dimension nor smoothness is known.
    is_matrix = isinstance(actions, Finite) and (
        actions.points is None or actions.kernel_name == "given"
    )
    if is_matrix:
        raise Misuse(
            "gain is 'rate', but a given covariance has no closed-form rate; allowed here: "
            "played, greedy"
        )

    # Srinivas et al. for two kernels, Vakili et al. for the Matérn ones.
    d = actions.d
    if actions.kernel_name == "se":
        rate = np.log(t) ** (d + 1)
    elif actions.kernel_name == "linear":
        rate = d * np.log(t)
    else:
        rate = t ** (d / (2 * SMOOTHNESS[actions.kernel_name] + d))
    rate[0] = 0.0
    return rate
