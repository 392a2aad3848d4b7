"""Files of tables that users bring, CSV or Parquet, read as they stand.

What pandas would misread, or refuse in words of its own, is said in one line with the step that
helps: lines of comments, other separators, a file without a header.
"""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, NoReturn

from cbobench.errors import Misuse, one_line, show
from cbobench.problems.columns import (
    Source,
    compose,
    is_number,
    list_rows,
    numeric,
    split_fields,
    texts,
)
from cbobench.words import count_noun

if TYPE_CHECKING:
    import pandas as pd

# as Python writes them for pandas
SEPARATORS = {";": "';'", "\t": r"'\t'", "|": "'|'", " ": r"r'\s+'"}
SEP_LINE = re.compile(r'"?sep=.?"?[,;|\s]*', re.IGNORECASE)  # tells Excel the separator
# 0,5 and 1,25, but 1,250 may be a thousand
DECIMAL_COMMA = re.compile(r"(?![-+]?[1-9]\d{0,2},\d{3}$)[-+]?\d+,\d+")


def read_frame(file: Path, role: str, categories: Collection[str] = ()) -> pd.DataFrame:
    """Reads a CSV or Parquet table. The index of a Parquet file becomes a column, its decimals
    become floats, and names their composed form (`columns.compose`).

    Args:
        categories: columns whose text stands for itself: 1.10 is not 1.1 there, and None and NA are
            not missing.

    Raises:
        Misuse: missing, unreadable, another format, without a header or without rows.
    """
    import pandas as pd

    # Before pandas, whose words are of its own reading and not of the file.
    if not file.is_file():
        raise Misuse(
            f"{role} {show(str(file))} does not exist; give the path of a CSV or Parquet file"
        )
    suffix, source = file.suffix.lower(), f"{role} {file.name!r}"
    if suffix not in (".csv", ".parquet"):
        raise Misuse(f"{source} is a {file.suffix or 'nameless'} file; allowed: .csv, .parquet")
    frame = (
        _read_csv(file, source, categories)
        if suffix == ".csv"
        else _read_parquet(file, source, categories)
    )
    # An index that somebody named holds data, as a column does.
    if not (isinstance(frame.index, pd.RangeIndex) and frame.index.name is None):
        for name in frame.index.names:
            if name in frame.columns:
                raise Misuse(
                    f"{source}: its index and a column are both called {show(name)}; write the "
                    "file with index=False, or give one of them another name"
                )
        frame = frame.reset_index()
    if frame.empty:
        raise Misuse(f"{source} has no rows below its header; give at least one")
    frame.columns = compose([str(name) for name in frame.columns])
    return frame


def _refuse_unreadable(source: str, error: Exception) -> NoReturn:
    fix = "; save it as UTF-8" if isinstance(error, UnicodeError) else ""
    raise Misuse(f"{source} cannot be read: {one_line(error)}{fix}") from error


def _read_parquet(file: Path, source: str, categories: Collection[str]) -> pd.DataFrame:
    import pandas as pd
    from pyarrow.parquet import read_schema

    try:
        header = compose(read_schema(file).names)
        _refuse_repeated(source, header, header)  # pandas reads no such file
        frame = pd.read_parquet(file)
    except Misuse:
        raise
    except Exception as error:  # pyarrow raises many kinds
        _refuse_unreadable(source, error)
    for name in texts(frame):
        # Objects that are numbers but for their type: decimals, Booleans with nulls, nulls alone.
        is_number_like = pd.api.types.infer_dtype(frame[name], skipna=True) in (
            "decimal",
            "boolean",
            "empty",
        )
        if is_number_like and compose(name) not in categories:
            frame[name] = frame[name].astype("float64")
    return frame


def _read_csv(file: Path, source: str, categories: Collection[str]) -> pd.DataFrame:
    import pandas as pd

    try:
        sheet = _look_at_head(file, source)
        width = _check_rows(sheet)
        # Without index_col pandas takes a surplus value for a row's name, and shifts all others to
        # the left.
        frame = pd.read_csv(file, index_col=False, usecols=range(width), low_memory=False)
        texts_of = [i for i, name in enumerate(frame.columns) if compose(name) in categories]
        if texts_of:
            plain = pd.read_csv(
                file, index_col=False, usecols=texts_of, dtype=str, keep_default_na=False
            )
            frame[plain.columns] = plain
        return frame
    except Misuse:
        raise
    except Exception as error:  # pandas raises many kinds
        _refuse_unreadable(source, error)


