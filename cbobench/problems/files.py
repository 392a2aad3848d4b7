"""Files of tables that users bring, CSV or Parquet, read as they stand.

What pandas would misread, or refuse in words of its own, is said in one line with the step that helps: lines of
comments, other separators, a file without a header.
"""

from __future__ import annotations

import csv
import itertools
import re
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, NoReturn

from cbobench.errors import Misuse, one_line, show
from cbobench.problems.columns import Source, numeric, texts

if TYPE_CHECKING:
    import pandas as pd

SEPARATORS = {";": "';'", "\t": r"'\t'", "|": "'|'", " ": r"r'\s+'"}  # as Python writes them for pandas
DECIMAL_COMMA = re.compile(r"[-+]?\d+,\d+")


def read_frame(file: Path, role: str, categories: Collection[str] = ()) -> pd.DataFrame:
    """Reads a CSV or Parquet table. The index of a Parquet file becomes a column, its decimals become floats.

    Args:
        categories: columns whose text stands for itself; in others, pandas reads None, NA and the like as missing.

    Raises:
        Misuse: missing, unreadable, another format, without a header or without rows.
    """
    import pandas as pd

    if not file.is_file():
        raise Misuse(f"{role} {show(str(file))} does not exist; give the path of a CSV or Parquet file")
    suffix, source = file.suffix.lower(), f"{role} {file.name!r}"
    if suffix not in (".csv", ".parquet"):
        raise Misuse(f"{source} is a {file.suffix or 'nameless'} file; allowed: .csv, .parquet")
    frame = _read_csv(file, source, categories) if suffix == ".csv" else _read_parquet(file, source)
    if not (isinstance(frame.index, pd.RangeIndex) and frame.index.name is None):
        frame = frame.reset_index()
    if frame.empty:
        raise Misuse(f"{source} has no rows below its header; give at least one")
    frame.columns = [str(name) for name in frame.columns]
    return frame


def _refuse_unreadable(source: str, error: Exception) -> NoReturn:
    fix = "; save it as UTF-8" if isinstance(error, UnicodeError) else ""
    raise Misuse(f"{source} cannot be read: {one_line(error)}{fix}") from error


def _read_parquet(file: Path, source: str) -> pd.DataFrame:
    import pandas as pd

    try:
        frame = pd.read_parquet(file)
    except Exception as error:  # pyarrow raises many kinds
        _refuse_unreadable(source, error)
    for name in texts(frame):
        if pd.api.types.infer_dtype(frame[name], skipna=True) in ("decimal", "boolean"):  # Booleans with nulls
            frame[name] = frame[name].astype("float64")
    return frame


def _read_csv(file: Path, source: str, categories: Collection[str]) -> pd.DataFrame:
    import pandas as pd

    with file.open(encoding="utf-8-sig", errors="replace", newline="") as lines:
        head = list(itertools.islice((line.rstrip("\r\n") for line in lines if line.strip()), 100))
    _refuse_comments(head, source, file)
    _refuse_separator(head, source, file)
    _refuse_numbers(head, source)
    try:
        frame = pd.read_csv(file)
        category_columns = [name for name in frame.columns if name in categories]
        if category_columns:
            frame[category_columns] = pd.read_csv(file, keep_default_na=False, na_values=[""], low_memory=False)[
                category_columns
            ]
    except Exception as error:  # pandas raises many kinds
        _refuse_comment_below(file, source)
        _refuse_unreadable(source, error)
    if texts(frame.iloc[:, :1]) and frame.iloc[:, 0].astype(str).str.startswith("#").any():
        _refuse_comment_below(file, source)
    return frame


def _fields(line: str) -> list[str]:
    return next(csv.reader([line]), [])


def _refuse_comments(head: Sequence[str], source: str, file: Path) -> None:
    """Raises `Misuse` for a file that begins with comments; a header may begin with # too."""
    first = next((line for line in head if not line.startswith("#")), None)
    comments = list(itertools.takewhile(lambda line: line.startswith("#"), head))
    if comments and (len(comments) > 1 or first is None or len(_fields(comments[0])) != len(_fields(first))):
        _refuse_comment(1, comments[0], source, file)


def _refuse_comment_below(file: Path, source: str) -> None:
    """Raises `Misuse` for a line of a comment between the rows: it begins with # and has not as many fields."""
    with file.open(encoding="utf-8-sig", errors="replace", newline="") as lines:
        rows = csv.reader(lines)
        width = len(next(rows, []))
        for row in rows:
            if row and row[0].startswith("#") and len(row) != width:
                _refuse_comment(rows.line_num, ",".join(row), source, file)


def _refuse_comment(number: int, text: str, source: str, file: Path) -> NoReturn:
    raise Misuse(
        f"{source}: line {number} is a comment, {show(text)}, which a CSV does not have; leave out lines that begin "
        f"with #: grep -v '^#' {quote(file.name)} > {quote(_clean_name(file))}"
    )


def _refuse_separator(head: Sequence[str], source: str, file: Path) -> None:
    """Raises `Misuse` for a file whose first lines are separated alike, but not by commas."""
    for separator, word in SEPARATORS.items():
        parts = [line.split() if separator == " " else line.split(separator) for line in head[:2]]
        if not parts or len(parts[0]) < 2 or len(parts[0]) != len(parts[-1]):
            continue
        numbers = [all(is_number(field.strip().replace(",", ".")) for field in part) for part in parts]
        if numbers[0] or ("," not in head[0] and (separator != " " or numbers[-1])):
            comma = any(DECIMAL_COMMA.fullmatch(field.strip()) for part in parts for field in part)
            how = f"sep={word}" + (", decimal=','" if comma else "")
            raise Misuse(
                f"{source} is separated by {word.removeprefix('r')} and not by commas, as its first line is "
                f"{show(head[0])}; write it anew in Python: pandas.read_csv({file.name!r}, {how})"
                f".to_csv({_clean_name(file)!r}, index=False)"
            )


def _clean_name(file: Path) -> str:
    return f"{file.stem}_clean.csv"


def _refuse_numbers(head: Sequence[str], source: str) -> None:
    """Raises `Misuse` for a file whose first line is numbers, unless it counts the columns, as pandas does."""
    names = _fields(head[0]) if head else []
    unnamed = [str(i) for i in range(len(names))]
    if names and names != unnamed and all(is_number(name) for name in names):
        raise Misuse(f"{source} has no header: its first line is numbers, {show(head[0])}; name the columns in it")


def doubt_header(names: Iterable[str]) -> str:
    """What to do if the first line of a file is a row or a comment, "" if it does not look so."""
    for name in names:
        if name.startswith("#"):
            return f"the file's first line begins with {show(name)}: if it is the header, take the # away"
        if is_number(name):
            return f"the file's first line holds the number {name}: if that is no header, write the names above it"
    return ""


def is_number(text: str) -> bool:
    """Whether a text is a number as Python writes them."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def read_table(file: Path, role: str, ignore: Collection[str] = ()) -> pd.DataFrame:
    """Reads a CSV or Parquet table of numbers, without the ignored columns.

    Raises:
        Misuse: what `read_frame`, `refuse_unnamed` and `numbers` refuse.
    """
    frame = read_frame(file, role)
    frame = frame.drop(columns=[name for name in ignore if name in frame.columns])
    return numeric(frame, Source.of(role, file))
