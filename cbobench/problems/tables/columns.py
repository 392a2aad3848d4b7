"""Columns of tables in files: numbers read whole, and inputs as coordinates in the unit cube.

Columns that are not numeric raise errors; none is dropped. Inputs are amounts, logarithms or
categories.
"""

from __future__ import annotations

import datetime
import unicodedata
from collections.abc import Collection
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np

from cbobench.errors import Misuse, printable, refuse_strange, show
from cbobench.gp.kernels import Array, Indices
from cbobench.gp.mixed_actions import encode_choices, find_firsts
from cbobench.params import LARGEST
from cbobench.words import list_names

if TYPE_CHECKING:
    import pandas as pd


ASIDE = "take it out of inputs (it then stands in ignore, unless that is rest)"
ROUNDED = 1e-13  # of the largest value: values that differ by less are equal
CATEGORIES = (str, int, float, Decimal, datetime.date)
# covariances of 10,000 configurations take two to three minutes with so many
MOST_COORDINATES = 1000


def compose(names: Any) -> Any:
    """Column names in Unicode's composed form, in which those that look alike are alike: a name, a
    list of names, or a mapping from names, also to names.
    """
    if isinstance(names, str):
        return unicodedata.normalize("NFC", names)
    if isinstance(names, dict):
        return {compose(name): compose(value) for name, value in names.items()}
    if isinstance(names, list):
        return [*map(compose, names)]
    return names


def write_number(value: float) -> str:
    """A number as short as it can be written: 0.001, 1e+06, 2440000250."""
    text = f"{value:g}"
    if float(text) == value:
        return text
    return str(value)


def is_finite(value: Any) -> bool:
    """Whether a value is a finite number."""
    is_number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    return is_number and abs(value) < np.inf


