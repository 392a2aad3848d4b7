"""The code and the folder that the nodes of a cluster play with: what is sent to them, and what is
checked before.

`--ship` sends cbobench, and the user's modules that the cells depend on, as they are here. Of a
package all files go but hidden ones and the folders that `LEFT_OUT` names, unless a cell's code is
in them; of single modules those that the cells' code imports. What is installed from elsewhere
(NumPy, say) does not go.

Before anything is played every node must see the run folder as the driver does, and have the
driver's code. A node that joins later is not asked; each worker looks again before its first task
(`play.task.refuse_other_code`).
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cbobench.errors import CbobenchError, Misuse, reraise_stop, show
from cbobench.play.failure import describe_error
from cbobench.play.task import SHIP, refuse_other_code
from cbobench.results.folder import RunFolder
from cbobench.results.lease import DRIVERS_FOLDER, VISIBLE_WITHIN, refuse_unshared_folder
from cbobench.results.source import PACKAGE, closure, find_code, libraries
from cbobench.results.store import machine_id
from cbobench.watcher import Watcher
from cbobench.words import count_noun

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


def check_nodes(ray: Any, folder: RunFolder, code: Code, watcher: Watcher) -> None:
    """Refuse a cluster with a node that has other code, or another folder.

    Args:
        ray: joined.
        folder: the run, claimed by this driver.
        code: what must play.
        watcher: told of nodes that did not answer.

    Raises:
        Misuse: in one line, with the nodes' names.
    """
    hosts = _ask_nodes(ray, folder, code)
    if not hosts:
        return
    ready, late = ray.wait([*hosts], num_returns=len(hosts), timeout=WAIT)
    answers: dict[str, tuple[str, str]] = {}
    for reference in ready:
        mark, host = hosts[reference]
        text = _answer_of(ray, reference)
        if text is not None:
            answers[mark] = host, text
    if late:
        names = ", ".join(sorted({hosts[reference][1] for reference in late}))
        watcher.note(
            f"no answer within {WAIT:.0f} s of {names}; what plays there is asked before it begins"
        )
    for reference in late:
        ray.cancel(reference, force=True)
    refuse_wrong_nodes(folder, answers)


def _ask_nodes(ray: Any, folder: RunFolder, code: Code) -> dict[Any, tuple[str, str]]:
    """Ask every node that plays; the file that it is to write, and its name, by the reference of
    its answer.
    """
    pairs = [(*names, source, libraries(names[1])) for names, source in code.sources.items()]

    # Within, so that it travels by value: a node may have no cbobench, or an older one.
    def probe(
        mark: str, uri: str, driver: str, pairs: list[tuple[str, str, str, str]], folders: list[str]
    ) -> tuple[str, str]:
        try:
            from cbobench.results.folder import RunFolder
            from cbobench.sweep.cluster import check_here, prepare_worker

            prepare_worker(folders, None)
        except Exception as error:
            return "", str(error)
        return check_here(RunFolder(uri, driver), mark, pairs), ""

    hosts: dict[Any, tuple[str, str]] = {}
    for node in ray.nodes():
        if node["Alive"] and node["Resources"].get("CPU", 0) > 0:
            strategy = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(
                node["NodeID"], soft=False
            )
            remote = ray.remote(probe).options(
                num_cpus=0, max_retries=0, scheduling_strategy=strategy
            )
            mark = marker_of(node["NodeID"])
            reference = remote.remote(mark, folder.uri, folder.driver, pairs, code.folders)
            hosts[reference] = (mark, node["NodeManagerHostname"])
    return hosts


def _answer_of(ray: Any, reference: Any) -> str | None:
    """What is wrong with a node that was asked, or ""; None for one that has left meanwhile."""
    errors = ray.exceptions
    try:
        text, missing = ray.get(reference)
    except (errors.NodeDiedError, errors.ObjectLostError, errors.TaskUnschedulableError):
        return None
    except errors.RayError as error:
        return f"no worker starts there: {(str(error).strip().splitlines() or [''])[-1]}"
    return f"it has no cbobench, or an older one ({missing}); {SHIP}" if missing else str(text)


def check_here(folder: RunFolder, mark: str, pairs: Sequence[tuple[str, str, str, str]]) -> str:
    """On a node: write a file for the driver, and compare the code; what is wrong, or ""."""
    try:
        refuse_unshared_folder(folder)
        for problem, algorithm, source, versions in pairs:
            refuse_other_code(problem, algorithm, f"{problem} / {algorithm}", source, versions)
        folder.write_json(_file(mark), {"mark": mark})
    except CbobenchError as error:
        return str(error)
    except BaseException as error:  # a user's module may fail in any way
        reraise_stop(error)
        return describe_error(error)[0]
    return ""


def refuse_wrong_nodes(folder: RunFolder, answers: Mapping[str, tuple[str, str]]) -> None:
    """Refuse a cluster of which a node is not as it must be; takes away what the nodes have
    written.

    Args:
        answers: host name and what is wrong, by the file that a node was to write.

    Raises:
        Misuse: in one line, with the nodes' names.
    """
    wrong: dict[str, list[str]] = defaultdict(list)
    deadline = time.monotonic() + VISIBLE_WITHIN
    for mark, (host, text) in answers.items():
        while not text and not folder.exists(_file(mark)):
            if time.monotonic() > deadline:
                text = (
                    f"what it writes into {folder} is not seen here; give --out on a file system "
                    "that all share"
                )
            time.sleep(0.2)
        folder.remove(_file(mark))
        if text:
            wrong[text.replace(host, "HOST")].append(host)  # the same on many nodes is said once
    for text, hosts in wrong.items():
        named = ", ".join(hosts[:SHOWN]) + (", …" if len(hosts) > SHOWN else "")
        count = f"{len(hosts)} of {count_noun(len(answers), 'node')} ({named})"
        suffix = f"; and {len(wrong) - 1} other reasons" if len(wrong) > 1 else ""
        raise Misuse(f"nothing is played: {count}: {text.replace('HOST', hosts[0])}{suffix}")


def marker_of(node: str) -> str:
    """The file that a node is to write: hidden from readers, and swept up if this process dies
    before it is.
    """
    return f".probe.{machine_id()}.{os.getpid()}.{int(node[:16], 16)}.tmp"


def _file(mark: str) -> str:
    return f"{DRIVERS_FOLDER}/{mark}"
