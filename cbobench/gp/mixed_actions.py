"""Action sets of floats, whole numbers and choices: a box whose points stand for actions.

A model sees a whole number rounded, and a choice as one coordinate per value, any two equally far
apart. So its kernel rounds and encodes inside, and is constant between two values
(Garrido-Merchán & Hernández-Lobato 2020); of choices it takes the weighted Hamming distance.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from cbobench.gp.box_actions import Box, sobol
from cbobench.gp.kernels import Array, Indices, Mask, StationaryName

ENUMERATED = 512  # combinations of whole numbers and choices that are all among the candidates
FEWEST = 8  # candidates of each of them
WIDEST = 0.5  # largest spacing of candidates, in the floats
NEAR = 8  # values on both sides of a whole number that are tried in its place
FAR = 16  # values of all its range that are, too


@dataclass(frozen=True)
class Input:
    """What an action set reads of an input.

    Attributes:
        name: what the user calls it.
        kind: "float", "int" or "choice".
        low, high: its range; 0 and the number of choices less one.
        log: whether it is scaled by its logarithm.
        choices: of a category.
    """

    name: str
    kind: str
    low: float
    high: float
    log: bool = False
    choices: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Mixed(Box):
    """Points of d typed inputs: floats, whole numbers, and numbers of choices.

    In the unit cube every whole number and every choice has a part of its side, parts of one
    length unless they are scaled by logarithms: uniform points are uniform over values. Every
    point of the cube stands for an action.

    Args:
        types: of the inputs.
    """

    types: Sequence[Input] = ()

    @classmethod
    def of(
        cls, types: Sequence[Input], kernel_name: StationaryName, lengthscale: float, size: int
    ) -> Mixed:
        """Return all actions of some inputs, with at least `size` candidates."""
        combinations = _count_combinations(types)
        if combinations <= ENUMERATED:
            size = max(size, FEWEST * int(combinations))
        return cls(
            low=np.array([t.low for t in types], dtype=float),
            high=np.array([t.high for t in types], dtype=float),
            kernel_name=kernel_name,
            lengthscale=lengthscale,
            size=size,
            meshed=False,
            types=tuple(types),
        )

    # What an input is -----------------------------------------------------------------------------

    @cached_property
    def held(self) -> Mask:
        return np.array([t.kind != "float" for t in self.types])

    @cached_property
    def logs(self) -> Mask:
        """Inputs that are scaled by their logarithms, (d,)."""
        return np.array([t.log for t in self.types])

    @cached_property
    def firsts(self) -> Indices:
        return find_firsts(self._widths)

    @property
    def width(self) -> int:
        return sum(self._widths)

    @cached_property
    def _widths(self) -> list[int]:
        return [len(t.choices) or 1 for t in self.types]

    @cached_property
    def floats(self) -> Indices:
        return self.firsts[~self.held]

    def numbers(self, points: Array) -> Array:
        return points[..., [not t.choices for t in self.types]]

    def round(self, points: Array) -> Array:
        return np.where(self.held, np.round(points), points)

    def write(self, x: Array) -> dict[str, Any]:
        """Return a point (d,) as users write it, values by name."""
        coded = self.code(x)
        chosen = {t.name: t.choices[coded[t.name]] for t in self.types if t.choices}
        return {**coded, **chosen}

    def read(self, values: Mapping[str, Any]) -> Array:
        """Return the point (d,) of values by name, as `write` gives them."""
        numbers_of = {t.name: t.choices.index(values[t.name]) for t in self.types if t.choices}
        return self.decode({**values, **numbers_of})

    def code(self, x: Array) -> dict[str, Any]:
        """Return a point (d,) by name, of a choice its number (see `InputSpace.code`)."""
        return {
            t.name: value if t.kind == "float" else int(value)
            for t, value in zip(self.types, x.tolist(), strict=True)
        }

    def decode(self, coded: Mapping[str, Any]) -> Array:
        """Return the point (d,) of values as `code` gives them."""
        return np.array([coded[t.name] for t in self.types], dtype=float)

    # Coordinates ----------------------------------------------------------------------------------

    def _scaled(self, values: Array) -> Array:
        """Return values (..., d), of some inputs their logarithms."""
        return np.where(self.logs, np.log(np.where(self.logs, values, 1.0)), values)

    @cached_property
    def _ends(self) -> tuple[Array, Array]:
        """Both ends of the sides, (d,) each: half a step beyond the first and the last value."""
        half = 0.5 * self.held
        return self._scaled(self.low - half), self._scaled(self.high + half)

    def unit(self, points: Array) -> Array:
        low, high = self._ends
        return np.clip((self._scaled(points) - low) / (high - low), 0.0, 1.0)

    def scale(self, units: Array) -> Array:
        low, high = self._ends
        values = low + units * (high - low)
        values = np.where(self.logs, np.exp(np.where(self.logs, values, 0.0)), values)
        return np.clip(self.round(values), self.low, self.high)

    def snap(self, units: Array) -> Array:
        return np.where(self.held, self.unit(self.scale(units)), units)

    def embed(self, units: Array) -> Array:
        points = self.scale(units)
        units = self.snap(units)
        columns = []
        for i, t in enumerate(self.types):
            if t.choices:
                columns.append(encode_choices(points[..., i].astype(np.intp), len(t.choices)))
            else:
                columns.append(units[..., i, None])
        return np.concatenate(columns, axis=-1)

    # Candidates -----------------------------------------------------------------------------------

    def _values(self, i: int) -> Array:
        """Return all values of a whole number, or numbers of choices."""
        return np.arange(self.low[i], self.high[i] + 1)

    def _values_beside(self, i: int, value: float) -> Array:
        """Return values that are tried in the place of one, as many for each."""
        low = self.low[i]
        high = self.high[i]
        if self.types[i].choices or high - low < 2 * NEAR + FAR:
            return self._values(i)
        near = value + np.delete(np.arange(-NEAR, NEAR + 1), NEAR)
        shares = np.linspace(0, 1, FAR)
        far = low + (high - low) * shares
        if self.logs[i]:
            far = low * (high / low) ** shares
        return np.clip(np.concatenate([near, np.floor(far)]), low, high)

    @cached_property
    def combinations(self) -> Array | None:
        """All combinations of whole numbers and choices, points of the cube (C, d); None if they
        are more than `ENUMERATED`.
        """
        if _count_combinations(self.types) > ENUMERATED:
            return None
        held = np.flatnonzero(self.held).tolist()
        rows = [*product(*(self._values(i) for i in held))]
        points = np.tile(self.low, (len(rows), 1))
        points[:, held] = rows
        return self.unit(points)

    @property
    def spacing(self) -> float:
        share = self.size ** (-1 / self.d)
        if self.combinations is not None:
            share = (self.size / len(self.combinations)) ** (-1 / len(self.floats))
        return min(float(share), WIDEST)

    def spread(self, count: int) -> Array:
        """Return at least `count` points: as many of every combination, if they are enumerated."""
        combinations = self.combinations
        if combinations is None:
            return self.snap(sobol(self.d, count))
        # Each has a part of the sequence of its own, and all have one point before any has two.
        each = 1 << int(np.ceil(np.log2(max(FEWEST, count / len(combinations)))))
        floats = sobol(len(self.floats), each * len(combinations))
        points = np.tile(combinations, (each, 1, 1))
        points[..., ~self.held] = floats.reshape(len(combinations), each, -1).swapaxes(0, 1)
        return points.reshape(-1, self.d)

    def widen(self, low: Array, high: Array, units: Array) -> tuple[Array, Array]:
        """Return the corners (d,) of a region about a point of the cube, (d,) each, in which its
        whole numbers may change by 1 at least and its choices to any.
        """
        points = self.scale(units)
        below = self.unit(self.round(np.maximum(points - 1, self.low)))
        above = self.unit(self.round(np.minimum(points + 1, self.high)))
        is_choice = np.array([bool(t.choices) for t in self.types])
        low = np.where(self.held, np.minimum(low, below), low)
        high = np.where(self.held, np.maximum(high, above), high)
        return np.where(is_choice, 0.0, low), np.where(is_choice, 1.0, high)

    def limit_changes(self, units: Array, centre: Array, most: int, generator: Any) -> Array:
        """Return different points of the cube, at most q, made of q points (q, d): of each at most
        so many whole numbers and choices differ from those of a centre (d,), which ones and how
        many is at random.
        """
        count = int(self.held.sum())
        order = generator.random((len(units), count)).argsort(axis=1, kind="stable")
        is_free = np.ones(units.shape, dtype=bool)
        is_free[:, self.held] = order < generator.integers(0, 1 + most, size=(len(units), 1))
        return np.unique(self.snap(np.where(is_free, units, centre)), axis=0)

    def change_once(self, units: Array) -> Array:
        """Return points of the cube (S, d) with another value of one whole number or choice: (S, k,
        d), of many values some that are near and some that are spread.
        """
        points = self.scale(units)
        changed = []
        for i in np.flatnonzero(self.held).tolist():
            values = np.stack([self._values_beside(i, value) for value in points[:, i]])
            moved = np.repeat(points[:, None], values.shape[1], axis=1)
            moved[..., i] = values
            changed.append(moved)
        return np.where(self.held, self.unit(np.concatenate(changed, axis=1)), units[:, None])


def find_firsts(widths: Sequence[int]) -> Indices:
    """Return the first coordinate of every input, of which each has that many."""
    return np.cumsum([0, *widths[:-1]], dtype=np.intp)


def encode_choices(which: Any, count: int) -> Array:
    """Return 1/√2 in the place of each choice (...), an index below `count`, and 0 elsewhere, (...,
    count): distances are 0 and 1.
    """
    return np.eye(count)[which] * np.sqrt(0.5)


def _count_combinations(types: Sequence[Input]) -> float:
    """Return how many combinations of whole numbers and choices there are."""
    return float(np.prod([t.high - t.low + 1.0 for t in types if t.kind != "float"]))
