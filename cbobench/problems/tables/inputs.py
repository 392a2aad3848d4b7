"""Typed inputs of simulators and tables: floats, whole numbers and categories, as a finite set of
configurations.

A whole number has one coordinate, at its value; a category has one coordinate per choice, so that
any two choices are equally far apart. A model on these coordinates is one whose kernel rounds and
encodes inside (Garrido-Merchán & Hernández-Lobato 2020), and no configuration stands for another.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from cbobench.errors import Misuse, nearest, refuse_strange, show, unknown
from cbobench.gp.box_actions import sobol
from cbobench.gp.kernels import Array, Indices
from cbobench.gp.mixed_actions import Input, encode_choices, find_firsts
from cbobench.params import LARGEST
from cbobench.problems.tables.columns import (
    ASIDE,
    is_finite,
    is_number,
    numbers,
    write_number,
)

if TYPE_CHECKING:
    import pandas as pd

KINDS = ("float", "int", "choice")
# significant digits of a float of a wide range, so that a configuration can be printed and typed
DIGITS = 6
MOST = 2**53  # largest whole number that a float holds, with all below it
WHOLE = re.compile(r"[-+]?\d{1,100}")
Configuration = dict[str, Any]


def _without_numpy(value: Any) -> Any:
    """Return NumPy's scalars, alone or in a tuple, as Python's."""
    if type(value) is tuple:
        return tuple(_without_numpy(element) for element in value)
    if isinstance(value, np.generic):
        return value.item()
    return value


def _is_plain(value: Any) -> bool:
    if isinstance(value, tuple):
        return all(_is_plain(element) for element in value)
    return value is None or (isinstance(value, str | int | float) and value == value)


def _stored(value: Any) -> Any:
    if isinstance(value, tuple) or (isinstance(value, float) and math.isinf(value)):
        return str(value)
    return value


def _read_log(declaration: Mapping[str, Any], label: str) -> bool:
    log = declaration.get("log", False)
    if isinstance(log, bool):
        return log
    raise Misuse(f"{label}: log is {show(log)}; allowed: true or false")


class InputType(Input):
    """One input, as a user declares it and as configurations have it."""

    @classmethod
    def of(cls, name: str, declaration: Any) -> InputType:
        """Read {"int": [32, 512], "log": True}, {"float": [1e-4, 0.1]} or {"choice": ["relu",
        "tanh"]}.

        Raises:
            Misuse: anything else.
        """
        label = f"inputs: {show(name)}"
        if not isinstance(declaration, Mapping) or len({*declaration} & {*KINDS}) != 1:
            raise Misuse(
                f"{label} is {show(declaration)}; allowed: {{float: [low, high]}}, {{int: [low, "
                "high]} or {choice: [values]}, with log: true if it is scaled so"
            )
        for key in declaration:
            if key not in (*KINDS, "log"):
                raise unknown("key", key, (*KINDS, "log"), location=f"{label}: ")

        # A list first, as all that follows looks into it.
        kind = next(key for key in KINDS if key in declaration)
        values = declaration[kind]
        log = _read_log(declaration, label)
        if not isinstance(values, list | tuple):
            raise Misuse(f"{label}: {kind} is {show(values)}; it must be a list")
        values = [_without_numpy(value) for value in values]
        if kind == "choice":
            cls._check_choices(values, label)
            if log:
                raise Misuse(f"{label}: choice is {show(values)}; give the values without log")
            return cls(name=name, kind=kind, low=0, high=len(values) - 1, choices=tuple(values))

        # Coordinates divide by the range and take its logarithm,
        # and a float holds whole numbers up to `MOST` only.
        numbers = all(is_finite(v) and abs(v) < LARGEST for v in values)
        if len(values) != 2 or not numbers or not values[0] < values[1]:
            raise Misuse(
                f"{label}: {kind} is {show(values)}; give two numbers, [low, high], low below high"
            )
        if kind == "int" and any(v != int(v) or abs(v) > MOST for v in values):
            raise Misuse(
                f"{label}: int is {show(values)}; the ends must be whole numbers of at most "
                f"{MOST:,}"
            )
        if log and values[0] <= 0:
            raise Misuse(
                f"{label}: log of {values[0]:g} does not exist; begin above 0, or leave log out"
            )
        return cls(name=name, kind=kind, low=values[0], high=values[1], log=log)

    @staticmethod
    def _check_choices(values: Sequence[Any], label: str) -> None:
        """Raises `Misuse` for choices that cannot be compared, stored and read."""
        for value in values:
            if not _is_plain(value):
                raise Misuse(
                    f"{label}: choice holds {show(value)} ({type(value).__name__}); allowed: text, "
                    "numbers, True, False, None and tuples of them; name it by a text, and look "
                    "that up in simulate"
                )
            refuse_strange(str(value), f"{label}: choice", lines=True)
        if len(values) < 2:
            raise Misuse(
                f"{label}: choice is {show(values)}; give two or more different values, or leave "
                "the input out"
            )
        # 1 and True are equal to Python; 1.1 and '1.1' are one cell of a table.
        for a, b in itertools.combinations(values, 2):
            if a == b or str(a) == str(b):
                why = "are equal" if a == b else "look alike in tables"
                if isinstance(a, str) or isinstance(b, str):
                    quote = ""
                else:
                    quote = ", or quote what is text, such as '1.10'"
                raise Misuse(
                    f"{label}: choice holds {show(a)} and {show(b)}, which {why}; give different "
                    f"values{quote}"
                )

    @property
    def declaration(self) -> dict[str, Any]:
        """What `of` reads, as a run stores it."""
        if self.choices:
            return {"choice": [_stored(choice) for choice in self.choices]}
        return {self.kind: [self.low, self.high]}

    @property
    def range(self) -> str:
        """Its ends in words."""
        return f"{write_number(self.low)} to {write_number(self.high)}"

    @property
    def count(self) -> int | None:
        """Number of values; None of a float."""
        if self.kind == "float":
            return None
        return int(self.high - self.low) + 1

    def values(self) -> list[Any]:
        """All values of a whole number or a category."""
        if self.kind == "choice":
            return list(self.choices)
        return list(range(int(self.low), int(self.high) + 1))

    def at(self, unit: Array) -> list[Any]:
        """Values at coordinates in [0, 1), (n,): equally many of each whole number or choice,
        unless it is log.
        """
        if self.kind == "float":
            largest = max(abs(self.low), abs(self.high))
            # Of a range that is narrow beside its ends, six digits would be one value, or lie
            # outside.
            digits = DIGITS + max(0, math.ceil(math.log10(largest / (self.high - self.low))) - 2)
            rounded = (
                float(f"{value:.{digits}g}") for value in self._stretch(unit, self.low, self.high)
            )
            return [min(max(value, self.low), self.high) for value in rounded]
        # Half a step beyond the ends, so that the end values get as many points as others.
        wide = self._stretch(unit, self.low - 0.5, self.high + 0.5)
        index = np.clip(np.round(wide), self.low, self.high).astype(int).tolist()
        if self.kind == "choice":
            return [self.choices[i] for i in index]
        return index

    def _stretch(self, unit: Array, low: float, high: float) -> Array:
        if self.log:
            return np.exp(math.log(low) + unit * (math.log(high) - math.log(low)))
        return low + unit * (high - low)

    def encode(self, values: Sequence[Any]) -> Array:
        """Coordinates of values: (n, 1) in [0, 1], or (n, choices) at a distance of 1 from one
        another.
        """
        if self.kind == "choice":
            return encode_choices(
                [self.choices.index(value) for value in values], len(self.choices)
            )
        # Scaled by the ends of the type, or of what was measured.
        x = np.array(values, dtype=float)[:, None]
        if self.log:
            return (np.log(x) - math.log(self.low)) / (math.log(self.high) - math.log(self.low))
        return (x - self.low) / (self.high - self.low)


def read_types(declarations: Any) -> tuple[InputType, ...]:
    """Read a class's `inputs`.

    Raises:
        Misuse: `InputType.of`; no inputs.
    """
    named = isinstance(declarations, Mapping) and all(
        isinstance(name, str) and name for name in declarations
    )
    if not named or not declarations:
        raise Misuse(
            f"inputs is {show(declarations)}; give a mapping of names to types, {{'width': "
            "{'int': [32, 512]}}"
        )
    return tuple(InputType.of(name, declaration) for name, declaration in declarations.items())


def count_configurations(types: Sequence[InputType]) -> float:
    """Return how many configurations there are, infinitely many with a float."""
    return math.prod(math.inf if t.count is None else t.count for t in types)


def check_configuration(types: Sequence[InputType], configuration: Any, noun: str) -> None:
    """Raises `Misuse` for what is no configuration of some inputs, and names the wrong value."""
    names = [t.name for t in types]
    if not isinstance(configuration, Mapping) or {*configuration} != {*names}:
        raise Misuse(f"{noun} is {show(configuration)}; it must give {', '.join(names)}")
    for t in types:
        value = configuration[t.name]
        is_inside = value in t.choices
        if not t.choices:
            is_inside = isinstance(value, int | float) and t.low <= value <= t.high
            is_inside = is_inside and (t.kind == "float" or value == int(value))
        if not is_inside:
            allowed = ", ".join(map(str, t.choices)) or t.range
            if t.kind == "int":
                allowed = f"whole numbers from {allowed}"
            raise Misuse(f"{noun}: {t.name} is {show(value)}; allowed: {allowed}")


@dataclass(frozen=True)
class InputSpace:
    """Configurations of typed inputs.

    Attributes:
        types: in the user's order.
        configurations: all of them, or some if there are too many.
        points: their coordinates, (n, d).
        axes: the types as coordinates are scaled: of configurations that were measured, from the
            least to the largest measured number, and choices in the order of their coordinates.
        measured: whether they were measured, so that nothing is known of what lies between them.
            Methods are then told which configuration was played in the place of the one they
            suggested. If not, the result is told as that of the suggested one, which it is but for
            rounding.
    """

    types: tuple[InputType, ...]
    configurations: tuple[Configuration, ...]
    points: Array
    axes: tuple[InputType, ...]
    measured: bool = False

    @classmethod
    def of(cls, types: tuple[InputType, ...], most: int) -> InputSpace:
        """Return at most `most` configurations of some inputs.

        All of them if no input is a float and they are not more; else those at the first points of
        a Sobol sequence.
        """
        if count_configurations(types) <= most:
            combinations = list(itertools.product(*(input_type.values() for input_type in types)))
        else:
            unit = sobol(len(types), most)
            columns = [input_type.at(unit[:, i]) for i, input_type in enumerate(types)]
            # Different points of the sequence may round to one configuration.
            combinations = list(dict.fromkeys(zip(*columns, strict=True)))
        values_of = zip(*combinations, strict=True)
        parts = [t.encode(values) for t, values in zip(types, values_of, strict=True)]
        names = [t.name for t in types]
        configurations = (dict(zip(names, values, strict=True)) for values in combinations)
        return cls(
            types=types,
            configurations=tuple(configurations),
            points=np.concatenate(parts, axis=1),
            axes=types,
        )

    @property
    def names(self) -> list[str]:
        """Of the inputs."""
        return [input_type.name for input_type in self.types]

    @property
    def firsts(self) -> Indices:
        """Of every input the first of its coordinates."""
        return find_firsts([len(input_type.choices) or 1 for input_type in self.types])

    def columns(self) -> dict[str, list[Any]]:
        """Values of every input at all configurations, as a run stores them: tuples and infinities
        as text.
        """
        return {
            name: [_stored(configuration[name]) for configuration in self.configurations]
            for name in self.names
        }

    def code(self, x: int | Array) -> Configuration:
        """Return the values by name of a configuration, by its index or its coordinates (d,); of a
        category the number of its choice: libraries cast and compare them.
        """
        index = x if isinstance(x, int) else self._index(x)
        configuration = self.configurations[index]
        numbers_of = {
            t.name: t.choices.index(configuration[t.name]) for t in self.types if t.choices
        }
        return {**configuration, **numbers_of}

    def decode(self, coded: Mapping[str, Any]) -> int:
        """Return the index of the nearest configuration to values as `code` gives them."""
        choices = {t.name: t.choices[int(coded[t.name])] for t in self.types if t.choices}
        return self.nearest({**coded, **choices})

    def find(self, configuration: Any, noun: str) -> int:
        """Return the index of a configuration.

        Raises:
            Misuse: it is none of them; the nearest is named.
        """
        check_configuration(self.types, configuration, noun)
        values = dict(configuration)
        if values in self.configurations:
            return self.configurations.index(values)
        near = self.configurations[self.nearest(values)]
        raise Misuse(
            f"{noun} is none of the {len(self.configurations):,} configurations played; the "
            f"nearest is {near}"
        )

    def encode(self, configuration: Configuration) -> Array:
        """Return coordinates (1, d) of values by name."""
        return np.concatenate(
            [axis.encode([configuration[axis.name]]) for axis in self.axes], axis=1
        )

    def nearest(self, configuration: Configuration) -> int:
        """Return the index of the nearest configuration, in the kernel's coordinates."""
        return self._index(self.encode(configuration))

    def at(self, x: Array) -> Configuration:
        """Return the configuration at coordinates (d,)."""
        return self.configurations[self._index(x)]

    def take(self, rows: Any) -> InputSpace:
        """Return some of the configurations."""
        # Types and axes stay: the rows that are left out have equal inputs.
        configurations = tuple(self.configurations[i] for i in rows)
        return replace(self, configurations=configurations, points=self.points[rows])

    def _index(self, x: Array) -> int:
        return int(((self.points - x) ** 2).sum(axis=1).argmin())


