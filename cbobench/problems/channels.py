"""Feedback channels: additive noise of several laws, rows of a table, full information, delays.

Also the wrapper of functions that move (`Phased`), and the parameters that additive noise has in
common.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from cbobench.gp.box_actions import Box
from cbobench.gp.kernels import Array, Indices, Mask
from cbobench.params import param
from cbobench.problems.base import (
    Ability,
    Actions,
    Arrivals,
    Channel,
    Drawn,
    Feedback,
    Instances,
    Problem,
    Shown,
)
from cbobench.problems.instances import Settle
from cbobench.rng import Draws, Sampler, Streams, standard_normal, uniform

Law = Literal["gaussian", "uniform", "student-t", "pareto"]
DELAY = "mean of independent Poisson delays of f and each g; null: told at once"


def noise_on(deviation: float, what: str) -> Any:
    """A parameter: the noise on something."""
    return param(deviation, f"standard deviation of the noise on {what}", at_least=0.0)


def lengthscale_of(default: float) -> Any:
    """The parameter `lengthscale`, on coordinates in the unit cube."""
    return param(default, "its lengthscale, in units of the sides", at_least=1e-4, at_most=1e4)


def noise_law(law: Law, tail: float) -> Sampler:
    """Draws with mean 0 and variance 1.

    Args:
        tail: degrees of freedom of `student-t`, exponent of `pareto`; above 2. Neither law is
            sub-Gaussian.
    """
    # NumPy's Pareto draws are those of Lomax, which begin at 0.
    mean = 1 / (tail - 1)
    deviation = np.sqrt(tail / (tail - 2)) / (tail - 1)
    # Student's t has the variance tail / (tail - 2).
    laws: dict[Law, Sampler] = {
        "gaussian": standard_normal,
        "uniform": lambda gen, shape: gen.uniform(-np.sqrt(3), np.sqrt(3), shape),
        "student-t": lambda gen, shape: gen.standard_t(tail, shape) * np.sqrt((tail - 2) / tail),
        "pareto": lambda gen, shape: (gen.pareto(tail, shape) - mean) / deviation,
    }
    return laws[law]


class TwoLaws(Draws):
    """Draws (S, 1 + m) whose first column has one law, and the others another law and streams.

    Two streams rather than one that is cut in pieces: the draws of f then stay the same whatever
    the law of g is.
    """

    def __init__(self, streams: Streams, law_f: Sampler, law_g: Sampler, m: int) -> None:
        super().__init__(streams.role("noise"), law_f, (1,))
        self.of_g = Draws(streams.role("noise of g"), law_g, (m,))

    def at(self, t: int) -> Array:
        return np.concatenate([super().at(t), self.of_g.at(t)], axis=1)


class AdditiveNoise:
    """Feedback f(x) + R_0 e_0 and g_j(x) + R_j e_j with independent e of mean 0 and variance 1.

    Args:
        instances: the noise-free functions.
        deviation: (S, 1 + m) noise standard deviations.
        draws: e of every round, (S, 1 + m).
        everywhere: whether g_t(.) = g(.) + R e, with the round's e for every action, is shown
            before acting.
    """

    def __init__(
        self, instances: Drawn, deviation: Array, draws: Draws, everywhere: Shown | None = None
    ) -> None:
        self.instances = instances
        self.deviation = deviation
        self.everywhere = everywhere
        self.draws = draws

    @property
    def shows_nothing(self) -> bool:
        """Whether `before` is None in every round."""
        # A subclass may show something of its own.
        return self.everywhere is None and type(self).before is AdditiveNoise.before

    def before(self, t: int) -> Shown | None:
        if self.everywhere is None:
            return None
        # The same draw as in `at`: g_t as shown is also what the learner then observes.
        noise = (self.draws.at(t) * self.deviation)[:, 1:, None]
        everywhere = self.everywhere
        return lambda points: everywhere(points) + noise

    def at(self, t: int, actions: Actions) -> Feedback:
        observed = self.draws.at(t) * self.deviation
        observed += self.instances.values(t, actions[None])[0]
        return Feedback(observed[:, 0], observed[:, 1:])


class PairedRows(Channel):
    """Feedback (f, g) from a row drawn at random each round; one row per replicate, whatever is
    played.
    """

    def __init__(self, rows: Array, streams: Streams) -> None:
        self.rows = rows
        self.draws = Draws(streams.role("rows"), uniform)

    def at(self, t: int, actions: Indices) -> Feedback:
        row = (self.draws.at(t) * len(self.rows)).astype(np.intp)
        return Feedback(self.rows[row, 0, actions], self.rows[row, 1, actions][:, None])


class Delayed:
    """Any channel, with feedback that arrives later: f and each g_j after delays of their own,
    Poisson distributed.

    An observation of round s with delay d arrives in round s + d.
    """

    def __init__(self, inner: Channel, mean: float, streams: Streams, functions: int) -> None:
        def poisson(gen: np.random.Generator, shape: tuple[int, ...]) -> Array:
            return gen.poisson(mean, shape).astype(float)

        self.inner = inner
        self.draws = Draws(streams.role("delays"), poisson, (functions,))
        self.waiting: dict[int, list[tuple[int, int, int, float]]] = {}

    @property
    def failed(self) -> Indices | None:
        """Evaluations that failed so far, (S,); None if none can."""
        return getattr(self.inner, "failed", None)

    def before(self, t: int) -> Shown | None:
        return self.inner.before(t)

    def at(self, t: int, actions: Actions) -> Feedback:
        feedback = self.inner.at(t, actions)
        observed = feedback.values
        due = t + self.draws.at(t).astype(np.intp)
        # An f that is missing (see `Feedback`) never arrives.
        is_told = ~(np.isnan(observed) & feedback.lacks_f)
        for s, function in np.argwhere(is_told).tolist():
            arrival = s, t, function, float(observed[s, function])
            self.waiting.setdefault(int(due[s, function]), []).append(arrival)
        # Readers rely on the order of `Arrivals`.
        arrived = np.array(sorted(self.waiting.pop(t, [])), dtype=float).reshape(-1, 4)
        replicate, rounds, functions = arrived[:, :3].T.astype(np.intp)
        unknown = np.full_like(observed, np.nan)
        arrivals = Arrivals(
            replicate=replicate, round=rounds, function=functions, value=arrived[:, 3]
        )
        return replace(feedback, f=unknown[:, 0], g=unknown[:, 1:], arrivals=arrivals)


def skip_failed(t: int, values: Array, good: Mask) -> Feedback:
    """Feedback of round t on the evaluations that succeeded; nothing is told of the others.

    Args:
        values: f and every g_j of all replicates, (S, 1 + m).
        good: whether the evaluation succeeded, (S,).
    """
    unknown = np.full_like(values, np.nan)
    # nonzero goes row by row, which is the order of `Arrivals`.
    s, functions = np.nonzero(np.broadcast_to(good[:, None], values.shape))
    arrivals = Arrivals(
        replicate=s,
        round=np.full(len(s), t, dtype=np.intp),
        function=functions,
        value=values[s, functions],
    )
    return Feedback(unknown[:, 0], unknown[:, 1:], arrivals)


def add_delays(channel: Channel, mean: float | None, streams: Streams, functions: int) -> Channel:
    """The channel, with delays of that mean unless it is None."""
    if mean is None:
        return channel
    return Delayed(channel, mean, streams, functions)


class UnderWay:
    """Feedback of q concurrent evaluations of equal duration.

    Before round t is chosen, rounds up to t - q are known; in batches, all that were over before
    round t's batch began.

    Args:
        points: q.
        batch: whether the answers of q rounds come together, after the last one.
    """

    def __init__(self, points: int, batch: bool) -> None:
        self.points = points
        self.batch = batch
        self.waiting: list[tuple[int, Array]] = []

    def after(self, t: int, feedback: Feedback) -> Feedback:
        """Feedback that the learner gets after round t."""
        self.waiting.append((t, feedback.values))
        # Nothing is over before all q are under way; then the oldest is, or the whole batch.
        count = 0
        if len(self.waiting) == self.points:
            count = self.points if self.batch else 1
        answers = self.waiting[:count]
        self.waiting = self.waiting[count:]

        # By replicate first, then round and function: the order of `Arrivals`.
        replicates, m = feedback.g.shape
        s, k, functions = (index.ravel() for index in np.indices((replicates, count, 1 + m)))
        rounds = np.array([played_round for played_round, _ in answers], dtype=np.intp)
        values = np.array([values for _, values in answers]).reshape(count, replicates, 1 + m)
        arrivals = Arrivals(
            replicate=s, round=rounds[k], function=functions, value=values.swapaxes(0, 1).ravel()
        )
        return Feedback(
            np.full_like(feedback.f, np.nan), np.full_like(feedback.g, np.nan), arrivals
        )


@dataclass(kw_only=True)
class FeedbackModel(Problem):
    """Base of problems with additive noise: a law, full information, and delays, as parameters."""

    law: Law = param("gaussian", "law of the noise, scaled to its standard deviation R")
    tail: float = param(
        3.0, "degrees of freedom (student-t) or exponent (pareto) of the law", above=2.0
    )
    full_information: bool = param(False, "show g_t(.) = g(.) + the round's noise before acting")
    delay: float | None = param(None, DELAY, above=0, at_most=1e9)

    def offers(self) -> frozenset[Ability]:
        abilities = set(super().offers())
        if self.full_information:
            abilities.add("full information of the constraints")
        if self.delay is not None:
            abilities.discard("feedback at once")
        return frozenset(abilities)

    def everywhere(self, instances: Drawn) -> Shown:
        """Noise-free constraints at all actions (S, m, n), or at points (S, k, d) of a box."""
        if isinstance(instances, Instances):
            g = instances.g
            return lambda points: g
        replicates = len(instances.noise)
        box = self.actions
        assert isinstance(box, Box)

        def at(points: Array | None) -> Array:
            # All actions of a box are the points at which methods first look.
            if points is None:
                points = np.tile(box.candidates, (replicates, 1, 1))
            values = instances.values(1, box.scale(points).swapaxes(0, 1))
            return values[..., 1:].transpose(1, 2, 0)

        return at

    def feedback(self, instances: Drawn, streams: Streams) -> Channel:
        everywhere = self.everywhere(instances) if self.full_information else None
        return self.delayed(
            AdditiveNoise(instances, instances.noise, self.noise_draws(streams), everywhere),
            streams,
        )

    def noise_draws(self, streams: Streams) -> Draws:
        """Noise of mean 0 and variance 1 for f and every g_j, (S, 1 + m)."""
        return Draws(streams.role("noise"), noise_law(self.law, self.tail), (1 + self.constraints,))

    def delayed(self, channel: Channel, streams: Streams) -> Channel:
        """The channel, with this problem's delays if it has any."""
        return add_delays(channel, self.delay, streams, 1 + self.constraints)


