"""An opponent from SMT-optim (Cordelier et al. 2026): `pip install 'cbobench[smt-optim]'`."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

from cbobench.algorithms import ALGORITHMS
from cbobench.algorithms.asktell import Given
from cbobench.gp.kernels import Array
from cbobench.opponents.library import MARGIN_IS, LibraryMethod, ModelRun, silence_library
from cbobench.params import param


class Iterations(ModelRun):
    """The library's own iterations, whose evaluator evaluates nothing but keeps the point."""

    @silence_library()
    def __init__(self, run: Given, method: SMTOptim) -> None:
        super().__init__(run, method)
        from smt import design_space
        from smt_optim import core
        from smt_optim.acquisition_strategies import MFSEGO
        from smt_optim.surrogate_models.smt import SmtAutoModel, SmtGPX

        def specify(i: int) -> Any:
            """Return what the library is told of input i, a choice by its number."""
            low, high = run.low[i], run.high[i]
            if not self.cube.counted[i]:
                return design_space.FloatVariable(0.0, 1.0)
            if self.cube.mixed is not None and self.cube.mixed.types[i].choices:
                return design_space.CategoricalVariable([str(n) for n in range(int(high) + 1)])
            return design_space.IntegerVariable(int(low), int(high))

        # The models that its `minimize` takes.
        models = SmtAutoModel if self.cube.counted.any() else SmtGPX
        problem = core.Problem(
            [core.ObjectiveConfig([None], surrogate=models)],
            design_space.DesignSpace([specify(i) for i in range(run.d)]),
            [core.ConstraintConfig([None], upper=0.0, surrogate=models) for _ in range(run.m)],
        )
        search = {} if method.tolerance is None else {"sp_tol": method.tolerance}
        settings = core.DriverConfig(seed=run.seed)
        self.core = core
        self.driver = core.Driver(problem, settings, MFSEGO, strategy_kwargs=search)
        self.driver.evaluator = SimpleNamespace(sample_func=self._keep)

    def _keep(self, points: list[Array], state: Any) -> None:
        (self.point,) = points[0]

    @silence_library()
    def suggest(self, x: Array, y: Array) -> Array:
        # Its models cannot be fitted to a constant. A known point stands for the next of the set.
        if (np.ptp(y, axis=0) == 0).any():
            return x[-1]
        state = self.driver.state
        state.dataset = self.core.OptimizationDataset()
        # Its name for how much a point violates constraints.
        violations = np.sqrt((np.maximum(y[:, 1:], 0.0) ** 2).sum(axis=1))
        for point, values, violation in zip(x, y, violations, strict=True):
            sample = self.core.Sample(
                x=point,
                fidelity=0,
                obj=values[:1],
                cstr=values[1:],
                eval_time=np.zeros(len(values)),
                metadata={"rscv": violation},
            )
            state.dataset.add(sample)
        self.driver.iteration(state)
        return self.point


@ALGORITHMS.register("smt-optim")
@dataclass(kw_only=True)
class SMTOptim(LibraryMethod):
    """SEGO of SMT-optim: expected improvement in logarithms, climbed by SLSQP from 20 points where
    the models' means of all g_j are at most 0.

    f and every g_j have a Gaussian process each, without noise, fitted anew every round: egobox's
    where all inputs are floats, SMT's Kriging otherwise. A run begins with a scrambled Sobol set,
    which alone tells seeds apart: the library draws its starts by the number of the iteration. With
    its own tolerance it may play a point at which the mean violates constraints by about 1e-4 of
    their spread. A point that is known already is not played again, but the next one of the Sobol
    sequence; so is that where f or a constraint is the same at all points, which the models cannot
    be fitted to. Whole numbers and choices keep their types; whole numbers that are scaled by
    logarithms are rounded. On a finite set the nearest action is played.
    """

    source = "SMT-optim (Cordelier et al. 2026); Sasena (2002)"
    about = (
        "expected improvement where models of the constraints say feasible (the SMT-optim library)"
    )
    cost = "O(m t³) per fit"
    takes_untold = True
    extra = "smt-optim"
    optimiser_class = Iterations
    libraries = ("smt_optim", "smt", "egobox")

    initial: int = param(10, "Sobol points first", at_least=2)
    tolerance: float | None = param(
        None, "of the search by SLSQP (sp_tol); null: the library's, 1.5e-8", above=0.0
    )
    margin: float = param(0.0, MARGIN_IS, at_least=0.0)
