"""Files of tables that users bring, CSV or Parquet, read as they stand."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from cbobench.errors import Misuse, one_line, show
from cbobench.problems.columns import numeric

if TYPE_CHECKING:
    import pandas as pd


def read_frame(file: Path, what: str, categories: Collection[str] = ()) -> pd.DataFrame:
    """Reads a CSV or Parquet table. The index of a Parquet file becomes a column.

    Args:
        categories: columns whose text stands for itself; in others, pandas reads None, NA and the like as missing.

    Raises:
        Misuse: missing, unreadable, another format, without a header or without rows.
    """
    import pandas as pd

    if not file.is_file():
        raise Misuse(f"{what} {show(str(file))} does not exist; give the path of a CSV or Parquet file")
    suffix = file.suffix.lower()
    if suffix not in (".csv", ".parquet"):
        raise Misuse(f"{what} {file.name!r} is a {file.suffix or 'nameless'} file; allowed: .csv, .parquet")
    try:
        frame = _read_csv(file, categories) if suffix == ".csv" else pd.read_parquet(file)
    except Exception as error:  # pandas and pyarrow raise many kinds
        raise Misuse(f"{what} {file.name!r} cannot be read: {one_line(error)}") from error
    if not (isinstance(frame.index, pd.RangeIndex) and frame.index.name is None):
        frame = frame.reset_index()
    names = [str(name) for name in frame.columns]
    unnamed = [str(i) for i in range(len(names))]  # what pandas writes for columns without names
    if suffix == ".csv" and names != unnamed and all(_is_number(name) for name in names):
        raise Misuse(f"{what} {file.name!r} has no header: its first line is numbers; name the columns in it")
    if frame.empty:
        raise Misuse(f"{what} {file.name!r} has no rows below its header; give at least one")
    frame.columns = names
    return frame


def _read_csv(file: Path, categories: Collection[str]) -> pd.DataFrame:
    import pandas as pd

    frame = pd.read_csv(file)
    kept = [name for name in frame.columns if name in categories]
    if kept:
        frame[kept] = pd.read_csv(file, keep_default_na=False, na_values=[""], low_memory=False)[kept]
    return frame


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def read_table(file: Path, what: str, ignore: Collection[str] = ()) -> pd.DataFrame:
    """Reads a CSV or Parquet table of numbers, without the ignored columns.

    Raises:
        Misuse: what `read_frame`, `refuse_unnamed` and `numbers` refuse.
    """
    frame = read_frame(file, what)
    frame = frame.drop(columns=[name for name in ignore if name in frame.columns])
    return numeric(frame, f"{what} {file.name!r}")
