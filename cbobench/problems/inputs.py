"""Input columns of a table as coordinates in the unit cube: amounts, logarithms, categories."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

import numpy as np

from cbobench.errors import Misuse, show
from cbobench.gp.kernels import Array
from cbobench.problems.files import is_numeric, numbers

if TYPE_CHECKING:
    import pandas as pd


def coordinates(
    frame: pd.DataFrame, where: str, log: Collection[str], one_hot: Collection[str], amounts: Collection[str]
) -> tuple[Array, list[str]]:
    """Coordinates (rows, d) of input columns, each from 0 to 1, and a name per row.

    Args:
        log: columns on a logarithmic axis.
        one_hot: columns of categories: one coordinate per category, so that any two are as far apart as the ends of an
            axis.
        amounts: columns whose whole numbers 0, 1, 2, ... are amounts.

    Raises:
        Misuse: text, or whole numbers that may be codes of categories, where nothing says what they are; a column that
            never changes; no logarithm.
    """
    parts = [
        categories(frame[name]) if name in one_hot else amount(frame, name, where, name in log, name in amounts)
        for name in frame.columns
    ]
    texts = zip(*([f"{name} = {_text(v)}" for v in frame[name]] for name in frame.columns), strict=True)
    return np.concatenate(parts, axis=1), [", ".join(words) for words in texts]


def _text(value: object) -> str:
    return f"{value:g}" if isinstance(value, int | float) and not isinstance(value, bool) else str(value)


def categories(column: pd.Series) -> Array:
    """1/√2 in the place of the row's category and 0 elsewhere, (rows, categories): distances are 0 and 1."""
    levels, which = np.unique(column.astype(str).to_numpy(dtype=str), return_inverse=True)
    return np.asarray(np.eye(len(levels))[which] * np.sqrt(0.5))


def amount(frame: pd.DataFrame, name: str, where: str, log: bool, stated: bool) -> Array:
    """A column of numbers scaled to [0, 1], (rows, 1)."""
    if not is_numeric(frame[name]):
        held = f"holds text, such as {show(str(frame[name].iloc[0]))}, which has no order and no distance"
        fix = f"one_hot: [{name}] makes one coordinate of each category; ignore: [{name}] leaves it out"
        raise Misuse(f"{where}: input {show(name)} {held}; {fix}")
    values = numbers(frame[[name]], where)[:, 0]
    levels = np.unique(values)
    if len(levels) == 1:
        raise Misuse(f"{where}: input {show(name)} is {levels[0]:g} in every row; leave it out with ignore: [{name}]")
    if not (log or stated) and len(levels) > 2 and np.array_equal(levels, np.arange(len(levels))):
        fix = f"say amounts: [{name}] (0 < 1 < 2) or one_hot: [{name}] (categories without order)"
        raise Misuse(f"{where}: input {show(name)} is 0, 1, ..., {levels[-1]:g}, numbers or codes of categories; {fix}")
    if log:
        if levels[0] <= 0:
            raise Misuse(f"{where}: input {show(name)} is {levels[0]:g} somewhere, which has no logarithm; see log")
        values, levels = np.log(values), np.log(levels)
    return np.asarray((values - levels[0]) / (levels[-1] - levels[0]))[:, None]
