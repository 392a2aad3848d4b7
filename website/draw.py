"""Pictures of problems in the style of the figures: f, and hatched where some g_j > 0."""

from __future__ import annotations

from typing import Any

import numpy as np
import seaborn

from cbobench.gp.actions import Finite
from cbobench.gp.kernels import Array
from cbobench.problems.base import Actions, Drawn, Problem
from cbobench.report.figures.layout import Image
from cbobench.report.figures.style import PALETTE, SIZES
from cbobench.rng import generator

FINE = 161  # points per axis of a field, and of a curve
MANY = 2000  # points of a cloud
HEIGHT = 2.3  # of a row of panels, in inches
HATCH = "//////"
LETTERS = "abcdefgh"
STAR: dict[str, Any] = {
    "marker": "*",
    "color": PALETTE["rust"],
    "markersize": 11,
    "markerfacecolor": "white",
    "zorder": 5,
}
"""How the best feasible action is marked."""


def draw_problem(task: Problem, name: str) -> tuple[Image, str]:
    """A figure of a prepared problem with the functions of seed 0, and its caption."""
    drawn = task.draw([generator("instance", name, 0)])
    d, on_box = task.actions.d, not isinstance(task.actions, Finite)
    with SIZES["double"].context():
        if on_box and d == 2:
            image, text = draw_phases(task, drawn)
        elif d == 1:
            image, text = draw_curves(task, drawn)
        else:
            image, text = draw_cloud(task, drawn)
        seaborn.despine(image)
    if getattr(task, "data", "") == "look-alike":
        text += " The data are a look-alike, generated from published facts."
    elif task.known_instance() is None and task.facts()["best"] == "varies":
        text += " The functions of seed 0; every seed draws its own."
    return image, text


def evaluate(task: Problem, drawn: Drawn, t: int, points: Actions) -> tuple[Array, Array]:
    """What round t has at actions (k,) or (k, d): f (k,) without noise, in the problem's own units,
    and every g_j (k, m).
    """
    # Functions that move are the same for all replicates, and take points of each.
    moving = bool(drawn.changes())
    found = drawn.values(t, points[None] if moving else points[:, None])
    found = found[0] if moving else found[:, 0]

    # As played, then as reported, then as the problem's page states f*.
    zero, unit = drawn.units
    f = zero + unit * found[:, 0]
    _, own_zero, own_unit = task.describe_objective()
    if own_unit > 0:
        f = own_zero + own_unit * f
    return f, task.settle(found[:, 1:])


def find_best(task: Problem, drawn: Drawn, t: int) -> Array:
    """Where the best feasible action of round t lies, (d,)."""
    action = drawn.best(t)[0]
    if isinstance(task.actions, Finite) and task.actions.points is not None:
        return np.asarray(task.actions.points[action])
    return np.asarray(action)


def draw_field(axis: Any, task: Problem, drawn: Drawn, t: int = 1) -> None:
    """f over a box of two dimensions in grey with contours, hatched where infeasible, a star at
    the optimum.
    """
    box: Any = task.actions
    edges = [np.linspace(low, high, FINE) for low, high in zip(box.low, box.high, strict=True)]
    points = np.stack([one.ravel() for one in np.meshgrid(*edges)], axis=1)
    f, g = evaluate(task, drawn, t, points)
    f, over = f.reshape(FINE, FINE), g.max(axis=1, initial=-1.0).reshape(FINE, FINE)
    axis.contourf(*edges, f, levels=14, cmap="Greys", alpha=0.35)
    axis.contour(*edges, f, levels=7, colors="0.45", linewidths=0.5)
    if over.max() > 0 >= over.min():
        hatched = axis.contourf(*edges, over, levels=[0, np.inf], colors="none", hatches=[HATCH])
        hatched.set(edgecolor="0.55", linewidth=0.0)
        axis.contour(*edges, over, levels=[0], colors="black", linewidths=0.9)
    axis.plot(*find_best(task, drawn, t), **STAR)
    axis.set(xlabel="x₁", ylabel="x₂")


def draw_phases(task: Problem, drawn: Drawn) -> tuple[Image, str]:
    """A field, or one for each phase of functions that move."""
    firsts = [1, *(t + 1 for t, _ in drawn.changes())]
    image = Image(SIZES["double"], HEIGHT)
    axes = image.subplots(1, len(firsts), squeeze=False)[0]
    for axis, t, letter in zip(axes, firsts, LETTERS, strict=False):
        draw_field(axis, task, drawn, t)
        axis.set_title(f"({letter}) f from round {t} on" if len(firsts) > 1 else "f")
    return image, "f in grey, hatched where a constraint is violated; the optimum is a star."


def draw_curves(task: Problem, drawn: Drawn) -> tuple[Image, str]:
    """f and the constraints over one dimension."""
    actions: Any = task.actions
    if isinstance(actions, Finite):
        assert actions.points is not None
        order = np.argsort(actions.points[:, 0])
        line = actions.points[order, 0]
        f, g = evaluate(task, drawn, 1, order)
    else:
        line = np.linspace(actions.low[0], actions.high[0], FINE)
        f, g = evaluate(task, drawn, 1, line[:, None])
    image = Image(SIZES["double"], HEIGHT)
    left, right = image.subplots(1, 2)
    left.plot(line, f, color=PALETTE["blue"])
    hatch(left, line, (g > 0).any(axis=1))
    best = find_best(task, drawn, 1)[0]
    left.plot(best, np.interp(best, line, f), **STAR)
    left.set(title="(a) f", xlabel="x")
    right.plot(line, g, color=PALETTE["slate"])
    right.axhline(0, color="0.6", linewidth=0.6)
    right.set(title="(b) every g_j", xlabel="x")
    return image, (
        "(a) f, hatched where infeasible; the optimum is a star. (b) Every g_j: feasible where at "
        "most 0."
    )


def hatch(axis: Any, line: Array, bad: Any) -> None:
    """Hatches the parts of a line that are infeasible."""
    look = {"facecolor": "none", "edgecolor": "0.6", "hatch": HATCH, "linewidth": 0.0}
    axis.fill_between(line, 0, 1, where=bad, transform=axis.get_xaxis_transform(), **look)


def draw_cloud(task: Problem, drawn: Drawn) -> tuple[Image, str]:
    """f against the largest constraint, of every action or of random points of a box."""
    actions: Any = task.actions
    points: Actions
    if isinstance(actions, Finite):
        points, star = np.arange(actions.n), drawn.best(1)
        words = "every action"
    else:
        star = find_best(task, drawn, 1)[None]
        points = generator("picture", "cloud", 0).uniform(
            actions.low, actions.high, (MANY, actions.d)
        )
        words = f"{MANY} random points of the box"
    f, g = evaluate(task, drawn, 1, points)
    image = Image(SIZES["double"], HEIGHT)
    axis = image.subplots()
    axis.scatter(g.max(axis=1), f, s=6, color=PALETTE["blue"], alpha=0.5, linewidths=0)
    axis.axvline(0, color="0.6", linewidth=0.6)
    f, g = evaluate(task, drawn, 1, star)
    axis.plot(g.max(axis=1), f, **STAR)
    axis.set(xlabel="largest g_j", ylabel="f")
    return image, (
        f"{words.capitalize()}: f against the largest g_j, feasible up to 0; the optimum is a star."
    )
