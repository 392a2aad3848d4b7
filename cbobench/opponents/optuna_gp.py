"""Another opponent from Optuna (Akiba et al. 2019), which needs PyTorch: `pip install 'cbobench[optuna-gp]'`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cbobench.algorithms import ALGORITHMS
from cbobench.algorithms.asktell import Given
from cbobench.opponents.optuna_tpe import OptunaMethod


@ALGORITHMS.register("optuna-gp")
@dataclass(kw_only=True)
class OptunaGP(OptunaMethod):
    """Optuna's Gaussian processes with constraints: constrained EI in logarithms, climbed.

    f and every g_j have a Matérn-5/2 process each, fitted anew every round. Before a feasible point is known, the
    probability of feasibility is maximised. With several evaluations under way, EI is that of the batch.
    """

    source = "Optuna (Akiba et al. 2019), GPSampler; Gardner et al. (2014)"
    about = "constrained log-EI of the Optuna library, with models fitted every round"
    cost = "O(m t³) per fit, with PyTorch"
    extra = "optuna-gp"
    libraries = ("optuna", "torch")

    def sampler(self, given: Given) -> Any:
        from optuna.samplers import GPSampler

        return GPSampler(n_startup_trials=self.startup, seed=given.seed)
