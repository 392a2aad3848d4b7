"""Searches that derive stated optima again: SLSQP from many starts, the rover's shortest route, and
margins. They share no code with `cbobench.problems.reference`.

The stored points came from two runs of CMA-ES with the sum of violations as penalty (keane-10:
300,000 evaluations each), random starts, `bumps` and routes, all given to `derive` with 200 hops;
then they were rounded to ten digits, feasible to the last bit.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from types import SimpleNamespace

import numpy as np
from scipy.optimize import minimize

from cbobench.gp.box_actions import Box
from cbobench.problems.formulas.box import BoxProblem
from cbobench.problems.formulas.high_dimensional import GOAL, OBSTACLES, START

Array = np.ndarray
STEP = 1e-4  # of a side


def evaluate(task: BoxProblem, u: Array) -> Array:
    """Values (..., 1 + m) at points (..., d) of the unit cube."""
    return task.formula(task.box.scale(u))


def slopes(task: BoxProblem, u: Array) -> Array:
    """Derivatives (1 + m, d) at a point of the unit cube: differences of fourth order, moved inside
    near a side.
    """
    centre = np.clip(u, 2 * STEP, 1 - 2 * STEP)
    steps = STEP * np.eye(len(u))
    values = evaluate(task, np.stack([centre + k * steps for k in (-2, -1, 1, 2)]))
    return (np.array([1.0, -8.0, 8.0, -1.0]) @ values.reshape(4, -1)).reshape(len(u), -1).T / (
        12 * STEP
    )


def mend(task: BoxProblem, u: Array, margin: float = 0.0) -> Array:
    """A point near u where every g_j is at most -margin, in units of its slope, if Newton steps
    find one.
    """
    steep = np.linalg.norm(slopes(task, u), axis=1)[1:]
    for _ in range(5):
        over = evaluate(task, u)[1:] + margin * steep
        broken = over > 0
        if not broken.any():
            break
        free = (u > 1e-9) & (u < 1 - 1e-9)
        step = np.linalg.lstsq(slopes(task, u)[1:][broken] * free, over[broken], rcond=None)[0]
        u = np.clip(u - step * free, 0.0, 1.0)
    return u


def local(task: BoxProblem, u: Array, rounds: int = 2, iterations: int = 400) -> Array | None:
    """Where SLSQP ends from u, if that is feasible to 1e-9 of a constraint's slope after `mend`."""
    for _ in range(rounds):
        steep = np.linalg.norm(slopes(task, u), axis=1)
        unit = np.where(steep > 0, steep, 1.0)
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            optimum = minimize(
                lambda v, unit=unit: -evaluate(task, v)[0] / unit[0],
                u,
                jac=lambda v, unit=unit: -slopes(task, v)[0] / unit[0],
                bounds=[(0.0, 1.0)] * len(u),
                constraints={
                    "type": "ineq",
                    "fun": lambda v, unit=unit: -evaluate(task, v)[1:] / unit[1:],
                    "jac": lambda v, unit=unit: -slopes(task, v)[1:] / unit[1:, None],
                },
                method="SLSQP",
                options={"maxiter": iterations, "ftol": 1e-13},
            )
        if not np.isfinite(optimum.x).all():
            return None
        u = np.clip(optimum.x, 0.0, 1.0)
    u = mend(task, u)
    return u if (evaluate(task, u)[1:] / unit[1:]).max() <= 1e-9 else None


def bumps(d: int) -> list[Array]:
    """Points of the unit cube near multiples of π in [0, 10], falling from 2π over π to 0: where
    Keane's cos⁴ is 1.
    """
    levels = (np.linspace(0.63, 0.62, d), np.linspace(0.318, 0.29, d), np.linspace(0.05, 0.044, d))
    return [
        np.concatenate([levels[0][:first], levels[1][first:second], levels[2][second:]])
        for first in range(4)
        for second in range(max(1, first), d)
    ]


