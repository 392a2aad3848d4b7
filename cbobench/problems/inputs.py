"""Typed inputs: floats, whole numbers and categories, as a finite set of configurations under a kernel.

A whole number has one coordinate, at its value; a category has one coordinate per choice, so that any two choices are
equally far apart. A model on these coordinates is one whose kernel rounds and encodes inside
(Garrido-Merchán & Hernández-Lobato 2020), and no configuration stands for another.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from cbobench.errors import Misuse, refuse_strange, show, unknown
from cbobench.gp.box_actions import sobol
from cbobench.gp.kernels import Array
from cbobench.params import LARGEST
from cbobench.problems.columns import encode_categories, write_number

KINDS = ("float", "int", "choice")
DIGITS = 6  # significant digits of a float of a wide range, so that a configuration can be printed and typed
MOST = 2**53  # largest whole number that a float holds, with all below it
Configuration = dict[str, Any]


def _without_numpy(value: Any) -> Any:
    """Return NumPy's scalars, alone or in a tuple, as Python's."""
    if type(value) is tuple:
        return tuple(_without_numpy(element) for element in value)
    return value.item() if isinstance(value, np.generic) else value


def _is_plain(value: Any) -> bool:
    if isinstance(value, tuple):
        return all(_is_plain(element) for element in value)
    return value is None or (isinstance(value, str | int | float) and value == value)


def _stored(value: Any) -> Any:
    return str(value) if isinstance(value, tuple) or (isinstance(value, float) and math.isinf(value)) else value


@dataclass(frozen=True)
class InputType:
    """One input.

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

    @classmethod
    def of(cls, name: str, declaration: Any) -> InputType:
        """Read {"int": [32, 512], "log": True}, {"float": [1e-4, 0.1]} or {"choice": ["relu", "tanh"]}.

        Raises:
            Misuse: anything else.
        """
        label = f"inputs: {show(name)}"
        if not isinstance(declaration, Mapping) or len({*declaration} & {*KINDS}) != 1:
            allowed = "{float: [low, high]}, {int: [low, high]} or {choice: [values]}"
            raise Misuse(f"{label} is {show(declaration)}; allowed: {allowed}, with log: true if it is scaled so")
        for key in declaration:
            if key not in (*KINDS, "log"):
                raise unknown("key", key, (*KINDS, "log"), location=f"{label}: ")
        kind = next(key for key in KINDS if key in declaration)
        values, log = declaration[kind], declaration.get("log", False)
        if not isinstance(values, list | tuple):
            raise Misuse(f"{label}: {kind} is {show(values)}; it must be a list")
        values = [_without_numpy(value) for value in values]
        if kind == "choice":
            cls._check_choices(values, label)
            if log:
                raise Misuse(f"{label}: choice is {show(values)}; give the values without log")
            return cls(name, kind, 0, len(values) - 1, False, tuple(values))
        numbers = all(isinstance(v, int | float) and not isinstance(v, bool) and abs(v) < LARGEST for v in values)
        if len(values) != 2 or not numbers or not values[0] < values[1]:
            raise Misuse(f"{label}: {kind} is {show(values)}; give two numbers, [low, high], low below high")
        if kind == "int" and any(v != int(v) or abs(v) > MOST for v in values):
            raise Misuse(f"{label}: int is {show(values)}; the ends must be whole numbers of at most {MOST:,}")
        if log and values[0] <= 0:
            raise Misuse(f"{label}: log of {values[0]:g} does not exist; begin above 0, or leave log out")
        return cls(name, kind, values[0], values[1], bool(log))

    @staticmethod
    def _check_choices(values: Sequence[Any], label: str) -> None:
        """Raises `Misuse` for choices that cannot be compared, stored and read."""
        for value in values:
            if not _is_plain(value):
                allowed = "text, numbers, True, False, None and tuples of them"
                fix = "name it by a text, and look that up in simulate"
                raise Misuse(f"{label}: choice holds {show(value)} ({type(value).__name__}); allowed: {allowed}; {fix}")
            refuse_strange(str(value), f"{label}: choice", lines=True)
        if len(values) < 2:
            raise Misuse(
                f"{label}: choice is {show(values)}; give two or more different values, or leave the input out"
            )
        for a, b in itertools.combinations(values, 2):
            if a == b or str(a) == str(b):
                why = "are equal" if a == b else "look alike in tables"
                quote = "" if isinstance(a, str) or isinstance(b, str) else ", or quote what is text, such as '1.10'"
                raise Misuse(
                    f"{label}: choice holds {show(a)} and {show(b)}, which {why}; give different values{quote}"
                )

    @property
    def range(self) -> str:
        """Its ends in words."""
        return f"{write_number(self.low)} to {write_number(self.high)}"

    @property
    def count(self) -> int | None:
        """Number of values; None of a float."""
        return None if self.kind == "float" else int(self.high - self.low) + 1

    def values(self) -> list[Any]:
        """All values of a whole number or a category."""
        return list(self.choices) if self.kind == "choice" else list(range(int(self.low), int(self.high) + 1))

    def at(self, unit: Array) -> list[Any]:
        """Values at coordinates in [0, 1), (n,): equally many of each whole number or choice, unless it is log."""
        if self.kind == "float":
            largest = max(abs(self.low), abs(self.high))
            # Of a range that is narrow beside its ends, six digits would be one value, or lie outside.
            digits = DIGITS + max(0, math.ceil(math.log10(largest / (self.high - self.low))) - 2)
            rounded = (float(f"{value:.{digits}g}") for value in self._stretch(unit, self.low, self.high))
            return [min(max(value, self.low), self.high) for value in rounded]
        wide = self._stretch(unit, self.low - 0.5, self.high + 0.5)
        index = np.clip(np.round(wide), self.low, self.high).astype(int).tolist()
        return [self.choices[i] for i in index] if self.kind == "choice" else index

    def _stretch(self, unit: Array, low: float, high: float) -> Array:
        if self.log:
            return np.asarray(np.exp(math.log(low) + unit * (math.log(high) - math.log(low))))
        return low + unit * (high - low)

    def encode(self, values: Sequence[Any]) -> Array:
        """Coordinates of values: (n, 1) in [0, 1], or (n, choices) at a distance of 1 from one another."""
        if self.kind == "choice":
            return encode_categories([self.choices.index(value) for value in values], len(self.choices))
        x = np.array(values, dtype=np.float64)[:, None]
        if self.log:
            return np.asarray((np.log(x) - math.log(self.low)) / (math.log(self.high) - math.log(self.low)))
        return (x - self.low) / (self.high - self.low)


