"""Hyper-parameters of a small network under a deadline (Shi & Eryilmaz 2022, Section 3): a table of
real trainings.

The table and what it was measured with stand in `tuning.csv` and `tuning.json` beside this file;
`benchmarks/quality/measure_tuning.py` makes them anew. Playing needs no scikit-learn.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from cbobench.params import param
from cbobench.problems import PROBLEMS
from cbobench.problems.data import sha256
from cbobench.problems.tables.read import read_table
from cbobench.problems.tables.readings import Readings, ReadingsProblem, unit_grid

MEASURED = Path(__file__).with_name("tuning.csv")
AXES = ("hidden", "rate", "passes")


def read_trainings(clock: Literal["wall", "cpu"], limit: float) -> Readings:
    """Readings (-error, milliseconds - limit) of the table of trainings, which holds every
    configuration in every repetition once; axes are logarithmic.
    """
    frame = read_table(MEASURED, "trainings").sort_values([*AXES, "repetition"], kind="stable")
    error, spent = (
        frame[name].to_numpy(dtype=np.float64).reshape(-1, frame["repetition"].nunique()).T
        for name in ("error", f"{clock}_ms")
    )
    grid = frame.loc[frame["repetition"] == frame["repetition"].min(), [*AXES]].to_numpy()
    points = unit_grid(*[np.log(np.unique(levels)).tolist() for levels in grid.T])
    names = tuple(f"{h:g} units, rate {r:.3g}, {p:g} passes" for h, r, p in grid)
    return Readings(np.stack([-error, spent - limit], axis=1), points, names)


@PROBLEMS.register("tuning-under-deadline")
@dataclass(kw_only=True)
class TuningUnderDeadline(ReadingsProblem):
    """100 configurations of a one-layer network on scikit-learn's digits, each trained for real 12
    times.

    Configurations are hidden units x learning rate x passes over the data, on logarithmic axes. f
    is minus the mean validation error, g the mean training time minus the limit, in milliseconds. A
    round reads one repetition (a split and initial weights, the same for all configurations), so
    the noise is that of training, not of a model.
    """

    source = "Shi & Eryilmaz (2022) 3, measured by us"
    about = (
        "100 hyper-parameter settings of a small network, validation error and training time as "
        "measured"
    )
    stated_facts = ("n = 100, d = 3", "1", "50 of 100", "-0.03518533")

    limit: float = param(50.0, "deadline, milliseconds per training", above=0.0)
    clock: Literal["wall", "cpu"] = param(
        "wall", "training time by the clock on the wall, or of the processor"
    )

    def identity(self) -> dict[str, Any]:
        return {"trainings": sha256(MEASURED)}

    def prepare(self, data: Any) -> None:
        self.readings = read_trainings(self.clock, self.limit)
        self.check(self.limit, "ms")