@dataclass(frozen=True)
class _Sheet:
    """How a file is written, as its first lines look.

    Attributes:
        source, file: what messages call it, and its path.
        separator: of fields: a comma, or a key of `SEPARATORS`.
        notes: lines above the header, by number: comments, and the sep= that Excel writes.
        header: the line with the names.
    """

    source: str
    file: Path
    separator: str
    notes: dict[int, str]
    header: str


def _look_at_head(file: Path, source: str) -> _Sheet:
    """Raises `Misuse` for a file without a header."""
    notes, body = dict[int, str](), list[str]()
    with file.open(encoding="utf-8-sig", newline="") as lines:
        for number, line in enumerate(lines, 1):
            text = line.rstrip("\r\n")
            if not body and (text.startswith("#") or SEP_LINE.fullmatch(text)):
                notes[number] = text
            elif text.strip() and not text.startswith("#"):
                body.append(text)
            if len(body) == 2:
                break
    separator = _find_separator(body)
    comments = [number for number, text in notes.items() if text.startswith("#")]
    if body and len(comments) == 1:
        names, values = (split_fields(text, separator) for text in (notes[comments[0]], body[0]))
        # a header may begin with # too
        if len(names) == len(values) and any(map(is_number, values)):
            body = [notes.pop(comments[0]), *body]
    if not (body or notes):
        raise Misuse(
            f"{source} is empty; write a header with the names of its columns, and rows below it"
        )
    if separator == "," and not notes:
        _refuse_numbers(body, source)
    return _Sheet(source, file, separator, notes, body[0] if body else "")


def _check_rows(sheet: _Sheet) -> int:
    """How many columns a file with commas has; separators at the end of its lines make none.

    Raises:
        Misuse: another separator, lines that are no rows, a row with more or fewer values than the
            header has names.
    """
    # What pandas does with rows of unequal lengths (names of rows, NaN) shifts values unseen:
    # each is looked at.
    rows = (row for row in list_rows(sheet.file, sheet.separator) if row[0] not in sheet.notes)
    _, header = next(rows, (0, []))
    named = count_named(header)
    width, length, decimal, notes = named, 0, "", dict(sheet.notes)
    for line, fields in rows:
        fits = len(fields) >= named and not any(map(str.strip, fields[len(header) :]))
        if fields[0].startswith("#") and not fits:
            notes[line] = sheet.separator.join(fields)
            continue
        length = length or len(fields)
        if not fits or len(fields) != length:
            _refuse_length(sheet, line, len(fields), named if not fits else length)
        if any(map(str.strip, fields[width:])):
            width = len(header)
        if sheet.separator != "," and any(
            DECIMAL_COMMA.fullmatch(field.strip()) for field in fields
        ):
            decimal = "decimal=','"
    # Said at the end, as the step that helps has to know of all notes and of decimal commas.
    if sheet.separator != ",":
        skip = _skip_notes(sheet, notes) if notes else ""
        index = "index_col=False" if length > len(header) else ""
        _refuse_separator(sheet, notes, [option for option in (decimal, skip, index) if option])
    if notes:
        _refuse_notes(sheet, notes)
    return width


def count_named(names: Sequence[str]) -> int:
    """How many columns a header names, without those at its end that have no name, also as pandas
    writes it.
    """
    named = len(names)
    while named and names[named - 1].strip() in ("", f"Unnamed: {named - 1}"):
        named -= 1
    return named


def _refuse_length(sheet: _Sheet, line: int, count: int, width: int) -> NoReturn:
    heading = " (or leave line 1 out, if it is a title)" if width == 1 else ""
    comma = "a comma" if sheet.separator == "," else SEPARATORS[sheet.separator].removeprefix("r")
    raise Misuse(
        f"{sheet.source}: line {line} has {count_noun(count, 'value')}, where the lines above it "
        f"have {width:,}; "
        "write as many values into every line as the header has names, in quotes if they hold "
        f"{comma}, and name every column{heading}"
    )


def _describe_notes(notes: dict[int, str]) -> str:
    """The first of them."""
    number, text = next(iter(notes.items()))
    return (
        f"line {number} is {'a comment, ' * text.startswith('#')}{show(text)}, which a CSV does "
        "not have"
    )


