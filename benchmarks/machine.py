"""What measurements say of where they were made: the machine, the libraries, the commit."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy

ROOT = Path(__file__).resolve().parents[1]


def git(*words: str) -> str:
    """Return what a command of Git prints of this checkout."""
    call = ["git", "-C", str(ROOT), *words]
    return subprocess.run(call, check=True, capture_output=True, text=True).stdout.strip()


def name_processor() -> str:
    """Return the CPU's model as Linux knows it, else what Python knows."""
    file = Path("/proc/cpuinfo")
    if file.is_file():
        model = re.search(r"^model name\s*:(.+)", file.read_text(), re.MULTILINE)
        if model:
            return model[1].strip()
    return platform.processor() or platform.machine()


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
        "scipy": scipy.__version__,
        "commit": git("rev-parse", "--short", "HEAD"),
        "dirty": bool(git("status", "--porcelain")),
    }
