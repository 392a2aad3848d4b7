"""cbobench: large sweeps and honest comparisons for constrained Bayesian optimization and constrained bandits.

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

from importlib import import_module
from typing import TYPE_CHECKING, Any

from cbobench.arithmetic import set_arithmetic

if TYPE_CHECKING:
    from cbobench.report.best import best as best
    from cbobench.report.compare import compare as compare
    from cbobench.report.load import load_cells as load_cells
    from cbobench.report.load import load_rounds as load_rounds
    from cbobench.report.plot import plot as plot
    from cbobench.report.summary import summary as summary
    from cbobench.results.export import export as export
    from cbobench.sweep.run import run as run

__version__ = "0.1.0"
HOMES = {
    "best": "cbobench.report.best",
    "compare": "cbobench.report.compare",
    "export": "cbobench.results.export",
    "load_cells": "cbobench.report.load",
    "load_rounds": "cbobench.report.load",
    "plot": "cbobench.report.plot",
    "run": "cbobench.sweep.run",
    "summary": "cbobench.report.summary",
}
__all__ = ["__version__", "best", "compare", "export", "load_cells", "load_rounds", "plot", "run", "summary"]


set_arithmetic()  # before anything here imports NumPy


def __getattr__(name: str) -> Any:
    """Import on first use, so that the command line does not wait for pandas or Ray."""
    if name in HOMES:
        return getattr(import_module(HOMES[name]), name)
    raise AttributeError(f"module 'cbobench' has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return the public names, with those that every module has, and not what this one imports for itself."""
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
