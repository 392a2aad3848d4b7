"""Laws of a problem. Each yields the findings that break it, none if it holds. See `report` for
their names.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from cbobench.algorithms.references import Random
from cbobench.check.trial import (
    INSTEAD,
    SEEDS,
    Broken,
    Finding,
    SharedState,
    Trial,
    difference,
    seed_global_generators,
    select_replicate,
)
from cbobench.errors import one_line, reraise_stop
from cbobench.gp.actions import Finite
from cbobench.gp.box_actions import Box
from cbobench.gp.kernels import Array
from cbobench.problems.base import Actions, Drawn, Problem
from cbobench.problems.box import BoxProblem
from cbobench.problems.optimum import check_formula, search
from cbobench.problems.simulator import Simulator
from cbobench.rng import Streams, generator

SEED_ROUNDS, SEED_PLAYS, OBSERVED, OWN_PILOTS = 338, 25, 42, 2
"""What the laws of a problem play: rounds and plays of one seed, and rounds without metrics; and
the pilots of the plays that two processes make."""
POWER = 13  # log2 of the points that a search for a better optimum samples


@dataclass(frozen=True)
class Draws:
    """A prepared problem and its class."""

    cls: type[Any]
    name: str
    problem: Problem

    def trial(self, horizon: int = 20) -> Trial:
        """A random play of it."""
        return Trial(Random, "random", self.problem, self.name, horizon)

    def draw(self, seeds: tuple[int, ...] = SEEDS) -> Drawn:
        """Return the instances of some seeds."""
        return self.problem.draw([generator("instance", self.name, seed) for seed in seeds])

    def draw_actions(self, count: int, replicates: int) -> Actions:
        """Return actions (count, S[, d]), different ones for every replicate."""
        rng = generator("check", "actions")
        actions = self.problem.actions
        if isinstance(actions, Finite):
            return rng.integers(actions.n, size=(count, replicates))
        return actions.scale(rng.random((count, replicates, actions.d)))


def count_simulations(problem: Simulator) -> tuple[int, int]:
    """Return how many simulations the laws take about, in all and after the first pilot."""
    noisy, always = problem.noisy, problem.measure == "always"
    pilot = 1 + 2 * problem.pilot_points if noisy else problem.pilot_points
    repeats = problem.repeats * noisy
    later = (
        OWN_PILOTS * pilot
        + SEED_ROUNDS * (1 + repeats * always)
        + SEED_PLAYS * repeats * (not always)
        + OBSERVED
    )
    return pilot + later, later


def states_optimum(draws: list[Draws]) -> bool:
    """Return whether a prepared problem states an optimum, which laws hold against its values."""
    try:
        return any("a known optimum" in draw.problem.offers() for draw in draws) or not draws
    except BaseException as error:  # a user's problem may raise anything, and a law will say so
        reraise_stop(error)
        return True


def formula_takes_arrays(draws: Draws) -> Iterator[Finding]:
    """A formula keeps its contract (see `check_formula`, which raises what breaks it)."""
    if isinstance(draws.problem, BoxProblem):
        for formula, _ in draws.problem.formulas():
            check_formula(formula, draws.problem.box, draws.problem.m, type(draws.problem).__name__)
    yield from ()


def finite_values(draws: Draws) -> Iterator[Finding]:
    """f and g are finite everywhere, as far as a sample shows."""
    with np.errstate(all="ignore"):
        drawn, count = draws.draw(), 256
        if not getattr(drawn, "exact", True):
            return  # only observations are known
        actions = draws.draw_actions(count, len(SEEDS))
        values = np.concatenate([drawn.values(1, actions[k : k + 1]) for k in range(count)])
    if not np.isfinite(values).all():
        k, s, j = np.argwhere(~np.isfinite(values))[0]
        function = "f" if j == 0 else f"g_{j}"
        yield Finding(
            f"{function} is {values[k, s, j]} at {actions[k, s].tolist()}",
            "it must be a finite number everywhere",
        )


def optimum_feasible(draws: Draws) -> Iterator[Finding]:
    """The stored optimum is an action, is feasible, and has the stored reward."""
    drawn = draws.draw()
    if np.isnan(drawn.stars(1, 1)[0]).all() or not np.isfinite(drawn.accuracy):
        return  # it is not known, or a target
    best = np.asarray(drawn.best(1))
    values = drawn.values(1, best[None])[0]
    star = drawn.stars(1, 1)[0][0]
    for s in range(len(SEEDS)):
        if (values[s, 1:] > 0).any():
            j = 1 + int(values[s, 1:].argmax())
            yield Finding(
                f"the stored optimum {best[s].tolist()} is not feasible: g_{j} = "
                f"{values[s, j]:.6g} there",
                "feasible is where every g_j <= 0; find it by `cbobench reference`",
            )
            return
        if abs(values[s, 0] - star[s]) > (drawn.accuracy + 1e-9) * (1 + abs(star[s])):
            rewards = f"f = {values[s, 0]:.10g}, and {star[s]:.10g} is stored"
            yield Finding(
                f"the stored optimum {best[s].tolist()} has {rewards}",
                "store what the functions give there",
            )
            return


def optimum_unbeaten(draws: Draws) -> Iterator[Finding]:
    """No feasible action that a search finds beats the stored optimum."""
    drawn, actions = draws.draw((0,)), draws.problem.actions
    star = float(drawn.stars(1, 1)[0][0, 0])
    if np.isnan(star) or not np.isfinite(drawn.accuracy):
        return  # it is not known, or a target
    fix = "the optimum is the best action where every g_j <= 0; find it by `cbobench reference`"
    if isinstance(actions, Finite):
        values = np.concatenate([drawn.values(1, np.array([[k]])) for k in range(actions.n)])[:, 0]
        rewards = np.where((values[:, 1:] <= 0).all(axis=1), values[:, 0], -np.inf)
        if rewards.max() > star + (drawn.accuracy + 1e-12) * (1 + abs(star)):
            evidence = (
                f"action {rewards.argmax()} is feasible with f = {rewards.max():.10g}, above "
                f"{star:.10g}"
            )
            yield Finding(evidence, fix)
        return
    point, best = _search_optimum(drawn, actions)
    if best > star + (drawn.accuracy + 1e-7) * (1 + abs(star)):
        yield Finding(
            f"x = {point.tolist()} is feasible with f = {best:.10g}, above the stored {star:.10g}",
            fix,
        )


def _search_optimum(drawn: Drawn, box: Box) -> tuple[Array, float]:
    """Return the best feasible point of a box that multi-start search finds, and its reward."""

    def formula(x: Array) -> Array:
        flat = np.asarray(x).reshape(-1, box.d)
        values = np.concatenate([drawn.values(1, point[None, None]) for point in flat])[:, 0]
        return np.asarray(values.reshape(*np.shape(x)[:-1], -1))

    optimum = search(getattr(drawn, "formula", formula), box, starts=8, power=POWER)
    return optimum.x, float(optimum.values[0])


def seeded_from_streams(draws: Draws) -> Iterator[Finding]:
    """Draws and observations use the given generators, not global ones, the clock or the system."""
    trial, state = draws.trial(), SharedState(draws.cls)
    with seed_global_generators(1) as used:
        first = trial.play(SEEDS)
    if used:
        yield Finding(
            f"it draws from, or seeds, the global generator of {' and '.join(sorted(used))}",
            INSTEAD,
        )
        return
    apart = difference(first, trial.play(SEEDS))
    same_again = lambda: not difference(first, trial.play(SEEDS))  # noqa: E731
    if changed := state.changed() or (state.causes(same_again) if apart else []):
        yield Finding(
            f"{' and '.join(changed)} changed while it was played",
            "it is shared by all cells of a process: keep it on the instances or the channel",
        )
    elif apart:
        yield Finding(
            f"the same cells played twice differ in {apart}",
            "seed what draws from the generators of draw() and the streams of feedback()",
        )


def alone_as_beside(draws: Draws) -> Iterator[Finding]:
    """A seed's draws and observations do not depend on the other seeds in its block."""
    trial = draws.trial()
    with seed_global_generators(1):
        together = trial.play(SEEDS)
    with seed_global_generators(1):
        alone = trial.play([SEEDS[-1]])
    apart = difference(select_replicate(together, len(SEEDS) - 1), alone)
    if apart:
        yield Finding(
            f"seed {SEEDS[-1]} alone differs from itself among {len(SEEDS)} in {apart}",
            "replicate s draws from generators[s] and its own stream only",
        )


