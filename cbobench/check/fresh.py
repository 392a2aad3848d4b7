"""The same play in a fresh interpreter, with other hashes of texts: what it came to, in one line."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from collections.abc import Mapping
from typing import Any

import numpy as np

from cbobench.gp.kernels import Array
from cbobench.registry import fresh_interpreter

BOOT = """\
import json
from cbobench.check.report import play_here
print(play_here(sys.argv[1], json.loads(sys.argv[2])))
"""
LONGEST = 600.0  # seconds


def digest(play: Mapping[str, Array]) -> str:
    """A hash of what a play came to."""
    found = hashlib.sha256()
    for name in sorted(play):
        found.update(name.encode() + np.ascontiguousarray(play[name]).tobytes())
    return found.hexdigest()


def play_there(name: str, settings: Mapping[str, Any]) -> str:
    """`report.play_here` in a fresh interpreter; what it says where it fails."""
    words = fresh_interpreter(BOOT, name, json.dumps(dict(settings)))
    done = subprocess.run(
        words, capture_output=True, text=True, timeout=LONGEST, check=False, env=os.environ | {"PYTHONHASHSEED": "7"}
    )
    lines = (done.stdout if done.returncode == 0 else done.stderr).strip().splitlines()
    return lines[-1] if lines else "nothing"
