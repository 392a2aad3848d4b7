"""Tables and runs as HTML, as a notebook shows them. Every text is escaped: labels are a suite's own."""

from __future__ import annotations

from html import escape

from cbobench.errors import printable
from cbobench.report.compare import compare
from cbobench.report.formats import Marked, TextTable
from cbobench.report.load import Run
from cbobench.words import counted


def text(given: str) -> str:
    """A text as HTML shows it to the letter; control characters are escapes."""
    return "<br>".join(escape(printable(line)) for line in given.split("\n"))


def table(shown: TextTable) -> str:
    """A table with all its columns, `Marked` cells in bold; where it is wider than the page, it scrolls."""

    def row(cells: list[str], tag: str) -> str:
        sides = ["left" if i < shown.left else "right" for i in range(len(cells))]
        made = (f'<{tag} style="text-align: {side}">{cell}</{tag}>' for side, cell in zip(sides, cells, strict=True))
        return f"<tr>{''.join(made)}</tr>"

    body = []
    previous = None
    for given in shown.rows:
        cells = [f"<b>{text(cell)}</b>" if isinstance(cell, Marked) else text(cell) for cell in given]
        if shown.left > 1:  # the first column sections the rows
            cells[0], previous = "" if given[0] == previous else cells[0], given[0]
        body.append(row(cells, "td"))
    head = row([text(name) for name in shown.columns], "th")
    return (
        f'<div style="overflow-x: auto"><table><caption style="text-align: left"><b>{text(shown.title)}</b></caption>'
        f"<thead>{head}</thead><tbody>{''.join(body)}</tbody></table><p><small>{text(shown.note)}</small></p></div>"
    )


def run(opened: Run) -> str:
    """What of a run is done, and its comparison."""
    cells, expected = opened.cells, len(opened.record.cells)
    failed = int((cells["status"] == "failed").sum())
    words = [f"{len(cells) - failed:,} of {counted(expected, 'cell')} done"]
    words += [f"{count:,} {word}" for word, count in (("failed", failed), ("stale", len(opened.stale))) if count]
    return f"<p>{text(str(opened.folder))}: {', '.join(words)}</p>{table(compare(opened).table)}"
