"""Gaussian-process posteriors of S replicates in observation space: for boxes, windows, delays, and high-rank kernels.

Kept per replicate are the inverse P = (K + lambda I)^-1 over the observations in memory, their covariances with the
M candidates, and w = P y. An observation at x enters by bordering, the step of an incremental Cholesky factor: with
a = P k_x and s = k(x, x) + lambda - k_x.a (the squared new diagonal entry of that factor),

    P <- [[P + a a^T / s, -a / s], [-a^T / s, 1 / s]],

and leaves by the same formula read backwards, which a Cholesky factor does not offer; hence P. Observations live in
slots; an empty slot is a row and column of zeros. P is computed afresh now and then, so that rounding does not pile up.
The cost per replicate and round is O(c M + c^2) for c slots in use.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cbobench.gp.actions import Finite
from cbobench.gp.box import Box
from cbobench.gp.kernels import Array
from cbobench.gp.posterior import VARIANCE_FLOOR

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Jet:
    """Second-order models at q points of S replicates: means (S, p, q), variances (S, q), and their derivatives."""

    mean: Array
    mean_slope: Array  # (S, p, q, d)
    mean_bend: Array  # (S, p, q, d, d)
    variance: Array
    variance_slope: Array  # (S, q, d)
    variance_bend: Array  # (S, q, d, d)


class ObservationPosterior:
    """Posteriors of p functions at the candidates of an action set, for S replicates.

    Args:
        actions: a `Finite` set (its actions are the candidates) or a `Box`.
        lam: lambda.
        replicates: S.
        functions: p, observed together.
        slots: how many observations are kept at most (the horizon, or a window).

    Attributes:
        mean (S, p, M), variance (S, M), gain (S,): as in `FeaturePosterior`; the gain is that of what is in memory.
    """

    def __init__(self, actions: Finite | Box, lam: float, replicates: int, functions: int, slots: int) -> None:
        self.actions = actions
        self.replicates = replicates
        self.functions = functions
        self.slots = slots
        self.box = actions if isinstance(actions, Box) else None
        if isinstance(actions, Box):
            self.candidates = len(actions.candidates)
            self.prior = np.ones(self.candidates)
        else:
            self.candidates = actions.n
            self.prior = actions.covariance.diagonal()
        self.rows = np.arange(replicates)
        self.reset(lam)

    def reset(self, lam: float | None = None) -> None:
        """Back to the prior, with another lambda if one is given."""
        if lam is not None:
            self.lam = lam
        self.mean = np.zeros((self.replicates, self.functions, self.candidates))
        self.variance = np.tile(self.prior, (self.replicates, 1))
        self.gain = np.zeros(self.replicates)
        self.used = 0
        self.updates = 0
        self._allocate(min(self.slots, 64))

    def _allocate(self, capacity: int) -> None:
        """Room for so many slots; what is held stays."""
        d = self.box.d if self.box is not None else 1
        shapes: dict[str, tuple[int, ...]] = {
            "inverse": (capacity, capacity),
            "cross": (capacity, self.candidates),
            "points": (capacity, d),
            "values": (self.functions, capacity),
            "weights": (self.functions, capacity),
            "full": (capacity,),
        }
        for name, shape in shapes.items():
            fresh = np.zeros((self.replicates, *shape), dtype=bool if name == "full" else np.float64)
            if self.used:
                held = getattr(self, name)
                fresh[tuple(slice(length) for length in held.shape)] = held
            setattr(self, name, fresh)
        self.capacity = capacity

    inverse: Array
    cross: Array
    points: Array
    values: Array
    weights: Array
    full: Mask

    # Entering, leaving, and learning later -------------------------------------------------------------------------

    def update(self, actions: NDArray[Any], values: Array) -> None:
        """Condition on one observation of every function; where all slots are full, the oldest is forgotten first.

        Args:
            actions: indices (S,) of a finite set, or points of the unit cube (S, d) of a box.
            values: (S, p).
        """
        slot = np.full(self.replicates, self.updates % self.slots)
        if self.updates >= self.slots:
            self.drop(slot)
        self.updates += 1
        self.reach(self.updates)
        self._enter(actions, values, slot, None)
        if self.updates & (self.updates - 1) == 0 or self.updates % self.slots == 0:
            self.refresh()

    def update_some(self, t: int, actions: NDArray[Any], values: Array, mask: Mask) -> None:
        """Condition the replicates of a mask (S,), in any round up to t; no replicate has more than t observations."""
        self.reach(t)
        self._enter(actions, values, self.full.sum(axis=1), mask)

    def reach(self, used: int) -> None:
        """Use so many slots (at most all): a number that is the same in every block, so that no bit depends on it."""
        used = min(self.slots, used)
        while used > self.capacity:
            self._allocate(min(self.slots, 2 * self.capacity))
        self.used = max(self.used, used)

    def _enter(self, actions: NDArray[Any], values: Array, slot: NDArray[np.intp], mask: Mask | None) -> None:
        c = self.used
        to_candidates, to_slots, own = self._covariances(actions, c)
        inverse = self.inverse[:, :c, :c]
        a = np.matmul(inverse, to_slots[:, :, None])[:, :, 0]
        latent = own - (a * to_slots).sum(axis=1)
        s = np.maximum(latent, VARIANCE_FLOOR) + self.lam
        column = to_candidates - np.matmul(a[:, None, :], self.cross[:, :c])[:, 0]
        residual = values - (self.weights[:, :, :c] * to_slots[:, None]).sum(axis=2)
        step = residual / s[:, None]
        if mask is not None:
            a, column, step = a * mask[:, None], column * mask[:, None], step * mask[:, None]
        self.mean += step[:, :, None] * column[:, None]
        self.variance -= column**2 / s[:, None]
        np.maximum(self.variance, VARIANCE_FLOOR, out=self.variance)
        scaled = a / s[:, None]
        inverse += scaled[:, :, None] * a[:, None]
        self.weights[:, :, :c] -= step[:, :, None] * a[:, None]
        self.gain += 0.5 * np.log(s / self.lam) * (1.0 if mask is None else mask)
        who = self.rows if mask is None else self.rows[mask]
        where = slot[who]
        self.inverse[who, :c, where] = -scaled[who]
        self.inverse[who, where, :c] = -scaled[who]
        self.inverse[who, where, where] = 1 / s[who]
        self.weights[who, :, where] = step[who]
        self.values[who, :, where] = values[who]
        self.cross[who, where] = to_candidates[who]
        self.points[who, where] = (actions if self.box is not None else actions[:, None])[who]
        self.full[who, where] = True

    def drop(self, slot: NDArray[np.intp]) -> None:
        """Forget the observation in a slot of every replicate, (S,)."""
        c = self.used
        p = self.inverse[self.rows, :c, slot]
        pivot = p[self.rows, slot][:, None]  # 1 / s of the observation, as if it had come last
        u = self.weights[self.rows, :, slot]
        column = np.matmul(p[:, None, :], self.cross[:, :c])[:, 0]
        self.mean -= (u / pivot)[:, :, None] * column[:, None]
        self.variance += column**2 / pivot
        self.weights[:, :, :c] -= (u / pivot)[:, :, None] * p[:, None]
        self.inverse[:, :c, :c] -= (p / pivot)[:, :, None] * p[:, None]
        self.gain += 0.5 * np.log(pivot[:, 0] * self.lam)
        self.inverse[self.rows, :, slot] = 0.0
        self.inverse[self.rows, slot, :] = 0.0
        self.weights[self.rows, :, slot] = 0.0
        self.values[self.rows, :, slot] = 0.0
        self.cross[self.rows, slot] = 0.0
        self.points[self.rows, slot] = 0.0
        self.full[self.rows, slot] = False

    def reveal(self, replicate: int, t: int, action: Any, function: int, value: float) -> None:
        """A value arrives for the action of round t, which entered as 0: it moves a mean, and no variance."""
        c, slot = self.used, t - 1
        p = self.inverse[replicate, slot, :c]
        self.values[replicate, function, slot] += value
        self.weights[replicate, function, :c] += value * p
        self.mean[replicate, function] += value * np.matmul(p[None], self.cross[replicate, :c])[0]

    def refresh(self) -> None:
        """P, w and the candidates' moments from scratch."""
        c = self.used
        gram = np.zeros((self.replicates, c, c))
        for s in range(self.replicates):
            if self.box is not None:
                gram[s] = self.box.kernel(self.points[s, :c], self.points[s, :c])
            else:
                assert isinstance(self.actions, Finite)
                index = self.points[s, :c, 0].astype(np.intp)
                gram[s] = self.actions.covariance[np.ix_(index, index)]
        both = self.full[:, :c, None] & self.full[:, None, :c]
        gram = np.where(both, gram, 0.0)
        gram[:, np.arange(c), np.arange(c)] += np.where(self.full[:, :c], self.lam, 1.0)
        inverse = np.where(both, np.linalg.inv(gram), 0.0)
        self.inverse[:, :c, :c] = (inverse + inverse.transpose(0, 2, 1)) / 2
        self.weights[:, :, :c] = np.matmul(self.values[:, :, None, :c], self.inverse[:, None, :c, :c])[:, :, 0]
        self.mean = np.matmul(self.weights[:, :, None, :c], self.cross[:, None, :c])[:, :, 0]
        explained = (self.cross[:, :c] * np.matmul(self.inverse[:, :c, :c], self.cross[:, :c])).sum(axis=1)
        self.variance = np.maximum(self.prior - explained, VARIANCE_FLOOR)

    def _covariances(self, actions: NDArray[Any], c: int) -> tuple[Array, Array, Array]:
        """Covariances of the actions with the candidates (S, M) and the first c slots (S, c), and with themselves."""
        if self.box is None:
            assert isinstance(self.actions, Finite)
            index = actions.astype(np.intp)
            own = self.prior[index]
            return self.actions.covariance[index], self.cross[self.rows, :c, index], own
        kernel = self.box.kernel
        candidates = kernel.profile(_squared(actions[:, None] - self.box.candidates))
        slots = kernel.profile(_squared(actions[:, None] - self.points[:, :c])) * self.full[:, :c]
        return candidates, slots, np.ones(len(actions))

    def at(self, points: Array) -> tuple[Array, Array]:
        """Means (S, p, q) and variances (S, q) at points (S, q, d) of the unit cube of a box."""
        assert self.box is not None
        c = self.used
        squared = _squared(points[:, :, None, :] - self.points[:, None, :c])
        k = self.box.kernel.profile(squared) * self.full[:, None, :c]
        mean = np.matmul(self.weights[:, :, None, :c], k[:, None].swapaxes(2, 3))[:, :, 0]
        explained = (k * np.matmul(k, self.inverse[:, :c, :c])).sum(axis=2)
        return mean, np.maximum(1 - explained, VARIANCE_FLOOR)

    # Looking between the candidates of a box -------------------------------------------------------------------------

    def jet(self, points: Array) -> Jet:
        """Beliefs and their first two derivatives at points (S, q, d) of the unit cube of a box."""
        assert self.box is not None
        c = self.used
        d = self.box.d
        delta = points[:, :, None, :] - self.points[:, None, :c]  # (S, q, c, d)
        k, k1, k2 = self.box.kernel.slopes(_squared(delta))
        here = self.full[:, None, :c]
        k, k1, k2 = k * here, k1 * here, k2 * here
        slope = 2 * k1[..., None] * delta  # dk/dx, (S, q, c, d)
        pk = np.matmul(k, self.inverse[:, :c, :c])  # (S, q, c)
        replicates, q = points.shape[:2]
        moved = np.matmul(slope.transpose(0, 1, 3, 2).reshape(replicates, q * d, c), self.inverse[:, :c, :c])
        moved = moved.reshape(replicates, q, d, c)
        w = self.weights[:, :, None, :c]  # (S, p, 1, c)
        mean = np.matmul(w, k[:, None].swapaxes(2, 3))[:, :, 0]
        mean_slope = np.matmul(w[..., None, :], slope[:, None])[..., 0, :]
        mean_bend = _bend(w, k1[:, None], k2[:, None], delta[:, None])
        variance = np.maximum(1 - (k * pk).sum(axis=2), VARIANCE_FLOOR)
        variance_slope = -2 * np.matmul(pk[:, :, None], slope)[:, :, 0]
        variance_bend = -2 * (np.matmul(moved, slope) + _bend(pk, k1, k2, delta))
        return Jet(mean, mean_slope, mean_bend, variance, variance_slope, variance_bend)


def _squared(delta: Array) -> Array:
    """Squared lengths of vectors (..., d); NumPy's sum over a short last axis takes four times as long."""
    total = delta[..., 0] ** 2
    for i in range(1, delta.shape[-1]):
        total += delta[..., i] ** 2
    return np.asarray(total)


def _bend(weights: Array, k1: Array, k2: Array, delta: Array) -> Array:
    """sum_i w_i d²k(x, x_i)/dx², (..., d, d), of a kernel given by its derivatives in the squared distance."""
    outer = np.matmul((4 * weights * k2)[..., None, :] * delta.swapaxes(-1, -2), delta)
    return outer + 2 * (weights * k1).sum(axis=-1)[..., None, None] * np.eye(delta.shape[-1])