def noise_knows_no_past(draws: Draws) -> Iterator[Finding]:
    """The feedback on an action in round t does not depend on earlier actions: all methods meet the
    same noise.
    """
    last, feedbacks = 6, []
    actions = draws.draw_actions(2 * last + 1, len(SEEDS))
    for past in (actions[:last], actions[last:-1]):
        channel = draws.problem.feedback(
            draws.draw(), Streams([("feedback", draws.name, seed) for seed in SEEDS])
        )
        for t, chosen in enumerate([*past, actions[-1]], 1):
            channel.before(t)
            feedback = channel.at(t, chosen)
        feedbacks.append(feedback)
    first, second = feedbacks
    if first.arrivals is None and not (
        np.array_equal(first.f, second.f) and np.array_equal(first.g, second.g)
    ):
        yield Finding(
            "the same action in the same round is observed otherwise after other actions",
            "draw the noise of round t whatever is played, the same number of draws every round",
        )


def travels(draws: Draws) -> Iterator[Finding]:
    """It can be sent to a worker, and plays the same there."""
    try:
        unpickled = pickle.loads(pickle.dumps(draws.problem))  # noqa: S301 - what has just been pickled
    except BaseException as error:  # a user's class may raise any error
        reraise_stop(error)
        yield Finding(
            f"it cannot be pickled ({one_line(error)})",
            "workers are sent problems: keep no open file or lambda",
        )
        return
    with seed_global_generators(1):
        apart = difference(
            draws.trial(5).play(SEEDS), Draws(draws.cls, draws.name, unpickled).trial(5).play(SEEDS)
        )
    if apart:
        yield Finding(
            f"after pickling it differs in {apart}",
            "what prepare() finds must be a field that is pickled",
        )


def plays(draws: Draws) -> Iterator[Finding]:
    """A random play raises nothing."""
    try:
        draws.trial().play(SEEDS)
    except Broken as error:
        yield Finding(
            f"random play fails: {error}",
            "see Problem in cbobench/problems/base.py for shapes and signs",
        )
