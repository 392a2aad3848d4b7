"""What this process and those that it has started took, may have, and must not go on with."""

from __future__ import annotations

import os
import resource
from contextlib import suppress
from math import inf
from pathlib import Path


def read_children_seconds() -> float:
    """Return the CPU time of the programs that this process has started, and of theirs, in seconds.

    Counted are those that were waited for, and where /proc says so those that run, in steps of a
    hundredth.
    """
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    running = _list_children(os.getpid()) if _has_children() else []
    return ended.ru_utime + ended.ru_stime + sum(map(_read_seconds, running))


def _has_children() -> bool:
    """Ask by a system call: as a rule there is none, and /proc would take as long as a round."""
    if hasattr(os, "waitid"):
        try:
            os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return False
    return True


def _list_children(pid: int) -> list[int]:
    children: list[int] = []
    for place in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):  # the thread has ended meanwhile
            children += map(int, place.read_text().split())
    return children


def _read_seconds(pid: int) -> float:
    """Return the CPU time of a process that has not been waited for, and of what it has started."""
    with suppress(OSError):  # it is over meanwhile
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        # its own and that of programs it waited for, user and system
        ticks = sum(map(int, fields[11:15]))
        return ticks / os.sysconf("SC_CLK_TCK") + sum(map(_read_seconds, _list_children(pid)))
    return 0.0


def leave_fork(origin: int) -> None:
    """End this process if it is a fork of the one that began, in which the user's code has
    returned.

    Both would go on with the same play and the same open file.

    Args:
        origin: id of the process that began.
    """
    if os.getpid() != origin:
        os._exit(0)


def address_space_limit() -> float:
    """Return the kB of address space that this process may have (`ulimit -v`), as a rule inf."""
    with suppress(AttributeError):  # there are systems without limits
        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        return inf if limit == resource.RLIM_INFINITY else limit / 1024
    return inf
