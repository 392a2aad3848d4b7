"""A table as a paper prints it: a LaTeX float that fits a column or a page, with booktabs alone.

Of results, methods are rows and problems columns: as many beside each other as fit, the others in
blocks below. Of other tables the words of the first column stand in rows of their own, and columns
are left out by their weights until the rest fits. An interval stands below its number, in small.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from cbobench.report.tables.table import TextTable, explain_bold, mark, strip_interval

WIDTHS = {"single": 3.25, "double": 6.75}  # inches; those of figures (`style.SIZES`)
POINT = 1 / 72.27  # inches
GAP, LEAST = 8.0, 4.0  # points between two columns, and where they would not fit otherwise
PAGE = 70  # lines of a table on a page
SMALL = 0.86  # of an interval's letters to those of its number
ENTRY = re.compile(
    r"(?P<number>[-+−]?(?:[\d,]*\.?\d+(?:e[-+]?\d+)?|∞))"
    r"(?: \[(?P<ends>[^]]*)\])?(?: (?P<count>\d+/\d+))?"
)
"""A number, its interval, and in how many seeds it is defined."""
NUMBER = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?(?:[e/]\S*)?")  # or a count, such as 9/10
NARROW, WIDE = frozenset(" .,:;'|()[]fijlrt-"), frozenset("mwMW∞×−≤≥%")
SETTINGS = re.compile(r"(?P<name>.+?)\[(?P<settings>\w+=.*)\]")  # a problem that a suite varies
KEYS = ("T", "n")  # columns of results that are no quantity
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


Lines = Sequence[tuple[str, Sequence[tuple[str, str, str]]]]


@dataclass
class Block:
    """Rows under one heading, all of strings as `TextTable` has them; where one number of a column
    is written as a power of ten, all are.

    Attributes:
        section: a line above the rows; empty for none.
    """

    heading: Sequence[str]
    rows: Sequence[Sequence[str]]
    section: str = ""

    def __post_init__(self) -> None:
        columns = []
        for column in zip(*self.rows, strict=True):
            entries = [cell for cell in column if ENTRY.fullmatch(cell)]
            has_powers = any("e" in cell for cell in entries)
            columns.append([*map(_write_powers, column)] if has_powers else column)
        self.rows = [*zip(*columns, strict=True)]


def render_latex(table: TextTable, size: str = "single", intervals: bool = True) -> str:
    """Return a float of one column of a page (`single`) or of its whole width (`double`).

    Args:
        intervals: whether a median's interval stands below it.
    """
    if not intervals:
        rows = [[*map(strip_interval, row)] for row in table.rows]
        table = replace(table, rows=rows, caption=strip_interval(table.caption))
    table, width = _drop_settings(table), WIDTHS[size] / POINT
    if table.brief and {"problem", "algorithm"} <= {*table.columns[:2]}:
        blocks, words = _split_matrix(table, width), 1
        others = (*KEYS, *(name for name in table.columns if name.endswith(" mean")))
        quantities = [name for name in table.columns[2:] if name not in others]
    else:
        blocks, quantities = _split_sections(table, width), []
        words = sum(name in blocks[0].heading for name in table.columns[: table.left])

    first, *comments = explain_bold(table.note).splitlines() or [""]
    sentences = (table.title.replace("\n", " "), first[:1].upper() + first[1:])
    caption = table.caption or ". ".join(filter(None, sentences)).replace("; * ", "; † ")
    count = len(blocks[0].heading)
    gap = LEAST + min(max(width - _measure(blocks), 0.0) / max(count - 1, 1), GAP - LEAST)
    body = _write_blocks(blocks, words)
    if len(body) > PAGE:
        comments.insert(
            0, "longer than a page: --no-interval, --size double or --only make it shorter"
        )
    environment = "table" if size == "single" else "table*"
    return "\n".join(
        [
            r"% needs \usepackage{booktabs}",
            *(f"% {line}" for line in comments),
            rf"\begin{{{environment}}}",
            r"\centering\small",
            rf"\setlength{{\tabcolsep}}{{{gap / 2:.1f}pt}}\setlength{{\belowcaptionskip}}{{4pt}}",
            rf"\caption{{{_to_latex(caption)}}}",
            rf"\label{{tab:{_make_label(table.title, quantities)}}}",
            rf"\begin{{tabular}}{{@{{}}{'l' * words}{'r' * (count - words)}@{{}}}}",
            r"\toprule",
            *body,
            r"\bottomrule",
            r"\end{tabular}",
            rf"\end{{{environment}}}",
        ]
    )


def _split_matrix(table: TextTable, width: float) -> list[Block]:
    """Return methods by problems, a block or more for every quantity; or by quantities, of one
    problem.
    """
    quantities = [name for name in table.columns[2:] if name not in KEYS]
    entries: dict[tuple[str, str], dict[str, str]] = {}
    for row in table.rows:
        record = dict(zip(table.columns, row, strict=True))
        horizon = f", T = {record['T']}" if "T" in record else ""
        entries[record["algorithm"] + horizon, record["problem"]] = record
    methods, problems = (list(dict.fromkeys(names)) for names in zip(*entries, strict=True))

    # By quantity or by problem: what stands above the methods, and (heading, problem, quantity) of
    # all that stand beside each other where they fit.
    by_quantity = [
        (name * (len(quantities) > 1), [(p, p, name) for p in problems]) for name in quantities
    ]
    by_problem = [(p, [(name, p, name) for name in quantities]) for p in problems]

    def split(lines: Lines, count: int) -> list[Block]:
        blocks = []
        for corner, columns in lines:
            for start in range(0, len(columns), count):
                part = columns[start : start + count]
                padding = [""] * (count - len(part))
                rows = [
                    [
                        method,
                        *(entries.get((method, p), {}).get(name, "–") for _, p, name in part),
                        *padding,
                    ]
                    for method in methods
                ]
                blocks.append(Block([corner, *(heading for heading, *_ in part), *padding], rows))
        return blocks

    def fit(lines: Lines) -> list[Block]:
        counts = range(2, 1 + max(len(columns) for _, columns in lines))
        ways = [split(lines, 1), *(split(lines, count) for count in counts)]
        return next((way for way in ways[:0:-1] if _measure(way) <= width), ways[0])

    # The shortest that fits; of equals by quantity.
    ways = fit(by_quantity), fit(by_problem)
    return min(ways, key=lambda blocks: (len(blocks), _measure(blocks) > width))


def _drop_settings(table: TextTable) -> TextTable:
    """Return the table without the brackets of its problems where they tell none from another."""
    if "problem" not in table.columns:
        return table
    i = table.columns.index("problem")
    labels = [SETTINGS.fullmatch(row[i]) for row in table.rows]
    if len({label and label["settings"] for label in labels}) > 1 or not all(labels):
        return table
    rows = [
        [*row[:i], label["name"], *row[i + 1 :]]
        for row, label in zip(table.rows, labels, strict=True)
        if label
    ]
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

    # what the caption says already
    columns = zip(table.columns, zip(*table.rows, strict=True), strict=True)
    alike = {
        i
        for i, (name, cells) in enumerate(columns)
        if table.caption and name in ("against", "n") and len({*cells}) == 1
    }
    return split(table.without(alike).fit(lambda part: _measure(split(part)) <= width))


def _measure(blocks: Sequence[Block]) -> float:
    """Return how many points the columns of some blocks take at least, about."""
    lines = [line for block in blocks for line in (block.heading, *block.rows)]
    columns = zip(*lines, strict=True)
    return sum(max(map(_measure_cell, column)) + LEAST for column in columns) - LEAST


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
            heading = _join(map(_to_latex, block.heading)) + r" \\"
            lines += [*[r"\midrule"] * (i > 0), heading, r"\midrule"]
        if block.section:
            name = _to_latex(block.section)
            lines.append(rf"\multicolumn{{{len(block.heading)}}}{{@{{}}l}}{{\emph{{{name}}}}} \\")
        for row in block.rows:
            lines += _write_row(row, words)
    return lines


def _write_row(row: Sequence[str], words: int) -> list[str]:
    """Return a line of numbers, and one of what stands below them where anything does."""
    cells = [(_mark(cell, _to_latex(cell)), "") for cell in row[:words]]
    cells += [_split_entry(cell) for cell in row[words:]]
    above, below = zip(*cells, strict=True)
    if not any(below):
        return [_join(above) + r" \\"]
    small = [rf"{{\scriptsize {text}}}" if text else "" for text in below]
    return [_join(above) + r" \\[-0.4ex]", _join(small) + r" \\"]


def _split_entry(cell: str) -> tuple[str, str]:
    """Return a number in its marks, and its interval and count."""
    entry = ENTRY.fullmatch(cell)
    if not entry:
        return _mark(cell, _to_latex(cell)), ""
    number = mark(
        cell, _to_math(entry["number"]), r"$\mathbf{{}}$", r"${}$\rlap{$^{\dagger}$}", "${}$"
    )
    ends = ", ".join(f"${_to_math(end)}$" for end in (entry["ends"] or "").split(", ") if end)
    below = [f"[{ends}]" * bool(ends), entry["count"] or ""]
    return number, " ".join(filter(None, below))


def _write_powers(cell: str) -> str:
    """Return an entry with each number as a power of ten in its digits; 0 and infinity stay."""
    if not ENTRY.fullmatch(cell):
        return cell
    return type(cell)(NUMBER.sub(lambda match: _write_power(match[0]), cell))


def _write_power(number: str) -> str:
    plain = number.replace(",", "")
    digits = plain.replace(".", "").lstrip("0")
    return f"{float(plain):.{len(digits) - 1}e}" if digits.isdigit() else number


def _mark(cell: str, text: str) -> str:
    return mark(cell, text, r"\textbf{{}}", r"{}\rlap{$^\dagger$}")


def _to_math(number: str) -> str:
    mantissa, _, exponent = number.replace("−", "-").partition("e")
    digits = mantissa.replace(",", "{,}").replace("∞", r"\infty")
    return digits + (rf"\times10^{{{int(exponent)}}}" if exponent else "")


def _join(cells: Iterable[str]) -> str:
    joined = " & ".join(cells)
    return f"{{}}{joined}" if joined.startswith("[") else joined  # \\ [ would be a distance


def _make_label(title: str, columns: Sequence[str]) -> str:
    """Return a label of what a table is of: suite and kind, and of results the quantities."""
    title = f"{title.partition(';')[0]} {' '.join(columns)}"
    plain_title = re.sub(r", (T|n) = [\d/,]*\d( to [\d/]*\d)?( \(.*?\))?", "", title).lower()
    return re.sub(r"[^a-z0-9]+", "-", plain_title).strip("-") or "results"


def _to_latex(text: str) -> str:
    """Return a text as LaTeX shows it to the letter."""
    pairs = zip(" " + text, text, strict=False)
    text = "".join(
        ("{}" if c == before and c in JOINED else "") + LATEX.get(c, c) for before, c in pairs
    )
    text = text.replace(r" \%", r"~\%")
    return re.sub(r"(?<![^ \[])-(?=[\d$])", "$-$", text)  # of a number
