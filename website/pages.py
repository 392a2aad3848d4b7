"""Puts the site together: hand-written pages with links as the site has them, and those made from
classes.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from textwrap import wrap

from analysis.markdown import fill_sections
from cbobench import resources
from cbobench.algorithms import ALGORITHMS
from cbobench.problems import PROBLEMS
from website import commands, examples, gallery, methods, problems, suites
from website.pictures import NOT_NOW, Pictures

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
TOP = ("README", "CONTRIBUTING", "SECURITY", "CHANGELOG")  # pages that lie beside docs/
# Files that pages show or link.
NOTEBOOKS = "website/notebooks/*.ipynb"
BESIDE = {
    DOCS: ("_static/**/*.png", "_static/*.svg", "field/*.png"),
    ROOT: (NOTEBOOKS, "published/*.zip"),
}
INSIDE = "field/*.md"  # pages below another one
FIRST = "index"  # what the site calls the README
YOURS = ("own_problem", "own_method", "beside_the_field", "sending_results", "which_method")
RUNS = ("suites", "reading", "report", "clusters", "runs", "bundles")
ORDER = {
    "Start": ("install", "tutorial", "notebooks"),
    "How to": (*YOURS, *RUNS),
    "Reference": ("commands", "api", "problems", "methods", "glossary", "guarantees"),
    "Gallery": ("gallery",),
    "Results": ("field", "papers", "reproduction", "speed"),
    "FAQ and changelog": ("faq", "CHANGELOG"),
    "Project": ("CONTRIBUTING", "architecture", "SECURITY"),
}
"""Pages of the menu; a page of docs/ that is not here comes last."""
LINK = re.compile(r"(?:(?<=\[)(\w+\.md))?\]\((?!https?:|mailto:)([^)#\s]*)(#[^)\s]*)?\)")
FENCED = re.compile(r"(^```.*?^```$)", flags=re.M | re.S)
WIDTH = 100


def sources() -> dict[str, Path]:
    """The hand-written pages by the name they have on the site."""
    found = {
        path.relative_to(DOCS).with_suffix("").as_posix(): path
        for kind in ("*.md", INSIDE)
        for path in sorted(DOCS.glob(kind))
    }
    return found | {FIRST if name == "README" else name: ROOT / f"{name}.md" for name in TOP}


def files_beside() -> dict[str, Path]:
    """What pages of docs/ show or hand out, pictures and notebooks, by its place on the site."""
    return {
        str(path.relative_to(folder)): path
        for folder, kinds in BESIDE.items()
        for kind in kinds
        for path in folder.glob(kind)
    }


def notebooks() -> dict[str, Path]:
    """The notebooks by the place of their pages."""
    return {f"notebooks/{path.stem}.md": path for path in sorted(ROOT.glob(NOTEBOOKS))}


def title(page: Path) -> str:
    """The first heading of a page."""
    return page.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")


def linked(text: str, page: Path) -> str:
    """A page's text with relative links as they lead on the site, those that say a file's name with
    the page's title.

    Args:
        page: where the text is from, which its links start from.
    """
    places = {path.resolve(): f"{name}.md" for name, path in sources().items()}
    places |= {path.resolve(): place for place, path in files_beside().items()}
    # A page of its own, which leads to the file.
    places |= {path.resolve(): place for place, path in notebooks().items()}

    def there(found: re.Match[str]) -> str:
        target = (page.parent / found[2]).resolve() if found[2] else page.resolve()
        words = title(target) if found[1] and target in places else found[1] or ""
        return f"{words}]({places.get(target, found[2])}{found[3] or ''})"

    parts = FENCED.split(text)
    return "".join(part if i % 2 else LINK.sub(there, part) for i, part in enumerate(parts))


def named(text: str) -> str:
    """A page's text in which names of methods, problems and suites that begin a table's row lead to
    their pages.
    """
    rooms = dict.fromkeys(resources.suites(), "suites")
    rooms |= dict.fromkeys(PROBLEMS.names(), "problems") | dict.fromkeys(
        ALGORITHMS.names(), "methods"
    )

    def there(found: re.Match[str]) -> str:
        room = rooms.get(found[1])
        return f"| [`{found[1]}`]({room}/{found[1]}.md) |" if room else found[0]

    return re.sub(r"^\| `([\w-]+)` \|", there, text, flags=re.M)


def wrapped(text: str) -> str:
    """A page's text in which blocks of one long line, calls with all their arguments, are as wide
    as a page.
    """

    def narrow(found: re.Match[str]) -> str:
        return "\n".join(
            wrap(
                found[1],
                WIDTH,
                subsequent_indent="    ",
                break_long_words=False,
                break_on_hyphens=False,
            )
        )

    return re.sub(rf"(?<=^```\n)(.{{{WIDTH},}})(?=\n```$)", narrow, text, flags=re.M)


def from_inside(text: str, name: str) -> str:
    """A page's text whose links start from the page's own folder, not from the site's."""
    up = "../" * name.count("/")
    return re.sub(r"\]\((?!https?:|mailto:|#)", f"]({up}", text) if up else text


