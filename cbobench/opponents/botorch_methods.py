"""Opponents from BoTorch (Balandat et al. 2020), in double precision on one thread: `pip install
'cbobench[botorch]'`.

What they share. Inputs are scaled to the unit cube; f and every g_j have a Gaussian process each,
with standardised outputs, fitted anew every round (`fit_gpytorch_mll`), as in BoTorch's tutorials;
where that fails, which a tutorial would stop at, the parameters stay as they begin, and the failure
is counted (`failed_fits`). `models` says which: `turbo` is the SCBO tutorial's (Matérn-5/2, a
lengthscale in [0.005, 4] for each input, noise variance in [1e-8, 1e-3], by maximum likelihood),
`default` is `SingleTaskGP` as it comes (squared exponential with a prior on each lengthscale that
grows with √d, noise variance above 1e-4, by maximum a posteriori). A run begins with a scrambled
Sobol set. Points are asked for one at a time; those under way are `X_pending`, so that a batch is
built greedily, as `optimize_acqf` does with `sequential=True`.

Of inputs of several kinds, the kernel of the numbers is multiplied by BoTorch's for choices, whose
values are equally far apart (`CategoricalKernel`): the library's own model of both, which adds two
more terms, takes many times as long to fit. Acquisition functions are climbed by
`optimize_acqf_mixed_alternating`.

Same seed, same bits on one machine: PyTorch's global generator is seeded in every round from the
run's stream, and put back, and only its deterministic algorithms are allowed. Other versions of
PyTorch may play otherwise.
"""

from __future__ import annotations

import copy
import math
import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Literal, cast

import numpy as np

from cbobench.algorithms import ALGORITHMS
from cbobench.algorithms.asktell import Given
from cbobench.algorithms.references import SobolSequence
from cbobench.errors import Misuse
from cbobench.gp.box_actions import ActionSet, Box, sobol
from cbobench.gp.kernels import Actions, Array
from cbobench.gp.mixed_actions import Mixed
from cbobench.gp.posteriors.interface import VARIANCE_FLOOR, Moments
from cbobench.gp.recommend import RunMoments, recommend_in_run
from cbobench.opponents.library import CubeRun, LibraryMethod, fill_untold, silence_library
from cbobench.params import param
from cbobench.problems.base import Problem
from cbobench.problems.known import Known

Models = Literal["turbo", "default"]
MODELS_ARE = "turbo: as in the SCBO tutorial; default: SingleTaskGP as it comes"
SPARE = 16  # points per raw sample, where known constraints forbid some
TINY = 1e-8  # noise variance of play without noise, in units of a function's variance


