"""Additive noise whose law on the constraints is not its law on the reward."""

from __future__ import annotations

import numpy as np

from cbobench.gp.kernels import Array
from cbobench.problems.base import Channel, Drawn
from cbobench.problems.channels import AdditiveNoise, Delayed, FeedbackModel, noise_law
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


def two_laws(problem: FeedbackModel, instances: Drawn, streams: Streams, law_g: Sampler) -> Channel:
    """The channel of a `FeedbackModel` in which `law` is the law of f alone.

    Args:
        law_g: how draws of mean 0 and variance 1 for every g_j are made; `instances.noise` scales them.
    """
    shown = problem.everywhere(instances) if problem.full_information else None
    law_f = noise_law(problem.law, problem.tail)
    channel = AdditiveNoise(instances, instances.noise, streams, law_f, shown)
    channel.draws = TwoLaws(streams, law_f, law_g, problem.constraints)
    return channel if problem.delay is None else Delayed(channel, problem.delay, streams, 1 + problem.constraints)
