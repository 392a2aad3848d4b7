"""Writes the tables of algorithms, problems and suites into README.md: python docs/tables.py (or: make readme)."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

from cbobench.cli import main

README = Path(__file__).parent.parent / "README.md"


def table(what: str) -> str:
    """`cbobench list WHAT --format markdown`."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        main(["list", what, "--format", "markdown"])
    return printed.getvalue().strip()


def refreshed(text: str) -> str:
    """The README's text with its tables as they should be."""
    for what in ("algorithms", "problems", "suites"):
        section = f"<!-- {what} -->\n{table(what)}\n<!-- end -->"
        text = re.sub(rf"<!-- {what} -->.*?<!-- end -->", lambda _, new=section: new, text, flags=re.S)  # type: ignore[misc]
    return text


if __name__ == "__main__":
    README.write_text(refreshed(README.read_text(encoding="utf-8")), encoding="utf-8")
