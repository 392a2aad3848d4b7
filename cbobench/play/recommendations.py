"""Recommendations of S cells, and their incumbents by what was observed.

Where a problem says that its feedback is exact (`Drawn.noiseless`) and its functions stay as they
are, every method recommends the best feasible action that it has measured, whatever it answers
itself. Until one is measured, and wherever there is noise, the method's own answer counts. With a
model of f and every g_j that is the point that `cbobench.gp.recommend` takes by posterior means and
deviations, given all that was observed, also by what a method has forgotten since. Without one it
is the incumbent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

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

    It is the action with the largest observed f among those observed to be feasible. Before there
    is one, it is the action with the least observed total violation. Of equals the first wins. An
    action counts once f and every g_j of one of its plays are observed.

    Args:
        replicates, functions: S, 1 + m.
        no_action: the placeholder for no action: `NONE`, or a point (d,) of NaN.
        settle: of constraint values (see `Problem.settle`).

    Attributes:
        feasible: whether the incumbents that were returned last were observed to be feasible,
            (rounds, S).
    """

    def __init__(
        self,
        replicates: int,
        functions: int,
        no_action: Actions,
        settle: Callable[[Array], Array] = np.asarray,
    ) -> None:
        # best f among feasible actions; minus the least violation
        self.best = np.full((2, replicates), -np.inf)
        self.actions = np.stack([np.stack([no_action] * replicates)] * 2)
        self.functions = functions
        self.settle = settle
        self.feasible = np.zeros((0, replicates), dtype=bool)
        self.played: list[Actions] = []
        self.waiting: dict[tuple[int, int], Array] = {}

    def after(
        self, actions: Actions, f: Array, g: Array, arrivals: Sequence[Arrivals | None]
    ) -> Actions:
        """Return the incumbents after each of the next rounds, (rounds, S[, d]).

        Args:
            actions, f, g: played and observed, (rounds, S[, d]), (rounds, S), (rounds, S, m).
            arrivals: of every round, if feedback is delayed.
        """
        if arrivals[0] is not None:
            return self._after_arrivals(actions, arrivals)
        violation = np.maximum(self.settle(g), 0.0).sum(axis=2)
        by_criterion = []
        # Both criteria are followed from the first round on: a feasible action changes which
        # counts.
        for criterion, key in enumerate((np.where(violation > 0, -np.inf, f), -violation)):
            highest = np.maximum.accumulate(np.concatenate([self.best[criterion][None], key]))
            better = np.where(key > highest[:-1], np.arange(1, len(key) + 1)[:, None], 0)
            # the round of the incumbent, 0 if it is of an earlier chunk
            latest = np.maximum.accumulate(better)
            every = np.concatenate([self.actions[criterion][None], actions])
            by_criterion.append(every[latest, np.arange(len(f[0]))])
            self.best[criterion] = highest[-1]
            self.actions[criterion] = by_criterion[-1][-1]
            if criterion == 0:
                self.feasible = highest[1:] > -np.inf
        return _choose(self.feasible, *by_criterion)

    def _after_arrivals(self, actions: Actions, arrivals: Sequence[Arrivals | None]) -> Actions:
        incumbents = np.empty_like(actions)
        self.feasible = np.zeros(actions.shape[:2], dtype=bool)
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
                # Values come in any order: a play waits until all of its own are there.
                observed = self.waiting.setdefault((s, when), np.full(self.functions, np.nan))
                observed[function] = value
                if not np.isnan(observed).any():
                    self._count_play(s, self.played[when - 1][s], self.waiting.pop((s, when)))
            self.feasible[i] = self.best[0] > -np.inf
            incumbents[i] = _choose(self.feasible[i], *self.actions)
        return incumbents

    def _count_play(self, s: int, action: Actions, values: Array) -> None:
        violation = np.maximum(self.settle(values[1:]), 0.0).sum()
        reward = -np.inf if violation > 0 else values[0]
        for criterion, key in enumerate((reward, -violation)):
            if key > self.best[criterion, s]:
                self.best[criterion, s] = key
                self.actions[criterion, s] = action


def _choose(mask: NDArray[np.bool_], actions: Actions, alternatives: Actions) -> Actions:
    """Return actions (..., S[, d]) where the mask (..., S) is true, and alternatives elsewhere."""
    if mask.ndim < actions.ndim:
        mask = mask[..., None]
    return np.where(mask, actions, alternatives)


