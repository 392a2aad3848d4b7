"""Recommendations of S cells, and incumbents for algorithms that do not model f and g."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cbobench.algorithms.base import NONE
from cbobench.errors import CellFailure
from cbobench.gp.actions import Finite
from cbobench.gp.box_actions import Box
from cbobench.gp.kernels import Array
from cbobench.problems.base import Actions, Arrivals, Drawn


class Incumbents:
    """The incumbent of S cells by observed values, round by round.

    It is the action with the largest observed f among those observed to be feasible. Before there is one, it is the
    action with the least observed total violation. Of equals the first wins. An action counts once f and every g_j of
    one of its plays are observed.

    Args:
        replicates, functions: S, 1 + m.
        no_action: the placeholder for no action: `NONE`, or a point (d,) of NaN.
    """

    def __init__(self, replicates: int, functions: int, no_action: Actions) -> None:
        self.best = np.full((2, replicates), -np.inf)  # best f among feasible actions; minus the least violation
        self.actions = np.stack([np.stack([no_action] * replicates)] * 2)
        self.functions = functions
        self.played: list[Actions] = []
        self.waiting: dict[tuple[int, int], Array] = {}

    def after(self, actions: Actions, f: Array, g: Array, arrivals: Sequence[Arrivals | None]) -> Actions:
        """Return the incumbents after each of the next rounds, (rounds, S[, d]).

        Args:
            actions, f, g: played and observed, (rounds, S[, d]), (rounds, S), (rounds, S, m).
            arrivals: of every round, if feedback is delayed.
        """
        if arrivals[0] is not None:
            return self._after_arrivals(actions, arrivals)
        violation = np.maximum(g, 0.0).sum(axis=2)
        by_criterion = []
        for criterion, key in enumerate((np.where(violation > 0, -np.inf, f), -violation)):
            highest = np.maximum.accumulate(np.concatenate([self.best[criterion][None], key]))
            better = np.where(key > highest[:-1], np.arange(1, len(key) + 1)[:, None], 0)
            latest = np.maximum.accumulate(better)  # the round of the incumbent, 0 if it is of an earlier chunk
            every = np.concatenate([self.actions[criterion][None], actions])
            by_criterion.append(every[latest, np.arange(len(f[0]))])
            self.best[criterion], self.actions[criterion] = highest[-1], by_criterion[-1][-1]
            if criterion == 0:
                feasible = highest[1:] > -np.inf
        return np.where(feasible if actions.ndim == 2 else feasible[..., None], *by_criterion)

    def _after_arrivals(self, actions: Actions, arrivals: Sequence[Arrivals | None]) -> Actions:
        incumbents = np.empty_like(actions)
        for i, arrived in enumerate(arrivals):
            self.played.append(actions[i])
            assert arrived is not None
            for s, when, function, value in zip(
                arrived.replicate.tolist(),
                arrived.round.tolist(),
                arrived.function.tolist(),
                arrived.value.tolist(),
                strict=True,
            ):
                observed = self.waiting.setdefault((s, when), np.full(self.functions, np.nan))
                observed[function] = value
                if not np.isnan(observed).any():
                    self._count_play(s, self.played[when - 1][s], self.waiting.pop((s, when)))
            feasible = self.best[0] > -np.inf
            incumbents[i] = np.where(feasible if actions.ndim == 2 else feasible[:, None], *self.actions)
        return incumbents

    def _count_play(self, s: int, action: Actions, values: Array) -> None:
        violation = np.maximum(values[1:], 0.0).sum()
        for criterion, key in enumerate((-np.inf if violation > 0 else values[0], -violation)):
            if key > self.best[criterion, s]:
                self.best[criterion, s], self.actions[criterion, s] = key, action


class Recommendations:
    """Noise-free values of the recommendations of S cells after some rounds.

    Args:
        allowed: the action set.
        instances: the drawn instances.
        rounds: after which the algorithm is asked, from 1 on; only the last one counts where the instances say so
            (`Drawn.ends_only`), because a point that is recommended would be simulated.

    Attributes:
        last: the latest recommendations, (S[, d]), and their noise-free (f, g_1, ..., g_m), (S, 1 + m).
    """

    def __init__(self, allowed: Finite | Box, instances: Drawn, rounds: set[int]) -> None:
        self.allowed = allowed
        self.instances = instances
        self.rounds = {max(rounds)} if instances.ends_only else rounds
        no_action: Actions = np.array(NONE) if isinstance(allowed, Finite) else np.full(allowed.d, np.nan)
        replicates, functions = instances.noise.shape
        self.incumbents = Incumbents(replicates, functions, no_action)
        self.modelled: bool | None = None
        self.last: tuple[Actions, Array] | None = None

    def values(
        self,
        first: int,
        answers_by_position: dict[int, Actions | None],
        observations: tuple[Actions, Array, Array],
        arrivals: Sequence[Arrivals | None],
    ) -> Array:
        """Return noise-free (f, g_1, ..., g_m) of the recommendations, (rounds, S, 1 + m); NaN without one.

        Args:
            first: the first of the rounds, counted from 1.
            answers_by_position: the algorithm's answers by position; None for the incumbent by observed values.
            observations: actions, observed f and observed g of all rounds.
            arrivals: of every round.

        Raises:
            CellFailure: an answer is no action, or None in some rounds only.
        """
        actions, f, g = observations
        noise_free = np.full((*f.shape, 1 + g.shape[2]), np.nan)
        if answers_by_position:
            models = {answer is not None for answer in answers_by_position.values()} | {self.modelled} - {None}
            if len(models) > 1:
                raise CellFailure("recommend gave None in some rounds and actions in others; it must keep to one")
            self.modelled = models.pop()
        if self.modelled is not True:
            incumbents = self.incumbents.after(actions, f, g, arrivals)
            answers_by_position = {i: incumbents[i] for i in answers_by_position}
        if answers_by_position:
            positions = np.array([*answers_by_position])
            answers = [np.asarray(answer) for answer in answers_by_position.values() if answer is not None]
            wrong = [answer.shape for answer in answers if answer.shape != actions.shape[1:]]
            if wrong:
                raise CellFailure(f"the actions recommended have shape {wrong[0]}; it must be {actions.shape[1:]}")
            noise_free[positions] = self._noiseless(first, positions, np.stack(answers))
            if (
                first + positions[-1] == max(self.rounds)
                and (remeasured := self.instances.measure_again(answers[-1])) is not None
            ):
                noise_free[positions[-1]] = remeasured
            self.last = answers[-1], noise_free[positions[-1]]
        return noise_free

    def _noiseless(self, first: int, positions: NDArray[np.intp], answers: Actions) -> Array:
        """Return values (k, S, 1 + m) of answers (k, S[, d]) to rounds first + positions."""
        if isinstance(self.allowed, Box):
            none = np.asarray(np.isnan(answers).all(axis=2))
            inside = ((answers >= self.allowed.low) & (answers <= self.allowed.high)).all(axis=2)
            placeholder: Actions = self.allowed.low
        else:
            none, inside = np.asarray(answers == NONE), (answers >= 0) & (answers < self.allowed.n)
            placeholder = np.array(0)
        if not (none | inside).all():
            i, s = np.argwhere(~none & ~inside)[0]
            raise CellFailure(
                f"round {first + positions[i]}: {answers[i, s]}, recommended for replicate {s}, is no action"
            )
        actions = np.where(none if answers.ndim == 2 else none[..., None], placeholder, answers)
        if self.instances.changes():
            by_round = [self.instances.values(first + i, actions[k][None]) for k, i in enumerate(positions.tolist())]
            values = np.concatenate(by_round)
        else:
            values = self.instances.values(first, actions)
        return np.where(none[..., None], np.nan, values)
