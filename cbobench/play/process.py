"""Restores what a play changes of its process beyond `isolate_play`, and finds what cannot be
restored.

Apart from `isolate_play`, because these do not change what a play gives where nothing is changed:
results that were played before count as played by the same code.
"""

from __future__ import annotations

import gc
import locale
import os
import random
import resource
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from cbobench.errors import CbobenchError
from cbobench.float_state import float_controls, preserved_float_state
from cbobench.play.isolation import _handlers, _set_handlers
from cbobench.processes import Programs, leave_fork
from cbobench.surroundings import AROUND, REPLACED, Surroundings, take_replaced

LIMITS = [getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_")]
MOST_DESCRIPTORS = 4096  # that a worker is asked for one by one, where /proc does not list them
TIMERS = (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF)


class ChangedRounding(Exception):
    """A play has left the processor rounding otherwise than at its beginning."""


@contextmanager
def preserve_process() -> Iterator[None]:
    """Begin the block with the rounding of a new process, and restore the process afterwards.

    Restored are what `Surroundings` holds, signal handlers, global generators, rounding, umask,
    hooks for errors and traces, recursion limit, garbage collection, locale, limits and CPUs of the
    process, masked signals, timers, the sockets' timeout, and the standard descriptors.

    A fork that the block's code has made, and that leaves the block, ends there.
    """
    origin, surroundings = os.getpid(), Surroundings()
    token = AROUND.set(surroundings)
    before = [(put_back, look()) for look, put_back in _STATE]
    # Code may close or redirect the standard descriptors; copies of them can be put back.
    copies = [
        (descriptor, copy, _identity(copy))
        for descriptor in range(3)
        if (copy := _copy(descriptor)) is not None
    ]
    try:
        with preserved_float_state(default=True):
            yield
    finally:
        leave_fork(origin)
        AROUND.reset(token)
        surroundings.put_back()
        for put_back, value in before:
            with suppress(OSError, ValueError):  # what only the administrator may raise again
                put_back(value)
        for descriptor, copy, identity in copies:
            if _identity(copy) == identity:  # else the block's code has closed this one, too
                if _identity(descriptor) != identity:
                    os.dup2(copy, descriptor)
                os.close(copy)


def refuse_changed_rounding(before: int) -> None:
    """Raise `ChangedRounding` if this thread does not round as at the beginning of a play.

    A library may change it when it is loaded, in the first play that needs it; and in a block of
    cells that code of one cell would change the others.

    Args:
        before: the control bits at the beginning (see `float_controls`).
    """
    if float_controls() != before:
        raise ChangedRounding("its code changes how the processor rounds")


def refuse_replaced(label: str) -> None:
    """Refuse to go on in a process in which code has replaced functions of NumPy, where no other
    can take its place.

    Args:
        label: whose code it was.

    Raises:
        CbobenchError: it has; the line names them.
    """
    if names := take_replaced():
        fix = "keep what is replaced to a module of its own, or play in workers: --cpus 1"
        raise CbobenchError(f"{label}: its code replaces {names}, which all other code uses; {fix}")


class Traces:
    """What the code of tasks leaves in a worker that cannot be restored: programs, closed files,
    lowered limits; and
    what may have been copied before it was: functions of NumPy that it had replaced.

    Attributes:
        descriptors: files and sockets of the worker as it began.
    """

    def __init__(self) -> None:
        self.programs, self.descriptors, self.state = (
            Programs(),
            _open_descriptors(),
            _fixed_state(),
        )
        REPLACED.clear()

    def any_left(self) -> bool:
        """Return whether there is anything, so that the worker must not play another task."""
        closed = any(
            _identity(descriptor) != identity for descriptor, identity in self.descriptors.items()
        )
        return (
            closed or bool(REPLACED) or _fixed_state() != self.state or bool(self.programs.left())
        )

    def holds(self, descriptor: int) -> bool:
        """Return whether a descriptor is still the worker's own."""
        return _identity(descriptor) == self.descriptors.get(descriptor)


def _identity(descriptor: int) -> tuple[int, int] | None:
    """Return the file behind a descriptor; None for a closed one."""
    try:
        status = os.fstat(descriptor)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _open_descriptors() -> dict[int, tuple[int, int]]:
    descriptors: Iterable[int] = range(MOST_DESCRIPTORS)
    with suppress(OSError):
        descriptors = [int(place.name) for place in Path("/proc/self/fd").iterdir()]
    identities = {descriptor: _identity(descriptor) for descriptor in descriptors}
    return {
        descriptor: identity for descriptor, identity in identities.items() if identity is not None
    }


def _copy(descriptor: int) -> int | None:
    try:
        return os.dup(descriptor)
    except OSError:  # closed
        return None


def _fixed_state() -> tuple[Any, ...]:
    """Return what a process can often change in one direction only."""
    limits = [resource.getrlimit(limit) for limit in LIMITS]
    return (
        limits,
        os.getpriority(os.PRIO_PROCESS, 0),
        os.getpgid(0),
        os.getsid(0),
        # macOS lacks the saved ones
        getattr(os, "getresuid", os.geteuid)(),
        getattr(os, "getresgid", os.getegid)(),
    )


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _set_limits(limits: dict[int, tuple[int, int]]) -> None:
    for limit, values in limits.items():
        if resource.getrlimit(limit) != values:
            with suppress(OSError, ValueError):
                resource.setrlimit(limit, values)


def _hooks() -> tuple[Any, ...]:
    return sys.excepthook, sys.unraisablehook, sys.displayhook, threading.excepthook


def _set_hooks(hooks: tuple[Any, ...]) -> None:
    sys.excepthook, sys.unraisablehook, sys.displayhook, threading.excepthook = hooks


def _set_traces(traces: tuple[Any, Any]) -> None:
    if sys.gettrace() is not traces[0]:
        sys.settrace(traces[0])
    if sys.getprofile() is not traces[1]:
        sys.setprofile(traces[1])


def _set_collection(collection: tuple[bool, tuple[int, int, int]]) -> None:
    (gc.enable if collection[0] else gc.disable)()
    gc.set_threshold(*collection[1])


def _set_locale(name: str) -> None:
    if locale.setlocale(locale.LC_ALL) != name:
        with suppress(locale.Error):
            locale.setlocale(locale.LC_ALL, name)


def _cpus() -> set[int]:
    return os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()


def _set_cpus(cpus: set[int]) -> None:
    if cpus and os.sched_getaffinity(0) != cpus:
        os.sched_setaffinity(0, cpus)


def _idle_timers() -> list[Any]:
    return [timer for timer in TIMERS if signal.getitimer(timer)[0] == 0]


def _stop_timers(timers: list[Any]) -> None:
    for timer in timers:
        signal.setitimer(timer, 0)


_STATE: list[tuple[Callable[[], Any], Callable[[Any], Any]]] = [
    (_handlers, _set_handlers),
    (random.getstate, random.setstate),
    (lambda: np.random.get_state(legacy=False), np.random.set_state),  # noqa: NPY002 - it is the user's
    (_umask, os.umask),
    (_hooks, _set_hooks),
    (lambda: (sys.gettrace(), sys.getprofile()), _set_traces),
    (sys.getrecursionlimit, sys.setrecursionlimit),
    (lambda: (gc.isenabled(), gc.get_threshold()), _set_collection),
    (lambda: locale.setlocale(locale.LC_ALL), _set_locale),
    (lambda: {limit: resource.getrlimit(limit) for limit in LIMITS}, _set_limits),
    (_cpus, _set_cpus),
    (
        lambda: signal.pthread_sigmask(signal.SIG_BLOCK, ()),
        lambda mask: signal.pthread_sigmask(signal.SIG_SETMASK, mask),
    ),
    (_idle_timers, _stop_timers),
    (socket.getdefaulttimeout, socket.setdefaulttimeout),
]
"""Pairs of a reader before a play and a setter after it."""