@dataclass(frozen=True)
class InputColumns:
    """What a table's parameters say of its inputs.

    Attributes:
        names: of the columns.
        log, one_hot, amounts: names of those that are logarithms, categories, and amounts.
        types: of every column; () where only names are given.
    """

    names: tuple[str, ...]
    log: Collection[str]
    one_hot: Collection[str]
    amounts: Collection[str]
    types: tuple[InputType, ...] = ()

    @classmethod
    def of(
        cls,
        inputs: Sequence[str] | Mapping[str, Any],
        log: Collection[str],
        one_hot: Collection[str],
        amounts: Collection[str],
    ) -> InputColumns:
        """Read `inputs`, names or a mapping of names to types, beside the options that say the same
        by lists of names.

        Raises:
            Misuse: no type (`InputType.of`), or an option that contradicts one.
        """
        if not isinstance(inputs, Mapping):
            return cls(names=tuple(inputs), log=log, one_hot=one_hot, amounts=amounts)
        types = tuple(InputType.of(name, declaration) for name, declaration in inputs.items())
        # What is said twice may be said differently.
        for option, names in (("log", log), ("one_hot", one_hot), ("amounts", amounts)):
            if names:
                raise Misuse(f"inputs has types, which say what {option} does; leave {option} out")
        numbers = [t for t in types if t.kind != "choice"]
        return cls(
            names=tuple(inputs),
            log=[t.name for t in numbers if t.log],
            one_hot=[t.name for t in types if t.kind == "choice"],
            # A type says that its numbers are no codes of categories.
            amounts=[t.name for t in numbers],
            types=types,
        )

    def in_order(self, columns: Sequence[str]) -> InputColumns:
        """Return the same with typed inputs in the order of the file's columns.

        A mapping has no order (cells that differ in it alone are one cell), but plays of some
        libraries depend on it.
        """
        if not self.types:
            return self
        types = tuple(sorted(self.types, key=lambda t: columns.index(t.name)))
        return replace(self, names=tuple(t.name for t in types), types=types)

    def space(self, frame: pd.DataFrame, points: Array, source: str) -> InputSpace | None:
        """Return the rows as configurations of the types; None where there are no types.

        Args:
            frame: the input columns.
            points: the rows' coordinates, (rows, d).

        Raises:
            Misuse: a value outside its type; a choice that no row has.
        """
        if not self.types:
            return None
        columns = []
        axes = []
        for t in self.types:
            cells = frame[t.name].tolist()
            if t.kind == "choice":
                levels = _find_choices(t, cells, source)
                # The order in which `categories` makes coordinates of them.
                axes.append(replace(t, choices=tuple(levels[text] for text in sorted(levels))))
                columns.append([levels[text] for text in cells])
            else:
                kind = int if t.kind == "int" else float
                values = [kind(value) for value in cells]
                axes.append(replace(t, low=min(values), high=max(values)))
                columns.append(values)
        configurations = (
            dict(zip(self.names, values, strict=True)) for values in zip(*columns, strict=True)
        )
        return InputSpace(
            types=self.types,
            configurations=tuple(configurations),
            points=points,
            axes=tuple(axes),
            measured=True,
        )

    def check_numbers(self, frame: pd.DataFrame, source: str) -> None:
        """Raises `Misuse` for a column of text, or a number outside its type; gaps are left to
        others.
        """
        for t in self.types:
            if t.kind == "choice":
                continue
            fix_text = f"write {{{{choice: [values]}}}} if these are categories, or {ASIDE}"
            values = numbers(frame[[t.name]], source, gaps=True, fix_text=fix_text)[:, 0]
            outside = (values < t.low) | (values > t.high)
            broken = (values != np.round(values)) & ~np.isnan(values) & (t.kind == "int")
            for row in np.flatnonzero(outside | broken).tolist():
                fix = f"inputs allows {t.range}; widen it"
                if broken[row]:
                    fix = "inputs says int; write float there"
                raise Misuse(
                    f"{source}: input {show(t.name)}, row {row + 1} is "
                    f"{write_number(values[row])}, but {fix}, or leave the row out"
                )


