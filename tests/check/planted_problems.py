"""Problems with one fault each, and a twin without it, for tests of what finds faults."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace

import numpy as np

from cbobench.problems.base import Feedback
from cbobench.problems.formulas.box import BoxProblem, Reference
from cbobench.problems.formulas.literature import gramacy as Gramacy


@dataclass(kw_only=True)
class Disc(BoxProblem):
    """f = x_1 + x_2 in the disc of radius 1 around 0."""

    source = "ours"
    about = "a linear function on a disc"

    low = (-2.0, -2.0)
    high = (2.0, 2.0)
    reference = Reference((0.5**0.5, 0.5**0.5), 2**0.5, 1.0, 0.19635, 1e-9, "closed form")
    feasibility_tolerance = 1e-12

    def formula(self, x):
        return np.stack([x[..., 0] + x[..., 1], x[..., 0] ** 2 + x[..., 1] ** 2 - 1.0], axis=-1)


class Beaten(Disc):
    """Draws with an optimum that is none."""

    def draw(self, generators):
        return replace(super().draw(generators), point=np.array([0.5, 0.5]), f_star=1.0)


class Misstated(Disc):
    """Draws with another reward than its optimum has."""

    def draw(self, generators):
        return replace(super().draw(generators), f_star=2.0)


class Unreachable(Disc):
    """Draws with an optimum outside the disc."""

    def draw(self, generators):
        return replace(super().draw(generators), point=np.array([1.0, 1.0]), f_star=2.0)


class QuitsIn(Disc):
    """Ends Python in its formula."""

    def formula(self, x):
        sys.exit(0)


class Infeasible(Disc):
    """States an optimum outside the disc."""

    reference = Reference((1.0, 1.0), 2.0, 1.0, 0.19635, 1e-9, "guessed")


@dataclass(kw_only=True)
class Unstated(BoxProblem):
    """Says no optimum."""

    source, about = "ours", "a line on a square"
    low, high, m = (0.0, 0.0), (1.0, 1.0), 1

    def formula(self, x):
        return np.stack([x[..., 0], x[..., 0] + x[..., 1] - 1.0], axis=-1)


class Mistaken(Disc):
    """States a margin that is half of what it is."""

    reference = replace(Disc.reference, slater=0.5)


class Local(Gramacy):
    """States the best point of another valley of the feasible set."""

    reference = replace(Gramacy.reference, x=(0.0, 0.75), f=-0.75)


class FirstAxis(Disc):
    """Takes points along the first axis."""

    def formula(self, x):
        return np.stack([x[0] + x[1], x[0] ** 2 + x[1] ** 2 - 1.0], axis=-1)


class Unseeded(Disc):
    """A simulator with a generator of its own."""

    def feedback(self, instances, streams):
        return Noisy(super().feedback(instances, streams), np.random.default_rng())


class Together(Disc):
    """A simulator with one generator for all seeds."""

    def feedback(self, instances, streams):
        return Noisy(super().feedback(instances, streams), streams.role("mine")[0])


class Noisy:
    """Adds noise to what another channel tells."""

    def __init__(self, inner, generator):
        self.inner, self.generator = inner, generator

    def before(self, t):
        return self.inner.before(t)

    def at(self, t, actions):
        feedback = self.inner.at(t, actions)
        return Feedback(feedback.f + self.generator.normal(size=feedback.f.shape), feedback.g)
