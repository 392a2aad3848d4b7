"""Where results come from: versions, commit, machine, threads, and a hash of the code that plays a cell."""

from __future__ import annotations

import hashlib
import inspect
import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

import cbobench
from cbobench.algorithms import ALGORITHMS
from cbobench.problems import PROBLEMS
from cbobench.sweep.threads import THREAD_VARIABLES

PACKAGES = ("cbobench", "numpy", "scipy", "pandas", "pyarrow", "ray")
ROOT = Path(cbobench.__file__).parent


def invocation(command: list[str]) -> dict[str, Any]:
    """What to remember of one `cbobench run`."""
    return {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": command,
        "python": platform.python_version(),
        "versions": {name: _version(name) for name in PACKAGES},
        "commit": _git("rev-parse", "HEAD"),
        "dirty": bool(_git("status", "--porcelain")),
        "cpu": _cpu(),
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
    """The answer of git in cbobench's own checkout, or None where it is installed without one."""
    if not (ROOT.parent / ".git").exists():
        return None
    try:
        done = subprocess.run(["git", *arguments], cwd=ROOT.parent, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown")


def _blas() -> dict[str, Any]:
    config: dict[str, Any] = np.show_config(mode="dicts") or {}  # type: ignore[assignment]
    blas = config.get("Build Dependencies", {}).get("blas", {})
    return {key: blas.get(key) for key in ("name", "version", "openblas configuration")}


@cache
def source_hash(problem: str, algorithm: str) -> str:
    """Hash of the code behind a cell: the numerical core, the round loop, and the modules of both classes."""
    files = sorted((ROOT / "gp").glob("*.py"))
    files += [ROOT / "rng.py", ROOT / "problems" / "reference.py"]
    files += [ROOT / "sweep" / name for name in ("play.py", "metrics.py", "rows.py")]
    for cls in (PROBLEMS.get(problem), ALGORITHMS.get(algorithm)):
        modules = {base.__module__ for base in cls.__mro__ if base.__module__ != "builtins"}
        files += [Path(inspect.getfile(sys.modules[name])) for name in sorted(modules) if name in sys.modules]
    sha = hashlib.sha256()
    for file in dict.fromkeys(files):
        sha.update(file.read_bytes())
    return sha.hexdigest()[:16]
