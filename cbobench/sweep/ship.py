"""What workers on Ray play with: the user's modules, found where the driver finds them, or sent with `--ship`.

`--ship` sends cbobench, and the user's modules that the cells depend on, as they are here. Of a package all files go
but hidden ones and the folders that `LEFT_OUT` names, unless a cell's code is in them; of single modules those that the
cells' code imports. What is installed from elsewhere (NumPy, say) does not.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cbobench.errors import Misuse, show
from cbobench.results.source import PACKAGE, closure, top_level
from cbobench.words import counted

LEFT_OUT = {"__pycache__", "data", "runs", "figures", "tests", "venv", "env", "node_modules"}
LIMIT = 512 * 2**20
"""Bytes that Ray takes of a package, unless its `SETTING` says otherwise."""
SETTING = "RAY_max_grpc_message_size"


@dataclass(frozen=True)
class Code:
    """What must play, on every machine.

    Attributes:
        sources: hash of the code by the names of problem and algorithm (see `cbobench.results.source`).
        files: what is sent, by where it belongs below a folder of modules; nothing where nothing is.
        folders: where modules of the user's lie that are not sent.
    """

    sources: Mapping[tuple[str, str], str]
    files: Mapping[str, Path] = field(default_factory=dict)
    folders: Collection[str] = ()

    def lay_out(self, folder: Path) -> list[str]:
        """Copy what is sent; returns the paths of modules and packages."""
        for name, path in self.files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, folder / name)
        return sorted({str(folder / Path(name).parts[0]) for name in self.files})


@dataclass(frozen=True)
class Settled:
    """A thing for a worker that looks for modules in some folders, too, after all else, and works in a place.

    The worker is settled before it unpickles the thing, which may be of a class of the user's.
    """

    thing: Any
    folders: Collection[str]
    place: str | None

    def __reduce__(self) -> tuple[Any, ...]:
        return _second, (_Settling(self.folders, self.place), self.thing)


@dataclass(frozen=True)
class _Settling:
    folders: Collection[str]
    place: str | None

    def __reduce__(self) -> tuple[Any, ...]:
        return settle, (self.folders, self.place)


def settle(folders: Collection[str], place: str | None) -> None:
    """Look for modules in some folders, too, after all else; work in a place."""
    sys.path += [folder for folder in folders if folder not in sys.path]
    if place is not None:
        os.chdir(place)


def _second(_: None, thing: Any) -> Any:
    return thing


@contextmanager
def away(folder: Path, code: Code | None, options: dict[str, Any]) -> Iterator[None]:
    """While Ray starts or is joined with some options: be in an empty folder, and upload what is sent.

    Ray lets workers look for modules first in the driver's current folder, and in that of its script; so these are
    where nothing is. What is sent goes as modules, for a job of Ray's may have a working folder of its own.

    Args:
        folder: where the empty one is made; nobody else may write there.
    """
    before = Path.cwd()
    if code is not None and code.files:
        options["runtime_env"] = {"py_modules": code.lay_out(folder / "modules")}
    (empty := folder / "empty").mkdir()
    os.chdir(empty)
    sys.argv[:1] = [str(empty / "cbobench")]
    try:
        yield
    finally:
        os.chdir(before)


def code(sources: Mapping[tuple[str, str], str], ship: bool) -> Code:
    """What must play some pairs.

    Args:
        sources: see `Code`.
        ship: whether it is sent.

    Raises:
        Misuse: it cannot be sent: it is larger than Ray takes, or lies in an archive.
    """
    needed: dict[str, Path] = {}
    for problem, algorithm in sources:
        needed |= closure(problem, algorithm)
        for name in (problem, algorithm):
            module = name.partition(":")[0]
            if ship and ":" in name and module not in needed:
                raise Misuse(f"--ship cannot send {show(module)}: it is no file here; install it on every machine")
    tops = sorted({PACKAGE, *(name.partition(".")[0] for name in needed)})
    if not ship:
        places = [place for top in tops if top != PACKAGE for place in top_level(top)[1] or top_level(top)[:1]]
        return Code(sources, folders=sorted({str(place.parent) for place in places if place is not None}))
    files: dict[str, Path] = {}
    for top in tops:
        found = dict(_files(top, set(needed.values())))
        size = sum(path.stat().st_size for path in found.values())
        if size > limit():
            largest = max(found.items(), key=lambda entry: entry[1].stat().st_size)[0]
            raise Misuse(
                f"--ship would send {counted(len(found), 'file')} of {top}, {size / 2**20:.1f} MiB (the largest is "
                f"{largest}); Ray takes {limit() / 2**20:.0f} MiB: move what is no code into a folder data/, "
                "or install it on every machine"
            )
        files |= found
    return Code(sources, files)


def limit() -> int:
    """Bytes that this Ray takes."""
    given = os.environ.get(SETTING, "")
    return int(given) if given.isdecimal() else LIMIT


def _files(top: str, needed: Collection[Path]) -> Iterator[tuple[str, Path]]:
    """Files of a top-level module by their place beside it."""
    file, folders = top_level(top)
    if file is not None and not folders:
        yield file.name, file
    for folder in folders:
        for path in _below(folder, needed):
            yield f"{top}/{path.relative_to(folder)}", path


def _below(folder: Path, needed: Collection[Path]) -> Iterable[Path]:
    for path in sorted(folder.iterdir()):
        if path.is_dir():
            left_out = path.name in LEFT_OUT or path.name.startswith(".")
            if not left_out or any(one.is_relative_to(path) for one in needed):
                yield from _below(path, needed)
        elif not path.name.startswith(".") and path.is_file():
            yield path
