"""The pictures of the site, each drawn once: kept by a hash of the settings and of the code that
plays and draws.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cbobench.algorithms import ALGORITHMS
from cbobench.problems import PROBLEMS
from cbobench.report.figures import style
from cbobench.report.tables.formats import escape_markdown
from cbobench.results.source import code_hash, source_hash
from cbobench.suite.variants import canonical
from website import draw, plays
from website.entries import prepare

DPI = 200


def picture_problem(folder: Path, name: str) -> str:
    """f and the feasible set of a problem: Markdown of the picture and its caption."""
    problem, why = prepare(name)
    if problem is None:
        return f"*There is no picture: {escape_markdown(why)}.*"
    if "a known optimum" not in problem.offers():
        return "*There is no picture: to draw it is to simulate it.*"
    depends_on = [source_hash(name), str(problem)]
    return keep(folder, name, depends_on, lambda: draw.draw_problem(problem, name))


def picture_method(folder: Path, name: str) -> str:
    """A play of a method: Markdown of the picture and its caption."""
    settings = plays.choose_settings(ALGORITHMS.get(name))
    if why := plays.explain_refusal(ALGORITHMS.get(name), settings):
        return f"*There is no picture: {escape_markdown(why)}.*"
    depends_on = [source_hash(plays.PROBLEM, name), settings]
    return keep(folder, name, depends_on, lambda: plays.draw_play(name, settings))


def picture_all(folder: Path, only: list[str] | None) -> dict[str, str]:
    """Markdown of the pictures by method and problem; None: of all, else of those named."""
    chosen = {*ALGORITHMS.names(), *PROBLEMS.names()} if only is None else {*only}
    found = {n: picture_problem(folder, n) for n in PROBLEMS.names() if n in chosen}
    return found | {n: picture_method(folder, n) for n in ALGORITHMS.names() if n in chosen}


def keep(
    folder: Path, name: str, depends_on: list[Any], drawn: Callable[[], tuple[Any, str]]
) -> str:
    """A picture and its caption as Markdown, drawn where none is kept that depends on the same."""
    looks = [code_hash(Path(str(module.__file__))) for module in (draw, plays, style)]
    key = hashlib.sha256(canonical([name, *depends_on, *looks]).encode()).hexdigest()[:12]
    file, caption = folder / f"{name}.{key}.png", folder / f"{name}.{key}.txt"
    if not caption.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob(f"{name}.*"):
            old.unlink()
        image, text = drawn()
        image.savefig(file, dpi=DPI, facecolor="white", metadata={"Software": None})
        caption.write_text(text, encoding="utf-8")  # last: the picture is whole
    words = escape_markdown(caption.read_text(encoding="utf-8"))
    return f"![{name}](/{folder.name}/{file.name})\n\n*{words}*"
