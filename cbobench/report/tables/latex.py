"""A table as a paper prints it: a LaTeX float that fits a column or a page, with booktabs alone.

Of results, methods are rows and problems columns, of one problem its quantities: as many beside
each other as fit, the others in blocks below. Of other tables the words of the first column stand
in rows of their own, and columns are left out by their weights until the rest fits. An interval
stands below its number, in small.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from cbobench.report.tables.table import TextTable, explain_bold, mark, strip_interval

WIDTHS = {"single": 3.25, "double": 6.75}  # inches; those of figures (`style.SIZES`)
POINT = 1 / 72.27  # inches
GAP = 6.0  # points between two columns
PAGE = 70  # lines of a table on a page
SMALL = 0.86  # of an interval's letters to those of its number
ENTRY = re.compile(
    r"(?P<number>[-+−]?(?:[\d,]*\.?\d+(?:e[-+]?\d+)?|∞))"
    r"(?: \[(?P<ends>[^]]*)\])?(?: (?P<count>\d+/\d+))?"
)
"""A number, its interval, and in how many seeds it is defined."""
NARROW = frozenset(" .,:;'|()[]fijlrt-")
WIDE = frozenset("mwMW∞×−≤≥%")
SETTINGS = re.compile(r"(?P<name>.+?)\[(?P<settings>\w+=.*)\]")  # a problem that a suite varies
KEYS = ("T", "n")  # columns of results that are no quantity
SAID = ("against", "n")  # columns of differences that a caption takes where they are alike
MATH = (
    r"± \pm, ₊ _+, ⁺ ^+, * ^*, ′ ', † ^\dagger, "
    r"< <, > >, ≤ \le, ≥ \ge, | |, − -, × \times, "
    r"· \cdot, √ \surd, ∞ \infty, α \alpha, β \beta, γ \gamma, Γ \Gamma, δ \delta, Δ \Delta, ε "
    r"\varepsilon, κ \kappa, "
    r"ζ \zeta, η \eta, θ \theta, Θ \Theta, λ \lambda, Λ \Lambda, µ \mu, μ \mu, ν \nu, "
    r"ξ \xi, Ξ \Xi, π \pi, Π \Pi, ρ \rho, σ \sigma, Σ \Sigma, τ \tau, φ \varphi, Φ \Phi, "
    r"χ \chi, ψ \psi, Ψ \Psi, ω \omega, Ω \Omega, "
    r"₀ _0, ₁ _1, ₂ _2, ₃ _3, ₄ _4, ₅ _5, ₆ _6, ₇ _7, ₈ _8, ₉ _9, "
    r"⁰ ^0, ¹ ^1, ² ^2, ³ ^3, ⁴ ^4, ⁵ ^5, ⁶ ^6, ⁷ ^7, ⁸ ^8, ⁹ ^9"
)
"""Signs that LaTeX has in formulas only, each with its command there."""
LATEX = {
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "\\": r"\textbackslash{}",
    "`": r"\textasciigrave{}",
    "–": "--",
} | {sign: f"${command}$" for sign, command in (pair.split() for pair in MATH.split(", "))}


JOINED = "-',"  # two of them in a row would be another sign


class Block(NamedTuple):
    """Rows under one heading, all of strings as `TextTable` has them.

    Attributes:
        section: a line above the rows; empty for none.
    """

    heading: Sequence[str]
    rows: Sequence[Sequence[str]]
    section: str = ""


def render_latex(table: TextTable, size: str = "single", intervals: bool = True) -> str:
    """Return a float of one column of a page (`single`) or of its whole width (`double`).

    Args:
        intervals: whether a median's interval stands below it.
    """
    if not intervals:
        rows = [[strip_interval(cell) for cell in row] for row in table.rows]
        table = replace(table, rows=rows, note=strip_interval(table.note))
    table = _drop_settings(table)
    width = WIDTHS[size] / POINT
    quantities: list[str] = []
    if table.brief and {"problem", "algorithm"} <= {*table.columns[:2]}:
        words = 1
        quantities = [name for name in table.columns[2:] if name not in KEYS]
        blocks = _split_matrix(table, quantities, width)
    else:
        blocks = _split_sections(table, width)
        words = sum(name in blocks[0].heading for name in table.columns[: table.left])
    # The first line of a note explains the entries; what else it says is a comment.
    first, *comments = explain_bold(table.note).splitlines() or [""]
    subject = ": ".join(filter(None, [", ".join(quantities), table.title.replace("\n", " ")]))
    alike = [f"{name} {text}" for name, text in _find_alike(table).items() if text != "–"]
    sentences = [", ".join([subject, *alike]), first[:1].upper() + first[1:]]
    caption = ". ".join(filter(None, sentences)).replace("; * ", "; † ")
    body = _write_blocks(blocks, words)
    if len(body) > PAGE:
        shorter = "--no-interval, --size double or --only make it shorter"
        comments.insert(0, f"longer than a page: {shorter}")
    environment = "table" if size == "single" else "table*"
    columns = "l" * words + "r" * (len(blocks[0].heading) - words)
    return "\n".join(
        [
            r"% needs \usepackage{booktabs}",
            *(f"% {line}" for line in comments),
            rf"\begin{{{environment}}}",
            r"\centering\small",
            rf"\setlength{{\tabcolsep}}{{{GAP / 2:.1f}pt}}\setlength{{\belowcaptionskip}}{{4pt}}",
            rf"\caption{{{_to_latex(caption)}.}}",
            rf"\label{{tab:{_make_label(table.title, quantities)}}}",
            rf"\begin{{tabular}}{{@{{}}{columns}@{{}}}}",
            r"\toprule",
            *body,
            r"\bottomrule",
            r"\end{tabular}",
            rf"\end{{{environment}}}",
        ]
    )


def _split_matrix(table: TextTable, quantities: Sequence[str], width: float) -> list[Block]:
    """Return methods by problems, a block or more for every quantity; or by quantities, of one
    problem.
    """
    entries: dict[tuple[str, str, str], str] = {}
    for row in table.rows:
        record = dict(zip(table.columns, row, strict=True))
        method = record["algorithm"]
        if "T" in record:
            method += f", T = {record['T']}"
        for name in quantities:
            entries[method, record["problem"], name] = record[name]
    methods = dict.fromkeys(method for method, _, _ in entries)
    problems = list(dict.fromkeys(problem for _, problem, _ in entries))

    # What stands beside each other where it fits: problems, or the quantities of the only one.
    several = len(quantities) > 1
    if several and len(problems) == 1:
        lines = [(problems[0], [(name, problems[0], name) for name in quantities])]
    else:
        lines = [
            (name if several else "", [(problem, problem, name) for problem in problems])
            for name in quantities
        ]

    def split(count: int) -> list[Block]:
        blocks = []
        for corner, columns in lines:
            for start in range(0, len(columns), count):
                part = columns[start : start + count]
                padding = [""] * (count - len(part))
                rows = [
                    [
                        method,
                        *(entries.get((method, p, name), "–") for _, p, name in part),
                        *padding,
                    ]
                    for method in methods
                ]
                blocks.append(Block([corner, *(name for name, *_ in part), *padding], rows))
        return blocks

    ways = [split(count) for count in range(len(lines[0][1]), 0, -1)]
    return next((way for way in ways if _measure(way) <= width), ways[-1])


def _drop_settings(table: TextTable) -> TextTable:
    """Return the table without the brackets of its problems where they tell none from another."""
    if "problem" not in table.columns:
        return table
    i = table.columns.index("problem")
    labels = [SETTINGS.fullmatch(row[i]) for row in table.rows]
    if len({label and label["settings"] for label in labels}) > 1 or not all(labels):
        return table
    rows = [[*row[:i], SETTINGS.sub(r"\g<name>", row[i]), *row[i + 1 :]] for row in table.rows]
    return replace(table, rows=rows)


def _split_sections(table: TextTable, width: float) -> list[Block]:
    """Return the rows under what their first columns share, with as many columns as fit."""

    def split(part: TextTable) -> list[Block]:
        if part.left < 2:
            return [Block(part.columns, part.rows)]
        sections: dict[str, list[Sequence[str]]] = {}
        for row in part.rows:
            sections.setdefault(row[0], []).append(row[1:])
        return [Block(part.columns[1:], rows, name) for name, rows in sections.items()]

    said = {i for i, name in enumerate(table.columns) if name in _find_alike(table)}
    return split(table.without(said).fit(lambda part: _measure(split(part)) <= width))


def _find_alike(table: TextTable) -> dict[str, str]:
    """Return what stands in every row, which the caption says: against whom, and n."""
    columns = zip(table.columns, zip(*table.rows, strict=True), strict=False)
    return {name: cells[0] for name, cells in columns if name in SAID and len({*cells}) == 1}


def _measure(blocks: Sequence[Block]) -> float:
    """Return how many points the columns of some blocks take at least, about."""
    lines = [line for block in blocks for line in (block.heading, *block.rows)]
    columns = zip(*lines, strict=True)
    return sum(max(map(_measure_cell, column)) + GAP for column in columns) - GAP


def _measure_cell(cell: str) -> float:
    entry = ENTRY.fullmatch(cell)
    if not entry:
        return _measure_text(cell)
    below = f"[{entry['ends'] or ''}] {entry['count'] or ''}"
    above, below = (re.sub(r"(?<!e)-", "−", text) for text in (entry["number"], below))
    return max(_measure_text(above), SMALL * _measure_text(below))


def _measure_text(text: str) -> float:
    """Return the points of a line in letters of nine points; e-05 is written as a power of ten."""
    text = re.sub(r"e[-+]?0?(\d)", r"××10\1", text)  # spaces beside the sign, a small exponent
    return sum(2.8 if c in NARROW else 8.0 if c in WIDE else 4.9 for c in text)


def _write_blocks(blocks: Sequence[Block], words: int) -> list[str]:
    lines = list[str]()
    for i, block in enumerate(blocks):
        # A heading stands once above blocks that share it.
        if i and block.section:
            lines.append(r"\addlinespace")
        else:
            if i:
                lines.append(r"\midrule")
            lines += [_write_line(map(_to_latex, block.heading)), r"\midrule"]
        if block.section:
            name = _to_latex(block.section)
            lines.append(rf"\multicolumn{{{len(block.heading)}}}{{@{{}}l}}{{\emph{{{name}}}}} \\")
        for row in block.rows:
            lines += _write_row(row, words)
    return lines


def _write_row(row: Sequence[str], words: int) -> list[str]:
    """Return a line of numbers, and one of what stands below them where anything does."""
    above = [_mark(cell) for cell in row[:words]]
    below = [""] * words
    for cell in row[words:]:
        number, small = _split_entry(cell)
        above.append(number)
        below.append(rf"{{\scriptsize {small}}}" if small else "")
    if not any(below):
        return [_write_line(above)]
    return [_write_line(above, "[-0.4ex]"), _write_line(below)]


def _split_entry(cell: str) -> tuple[str, str]:
    """Return a number in its marks, and its interval and count."""
    entry = ENTRY.fullmatch(cell)
    if not entry:
        return _mark(cell), ""
    text = _to_math(entry["number"])
    number = mark(cell, text, r"$\mathbf{{}}$", r"${}$\rlap{$^{\dagger}$}", "${}$")
    below = [entry["count"]]
    if entry["ends"]:
        ends = ", ".join(f"${_to_math(end)}$" for end in entry["ends"].split(", "))
        below.insert(0, f"[{ends}]")
    return number, " ".join(filter(None, below))


def _mark(cell: str) -> str:
    return mark(cell, _to_latex(cell), r"\textbf{{}}", r"{}\rlap{$^\dagger$}")


def _to_math(number: str) -> str:
    mantissa, _, exponent = number.replace("−", "-").partition("e")
    digits = mantissa.replace(",", "{,}").replace("∞", r"\infty")
    if exponent:
        return digits + rf"\times10^{{{int(exponent)}}}"
    return digits


def _write_line(cells: Iterable[str], skip: str = "") -> str:
    joined = " & ".join(cells)
    if joined.startswith("["):
        joined = f"{{}}{joined}"  # \\ [ would be a distance
    return rf"{joined} \\{skip}"


def _make_label(title: str, columns: Sequence[str]) -> str:
    """Return a label of what a table is of: suite and kind, and of results the quantities."""
    words = re.sub(r", [Tn] = .*", "", title.partition(";")[0])
    return re.sub(r"[^a-z0-9]+", "-", " ".join([words, *columns]).lower()).strip("-") or "results"


def _to_latex(text: str) -> str:
    """Return a text as LaTeX shows it to the letter."""
    pairs = zip(" " + text, text, strict=False)
    text = "".join(
        ("{}" if c == before and c in JOINED else "") + LATEX.get(c, c) for before, c in pairs
    )
    text = text.replace(r" \%", r"~\%")
    return re.sub(r"(?<![^ \[])-(?=[\d$])", "$-$", text)  # of a number
