"""One table in the formats that people need: terminal, Markdown, LaTeX, CSV, JSON."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

FORMATS = ("table", "markdown", "latex", "csv", "json")


@dataclass(frozen=True)
class TextTable:
    """Strings in rows under a heading; where two columns or more are words, the first one sections the rows."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    title: str = ""
    note: str = ""
    left: int = 2  # how many leading columns are words (left-aligned)


def number(value: float, whole: bool = False) -> str:
    """A number with four significant digits at most, or a dash for none.

    Args:
        whole: whether it is a count, or the middle of two counts: 0.5, not 0.5000.
    """
    if value is None or math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    if value == 0:
        return "0"
    if whole and 2 * value == int(2 * value):
        return f"{value:,.0f}" if value == int(value) else f"{value:,.1f}"
    if abs(value) >= 1e6 or abs(value) < 1e-3:
        return f"{value:.2e}"
    return f"{value:,.{max(0, 3 - math.floor(math.log10(abs(value))))}f}" if abs(value) < 1000 else f"{value:,.0f}"


def plus_minus(mean: float, half: float) -> str:
    """mean ± half width: the half width to two significant digits, the mean to the same place."""
    if half is None or not math.isfinite(half) or not math.isfinite(mean) or half == 0:
        return number(mean) if half != 0 else f"{number(mean)} ± 0"
    decimals = max(0, 1 - math.floor(math.log10(half)))
    if decimals > 4 or abs(mean) >= 1e7:
        return f"{mean:.3e} ± {half:.1e}"
    return f"{mean:,.{decimals}f} ± {half:,.{decimals}f}"


def render(table: TextTable, style: str, width: int | None = None) -> str:
    """A text table as `table`, `markdown` or `latex`."""
    if style == "markdown":
        return _markdown(table)
    return _latex(table) if style == "latex" else _terminal(table, width)


def records(rows: Sequence[dict[str, Any]], style: str) -> str:
    """Full-precision records as `csv` or `json`."""
    if style == "json":
        clean = [
            {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in row.items()} for row in rows
        ]
        return json.dumps(clean, indent=1, ensure_ascii=False)
    text = io.StringIO()
    if rows:
        writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return text.getvalue().rstrip("\n")


def _terminal(table: TextTable, width: int | None) -> str:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    shown = Table(box=box.SIMPLE_HEAD, title=table.title or None, title_justify="left", title_style="bold")
    for i, name in enumerate(table.columns):
        shown.add_column(name, justify="left" if i < table.left else "right", no_wrap=i >= table.left)
    previous = None
    for row in table.rows:
        first = "" if row[0] == previous else row[0]
        if first and previous is not None and table.left > 1:
            shown.add_section()
        shown.add_row(first if table.left > 1 else row[0], *row[1:])
        previous = row[0]
    text = io.StringIO()
    console = Console(file=text, width=width or 200, color_system=None, markup=False, highlight=False, emoji=False)
    console.print(shown)
    lines = [line.rstrip() for line in text.getvalue().splitlines()]
    return "\n".join(line for line in lines if line) + (f"\n{table.note}" if table.note else "")


def _markdown(table: TextTable) -> str:
    escape = [[cell.replace("|", "\\|").replace("\n", " ") for cell in row] for row in table.rows]
    rule = [":--" if i < table.left else "--:" for i in range(len(table.columns))]
    lines = [f"| {' | '.join(row)} |" for row in [list(table.columns), rule, *escape]]
    heading = [f"**{table.title}**", ""] if table.title else []
    return "\n".join([*heading, *lines, *(["", table.note] if table.note else [])])


LATEX = {
    "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}", "±": r"$\pm$", "–": "--",
    "₊": "$_+$", "⁺": "$^+$", "µ": r"$\mu$", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "\\": r"\textbackslash{}", "<": "$<$", ">": "$>$",
}  # fmt: skip


def _latex(table: TextTable) -> str:
    def line(row: Sequence[str]) -> str:
        return " & ".join("".join(LATEX.get(c, c) for c in cell) for cell in row) + r" \\"

    align = "".join("l" if i < table.left else "r" for i in range(len(table.columns)))
    body = [line(row) for row in table.rows]
    note = [f"% {table.note}"] if table.note else []
    return "\n".join(
        [*note, rf"\begin{{tabular}}{{{align}}}", r"\toprule", line(table.columns), r"\midrule", *body,
         r"\bottomrule", r"\end{tabular}"]
    )  # fmt: skip
