"""The pages: their code runs as it stands, what it prints is what they say, links lead somewhere, tables are current.

A page's blocks are taken in order, in one fresh folder. A `bash` block runs; a `python` or `yaml` block whose first
line is `# NAME` is saved under that name, any other `python` block runs; a `text` block is what the block before it
printed (its words; numbers differ from machine to machine).
A section that installs an extra is a play of its own, and skipped where the extra is not there.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import names
import pytest
import tables

import cbobench
from cbobench import params, resources
from cbobench.algorithms import ALGORITHMS
from cbobench.opponents.library import LibraryMethod
from cbobench.problems import PROBLEMS
from tests.conftest import ROOT

FIRST = ["README.md", "docs/bundles.md"]
OTHERS = [f"docs/{name}.md" for name in ("tutorial", "report", "reading", "suites", "own_method", "own_problem")]
TEXTS = sorted(path.relative_to(ROOT).as_posix() for path in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", flags=re.M | re.S)
EXTRA = re.compile(r'pip install "cbobench\[(\w+)\]"')
MODULES = {"page": "plotly"}  # of extras that are called otherwise than what they install
NOT_HERE = re.compile(r"^(pip install|python3? -m venv|\. \S+/activate|cd |make )")
SECONDS = 300


def sections(text: str) -> list[str]:
    return re.split(r"^(?=## )", text, flags=re.M)


def lacks(part: str) -> str:
    """The extra that a part of a page needs and that is not installed."""
    found = EXTRA.search(part)
    return (
        found.group(1)
        if found and importlib.util.find_spec(MODULES.get(found.group(1), found.group(1))) is None
        else ""
    )


def words(line: str) -> list[str]:
    """The words of a line: numbers differ from machine to machine, and so do widths."""
    return re.findall(r"[^\W\d_]{2,}", line)


def lacking(said: str, seen: str) -> str:
    """The first line that a page says is printed and that is not, in this order; a line … stands for any."""
    printed = [words(line) for line in seen.splitlines()]
    for line in filter(words, said.splitlines()):
        wanted = words(line)
        places = [i for i, have in enumerate(printed) if have[: len(wanted)] == wanted or have == wanted]
        if not places:
            return line
        printed = printed[places[0] + 1 :]
    return ""


def environment() -> dict[str, str]:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    home = str(Path(cbobench.__file__).parents[1])
    return {**os.environ, "PATH": path, "PYTHONPATH": home, "COLUMNS": "100", "OMP_NUM_THREADS": "1"}


def run(language: str, code: str, folder: Path) -> str:
    """What a block prints."""
    if language == "bash":
        here = "\n".join(line for line in code.splitlines() if not NOT_HERE.match(line))
        call = ["bash", "-euo", "pipefail", "-c", here]
    else:
        call = [sys.executable, "-c", code]
    done = subprocess.run(call, cwd=folder, env=environment(), capture_output=True, text=True, timeout=SECONDS)
    assert done.returncode == 0, f"{code}\n{done.stdout}\n{done.stderr}"
    return done.stdout + done.stderr


def play(text: str, folder: Path) -> int:
    """Plays a text's blocks; how many."""
    seen, blocks = "", BLOCK.findall(text)
    for language, code in blocks:
        name = re.match(r"# ([\w/.-]+\.\w+)\n", code)
        if language in ("python", "yaml") and name:
            (folder / name.group(1)).write_text(code, encoding="utf-8")
        elif language in ("python", "bash"):
            seen = run(language, code, folder)
        elif language == "text":
            missing = lacking(code, seen)
            assert not missing, f"the page says that this is printed:\n{missing}\nbut there was\n{seen}"
        else:
            assert not language, f"a block in {language or 'no language'} without a file name is not run:\n{code}"
    return len(blocks)


@pytest.mark.slow
@pytest.mark.parametrize("page", [*FIRST, *(pytest.param(page, marks=pytest.mark.long) for page in OTHERS)])
def test_the_code_of_a_page_runs(page, tmp_path):
    parts = sections((ROOT / page).read_text(encoding="utf-8"))
    assert play("".join(part for part in parts if not lacks(part)), tmp_path)
    if missing := [extra for part in parts if (extra := lacks(part))]:
        pytest.skip(f"all of {page} was played but for what needs {', '.join(missing)} (pip install cbobench[…])")


