"""What measurements say of where they were made: the machine, the libraries, the commit."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import time
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]


def git(*words: str) -> str:
    """Return what a command of Git prints of this checkout."""
    call = ["git", "-C", str(ROOT), *words]
    return subprocess.run(call, check=True, capture_output=True, text=True).stdout.strip()


def name_processor() -> str:
    """Return the CPU's model as Linux knows it, else what Python knows."""
    file = Path("/proc/cpuinfo")
    facts = (
        [line.partition(":") for line in file.read_text().splitlines()] if file.is_file() else []
    )
    models = [value.strip() for name, _, value in facts if name.startswith("model name")]
    return models[0] if models else platform.processor() or platform.machine()


def write_record(file: Path, found: dict[str, Any]) -> None:
    """Write what was measured as JSON, a line per value."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def describe_machine() -> dict[str, Any]:
    """Return what figures depend on beside the code, and the commit of the code."""
    return {
        "at": time.strftime("%Y-%m-%d %H:%M"),
        "cpu": name_processor(),
        "cpus": os.cpu_count(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "commit": git("rev-parse", "--short", "HEAD"),
        "dirty": bool(git("status", "--porcelain")),
    }