def _find_choices(t: InputType, column: Sequence[str], source: str) -> dict[str, Any]:
    """The choice that each text of a column is: the same text, or a number or a truth that is
    written so.

    Raises:
        Misuse: a text that is no choice, a choice that no row has, or one that several texts may
            be, as 1.1 and 1.10.
    """
    # Equal texts first: a number that is written like one of them must not take its rows.
    label = f"{source}: input {show(t.name)}"
    texts = dict.fromkeys(column)
    levels: dict[str, Any] = {}
    for choice in t.choices:
        alike = [text for text in texts if text == choice]
        alike += [text for text in texts if text not in t.choices and _may_be(text, choice)]
        if len(alike) > 1:
            listed = " or ".join(map(show, alike))
            raise Misuse(
                f"{label}: choice holds {show(choice)}, which may be {listed} of the rows; quote "
                f"the texts in choice, such as {show(alike[0])}"
            )
        levels |= dict.fromkeys(alike, choice)

    # Neither may be left over: a row would have no category, or a category no row.
    by_text = [*map(str, t.choices)]
    for text in texts:
        if text not in levels:
            close = nearest(text, by_text)
            suggestion = f"did you mean {close!r}?; " if close else ""
            raise Misuse(
                f"{label}, row {[*column].index(text) + 1} is {show(text)}, but inputs allows "
                f"{', '.join(by_text)}; {suggestion}add it there, or leave the row out"
            )
    for choice in t.choices:
        if choice not in levels.values():
            raise Misuse(
                f"{source}: inputs: {show(t.name)}: choice holds {show(choice)}, which no row has; "
                "remove it"
            )
    return levels


def _may_be(text: str, choice: Any) -> bool:
    """Whether YAML or Python, which know types, may have read this text as this choice."""
    # YAML's words for it, and Python's.
    if choice is None:
        return text in ("None", "null", "~")
    if isinstance(choice, bool):
        return text.lower() == str(choice).lower()
    if isinstance(choice, int | float):
        if not is_number(text):
            return False
        # Of whole numbers beyond 2^53, several are one float.
        number = int(text) if WHOLE.fullmatch(text) else float(text)
        return number == choice
    return not isinstance(choice, str) and text == str(choice)
