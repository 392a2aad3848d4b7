"""The spread of f of problems that are played in their own units, kept in spreads.json: targets of
docs/field are in spreads, and a clone has no data of measured tables.

python -m analysis.field.spreads DATA   computes them from the folder of the data
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

from analysis.folders import PUBLISHED
from cbobench.params import build
from cbobench.problems import PROBLEMS
from cbobench.problems.data import DataFolder
from cbobench.problems.tables.measured import ROLES

FILE = PUBLISHED / "spreads.json"


def find_spread(name: str, folder: Path) -> float:
    """The standard deviation of f over the configurations of a measured table, in its own units."""
    task = build(PROBLEMS.get(name), {})
    task.prepare(DataFolder(folder))
    drawn = task.draw([np.random.default_rng(0)])
    return float(f"{abs(drawn.units[1]) * np.std(drawn.f[0]):.6g}")


if __name__ == "__main__":
    spreads = {name: find_spread(name, Path(sys.argv[1])) for name in sorted(ROLES)}
    FILE.write_text(json.dumps(spreads, indent=1) + "\n", encoding="utf-8")
