"""Derives the best known points of the problems in many dimensions: CMA-ES with a penalty, then
multistart SLSQP.

Takes minutes to an hour for each problem, so pytest runs it with a small budget only:

    OMP_NUM_THREADS=1 python -m tests.problems.derive_high_dimensional keane-10 --evaluations 300000
    --starts 200

Prints f and the point, rounded to ten digits and feasible to the last bit.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterable
from types import SimpleNamespace

import numpy as np
from scipy.optimize import minimize

from cbobench.gp.box_actions import Box
from cbobench.params import build
from cbobench.problems import PROBLEMS
from cbobench.problems.formulas.box import BoxProblem
from cbobench.problems.formulas.high_dimensional import GOAL, OBSTACLES, START

Array = np.ndarray
STEP = 1e-4  # of a side
DIGITS = 10  # of a stored coordinate


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


def evolve(task: BoxProblem, start: Array, evaluations: int, seed: int) -> Array:
    """The point of the unit cube that CMA-ES ends at, with the sum of relative violations as
    penalty.
    """
    import cma

    values = evaluate(task, np.random.default_rng(seed).random((4096, len(start))))
    spread = values.std(axis=0) + 1e-12
    options = {
        "bounds": [0, 1],
        "maxfevals": evaluations,
        "seed": seed,
        "verbose": -9,
        "CMA_diagonal": 0,
    }
    search = cma.CMAEvolutionStrategy(start, 0.2, options)
    while not search.stop():
        points = search.ask()
        evaluated = evaluate(task, np.array(points))
        search.tell(
            points,
            list(
                100 * np.maximum(evaluated[:, 1:] / spread[1:], 0).sum(axis=1)
                - evaluated[:, 0] / spread[0]
            ),
        )
    return np.asarray(search.result.xbest)


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


def derive(
    task: BoxProblem,
    begun: Iterable[Array],
    hops: int,
    seed: int,
    says: Callable[[str], None] = lambda line: None,
) -> Array | None:
    """The best end of local searches from some points of the unit cube, and from perturbations of
    the best one.
    """
    gen, best, f = np.random.default_rng(seed), None, -np.inf
    for number, start in enumerate(begun):
        end = local(task, start)
        if end is not None and evaluate(task, end)[0] > f:
            best, f = end, float(evaluate(task, end)[0])
            says(f"start {number}: {f:.10g}")
    for number in range(hops if best is not None else 0):
        end = local(task, perturb(best, gen))
        if end is not None and evaluate(task, end)[0] > f + 1e-12:
            best, f = end, float(evaluate(task, end)[0])
            says(f"hop {number}: {f:.10g}")
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


def rounded(task: BoxProblem, u: Array) -> Array:
    """The point of the box with coordinates of few digits, feasible to the last bit."""
    for margin in (0.0, *10.0 ** np.arange(-11.0, -5.0, 0.5)):
        moved = mend(task, u, margin)
        x = np.array([float(f"{v:.{DIGITS}g}") for v in task.box.scale(moved)])
        if (task.formula(x)[1:] <= 0).all():
            return x
    raise SystemExit("no feasible point near the end of the search")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("name")
    options.add_argument("--evaluations", type=int, default=100_000, help="of every CMA-ES run")
    options.add_argument("--runs", type=int, default=2, help="CMA-ES runs")
    options.add_argument("--starts", type=int, default=50, help="local searches from random points")
    options.add_argument("--hops", type=int, default=200, help="local searches near the best point")
    options.add_argument("--seed", type=int, default=0)
    arguments = options.parse_args()
    task = build(PROBLEMS.get(arguments.name), {})
    assert isinstance(task, BoxProblem)
    gen = np.random.default_rng(arguments.seed)
    begun = [
        evolve(task, gen.random(task.box.d), arguments.evaluations, arguments.seed + 1 + k)
        for k in range(arguments.runs)
    ]
    begun += list(gen.random((arguments.starts, task.box.d)))
    begun += bumps(task.box.d) if arguments.name.startswith("keane") else []
    if arguments.name == "rover-60":
        routes = [
            shortest_route(r, None if k == 0 else gen)
            for r in (0.08, 0.085)
            for k in range(arguments.starts)
        ]
        begun += [on_route(corners) for _, corners in routes]
    if hasattr(task, "reference"):
        begun.append(task.box.unit(np.array(task.reference.x)))
    best = derive(task, begun, arguments.hops, arguments.seed, lambda line: print(line, flush=True))
    if best is None:
        raise SystemExit("no feasible point")
    x = rounded(task, best)
    f, *g = task.formula(x).tolist()
    print(f"f = {f!r}\ng = {g}\nx = {x.tolist()}\nmargin = {margin(task, [best])!r}")


if __name__ == "__main__":
    main()