def menu(caption: str, names: list[str]) -> str:
    """A part of the menu at the side."""
    return "\n".join(
        [
            "```{toctree}",
            ":hidden:",
            *([f":caption: {caption}"] if caption else []),
            "",
            *names,
            "```",
        ]
    )


def short(text: str, tables: Mapping[str, str]) -> str:
    """A page's text with the long tables of methods and problems in the form that has a page per
    row.
    """
    return fill_sections(text, tables.get)


def menus(names: list[str]) -> list[str]:
    """The whole menu, as the first page has it."""
    known = [name for part in ORDER.values() for name in part]
    other = [name for name in names if name not in known and name != FIRST and "/" not in name]
    more = {"More": tuple(other)}
    parts = {
        caption: [name for name in part if name in names]
        for caption, part in (ORDER | more).items()
    }
    return [menu(caption, part) for caption, part in parts.items() if part]


def said_once(text: str) -> str:
    """A page that says below its title, and not at each, that pictures were not drawn."""
    line = f"*{NOT_NOW}*"
    if line not in text:
        return text
    heading, _, rest = text.partition("\n")
    return f"{heading}\n\n{line}\n{rest.replace(line, '')}"


def texts(pictures: Pictures) -> dict[str, str]:
    """Every page by its place: Markdown."""
    one = {
        **{f"methods/{name}.md": methods.page(name, pictures) for name in ALGORITHMS.names()},
        **{f"problems/{name}.md": problems.page(name, pictures) for name in PROBLEMS.names()},
        **{f"suites/{name}.md": suites.page(name) for name in resources.suites()},
        **{place: notebook(path) for place, path in notebooks().items()},
    }
    tables = {
        "algorithms": methods.table(),
        "problems": problems.table(),
    }
    written = {}
    for name, path in sources().items():
        text = wrapped(named(linked(short(path.read_text(encoding="utf-8"), tables), path)))
        text = from_inside(text, name)
        places = [*(place.removesuffix(".md") for place in one), *sources()]
        inside = sorted(place for place in places if place.startswith(f"{name}/"))
        if name == "gallery":
            text = f"{gallery.with_figures(text, pictures)}\n{gallery.papers(pictures)}"
        if name == "commands":
            text = f"{commands.linked(text)}\n{commands.options()}"
        more = menus(list(sources())) if name == FIRST else [menu("", inside)] if inside else []
        written[f"{name}.md"] = "\n\n".join([said_once(text).rstrip(), *more]) + "\n"
    return written | one


def notebook(path: Path) -> str:
    """The page of a notebook: what it holds, and where the file is."""
    text = from_inside(linked(examples.as_markdown(path), path), "notebooks/one")
    return f"{text}\n\n[The notebook as a file](../website/notebooks/{path.name}).\n"


def assemble(folder: Path, pictures: Pictures) -> int:
    """Writes all pages and pictures into a folder, what has not changed is left alone; how many
    pages there are.
    """
    found = texts(pictures)
    files = {place: text.encode() for place, text in found.items()}
    files |= {place: path.read_bytes() for place, path in files_beside().items()}
    files |= {f"pictures/{name}": path.read_bytes() for name, path in pictures.used.items()}
    for place, content in files.items():
        path = folder / place
        if not path.is_file() or path.read_bytes() != content:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
    for base, _, names in os.walk(folder):
        for name in names:
            if str((Path(base) / name).relative_to(folder)) not in files:
                (Path(base) / name).unlink()
    return len(found)
