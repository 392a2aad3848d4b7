"""A short play of a method as a picture: where it plays in two dimensions, its regret and its
violation.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import seaborn

from cbobench import params
from cbobench.algorithms import ALGORITHMS
from cbobench.errors import CbobenchError
from cbobench.gp.actions import Finite
from cbobench.metrics import METRICS
from cbobench.play.play import Play
from cbobench.problems import PROBLEMS
from cbobench.problems.base import Problem
from cbobench.problems.data import DataFolder
from cbobench.report.figures.layout import Image
from cbobench.report.figures.style import SIZES, look_of
from cbobench.rng import generator
from website.draw import HEIGHT, draw_field

PROBLEM = "gramacy"
ROUNDS, SEEDS, GRID = 50, 5, 25
DEAR = "torch"  # whose methods play one seed


def choose_settings(cls: type[Any]) -> dict[str, Any]:
    """The problem's parameters with which it offers what a method needs."""
    settings: dict[str, Any] = {}
    if cls.needs & {"a finite action set", "a safe seed set"}:
        settings["grid"] = GRID
    if "full information of the constraints" in cls.needs:
        settings["full_information"] = True
    return settings


@cache
def make_problem(**settings: Any) -> Problem:
    """The prepared problem."""
    problem: Problem = params.build(PROBLEMS.get(PROBLEM), settings)
    problem.prepare(DataFolder())
    return problem


def explain_refusal(cls: type[Any], settings: dict[str, Any]) -> str:
    """Why a method does not play it; empty where it does."""
    problem = make_problem(**settings)
    if lacking := cls.needs - problem.offers():
        return f"it needs {' and '.join(sorted(lacking))}, which {PROBLEM} does not offer"
    try:
        params.build(cls, {}).check(problem)
    except CbobenchError as error:
        return str(error)
    return ""


def draw_play(name: str, settings: dict[str, Any]) -> tuple[Image, str]:
    """A figure of a method's play, and its caption."""
    cls, problem = ALGORITHMS.get(name), make_problem(**settings)
    seeds = 1 if DEAR in cls.libraries else SEEDS
    chunks = list(Play(problem, PROBLEM, params.build(cls, {}), name, range(seeds), ROUNDS))
    colour = look_of(name).colour
    rounds = np.arange(1, ROUNDS + 1)

    # What seed 0 played; the field is of the whole box, though a grid of it may be played.
    played = np.concatenate([chunk.actions for chunk in chunks])[:, 0]
    if isinstance(problem.actions, Finite):
        assert problem.actions.points is not None
        played = problem.actions.points[played]
    violated = np.concatenate([(chunk.metrics.g > 0).any(axis=2) for chunk in chunks])[:, 0]
    box = make_problem()
    with SIZES["double"].context():
        image = Image(SIZES["double"], HEIGHT)
        field, *others = image.subplots(1, 3, width_ratios=(1.25, 1, 1))
        draw_field(field, box, box.draw([generator("instance", PROBLEM, 0)]))
        shades = seaborn.light_palette(colour, as_cmap=True)
        for marker, chosen in (("o", ~violated), ("x", violated)):
            field.scatter(
                *played[chosen].T,
                c=rounds[chosen],
                vmin=-ROUNDS / 2,
                vmax=ROUNDS,
                cmap=shades,
                marker=marker,
                s=14,
                zorder=3,
            )
        field.set_title("(a) f")

        # Medians over seeds with quartiles.
        for axis, metric, letter in zip(others, ("regret", "violation_hard"), "bc", strict=True):
            values = np.concatenate([chunk.metrics.values[metric] for chunk in chunks])
            low, middle, high = np.quantile(values, (0.25, 0.5, 0.75), axis=1)
            axis.fill_between(rounds, low, high, color=colour, alpha=0.2, linewidth=0)
            axis.plot(rounds, middle, color=colour)
            axis.axhline(0, color="0.6", linewidth=0.6, zorder=0.2)
            axis.set(title=f"({letter}) {METRICS[metric].symbol}", xlabel="round t")
        seaborn.despine(image)
    given = "".join(f", {key}: {str(value).lower()}" for key, value in settings.items())
    over = f"medians of {seeds} seeds with quartiles" if seeds > 1 else "of that seed"
    return image, (
        f"{ROUNDS} rounds on {PROBLEM}{given}, all parameters at their defaults. (a) The actions "
        "of seed 0, from light (first) to dark (last), crosses where a constraint is violated; f "
        "in grey, hatched where infeasible, and the optimum as a star. (b) Cumulative regret and "
        f"(c) stronger violation, {over}. (A negative regret is earned by infeasible play.)"
    )
