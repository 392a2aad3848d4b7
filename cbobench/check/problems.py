"""Laws of a problem. Each yields the findings that break it, none if it holds. See `report` for
their names.

Their subject is a random play on the problem: what it draws and tells shows there.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import numpy as np

from cbobench.algorithms.references import Random
from cbobench.check import methods
from cbobench.check.trial import SEEDS, Finding, Trial
from cbobench.gp.actions import Finite
from cbobench.gp.kernels import Array
from cbobench.problems.base import Actions, Drawn, Problem
from cbobench.problems.formulas.box import BoxProblem
from cbobench.problems.reference import (
    check_formula,
    derive,
    find_contradictions,
    search,
    write_reference,
)
from cbobench.problems.simulators.kept import place
from cbobench.problems.simulators.simulator import Simulator
from cbobench.rng import generator

POWER = 13  # log2 of the points that a search for a better optimum samples
ROUNDING = 1e-7  # by which a reward may be off, relative to 1 + |f*|
SAMPLE = 256  # actions at which f and g are finite


def play_at_random(problem: Problem, name: str) -> Trial:
    """Return the subject of the laws of a problem, which need no recommendation."""
    return Trial(Random, "random", problem, place=name, recommends=False)


def _draw(trial: Trial) -> Drawn:
    """Return the instances of all seeds."""
    return trial.problem.draw([generator("instance", trial.place, seed) for seed in SEEDS])


def _draw_actions(problem: Problem, count: int) -> Actions:
    """Return actions (count, S[, d]), different ones for every replicate."""
    rng = generator("check", "actions")
    shape = (count, len(SEEDS))
    if isinstance(problem.actions, Finite):
        return rng.integers(problem.actions.n, size=shape)
    return problem.actions.scale(rng.random((*shape, problem.actions.d)))


def states_optimum(trial: Trial) -> bool:
    """Return whether a prepared problem states an optimum, which laws hold against its values."""
    with suppress(Exception):  # a user's problem may raise any error, and a law will say so
        return "a known optimum" in trial.problem.offers()
    return True


def constraints_as_declared(trial: Trial) -> Iterator[Finding]:
    """A formula gives f and as many constraints as are declared, at one point as at many (see
    `check_formula`, which raises what breaks that).
    """
    problem = trial.problem
    if isinstance(problem, BoxProblem):
        for formula, _ in problem.formulas():
            check_formula(formula, problem.box, problem.m, type(problem).__name__)
    yield from ()


def optimum_as_derived(trial: Trial) -> Iterator[Finding]:
    """What a class states of the optimum of its formulas is what a search finds; what it does not
    state is derived.
    """
    task = trial.problem
    # On a grid the optimum is looked up, and the stated one does not count.
    if not isinstance(task, BoxProblem) or task.grid is not None:
        return
    for formula, stated in task.formulas():
        mistake = "" if stated is None else task.mistake(formula, stated)
        optimum = derive(formula, task.box, None if mistake else stated)
        if stated is None:
            agreeing = f"{optimum.reached} of {optimum.starts} local searches end at one"
            evidence = f"{type(task).__name__} does not say its optimum; {agreeing}"
        else:
            evidence = "; ".join(find_contradictions(optimum, stated, mistake))
        if evidence:
            yield Finding(evidence, f"write: {write_reference(optimum)}")
            return


def finite_values(trial: Trial) -> Iterator[Finding]:
    """f and g are finite everywhere, as far as a sample shows."""
    drawn = _draw(trial)
    if not getattr(drawn, "exact", True):
        return  # only observations are known
    actions = _draw_actions(trial.problem, SAMPLE)
    values = np.concatenate([drawn.values(1, chosen[None]) for chosen in actions])
    for k, s, j in np.argwhere(~np.isfinite(values)):
        function = "f" if j == 0 else f"g_{j}"
        yield Finding(
            f"{function} is {values[k, s, j]} at {actions[k, s].tolist()}",
            "it must be a finite number everywhere",
        )


def optimum_as_declared(trial: Trial) -> Iterator[Finding]:
    """The stored optimum is an action, is feasible, has the stored reward, and is not beaten."""
    drawn = _draw(trial)
    stars = drawn.stars(1, 1)[0][0]
    if np.isnan(stars).all() or not np.isfinite(drawn.accuracy):
        return  # it is not known, or a target

    # It is feasible and has its reward, for every seed.
    best = np.asarray(drawn.best(1))
    values = drawn.values(1, best[None])[0]
    off = (drawn.accuracy + ROUNDING) * (1 + abs(stars))
    for point, (f, *g), star, most in zip(best.tolist(), values, stars, off, strict=True):
        if max(g, default=0.0) > 0:
            yield Finding(
                f"the stored optimum {point} is not feasible: g_{1 + int(np.argmax(g))} = "
                f"{max(g):.6g} there",
                "feasible is where every g_j <= 0",
            )
        if abs(f - star) > most:
            yield Finding(
                f"the stored optimum {point} has f = {f:.10g}, and {star:.10g} is stored",
                "store what the functions give there",
            )

    # Nothing that is feasible beats it; one seed is enough for a search.
    found, reward = _search_optimum(trial)
    if reward > stars[0] + off[0]:
        yield Finding(
            f"{found} is feasible with f = {reward:.10g}, above the stored {stars[0]:.10g}",
            "the optimum is the best action where every g_j <= 0",
        )


def _search_optimum(trial: Trial) -> tuple[str, float]:
    """Return the best feasible action of the first seed and its reward: on a set by a look at all,
    on a box by multi-start search.
    """
    actions = trial.problem.actions
    drawn = trial.problem.draw([generator("instance", trial.place, SEEDS[0])])
    if isinstance(actions, Finite):
        values = _evaluate(drawn, np.arange(actions.n))
        rewards = np.where((values[:, 1:] <= 0).all(axis=1), values[:, 0], -np.inf)
        return f"action {rewards.argmax()}", float(rewards.max())

    def formula(x: Array) -> Array:
        return _evaluate(drawn, x.reshape(-1, x.shape[-1])).reshape(*x.shape[:-1], -1)

    optimum = search(getattr(drawn, "formula", formula), actions, starts=8, power=POWER)
    return f"x = {optimum.x.tolist()}", float(optimum.values[0])


def _evaluate(drawn: Drawn, actions: Actions) -> Array:
    """Return the values (k, 1 + m) of one seed's instance in round 1 at actions (k[, d])."""
    return np.concatenate([drawn.values(1, action[None, None]) for action in actions])[:, 0]


def plays(trial: Trial) -> Iterator[Finding]:
    """A random play raises nothing."""
    return methods.plays(trial, "see Problem in cbobench/problems/base.py for shapes and signs")


def repeatable(trial: Trial) -> Iterator[Finding]:
    """The same cells, played again in this process, are equal to the last bit, whatever the global
    generators hold; and other generators give other values only where that is said.
    """
    yield from methods.repeatable(
        trial,
        "draw from the generators of draw() and the streams of feedback(), never from a global "
        "one; keep no state outside the instances and the channel, read no clock",
    )
    problem = trial.problem
    if isinstance(problem, Simulator) and not problem.noisy:
        points = place(_draw_actions(problem, 1)[0], problem.samples)
        first, second = (
            problem.observe(points, [generator("check", word, seed) for seed in SEEDS])[0]
            for word in ("one", "other")
        )
        if not np.array_equal(first, second, equal_nan=True):
            yield Finding(
                "noisy is False, but simulate depends on its generator", "say noisy = True"
            )


def same_in_any_block(trial: Trial) -> Iterator[Finding]:
    """A seed's draws and observations do not depend on the other seeds in its block."""
    return methods.find_seeds_apart(
        trial, "replicate s draws from generators[s] and its own stream only"
    )
