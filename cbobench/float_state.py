"""How the processor rounds in this thread: rounding mode, and whether subnormal numbers are flushed
to zero.

Libraries that were compiled with `-ffast-math` change it when they are loaded, others when they are
called, and every later result of the process would have other bits.
"""

from __future__ import annotations

import ctypes
import platform
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

SIZE = 256  # bytes; more than a C library's fenv_t has
CONTROLS = {"x86_64": (28, 0xFFC0), "aarch64": (0, 0xFFFFFFFF)}
"""By machine, where fenv_t holds the control bits, and which of 32 these are: MXCSR without its
flags, FPCR.
"""

_DEFAULT = ctypes.c_void_p(-1)  # FE_DFL_ENV
try:
    _C = ctypes.CDLL(None) if sys.platform == "linux" else None
    _get, _set = (None, None) if _C is None else (_C.fegetenv, _C.fesetenv)
except (OSError, AttributeError):  # a C library without them
    _get = _set = None


def float_controls() -> int:
    """Return the control bits of this thread, 0 where they cannot be read."""
    at, mask = CONTROLS.get(platform.machine(), (0, 0))
    return int.from_bytes(save_float_state().raw[at : at + 4], "little") & mask


def save_float_state() -> Any:
    """Return what `restore_float_state` takes: a buffer of zeros where nothing can be read."""
    state = ctypes.create_string_buffer(SIZE)
    if _get is not None:
        _get(state)
    return state


def restore_float_state(state: Any) -> None:
    """Let this thread round as it did when the state was saved."""
    if _set is not None:
        _set(state)


@contextmanager
def preserved_float_state(default: bool = False) -> Iterator[None]:
    """Restore this thread's rounding after the block; with `default`, begin it with that of every
    new process.
    """
    state = save_float_state()
    if default:
        restore_float_state(_DEFAULT)
    try:
        yield
    finally:
        restore_float_state(state)