def shortest_route(radius: float, gen: np.random.Generator | None = None) -> tuple[float, Array]:
    """Length and corners (k, 2) of the rover's shortest way round discs of some radius, in a
    visibility graph.

    Nodes are start, goal, and the corners of polygons with 40 sides that contain the discs; edges
    meet no disc. With a generator, edges are made longer at random, which gives other routes.
    """
    from scipy.sparse.csgraph import dijkstra

    angles = 2 * np.pi * np.arange(40) / 40
    rim = (
        radius
        / np.cos(np.pi / 40)
        * (1 + 1e-9)
        * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    )
    nodes = np.concatenate([[START, GOAL], (OBSTACLES[:, None] + rim).reshape(-1, 2)])
    nodes = nodes[((nodes >= 0) & (nodes <= 1)).all(axis=1)]
    along = nodes[None] - nodes[:, None]
    length = np.hypot(along[..., 0], along[..., 1])
    free = length > 0
    for centre in OBSTACLES:
        to = centre - nodes[:, None]
        share = np.clip((to * along).sum(axis=-1) / np.maximum(length, 1e-12) ** 2, 0, 1)
        free &= np.linalg.norm(to - share[..., None] * along, axis=-1) >= radius * (1 - 1e-9)
    weight = np.where(free, length, 0.0)
    if gen is not None:
        weight = weight * np.exp(gen.normal(0, 0.3, len(nodes))[:, None])
    _, before = dijkstra(weight, indices=0, return_predecessors=True)
    path = [1]
    while path[-1] != 0:
        path.append(int(before[path[-1]]))
    corners = nodes[path[::-1]]
    return float(np.linalg.norm(np.diff(corners, axis=0), axis=1).sum()), corners


def on_route(corners: Array) -> Array:
    """The rover's 30 control points, equally far apart along a polygon, (60,)."""
    passed = np.concatenate([[0.0], np.linalg.norm(np.diff(corners, axis=0), axis=1).cumsum()])
    at = np.linspace(0, passed[-1], 32)[1:-1]
    return np.stack([np.interp(at, passed, corners[:, k]) for k in range(2)], axis=1).ravel()


def perturb(u: Array, gen: np.random.Generator) -> Array:
    """A point near u: noise on all coordinates, on a few, or two of them exchanged."""
    moved, kind = u.copy(), gen.integers(3)
    if kind == 0:
        moved += gen.normal(0, 0.03, len(u))
    elif kind == 1:
        coordinates = gen.permutation(len(u))[: gen.integers(1, 4)]
        moved[coordinates] = gen.random(len(coordinates))
    else:
        i, j = gen.permutation(len(u))[:2]
        moved[[i, j]] = moved[[j, i]]
    return np.clip(moved, 0.0, 1.0)


def derive(task: BoxProblem, begun: Iterable[Array], hops: int, seed: int) -> Array | None:
    """The best end of local searches from some points of the unit cube, and from perturbations of
    the best one.
    """
    gen, best, f = np.random.default_rng(seed), None, -np.inf
    for start in begun:
        end = local(task, start)
        if end is not None and evaluate(task, end)[0] > f:
            best, f = end, float(evaluate(task, end)[0])
    for _ in range(hops if best is not None else 0):
        end = local(task, perturb(best, gen))
        if end is not None and evaluate(task, end)[0] > f + 1e-12:
            best, f = end, float(evaluate(task, end)[0])
    return best


def margin(task: BoxProblem, begun: Iterable[Array]) -> float:
    """The largest -max_j g_j that local searches from some points find, in units of the formula."""

    def formula(x: Array) -> Array:  # the level that all g_j keep to is one coordinate more
        return np.concatenate(
            [-x[..., -1:], task.formula(x[..., :-1])[..., 1:] - x[..., -1:]], axis=-1
        )

    margins = []
    for u in begun:
        level = float(evaluate(task, u)[1:].max())
        box = Box(np.append(task.box.low, level - 2), np.append(task.box.high, level + 1))
        end = local(SimpleNamespace(box=box, formula=formula), np.append(u, 2 / 3))
        if end is not None:
            margins.append(-float(evaluate(task, end[:-1])[1:].max()))
    return max(margins)