class Recommendations:
    """Noise-free values of the recommendations of S cells after some rounds.

    Args:
        allowed: the action set.
        instances: the drawn instances.
        rounds: after which the algorithm is asked, from 1 on; only the last one counts where the
            instances say so (`Drawn.ends_only`), because a point that is recommended would be
            simulated. The last one is the horizon.
        settle: of constraint values (see `Problem.settle`).

    Attributes:
        exact: the cells that recommend the best feasible action measured, once there is one, (S,).
        last: the latest recommendations, (S[, d]), and their noise-free (f, g_1, ..., g_m), (S, 1 +
            m).
    """

    def __init__(
        self,
        allowed: Finite | Box,
        instances: Drawn,
        rounds: set[int],
        settle: Callable[[Array], Array],
    ) -> None:
        self.allowed = allowed
        self.instances = instances
        self.rounds = {max(rounds)} if instances.ends_only else rounds
        no_action: Actions = (
            np.array(NONE) if isinstance(allowed, Finite) else np.full(allowed.d, np.nan)
        )
        replicates, functions = instances.noise.shape
        self.incumbents = Incumbents(replicates, functions, no_action, settle)
        # Where functions move, what was measured before is not what the action is worth now.
        is_moving = any(t < max(rounds) for t, _ in instances.changes())
        self.exact = instances.noiseless & (not is_moving)
        self.modelled: bool | None = None
        self.last: tuple[Actions, Array] | None = None

    def values(
        self,
        first: int,
        answers_by_position: dict[int, Actions | None],
        observations: tuple[Actions, Array, Array],
        arrivals: Sequence[Arrivals | None],
    ) -> Array:
        """Return noise-free (f, g_1, ..., g_m) of the recommendations, (rounds, S, 1 + m); NaN
        without one.

        Args:
            first: the first of the rounds, counted from 1.
            answers_by_position: the algorithm's answers by position; None for the incumbent by
                observed values.
            observations: actions, observed f and observed g of all rounds.
            arrivals: of every round.

        Raises:
            CellFailure: an answer is no action, or None in some rounds only.
        """
        actions, f, g = observations
        noise_free = np.full((*f.shape, 1 + g.shape[2]), np.nan)
        # Whether a method has a model decides whose answers count, so that it must not change.
        if answers_by_position:
            models = {answer is not None for answer in answers_by_position.values()} | {
                self.modelled
            } - {None}
            if len(models) > 1:
                raise CellFailure(
                    "recommend gave None in some rounds and actions in others; it must keep to one"
                )
            self.modelled = models.pop()

        # Of every chunk, asked or not: a later recommendation needs what was observed by then.
        if self.modelled is not True or self.exact.any():
            incumbents = self.incumbents.after(actions, f, g, arrivals)
        if not answers_by_position:
            return noise_free

        # Where feedback is exact, what was measured is better known than what a model answers.
        positions = np.array([*answers_by_position])
        if self.modelled:
            answers = self._check_answers(first, answers_by_position, actions.shape[1:])
            if self.exact.any():
                answers = _choose(
                    self.exact & self.incumbents.feasible[positions], incumbents[positions], answers
                )
        else:
            answers = incumbents[positions]
        noise_free[positions] = self._noiseless(first, positions, answers)

        # What is recommended in the end may be worth simulations that what was played is not.
        if first + positions[-1] == max(self.rounds):
            remeasured = self.instances.measure_again(answers[-1])
            if remeasured is not None:
                noise_free[positions[-1]] = remeasured
        self.last = answers[-1], noise_free[positions[-1]]
        return noise_free

    def _check_answers(
        self, first: int, answers_by_position: dict[int, Actions | None], shape: tuple[int, ...]
    ) -> Actions:
        """Return the algorithm's answers, (k, S[, d]), none of them None. Raises `CellFailure` if
        one is no action.
        """
        answers = [np.asarray(answer) for answer in answers_by_position.values()]
        wrong = [answer.shape for answer in answers if answer.shape != shape]
        if wrong:
            raise CellFailure(f"the actions recommended have shape {wrong[0]}; it must be {shape}")
        stacked = np.stack(answers)
        if isinstance(self.allowed, Box):
            inside = ((stacked >= self.allowed.low) & (stacked <= self.allowed.high)).all(axis=2)
        else:
            inside = (stacked >= 0) & (stacked < self.allowed.n)
        wrong_positions = np.argwhere(~self._is_none(stacked) & ~inside)
        if len(wrong_positions):
            i, s = wrong_positions[0]
            t = first + [*answers_by_position][i]
            raise CellFailure(
                f"round {t}: {stacked[i, s]}, recommended for replicate {s}, is no action"
            )
        return stacked

    def _is_none(self, answers: Actions) -> NDArray[np.bool_]:
        """Return which answers (k, S[, d]) are no recommendation, (k, S)."""
        if isinstance(self.allowed, Box):
            return np.asarray(np.isnan(answers).all(axis=2))
        return np.asarray(answers == NONE)

    def _noiseless(self, first: int, positions: NDArray[np.intp], answers: Actions) -> Array:
        """Return values (k, S, 1 + m) of answers (k, S[, d]) to rounds first + positions."""
        none = self._is_none(answers)
        # Functions need an action where none is recommended; its values are not kept.
        placeholder: Actions = self.allowed.low if isinstance(self.allowed, Box) else np.array(0)
        actions = _choose(none, np.broadcast_to(placeholder, answers.shape), answers)
        # Where functions move, an answer is worth what it is in its own round.
        if self.instances.changes():
            by_round = [
                self.instances.values(first + i, actions[k][None])
                for k, i in enumerate(positions.tolist())
            ]
            values = np.concatenate(by_round)
        else:
            values = self.instances.values(first, actions)
        return np.where(none[..., None], np.nan, values)
