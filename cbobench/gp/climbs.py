"""Climbs to local maxima of S replicates, side by side."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from cbobench.gp.kernels import Array
from cbobench.gp.posteriors.contract import Mask

BESIDE = 0.75  # of the spacing: so far from the best point others begin
Number = TypeVar("Number", bound=np.generic)


@dataclass(slots=True)
class Climbs:
    """q climbs of S replicates.

    Attributes:
        points: where they are, (S, q, d), and `best` where they were highest.
        value: the highest score so far, (S, q), and `earlier` what it was after each of the last ones, (S, q, MEMORY).
        models: of the smooth part and the m kinked ones where the climb is, and where it was highest, (S, q, 1 + m, n).
        multipliers: of the kinks, (S, q, m).
        reach: the longest next step, (S, q), and `length` the last one that was not a correction.
        patience: steps since the last gain, (S, q).
        done: which ones have ended, (S, q).
    """

    points: Array
    best: Array
    value: Array
    earlier: Array
    models: Array
    at_best: Array
    multipliers: Array
    reach: Array
    length: Array
    patience: NDArray[np.intp]
    done: Mask

    def thinned(self, order: NDArray[np.intp]) -> Climbs:
        """Some of them, (S, k)."""
        return Climbs(*(pick(getattr(self, field.name), order) for field in fields(self)))

    def joined(self, others: Climbs) -> Climbs:
        """These and others."""
        pairs = ((getattr(self, field.name), getattr(others, field.name)) for field in fields(self))
        return Climbs(*(np.concatenate(pair, axis=1) for pair in pairs))


def pick(values: NDArray[Number], order: NDArray[np.intp]) -> NDArray[Number]:
    """Climbs (S, k) of arrays (S, q, ...)."""
    return values[np.arange(len(values))[:, None], order]


def beside(points: Array, distance: float) -> Array:
    """So far along every axis on both sides of points (S, d), in the unit cube: (S, 2 d, d)."""
    d = points.shape[1]
    moves = distance * np.concatenate([np.eye(d), -np.eye(d)])
    return np.clip(points[:, None] + moves, 0.0, 1.0)


def ranked(values: Array) -> NDArray[np.intp]:
    """Indices (S, k) from the highest of every row to the lowest; of equal ones, the first comes first."""
    return np.argsort(-values, axis=1, kind="stable")


def meeting(m: int, d: int) -> bool:
    """Whether so many of m kinks may meet that only many starts find the best point."""
    return m > 2 and d > 2
