"""Laws of a problem. Each yields the findings that break it, none if it holds. See `report` for
their names.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cbobench.algorithms.references import Random
from cbobench.check.trial import (
    SEEDS,
    Broken,
    Finding,
    Trial,
    difference,
    seed_global_generators,
    select_replicate,
)
from cbobench.errors import reraise_stop
from cbobench.gp.actions import Finite
from cbobench.gp.box_actions import Box
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


@dataclass(frozen=True)
class Draws:
    """A prepared problem."""

    name: str
    problem: Problem

    @cached_property
    def played(self) -> dict[str, Array]:
        """A random play of all seeds, which two laws hold others against; the global generators
        begin at 1.

        Raises:
            Broken: any error.
        """
        return self.play(SEEDS, generators=1)

    def play(self, seeds: Sequence[int], generators: int) -> dict[str, Array]:
        """Return a random play of some seeds; the global generators begin at a number."""
        with seed_global_generators(generators):
            return Trial(Random, "random", self.problem, self.name).play(seeds)

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


def states_optimum(draws: list[Draws]) -> bool:
    """Return whether a prepared problem states an optimum, which laws hold against its values."""
    try:
        return any("a known optimum" in draw.problem.offers() for draw in draws) or not draws
    except BaseException as error:  # a user's problem may raise anything, and a law will say so
        reraise_stop(error)
        return True


def constraints_as_declared(draws: Draws) -> Iterator[Finding]:
    """A formula gives f and as many constraints as are declared, at one point as at many (see
    `check_formula`, which raises what breaks that).
    """
    if isinstance(draws.problem, BoxProblem):
        for formula, _ in draws.problem.formulas():
            check_formula(formula, draws.problem.box, draws.problem.m, type(draws.problem).__name__)
    yield from ()


def optimum_as_derived(draws: Draws) -> Iterator[Finding]:
    """What a class states of the optimum of its formulas is what a search finds; what it does not
    state is derived.
    """
    task = draws.problem
    # On a grid the optimum is looked up, and the stated one does not count.
    if not isinstance(task, BoxProblem) or not task.searched or task.grid is not None:
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


def finite_values(draws: Draws) -> Iterator[Finding]:
    """f and g are finite everywhere, as far as a sample shows."""
    with np.errstate(all="ignore"):
        drawn = draws.draw()
        count = 256
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


def optimum_as_declared(draws: Draws) -> Iterator[Finding]:
    """The stored optimum is an action, is feasible, has the stored reward, and is not beaten."""
    yield from _optimum_misstated(draws)
    yield from _optimum_beaten(draws)


def _optimum_misstated(draws: Draws) -> Iterator[Finding]:
    """Find a stored optimum that is not feasible, or has another reward."""
    drawn = draws.draw()
    star = drawn.stars(1, 1)[0][0]
    if np.isnan(star).all() or not np.isfinite(drawn.accuracy):
        return  # it is not known, or a target
    best = np.asarray(drawn.best(1))
    values = drawn.values(1, best[None])[0]
    for s in range(len(SEEDS)):
        if (values[s, 1:] > 0).any():
            j = 1 + int(values[s, 1:].argmax())
            yield Finding(
                f"the stored optimum {best[s].tolist()} is not feasible: g_{j} = "
                f"{values[s, j]:.6g} there",
                "feasible is where every g_j <= 0",
            )
            return
        if abs(values[s, 0] - star[s]) > (drawn.accuracy + 1e-9) * (1 + abs(star[s])):
            rewards = f"f = {values[s, 0]:.10g}, and {star[s]:.10g} is stored"
            yield Finding(
                f"the stored optimum {best[s].tolist()} has {rewards}",
                "store what the functions give there",
            )
            return


def _optimum_beaten(draws: Draws) -> Iterator[Finding]:
    """Find a feasible action, by a search, that beats the stored optimum."""
    drawn = draws.draw((0,))
    actions = draws.problem.actions
    star = float(drawn.stars(1, 1)[0][0, 0])
    if np.isnan(star) or not np.isfinite(drawn.accuracy):
        return  # it is not known, or a target
    if isinstance(actions, Finite):
        values = np.concatenate([drawn.values(1, np.array([[k]])) for k in range(actions.n)])[:, 0]
        rewards = np.where((values[:, 1:] <= 0).all(axis=1), values[:, 0], -np.inf)
        found = f"action {rewards.argmax()}"
        best = rewards.max()
        rounding = 1e-12
    else:
        point, best = _search_optimum(drawn, actions)
        found = f"x = {point.tolist()}"
        rounding = 1e-7
    if best > star + (drawn.accuracy + rounding) * (1 + abs(star)):
        yield Finding(
            f"{found} is feasible with f = {best:.10g}, above the stored {star:.10g}",
            "the optimum is the best action where every g_j <= 0",
        )


def _search_optimum(drawn: Drawn, box: Box) -> tuple[Array, float]:
    """Return the best feasible point of a box that multi-start search finds, and its reward."""

    def formula(x: Array) -> Array:
        flat = np.asarray(x).reshape(-1, box.d)
        values = np.concatenate([drawn.values(1, point[None, None]) for point in flat])[:, 0]
        return values.reshape(*np.shape(x)[:-1], -1)

    optimum = search(getattr(drawn, "formula", formula), box, starts=8, power=POWER)
    return optimum.x, float(optimum.values[0])


def repeatable(draws: Draws) -> Iterator[Finding]:
    """The same cells, played again in this process, are equal to the last bit, whatever the global
    generators hold.
    """
    if apart := difference(draws.played, draws.play(SEEDS, generators=2)):
        yield Finding(
            f"the same cells played twice differ in {apart}",
            "draw from the generators of draw() and the streams of feedback(), never from a global "
            "one; keep no state outside the instances and the channel, read no clock",
        )
    elif isinstance(draws.problem, Simulator) and not draws.problem.noisy:
        yield from _find_noise(draws)


def _find_noise(draws: Draws) -> Iterator[Finding]:
    """Other generators give other values, though the class says that there is no noise."""
    problem = draws.problem
    assert isinstance(problem, Simulator)
    points = place(draws.draw_actions(1, len(SEEDS))[0], problem.inputs is not None)
    first, second = (
        problem.observe(points, [generator("check", word, seed) for seed in SEEDS])[0]
        for word in ("one", "other")
    )
    if not np.array_equal(first, second, equal_nan=True):
        yield Finding("noisy is False, but simulate depends on its generator", "say noisy = True")


def alone_as_beside(draws: Draws) -> Iterator[Finding]:
    """A seed's draws and observations do not depend on the other seeds in its block."""
    together = select_replicate(draws.played, len(SEEDS) - 1)
    if apart := difference(together, draws.play([SEEDS[-1]], generators=1)):
        yield Finding(
            f"seed {SEEDS[-1]} alone differs from itself among {len(SEEDS)} in {apart}",
            "replicate s draws from generators[s] and its own stream only",
        )


def plays(draws: Draws) -> Iterator[Finding]:
    """A random play raises nothing."""
    try:
        _ = draws.played
    except Broken as error:
        yield Finding(
            f"random play fails: {error}",
            "see Problem in cbobench/problems/base.py for shapes and signs",
        )
