"""The code that the nodes of a cluster play with.

`--ship` sends cbobench, and the user's modules that the cells depend on, as they are here. Ray
packs whole packages, without what `EXCLUDED` names, and single files. What is installed from
elsewhere (NumPy, say) does not go.

Whatever is sent, a worker with another folder or other code than the driver's refuses its first
task, which ends the run (`play.task.play_task_on_worker`).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from cbobench.errors import Misuse, show
from cbobench.results.source import PACKAGE, closure, find_code

# of a package, as in .gitignore; the folder itself is "."
EXCLUDED = ["__pycache__", ".?*", "runs", "figures", "venv", "node_modules"]


@dataclass(frozen=True)
class Code:
    """Where the code lies that the workers of a cluster need.

    Attributes:
        sent: packages and single modules that are sent.
        folders: of the user's modules that are not sent, but found by the same path there.
    """

    sent: Collection[str] = ()
    folders: Collection[str] = ()


def prepare_worker(folders: Collection[str], place: str | None) -> None:
    """Look for modules in some folders, too, after all else; work in a place."""
    sys.path += [folder for folder in folders if folder not in sys.path]
    if place is not None:
        os.chdir(place)


def collect_code(pairs: Iterable[tuple[str, str]], ship: bool) -> Code:
    """Return what workers need to play some pairs.

    Args:
        pairs: names of problem and algorithm.
        ship: whether it is sent.

    Raises:
        Misuse: it cannot be sent, because it lies in an archive.
    """
    needed: set[str] = set()
    for names in pairs:
        modules = closure(*names).keys()
        for name in names:
            module, _, attribute = name.partition(":")
            if ship and attribute and module not in modules:
                raise Misuse(
                    f"--ship cannot send {show(module)}: it is no file here; install it on every "
                    "machine"
                )
        needed |= {module.partition(".")[0] for module in modules}
    needed = needed | {PACKAGE} if ship else needed - {PACKAGE}
    files_and_folders = map(find_code, needed)
    places = {place for file, folders in files_and_folders for place in folders or (file,) if place}
    if ship:
        return Code(sent=sorted(map(str, places)))
    return Code(folders=sorted({str(place.parent) for place in places}))
