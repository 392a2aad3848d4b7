"""The events of the theory, round by round: whether the bounds in use hold, and whether estimates are optimistic.

Zhou & Ji (2022), Section 3.2, with c^(1) = β: E^est (bounds hold at all actions), E^conc_t (estimates are near the
means) and E^anti_t (estimates of the best policy are optimistic). Rounds are evaluated in batches: one by one they
would take as long as the play itself.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from cbobench.algorithms.optimistic import OptimisticReward
from cbobench.gp.beliefs import UCB, Belief, FunctionBelief
from cbobench.gp.kernels import Array
from cbobench.papers.program import Program

BATCH = 2**17  # means that a batch may hold
ROUNDING = 1e-12


class Events:
    """Watches the beliefs of S replicates at n actions.

    Args:
        algorithm: started, with a width for each of its p functions.
        truth: f, g_1, ..., (S, p, n), noise-free, at the actions (or candidates) of its beliefs.
        program: the best policy; None if no action is feasible.
        star: the best feasible action, (S,); None if there is none.
        lagrangian: whether the score is f̄ - φ·ḡ with clipped estimates; otherwise each function is checked alone.
        marks: rounds of the curves; the last one is the horizon.

    Attributes:
        rounds: number of evaluated rounds.
        held: number of rounds in which the bound of each function held, (S, p).
        all_held: number of rounds in which all bounds held, (S,).
        needed: the largest |h - μ|/(βσ), (S, p).
        optimistic, concentrated, anti: number of rounds with these events, (S,).
        missed: Σ_t p_{2,t}.
        spread: Σ_t β_t σ(x_t), (S, p).
        curve: `spread` after the rounds `marks`.
        width: β of the last round, (S, p).
    """

    def __init__(
        self,
        algorithm: OptimisticReward,
        truth: Array,
        program: Program | None,
        star: NDArray[np.intp] | None,
        lagrangian: bool,
        marks: NDArray[np.int64],
    ) -> None:
        self.algorithm, self.truth, self.program = algorithm, truth, program
        self.lagrangian = lagrangian
        replicates, p, n = truth.shape
        # With a common variance, the array lacks the axis of the functions.
        self.separate_deviations = p > 1 and algorithm.posterior.variance.ndim == 3
        # Rounds are gathered and evaluated together, as many as memory allows: few large steps cost less than many.
        depth = max(1, min(int(marks[-1]), BATCH // truth.size))
        self.mean, self.wrong = np.empty((2, depth, *truth.shape))
        self.deviation = np.empty((depth, replicates, p if self.separate_deviations else 1, n))
        self.path = np.empty(self.mean.shape) if algorithm.joint else None
        self.widths, self.multiple = np.empty((2, depth, replicates, p))
        fixed = [explore.multiple for explore in algorithm.explorations if isinstance(explore, UCB)]
        self.fixed = len(fixed) == len(algorithm.explorations)
        if self.fixed:
            self.multiple[:] = [fixed[0], *fixed[1:] * (p - 1)]
        self.dual = np.zeros((depth, replicates, p - 1))
        self.chosen = np.empty((depth, replicates), dtype=np.intp)
        self.at_chosen = np.empty((depth, replicates, self.deviation.shape[2]))
        self.t: list[int] = []
        self.points: NDArray[np.intp] | None = None
        if program is not None and star is not None:
            self.points = np.concatenate([program.actions, star[:, None]], axis=1)[:, None]
        self.rounds, self.missed = 0, 0.0
        self.held, self.needed, self.spread = (np.zeros((replicates, p)) for _ in range(3))
        self.all_held, self.optimistic, self.concentrated, self.anti = np.zeros((4, replicates))
        self.marks = marks
        self.curve = np.zeros((len(self.marks), replicates, p))
        self.width = np.ones((replicates, p))

    def observe(self, t: int) -> None:
        """Record round t: its actions are chosen, the algorithm has no feedback yet."""
        a, i = self.algorithm, len(self.t)
        self.mean[i] = a.posterior.mean
        self.deviation[i] = np.sqrt(a.posterior.variance) if self.separate_deviations else a.belief.f.deviation[:, None]
        self.widths[i] = a.widths
        if self.path is not None:
            for function, function_slice in self.functions(a.belief):
                self.path[i, :, function_slice] = function.path
        elif not self.fixed:
            for explore, (_, function_slice) in zip(a.explorations, self.functions(a.belief), strict=True):
                self.multiple[i, :, function_slice] = explore.multiple
        if self.lagrangian:
            self.dual[i] = a.duals
        if a.box is None:
            self.chosen[i] = a.chosen
        else:
            variance = a.posterior.at(a.chosen[:, None])[1][..., 0]
            self.at_chosen[i] = np.sqrt(variance.reshape(self.at_chosen[i].shape))
        self.t.append(t)
        if len(self.t) == len(self.mean):
            self.flush()

    def functions(self, belief: Belief) -> Iterator[tuple[FunctionBelief, int | slice]]:
        """Beliefs of f and of g with their indices."""
        yield belief.f, 0
        if self.truth.shape[1] > 1:
            yield belief.constraint, slice(1, None)

    def flush(self) -> None:
        """Evaluate the recorded rounds."""
        k = len(self.t)
        if k == 0:
            return
        mean, width, deviation = self.mean[:k], self.widths[:k], self.deviation[:k]
        wrong = np.subtract(self.truth, mean, out=self.wrong[:k])
        np.abs(wrong, out=wrong)
        wrong /= deviation
        ratio = wrong.max(axis=3)
        held = ratio <= width
        self.held += held.sum(axis=0)
        self.all_held += held.all(axis=2).sum(axis=0)
        unit = np.divide(ratio, width, out=np.full_like(ratio, np.inf), where=width > 0)
        self.needed = np.maximum(self.needed, unit.max(axis=0))
        self._concentration(k)
        if self.points is not None:
            self._optimism(self.points)
        if self.algorithm.box is None:
            rows, which = np.arange(self.chosen.shape[1])[:, None], np.arange(deviation.shape[2])
            self.at_chosen[:k] = deviation[np.arange(k)[:, None, None], rows, which, self.chosen[:k, :, None]]
        spread = np.concatenate([self.spread[None], width * self.at_chosen[:k]]).cumsum(axis=0)[1:]
        for place in np.flatnonzero((self.marks >= self.t[0]) & (self.marks <= self.t[-1])).tolist():
            self.curve[place] = spread[self.marks[place] - self.t[0]]
        self.spread, self.width = spread[-1], width[-1].copy()
        self.rounds += k
        self.t.clear()

    def _concentration(self, k: int) -> None:
        """E^conc: |estimate - mean| <= c^(2) σ at all actions."""
        explorations, p, n = self.algorithm.explorations, *self.truth.shape[1:]
        if self.path is None:
            distance = np.abs(self.multiple[:k])
        else:
            scaled = np.abs(self.path[:k], out=self.wrong[:k])
            scaled /= self.deviation[:k]
            distance = scaled.max(axis=3)
        is_near = np.ones(distance.shape[:2], dtype=bool)
        for explore, function_slice, count in zip(
            explorations, (slice(0, 1), slice(1, None)), (1, p - 1), strict=False
        ):
            allowed = np.array([explore.concentration(t, n) for t in self.t])
            is_near &= (distance[:, :, function_slice] <= allowed[:, None, None] * (1 + ROUNDING)).all(axis=2)
            self.missed += sum(min(1.0, count * explore.misses(t)) for t in self.t)
        self.concentrated += is_near.sum(axis=0)

    def _optimism(self, points: NDArray[np.intp]) -> None:
        """E^anti at the best policy, and optimism at x*."""
        assert self.program is not None
        k, (replicates, p, _) = len(self.t), self.truth.shape
        rows, functions = np.arange(replicates)[:, None, None], np.arange(p)[:, None]
        shared = functions if self.separate_deviations else 0 * functions
        deviation = self.deviation[:k, rows, shared, points]  # (k, S, p, q)
        if self.path is None:
            step = self.multiple[:k, :, :, None] * deviation
        else:
            step = self.path[:k, rows, functions, points]
        sign = np.where(np.arange(p) == 0, 1.0, -1.0)
        weights = self.program.weights[:, None]
        if self.path is None:
            anti = sign * self.multiple[:k] >= 1
        else:
            anti = (weights * (sign[:, None] * step - deviation)[..., :-1]).sum(axis=3) >= 0
        self.anti += anti.all(axis=2).sum(axis=0)
        estimate = (self.mean[:k, rows, functions, points] + self.widths[:k, :, :, None] * step)[..., -1]
        true = self.truth[rows, functions, points][..., -1]
        if self.lagrangian:
            bounds = self.algorithm.bounds
            estimate = np.clip(estimate, -bounds, bounds)
            price = np.concatenate([np.ones((k, replicates, 1)), -self.dual[:k]], axis=2)
            gap = (price * (estimate - true)).sum(axis=2)
        else:
            gap = (sign * (estimate - true)).min(axis=2)
        self.optimistic += (gap >= -ROUNDING * (1 + np.abs(true).max(axis=1))).sum(axis=0)
