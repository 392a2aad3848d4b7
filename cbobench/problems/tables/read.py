"""Files of tables that users bring, CSV or Parquet, read as they stand.

pandas would shift values of uneven rows, take the first of two columns of one name, and a row of
numbers for a header: all of that is refused before, in one line.
"""

from __future__ import annotations

import csv
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cbobench.errors import Misuse, one_line, show
from cbobench.problems.tables.columns import compose, is_number, is_numeric, numeric
from cbobench.words import count_noun

if TYPE_CHECKING:
    import pandas as pd

csv.field_size_limit(2**31 - 1)  # of characters: a column of logs is left out, but read
NUMBERS = ("decimal", "boolean", "empty")
"""Kinds of objects that are numbers but for their type: of Booleans with nulls, of nulls alone."""
SEPARATORS = ",;\t|"
FORM = "a CSV has a header, as many values in every line as that has names, and no comments"


def read_frame(file: Path, role: str, categories: Collection[str] = ()) -> pd.DataFrame:
    """Reads a CSV or Parquet table. The index of a Parquet file becomes a column, its decimals
    become floats, and names their composed form (`columns.compose`).

    Args:
        categories: columns whose text stands for itself: 1.10 is not 1.1 there, and None and NA are
            not missing.

    Raises:
        Misuse: missing, unreadable, another format, without a header or without rows, two columns
            of one name.
    """
    import pandas as pd

    # Before pandas, whose words are of its own reading and not of the file.
    if not file.is_file():
        raise Misuse(
            f"{role} {show(str(file))} does not exist; give the path of a CSV or Parquet file"
        )
    suffix = file.suffix.lower()
    source = f"{role} {file.name!r}"
    if suffix not in (".csv", ".parquet"):
        raise Misuse(f"{source} is a {file.suffix or 'nameless'} file; allowed: .csv, .parquet")
    read = _read_csv if suffix == ".csv" else _read_parquet
    try:
        frame = read(file, source, categories)
        # An index that somebody named holds data, as a column does.
        if not (isinstance(frame.index, pd.RangeIndex) and frame.index.name is None):
            frame = frame.reset_index()
    except Misuse:
        raise
    except Exception as error:  # pandas and pyarrow raise many kinds
        fix = "; save it as UTF-8" if isinstance(error, UnicodeError) else ""
        raise Misuse(f"{source} cannot be read: {one_line(error)}{fix}") from error
    if frame.empty:
        raise Misuse(f"{source} has no rows below its header; give at least one")
    frame.columns = compose([str(name) for name in frame.columns])
    return frame


def _read_parquet(file: Path, source: str, categories: Collection[str]) -> pd.DataFrame:
    import pandas as pd
    from pyarrow.parquet import read_schema

    _refuse_repeated(source, read_schema(file).names)
    frame = pd.read_parquet(file)
    for name in frame.columns:
        kind = pd.api.types.infer_dtype(frame[name], skipna=True)
        if kind in NUMBERS and not is_numeric(frame[name]) and compose(name) not in categories:
            frame[name] = frame[name].astype("float64")
    return frame


def _read_csv(file: Path, source: str, categories: Collection[str]) -> pd.DataFrame:
    import pandas as pd

    separator, names = _check_rows(file, source)
    # Without index_col pandas takes a surplus value for a row's name, and shifts all others.
    options: dict[str, Any] = {"sep": separator, "index_col": False, "encoding": "utf-8-sig"}
    width = range(len(names))
    frame = pd.read_csv(file, usecols=width, low_memory=False, **options)
    texts_of = [i for i in width if compose(names[i]) in categories]
    if texts_of:
        plain = pd.read_csv(file, usecols=texts_of, dtype=str, keep_default_na=False, **options)
        frame[plain.columns] = plain
    return frame


def _check_rows(file: Path, source: str) -> tuple[str, list[str]]:
    """What separates the fields of a CSV, and the names in its header; separators at the ends of
    lines make no column.

    Raises:
        Misuse: no header, two columns of one name, or a row of another length.
    """
    with file.open(encoding="utf-8-sig", newline="") as lines:
        first = next((line for line in lines if line.strip()), "")
        separator = max(SEPARATORS, key=first.count)
        lines.seek(0)
        rows = csv.reader(lines, delimiter=separator)
        names = next((row for row in rows if any(map(str.strip, row))), [])
        while names and not names[-1].strip():
            names.pop()
        if not names:
            raise Misuse(f"{source} is empty; {FORM}")
        _refuse_repeated(source, [name for name in names if name])

        # pandas calls columns 0, 1, ...
        if all(map(is_number, names)) and names != [*map(str, range(len(names)))]:
            raise Misuse(
                f"{source} has no header: its first line is numbers, {show(first.strip())}; name "
                "the columns in it"
            )
        for row in rows:
            if row and (len(row) < len(names) or any(map(str.strip, row[len(names) :]))):
                raise Misuse(
                    f"{source}: line {rows.line_num} has {count_noun(len(row), 'value')}, where "
                    f"the header has {count_noun(len(names), 'name')}; {FORM}"
                )
    return separator, names


def _refuse_repeated(source: str, header: Iterable[str]) -> None:
    names: list[str] = compose([*header])
    for name in names:
        if (count := names.count(name)) > 1:
            raise Misuse(
                f"{source}: {count} columns are called {show(name)}; give them different names "
                "in the file"
            )


def read_table(file: Path, role: str, ignore: Collection[str] = ()) -> pd.DataFrame:
    """Reads a CSV or Parquet table of numbers, without the ignored columns.

    Raises:
        Misuse: what `read_frame`, `refuse_unnamed` and `numbers` refuse.
    """
    frame = read_frame(file, role).drop(columns=list(ignore), errors="ignore")
    return numeric(frame, f"{role} {file.name!r}")
