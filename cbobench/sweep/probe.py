"""Before a cluster plays: whether every node sees the run folder as the driver does, and has the driver's code.

A node that joins later is not asked here; each worker looks again before its first task (`play.proof.prove`).
"""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cbobench.errors import CbobenchError, Misuse
from cbobench.play.failure import described
from cbobench.play.proof import SHIP, prove
from cbobench.results.drivers import FOLDER, UNSEEN, refuse_unshared
from cbobench.results.folder import RunFolder
from cbobench.results.source import libraries
from cbobench.results.store import machine
from cbobench.sweep.ship import Code
from cbobench.words import counted

WAIT = 30.0  # seconds for which nodes are waited for
SHOWN = 4  # nodes that a message names


def ask(ray: Any, folder: RunFolder, code: Code, note: Callable[[str], None]) -> None:
    """Refuse a cluster with a node that has other code, or another folder.

    Args:
        ray: joined.
        folder: the run, claimed by this driver.
        code: what must play.
        note: told in one line of nodes that did not answer.

    Raises:
        Misuse: in one line, with the nodes' names.
    """
    sent = (
        folder.uri,
        folder.driver,
        [(*names, source, libraries(names[1])) for names, source in code.sources.items()],
        code.folders,
    )

    # Within, so that it travels by value: a node may have no cbobench, or an older one.
    def there(
        mark: str, uri: str, driver: str, pairs: list[tuple[str, str, str, str]], folders: list[str]
    ) -> tuple[str, str]:
        try:
            from cbobench.results.folder import RunFolder
            from cbobench.sweep.probe import look
            from cbobench.sweep.ship import settle

            settle(folders, None)
        except Exception as error:
            return "", str(error)
        return look(RunFolder(uri, driver), mark, pairs), ""

    hosts: dict[Any, tuple[str, str]] = {}
    for node in ray.nodes():
        if node["Alive"] and node["Resources"].get("CPU", 0) > 0:
            on = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
            remote = ray.remote(there).options(num_cpus=0, max_retries=0, scheduling_strategy=on)
            mark = mark_of(node["NodeID"])
            hosts[remote.remote(mark, *sent)] = (mark, node["NodeManagerHostname"])
    if not hosts:
        return
    ready, late = ray.wait([*hosts], num_returns=len(hosts), timeout=WAIT)
    answers: dict[str, tuple[str, str]] = {}
    errors = ray.exceptions
    for reference in ready:
        mark, host = hosts[reference]
        try:
            text, missing = ray.get(reference)
        except (errors.NodeDiedError, errors.ObjectLostError, errors.TaskUnschedulableError):
            continue  # it has left meanwhile
        except errors.RayError as error:
            text, missing = f"no worker starts there: {(str(error).strip().splitlines() or [''])[-1]}", ""
        if missing:
            text = f"it has no cbobench, or an older one ({missing}); {SHIP}"
        answers[mark] = host, text
    if late:
        names = ", ".join(sorted({hosts[reference][1] for reference in late}))
        note(f"no answer within {WAIT:.0f} s of {names}; what plays there is asked before it begins")
    for reference in late:
        ray.cancel(reference, force=True)
    judge(folder, answers)


def look(folder: RunFolder, mark: str, pairs: Sequence[tuple[str, str, str, str]]) -> str:
    """On a node: write a file for the driver, and compare the code; what is wrong, or ""."""
    try:
        refuse_unshared(folder)
        for problem, algorithm, source, wanted in pairs:
            prove(problem, algorithm, f"{problem} / {algorithm}", source, wanted)
        folder.write_json(_file(mark), {"mark": mark})
    except CbobenchError as error:
        return str(error)
    except Exception as error:  # a user's module may fail in any way
        return described(error)[0]
    return ""


def judge(folder: RunFolder, answers: Mapping[str, tuple[str, str]]) -> None:
    """Refuse a cluster of which a node is not as it must be; takes away what the nodes have written.

    Args:
        answers: host name and what is wrong, by the file that a node was to write.

    Raises:
        Misuse: in one line, with the nodes' names.
    """
    wrong: dict[str, list[str]] = defaultdict(list)
    deadline = time.monotonic() + UNSEEN
    for mark, (host, text) in answers.items():
        while not text and not folder.exists(_file(mark)):
            if time.monotonic() > deadline:
                text = f"what it writes into {folder} is not seen here; give --out on a file system that all share"
            time.sleep(0.2)
        folder.remove(_file(mark))
        if text:
            wrong[text.replace(host, "HOST")].append(host)  # the same on many nodes is said once
    for text, hosts in wrong.items():
        named = ", ".join(hosts[:SHOWN]) + (", …" if len(hosts) > SHOWN else "")
        count = f"{len(hosts)} of {counted(len(answers), 'node')} ({named})"
        others = f"; and {len(wrong) - 1} other reasons" if len(wrong) > 1 else ""
        raise Misuse(f"nothing is played: {count}: {text.replace('HOST', hosts[0])}{others}")


def mark_of(node: str) -> str:
    """The file that a node is to write: hidden from readers, and swept up if this process dies before it is."""
    return f".probe.{machine()}.{os.getpid()}.{int(node[:16], 16)}.tmp"


def _file(mark: str) -> str:
    return f"{FOLDER}/{mark}"