def is_number(text: str) -> bool:
    """Whether a text is a number as Python writes them."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def is_numeric(column: pd.Series) -> bool:
    """Whether a column is numeric or Boolean."""
    from pandas.api import types

    return bool(types.is_numeric_dtype(column) and not types.is_complex_dtype(column))


def numbers(
    frame: pd.DataFrame,
    source: str,
    gaps: bool = False,
    fix: str = "fill or drop them",
    fix_text: str = "leave it out with ignore: [{name}]",
) -> Array:
    """Columns of numbers, or of texts that are numbers, as an array (rows, columns).

    Args:
        gaps: whether entries may be missing or infinite, which are then NaN.
        fix: what to do about those that may not.
        fix_text: what to do about a column of text, by its name and the place of the first, if it
            is to stay text.

    Raises:
        Misuse: a column of text, entries that are missing, infinite or beyond 1e100, or whole
            numbers that no float64 holds.
    """
    import pandas as pd

    # A column that was read as text may hold numbers alone.
    columns = {}
    for label, series in frame.items():
        columns[label] = series
        if not is_numeric(series):
            columns[label] = pd.to_numeric(series.astype(str), errors="coerce")
    read = pd.DataFrame(columns)
    values = read.to_numpy(dtype=float, na_value=np.nan)

    # What is there, but was not read as a number, is text.
    for row, column in np.argwhere(np.isnan(values) & frame.notna().to_numpy()).tolist():
        name = frame.columns[column]
        otherwise = fix_text.format(name=name, place=f"row {row + 1}")
        raise Misuse(
            f"{source}: column {show(name)} holds text, such as "
            f"{show(str(frame.iat[row, column]))}; make numbers of it, or {otherwise}"
        )

    # Failed measurements are written as blanks, as NaN or as infinities.
    if gaps:
        values = np.where(np.isfinite(values), values, np.nan)
    broken = ~(np.abs(values) < LARGEST) & ~(np.isnan(values) & gaps)
    for row, column in np.argwhere(broken).tolist():
        kind = "entries beyond 1e100" if gaps else "missing or infinite entries (or beyond 1e100)"
        raise Misuse(
            f"{source} holds {int(broken.sum())} {kind}, the first in column "
            f"{show(frame.columns[column])}, row {row + 1}; {fix}"
        )

    # Beyond 2^53 a float holds only some whole numbers, such as not all identifiers.
    for row, column in np.argwhere(np.abs(values) >= 2**53).tolist():
        whole: Any = read.iat[row, column]
        kept = int(values[row, column])
        if int(whole) != kept:
            raise Misuse(
                f"{source}: column {show(frame.columns[column])} holds {whole}, "
                f"row {row + 1}, beyond 2^53, which would be read as {kept}; take a "
                "constant from the column, or write it in larger units"
            )
    return values


def refuse_unnamed(frame: pd.DataFrame, source: str) -> None:
    """Raises `Misuse` for a column without a name."""
    for name in frame.columns:
        if name in ("", "index", "level_0") or name.startswith("Unnamed: "):  # as pandas calls them
            raise Misuse(
                f"{source}: a column has no name (read as {show(name)}), as row numbers have none; "
                "write the file without it (index=False), or leave it out with ignore: "
                f"[{show(name)}]"
            )


def numeric(frame: pd.DataFrame, source: str) -> pd.DataFrame:
    """A table of which all columns are numbers.

    Raises:
        Misuse: what `refuse_unnamed` and `numbers` refuse.
    """
    import pandas as pd

    refuse_unnamed(frame, source)
    return pd.DataFrame(numbers(frame, source), columns=frame.columns)


def coordinates(
    frame: pd.DataFrame,
    source: str,
    log: Collection[str],
    one_hot: Collection[str],
    amounts: Collection[str],
) -> tuple[Array, list[str], Indices]:
    """Coordinates (rows, d) of input columns, each from 0 to 1, a name per row, and of every column
    the first of its coordinates.

    Args:
        log: columns on a logarithmic axis.
        one_hot: columns of categories: one coordinate per category, so that any two are as far
            apart as the ends of an axis.
        amounts: columns whose whole numbers 0, 1, 2, ... are amounts.

    Raises:
        Misuse: text, or whole numbers that may be codes of categories, where nothing says what they
            are; a column that never changes; no logarithm; more than `MOST_COORDINATES`.
    """
    # Before any array is made: a column of identifiers has as many categories as rows.
    widths = [frame[name].nunique() if name in one_hot else 1 for name in frame.columns]
    if sum(widths) > MOST_COORDINATES:
        raise Misuse(
            f"{source}: {sum(widths):,} coordinates, {max(widths):,} of them the categories of "
            f"input {show(frame.columns[int(np.argmax(widths))])}; allowed: {MOST_COORDINATES:,}; "
            f"write rare categories alike, such as other, or {ASIDE}"
        )

    # The coordinates divide by the range, which would be 0.
    constant = [
        f"{show(name)} is {write_number(float(frame[name].iloc[0]))}"
        for name in frame.columns
        if name not in one_hot and is_numeric(frame[name]) and frame[name].nunique(False) == 1
    ]
    if constant:
        raise Misuse(
            f"{source}: input {list_names(constant, 20)} in every row, which tells nothing; {ASIDE}"
        )

    parts = []
    for name in frame.columns:
        if name in one_hot:
            levels, which = np.unique(frame[name].to_numpy(dtype=object), return_inverse=True)
            parts.append(encode_choices(which, len(levels)))
        else:
            parts.append(amount(frame, name, source, name in log, name in amounts))

    # Readers know a configuration by its values.
    row_names = [
        ", ".join(f"{name} = {_text(v)}" for name, v in zip(frame.columns, row, strict=True))
        for row in frame.itertuples(index=False, name=None)
    ]
    return np.concatenate(parts, axis=1), row_names, find_firsts(widths)


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return write_number(value)


def category_values(column: pd.Series, source: str) -> list[str]:
    """The categories in a column's rows, each the text that stands there; of a file with types, as
    Python writes them.

    Raises:
        Misuse: a blank, unprintable text, or what is no word and no number, such as a list or
            bytes.
    """

    def place(row: int) -> str:
        return f"{source}: input {show(column.name)}, row {row + 1}"

    values = column.tolist()
    is_missing = column.isna().tolist()
    texts = [str(value) for value in values]
    for row, value in enumerate(values):
        if is_missing[row] or not texts[row].strip():
            raise Misuse(
                f"{place(row)} is blank; write a category there, such as none, or leave the row out"
            )
        if not isinstance(value, CATEGORIES):
            raise Misuse(
                f"{place(row)} is {show(value)} ({type(value).__name__}), which is no category; "
                f"write text or numbers in its place, or {ASIDE}"
            )

    # What is shown in tables and typed into suites must be the text itself.
    for text in dict.fromkeys(texts):
        if printable(text) != text:
            refuse_strange(text, f"{place(texts.index(text))},", lines=True)
    return texts


def spreads(values: Array) -> Array:
    """Return standard deviations (p,) of values (n, p), 0 of those that differ by rounding alone.

    Equal numbers have a mean that differs from them by rounding, and so have the means of equal
    repeats.
    """
    reach = np.ptp(values, axis=0)
    deviation = values.std(axis=0)
    # squares of numbers below 1e-154 are 0
    deviation = np.where(deviation > 0, deviation, reach)
    return np.where(reach > ROUNDED * np.abs(values).max(axis=0), deviation, 0.0)


def units_of(values: Array) -> Array:
    """Return the `spreads` that values (n, p) are scaled by, 1 of what never changes."""
    spread = spreads(values)
    return np.where(spread > 0, spread, 1.0)


def amount(frame: pd.DataFrame, name: str, source: str, log: bool, stated: bool) -> Array:
    """A column of numbers, of which some differ, scaled to [0, 1], (rows, 1)."""
    fix = f"fill or drop them, or say one_hot: [{name}] if a word such as None is a category there"
    fix_text = f"(the first: {{place}}) say one_hot: [{name}] if these are categories; or {ASIDE}"
    values = numbers(frame[[name]], source, fix=fix, fix_text=fix_text)[:, 0]
    # Whole numbers from 0 on may be codes, whose distances mean nothing:
    # to guess would change the model unseen.
    levels = np.unique(values)
    if not (log or stated) and len(levels) > 2 and np.array_equal(levels, np.arange(len(levels))):
        fix = f"say amounts: [{name}] (0 < 1 < 2) or one_hot: [{name}] (categories without order)"
        raise Misuse(
            f"{source}: input {show(name)} is 0, 1, ..., {levels[-1]:g}, numbers or codes of "
            f"categories; {fix}"
        )
    if log:
        if levels[0] <= 0:
            raise Misuse(
                f"{source}: input {show(name)} is {levels[0]:g} somewhere, which has no "
                "logarithm; take it out of log"
            )
        values = np.log(values)
        levels = np.log(levels)
    return ((values - levels[0]) / (levels[-1] - levels[0]))[:, None]
