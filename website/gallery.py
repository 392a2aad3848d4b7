"""The figures of the gallery as pictures with words, drawn from a play of README's suite; those of
papers, drawn from what is stored.
"""

from __future__ import annotations

import hashlib
import json
import re
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

import cbobench
from analysis.markdown import tabulate
from analysis.papers import gallery, reproduction
from cbobench.report.load import Run
from cbobench.report.tables.formats import escape_markdown
from website.pictures import Pictures

FIRST = Path(__file__).parents[1] / "suites" / "first.yaml"
"""The suite of README, whose figures the gallery shows."""


def with_figures(text: str, pictures: Pictures) -> str:
    """The gallery with the figure of every block of Python below it, drawn from a play of the same
    suite.
    """

    def draw(code: str) -> Any:
        # Played for the first figure, and resumed for the others.
        run = Run(cbobench.run("first", out=pictures.folder / "first", cpus=0).folder)
        scope: dict[str, Any] = {"run": run}
        exec(code.replace('"runs/first"', "run"), scope)
        return scope["figure"]

    def with_figure(block: re.Match[str]) -> str:
        # The name is another one where the code is, so that the picture is drawn again.
        name = f"block-{hashlib.sha256(block[2].encode()).hexdigest()[:8]}"
        drawn = pictures.of_stored(name, [FIRST], partial(draw, block[2]), f"{block[1]}.")
        return f"{block[0]}\n\n{drawn.markdown()}"

    return re.sub(r"^## (.+)\n\n```python\n((?:.*\n)*?)```$", with_figure, text, flags=re.M)


def papers(pictures: Pictures) -> str:
    """A section per paper and figure: what the paper shows, both pictures, the verdicts, and what
    decides.
    """
    about, rows = gallery.stored()
    verdicts = reproduction.primary(
        json.loads(reproduction.STORED.read_text(encoding="utf-8"))["rows"]
    )
    text = []
    for paper, figures in groupby(gallery.read_figures(), key=lambda figure: figure.paper):
        text.append(f"### {paper}\n")
        text += [section(figure, about, rows, verdicts, pictures) for figure in figures]
    return "\n".join(text)


def section(
    figure: gallery.PaperFigure, about: Any, rows: Any, verdicts: Any, pictures: Pictures
) -> str:
    """One figure."""
    lines = [
        f"#### {figure.paper}, Figure {figure.number}\n",
        f"**The paper:** {escape_markdown(figure.says)}\n",
    ]
    for reading, words in gallery.READINGS.items():
        key = f"{figure.key}_{reading}"
        (other,) = {*gallery.READINGS} - {reading}
        text = (
            f"{words.capitalize()}: {about[key]['caption']} ({about[key]['suite']}); "
            f"{gallery.READINGS[other]}: {about[f'{figure.key}_{other}']['suite']}"
        )
        files = [gallery.ROWS, gallery.ABOUT]
        drawn = pictures.of_stored(key, files, partial(gallery.draw, key, about, rows), text)
        lines.append(f"{drawn.markdown()}\n")
    claims = []
    for id, problem in figure.claims:
        found = verdicts.get((id, problem), {})
        letter, best = (
            reproduction.say_verdict(found.get(reading)) for reading in gallery.READINGS
        )
        claims.append((f"[{id}](reproduction.md)", letter, best))
    lines.append(tabulate(("claim", *gallery.READINGS.values()), claims))
    command = (
        f"cbobench run {figure.suite} && cbobench figures runs/{figure.suite.replace('_', '-')}"
    )
    lines += [
        "",
        f"**What decides:** {escape_markdown(figure.decides)}\n",
        f"```\n{command}\n```\n",
    ]
    return "\n".join(lines)
