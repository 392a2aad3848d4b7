"""Opponents from Optuna (Akiba et al. 2019): `pip install 'cbobench[optuna]'`; with PyTorch,
`cbobench[optuna-gp]`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from cbobench.algorithms import ALGORITHMS
from cbobench.algorithms.asktell import Given
from cbobench.gp.kernels import Array
from cbobench.opponents.library import GivenCube, LibraryMethod, find_types, silence_library
from cbobench.params import param, required
from cbobench.problems.tables.inputs import InputSpace


class Study:
    """A study of Optuna's: a trial is asked for in every round."""

    @silence_library()
    def __init__(self, run: Given, method: OptunaMethod) -> None:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self.study = optuna.create_study(direction="maximize", sampler=method.sampler(run))
        self.cube = GivenCube(run)
        self.space = find_types(run.setting.actions)
        self.create_trial = optuna.trial.create_trial
        self.failed = optuna.trial.TrialState.FAIL
        kinds = optuna.distributions
        if self.space is None:
            self.sides: dict[str, Any] = {
                f"x{i + 1}": kinds.FloatDistribution(0.0, 1.0) for i in range(run.d)
            }
        else:
            self.sides = {
                axis.name: kinds.CategoricalDistribution(range(len(axis.choices)))
                if axis.kind == "choice"
                else {"float": kinds.FloatDistribution, "int": kinds.IntDistribution}[axis.kind](
                    axis.low, axis.high, log=axis.log
                )
                for axis in self.space.types
            }
        self.takes_known = method.ranks_by_violation
        self.trials: list[Any] = []

    @silence_library()
    def ask(self) -> Any:
        self.trials.append(self.study.ask(self.sides))
        params = self.trials[-1].params
        if self.space is None:
            return self.cube.action([*params.values()])
        return self.space.decode(params)

    @silence_library()
    def refuse(self, x: Any) -> None:
        """End the last trial, which no result comes for: as one that failed, or, where a sampler
        goes by violation alone, as one that violates a constraint of its own.
        """
        trial = self.trials.pop()
        if self.takes_known:
            trial.set_constraint("known", 1.0)
            self.study.tell(trial, 0.0)
        else:
            self.study.tell(trial, state=self.failed)

    @silence_library()
    def tell(self, x: Any, f: float, g: Array) -> None:
        # With several evaluations under way, results come in the order of the asks.
        trial = self.trials.pop(0)
        for name, value in constraints(g).items():
            trial.set_constraint(name, value)
        params = trial.params
        if isinstance(self.space, InputSpace) and self.space.measured:
            params = self.space.code(x)
        if params == trial.params and not math.isnan(f):
            self.study.tell(trial, f)
        else:
            # Optuna has no other way to say that another point was evaluated; samplers leave failed
            # trials out.
            self.study.tell(trial, state=self.failed)
            self._add(params, f, g)

    def _add(self, params: dict[str, Any], f: float, g: Array) -> None:
        if math.isnan(f):
            return
        trial = self.create_trial(
            value=f, params=params, distributions=self.sides, constraints=constraints(g)
        )
        self.study.add_trial(trial)

    @silence_library()
    def observe(self, x: Array, f: float, g: Array) -> None:
        """A trial that was not asked for; it counts as one of the random ones."""
        if self.space is None:
            params = dict(zip(self.sides, self.cube.unit(x).tolist(), strict=True))
        else:
            params = self.space.code(x)
        self._add(params, f, g)


def constraints(g: Array) -> dict[str, float]:
    """Constraint values (m,) by name."""
    return {f"g{j}": value for j, value in enumerate(g.tolist(), start=1)}


@dataclass(kw_only=True)
class OptunaMethod(LibraryMethod):
    """Base of Optuna's samplers for one objective with constraints.

    Coordinates are floats in [0, 1]; typed inputs keep their types, floats, whole numbers and
    categories. On a finite set the nearest action is played, and its observation is assigned to the
    proposed point; in a table with types, to the configuration that was measured.

    Class attributes:
        ranks_by_violation: whether of an infeasible trial its total violation alone counts.
    """

    late = True
    takes_untold = True
    optimiser_class = Study
    ranks_by_violation: ClassVar[bool] = False

    startup: int = param(10, "random points first (n_startup_trials)", at_least=1)

    @required
    def sampler(self, run: Given) -> Any:
        """Return Optuna's sampler of one run."""
        raise NotImplementedError


@ALGORITHMS.register("optuna-tpe")
@dataclass(kw_only=True)
class OptunaTPE(OptunaMethod):
    """Optuna's tree-structured Parzen estimator with constraints: its default sampler for one
    objective.

    It estimates two densities of points, of the better ones and of the others, draws some points
    from the first and plays the one with the largest ratio. Feasible points are better than others,
    which are ranked by total violation. With several evaluations under way, the library's constant
    liar counts them among the worse points.
    """

    source = "Optuna (Akiba et al. 2019), TPESampler"
    about = "tree-structured Parzen estimator of the Optuna library, with constraints"
    cost = "O(d t)"
    extra = "optuna"
    libraries = ("optuna",)
    ranks_by_violation = True

    candidates: int = param(24, "points drawn per round (n_ei_candidates)", at_least=1)

    def sampler(self, run: Given) -> Any:
        from optuna.samplers import TPESampler

        return TPESampler(
            n_startup_trials=self.startup,
            n_ei_candidates=self.candidates,
            seed=run.seed,
            constant_liar=run.parallel > 1,
        )


@ALGORITHMS.register("optuna-gp")
@dataclass(kw_only=True)
class OptunaGP(OptunaMethod):
    """Optuna's Gaussian processes with constraints: constrained EI in logarithms, climbed.

    f and every g_j have a Matérn-5/2 process each, fitted anew every round. Before a feasible point
    is known, the probability of feasibility is maximised. With several evaluations under way, EI is
    that of the batch.
    """

    source = "Optuna (Akiba et al. 2019), GPSampler; Gardner et al. (2014)"
    about = "constrained log-EI of the Optuna library, with models fitted every round"
    cost = "O(m t³) per fit, with PyTorch"
    extra = "optuna-gp"
    libraries = ("optuna", "torch")

    deterministic: bool = param(
        False, "f and every g_j have no noise (deterministic_objective)", quiet=True
    )

    def sampler(self, run: Given) -> Any:
        from optuna.samplers import GPSampler

        return GPSampler(
            n_startup_trials=self.startup,
            seed=run.seed,
            deterministic_objective=self.deterministic,
        )
