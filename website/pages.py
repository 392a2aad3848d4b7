"""Writes the sources of the site: the pages of the repository with a menu and links to the pages of
methods, problems and suites, and those pages.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import cbobench
from analysis.field import open_table
from cbobench import resources
from cbobench.algorithms import ALGORITHMS
from cbobench.problems import PROBLEMS
from cbobench.surface import load_name
from website import entries

ROOT = Path(__file__).parents[1]
COPIED = ("*.md", "docs/**/*.*", "published/*.zip", "website/notebooks/*.ipynb")
"""The pages of the repository, and the files that they show or hand out."""
RUN = "docs/runs/first"  # where the code of the gallery reads the run of README's suite
MENU = {
    "Start": "docs/install docs/tutorial",
    "How to": "docs/own_problem docs/own_method docs/beside_the_field docs/sending_results "
    "docs/which_method docs/suites docs/reading docs/report docs/clusters docs/runs docs/bundles",
    "Reference": "docs/commands docs/api docs/problems docs/methods docs/glossary",
    "Gallery": "docs/gallery",
    "Results": "docs/field docs/papers docs/reproduction",
    "FAQ and changelog": "docs/faq CHANGELOG",
    "For contributors": "CONTRIBUTING docs/architecture docs/speed docs/guarantees SECURITY",
}
BELOW = {
    "docs/suites": "reference/suites/*",
    "docs/problems": "reference/problems/*",
    "docs/methods": "reference/methods/*",
    "docs/field": "docs/field/*",
    "docs/gallery": "website/notebooks/*",
}
"""Pages whose menu has the pages of a folder."""
NOTEBOOK = """---
file_format: mystnb
kernelspec: {name: python3}
mystnb: {execution_mode: force}
---
"""
"""What makes a page a notebook that is played."""
COMMANDS = """
```{eval-rst}
.. autoprogram:: cbobench.cli:make_parser()
   :prog: cbobench
```
"""


def write_sources(folder: Path, pictures: dict[str, str]) -> None:
    """Writes all sources into a folder, in place of those of before.

    Args:
        pictures: Markdown of pictures and captions by method and problem.
    """
    for old in ("docs", "reference", "website", "published"):
        shutil.rmtree(folder / old, ignore_errors=True)
    for page in folder.glob("*.md"):
        page.unlink()
    copy_pages(folder)
    write_entries(folder / "reference", pictures)

    # Too long for a clone: a page of the site alone.
    (folder / open_table.PAGE).write_text(open_table.render_page(), encoding="utf-8")

    # Resumed from build to build, and read by the code of the gallery.
    cbobench.run("first", out=folder / "runs" / "first", cpus=0)
    shutil.copytree(folder / "runs" / "first", folder / RUN)


def copy_pages(folder: Path) -> None:
    """Writes the pages of the repository as the site has them, and copies the files beside them."""
    for path in [path for kind in COPIED for path in ROOT.glob(kind)]:
        place = folder / path.relative_to(ROOT)
        place.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix != ".md":
            shutil.copyfile(path, place)
            continue
        name = path.relative_to(ROOT).with_suffix("").as_posix()
        text = complete(name, path.read_text(encoding="utf-8"))
        if name == "README":
            place = folder / "index.md"
        place.write_text(text, encoding="utf-8")


def write_entries(folder: Path, pictures: dict[str, str]) -> None:
    """Writes a page for every method, problem and suite."""
    rooms = {
        "methods": {n: entries.describe_method(n, pictures.get(n, "")) for n in ALGORITHMS.names()},
        "problems": {n: entries.describe_problem(n, pictures.get(n, "")) for n in PROBLEMS.names()},
        "suites": {n: entries.describe_suite(n) for n in resources.suites()},
    }
    for room, pages in rooms.items():
        (folder / room).mkdir(parents=True)
        for name, text in pages.items():
            (folder / room / f"{name}.md").write_text(text, encoding="utf-8")


def complete(name: str, text: str) -> str:
    """A page of the repository as the site has it.

    Args:
        name: of the page in the repository, without `.md`.
    """
    text = link_entries(text)
    # Of a link that shows a file's name, Sphinx shows the page's title.
    text = re.sub(r"\[\w+\.(md|ipynb)\](?=\(\S*\.\1\b)", "[]", text)
    if name == "README":
        return "\n".join([text, *(write_menu(part.split(), title) for title, part in MENU.items())])
    if name == "docs/gallery":
        text = NOTEBOOK + text.replace("```python\n", "```{code-cell}\n")
        text = re.sub("^figure = ", "", text, flags=re.M)  # its last line shows it
    if name == "docs/commands":
        text += COMMANDS
    if name == "docs/api":
        text += write_reference(text)
    return text + write_menu([BELOW[name]]) if name in BELOW else text


def link_entries(text: str) -> str:
    """A page's text in which names of methods, problems and suites that begin a table's row lead to
    their pages.
    """
    rooms = dict.fromkeys(resources.suites(), "suites")
    rooms |= dict.fromkeys(PROBLEMS.names(), "problems")
    rooms |= dict.fromkeys(ALGORITHMS.names(), "methods")

    def replace(row: re.Match[str]) -> str:
        return f"| {entries.link(rooms[row[1]], [row[1]])} |" if row[1] in rooms else row[0]

    return re.sub(r"^\| `([\w-]+)` \|", replace, text, flags=re.M)


def write_menu(pages: list[str], title: str = "") -> str:
    """A part of the menu at the side."""
    caption = f":caption: {title}\n" if title else ""
    lines = "\n".join(f"/{page}" for page in pages)
    return f"\n```{{toctree}}\n:hidden:\n:glob:\n{caption}\n{lines}\n```\n"


def write_reference(text: str) -> str:
    """The docstrings of the names and members in the tables of docs/api.md."""
    lines = ["\n## All names, with what they take and return\n", "```{eval-rst}"]
    for name, members in find_names(text).items():
        thing = load_name(name)
        if isinstance(thing, type):
            lines.append(f".. autoclass:: cbobench.{name}")
            if members:
                lines.append(f"   :members: {', '.join(members)}")
            lines.append("")
        elif callable(thing):
            lines += [f".. autofunction:: cbobench.{name}", ""]
    return "\n".join([*lines, "```", ""])


def find_names(text: str) -> dict[str, list[str]]:
    """The names in the tables of docs/api.md, with the members that each row lists."""
    rows = re.findall(r"^\| `(\w+)` \| ([^|]*)\|", text, flags=re.M)
    return {name: re.findall(r"`(\w+)`", members) for name, members in rows}
