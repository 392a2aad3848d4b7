"""The spread of f of problems that are played in their own units, kept in spreads.json: targets and
floors are in spreads, and neither a clone nor a package has the data of measured tables, or COCO.
Those of mixed designs are kept, too, as a run's record has no unit of theirs.

python -m analysis.field.spreads DATA   computes them from the folder of the data, and with COCO
"""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from scipy.stats import qmc

from analysis.folders import PUBLISHED
from cbobench.params import build
from cbobench.problems import PROBLEMS
from cbobench.problems.data import DataFolder
from cbobench.problems.formulas.box import SAMPLE
from cbobench.problems.formulas.coco import open_function
from cbobench.problems.simulators.mixed import MixedDesign
from cbobench.problems.tables.measured import ROLES

FILE = PUBLISHED / "spreads.json"
COCO = {2: (range(1, 55), range(1, 7)), 10: ([1, 8, 15, 22, 29, 36, 37, 44, 51], range(1, 4))}
"""Functions and instances of COCO by dimension."""


def measure_table(name: str, folder: Path) -> float:
    """The standard deviation of f over the configurations of a measured table, in its own units."""
    task = build(PROBLEMS.get(name), {})
    task.prepare(DataFolder(folder))
    drawn = task.draw([np.random.default_rng(0)])
    return abs(drawn.units[1]) * np.std(drawn.f[0])


def measure_design(name: str) -> float:
    """The standard deviation of f over Sobol points of a mixed design's space, over which every
    whole number and every choice is as likely as any other, in its own units.
    """
    design = build(PROBLEMS.get(name), {})
    design.prepare(DataFolder())
    actions = design.actions
    points = actions.scale(qmc.Sobol(len(actions.low), scramble=False).random(SAMPLE))
    values, _ = design.observe(points, [np.random.default_rng(0)] * SAMPLE)
    return np.std(values[:, 0])


def measure_coco() -> Iterator[tuple[str, float]]:
    """The standard deviation of each function of COCO over Sobol points of its box, by title."""
    for dimension, (functions, instances) in COCO.items():
        points = 10 * qmc.Sobol(dimension, scramble=False).random(SAMPLE) - 5
        for function, instance in itertools.product(functions, instances):
            opened = open_function(function, dimension, instance)
            title = f"coco[dimension={dimension},function={function},instance={instance}]"
            yield title, np.std([opened(point) for point in points])


if __name__ == "__main__":
    measured = {name: measure_table(name, Path(sys.argv[1])) for name in sorted(ROLES)}
    designs = {
        name: measure_design(name)
        for name in PROBLEMS.names()
        if issubclass(PROBLEMS.get(name), MixedDesign)
    }
    exact = measured | designs | dict(measure_coco())
    spreads = {name: float(f"{spread:.6g}") for name, spread in exact.items()}
    FILE.write_text(json.dumps(spreads, indent=1) + "\n", encoding="utf-8")
