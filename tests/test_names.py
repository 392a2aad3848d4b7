"""Every name in backticks, in docstrings, comments and pages, is one that there is: renaming leaves
none behind.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from cbobench import resources
from cbobench.algorithms import ALGORITHMS
from cbobench.problems import PROBLEMS
from tests.conftest import ROOT

NOTES = re.compile(r'"""(.*?)"""|(#[^\n]*)', re.S)  # docstrings and comments
BLOCKS = re.compile(r"^```\w*\n(.*?)^```$", re.M | re.S)
NAME = re.compile(r"`([A-Za-z_]\w*(?:\.\w+)*)(?:\([^`]*\))?`")
FILE = re.compile(r"((?:[\w-]+/)*)([\w-]+\.(?:py|md|ya?ml|toml|json|ipynb|sh))")
OUTSIDE = {
    "argpartition",
    "du",
    "errorbar",
    "loky",
    "pebble",
    "pip",
    "pipx",
    "setsid",
    "NA",
    "show_runtime",
}
OUTSIDE |= {"ConstrainedHartmann", "json.py", "pandas.py", "c7i.4xlarge"}
"""Names of others that nothing here imports or calls."""
YOURS = re.compile(r"mine\b|module\b|\w*NAME")  # names of a user's, on pages
FOLDERS = ("cbobench", "analysis", "website", "benchmarks", "tests", "suites", ".ci")
SCRIPTS = [
    path
    for folder in FOLDERS
    for path in sorted((ROOT / folder).rglob("*.py"))
    if path != Path(__file__)
]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


@cache
def code_of(path: Path) -> str:
    """A file without its docstrings and comments."""
    return NOTES.sub(" ", path.read_text(encoding="utf-8"))


@cache
def words() -> frozenset[str]:
    """All words of our code, the names that users give, and those of files and folders."""
    code = "\n".join(map(code_of, SCRIPTS))
    every = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*")]
    places = {part for path in [*every, *ROOT.iterdir()] for part in (path.name, path.stem)}
    written = re.findall(r"[\w-]+\.(?:json|ya?ml|md|sh)", code)
    given = {*ALGORITHMS.names(), *PROBLEMS.names(), *resources.suites()}
    return frozenset({*re.findall(r"\w+", code), *written, *places, *given, *OUTSIDE})


def strangers(path: Path) -> list[str]:
    """Names in backticks of a file that are none."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        notes, code = BLOCKS.sub("", text), "\n".join(BLOCKS.findall(text))
    else:
        notes, code = "\n".join("".join(match) for match in NOTES.findall(text)), code_of(path)
    local, lost = {*re.findall(r"[\w-]+\.\w+|\w+", code)}, set()
    for name in {*NAME.findall(notes), *re.findall(rf"`({FILE.pattern})`", notes)}:
        word = name if isinstance(name, str) else name[0]
        file = FILE.fullmatch(word)
        known, parts = words() | local, [file[2]] if file else word.split(".")
        # the second is one of several: g_1
        is_known = word in known or all({part, re.sub(r"_\d$", "", part)} & known for part in parts)
        if file and file[1]:
            bases = (ROOT, ROOT / "cbobench", ROOT / "docs", path.parent)
            is_known = any((base / word).is_file() for base in bases)
        if not is_known and not (path.suffix == ".md" and YOURS.match(word)):
            lost.add(word)
    return [f"{path.name}: `{name}`" for name in sorted(lost)]


@pytest.mark.parametrize("paths", [SCRIPTS, PAGES], ids=["scripts", "pages"])
def test_names_in_backticks_are_those_of_the_code(paths):
    assert [line for path in paths for line in strangers(path)] == []


def test_a_name_that_is_left_behind_is_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "`Cruw`, `Plan.cruw`, `cruw()`, `beta_scale`, `Plan.cells`, `g_1`, `np.matmul`, `run.json`,"
        " `docs/runs.md`, `own.py`, `docs/cruw.md` and `cruw.py`\n```python\n# own.py\n```\n"
    )
    names = ["Cruw", "Plan.cruw", "cruw", "cruw.py", "docs/cruw.md"]
    assert strangers(page) == [f"page.md: `{name}`" for name in names]
