"""What a suite may be at most: whoever wrote it, reading it is fast, fits into memory, and says what is wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod
from typing import Any

from cbobench.errors import Misuse, refuse_strange, show

MAX_BYTES = 10**6  # of a file
MAX_NODES = 20_000  # keys and values, with those behind aliases counted each time
MAX_DEPTH = 20
MAX_TEXT, MAX_LABEL, MAX_NAME = 10_000, 200, 100  # characters of a value, of a label, of the suite's name
MAX_HORIZON, MAX_SEED, MAX_SEEDS = 10**9, 2**62, 10**6
MAX_VARIANTS = 10_000  # of problems, or of algorithms, after sweeps are multiplied out
MAX_PAIRS, MAX_CELLS = 100_000, 10**7
SEVERAL_LINES = "about"  # the key whose text may have several lines


def refuse_size(nodes: int, depth: int, where: str) -> None:
    """Raises `Misuse` for more than a suite may hold."""
    if depth > MAX_DEPTH:
        raise Misuse(f"{where}nested more than {MAX_DEPTH} deep; a suite needs no more than 6")
    if nodes > MAX_NODES:
        raise Misuse(
            f"{where}more than {MAX_NODES:,} keys and values (allowed; those behind an alias count each time); "
            "many seeds are {first: a, count: n}"
        )


def texts(content: Any, key: str = "", line: int = 0) -> Iterator[tuple[str, str, int]]:
    """Every text within mappings and lists that know their lines, keys too: (what it is, the text, its line)."""
    if isinstance(content, Mapping):
        for name, value in content.items():
            here = content.lines.get(name, line) if hasattr(content, "lines") else line
            yield "the key", name, here
            yield from texts(value, name, here)
    elif isinstance(content, list):
        lines = getattr(content, "lines", [line] * len(content))
        for value, here in zip(content, lines, strict=True):
            yield from texts(value, key, here)
    elif isinstance(content, str):
        yield key, content, line


def check_texts(content: Any, where: Any) -> None:
    """Raises `Misuse` for a text that is too long, or holds characters that are not for reading.

    Args:
        where: gives the place of a line, for messages.
    """
    for what, text, line in texts(content):
        longest = {"label": MAX_LABEL, "suite": MAX_NAME}.get(what, MAX_TEXT)
        if len(text) > longest:
            raise Misuse(f"{where(line)}{show(what)} has {len(text):,} characters; allowed: {longest:,}")
        name = what if what == "the key" or what.isidentifier() else show(what)
        refuse_strange(text, f"{where(line)}{name}", lines=what == SEVERAL_LINES)


def refuse_product(counts: Mapping[str, int], limit: int, what: str, where: str) -> None:
    """Raises `Misuse` for more combinations than are allowed, before they are made.

    Args:
        counts: how many of each there are, by name.
    """
    product = prod(counts.values())
    if product > limit:
        factors = " x ".join(f"{count:,} {name}" for name, count in counts.items() if count > 1)
        raise Misuse(f"{where}{factors} = {product:,} {what}; allowed: {limit:,}; cut it into several suites")
