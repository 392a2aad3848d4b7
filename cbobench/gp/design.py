"""Initial designs: the first actions of every method of a suite, the same ones for a seed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from cbobench.errors import Misuse
from cbobench.gp.actions import Finite
from cbobench.gp.box import Box, scrambled
from cbobench.gp.kernels import Array

DesignName = Literal["sobol", "random"]


def design(
    actions: Finite | Box, name: DesignName, count: int, generators: Sequence[np.random.Generator]
) -> NDArray[Any]:
    """The first `count` actions of S replicates: indices (count, S) of a finite set, or points (count, S, d) of a box.

    `sobol`: the actions nearest to a Sobol sequence that each generator scrambles anew, none twice; without
    coordinates, random ones. `random`: uniform, none twice. Of a box both take scattered candidates, so that a method
    that samples paths at these learns from the same actions as all others. Designs of different seeds are independent:
    they share a point as often as chance has it.

    Raises:
        Misuse: the set has fewer actions, or the box fewer candidates.
    """
    return np.stack([_one(actions, name, count, generator) for generator in generators], axis=1)


def check_design(actions: Finite | Box, count: int) -> None:
    """Raises `Misuse` where there are too few actions, or candidates, for so many rounds."""
    most, what = (actions.n, "actions") if isinstance(actions, Finite) else (actions.size, "candidates")
    if count > most:
        raise Misuse(f"an initial design of {count} rounds, but there are {most} {what}; give fewer rounds")


def _one(actions: Finite | Box, name: DesignName, count: int, generator: np.random.Generator) -> NDArray[Any]:
    check_design(actions, count)
    if isinstance(actions, Finite) and actions.points is None:
        return generator.permutation(actions.n)[:count]
    units = actions.scattered if isinstance(actions, Box) else actions.units
    if name == "random":
        some = generator.permutation(len(units))[:count]
    else:
        some = nearest(units, scrambled(actions.d, count, generator))
    return actions.scale(units[some]) if isinstance(actions, Box) else some


def nearest(points: Array, targets: Array) -> NDArray[np.intp]:
    """The nearest of points (n, d) to each target (k, d) that no earlier target has taken, (k,)."""
    free, found = np.ones(len(points), dtype=bool), np.empty(len(targets), dtype=np.intp)
    for i, target in enumerate(targets):
        found[i] = np.where(free, ((points - target) ** 2).sum(axis=1), np.inf).argmin()
        free[found[i]] = False
    return found
