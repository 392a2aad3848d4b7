"""A short play of a method as a picture: where it plays in two dimensions, its regret and its
violation.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cbobench import params
from cbobench.algorithms import ALGORITHMS
from cbobench.errors import CbobenchError
from cbobench.gp.actions import Finite
from cbobench.gp.kernels import Array
from cbobench.metrics import METRICS
from cbobench.play.play import Play
from cbobench.problems import PROBLEMS
from cbobench.problems.base import Problem
from cbobench.problems.data import DataFolder
from cbobench.report.figures.style import SIZES, look_of, mix_colour
from website import draw

PROBLEM = "gramacy"
ROUNDS, SEEDS, GRID = 50, 5, 25
DEAR = "torch"  # whose methods play one seed


def settings_for(cls: type[Any]) -> dict[str, Any]:
    """The problem's parameters with which it offers what a method needs."""
    finite = cls.needs & {"a finite action set", "a safe seed set"}
    shown = "full information of the constraints" in cls.needs
    return ({"grid": GRID} if finite else {}) | ({"full_information": True} if shown else {})


@cache
def make_problem(**settings: Any) -> Problem:
    """The prepared problem."""
    problem: Problem = params.build(PROBLEMS.get(PROBLEM), settings)
    problem.prepare(DataFolder())
    return problem


def refusal(cls: type[Any], settings: dict[str, Any]) -> str:
    """Why a method does not play it; empty where it does."""
    problem = make_problem(**settings)
    if lacking := cls.needs - problem.offers():
        return f"it needs {' and '.join(sorted(lacking))}, which {PROBLEM} does not offer"
    try:
        params.build(cls, {}).check(problem)
    except CbobenchError as error:
        return str(error)
    return ""


def picture(name: str, settings: dict[str, Any]) -> tuple[Any, dict[str, str]]:
    """A figure, and what is said of it: text, alt and cost."""
    cls, problem = ALGORITHMS.get(name), make_problem(**settings)
    seeds = 1 if DEAR in cls.libraries else SEEDS
    play = Play(problem, PROBLEM, params.build(cls, {}), name, range(seeds), ROUNDS)
    chunks = list(play)
    played = np.concatenate([chunk.actions for chunk in chunks])[:, 0]
    points = problem.actions.points[played] if isinstance(problem.actions, Finite) else played  # type: ignore[index]
    cost = 1e6 * play.seconds / (seeds * ROUNDS)
    look = look_of(name)
    with SIZES["double"].context():
        image, (field, *curves) = draw.page(3, (1.25, 1, 1), 2.2)
        draw.field(field, problem, play.instances, 1, "(a) f", numbers=False)
        violated = np.concatenate([(chunk.metrics.g > 0).any(axis=2) for chunk in chunks])[:, 0]
        points_of(field, points, violated, look.colour)
        for axis, metric, letter in zip(curves, ("regret", "violation_hard"), "bc", strict=True):
            values = np.concatenate([chunk.metrics.values[metric] for chunk in chunks])
            rounds = np.arange(1, ROUNDS + 1)
            low, middle, high = np.quantile(values, (0.25, 0.5, 0.75), axis=1)
            axis.fill_between(rounds, low, high, color=look.colour, alpha=0.2, linewidth=0)
            axis.plot(rounds, middle, color=look.colour)
            draw.plain_axis(axis, f"({letter}) {METRICS[metric].symbol}", "round t")
            axis.axhline(0, color="0.6", linewidth=0.6, zorder=0.2)
    given = "".join(f", {key}: {str(value).lower()}" for key, value in settings.items())
    over = f"medians of {seeds} seeds with quartiles" if seeds > 1 else "of that seed"
    text = (
        f"{ROUNDS} rounds on {PROBLEM}{given}, all parameters at their defaults. (a) The actions "
        "of seed 0, from light "
        "(first) to dark (last), crosses where a constraint is violated; f in grey, hatched "
        "where infeasible, and the "
        f"optimum as a star. (b) Cumulative regret and (c) stronger violation, {over}. (A "
        "negative regret is earned by "
        "infeasible play.)"
    )
    total = {
        metric: float(np.median(play.metrics.final[metric]))
        for metric in ("regret", "violation_hard")
    }
    alt = (
        f"{name} on {PROBLEM}: after {ROUNDS} rounds the median regret is {total['regret']:.3g}, "
        f"the median violation {total['violation_hard']:.3g}"
    )
    return image, {"text": text, "alt": alt, "cost": f"{float(f'{cost:.2g}'):,.0f}"}


def points_of(axis: Any, points: Array, violated: NDArray[np.bool_], colour: str) -> None:
    """The actions of one seed, (T, d), with what is violated, (T,)."""
    shares = np.linspace(0.6, 0.0, len(points))
    colours = np.array([mix_colour(colour, share, 255.0) for share in shares])
    bad, good = points[violated], points[~violated]
    axis.scatter(*bad.T, c=colours[violated], marker="x", s=14, linewidths=1.0, zorder=3)
    axis.scatter(
        *good.T,
        c=colours[~violated],
        marker="o",
        s=14,
        edgecolors="white",
        linewidths=0.4,
        zorder=4,
    )
