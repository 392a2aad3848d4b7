"""Confidence widths beta_t of the kernelized bandits, the same for every algorithm compared.

The theory form is Chowdhury & Gopalan (2017), Theorem 2, as used in Zhou & Ji (2022), Theorem 1:

    beta_t = B + R sqrt(2 (gamma_{t-1} + 1 + ln(F / alpha))),

with F functions sharing the failure probability alpha (F = 2 gives the paper's ln(2 / alpha)). It asks for
lambda = 1 + 2/T. `self-normalised` is the form that is valid for any lambda (Abbasi-Yadkori 2013):
beta_t = B + (R / sqrt(lambda)) sqrt(2 (gamma_{t-1} + ln(F / alpha))). A number is that number, every round.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from cbobench.gp.kernels import Array

WidthForm = Literal["theory", "self-normalised"]


class Width:
    """beta_t for the functions of S replicates.

    Args:
        bound: the norm bounds (B, G_1, ..., G_m) per replicate, (S, F).
        noise: sub-Gaussian constants R, (S, F).
        alpha: failure probability of all bounds together.
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
        alpha: float,
        scale: float = 1.0,
        form: WidthForm | float = "theory",
        lam: float | Array = 1.0,
        shares: int | None = None,
    ) -> None:
        events = bound.shape[1] if shares is None else shares
        self.constant: Array | None = None
        log = np.log(events / alpha)
        if isinstance(form, (int, float)):
            self.constant = np.full_like(bound, float(form))  # a number is meant as it stands: no scale
        self.bound = scale * bound
        self.slope = scale * np.sqrt(2.0) * noise / (np.sqrt(lam) if form == "self-normalised" else 1.0)
        self.offset = log if form == "self-normalised" else 1.0 + log

    def at(self, gain: Array) -> Array:
        """Widths (S, F) of the round after a gain of gamma_{t-1}, (S,), or (S, F) where functions have their own."""
        if self.constant is not None:
            return self.constant
        root = np.sqrt(gain + self.offset)
        return np.asarray(self.bound + self.slope * (root[:, None] if root.ndim == 1 else root))
