"""Models of methods that are not told the size of their functions, and action sets of methods that
need geometry.

A GP with amplitude s and mean c fitted to observations y is the unit GP fitted to (y - c) / s, so
its posterior mean is

    c (1 - e(x)) + w(x),   w from y and e from a constant 1, both by the unit GP,

and its deviation is s times the unit one. The constant is kept as one more function of the
posterior, so that c and s may change every round at no cost. A noise variance in the units of y is
λ/s² for the unit GP: then every function has a posterior of its own, which is recomputed when s
changes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from cbobench.errors import CellFailure
from cbobench.gp.actions import Finite
from cbobench.gp.box_actions import ActionSet, Box, draw_allowed
from cbobench.gp.kernels import Actions, Array
from cbobench.gp.posteriors.fitted import FittedPosterior
from cbobench.gp.posteriors.interface import Moments, Posterior
from cbobench.gp.posteriors.observations import ObservationPosterior
from cbobench.gp.posteriors.separate import OwnNoise
from cbobench.gp.recommend import RunMoments

Noise = float | Literal["scaled", "theory", "true"]
SHARE = 0.01  # share of a squared amplitude: the noise variance `scaled`
AT_ONCE = 2048  # actions
NOISELESS = 1e-8  # stands for no noise: a smaller λ would be lost in rounding


def noise_variance(lam: Noise, horizon: float) -> float:
    """Return a noise variance in units of the observations; for `scaled`, in units of the squared
    amplitudes.

    For `true`, return an initial number (see `true_noise`).
    """
    numbers: dict[Any, float] = {"scaled": SHARE, "theory": 1 + 2 / horizon, "true": 1.0}
    return float(numbers.get(lam, lam))


def known_variances(lam: Noise | Array, functions: int, horizon: float) -> Array | None:
    """Return the noise variances (p,) that fitted models take as given; None to fit them."""
    if isinstance(lam, np.ndarray):
        return lam
    if lam == "scaled":
        return None
    return np.full(functions, noise_variance(lam, horizon))


def true_noise(constants: Array) -> Array:
    """Return noise variances from sub-Gaussian constants R of the observations."""
    return np.maximum(constants**2, NOISELESS)


def own_noise(
    actions: ActionSet, lam: float, replicates: int, functions: int, slots: int
) -> OwnNoise:
    """Return a posterior of p functions with known noise in their own units (see
    `RunningScale.unit_noise`).
    """
    return OwnNoise(
        [ObservationPosterior(actions, lam, replicates, 2, slots) for _ in range(functions)]
    )


def normal_scores(values: Array) -> Array:
    """Return Φ⁻¹ of the empirical distribution function, (rank - 1/2)/n, of values (p, n): a
    Gaussian copula's margins.

    They keep the order and magnify differences between the best of many values (Wilson & Ghahramani
    2010).
    """
    from scipy.special import ndtri  # imported late: SciPy takes long to load
    from scipy.stats import rankdata

    return ndtri((rankdata(values, axis=-1) - 0.5) / values.shape[-1])


class RunningScale:
    """Centres and amplitudes of (f, g_1, ..., g_m) from the running range of the observations, for
    S replicates.

    f has the middle of its range as centre and a quarter of it as amplitude (a range of ± 2
    deviations). A constraint keeps the centre 0, which separates feasible from infeasible, and has
    half its largest absolute value as amplitude. Unlike a mean and a deviation, the range does not
    shrink while one action is played again and again; heavy-tailed noise inflates it.

    Attributes:
        centre, amplitude: (S, p); amplitudes are 1 until two different values (of g: one other than
            0) were observed.
    """

    def __init__(self, replicates: int, functions: int, enabled: bool = True) -> None:
        self.enabled = enabled
        self.low = np.full((replicates, functions), np.inf)
        self.high = np.full((replicates, functions), -np.inf)
        self.centre = np.zeros((replicates, functions))
        self.amplitude = np.ones((replicates, functions))

    def add(self, values: Array) -> None:
        """Add one observation of every function, (S, p); NaN where f is not told."""
        self.low = np.fmin(self.low, values)
        self.high = np.fmax(self.high, values)
        if not self.enabled:
            return
        is_known = self.low[:, 0] <= self.high[:, 0]
        low, high = (np.where(is_known, end[:, 0], 0.0) for end in (self.low, self.high))
        self.centre[:, 0] = (low + high) / 2
        spread = np.maximum(np.abs(self.low), np.abs(self.high)) / 2
        spread[:, 0] = (high - low) / 4
        self.amplitude = np.where(spread > 0, spread, 1.0)

    def unit_noise(self, lam: float | Array) -> Array:
        """Return λ of the unit GPs, (S, p), for a noise variance in units of the observations."""
        return lam / self.amplitude**2

    def moments(self, mean: Array, variance: Array) -> Moments:
        """Return posterior means and deviations (S, p, k) of the scaled model.

        Args:
            mean: (S, p + 1, k), the last one of the constant 1; or (S, 2 p, k), a constant beside
                every function.
            variance: of the unit GP, (S, k), or (S, p, k) if functions have their own.
        """
        deviation = (
            np.sqrt(variance if variance.ndim == 3 else variance[:, None])
            * self.amplitude[..., None]
        )
        return self.means(mean), deviation

    def means(self, mean: Array) -> Array:
        """Return the first of the `moments` alone."""
        p = self.amplitude.shape[1]
        return mean[:, :p] + self.centre[..., None] * (1 - mean[:, p:])


def with_constant(values: Array) -> Array:
    """Return values (p, c) beside those of a constant 1, (p + 1, c): both are 0 where f is not
    told, so that the centre stands for it.
    """
    is_told = np.where(np.isnan(values[:1]), 0.0, 1.0)
    return np.concatenate([np.where(np.isnan(values), 0.0, values), is_told])


def in_batches(at: Callable[[Actions], Moments], inputs: Actions) -> Moments:
    """Return means and deviations (p, q) at inputs, some at a time, which bounds memory."""
    parts = [at(inputs[i : i + AT_ONCE]) for i in range(0, len(inputs), AT_ONCE)]
    means, deviations = zip(*parts, strict=True)
    return np.concatenate(means, axis=1), np.concatenate(deviations, axis=1)


class Cube:
    """An action set with coordinates as points of the unit cube: a box, or a finite set by its
    bounding box.

    Attributes:
        units: the actions of a finite set in the cube, (n, d); None on a box.
    """

    def __init__(self, actions: ActionSet) -> None:
        self.box = actions if isinstance(actions, Box) else None
        self.d = actions.d
        self.units = actions.units if isinstance(actions, Finite) else None

    @property
    def spacing(self) -> float:
        """Distance between neighbours, about n^(-1/d); 0 on a box."""
        if self.units is None:
            return 0.0
        return float(len(self.units) ** (-1 / self.d))

    def action(self, x: Array) -> Any:
        """Return the action for a point (d,) of the cube: the point of the box, or the index of the
        nearest action.
        """
        if self.box is not None:
            return self.box.scale(x)
        assert self.units is not None
        return int(((self.units - x) ** 2).sum(axis=1).argmin())


class RunData:
    """The observations of one run and their running range, on a box or a finite set with
    coordinates.

    A model's inputs are indices (q,) of a finite set, or points (q, d) of the unit cube on a box.

    Args:
        functions: p = 1 + m.
        lam: the noise variance, in units of the observations, or one for each function, (p,);
            `scaled` is a share of each model's squared amplitude.
        slots: number of observations to come.
        scaled: whether centre and amplitude follow the observations; otherwise they are 0 and 1.

    Attributes:
        played: the observed actions, (c,) or (c, d), in order.
        observed: their values, (p, c).
        noise_per_function: whether every function has a noise variance of its own, in units of its
            squared amplitude.
    """

    def __init__(
        self,
        actions: ActionSet,
        functions: int,
        lam: Noise | Array,
        slots: int,
        scaled: bool = True,
    ) -> None:
        self.actions = actions
        self.cube = Cube(actions)
        self.noise: float | Array = (
            lam if isinstance(lam, np.ndarray) else noise_variance(lam, slots)
        )
        self.scale = RunningScale(1, functions, scaled)
        self.noise_per_function = isinstance(lam, np.ndarray) or (scaled and lam != "scaled")
        self.slots = slots
        self.forget()

    played: Actions
    observed: Array

    def forget(self) -> None:
        """Return to the prior; the scale stays."""
        self.played = (
            np.empty(0, dtype=np.intp) if self.cube.box is None else np.empty((0, self.cube.d))
        )
        self.observed = np.empty((self.scale.amplitude.shape[1], 0))

    @property
    def count(self) -> int:
        return len(self.played)

    def tell(self, inputs: Actions, values: Array) -> None:
        """Condition on values (p,) at one action, (1,) or (1, d); f is NaN where it is not told.

        Raises:
            CellFailure: another value is not a number.
        """
        if np.isinf(values).any() or np.isnan(values[1:]).any():
            raise CellFailure("an observation is not a number")
        self.played = np.concatenate([self.played, inputs])
        self.observed = np.concatenate([self.observed, values[:, None]], axis=1)
        self.scale.add(values[None])

    def draw_input(self, generator: np.random.Generator) -> Actions:
        """Return one uniformly random input, (1,) or (1, d)."""
        if self.cube.units is None:
            return self.draw_candidates(generator, 1)
        return generator.integers(len(self.cube.units), size=1)

    def draw_candidates(self, generator: np.random.Generator, count: int) -> Actions:
        """Return uniform points of a box; all actions of a finite set, or that many random ones if
        there are more.
        """
        box = self.cube.box
        if box is not None and box.known is not None:
            return draw_allowed(box, lambda size: generator.random((size, box.d)), count)
        if self.cube.units is None:
            return generator.random((count, self.cube.d))
        n = len(self.cube.units)
        if n <= count:
            return np.arange(n)
        return generator.permutation(n)[:count]

    def units(self, inputs: Actions) -> Array:
        """Return points of the cube, (q, d)."""
        if self.cube.units is None:
            return inputs
        return self.cube.units[inputs]

    def seen(self, inputs: Actions) -> Array:
        """Return points as models see them, (q, width of the box)."""
        return self.actions.embed(self.units(inputs))

    def input_of(self, action: Any) -> Actions:
        """Return the input for one action, (1,) or (1, d): the inverse of `action`."""
        if self.cube.box is None:
            return np.array([action])
        return self.cube.box.unit(action)[None]

    def action(self, inputs: Actions) -> Any:
        """Return the action to play for one input, (1,) or (1, d)."""
        if self.cube.box is None:
            return int(inputs[0])
        return self.cube.box.scale(inputs[0])


class RunModel(RunData, RunMoments):
    """GPs of f, g_1, ..., g_m for one run (see `RunData`), scaled by the running range, or fitted.

    Args:
        fitted: whether kernels are fitted (see `cbobench.gp.fit`); λ is, too, if it is `scaled`.
    """

    posterior: Posterior

    def __init__(
        self,
        actions: ActionSet,
        functions: int,
        lam: Noise | Array,
        slots: int,
        scaled: bool,
        fitted: bool = False,
    ) -> None:
        self.fitted: FittedPosterior | None = None
        if fitted:
            noise = known_variances(lam, functions, slots)
            # It keeps no candidates: beliefs are computed where they are asked for.
            self.fitted = FittedPosterior(
                actions,
                1,
                functions,
                None if noise is None else noise[None],
                np.empty((0, actions.d)),
            )
        super().__init__(actions, functions, lam, slots, scaled)

    def forget(self) -> None:
        super().forget()
        if self.fitted is not None:
            self.posterior = self.fitted
            self.fitted.reset()
            return
        p = len(self.observed)
        if self.noise_per_function:
            self.posterior = own_noise(self.actions, 1.0, 1, p, self.slots)
        else:
            assert isinstance(self.noise, float)
            self.posterior = ObservationPosterior(self.actions, self.noise, 1, p + 1, self.slots)

    def tell(self, inputs: Actions, values: Array) -> None:
        super().tell(inputs, values)
        if self.fitted is None:
            values = with_constant(values[:, None])[:, 0]
        self.posterior.update(inputs, values[None])
        if isinstance(self.posterior, OwnNoise):
            self.posterior.set_noise(self.scale.unit_noise(self.noise))

    def at(self, inputs: Actions) -> Moments:
        """Return means and deviations (p, q)."""
        return in_batches(lambda some: self._moments(*self.posterior.at(some[None])), inputs)

    def at_played(self) -> Moments:
        """Return means and deviations (p, c) at the observed actions."""
        return self._moments(*self.posterior.at_observations()[:2])

    def at_candidates(self) -> Moments:
        if self.fitted:  # which keeps none
            return super().at_candidates()
        return self._moments(self.posterior.mean, self.posterior.variance)

    def _moments(self, mean: Array, variance: Array) -> Moments:
        means, deviations = (
            (mean, np.sqrt(variance)) if self.fitted else self.scale.moments(mean, variance)
        )
        return means[0], deviations[0]