def test_no_page_with_code_is_left_out():
    coded = {page for page in TEXTS if any(language for language, _ in BLOCK.findall((ROOT / page).read_text()))}
    assert coded == {*FIRST, *OTHERS}


def test_a_page_that_is_wrong_is_found_out(tmp_path):
    assert lacking("cei   0.3*\n…\nrandom", "cei 12 more\nscbo 2\nrandom 1.2") == ""
    assert lacking("cei   0.3*\nckb", "cei 12\nscbo 2") == "ckb"
    assert lacking("scbo\ncei", "cei 12\nscbo 2") == "cei"
    play("```python\n# a.py\nx = 1\n```\n```bash\nls\n```\n```text\na.py\n```", tmp_path)
    for wrong in (
        "```bash\nls nothing\n```",
        "```python\n1 / 0\n```",
        "```bash\nls\n```\n```text\nother.py\n```",
        "```yaml\na: 1\n```",
    ):
        with pytest.raises(AssertionError):
            play(wrong, tmp_path)


@pytest.mark.parametrize("page", TEXTS)
def test_commands_that_a_page_only_names_exist(page):
    """Blocks in no language are forms of a command; so is what stands in backticks."""
    from cbobench.cli import make_parser

    text = (ROOT / page).read_text(encoding="utf-8")
    lines = [line for language, code in BLOCK.findall(text) if not language for line in code.splitlines()]
    for line in lines:
        if line.startswith("cbobench ") and "SUITE" not in line:
            make_parser().parse(shlex.split(line.split("  #")[0])[1:])
    known = next(a for a in make_parser()._actions if a.dest == "command").choices
    assert set(re.findall(r"`cbobench ([a-z]+)", text)) <= set(known)
    for target in re.findall(r"`make ([a-z-]+)", text):
        assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), flags=re.M), target


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as the usual renderers make them."""
    titles = re.findall(r"^#+ (.+)$", BLOCK.sub("", page.read_text(encoding="utf-8")), flags=re.M)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", TEXTS)
def test_links_lead_somewhere(page):
    here = ROOT / page
    for link in re.findall(r"\]\(([^)]+)\)", BLOCK.sub("", here.read_text(encoding="utf-8"))):
        if not link.startswith(("http:", "https:", "mailto:")):
            file, _, anchor = link.partition("#")
            target = (here.parent / file) if file else here
            assert target.exists(), link
            assert not anchor or anchor in anchors(target), link


def test_the_links_of_a_page_can_fail(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# A title: with `code`, (R₊)\n```\n# no title\n```\n")
    assert anchors(page) == {"a-title-with-code-r"}


@pytest.mark.parametrize("page", tables.PAGES)
def test_tables_are_those_of_the_code(page):
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    assert tables.refreshed(text) == text, f"the tables of docs/{page} are not those of the code; run: make pages"


def test_nothing_is_left_out_of_the_tables():
    text = "".join(
        (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8") for page in ("methods", "problems", "suites")
    )
    # other tables are of parameters
    made = "".join(re.findall(r"^<!-- \w+ -->\n(.*?)^<!-- end -->", text, flags=re.M | re.S))
    named = re.findall(r"^\| `([^`]+)`", made, flags=re.M)
    suites = {"map_…" if name.startswith("map_") else name for name in resources.suites()}
    assert sorted(named) == sorted([*ALGORITHMS.names(), *PROBLEMS.names(), *suites])
    assert tables.unexplained() == set()


def test_the_names_are_those_of_the_code():
    assert names.PAGE.read_text(encoding="utf-8") == names.page(), (
        "docs/api.md is not what docstrings say; run: make pages"
    )
    assert set(cbobench.__all__[1:]) <= set(re.findall(r"^### (\w+)", names.page(), flags=re.M))


@pytest.mark.parametrize("kind", tables.KINDS)
def test_what_can_be_played_is_not_refused(kind):
    problem = tables.made(*tables.KINDS[kind])
    for name in ALGORITHMS.names():
        method = params.build(ALGORITHMS.get(name), {})
        if method.needs <= tables.offers()[kind] and not (isinstance(method, LibraryMethod) and method.missing()):
            method.check(problem)
