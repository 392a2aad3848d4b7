"""The code that the nodes of a cluster play with: what is sent to them.

`--ship` sends cbobench, and the user's modules that the cells depend on, as they are here. Of a
package all files go but hidden ones and the folders that `LEFT_OUT` names, unless a cell's code is
in them; of single modules those that the cells' code imports. What is installed from elsewhere
(NumPy, say) does not go.

Whatever is sent, a worker with another folder or other code than the driver's refuses its first
task, which ends the run (`play.task.play_task_on_worker`).
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from cbobench.errors import Misuse, show
from cbobench.results.source import PACKAGE, closure, find_code

LEFT_OUT = {"__pycache__", "data", "runs", "figures", "tests", "venv", "env", "node_modules"}
WAIT = 30.0  # seconds for which nodes are waited for
SHOWN = 4  # nodes that a message names


@dataclass(frozen=True)
class Code:
    """What must play, on every machine.

    Attributes:
        sources: hash of the code by the names of problem and algorithm (see
            `cbobench.results.source`).
        files: what is sent, by where it belongs below a folder of modules; nothing where nothing
            is.
        folders: where modules of the user's lie that are not sent.
    """

    sources: Mapping[tuple[str, str], str]
    files: Mapping[str, Path] = field(default_factory=dict)
    folders: Collection[str] = ()

    def copy_to(self, folder: Path) -> list[str]:
        """Copy what is sent; returns the paths of modules and packages."""
        for name, path in self.files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, folder / name)
        return sorted({str(folder / Path(name).parts[0]) for name in self.files})


def prepare_worker(folders: Collection[str], place: str | None) -> None:
    """Look for modules in some folders, too, after all else; work in a place."""
    sys.path += [folder for folder in folders if folder not in sys.path]
    if place is not None:
        os.chdir(place)


def collect_code(sources: Mapping[tuple[str, str], str], ship: bool) -> Code:
    """What must play some pairs.

    Args:
        sources: see `Code`.
        ship: whether it is sent.

    Raises:
        Misuse: it cannot be sent, because it lies in an archive.
    """
    needed: dict[str, Path] = {}
    for problem, algorithm in sources:
        needed |= closure(problem, algorithm)
        for name in (problem, algorithm):
            module = name.partition(":")[0]
            if ship and ":" in name and module not in needed:
                raise Misuse(
                    f"--ship cannot send {show(module)}: it is no file here; install it on every "
                    "machine"
                )
    tops = sorted({PACKAGE, *(name.partition(".")[0] for name in needed)})
    if not ship:
        places = [
            place
            for top in tops
            if top != PACKAGE
            for place in find_code(top)[1] or find_code(top)[:1]
        ]
        return Code(
            sources, folders=sorted({str(place.parent) for place in places if place is not None})
        )
    files: dict[str, Path] = {}
    for top in tops:
        files |= _files(top, set(needed.values()))
    return Code(sources, files)


def _files(top: str, needed: Collection[Path]) -> Iterator[tuple[str, Path]]:
    """Files of a top-level module by their place beside it."""
    file, folders = find_code(top)
    if file is not None and not folders:
        yield file.name, file
    for folder in folders:
        for path in _below(folder, needed):
            yield f"{top}/{path.relative_to(folder)}", path


def _below(folder: Path, needed: Collection[Path]) -> Iterable[Path]:
    for path in sorted(folder.iterdir()):
        if path.is_dir():
            left_out = path.name in LEFT_OUT or path.name.startswith(".")
            if not left_out or any(file.is_relative_to(path) for file in needed):
                yield from _below(path, needed)
        elif not path.name.startswith(".") and path.is_file():
            yield path
