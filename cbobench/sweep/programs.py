"""Programs that the user's code starts: they end with their worker.

A worker leads a session of its own. What it starts belongs to the session, or descends from it,
unless it detaches itself on purpose and its parent has ended.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
from contextlib import suppress
from functools import cache
from pathlib import Path

ROUNDS = 5  # looks for programs that others have started just before they were ended
ADOPT_ORPHANS = 36  # PR_SET_CHILD_SUBREAPER of prctl(2)


def find_programs(leader: int) -> list[int]:
    """Return the running processes that a session's leader has started, directly or not; empty
    without /proc.
    """
    parents: dict[int, int] = {}
    programs = set()
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, ValueError, IndexError):  # it has ended meanwhile
            state, parent, group, session = (
                (place / "stat").read_text().rpartition(")")[2].split()[:4]
            )
            pid = int(place.name)
            parents[pid] = int(parent)
            if state not in "ZX" and pid != leader and leader in (int(group), int(session)):
                programs.add(pid)
    waiting = [leader, *programs]
    while waiting:
        ancestor = waiting.pop()
        new = {
            pid for pid, parent in parents.items() if parent == ancestor and pid != leader
        } - programs
        programs |= new
        waiting += new
    return sorted(programs)


def end_session(leader: int) -> None:
    """Kill a session's leader, if it has not been waited for yet, and all that it has started."""
    _kill_below(leader, itself=leader != os.getpid())
    # where there is no /proc; no group before `setsid`
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)


def adopt_orphans() -> None:
    """Become the parent of what the processes below this one leave behind, so that `find_programs`
    finds it.
    """
    with suppress(AttributeError, OSError):  # Linux alone can
        ctypes.CDLL(None).prctl(ADOPT_ORPHANS, 1, 0, 0, 0)


def end_programs() -> None:
    """Kill all processes below this one."""
    _kill_below(os.getpid(), itself=False)


def _kill_below(leader: int, itself: bool) -> None:
    """Kill what a process has started, and the process itself if asked."""
    for _ in range(ROUNDS):
        programs = find_programs(leader)  # before their parent ends: some have left the session
        for pid in [leader, *programs] if itself else programs:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if not programs:
            return


@cache
def close_sockets_in_forks() -> None:
    """Close the sockets that are open now in every fork to come: one that holds a copy hides that
    this process died.
    """
    sockets = {place.name: name for place, name in _descriptors() if name.startswith("socket:")}

    def close() -> None:
        for place, name in _descriptors():
            if sockets.get(place.name) == name:
                os.close(int(place.name))

    os.register_at_fork(after_in_child=close)


def _descriptors() -> list[tuple[Path, str]]:
    """Return the open descriptors of this process, and what each is; none without /proc."""
    names = []
    with suppress(OSError):
        for place in Path("/proc/self/fd").iterdir():
            with suppress(OSError):  # the one that lists them
                names.append((place, str(place.readlink())))
    return names


def run_apart(script: str, argument: str) -> int:
    """Run a script of the shell as nobody's child: whoever ends all that this process has started
    leaves it.

    Args:
        argument: its $0.

    Returns:
        The end to write to of a pipe, from which it reads as 3, and which ends as this process
        does, however that may be.
    """
    theirs, ours = os.pipe()
    subprocess.run(
        ["sh", "-c", f"exec 3<&0; ({script}) &", argument],
        stdin=theirs,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        cwd="/",
        env={"PATH": os.defpath},
        check=True,
    )
    os.close(theirs)
    return ours
