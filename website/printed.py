"""What the pages say is printed: plays the code of pages, and holds their printed blocks against
what comes out.

python -m website.printed [PAGE ...]    writes what is printed today into the pages (by default all with code)

A page's blocks are played in order, in one fresh folder. A `bash` block runs; a `python` or `yaml`
block whose first line is `# NAME` is saved under that name, any other `python` block runs; a `text`
block is what the block before it printed. A line without words (`…`) stands for any lines; a line
may show the beginning of what was printed. Every number and every star counts but times,
sizes, dates and counts of tasks and workers, which differ from call to call or from machine to
machine; a line without digits shows words alone. A section that installs an extra is left out where
that is missing. A line that is like nothing printed is named, and edited by hand (exit code 1).
"""  # noqa: E501

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import cbobench

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", flags=re.M | re.S)
EXTRA = re.compile(r'pip install "cbobench\[(\w+)\]"')
MODULES = {"page": "plotly"}
"""Extras whose module has another name."""
NOT_PLAYED = re.compile(r"^(pip install|python3? -m venv|\. \S+/activate|cd |make |export CLONE=)")
SECONDS = 300
WORD = re.compile(r"[^\W\d_]{2,}")
MARKS = "*"
"""Of results: a star or a dagger more or less is another statement; so is a star before a number,
of the best, and a + or - behind a p.
"""
TOKEN = re.compile(rf"[^\W\d_]+|\*?[-+]?\d(?:[\d.,]*\d)?|\*?∞|[{MARKS}]|(?<=\d)[-+](?!\S)")
VARYING = re.compile(
    r"\d[\d.,]* ?(?=(?:µs|ms|s|min|h|kB|MB|GB|CPU|tasks?|worker)\b)|\d{4}-\d\d-\d\d(?: "
    r"\d\d:\d\d(?::\d\d)?)?"
)
"""Numbers that differ from call to call or from machine to machine: times, sizes, dates, tasks,
workers.
"""


class Mismatch(NamedTuple):
    """A line of a page, and the printed line that has its words; None where no line has them."""

    line: str
    printed: str | None


def split_sections(text: str) -> list[str]:
    return re.split(r"^(?=## )", text, flags=re.M)


def missing_extra(section: str) -> str:
    """The extra that a section installs and that is missing here; empty if there is none."""
    extra = EXTRA.search(section)
    missing = (
        extra and importlib.util.find_spec(MODULES.get(extra.group(1), extra.group(1))) is None
    )
    return extra.group(1) if extra and missing else ""


def words(line: str) -> list[str]:
    return WORD.findall(line)


def tokens(line: str) -> list[str]:
    """The words, numbers and marks of a line, without what differs from call to call."""
    return TOKEN.findall(VARYING.sub(" ", line))


def match_lines(page: str, printed: str) -> Iterator[tuple[str, str | None]]:
    """Each line of a block with the line that was printed for it: the next one that begins with its
    words, or None.
    """
    lines = [(words(line), line) for line in printed.splitlines()]
    for line in page.splitlines():
        if not (asked := words(line)):
            continue
        fits = [i for i, (have, _) in enumerate(lines) if have[: len(asked)] == asked]
        exact = [i for i in fits if tokens(lines[i][1]) == tokens(line)]
        place = next(iter(exact or fits), None)
        yield line, None if place is None else lines[place][1]
        lines = lines if place is None else lines[place + 1 :]


def same(line: str, printed: str) -> bool:
    """Whether a line of a page shows what was printed: the line or its beginning; without digits,
    its words alone.
    """
    shown = tokens(line)
    return not any(map(str.isdigit, line)) or tokens(printed)[: len(shown)] == shown


def mismatches(page: str, printed: str) -> list[Mismatch]:
    """The lines of a block that were not printed so."""
    return [Mismatch(a, b) for a, b in match_lines(page, printed) if b is None or not same(a, b)]


def refresh(page: str, printed: str) -> str:
    """A block with each line as it was printed today."""
    for line, now in match_lines(page, printed):
        if now is not None and not same(line, now):
            page = page.replace(line, now.rstrip(), 1)
    return page


def environment() -> dict[str, str]:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    home = str(Path(cbobench.__file__).parents[1])
    own = {
        "PATH": path,
        "PYTHONPATH": home,
        "CLONE": str(ROOT),
        "COLUMNS": "100",
        "OMP_NUM_THREADS": "1",
    }
    return {**os.environ, **own}


def run_block(language: str, code: str, folder: Path) -> str:
    """What a block prints."""
    if language == "bash":
        played = "\n".join(line for line in code.splitlines() if not NOT_PLAYED.match(line))
        call = ["bash", "-euo", "pipefail", "-c", played]
    else:
        call = [sys.executable, "-c", code]
    done = subprocess.run(
        call, cwd=folder, env=environment(), capture_output=True, text=True, timeout=SECONDS
    )
    assert done.returncode == 0, f"{code}\n{done.stdout}\n{done.stderr}"
    return done.stdout + done.stderr


def play(text: str, folder: Path) -> list[tuple[str, str]]:
    """Plays the blocks of a text; its printed blocks, each with what was printed."""
    output, pairs = "", []
    for language, code in BLOCK.findall(text):
        name = re.match(r"# ([\w/.-]+\.\w+)\n", code)
        if language in ("python", "yaml") and name:
            (folder / name.group(1)).write_text(code, encoding="utf-8")
        elif language in ("python", "bash"):
            output = run_block(language, code, folder)
        elif language == "text":
            pairs.append((code, output))
        else:
            assert not language, (
                f"a block in {language or 'no language'} without a file name is not run:\n{code}"
            )
    return pairs


def playable(text: str) -> str:
    """A page without the sections that need what is missing here."""
    return "".join(section for section in split_sections(text) if not missing_extra(section))


def pages_with_code() -> list[Path]:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]
    return sorted(
        p
        for p in pages
        if any(language for language, _ in BLOCK.findall(p.read_text(encoding="utf-8")))
    )


if __name__ == "__main__":
    left: list[str] = []
    for page in [Path(argument) for argument in sys.argv[1:]] or pages_with_code():
        text = page.read_text(encoding="utf-8")
        with tempfile.TemporaryDirectory() as place:
            for block, output in play(playable(text), Path(place)):
                text = text.replace(block, refreshed := refresh(block, output), 1)
                left += [
                    f"{page}: nothing printed is like this line: {line}"
                    for line, _ in mismatches(refreshed, output)
                ]
        page.write_text(text, encoding="utf-8")
        print(page)
    sys.exit("\n".join(left) or 0)
