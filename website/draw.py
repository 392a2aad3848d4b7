"""Pictures of problems in the style of the figures: f, and hatched where some g_j > 0."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cbobench.gp.actions import Finite
from cbobench.gp.box_actions import Box
from cbobench.gp.kernels import Array
from cbobench.problems.base import Actions, Drawn, Problem
from cbobench.report.figures.canvas import Image
from cbobench.report.figures.style import PALETTE, SIZES, plain
from cbobench.rng import generator

FINE, LINE = 161, 401  # points per axis of a field, and of a curve
MOST_SLICES, ACROSS = 8, 4
HATCH, STAR, CURVE, OTHER = "//////", PALETTE["rust"], PALETTE["blue"], PALETTE["slate"]


def page(
    panels: int, widths: Sequence[float] | None = None, height: float = 2.1
) -> tuple[Any, list[Any]]:
    """A figure of a double column's width and its axes, at most `ACROSS` in a row."""
    across = min(panels, ACROSS)
    rows = -(-panels // across)
    image = Image(SIZES["double"], rows * height)
    ratios = {"width_ratios": widths} if widths else {}
    axes = list(image.subplots(rows, across, squeeze=False, gridspec_kw=ratios).flat)
    for axis in axes[panels:]:
        axis.remove()
    return image, axes[:panels]


def plain_axis(axis: Any, title: str, below: str = "", beside: str = "") -> None:
    """Title and labels, without a frame."""
    axis.set_title(plain(title))
    axis.set_xlabel(plain(below))
    axis.set_ylabel(plain(beside))
    axis.spines[["top", "right"]].set_visible(False)


def values(drawn: Drawn, t: int, points: Actions) -> Array:
    """Noise-free (f, g_1, ..., g_m) of round t at actions (k,) or (k, d), (k, 1 + m), f in the
    units reported.
    """
    moving = bool(drawn.changes())  # of these all replicates are the same
    found = drawn.values(t, points[None] if moving else points[:, None])
    found = np.array(found[0] if moving else found[:, 0])
    zero, unit = drawn.units
    found[:, 0] = zero + unit * found[:, 0]
    return found


def own_units(problem: Problem, f: Array) -> Array:
    """f as its page gives f*: in its own units, though it may be played in spreads."""
    _, zero, unit = problem.describe_objective()
    return zero + unit * f if unit > 0 else f


def worst(problem: Problem, found: Array) -> Array:
    """max_j g_j, each in units of its largest absolute value, (k,): at most 0 where feasible."""
    g = problem.settle(found[:, 1:])
    size = np.abs(g).max(axis=0)
    return (
        np.asarray((g / np.where(size > 0, size, 1.0)).max(axis=1))
        if g.shape[1]
        else np.full(len(g), -1.0)
    )


def field(
    axis: Any, problem: Problem, drawn: Drawn, t: int, title: str, numbers: bool = True
) -> None:
    """f over two dimensions as grey levels with contours, hatched where infeasible, a star at the
    optimum.

    Args:
        numbers: whether contours have them.
    """
    box: Any = getattr(problem, "box", problem.actions)
    edges = [np.linspace(a, b, FINE) for a, b in zip(box.low, box.high, strict=True)]
    points = np.stack([one.ravel() for one in np.meshgrid(*edges)], axis=1)
    found = formula(problem, drawn, t, points)
    f = own_units(problem, found[:, 0]).reshape(FINE, FINE)
    over = worst(problem, found).reshape(FINE, FINE)
    with_colours = {"levels": 14, "cmap": "Greys", "alpha": 0.35}
    axis.contourf(*edges, f, **with_colours)
    lines = axis.contour(*edges, f, levels=7, colors="0.45", linewidths=0.5)
    if numbers:
        axis.clabel(lines, fontsize=6, fmt="%.3g")
    if (over > 0).any() and (over <= 0).any():
        hatched = axis.contourf(*edges, over, levels=[0, np.inf], colors="none", hatches=[HATCH])
        hatched.set(edgecolor="0.55", linewidth=0.0)
        axis.contour(*edges, over, levels=[0], colors="black", linewidths=0.9)
    star = best(problem, drawn, t)
    axis.plot(
        *star,
        marker="*",
        color=STAR,
        markersize=11,
        markerfacecolor="white",
        markeredgewidth=1.2,
        zorder=2.5,
    )
    plain_axis(axis, title, "x₁", "x₂")


def formula(problem: Problem, drawn: Drawn, t: int, points: Array) -> Array:
    """As `values`, at any points of a box, also where a grid of it is played."""
    if isinstance(problem.actions, Finite):
        return np.asarray(problem.scaled_formula(points))  # type: ignore[attr-defined]
    return values(drawn, t, points)


def best(problem: Problem, drawn: Drawn, t: int) -> Array:
    """Where the best feasible action of round t lies, (d,)."""
    action = drawn.best(t)[0]
    points = problem.actions.points if isinstance(problem.actions, Finite) else None
    return np.asarray(action if points is None else points[action])


def problem(task: Problem, name: str, settings: dict[str, str]) -> tuple[Any, dict[str, str]]:
    """A figure of a problem, and what is said of it: text and alt."""
    drawn = task.draw([generator("instance", name, 0)])
    actions = task.actions
    d = actions.d
    with SIZES["double"].context():
        if isinstance(actions, Box) and d == 2:
            image, text = fields(task, drawn)
        elif isinstance(actions, Box) and d > 2:
            image, text = slices(task, drawn, actions)
        elif d == 1:
            image, text = curves(task, drawn)
        else:
            image, text = scattered(task, drawn)
    if getattr(task, "scaled", False):
        text += (
            " f is in its own units, as f* is; methods play it without its mean, f and every g_j "
            "over their deviations in the box."
        )
    if settings:
        text += " The data are a look-alike, generated from published facts."
    elif drawn_anew(task):
        text += " The functions of seed 0; every seed draws its own."
    return image, {"text": text, "alt": f"{name}: f and where it is feasible"}


def drawn_anew(task: Problem) -> bool:
    """Whether every seed has functions of its own."""
    return task.known_instance() is None and task.facts()["best"] == "varies"


def fields(task: Problem, drawn: Drawn) -> tuple[Any, str]:
    """One field, or one for each phase of functions that move."""
    firsts = [1, *(t + 1 for t, _ in drawn.changes())]
    image, axes = page(len(firsts), height=2.3) if len(firsts) > 1 else single()
    for axis, t, letter in zip(axes, firsts, "abcdefgh", strict=False):
        field(
            axis,
            task,
            drawn,
            t,
            f"({letter}) f from round {t} on" if len(firsts) > 1 else "f",
            len(firsts) == 1,
        )
    return (
        image,
        "f in grey with contours, hatched where some constraint is violated, and the optimum as "
        "a star.",
    )


def single() -> tuple[Any, list[Any]]:
    """A figure with one axis."""
    image = Image(replace(SIZES["double"], width=3.9), 3.1)
    return image, [image.subplots()]


def slices(task: Problem, drawn: Drawn, box: Box) -> tuple[Any, str]:
    """f along each coordinate through the optimum."""
    star, shown = best(task, drawn, 1), min(box.d, MOST_SLICES)
    image, axes = page(shown, height=1.75)
    f_star = own_units(task, values(drawn, 1, star[None])[:, 0])[0]
    for i, axis in enumerate(axes):
        line = np.linspace(box.low[i], box.high[i], LINE)
        points = np.tile(star, (LINE, 1))
        points[:, i] = line
        found = values(drawn, 1, points)
        axis.plot(line, own_units(task, found[:, 0]), color=CURVE)
        hatch(axis, line, worst(task, found) > 0)
        axis.plot(
            star[i], f_star, marker="*", color=STAR, markersize=8, markeredgecolor="white", zorder=5
        )
        plain_axis(axis, "", f"x{chr(0x2081 + i)}", "f" if i % ACROSS == 0 else "")
    more = f" (the first {shown} of {box.d} coordinates)" if shown < box.d else ""
    return image, (
        f"f along each coordinate{more}, the others as in the optimum (star); hatched where a "
        "constraint is violated."
    )


def curves(task: Problem, drawn: Drawn) -> tuple[Any, str]:
    """f and the constraints over one dimension."""
    actions = task.actions
    if isinstance(actions, Finite):
        assert actions.points is not None
        line, found = actions.points[:, 0], values(drawn, 1, np.arange(actions.n))
    else:
        line = np.linspace(actions.low[0], actions.high[0], LINE)
        found = values(drawn, 1, line[:, None])
    order = np.argsort(line)
    line, found = line[order], found[order]
    image, (left, right) = page(2)
    f = own_units(task, found[:, 0])
    left.plot(line, f, color=CURVE)
    hatch(left, line, worst(task, found) > 0)
    star = best(task, drawn, 1)
    left.plot(
        star[0],
        np.interp(star[0], line, f),
        marker="*",
        color=STAR,
        markersize=9,
        zorder=5,
    )
    right.plot(line, task.settle(found[:, 1:]), color=OTHER)
    right.axhline(0, color="0.6", linewidth=0.6)
    plain_axis(left, "(a) f", "x")
    plain_axis(right, "(b) g" if found.shape[1] == 2 else "(b) every g_j", "x")
    return (
        image,
        "(a) f, hatched where infeasible, the optimum as a star. (b) Every g: feasible where at "
        "most 0.",
    )


def scattered(task: Problem, drawn: Drawn) -> tuple[Any, str]:
    """The actions of a finite set: in their two coordinates, or f against the constraint."""
    actions = task.actions
    assert isinstance(actions, Finite)
    found = values(drawn, 1, np.arange(actions.n))
    bad = (task.settle(found[:, 1:]) > 0).any(axis=1)
    star = int(drawn.best(1)[0])
    image, (axis,) = single()
    if actions.d == 2:
        assert actions.points is not None
        x, y = actions.points.T
        shades = {"cmap": "viridis", "vmin": found[:, 0].min(), "vmax": found[:, 0].max()}
        seen = axis.scatter(x[~bad], y[~bad], c=found[~bad, 0], marker="o", s=26, **shades)
        axis.scatter(x[bad], y[bad], c=found[bad, 0], marker="x", s=18, linewidths=1.1, **shades)
        image.colorbar(seen, ax=axis, label="f")
        axis.plot(
            x[star],
            y[star],
            marker="o",
            fillstyle="none",
            color=STAR,
            markersize=11,
            markeredgewidth=1.6,
        )
        plain_axis(axis, "", "x₁", "x₂")
        return image, "Every action, coloured by f; crosses are infeasible, the optimum has a ring."
    over = task.settle(found[:, 1:]).max(axis=1)
    axis.scatter(over[~bad], found[~bad, 0], color=CURVE, marker="o", s=16)
    axis.scatter(over[bad], found[bad, 0], color=OTHER, marker="x", s=16, linewidths=1.0)
    axis.plot(
        over[star], found[star, 0], marker="*", color=STAR, markersize=10, markeredgecolor="white"
    )
    axis.axvline(0, color="0.6", linewidth=0.6)
    plain_axis(axis, "", "g" if found.shape[1] == 2 else "largest g_j", "f")
    return (
        image,
        "A point for every action: f against the constraint, feasible (dots) up to 0; the "
        "optimum as a star.",
    )


def hatch(axis: Any, line: Array, bad: NDArray[np.bool_]) -> None:
    """Hatches the parts of a line that are infeasible."""
    look = {"facecolor": "none", "edgecolor": "0.6", "hatch": HATCH, "linewidth": 0.0}
    axis.fill_between(line, 0, 1, where=bad, transform=axis.get_xaxis_transform(), **look)