@dataclass(frozen=True)
class InputSpace:
    """Configurations of typed inputs.

    Attributes:
        types: in the user's order.
        configurations: all of them, or some if there are too many.
        points: their coordinates, (n, d).

    Class attributes:
        measured: whether a method is told which configuration was played in the place of the one it suggested. If not,
            the result is told as that of the suggested one, which it is but for rounding.
    """

    measured: ClassVar[bool] = False

    types: tuple[InputType, ...]
    configurations: tuple[Configuration, ...]
    points: Array

    @classmethod
    def of(cls, declarations: Any, most: int) -> InputSpace:
        """Read a class's `inputs`; at most `most` configurations.

        All of them if no input is a float and they are not more; else those at the first points of a Sobol sequence.

        Raises:
            Misuse: `InputType.of`; no inputs.
        """
        named = isinstance(declarations, Mapping) and all(isinstance(name, str) and name for name in declarations)
        if not named or not declarations:
            raise Misuse(
                f"inputs is {show(declarations)}; give a mapping of names to types, {{'width': {{'int': [32, 512]}}}}"
            )
        types = tuple(InputType.of(name, declaration) for name, declaration in declarations.items())
        counts = [input_type.count for input_type in types]
        total = math.prod(count or most + 1 for count in counts)
        if total <= most:
            combinations = list(itertools.product(*(input_type.values() for input_type in types)))
        else:
            unit = sobol(len(types), most)
            columns = [input_type.at(unit[:, i]) for i, input_type in enumerate(types)]
            # Different points of the sequence may round to one configuration.
            combinations = list(dict.fromkeys(zip(*columns, strict=True)))
        columns = [list(column) for column in zip(*combinations, strict=True)]
        parts = [input_type.encode(column) for input_type, column in zip(types, columns, strict=True)]
        names = [input_type.name for input_type in types]
        return cls(
            types,
            tuple(dict(zip(names, values, strict=True)) for values in combinations),
            np.concatenate(parts, axis=1),
        )

    @property
    def complete(self) -> bool:
        """Whether every configuration is one of them."""
        played = len(self.configurations)
        return math.prod(input_type.count or played + 1 for input_type in self.types) == played

    def columns(self) -> dict[str, list[Any]]:
        """Values of every input at all configurations, as a run stores them: tuples and infinities as text."""
        names = [input_type.name for input_type in self.types]
        return {name: [_stored(configuration[name]) for configuration in self.configurations] for name in names}

    def code(self, configuration: Mapping[str, Any]) -> Configuration:
        """Return the values by name, of a category the number of its choice: libraries cast and compare them."""
        choices = {input_type.name: input_type.choices for input_type in self.types}
        return {name: c.index(configuration[name]) if c else configuration[name] for name, c in choices.items()}

    def decode(self, coded: Mapping[str, Any]) -> Configuration:
        """Return the configuration that `code` gave."""
        choices = {input_type.name: input_type.choices for input_type in self.types}
        return {name: c[int(coded[name])] if c else coded[name] for name, c in choices.items()}

    def find(self, configuration: Any, noun: str) -> int:
        """Return the index of a configuration.

        Raises:
            Misuse: it is none of them; the nearest is named.
        """
        names = [input_type.name for input_type in self.types]
        if not isinstance(configuration, Mapping) or {*configuration} != {*names}:
            raise Misuse(f"{noun} is {show(configuration)}; it must give {', '.join(names)}")
        for input_type in self.types:
            value = configuration[input_type.name]
            inside = value in input_type.choices if input_type.choices else isinstance(value, int | float)
            if not inside or (not input_type.choices and not input_type.low <= value <= input_type.high):
                allowed = ", ".join(map(str, input_type.choices)) or input_type.range
                raise Misuse(f"{noun}: {input_type.name} is {show(value)}; allowed: {allowed}")
        if (values := dict(configuration)) in self.configurations:
            return self.configurations.index({name: values[name] for name in names})
        near = self.configurations[self.nearest(values)]
        raise Misuse(f"{noun} is none of the {len(self.configurations):,} configurations played; the nearest is {near}")

    def encode(self, configuration: Configuration) -> Array:
        """Return coordinates (1, d) of values by name."""
        return np.concatenate(
            [input_type.encode([configuration[input_type.name]]) for input_type in self.types], axis=1
        )

    def nearest(self, configuration: Configuration) -> int:
        """Return the index of the nearest configuration, in the kernel's coordinates."""
        return self._index(self.encode(configuration))

    def at(self, x: Array) -> Configuration:
        """Return the configuration at coordinates (d,)."""
        return self.configurations[self._index(x)]

    def _index(self, x: Array) -> int:
        return int(((self.points - x) ** 2).sum(axis=1).argmin())
