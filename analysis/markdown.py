"""Markdown as pages have it: paragraphs, tables, and sections between `<!-- NAME -->` and `<!-- end
-->`.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterable, Sequence


def wrap(paragraph: str) -> str:
    """A paragraph in lines that a terminal shows whole."""
    return textwrap.fill(paragraph, 100, break_long_words=False, break_on_hyphens=False) + "\n"


def tabulate(head: Sequence[str], rows: Iterable[Sequence[str]], align: str = "") -> str:
    """A table.

    Args:
        align: a letter per column, `l` or `r`; by default all are aligned to the left.
    """
    marks = [{"l": ":--", "r": "--:"}[side] for side in align or "l" * len(head)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, marks, *rows))


def fill_sections(text: str, write: Callable[[str], str | None]) -> str:
    """A page's text with its sections as they are written anew, by name; None leaves a section as
    it is.
    """

    def replace(section: re.Match[str]) -> str:
        content = write(section[1])
        return section[0] if content is None else f"<!-- {section[1]} -->\n{content}\n<!-- end -->"

    return re.sub(r"<!-- (\w+) -->\n.*?<!-- end -->", replace, text, flags=re.S)
