"""cbobench: large sweeps and honest comparisons for constrained Bayesian optimization and
constrained bandits.

import cbobench

done = cbobench.run("quickstart", out="runs/quickstart")
print(cbobench.compare(done))
print(cbobench.best(done))
frame = cbobench.summary("runs/quickstart")
figure = cbobench.plot("runs/quickstart", "regret")
cells = cbobench.load_cells("runs/quickstart")
rounds = cbobench.load_rounds("runs/quickstart", algorithm="ckb-ucb")
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cbobench.arithmetic import set_arithmetic
from cbobench.surface import HOMES, load_name

if TYPE_CHECKING:
    from cbobench.algorithms import ALGORITHMS as ALGORITHMS
    from cbobench.algorithms.asktell import AskTell as AskTell
    from cbobench.algorithms.asktell import Given as Given
    from cbobench.algorithms.asktell import Optimiser as Optimiser
    from cbobench.algorithms.base import Algorithm as Algorithm
    from cbobench.algorithms.base import OneRun as OneRun
    from cbobench.algorithms.base import Setting as Setting
    from cbobench.algorithms.optimistic import Optimistic as Optimistic
    from cbobench.algorithms.optimistic import OptimisticReward as OptimisticReward
    from cbobench.algorithms.safe import SafeSet as SafeSet
    from cbobench.algorithms.score import ScoreAlgorithm as ScoreAlgorithm
    from cbobench.errors import CbobenchError as CbobenchError
    from cbobench.errors import CellFailure as CellFailure
    from cbobench.errors import Misuse as Misuse
    from cbobench.gp.actions import Finite as Finite
    from cbobench.gp.beliefs import Belief as Belief
    from cbobench.gp.beliefs import FunctionBelief as FunctionBelief
    from cbobench.gp.beliefs import Parts as Parts
    from cbobench.gp.beliefs import Truncated as Truncated
    from cbobench.gp.box_actions import Box as Box
    from cbobench.params import param as param
    from cbobench.params import state as state
    from cbobench.problems import PROBLEMS as PROBLEMS
    from cbobench.problems.base import Arrivals as Arrivals
    from cbobench.problems.base import Feedback as Feedback
    from cbobench.problems.base import Instances as Instances
    from cbobench.problems.base import Problem as Problem
    from cbobench.problems.formulas.box import BoxProblem as BoxProblem
    from cbobench.problems.formulas.box import Reference as Reference
    from cbobench.problems.reference import pointwise as pointwise
    from cbobench.problems.simulators.simulator import Simulator as Simulator
    from cbobench.report.compare import compare as compare
    from cbobench.report.figures.plot import plot as plot
    from cbobench.report.load import load_cells as load_cells
    from cbobench.report.load import load_rounds as load_rounds
    from cbobench.report.tables.best import best as best
    from cbobench.report.tables.formats import Comparison as Comparison
    from cbobench.report.tables.summary import summary as summary
    from cbobench.results.export import export as export
    from cbobench.sweep.outcome import Outcome as Outcome
    from cbobench.sweep.run import run as run

__version__ = "0.1.0"
__all__ = ["__version__", *sorted(HOMES)]


set_arithmetic()  # before anything here imports NumPy


def __getattr__(name: str) -> Any:
    """Import on first use, so that the command line does not wait for pandas or Ray."""
    if name in HOMES:
        return load_name(name)
    raise AttributeError(f"module 'cbobench' has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return the public names, with those that every module has, and not what this one imports for
    itself.
    """
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
