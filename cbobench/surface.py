"""The public names of cbobench, and the modules where they lie.

Here, and not in `cbobench/__init__.py`, because modules of cbobench use them, too: nothing of the
package imports the package itself.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

NAMES = {
    # To run and to read.
    "report.tables.best": "best",
    "report.compare": "compare",
    "report.tables.formats": "Comparison",
    "results.export": "export",
    "report.load": "load_cells load_rounds",
    "report.figures.plot": "plot",
    "sweep.outcome": "Outcome",
    "sweep.run": "run",
    "report.tables.summary": "summary",
    # To write a method.
    "algorithms": "ALGORITHMS",
    "algorithms.base": "Algorithm OneRun Setting",
    "algorithms.asktell": "AskTell Given Optimiser",
    "algorithms.score": "ScoreAlgorithm",
    "algorithms.optimistic": "Optimistic OptimisticReward",
    "algorithms.safe": "SafeSet",
    "gp.beliefs": "Belief FunctionBelief Parts Truncated",
    # To write a problem.
    "problems": "PROBLEMS",
    "problems.base": "Arrivals Feedback Instances Problem",
    "problems.formulas.box": "BoxProblem Reference",
    "problems.reference": "pointwise",
    "problems.simulators.simulator": "Simulator",
    "gp.actions": "Finite",
    "gp.box_actions": "Box",
    # To write either.
    "params": "param state",
    "errors": "CbobenchError CellFailure Misuse",
}
"""By module, the public names that lie there: users import them from cbobench, so that a module may
move.
"""
HOMES = {name: f"cbobench.{module}" for module, names in NAMES.items() for name in names.split()}


def load_name(name: str) -> Any:
    """Return what a public name stands for, importing its module; the name must be in `HOMES`."""
    return getattr(import_module(HOMES[name]), name)
