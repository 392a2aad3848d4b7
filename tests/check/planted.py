"""Algorithms with one fault each, and twins without it, for tests of what finds faults."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace

import numpy as np

from cbobench.algorithms.asktell import AskTell
from cbobench.algorithms.base import OneRun
from cbobench.algorithms.optimistic import Optimistic
from cbobench.algorithms.references import Random
from cbobench.gp.beliefs import Parts
from cbobench.params import param
from cbobench.problems.formulas.literature import gramacy as Gramacy
from cbobench.rng import generator
from tests.helpers import problem


class Line:
    """Searches around the best point so far."""

    def __init__(self, facts):
        self.given, self.best, self.f = facts, (facts.low + facts.high) / 2, -np.inf

    def ask(self):
        step = (
            0.2
            * (self.given.high - self.given.low)
            * self.given.generator.standard_normal(self.given.d)
        )
        return np.clip(self.best + step, self.given.low, self.given.high)

    def tell(self, x, f, g):
        if (g <= 0).all() and f > self.f:
            self.best, self.f = x, f


@dataclass(kw_only=True)
class Sound(AskTell):
    """Has no fault."""

    source = "ours"
    about = "local random search"

    def optimiser(self, facts):
        return Line(facts)


def made_of(kind):
    """An algorithm whose optimiser is of another class."""

    @dataclass(kw_only=True)
    class Made(Sound):
        """Has the fault of its optimiser."""

        def optimiser(self, facts):
            return kind(facts)

    return Made


class GlobalLine(Line):
    def ask(self):
        step = 0.2 * (self.given.high - self.given.low) * np.random.standard_normal(self.given.d)  # noqa: NPY002
        return np.clip(self.best + step, self.given.low, self.given.high)


class EntropyLine(Line):
    def __init__(self, facts):
        super().__init__(facts)
        self.own = np.random.default_rng()

    def ask(self):
        return self.own.uniform(self.given.low, self.given.high)


class OutsideLine(Line):
    def ask(self):
        return super().ask() + 0.6 * (self.given.high - self.given.low)


GlobalRandomness, Entropy = made_of(GlobalLine), made_of(EntropyLine)
Outside = made_of(OutsideLine)


@dataclass(kw_only=True)
class Leaking(OneRun):
    """Goes on where the last play of the process ended."""

    source = "ours"
    about = "plays one point of a sequence after the other"

    played = {"rounds": 0}  # noqa: RUF012

    def start_one(self, setting):
        self.n = setting.actions.d

    def ask_one(self, t):
        self.played["rounds"] += 1
        fraction, actions = (0.618 * self.played["rounds"]) % 1.0, self.setting.actions
        return (
            int(fraction * actions.n)
            if self.n == 0 or hasattr(actions, "n")
            else actions.scale(np.full(self.n, fraction))
        )


class Beside(Random):
    """Draws from the stream of the block's first replicate for all."""

    def start(self, setting):
        super().start(
            replace(
                setting,
                streams=type(setting.streams)([setting.streams.scopes[0]] * setting.replicates),
            )
        )
        self.setting = setting


class Quits(Random):
    """Ends Python in its second round."""

    def ask(self, t):
        return super().ask(t) if t == 1 else sys.exit(0)


class Spread(Random):
    """Gives one action for all replicates."""

    def ask(self, t):
        return super().ask(t)[:1]


class Redrawing(Random):
    """Draws the functions of the problem itself, and plays the best action."""

    def start(self, setting):
        super().start(setting)
        seeds = [generator("instance", seed) for seed in range(setting.replicates)]
        self.best = problem("rkhs", d=2, n=36, m=2).draw(seeds).f.argmax(axis=1)

    def ask(self, t):
        return self.best if getattr(self.setting.actions, "n", 0) == 36 else super().ask(t)


class Formula(Random):
    """Knows what it plays on, and asks for the optimum."""

    def ask(self, t):
        x, actions = super().ask(t), self.setting.actions
        better = (
            x
            if hasattr(actions, "n")
            else actions.scale(np.random.default_rng(t).random((32, *x.shape)))
        )
        if hasattr(actions, "n") or list(actions.high) != list(Gramacy.high):
            return x
        values = Gramacy().formula(better)
        return better[
            np.where(values[..., 1:].max(axis=-1) <= 0, values[..., 0], -9.0).argmax(axis=0),
            range(len(x)),
        ]


class Looking(Random):
    """Calls itself a reference."""

    reference = True

    def look(self, instances):
        self.instances = instances

    def ask(self, t):
        return self.instances.best(t)


@dataclass(kw_only=True)
class InParts(Optimistic):
    """A penalty on the violation."""

    source = "ours"
    about = "exact penalty"

    price: float = param(1.0, "penalty on the violation", at_least=0.0)

    def parts(self, belief):
        g = self.explore_g(belief.constraint)
        return Parts(self.explore_f(belief.f), g, np.full(g.shape[:2], self.price))


class Undecorated(InParts):
    """A parameter that nothing reads, as only a base is a dataclass."""

    extra: float = param(1.0, "more")


class Averaging(InParts):
    """Its price follows the mean of all replicates, long before an action shows it."""

    needs = frozenset({"feedback at once"})

    def prepare(self):
        self.prices = np.zeros((self.setting.replicates, self.setting.constraints))

    def learn(self, t, chosen, feedback):
        self.prices = self.prices + feedback.g.mean(axis=0)


@dataclass(kw_only=True)
class OneForAll(InParts):
    """Says that its slack may vary within a block, and uses the largest one for all replicates."""

    slack: float = param(1.0, "slack of g", above=0.0, varies=True)

    def parts(self, belief):
        f, g, price = super().parts(belief)
        return Parts(f, g + np.max(self.slack), price)


class Flat(InParts):
    """Sums over the wrong axis."""

    def parts(self, belief):
        f, g, price = super().parts(belief)
        return Parts(f.sum(axis=0)[None], g[:1], price[:1])


class Drawing(Random):
    """Recommends at random, from the generators that it plays by."""

    def start(self, setting):
        super().start(setting)
        self.own = setting.streams.role("own")

    def ask(self, t):
        drawn = np.array([generator.random() for generator in self.own])
        actions = self.setting.actions
        if hasattr(actions, "n"):
            return (drawn * actions.n).astype(int)
        return actions.scale(np.repeat(drawn[:, None], actions.d, axis=1))

    def recommend(self, t):
        return self.ask(t)


class Overwriting(Random):
    """Works in the arrays that it is told."""

    def tell(self, t, chosen, feedback):
        super().tell(t, chosen, feedback)
        feedback.g[:] = np.maximum(feedback.g, 1.0)
