"""Typed inputs of a table: what `inputs` says of its columns, and its rows as configurations of these types."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from cbobench.errors import Misuse, nearest, show
from cbobench.gp.kernels import Array
from cbobench.problems.columns import ASIDE, describe_row, find_text, is_number, is_numeric, write_number
from cbobench.problems.inputs import Configuration, InputSpace, InputType

if TYPE_CHECKING:
    import pandas as pd

WHOLE = re.compile(r"[-+]?\d{1,100}")


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
        """Read `inputs`, names or a mapping of names to types, beside the options that say the same by lists of names.

        Raises:
            Misuse: no type (`InputType.of`), or an option that contradicts one.
        """
        if not isinstance(inputs, Mapping):
            return cls(tuple(inputs), log, one_hot, amounts)
        types = tuple(InputType.of(name, declaration) for name, declaration in inputs.items())
        for t in types:
            category = t.kind == "choice"
            if t.name in log and category:
                raise Misuse(f"log names {show(t.name)}, but inputs says choice; take it out of log")
            for option, names, stated, instead, contradicts in (
                ("log", log, f"{t.kind} without log", "log: true", not t.log),
                ("one_hot", one_hot, t.kind, "choice: [values]", not category),
                ("amounts", amounts, t.kind, "int: [low, high]", category),
            ):
                if t.name in names and contradicts:
                    fix = f"take it out of {option}, or write {instead} in inputs"
                    raise Misuse(f"{option} names {show(t.name)}, but inputs says {stated}; {fix}")
        numbers = [t for t in types if t.kind != "choice"]
        return cls(
            tuple(inputs),
            [t.name for t in numbers if t.log],
            [t.name for t in types if t.kind == "choice"],
            [t.name for t in numbers],
            types,
        )

    def in_order(self, columns: Sequence[str]) -> InputColumns:
        """Return the same with typed inputs in the order of the file's columns.

        A mapping has no order (cells that differ in it alone are one cell), but plays of some libraries depend on it.
        """
        if not self.types:
            return self
        types = tuple(sorted(self.types, key=lambda t: list(columns).index(t.name)))
        return InputColumns(tuple(t.name for t in types), self.log, self.one_hot, self.amounts, types)

    def space(self, frame: pd.DataFrame, points: Array, source: str) -> MeasuredSpace | None:
        """Return the rows as configurations of the types; None where there are no types.

        Args:
            frame: the input columns.
            points: the rows' coordinates, (rows, d).

        Raises:
            Misuse: a value outside its type; a choice that no row has.
        """
        if not self.types:
            return None
        columns, axes = [], []
        for t in self.types:
            given = frame[t.name].tolist()
            if t.kind == "choice":
                levels = _find_choices(t, given, source)
                # The order in which `categories` makes coordinates of them.
                axes.append(InputType(t.name, t.kind, t.low, t.high, choices=tuple(levels[k] for k in sorted(levels))))
                columns.append([levels[text] for text in given])
            else:
                numbers = [int(value) if t.kind == "int" else float(value) for value in given]
                axes.append(InputType(t.name, t.kind, min(numbers), max(numbers), t.log))
                columns.append(numbers)
        configurations = (dict(zip(self.names, values, strict=True)) for values in zip(*columns, strict=True))
        return MeasuredSpace(self.types, tuple(configurations), points, tuple(axes))

    def check_numbers(self, frame: pd.DataFrame, source: str) -> None:
        """Raises `Misuse` for a column of text, or a number outside its type; gaps are left to others."""
        for t in self.types:
            if t.kind == "choice":
                continue
            label, column = f"{source}: input {show(t.name)}", frame[t.name]
            if not is_numeric(column):
                fix = f"write {{choice: [values]}} if these are categories, or {ASIDE}"
                raise Misuse(
                    f"{label} holds text, such as {show(find_text(column)[1])}, but inputs says {t.kind}; {fix}"
                )
            values = column.to_numpy(dtype=np.float64, na_value=np.nan)
            for outside, fix in (
                ((values < t.low) | (values > t.high), f"inputs allows {t.range}; widen it"),
                ((values != np.round(values)) & (t.kind == "int"), "inputs says int; write float there"),
            ):
                where = np.flatnonzero(outside & ~np.isnan(values))
                if len(where):
                    place = describe_row(source, int(where[0]))
                    raise Misuse(
                        f"{label}, {place} is {write_number(values[where[0]])}, but {fix}, or leave the row out"
                    )


def _find_choices(t: InputType, column: Sequence[str], source: str) -> dict[str, Any]:
    """The choice that each text of a column is: the same text, or a number or a truth that is written so.

    Raises:
        Misuse: a text that is no choice, a choice that no row has, or one that several texts may be, as 1.1 and 1.10.
    """
    label, texts = f"{source}: input {show(t.name)}", dict.fromkeys(column)
    levels = {choice: choice for choice in t.choices if isinstance(choice, str) and choice in texts}
    for choice in t.choices:
        if choice in levels:
            continue
        alike = [text for text in texts if text not in levels and _may_be(text, choice)]
        if len(alike) > 1:
            listed = " or ".join(map(show, alike))
            fix = f"quote the texts in choice, such as {show(alike[0])}"
            raise Misuse(f"{label}: choice holds {show(choice)}, which may be {listed} of the rows; {fix}")
        if alike:
            levels[alike[0]] = choice
    strange = next((text for text in texts if text not in levels), None)
    if strange is not None:
        by_text = [*map(str, t.choices)]
        close = nearest(strange, by_text)
        suggestion = f"did you mean {close!r}?; " if close else ""
        raise Misuse(
            f"{label}, {describe_row(source, [*column].index(strange))} is {show(strange)}, but inputs allows "
            f"{', '.join(by_text)}; {suggestion}add it there, or leave the row out"
        )
    absent = [choice for choice in t.choices if choice not in levels.values()]
    if absent:
        raise Misuse(f"{source}: inputs: {show(t.name)}: choice holds {show(absent[0])}, which no row has; remove it")
    return levels


def _may_be(text: str, choice: Any) -> bool:
    """Whether YAML or Python, which know types, may have read this text as this choice."""
    if choice is None:
        return text in ("None", "null", "~")
    if isinstance(choice, bool):
        return text.lower() == str(choice).lower()
    if isinstance(choice, int | float):
        # Of whole numbers beyond 2^53, several are one float.
        return is_number(text) and (int(text) if WHOLE.fullmatch(text) else float(text)) == choice
    return not isinstance(choice, str) and text == str(choice)


@dataclass(frozen=True)
class MeasuredSpace(InputSpace):
    """Configurations that were measured, of typed inputs; what lies between them, was not.

    Attributes:
        axes: the types as the coordinates are scaled: from the least to the largest measured number, choices in the
            order of their coordinates.
    """

    measured: ClassVar[bool] = True

    axes: tuple[InputType, ...]

    def encode(self, configuration: Configuration) -> Array:
        return np.concatenate([axis.encode([configuration[axis.name]]) for axis in self.axes], axis=1)

    def take(self, rows: Any) -> MeasuredSpace:
        """Return some of the rows."""
        return MeasuredSpace(self.types, tuple(self.configurations[i] for i in rows), self.points[rows], self.axes)
