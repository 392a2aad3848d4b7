"""Additive noise whose law on the constraints is not its law on the reward."""

from __future__ import annotations

import numpy as np

from cbobench.gp.kernels import Array
from cbobench.rng import Draws, Sampler, Streams


class TwoLaws(Draws):
    """Draws (S, 1 + m) of which the first column has one law, and the others another and streams of their own.

    Two streams rather than one that is cut in pieces: the draws of f then stay the same whatever the law of g is.
    """

    def __init__(self, streams: Streams, law_f: Sampler, law_g: Sampler, m: int) -> None:
        super().__init__(streams.role("noise"), law_f, (1,))
        self.of_g = Draws(streams.role("noise of g"), law_g, (m,))

    def at(self, t: int) -> Array:
        return np.concatenate([super().at(t), self.of_g.at(t)], axis=1)
