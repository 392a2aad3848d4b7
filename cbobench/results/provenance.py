"""Provenance: versions, commit, machine and threads of a call, and the CPU of a cell."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Collection
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from cbobench.arithmetic import arithmetic_kind, blas_kernels, read_cpu, widest_features
from cbobench.threads import THREAD_VARIABLES
from cbobench.words import list_names

PACKAGES = ("cbobench", "numpy", "scipy", "pandas", "pyarrow", "ray")
ROOT = Path(__file__).parents[1]
# of modules that are installed by another name
DISTRIBUTIONS = {"PyNomad": "PyNomadBBO", "smt_optim": "smt-optim"}


def invocation(command: list[str]) -> dict[str, Any]:
    """Return the provenance of one call of `cbobench run`; None is what nobody knows."""
    changes = _git("status", "--porcelain")
    is_dirty = None if changes is None else changes != ""
    return {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": command,
        "python": platform.python_version(),
        "versions": {name: installed_version(name) for name in PACKAGES},
        "commit": _git("rev-parse", "HEAD"),
        "dirty": is_dirty,
        "cpu": cpu_kind(),
        "arithmetic": arithmetic_kind(),
        "cpus": os.cpu_count(),
        "blas": _blas(),
        "threads": {name: os.environ.get(name) for name in THREAD_VARIABLES},
        "platform": platform.platform(),
    }


@cache
def installed_version(name: str) -> str | None:
    """Return the version of an installed package or module, or None."""
    try:
        return metadata.version(DISTRIBUTIONS.get(name, name))
    except (metadata.PackageNotFoundError, ValueError):  # or no name at all
        return None


def _git(*arguments: str) -> str | None:
    """Return the answer of git in cbobench's checkout; None without one, or where git refuses."""
    if not (ROOT.parent / ".git").exists():
        return None
    try:
        process = subprocess.run(
            ["git", *arguments], cwd=ROOT.parent, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return process.stdout.strip()


@cache
def cpu_kind() -> str:
    """Return the kind of this machine's CPU, as far as it affects rounding.

    It consists of the model, the kernel that NumPy's BLAS has chosen, and the widest instructions
    that NumPy uses.
    """
    model = read_cpu("model name") or platform.processor() or platform.machine()
    return ", ".join(filter(None, (model, *blas_kernels(), widest_features())))


def mixed_note(kinds: Collection[str]) -> str:
    """Return a warning about cells played in several kinds of arithmetic, or "" for a single
    kind.
    """
    if len(kinds) < 2:
        return ""
    listed = list_names(sorted(kinds), 4, "; ")
    return (
        f"played in {len(kinds)} kinds of arithmetic ({listed}): in each a seed may be another play"
    )


def _blas() -> dict[str, Any]:
    config: dict[str, Any] = np.show_config(mode="dicts") or {}  # type: ignore[assignment]
    blas = config.get("Build Dependencies", {}).get("blas", {})
    return {key: blas.get(key) for key in ("name", "version", "openblas configuration")}
