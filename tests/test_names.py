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
FILE = re.compile(r"`((?:[\w-]+/)*[\w-]+\.(?:py|md|ya?ml|toml|json|ipynb|sh))`")
DEFINED = re.compile(
    r"\b(?:def|class|import|as|for|lambda) +(\w+)|^ *(\w+)(?:: [^=\n]+)? = "
    r"|\b(\w+)(?::|=)|self\.(\w+)"
    r"|[\"'](\w+)[\"'=:]",
    re.M,
)
OUTSIDE = {
    "pebble",
    "loky",
    "errorbar",
    "argpartition",
    "setsid",
    "du",
    "pip",
    "pipx",
    "NA",
    "ConstrainedHartmann",
    "json.py",
    "pandas.py",
    "c7i.4xlarge",
}
"""Names of others that nothing here imports or calls."""
YOURS = re.compile(r"mine\b|module\b|\w*NAME")  # names of a user's, on pages


@cache
def code_of(path: Path) -> str:
    """A file without its docstrings and comments."""
    return NOTES.sub(" ", path.read_text(encoding="utf-8"))


@cache
def words_of(path: Path) -> frozenset[str]:
    return frozenset(re.findall(r"[A-Za-z_]\w*", code_of(path)))


def package() -> list[Path]:
    return sorted(
        path for folder in ("cbobench", "analysis") for path in (ROOT / folder).rglob("*.py")
    )


@cache
def all_code() -> str:
    return "\n".join(map(code_of, package()))


@cache
def defined() -> frozenset[str]:
    """What the package defines, takes as a parameter or writes as a word, and names that users
    give.
    """
    names = {name for match in DEFINED.findall(all_code()) for name in match}
    folders = {part for path in package() for part in path.relative_to(ROOT).with_suffix("").parts}
    return frozenset(
        {*names, *folders, *ALGORITHMS.names(), *PROBLEMS.names(), *resources.suites(), *OUTSIDE}
        - {""}
    )


@cache
def classes() -> dict[str, list[Path]]:
    """Files with a class of that name."""
    files_by_class: dict[str, list[Path]] = {}
    for path in package():
        for name in re.findall(r"^class (\w+)", code_of(path), re.M):
            files_by_class.setdefault(name, []).append(path)
    return files_by_class


@cache
def imported() -> frozenset[str]:
    """Names of other libraries, as the package imports them."""
    imports = re.findall(r"^ *(?:from|import) (\w+)(?:[\w.]* as (\w+))?", all_code(), re.M)
    return frozenset(name for names in imports for name in names) - {"cbobench", ""}


def module_of(parts: list[str], source: Path) -> tuple[Path, list[str]] | None:
    """The module that a dotted name begins with, in the package, a room or the file's own room, and
    what is left.
    """
    for base in (ROOT / "cbobench", ROOT, ROOT / "docs", source.parent):
        for size in range(len(parts), 0, -1):
            place = base.joinpath(*parts[:size])
            file = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
            if file.is_file():
                return file, parts[size:]
    return None


def is_there(name: str, source: Path, local: frozenset[str]) -> bool:
    """Whether a name is one: of a module, a class or an object with that attribute, or defined by
    itself.

    Args:
        local: words of the code beside it.
    """
    parts = name.split(".")
    if name in local or name in OUTSIDE or parts[0] in imported():
        return True
    if len(parts) == 1:
        bare = re.sub(r"_\d$", "", name)  # one of several: g_1
        return name in defined() or bare in defined() or (source.parent / f"{name}.py").is_file()
    module = module_of(parts, source)
    if module is not None:
        return all(part in words_of(module[0]) for part in module[1])
    if parts[0] in classes():
        return any(parts[1] in words_of(path) for path in classes()[parts[0]])
    return all(part in defined() or part in local for part in parts)


@cache
def files() -> frozenset[str]:
    """Names of our files."""
    folders = [
        ROOT,
        *(
            ROOT / name
            for name in ("cbobench", "analysis", "docs", "tests", "suites", "benchmarks", ".ci")
        ),
    ]
    return frozenset(
        path.name
        for folder in folders
        for path in (folder.iterdir() if folder == ROOT else folder.rglob("*.*"))
    )


def is_file(name: str, source: Path) -> bool:
    """Whether a file is one of ours, by its path or its name, or one that the package writes."""
    if "/" not in name:
        return name in files() or name in OUTSIDE or name in all_code()
    return any(
        (base / name).is_file() for base in (ROOT, ROOT / "cbobench", ROOT / "docs", source.parent)
    )


def strangers(path: Path) -> list[str]:
    """Names in backticks of a file that are none."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        code = "\n".join(BLOCKS.findall(text))
        notes, local = (
            BLOCKS.sub("", text),
            frozenset(re.findall(r"[\w-]+\.\w+|\w+", code)) | words_of_tests(),
        )
    else:
        notes, local = "\n".join("".join(match) for match in NOTES.findall(text)), words_of(path)
    lost = set()
    for name in {*NAME.findall(notes), *FILE.findall(notes)}:
        if path.suffix == ".md" and YOURS.match(name):
            continue
        is_known = (
            is_file(name, path) or name in local
            if FILE.fullmatch(f"`{name}`")
            else is_there(name, path, local)
        )
        lost |= set() if is_known else {name}
    return [f"{path.name}: `{name}`" for name in sorted(lost)]


@cache
def words_of_tests() -> frozenset[str]:
    return frozenset().union(
        *(words_of(path) for path in (ROOT / "tests" / "algorithms").glob("*.py"))
    )


FOLDERS = ("docs", "benchmarks", "tests")
SCRIPTS = [
    path
    for name in FOLDERS
    for path in sorted((ROOT / name).rglob("*.py"))
    if path != Path(__file__)
]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


@pytest.mark.parametrize("paths", [package(), SCRIPTS, PAGES], ids=["package", "scripts", "pages"])
def test_names_in_backticks_are_those_of_the_code(paths):
    assert [line for path in paths for line in strangers(path)] == []


def test_a_name_that_is_left_behind_is_found(tmp_path):
    wrong = tmp_path / "wrong.py"
    wrong.write_text(
        '"""See `Crew`, `Plan.crew`, `sweep.crew`, `cbobench.sweep.run.crew`, `crew.py`, '
        "`gone()`.\n\n"
        "There are `Plan.cells`, `sweep.run`, `cbobench.sweep.run.plan`, `run.json`, `g_1`, "
        '`np.matmul`, `here`."""\n'
        "here = 1  # `lost_name`, and `kept` in a text\n"
    )
    names = [
        "Crew",
        "Plan.crew",
        "cbobench.sweep.run.crew",
        "crew.py",
        "gone",
        "lost_name",
        "sweep.crew",
    ]
    assert strangers(wrong) == [f"wrong.py: `{name}`" for name in names]
    page = tmp_path / "page.md"
    page.write_text(
        "`beta_scale`, `docs/runs.md`, `own.py`, `docs/crew.md` and `crew_size`\n```python\n# "
        "own.py\n```\n"
    )
    assert strangers(page) == ["page.md: `crew_size`", "page.md: `docs/crew.md`"]
