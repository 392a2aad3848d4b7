"""Tables in files: read whole, with every column that is not a column of numbers named in an error, never dropped."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cbobench.errors import Misuse, one_line, show
from cbobench.params import LARGEST

if TYPE_CHECKING:
    import pandas as pd

APART = 100.0  # scales of columns that differ by more are hardly readings of one thing


def read_frame(file: Path, what: str) -> pd.DataFrame:
    """A CSV or Parquet table as it stands; an index that Parquet holds is a column like the others.

    Raises:
        Misuse: missing, unreadable, another format, without a header or without rows.
    """
    import pandas as pd

    if not file.is_file():
        raise Misuse(f"{what} {show(str(file))} does not exist; give the path of a CSV or Parquet file")
    readers: dict[str, Any] = {".csv": pd.read_csv, ".parquet": pd.read_parquet}
    if file.suffix.lower() not in readers:
        raise Misuse(f"{what} {file.name!r} is a {file.suffix or 'nameless'} file; allowed: .csv, .parquet")
    try:
        frame = readers[file.suffix.lower()](file)
    except Exception as error:  # pandas and pyarrow raise many kinds
        raise Misuse(f"{what} {file.name!r} cannot be read: {one_line(error)}") from error
    if not (isinstance(frame.index, pd.RangeIndex) and frame.index.name is None):
        frame = frame.reset_index()
    names = [str(name) for name in frame.columns]
    unnamed = [str(i) for i in range(len(names))]  # what pandas writes for columns without names
    if file.suffix.lower() == ".csv" and names != unnamed and all(_is_number(name) for name in names):
        raise Misuse(f"{what} {file.name!r} has no header: its first line is numbers; name the columns in it")
    if frame.empty:
        raise Misuse(f"{what} {file.name!r} has no rows below its header; give at least one")
    frame.columns = names
    return frame


def is_numeric(column: pd.Series) -> bool:
    """Whether a column holds numbers, or true and false."""
    from pandas.api import types

    return bool(types.is_numeric_dtype(column) and not types.is_complex_dtype(column))


def texts(frame: pd.DataFrame) -> list[str]:
    """Names of the columns that hold no numbers."""
    return [name for name in frame.columns if not is_numeric(frame[name])]


def is_unnamed(name: str) -> bool:
    """Whether it is what pandas calls a column without a name."""
    return name in ("", "index", "level_0") or name.startswith("Unnamed: ")


def numbers(frame: pd.DataFrame, where: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Columns of numbers as an array (rows, columns).

    Raises:
        Misuse: a column that is mostly numbers but holds text, entries that are missing, infinite or beyond 1e100.
    """
    import pandas as pd

    for name in texts(frame):
        given = frame[name].astype(str)
        if pd.to_numeric(given.str.replace(",", "."), errors="coerce").notna().mean() > 0.5:
            raise Misuse(f"{where}: column {show(name)} is mostly numbers but holds text; repair or drop it")
        held = f"column {show(name)} holds text, such as {show(given.iloc[0])}"
        raise Misuse(f"{where}: {held}; make numbers of it, or leave it out with ignore: [{name}]")
    values = frame.to_numpy(dtype=np.float64)
    broken = ~(np.abs(values) < LARGEST)
    if broken.any():
        row, column = (int(i) for i in np.argwhere(broken)[0])
        count = f"{int(broken.sum())} missing or infinite entries (or beyond 1e100)"
        first = f"the first in column {show(frame.columns[column])}, row {row + 1}"
        raise Misuse(f"{where} holds {count}, {first}; fill or drop them")
    return values


def refuse_unnamed(frame: pd.DataFrame, where: str) -> None:
    """Raises `Misuse` for a column without a name."""
    for name in frame.columns:
        if is_unnamed(name):
            fix = f"write the file without it (index=False), or leave it out with ignore: [{show(name)}]"
            raise Misuse(f"{where}: a column has no name (read as {show(name)}), as row numbers have none; {fix}")


def read_table(file: Path, what: str, ignore: Collection[str] = ()) -> pd.DataFrame:
    """The columns of a CSV or Parquet table, all of them numbers, but for those that are to be ignored.

    Raises:
        Misuse: what `read_frame`, `refuse_unnamed` and `numbers` refuse, or no numbers at all.
    """
    frame = read_frame(file, what)
    frame = frame.drop(columns=[name for name in ignore if name in frame.columns])
    return numeric(frame, f"{what} {file.name!r}")


def numeric(frame: pd.DataFrame, where: str) -> pd.DataFrame:
    """A table of which all columns are numbers.

    Raises:
        Misuse: as `read_table`.
    """
    import pandas as pd

    if not any(is_numeric(frame[name]) or _some_number(frame[name]) for name in frame.columns):
        raise Misuse(f"{where} has no numbers: one row per reading, one column per arm")
    refuse_unnamed(frame, where)
    return pd.DataFrame(numbers(frame, where), columns=frame.columns)


def _some_number(column: pd.Series) -> bool:
    import pandas as pd

    return bool(pd.to_numeric(column.astype(str).str.replace(",", "."), errors="coerce").notna().any())


def refuse_ambiguous(frame: pd.DataFrame, where: str) -> None:
    """Raises `Misuse` for rows that may be readings of arms or configurations, with both ways to say which."""
    why = doubt(frame)
    if why:
        n, names = len(frame), [str(name) for name in frame.columns]
        some = ", ".join(names[:6]) + (", ..." if len(names) > 6 else "")
        raise Misuse(
            f"{where} may be either of two things, as {why}: write layout: readings for {n} readings of {len(names)} "
            f"arms ({some}) that share a threshold, or layout: configurations with inputs: [columns], "
            f"objective: column, constraints: {{column: {{at_most: number}}}} for {n} measured configurations"
        )


def doubt(frame: pd.DataFrame) -> str:
    """Why columns do not look like readings of one thing; empty if they do."""
    words = texts(frame)
    if len(words) == len(frame.columns):
        return ""  # no numbers at all, which is another error
    for name in frame.columns:
        if is_unnamed(name):
            return f"column {show(name)} has no name, as row numbers have none"
    if words:
        return f"column {show(words[0])} holds text"
    values = frame.to_numpy(dtype=np.float64)
    if not np.isfinite(values).all():
        return ""
    size = np.abs(values).max(axis=0)
    if (size > 0).any() and size.max() > APART * size[size > 0].min():
        low, high = (frame.columns[int(i)] for i in (np.where(size > 0, size, np.inf).argmin(), size.argmax()))
        apart = f"{size.max():.3g} against {size[size > 0].min():.3g}"
        return f"the scales of {show(high)} and {show(low)} differ by more than a hundred ({apart})"
    for name, column in zip(frame.columns, values.T, strict=True):
        levels = len(np.unique(column))
        if np.array_equal(column, column.round()) and 2 <= levels <= len(column) / 2:
            return f"column {show(name)} takes {levels} whole values only, as a grid of settings does"
    return ""


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