def _refuse_notes(sheet: _Sheet, notes: dict[int, str]) -> NoReturn:
    """Raises `Misuse` for lines that are no rows of a file with commas."""
    # before line 1, where patterns then do not match
    has_mark = sheet.file.read_bytes().startswith(BOM_UTF8)
    numbered = [n for n, text in notes.items() if not text.startswith("#") or (n == 1 and has_mark)]
    command, fix = "grep -v '^#'", "lines that begin with #"
    if numbered:
        edits = [f"{n}d" for n in numbered] + ["/^#/d"] * (len(numbered) < len(notes))
        command, fix = f"sed '{';'.join(edits)}'", "such lines"
    name, clean_name = quote(sheet.file.name), quote(_clean_name(sheet.file))
    raise Misuse(
        f"{sheet.source}: {_describe_notes(notes)}; leave out {fix}: {command} {name} > "
        f"{clean_name}"
    )


def _skip_notes(sheet: _Sheet, notes: dict[int, str]) -> str:
    """The option of pandas that leaves them out; a list counts lines from 0."""
    above = len(notes) == len(sheet.notes)
    return f"skiprows={max(notes) if above else [number - 1 for number in notes]}"


def _refuse_separator(sheet: _Sheet, notes: dict[int, str], options: Sequence[str]) -> NoReturn:
    word = SEPARATORS[sheet.separator]
    plain = word.removeprefix("r")
    complaint = (
        f" is separated by {plain} and not by commas, as its first line is {show(sheet.header)}"
    )
    if notes:
        complaint = (
            f": {_describe_notes(notes)}, and the others are separated by {plain} and not by commas"
        )
    raise Misuse(
        f"{sheet.source}{complaint}; write it anew in Python: "
        f"pandas.read_csv({sheet.file.name!r}, {', '.join([f'sep={word}', *options])})"
        f".to_csv({_clean_name(sheet.file)!r}, index=False)"
    )


def _find_separator(lines: Sequence[str]) -> str:
    """What separates the first lines alike: a comma, unless another separator does."""
    for separator in SEPARATORS:
        parts = [split_fields(line, separator) for line in lines]
        named = count_named(parts[0]) if parts else 0
        if named < 2 or len(parts[-1]) < named or any(map(str.strip, parts[-1][len(parts[0]) :])):
            continue
        numbers = [
            all(is_number(field.strip().replace(",", ".")) for field in part) for part in parts
        ]
        if numbers[0] or ("," not in lines[0] and (separator != " " or numbers[-1])):
            return separator
    return ","


def _clean_name(file: Path) -> str:
    return f"{file.stem}_clean.csv"


def _refuse_numbers(body: Sequence[str], source: str) -> None:
    """Raises `Misuse` for a file whose first line is numbers, unless it counts the columns, as
    pandas does.
    """
    names = split_fields(body[0]) if body else []
    unnamed = [str(i) for i in range(len(names))]
    if names and names != unnamed and all(is_number(name) for name in names):
        raise Misuse(
            f"{source} has no header: its first line is numbers, {show(body[0])}; name the "
            "columns in it"
        )


def refuse_doubled(source: Source, names: Iterable[str]) -> None:
    """Raises `Misuse` for a column with a role whose name the header has twice: pandas would take
    the first.
    """
    if source.path.suffix.lower() != ".csv":
        return
    _, header = next(list_rows(source.path))
    _refuse_repeated(str(source), compose(header), names)


def _refuse_repeated(source: str, header: Sequence[str], names: Iterable[str]) -> None:
    for name in names:
        if (count := header.count(name)) > 1:
            raise Misuse(
                f"{source}: {count} columns are called {show(name)}; give them different names "
                "in the file"
            )


def doubt_header(names: Iterable[str]) -> str:
    """What to do if the first line of a file is a row or a comment, "" if it does not look so."""
    for name in names:
        if name.startswith("#"):
            return (
                f"the file's first line begins with {show(name)}: if it is the header, take the "
                "# away"
            )
        if is_number(name):
            return (
                f"the file's first line holds the number {name}: if that is no header, write the "
                "names above it"
            )
    return ""


def read_table(file: Path, role: str, ignore: Collection[str] = ()) -> pd.DataFrame:
    """Reads a CSV or Parquet table of numbers, without the ignored columns.

    Raises:
        Misuse: what `read_frame`, `refuse_unnamed` and `numbers` refuse.
    """
    frame = read_frame(file, role)
    frame = frame.drop(columns=[name for name in ignore if name in frame.columns])
    return numeric(frame, Source.of(role, file))
