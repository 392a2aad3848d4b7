"""cbobench: large sweeps and honest comparisons for constrained Bayesian optimization and constrained bandits.

import cbobench

cbobench.run("quickstart", out="runs/quickstart")
cells = cbobench.load_cells("runs/quickstart")
rounds = cbobench.load_rounds("runs/quickstart", algorithm="ckb-ucb")
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cbobench.report.load import load_cells as load_cells
    from cbobench.report.load import load_rounds as load_rounds
    from cbobench.sweep.run import run as run

__version__ = "0.1.0"
__all__ = ["__version__", "load_cells", "load_rounds", "run"]


def __getattr__(name: str) -> Any:
    """Import on first use: the command line must not wait for pandas or Ray."""
    if name in ("load_cells", "load_rounds"):
        from cbobench.report import load

        return getattr(load, name)
    if name == "run":
        from cbobench.sweep.run import run

        return run
    raise AttributeError(f"module 'cbobench' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
