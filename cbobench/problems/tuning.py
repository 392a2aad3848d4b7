"""Hyper-parameters of a small network under a deadline: a table of real trainings (Shi & Eryilmaz 2022, Section 3).

The table and what it was measured with stand in `measured/tuning.csv` and `measured/tuning.json`; the script
`benchmarks/measure_tuning.py` makes them anew. Playing needs no scikit-learn.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from cbobench.errors import Misuse
from cbobench.params import param
from cbobench.problems import PROBLEMS
from cbobench.problems.data import sha256
from cbobench.problems.files import read_table
from cbobench.problems.readings import Readings, ReadingsProblem, unit_grid

MEASURED = Path(__file__).parent / "measured" / "tuning.csv"
AXES = ("hidden", "rate", "passes")


def read_trainings(file: Path, clock: Literal["wall", "cpu"], limit: float) -> Readings:
    """Readings (-error, milliseconds - limit) of a table of trainings; axes are logarithmic.

    Raises:
        Misuse: unreadable, without the columns it needs, or not every configuration in every repetition once.
    """
    frame = read_table(file, "trainings")
    needed = [*AXES, "repetition", "error", f"{clock}_ms"]
    missing = [name for name in needed if name not in frame.columns]
    if missing:
        raise Misuse(f"{file.name} lacks the column {missing[0]!r}; make it with benchmarks/measure_tuning.py")
    values = [sorted(set(frame[name])) for name in (*AXES, "repetition")]
    frame = frame.sort_values([*AXES, "repetition"])
    shape = tuple(len(levels) for levels in values)
    grid = np.stack([part.ravel() for part in np.meshgrid(*values, indexing="ij")], axis=1)
    if not np.array_equal(frame[[*AXES, "repetition"]].to_numpy(dtype=np.float64), grid):
        raise Misuse(f"{file.name} has {len(frame)} rows, not one per configuration and repetition ({np.prod(shape)})")
    error, spent = (frame[name].to_numpy(dtype=np.float64).reshape(-1, shape[-1]).T for name in needed[-2:])
    points = unit_grid(*[np.log(np.asarray(levels, dtype=np.float64)).tolist() for levels in values[:-1]])
    names = tuple(f"{h:g} units, rate {r:.3g}, {p:g} passes" for h, r, p in grid[:: shape[-1], :3])
    return Readings(np.stack([-error, spent - limit], axis=1), points, names)


@PROBLEMS.register("tuning-under-deadline")
@dataclass(kw_only=True)
class TuningUnderDeadline(ReadingsProblem):
    """100 configurations of a one-layer network on scikit-learn's digits, each trained for real 12 times.

    Configurations are hidden units x learning rate x passes over the data, on logarithmic axes. f is minus the mean
    validation error, g the mean training time minus the limit, in milliseconds. A round reads one repetition (a split
    and initial weights, the same for all configurations), so the noise is that of training, not of a model.
    """

    source = "Shi & Eryilmaz (2022) 3, measured by us"
    about = "100 hyper-parameter settings of a small network, validation error and training time as measured"

    limit: float = param(50.0, "deadline, milliseconds per training", above=0.0)
    clock: Literal["wall", "cpu"] = param("wall", "training time by the clock on the wall, or of the processor")

    @classmethod
    def facts(cls) -> dict[str, str]:
        return {"actions": "n = 100, d = 3", "constraints": "1", "feasible": "50 of 100", "best": "-0.03518533"}

    def identity(self) -> dict[str, Any]:
        return {"trainings": sha256(MEASURED)}

    def prepare(self, data: Any) -> None:
        self.readings = read_trainings(MEASURED, self.clock, self.limit)
        self.check(self.limit, "ms")
