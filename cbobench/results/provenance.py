"""Where results come from: versions, commit, machine and threads of an invocation."""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

import cbobench
from cbobench.threads import THREAD_VARIABLES

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