class Phased(Drawn):
    """Functions that move at known rounds: a schedule of draws, each with its own optimum (see
    `Drawn`).

    Args:
        schedule: (first round, what holds from there on), from round 1 on.
        moves: norms (S, 1 + m) of the difference at every change.
    """

    def __init__(self, schedule: Sequence[tuple[int, Drawn]], moves: Sequence[Array]) -> None:
        self.schedule = list(schedule)
        self.moves = list(moves)
        parts = [part for _, part in schedule]
        # What a method is told of them must hold in every phase.
        self.norm = np.max([part.norm for part in parts], axis=0)
        self.sup = np.max([part.sup for part in parts], axis=0)
        self.slater = np.min([part.slater for part in parts], axis=0)
        # These are the problem's own, the same in all phases.
        self.noise = parts[0].noise
        self.redraws = parts[0].redraws
        self.seed_set = None  # a safe action may become unsafe in a later phase
        self.accuracy = max(part.accuracy for part in parts)
        self.exact = all(part.exact for part in parts)
        self.units = parts[0].units
        binds = [part.binds for part in parts if part.binds is not None]
        # Where one phase is not known, that the others do not bind says nothing.
        self.binds = None
        if len(binds) == len(parts):
            self.binds = np.any(binds, axis=0)

    def _segments(self, first: int, rounds: int) -> list[tuple[int, int, Drawn]]:
        """(from, to, part) in rounds counted from `first`, for the rounds first, ..., first +
        rounds - 1.
        """
        edges = [start for start, _ in self.schedule] + [first + rounds]
        segments = []
        for (start, part), end in zip(self.schedule, edges[1:], strict=True):
            low = max(start, first)
            high = min(end, first + rounds)
            # A phase that lies outside these rounds has no segment.
            if low < high:
                segments.append((low - first, high - first, part))
        return segments

    def values(self, first: int, actions: Actions) -> Array:
        parts = [
            part.values(first + a, actions[a:b])
            for a, b, part in self._segments(first, len(actions))
        ]
        return np.concatenate(parts)

    def stars(self, first: int, rounds: int) -> tuple[Array, Array]:
        parts = [part.stars(first + a, b - a) for a, b, part in self._segments(first, rounds)]
        return np.concatenate([f for f, _ in parts]), np.concatenate([plus for _, plus in parts])

    def best(self, t: int) -> Actions:
        return self._segments(t, 1)[0][2].best(t)

    def changes(self) -> tuple[tuple[int, Array], ...]:
        return tuple(
            (start - 1, move)
            for (start, _), move in zip(self.schedule[1:], self.moves, strict=True)
        )

    def settled(self, settle: Settle) -> Phased:
        return Phased([(start, part.settled(settle)) for start, part in self.schedule], self.moves)