@contextmanager
def seed_torch(seed: int) -> Iterator[Any]:
    """PyTorch on one thread with its generator seeded, and Python's, by which BoTorch samples
    choices; afterwards all is as it was.
    """
    import torch

    threads = torch.get_num_threads()
    deterministic = torch.are_deterministic_algorithms_enabled()
    state = random.getstate()
    with silence_library(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        random.seed(seed)
        torch.set_num_threads(1)
        torch.use_deterministic_algorithms(True)
        try:
            yield torch
        finally:
            random.setstate(state)
            torch.use_deterministic_algorithms(deterministic)
            torch.set_num_threads(threads)


class Opponent(CubeRun):
    """A run's data, its models, and the points it begins with; subclasses say which point is
    `next`.
    """

    def __init__(self, run: Given, method: Any) -> None:
        with silence_library():
            import botorch.fit  # noqa: F401 - loaded now, not within a round

            with seed_torch(0):  # the first time, PyTorch loads what knows deterministic algorithms
                pass
        super().__init__(run, method)
        self.m = run.m
        self.fitted: list[Any] = []  # the last round's models, of all functions or of one each
        self.every: list[tuple[Array, Array]] = []  # all points and values, whatever is forgotten
        self.failed_fits = 0
        self.under_way: list[Array] = []
        self.begin()

    def begin(self) -> None:
        """Begin, or begin anew, without data."""
        self.sobol = SobolSequence(self.cube.d, self.generator)
        self.x: list[Array] = []
        self.y: list[Array] = []

    def ask(self) -> Array:
        point = self._propose()
        self.under_way.append(self.cube.unit(point))
        return point

    def refuse(self, x: Array) -> None:
        """Forget the last point, for which no result comes."""
        self.under_way.pop()

    def _propose(self) -> Array:
        if len(self.x) < self.method.initial:
            return self.cube.action(self.sobol.next())
        with seed_torch(int(self.generator.integers(2**31))) as torch:
            x = torch.tensor(np.array(self.x), dtype=torch.double)
            y = torch.tensor(fill_untold(self.y), dtype=torch.double)
            self.fitted = []
            return self.cube.action(self.next(torch, x, y).reshape(-1).numpy())

    def tell(self, x: Array, f: float, g: Array) -> None:
        del self.under_way[:1]  # results come in the order of the asks
        self.observe(x, f, g)

    def observe(self, x: Array, f: float, g: Array) -> None:
        self.x.append(self.cube.unit(x))
        self.y.append(np.array([f, *g]))
        self.every.append((self.x[-1], self.y[-1]))

    def recommend(self) -> Any:
        """Return what `gp.recommend` takes by the last round's models, given all that was observed;
        None before there are models.
        """
        if not self.fitted:
            return None
        points = np.array([x for x, _ in self.every])
        values = fill_untold([y for _, y in self.every])
        actions = self.cube.run.setting.actions
        choices = self.cube.choices
        with seed_torch(0) as torch:
            values = self.transform(torch, torch.tensor(values))
            model = Conditioned(torch, self.fitted, torch.tensor(points), values, actions, choices)
            best = recommend_in_run(model, points)[0]
        if choices is None:
            return self.cube.action(best)
        return int(best)

    def transform(self, torch: Any, y: Any) -> Any:
        """f and every g_j as the method models them, (n, 1 + m)."""
        return y

    def next(self, torch: Any, x: Any, y: Any) -> Any:
        """The next point (1, d) of the cube.

        Args:
            x, y: points (n, d) of the cube and (f, g_1, ..., g_m) observed there (n, 1 + m), as
                tensors.
        """
        raise NotImplementedError

    def fit(self, x: Any, y: Any) -> Any:
        """The model of f, or of f and every g_j, observed at points (n, d) of the cube: y (n, 1 +
        m).
        """
        model, fitted = fit_model(
            x,
            y,
            self.method.models,
            getattr(self.method, "noise", "fitted") == "tiny",
            self._choices,
        )
        self.failed_fits += not fitted
        self.fitted.append(model)
        return model

    def monte_carlo(self, torch: Any, objective: Any) -> dict[str, Any]:
        """What Monte-Carlo acquisition functions take: the objective of samples, points under way,
        base samples.
        """
        from botorch.acquisition.objective import GenericMCObjective
        from botorch.sampling.normal import SobolQMCNormalSampler

        if self.under_way:
            pending = torch.tensor(np.array(self.under_way), dtype=torch.double)
        else:
            pending = None
        sampler = SobolQMCNormalSampler(torch.Size([self.method.samples]), seed=0)
        return {
            "objective": GenericMCObjective(objective),
            "X_pending": pending,
            "sampler": sampler,
        }

    def maximise_acquisition(self, torch: Any, acquisition: Any) -> Any:
        """Where an acquisition function is largest: climbed from restarts on a box, looked up on a
        finite set.
        """
        from botorch.optim import optimize_acqf, optimize_acqf_discrete

        if self.cube.choices is not None:
            return optimize_acqf_discrete(
                acquisition, q=1, choices=torch.tensor(self.cube.choices)
            )[0]
        bounds = torch.tensor([[0.0] * self.cube.d, [1.0] * self.cube.d], dtype=torch.double)
        starts = {"num_restarts": self.method.restarts, "raw_samples": self.method.raw}
        if self.cube.mixed is not None:
            return self._alternate(torch, acquisition, self.cube.mixed, starts)
        limited = self.cube.limited
        if limited is None:
            return optimize_acqf(acquisition, bounds, q=1, options={"maxiter": 200}, **starts)[0]
        # Known constraints are the library's, which asks for starts that keep them.
        points = torch.tensor(limited.keep(sobol(self.cube.d, SPARE * self.method.raw)))
        with torch.no_grad():
            order = acquisition(points[:, None]).argsort(descending=True, stable=True)
        first = points[order[: self.method.restarts]]
        point = optimize_acqf(
            acquisition,
            bounds,
            q=1,
            options={"maxiter": 200, "batch_limit": 1},
            num_restarts=len(first),
            batch_initial_conditions=first[:, None],
            nonlinear_inequality_constraints=self._known_constraints(torch, limited),
        )[0]
        return torch.tensor(limited.pull_inside(point.numpy(), first[:1].numpy()))

    @cached_property
    def _choices(self) -> list[int]:
        """Which inputs are choices."""
        if self.cube.mixed is None:
            return []
        return [i for i, t in enumerate(self.cube.mixed.types) if t.choices]

    def _alternate(self, torch: Any, acquisition: Any, mixed: Mixed, starts: dict[str, int]) -> Any:
        """Where an acquisition function of floats, whole numbers and choices is largest, (1, d)."""
        from botorch.optim.optimize_mixed import (
            MAX_DISCRETE_VALUES,
            optimize_acqf_mixed_alternating,
        )

        # A whole number of more values is a float to the library, too.
        values: dict[int, list[float]] = {}
        for i in np.flatnonzero(mixed.held).tolist():
            count = int(mixed.high[i] - mixed.low[i]) + 1
            if i in self._choices or count <= MAX_DISCRETE_VALUES:
                points = np.tile(mixed.low, (count, 1))
                points[:, i] += np.arange(count)
                values[i] = mixed.unit(points)[:, i].tolist()
        return optimize_acqf_mixed_alternating(
            acquisition,
            torch.tensor(mixed.unit(np.array([mixed.low, mixed.high]))),
            discrete_dims={i: values[i] for i in values if i not in self._choices},
            cat_dims={i: values[i] for i in self._choices},
            **starts,
        )[0]

    def _known_constraints(self, torch: Any, box: Box) -> list[Any]:
        """Known constraints of a box as the library takes them, at least 0 where a point of the
        cube is allowed.
        """
        known = cast("Known", box.known)
        low = torch.tensor(box.low)
        side = torch.tensor(box.high) - low

        def allows(x: Any, j: int) -> Any:
            return -known.values(low + x * side)[j]

        return [(partial(allows, j=j), True) for j in range(len(known.requirements))]


class Conditioned(RunMoments):
    """Models with the hyperparameters that they have, given more data, as `gp.recommend` asks.

    Args:
        models: of f and every g_j in turn, all in one or one each.
        x, y: points (n, d) of the cube and what is modelled there (n, 1 + m), as tensors.
        choices: the points of a finite set in the cube; None on a box.
    """

    def __init__(
        self, torch: Any, models: list[Any], x: Any, y: Any, actions: ActionSet, choices: Any
    ) -> None:
        self.torch = torch
        self.actions = actions
        self.choices = choices
        self.models = []
        for before in models:
            model = copy.deepcopy(before)
            p = before.num_outputs
            targets = model.outcome_transform(y[:, :p])[0].T
            y = y[:, p:]
            inputs = x if p == 1 else x.expand(p, *x.shape)
            model.set_train_data(inputs, targets[0] if p == 1 else targets, strict=False)
            noise = model.likelihood.noise
            if noise.shape[-1] > 1:  # given for every observation, the same for all
                noise = noise[..., :1].expand(*noise.shape[:-1], len(x))
                model.likelihood.noise_covar.noise = noise
            self.models.append(model)

    def at(self, inputs: Actions) -> Moments:
        # A choice is compared by its one point of the cube.
        if isinstance(self.actions, Box):
            inputs = self.actions.snap(inputs)
        points = self.torch.tensor(inputs if self.choices is None else self.choices[inputs])
        with self.torch.no_grad():
            posteriors = [model.posterior(points) for model in self.models]
            mean = self.torch.cat([posterior.mean for posterior in posteriors], dim=1).T
            variance = self.torch.cat([posterior.variance for posterior in posteriors], dim=1).T
        return mean.numpy(), np.sqrt(np.maximum(variance.numpy(), VARIANCE_FLOOR))


def fit_model(
    x: Any, y: Any, models: Models, exact: bool = False, choices: Sequence[int] = ()
) -> tuple[Any, bool]:
    """The model of p functions, each with its own parameters, observed at points (n, d) of the
    cube: y (n, p); and whether its fit succeeded.

    Args:
        exact: whether the noise variance is not fitted, but `TINY` of each function's own.
        choices: which coordinates are choices, any two of which are equally far apart.
    """
    from botorch.exceptions import ModelFittingError
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import SingleTaskGP
    from botorch.models.transforms.outcome import Standardize
    from gpytorch.constraints import Interval
    from gpytorch.kernels import ScaleKernel
    from gpytorch.likelihoods import GaussianLikelihood
    from gpytorch.mlls import ExactMarginalLogLikelihood

    # Without noise its variance is given, so that no likelihood is fitted, whatever the models.
    options: dict[str, Any] = {}
    p = y.shape[1]
    if exact:
        options["train_Yvar"] = TINY * y.var(dim=0).expand(y.shape).contiguous()
    batch = {"batch_shape": y.shape[1:]} if p > 1 else {}
    if choices:
        options["covar_module"] = _mixed_kernel(x.shape[1], models, choices, batch)
    elif models == "turbo":
        options["covar_module"] = _turbo_kernel(ard_num_dims=x.shape[1], **batch)
    if models == "turbo":
        options["covar_module"] = ScaleKernel(options["covar_module"], **batch)
        if not exact:
            options["likelihood"] = GaussianLikelihood(
                noise_constraint=Interval(1e-8, 1e-3), **batch
            )
    model = SingleTaskGP(x, y, outcome_transform=Standardize(m=p), **options)
    # A fit that fails may leave parameters anywhere, so they go back to where they began.
    before = {name: value.clone() for name, value in model.state_dict().items()}
    try:
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    except ModelFittingError:
        model.load_state_dict(before)
        return model.eval(), False
    return model, True


def _turbo_kernel(**shape: Any) -> Any:
    from gpytorch.constraints import Interval
    from gpytorch.kernels import MaternKernel

    return MaternKernel(nu=2.5, lengthscale_constraint=Interval(0.005, 4.0), **shape)


def _mixed_kernel(d: int, models: Models, choices: Sequence[int], batch: dict[str, Any]) -> Any:
    """The kernel of the numbers, times that of the choices."""
    from botorch.models.kernels.categorical import CategoricalKernel
    from botorch.models.utils.gpytorch_modules import get_covar_module_with_dim_scaled_prior
    from gpytorch.constraints import GreaterThan

    numbers = [i for i in range(d) if i not in choices]
    kernel = CategoricalKernel(
        ard_num_dims=len(choices),
        active_dims=[*choices],
        lengthscale_constraint=GreaterThan(1e-6),
        **batch,
    )
    if not numbers:
        return kernel
    build = _turbo_kernel if models == "turbo" else get_covar_module_with_dim_scaled_prior
    return build(ard_num_dims=len(numbers), active_dims=numbers, **batch) * kernel


@dataclass(kw_only=True)
class BotorchMethod(LibraryMethod):
    """Base of BoTorch's methods."""

    late = True
    takes_untold = True
    extra = "botorch"
    libraries = ("torch", "botorch")
    cost = "O(m t³) per fit, with PyTorch"

    initial: int = param(10, "points of a scrambled Sobol set before there are models", at_least=2)
    models: Models = param("turbo", MODELS_ARE)


@dataclass(kw_only=True)
class Climbed(BotorchMethod):
    """Base of those that climb an acquisition function."""

    restarts: int = param(
        10, "points from which the acquisition function is climbed (num_restarts)", at_least=1
    )
    raw: int = param(512, "points at which it is looked at before (raw_samples)", at_least=2)
    samples: int = param(128, "Monte-Carlo samples (quasi-random)", at_least=1)


@dataclass(kw_only=True)
class Improving(Climbed):
    """Base of those that climb an expected improvement."""

    models: Models = param("default", MODELS_ARE)
    bilog: bool = param(True, "model sign(g) ln(1 + |g|) in place of g (Eriksson & Poloczek 2021)")

    def check(self, problem: Problem) -> None:
        super().check(problem)
        actions = problem.actions
        if isinstance(actions, Mixed) and actions.known is not None:
            raise Misuse(
                "BoTorch climbs whole numbers and choices without known constraints; allowed: "
                "configurations: 2048 of the problem, a sample of them; or botorch-scbo or cei"
            )


def first_output(samples: Any, X: Any = None) -> Any:
    """f of posterior samples (..., 1 + m) of f and every g_j."""
    return samples[..., 0]


class ExpectedImprovement(Opponent):
    """Improves on the best observed value among points observed to be feasible, or looks for a
    feasible point.
    """

    def next(self, torch: Any, x: Any, y: Any) -> Any:
        from botorch.acquisition import analytic, logei

        model = self.fit(x, self.transform(torch, y))
        feasible = (y[:, 1:] <= 0).all(dim=1)
        best = y[feasible, 0].max() if feasible.any() else None
        if self.under_way:
            common = {"constraints": self.constraints()} | self.monte_carlo(torch, first_output)
            if best is None:
                acquisition: Any = logei.qLogProbabilityOfFeasibility(model, **common)
            else:
                acquisition = logei.qLogExpectedImprovement(model, best, **common)
            return self.maximise_acquisition(torch, acquisition)
        limits = dict.fromkeys(range(1, 1 + self.m), (None, 0.0))
        if not limits:
            acquisition = analytic.LogExpectedImprovement(model, best)
        elif best is None:
            acquisition = analytic.LogProbabilityOfFeasibility(model, limits)
        else:
            acquisition = analytic.LogConstrainedExpectedImprovement(model, best, 0, limits)
        return self.maximise_acquisition(torch, acquisition)

    def transform(self, torch: Any, y: Any) -> Any:
        g = y[:, 1:]
        if self.method.bilog:
            return torch.cat([y[:, :1], g.sign() * g.abs().log1p()], dim=1)
        return y

    def constraints(self) -> list[Any] | None:
        return [lambda samples, j=j: samples[..., j] for j in range(1, 1 + self.m)] or None


@ALGORITHMS.register("botorch-cei")
@dataclass(kw_only=True)
class BotorchCEI(Improving):
    """BoTorch's constrained EI, in logarithms (Ament et al. 2023): E[f(x) - f_best]⁺ Π_j P(g_j(x)
    <= 0), climbed.

    f_best is the best observed value among points observed to be feasible; before there is one, the
    probability of feasibility is maximised. While points are under way, both are Monte-Carlo
    estimates that count them (`qLogExpectedImprovement`). On a finite set the acquisition function
    is evaluated at every action. For noisy play see `botorch-nei`.

    Constraints are modelled through SCBO's bilog transform, as `cei` here does: it finds more
    digits where they have heavy tails, as those of tension-spring. `bilog: false` is the library as
    it comes; `noise: tiny` is for play without noise.
    """

    source = "BoTorch (Balandat et al. 2020; Ament et al. 2023)"
    about = "constrained log-EI of the BoTorch library, with models fitted every round"
    optimiser_class = ExpectedImprovement

    noise: Literal["fitted", "tiny"] = param(
        "fitted", "noise variance: fitted, or 1e-8 of each function's variance"
    )


class NoisyExpectedImprovement(ExpectedImprovement):
    def next(self, torch: Any, x: Any, y: Any) -> Any:
        from botorch.acquisition.logei import qLogNoisyExpectedImprovement

        model = self.fit(x, self.transform(torch, y))
        common = {"constraints": self.constraints()} | self.monte_carlo(torch, first_output)
        return self.maximise_acquisition(torch, qLogNoisyExpectedImprovement(model, x, **common))


@ALGORITHMS.register("botorch-nei")
@dataclass(kw_only=True)
class BotorchNEI(Improving):
    """BoTorch's noisy constrained EI, in logarithms (Letham et al. 2019; Ament et al. 2023),
    climbed.

    The improvement is on the best feasible value at the observed points in each posterior sample,
    not on an observed value (`qLogNoisyExpectedImprovement`, baseline: all observed points). It is
    the library's method for noisy play and for batches. On a finite set the acquisition function is
    evaluated at every action.
    """

    source = "BoTorch (Balandat et al. 2020; Letham et al. 2019; Ament et al. 2023)"
    about = "noisy constrained log-EI of the BoTorch library, with models fitted every round"
    optimiser_class = NoisyExpectedImprovement


class TrustRegion(Opponent):
    """The state of the tutorial's trust region; its centre is the best observed point, feasible
    ones first.
    """

    def begin(self) -> None:
        super().begin()
        self.side = 0.8
        self.succeeded = 0
        self.failed = 0
        self.best = -math.inf
        self.violation = math.inf

    def tell(self, x: Array, f: float, g: Array) -> None:
        first = len(self.x) < self.method.initial
        super().tell(x, f, g)
        if not first:  # nor does the tutorial count what the initial points have found
            self._update_region(f, float(np.maximum(g, 0.0).sum()))

    def _update_region(self, f: float, violation: float) -> None:
        if violation > 0:
            success = violation < self.violation
        else:
            success = self.violation > 0 or f > self.best + 1e-3 * abs(self.best)
        if success:
            self.best = f
            self.violation = violation
        self.succeeded, self.failed = (self.succeeded + 1, 0) if success else (0, self.failed + 1)
        if self.succeeded == self.method.successes:
            self.side = min(2 * self.side, 1.6)
            self.succeeded = 0
        elif self.failed == max(4, self.cube.d):
            self.side = self.side / 2
            self.failed = 0
        if self.side < 0.5**7:
            self.begin()

    def next(self, torch: Any, x: Any, y: Any) -> Any:
        from botorch.generation.sampling import (
            ConstrainedMaxPosteriorSampling,
            MaxPosteriorSampling,
        )
        from botorch.models import ModelListGP
        from gpytorch.settings import max_cholesky_size

        with max_cholesky_size(math.inf):
            models = [self.fit(x, y[:, j : j + 1]) for j in range(1 + self.m)]
            violation = y[:, 1:].clamp_min(0.0).sum(dim=1)
            feasible = violation <= 0
            key = torch.where(feasible, y[:, 0], -math.inf) if feasible.any() else -violation
            candidates = self._candidates(torch, x[key.argmax()])
            sampling = MaxPosteriorSampling(models[0], replacement=False)
            if self.m:
                sampling = ConstrainedMaxPosteriorSampling(
                    models[0], ModelListGP(*models[1:]), replacement=False
                )
            with torch.no_grad():
                return sampling(candidates, num_samples=1)

    def _candidates(self, torch: Any, centre: Any) -> Any:
        """Points (k, d) in the region: Sobol's, with some coordinates of the centre where there are
        more than 20.
        """
        low = (centre - self.side / 2).clamp(0.0, 1.0)
        high = (centre + self.side / 2).clamp(0.0, 1.0)
        d = self.cube.d
        if self.cube.choices is not None:
            choices = torch.tensor(self.cube.choices)
            inside = ((choices >= low) & (choices <= high)).all(dim=1)
            nearest = (choices - centre).abs().amax(dim=1).argsort(stable=True)[: 2 * d + 1]
            if inside.sum() > 2 * d:
                return choices[inside]
            return choices[nearest]
        count = self.method.candidates or min(5000, max(2000, 200 * d))
        drawn = torch.quasirandom.SobolEngine(d, scramble=True).draw(count, dtype=torch.double)
        moved = torch.rand(count, d, dtype=torch.double) <= min(20 / d, 1.0)
        moved[~moved.any(dim=1), torch.randint(0, d, (int((~moved.any(dim=1)).sum()),))] = True
        points = torch.where(moved, low + (high - low) * drawn, centre)
        if self.cube.mixed is not None:
            points = torch.tensor(self.cube.mixed.snap(points.numpy()))
        if self.cube.limited is not None:
            points = points[~torch.tensor(self.cube.limited.beyond(points.numpy()))]
        return points if len(points) else centre[None]


@ALGORITHMS.register("botorch-scbo")
@dataclass(kw_only=True)
class BotorchSCBO(BotorchMethod):
    """SCBO as in BoTorch's tutorial on scalable constrained optimization: Thompson sampling in a
    trust region.

    The tutorial's trust region, counters and candidates, for batches of one; candidates are
    rounded where inputs are whole numbers or choices, which the tutorial has none of. On a finite
    set candidates are the actions in the region, or the 2d + 1 nearest ones where it has fewer.

    Differs from the tutorial:

    1. The 2,000 candidates in its text are the paper's min(5000, max(2000, 200 d)) here, the same
    up to ten dimensions.
    2. Where it would stop, at the least side, the method begins anew with a new Sobol set and
       without data, as in the paper, but for what is told later of points under way.
    3. Every round draws another scrambled Sobol set.
    """

    source = "BoTorch (Balandat et al. 2020), tutorial on Eriksson & Poloczek (2021)"
    about = "SCBO as in the tutorial of the BoTorch library, with models fitted every round"
    optimiser_class = TrustRegion
    cost = "O(m (t³ + c³)) for c candidates, with PyTorch"

    candidates: int | None = param(
        None, "how many; null: min(5000, max(2000, 200 d))", at_least=2, at_most=5000
    )
    successes: int = param(
        10, "successes in a row that double the region (the paper: 3)", at_least=1
    )
