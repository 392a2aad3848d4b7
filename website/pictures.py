"""The pictures, each drawn once: kept by a hash of the settings and of the code that plays and
draws.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cbobench.algorithms import ALGORITHMS
from cbobench.report.figures import canvas, curves, layout, planes, style
from cbobench.report.tables.formats import escape_markdown
from cbobench.results.source import code_hash, source_hash
from cbobench.suite.variants import canonical
from website import draw, plays
from website.words import prepared, signs

PIXELS = 118  # of a page to an inch of a figure
NOT_NOW = "Pictures are left out of this build."
GALLERY = (
    "gallery"  # what all pictures of stored numbers are called, of which a build may draw some
)


@dataclass(frozen=True)
class Drawing:
    """A picture as pages show it.

    Attributes:
        file: in the folder of pictures; empty where there is none.
        text: the caption, or why there is none.
        alt: for those who do not see it.
        cost: of a play, µs per seed and round; empty where nothing was measured.
        width: in pixels of a page, where it has room for them.
    """

    file: str
    text: str
    alt: str = ""
    cost: str = ""
    width: int = 0

    def markdown(self) -> str:
        """The picture with its caption."""
        image = (
            f"![{escape_markdown(self.alt)}](../pictures/{self.file}){{width={self.width}px}}\n\n"
            if self.file
            else ""
        )
        return f"{image}*{signs(escape_markdown(self.text))}*"


class Pictures:
    """The pictures of a build.

    Args:
        folder: where they are kept from build to build.
        only: names of methods and problems, and `gallery`; None: all are drawn.

    Attributes:
        made: how many were drawn anew.
        used: files by name.
    """

    def __init__(self, folder: Path, only: Collection[str] | None = None) -> None:
        self.folder, self.only = folder, only
        self.made = 0
        self.used: dict[str, Path] = {}

    def of_problem(self, name: str) -> Drawing:
        """f and the feasible set."""
        problem, settings, why = prepared(name)
        if problem is None:
            return Drawing("", f"There is no picture: {why}.")
        code = source_hash(name, "random")
        return self._kept(
            name, "problem", code, settings, lambda: draw.problem(problem, name, settings)
        )

    def of_method(self, name: str) -> Drawing:
        """A play."""
        cls = ALGORITHMS.get(name)
        settings = plays.settings_for(cls)
        if why := plays.refusal(cls, settings):
            return Drawing("", f"There is no picture: {why}.")
        code = source_hash(plays.PROBLEM, name)
        return self._kept(name, "method", code, settings, lambda: plays.picture(name, settings))

    def of_stored(
        self, name: str, stored: list[Path], drawn: Callable[[], Any], text: str
    ) -> Drawing:
        """A picture of numbers that are in the repository."""
        contents = [hashlib.sha256(path.read_bytes()).hexdigest() for path in stored]
        code = "".join(
            code_hash(Path(str(module.__file__))) for module in (canvas, curves, layout, planes)
        )
        return self._kept(
            name,
            GALLERY,
            code,
            {"contents": contents},
            lambda: (drawn(), {"text": text, "alt": text}),
        )

    def _kept(
        self,
        name: str,
        kind: str,
        code: str,
        settings: dict[str, Any],
        drawn: Callable[[], tuple[Any, dict[str, str]]],
    ) -> Drawing:
        if self.only is not None and not {name, kind} & {*self.only}:
            return Drawing("", NOT_NOW)
        looks = [code_hash(Path(str(module.__file__))) for module in (draw, plays, style)]
        key = hashlib.sha256(canonical([kind, name, code, settings, *looks]).encode()).hexdigest()[
            :12
        ]
        file, about = f"{kind}-{name}-{key}.png", self.folder / f"{kind}-{name}-{key}.json"
        if not about.is_file():
            self.folder.mkdir(parents=True, exist_ok=True)
            for old in self.folder.glob(f"{kind}-{name}-{'?' * len(key)}.*"):
                old.unlink()
            image, words = drawn()
            image.savefig(
                self.folder / file, dpi=200, facecolor="white", metadata={"Software": None}
            )
            width = round(PIXELS * float(image.get_size_inches()[0]))
            # Last: the picture is whole.
            about.write_text(
                json.dumps(asdict(Drawing(file, **words, width=width))), encoding="utf-8"
            )
            self.made += 1
        self.used[file] = self.folder / file
        return Drawing(**json.loads(about.read_text(encoding="utf-8")))
