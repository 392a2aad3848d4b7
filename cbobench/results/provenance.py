"""Provenance: versions, commit, machine and threads of a call, and the CPU of a cell."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Collection
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

import cbobench
from cbobench.threads import THREAD_VARIABLES

PACKAGES = ("cbobench", "numpy", "scipy", "pandas", "pyarrow", "ray")
ROOT = Path(cbobench.__file__).parent
SHOWN = 4  # kinds of CPU named in a line


def invocation(command: list[str]) -> dict[str, Any]:
    """Return the provenance of one call of `cbobench run`."""
    return {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": command,
        "python": platform.python_version(),
        "versions": {name: _version(name) for name in PACKAGES},
        "commit": _git("rev-parse", "HEAD"),
        "dirty": bool(_git("status", "--porcelain")),
        "cpu": cpu_kind(),
        "cpus": os.cpu_count(),
        "blas": _blas(),
        "threads": {name: os.environ.get(name) for name in THREAD_VARIABLES},
        "platform": platform.platform(),
    }


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _git(*arguments: str) -> str | None:
    """Return the answer of git in cbobench's own checkout, or None if it is installed without one."""
    if not (ROOT.parent / ".git").exists():
        return None
    try:
        done = subprocess.run(["git", *arguments], cwd=ROOT.parent, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()


@cache
def cpu_kind() -> str:
    """Return the kind of this machine's CPU, as far as it affects rounding.

    It consists of the model, the kernel that NumPy's BLAS has chosen, and the widest instructions that NumPy uses.
    """
    return ", ".join(filter(None, (_model(), *_kernels(), _simd())))


def rounding_note(cpus: Collection[str]) -> str:
    """Return a warning about cells played on several kinds of CPU (see `cpu_kind`), or "" for one kind."""
    if len(cpus) < 2:
        return ""
    kinds = sorted(cpus)
    more = [f"{len(kinds) - SHOWN} more"] if len(kinds) > SHOWN else []
    return f"played on {len(kinds)} kinds of CPU ({'; '.join([*kinds[:SHOWN], *more])}): the last bits may differ"


def _model() -> str:
    with suppress(OSError), Path("/proc/cpuinfo").open() as lines:  # reads up to the first CPU: there may be hundreds
        for line in lines:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def _kernels() -> list[str]:
    """Return the kernels of NumPy's own BLAS or, if it uses the system's, of all that are loaded."""
    from threadpoolctl import threadpool_info

    found = [library for library in threadpool_info() if library["user_api"] == "blas"]
    own = [library for library in found if {*Path(library["filepath"]).parts} & {"numpy", "numpy.libs"}]
    names = {f"{library['internal_api']} {library.get('architecture') or ''}".strip() for library in own or found}
    return sorted(names)


def _simd() -> str:
    """Return the last of NumPy's targets that this CPU has; `numpy.show_runtime` prints it but does not return it."""
    core = sys.modules.get("numpy._core._multiarray_umath") or sys.modules.get("numpy.core._multiarray_umath")
    targets = (*getattr(core, "__cpu_baseline__", ()), *getattr(core, "__cpu_dispatch__", ()))
    features = getattr(core, "__cpu_features__", {})
    return next((name for name in reversed(targets) if features.get(name)), "")


def _blas() -> dict[str, Any]:
    config: dict[str, Any] = np.show_config(mode="dicts") or {}  # type: ignore[assignment]
    blas = config.get("Build Dependencies", {}).get("blas", {})
    return {key: blas.get(key) for key in ("name", "version", "openblas configuration")}
