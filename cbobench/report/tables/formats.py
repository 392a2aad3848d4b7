"""One table in the formats that people need: terminal, Markdown, LaTeX, CSV, JSON; and the numbers
behind it.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
import shutil
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from cbobench.errors import Misuse, printable, show, unknown
from cbobench.report.tables.latex import WIDTHS, render_latex
from cbobench.report.tables.table import (
    Code,
    Marked,
    TextTable,
    explain_bold,
    mark,
    strip_interval,
)
from cbobench.words import join_words

if TYPE_CHECKING:
    import pandas as pd

FORMATS = ("table", "markdown", "latex", "csv", "json")

WIDE = 100  # columns where there is no terminal that says how many
WORDS = 24  # of a column of words: what it may be wrapped to before a column of numbers is left out
LEAST = 10  # the same where no column may be left out
FORMULA = tuple("=+-@＝＋－＠")  # what a spreadsheet takes for the beginning of a formula
NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?|[-+]?inf", re.ASCII | re.IGNORECASE)


def terminal_width() -> int:
    """The columns of the terminal, or what COLUMNS says; `WIDE` where nothing does."""
    return shutil.get_terminal_size((WIDE, 50)).columns


def render(
    table: TextTable,
    style: str,
    width: int | None = None,
    size: str | None = None,
    intervals: bool = True,
) -> str:
    """A text table as `table`, `markdown` or `latex`; a `table` fits `width` where its columns have
    weights.

    What a terminal would obey, or Markdown or LaTeX take as its own, is shown as it was written.
    """
    table = _clean_table(table)
    if style == "markdown":
        return _render_markdown(table)
    if style == "latex":
        return render_latex(table, size or "single", intervals)
    width = width or terminal_width()
    table = _fit_width(table, width) if table.weights or table.brief else table
    return _render_terminal(table, width)


def _clean_table(table: TextTable) -> TextTable:
    """The table without control characters."""

    def clean(text: str) -> str:
        return "\n".join(map(printable, text.split("\n")))

    return replace(
        table,
        columns=[clean(name) for name in table.columns],
        rows=[[type(cell)(clean(cell)) for cell in row] for row in table.rows],
        title=clean(table.title),
        note=clean(table.note),
    )


def _fit_width(table: TextTable, width: int) -> TextTable:
    """The table with problems in lines of their own, then without some intervals, then without some
    columns.

    Each where it does not fit otherwise; what is missing is said at the end of its note.
    """

    def fits(part: TextTable) -> bool:
        return _measure_width(part) <= width

    if fits(table):
        return table
    table = replace(table, folded=table.left > 1)
    bare = list[str]()
    for i in table.brief:
        if not fits(table):
            rows = [[*row[:i], strip_interval(row[i]), *row[i + 1 :]] for row in table.rows]
            table, bare = replace(table, rows=rows), [table.columns[i], *bare]
    fitting = table.fit(fits)
    absent = ", ".join(name for name in table.columns if name not in fitting.columns)
    lines = []
    if absent:
        lines.append(f"not shown at this width: {absent} (--format csv has all)")
    if bare:
        lines.append(f"not shown at this width: intervals of {join_words(bare)}")
    return replace(fitting, note="\n".join(filter(None, [table.note, *lines])))


def _measure_width(table: TextTable, text_width: int = WORDS) -> int:
    """How wide the table is in a terminal, with columns of words wrapped at `text_width`."""
    sizes = [max(map(len, column)) for column in _list_columns(table)]
    left = table.left - table.folded
    words = [min(size, text_width) for size in sizes[:left]]
    return sum(size + 2 for size in [*words, *sizes[left:]]) + 1


def _list_columns(table: TextTable) -> list[list[str]]:
    """The heading and the cells of each column as a terminal shows them, last digits below one
    another; without the first where it is folded.
    """
    columns = []
    for name, *cells in zip(table.columns, *table.rows, strict=True):
        has_marks = any(isinstance(cell, Marked) for cell in cells)
        plain = "{} " if has_marks else "{}"
        columns.append([name, *(mark(cell, cell, "*{}*", "{}*", plain) for cell in cells)])
    if table.folded:
        heading, *names = columns[1]
        columns[:2] = [[heading, *(f"  {name}" for name in names)]]
    return columns


def _escape_html(text: str) -> str:
    """A text as HTML shows it to the letter; control characters are escapes."""
    return "<br>".join(escape(printable(line)) for line in text.split("\n"))


def render_html(table: TextTable) -> str:
    """A table for notebooks and pages: all columns, `Best` cells in bold; where it is too wide, it
    scrolls.
    """

    def row(cells: Iterable[str], tag: str) -> str:
        cells_html = (
            f'<{tag} style="text-align: {"left" if i < table.left else "right"}">{cell}</{tag}>'
            for i, cell in enumerate(cells)
        )
        return f"<tr>{''.join(cells_html)}</tr>"

    body = []
    previous = None
    for row_cells in table.rows:
        cells = [mark(cell, _escape_html(cell), "<b>{}</b>", "{}*") for cell in row_cells]
        if table.left > 1:  # the first column sections the rows
            cells[0], previous = "" if row_cells[0] == previous else cells[0], row_cells[0]
        body.append(row(cells, "td"))
    head = row(map(_escape_html, table.columns), "th")
    below = f"<p><small>{_escape_html(explain_bold(table.note))}</small></p>"
    title = f'<caption style="text-align: left"><b>{_escape_html(table.title)}</b></caption>'
    return (
        f'<div style="overflow-x: auto"><table>{title}'
        f"<thead>{head}</thead><tbody>{''.join(body)}</tbody></table>{below}</div>"
    )


@dataclass(frozen=True)
class Comparison:
    """A comparison: `frame` holds the numbers, `str()` is the table of a terminal.

    Attributes:
        frame: one row per row of the table, in full precision.
        table: the same for readers.
        worse: between two runs, whether anything is worse or newly failing.
        nothing: why two runs hold nothing that can be compared; empty where they hold something.
        undecided: what of two runs no test can decide with these seeds; empty if all can be
            decided.
        unplayable: what the run's suite leaves out because it cannot be played, and why, a line
            each.
    """

    frame: pd.DataFrame
    table: TextTable
    worse: bool = False
    nothing: str = ""
    undecided: str = ""
    unplayable: tuple[str, ...] = ()

    def render(
        self,
        style: str = "table",
        width: int | None = None,
        size: str | None = None,
        intervals: bool = True,
    ) -> str:
        """The comparison in one of `formats.FORMATS`, or as "html" for notebooks and pages.

        Args:
            width: of a table, in letters; by default the terminal's.
            size: of LaTeX: "single", one column of a page (the default), or "double".
            intervals: of LaTeX: whether each number has its interval below it.

        Raises:
            Misuse: no such format or size, or a size for another format.
        """
        if style == "html":
            return render_html(self.table)
        if style not in FORMATS:
            raise Misuse(f"format is {show(style)}; allowed: {', '.join(FORMATS)}")
        if style != "latex" and (size or not intervals):
            raise Misuse(f"size and intervals are of latex; format is {style}")
        if size is not None and size not in WIDTHS:
            raise unknown("size", size, WIDTHS)
        if style in ("csv", "json"):
            # NaN is a value of a column of floats, elsewhere there is none.
            floats = self.frame.select_dtypes("float").columns
            frame = self.frame.astype(object)
            frame = frame.where(frame.columns.isin(floats) | frame.notna(), None)
            return render_records(frame.to_dict("records"), style)
        return render(self.table, style, width, size, intervals)

    def __str__(self) -> str:
        return self.render()

    def _repr_html_(self) -> str:
        return self.render("html")

    def _repr_markdown_(self) -> str:
        return self.render("markdown")


def render_records(rows: Sequence[Mapping[Any, Any]], style: str) -> str:
    """Full-precision records as `csv` or `json`.

    JSON has no word for what is no finite number: infinite is "inf" or "-inf", undefined is null.
    CSV writes inf, -inf and nan; what a row has not is null, or empty. In CSV no text is a formula
    (`escape_formula`).
    """
    if style == "json":
        clean = [{key: to_json_value(value) for key, value in row.items()} for row in rows]
        return json.dumps(clean, indent=1, ensure_ascii=False)
    text = io.StringIO()
    if rows:
        names = list(rows[0])
        lines: list[list[Any]] = [names, *([row.get(name) for name in names] for row in rows)]
        csv.writer(text, lineterminator="\n").writerows(
            [escape_formula(printable(cell) if isinstance(cell, str) else cell) for cell in line]
            for line in lines
        )
    return text.getvalue().rstrip("\n")


def escape_formula(value: Any) -> Any:
    """A cell of a CSV: text that begins as a formula begins with an apostrophe, what is or says a
    number stays.
    """
    formula = isinstance(value, str) and value.startswith(FORMULA) and not NUMBER.fullmatch(value)
    if formula:
        return f"'{value}"
    return value


def to_json_value(value: Any) -> Any:
    """What JSON can say of a value: null where there is none, words where it is infinite."""
    value = value.item() if hasattr(value, "item") else value  # a number of NumPy
    if isinstance(value, float) and not math.isfinite(value):
        if math.isnan(value):
            return None
        return str(value)
    if isinstance(value, str):
        return printable(value)
    return value


def _render_terminal(table: TextTable, width: int) -> str:
    """The table in `width` columns, or in as many as those of its columns take that are never left
    out.
    """
    columns = _list_columns(table)
    left = table.left - table.folded
    needed = 0 if table.weights else _measure_width(table, LEAST)
    sizes = choose_sizes(columns, left, max(width, needed))
    heading, *rows = zip(*columns, strict=True)
    rule = " " + "─" * (sum(sizes) + 2 * len(sizes) - 1)
    lines = [*lay_out_row(heading, sizes, left, -1), rule]
    previous = None
    for (section, *_), row in zip(table.rows, rows, strict=True):
        # What several rows share is said once: above them, or beside the first one.
        if section != previous and table.folded:
            lines += [f"  {part}" for part in textwrap.wrap(section, width - 2)]
        elif section == previous and not table.folded and table.left > 1:
            row = ("", *row[1:])
        lines += lay_out_row(row, sizes, left)
        previous = section
    return "\n".join([*_wrap_text(table.title, width), *lines, *_wrap_text(table.note, width)])


def choose_sizes(columns: Sequence[Sequence[str]], left: int, width: int) -> list[int]:
    """How wide columns are: as their texts, but narrower for the widest of words where that is more
    than `width`.

    Numbers are never cut: where these alone are wider, so is the table.

    Args:
        columns: headings and cells.
        left: how many leading columns are words.
    """
    from rich.cells import cell_len

    sizes = [max(map(cell_len, column)) for column in columns]
    for _ in range(sum(sizes) + 2 * len(sizes) + 1 - width):
        widest = max(range(left), key=lambda i: (sizes[i], i))
        sizes[widest] = max(1, sizes[widest] - 1)
    return sizes


def lay_out_row(row: Sequence[str], sizes: Sequence[int], left: int, step: int = 1) -> list[str]:
    """The lines of a row: words from the left and wrapped in the `left` first columns, numbers from
    the right.

    Args:
        step: 1 where what takes fewer lines is above, -1 where it is below, as in headings.
    """
    from rich.cells import cell_len
    from rich.console import Console
    from rich.text import Text

    parts = []
    for i, (cell, size) in enumerate(zip(row, sizes, strict=True)):
        if i < left:
            lines = [line.plain.rstrip() for line in Text(cell).wrap(Console(), size)]
        else:
            lines = [" " * (size - cell_len(cell.rstrip())) + cell.rstrip()]
        parts.append((lines or [""])[::step])
    lines = [
        "".join(
            f"  {text}{' ' * (size - cell_len(text))}"
            for text, size in zip(texts, sizes, strict=True)
        ).rstrip()
        for texts in zip_longest(*parts, fillvalue="")
    ]
    return lines[::step]


def _wrap_text(text: str, width: int) -> list[str]:
    return [
        part
        for line in text.splitlines()
        for part in textwrap.wrap(line, width, break_on_hyphens=False)
    ]


MARKDOWN = re.compile(
    r"[\\`*|<>~$]"
    r"|(?<![^\W_])_|_(?![^\W_])"  # within a word it is a letter
    r"|&(?=#?\w+;)"  # where it would begin an entity
    r"|(?<=\])\("  # where it would make a link
)


BLOCK = re.compile(r"\s*(?:\d{1,9}(?=[.)](?:\s|$))|(?=(?:[-+]|#{1,6})(?:\s|$)|=+\s*$|--+\s*$))")
"""What comes before the sign that makes a line of text a list, a heading or a rule."""


def escape_markdown(cell: str) -> str:
    """A text as Markdown shows it to the letter, also within a table."""
    if isinstance(cell, Code) and "`" not in cell:
        return f"`{cell}`".replace("|", "\\|")
    return mark(cell, MARKDOWN.sub(r"\\\g<0>", cell), "**{}**", "{}\\*")


def _render_markdown(table: TextTable) -> str:
    rows = [[escape_markdown(cell) for cell in row] for row in (table.columns, *table.rows)]
    rule = [":--" if i < table.left else "--:" for i in range(len(table.columns))]
    lines = [f"| {' | '.join(row)} |" for row in [rows[0], rule, *rows[1:]]]
    note = "\\\n".join(map(_escape_line, explain_bold(table.note).split("\n")))
    if table.title:
        lines = [f"**{escape_markdown(table.title)}**", "", *lines]
    if note:
        lines += ["", note]
    return "\n".join(lines)


def _escape_line(line: str) -> str:
    """A line of a paragraph as Markdown shows it to the letter."""
    text = escape_markdown(line)
    block = BLOCK.match(line)
    if block:
        return f"{text[: block.end()]}\\{text[block.end() :]}"
    return text
