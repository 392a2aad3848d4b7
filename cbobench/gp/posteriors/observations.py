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

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cbobench.gp.actions import Finite
from cbobench.gp.box import Box
from cbobench.gp.kernels import Array, squared_lengths
from cbobench.gp.posteriors.contract import VARIANCE_FLOOR, Jet, Mask
from cbobench.gp.posteriors.shared import SharedPosterior, pick


class ObservationPosterior(SharedPosterior):
    """Posteriors of p functions at the candidates of an action set, for S replicates (see `contract.Posterior`).

    Args:
        actions: a `Finite` set (its actions are the candidates) or a `Box`.
        lam: lambda.
        replicates: S.
        functions: p, observed together.
        slots: how many observations are kept at most (the horizon, or a window).

    Attributes:
        mean (S, p, M), variance (S, M), gain (S,): the gain is that of what is in memory.
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
        if lam is not None:
            self.lam = lam
            self.noise = np.full(self.replicates, lam)
        self.mean = np.zeros((self.replicates, self.functions, self.candidates))
        self.variance = np.tile(self.prior, (self.replicates, 1))
        self.gain = np.zeros(self.replicates)
        self.used = 0
        self.updates = 0
        self._forget_alike()
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

    def _forget_alike(self) -> None:
        self.alike = np.empty((self.replicates, 0), dtype=np.intp)  # per slot the first one that holds the same action

    inverse: Array
    cross: Array
    points: Array
    values: Array
    weights: Array
    full: Mask

    # Entering, leaving, and learning later -------------------------------------------------------------------------

    def update(self, actions: NDArray[Any], values: Array) -> None:
        """As in the contract; where all slots are full, the oldest observation is forgotten first."""
        slot = np.full(self.replicates, self.updates % self.slots)
        if self.updates >= self.slots:
            self.drop(slot)
        self.updates += 1
        self.reach(self.updates)
        self._enter(actions, values, slot, None)
        if self.updates & (self.updates - 1) == 0 or self.updates % self.slots == 0:
            self.refresh()

    def update_some(self, t: int, actions: NDArray[Any], values: Array, mask: Mask) -> None:
        self._forget_alike()
        self.reach(t)
        self._enter(actions, values, self.full.sum(axis=1), mask)

    def reach(self, used: int) -> None:
        """Use so many slots, at most all."""
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
        s = np.maximum(latent, VARIANCE_FLOOR) + self.noise
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
        self.gain += 0.5 * np.log(s / self.noise) * (1.0 if mask is None else mask)
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
        self._forget_alike()
        c = self.used
        p = self.inverse[self.rows, :c, slot]
        pivot = p[self.rows, slot][:, None]  # 1 / s of the observation, as if it had come last
        u = self.weights[self.rows, :, slot]
        column = np.matmul(p[:, None, :], self.cross[:, :c])[:, 0]
        self.mean -= (u / pivot)[:, :, None] * column[:, None]
        self.variance += column**2 / pivot
        self.weights[:, :, :c] -= (u / pivot)[:, :, None] * p[:, None]
        self.inverse[:, :c, :c] -= (p / pivot)[:, :, None] * p[:, None]
        self.gain += 0.5 * np.log(pivot[:, 0] * self.noise)
        self.inverse[self.rows, :, slot] = 0.0
        self.inverse[self.rows, slot, :] = 0.0
        self.weights[self.rows, :, slot] = 0.0
        self.values[self.rows, :, slot] = 0.0
        self.cross[self.rows, slot] = 0.0
        self.points[self.rows, slot] = 0.0
        self.full[self.rows, slot] = False

    def reveal(self, replicate: int, t: int, action: Any, function: int, value: float) -> None:
        c, slot = self.used, t - 1
        p = self.inverse[replicate, slot, :c]
        self.values[replicate, function, slot] += value
        self.weights[replicate, function, :c] += value * p
        self.mean[replicate, function] += value * np.matmul(p[None], self.cross[replicate, :c])[0]

    def refresh(self) -> None:
        """P, w and the candidates' moments from scratch."""
        self._refresh(slice(None))

    def set_noise(self, lam: Array) -> None:
        """Another λ per replicate, (S,): where it differs from before, all is computed from scratch."""
        changed = np.flatnonzero(lam != self.noise)
        self.noise = lam.copy()
        if len(changed):
            self._refresh(changed)

    def _refresh(self, who: slice | NDArray[np.intp]) -> None:
        """Some replicates only: the others keep their bits."""
        c = self.used
        points, full, values, cross = self.points[who], self.full[who], self.values[who], self.cross[who]
        gram = np.zeros((len(points), c, c))
        for s in range(len(points)):
            if self.box is not None:
                gram[s] = self.box.kernel(points[s, :c], points[s, :c])
            else:
                assert isinstance(self.actions, Finite)
                index = points[s, :c, 0].astype(np.intp)
                gram[s] = self.actions.covariance[np.ix_(index, index)]
        both = full[:, :c, None] & full[:, None, :c]
        gram = np.where(both, gram, 0.0)
        gram[:, np.arange(c), np.arange(c)] += np.where(full[:, :c], self.noise[who, None], 1.0)
        inverse = np.where(both, np.linalg.inv(gram), 0.0)
        inverse = (inverse + inverse.transpose(0, 2, 1)) / 2
        self.inverse[who, :c, :c] = inverse
        weights = np.matmul(values[:, :, None, :c], self.inverse[who][:, None, :c, :c])[:, :, 0]
        self.weights[who, :, :c] = weights
        self.mean[who] = np.matmul(self.weights[who][:, :, None, :c], cross[:, None, :c])[:, :, 0]
        explained = (cross[:, :c] * np.matmul(self.inverse[who][:, :c, :c], cross[:, :c])).sum(axis=1)
        self.variance[who] = np.maximum(self.prior - explained, VARIANCE_FLOOR)

    def _covariances(self, actions: NDArray[Any], c: int) -> tuple[Array, Array, Array]:
        """Covariances of the actions with the candidates (S, M) and the first c slots (S, c), and with themselves."""
        if self.box is None:
            assert isinstance(self.actions, Finite)
            index = actions.astype(np.intp)
            own = self.prior[index]
            return self.actions.covariance[index], self.cross[self.rows, :c, index], own
        kernel = self.box.kernel
        candidates = kernel.profile(squared_lengths(actions[:, None] - self.box.candidates))
        slots = kernel.profile(squared_lengths(actions[:, None] - self.points[:, :c])) * self.full[:, :c]
        return candidates, slots, np.ones(len(actions))

    def at(self, actions: NDArray[Any]) -> tuple[Array, Array]:
        if self.box is None:
            return super().at(actions)
        c = self.used
        squared = squared_lengths(actions[:, :, None, :] - self.points[:, None, :c])
        k = self.box.kernel.profile(squared) * self.full[:, None, :c]
        mean = np.matmul(self.weights[:, :, None, :c], k[:, None].swapaxes(2, 3))[:, :, 0]
        explained = (k * np.matmul(k, self.inverse[:, :c, :c])).sum(axis=2)
        return mean, np.maximum(1 - explained, VARIANCE_FLOOR)

    def at_observations(self) -> tuple[Array, Array, Mask]:
        """As in the contract, from K P = I - lambda P; slots that hold the same action say the same, to the bit."""
        c, lam = self.used, self.noise[:, None]
        diagonal = np.diagonal(self.inverse[:, :c, :c], axis1=1, axis2=2)
        mean = self.values[:, :, :c] - lam[:, None] * self.weights[:, :, :c]
        variance = np.maximum(lam * (1 - lam * diagonal), 0.0)
        for k in range(self.alike.shape[1], c):  # slots that are new since the last call
            same = (self.points[:, : k + 1] == self.points[:, k : k + 1]).all(axis=2)
            self.alike = np.concatenate([self.alike, same.argmax(axis=1)[:, None]], axis=1)
        return pick(mean, self.alike), pick(variance[:, None], self.alike)[:, 0], self.full[:, :c]

    def covariances(self, replicate: int, function: int, some: NDArray[np.intp]) -> Array:
        assert isinstance(self.actions, Finite)
        c = self.used
        cross = self.cross[replicate, :c]
        explained = np.matmul(np.matmul(cross[:, some].T, self.inverse[replicate, :c, :c]), cross)
        return np.asarray(self.actions.covariance[some] - explained)

    def among(self, replicate: int, actions: NDArray[Any]) -> Array:
        """The posterior covariance (q, q) of q actions, (q,) or (q, d), in one replicate."""
        c = self.used
        if isinstance(self.actions, Box):
            kernel = self.actions.kernel
            prior = kernel.profile(squared_lengths(actions[:, None] - actions))
            slots = kernel.profile(squared_lengths(actions[:, None] - self.points[replicate, :c]))
            cross = slots * self.full[replicate, :c]
        else:
            prior = self.actions.covariance[np.ix_(actions, actions)]
            cross = self.cross[replicate, :c][:, actions].T
        return np.asarray(prior - np.matmul(np.matmul(cross, self.inverse[replicate, :c, :c]), cross.T))

    # Looking between the candidates of a box -------------------------------------------------------------------------

    def jet(self, points: Array) -> Jet:
        assert self.box is not None
        c, d = self.used, self.box.d
        replicates, q = points.shape[:2]
        delta = points[..., None] - self.points[:, None, :c].swapaxes(2, 3)  # (S, q, d, c)
        squared = squared_lengths(delta.swapaxes(2, 3))
        k, k1, k2 = (part * self.full[:, None, :c] for part in self.box.kernel.slopes(squared))
        rows = np.empty((replicates, q, 1 + d, c))  # k and its slope
        rows[:, :, 0] = k
        np.multiply(2 * k1[:, :, None], delta, out=rows[:, :, 1:])
        moved = np.matmul(rows.reshape(replicates, -1, c), self.inverse[:, :c, :c]).reshape(rows.shape)
        columns = rows.swapaxes(2, 3)
        explained = np.matmul(moved, columns)  # (S, q, 1 + d, 1 + d)
        means = np.matmul(self.weights[:, None, :, :c], columns).swapaxes(1, 2)  # (S, p, q, 1 + d)
        weights = np.concatenate(  # of d²k(x, x_i)/dx² = 4 k'' δ δᵀ + 2 k' I in the bends of the means, and of k K⁻¹ k
            [np.broadcast_to(self.weights[:, None, :, :c], (replicates, q, self.functions, c)), moved[:, :, :1]], axis=2
        )
        products = (delta[:, :, :, None] * delta[:, :, None]).reshape(replicates, q, d * d, c)
        bends = np.matmul(weights * (4 * k2)[:, :, None], products.swapaxes(2, 3)).reshape(replicates, q, -1, d, d)
        bends += np.matmul(weights, (2 * k1)[..., None])[..., None] * np.eye(d)
        return Jet(
            mean=means[..., 0],
            mean_slope=means[..., 1:],
            mean_bend=bends[:, :, :-1].swapaxes(1, 2),
            variance=np.maximum(1 - explained[:, :, 0, 0], VARIANCE_FLOOR),
            variance_slope=-2 * explained[:, :, 0, 1:],
            variance_bend=-2 * (explained[:, :, 1:, 1:] + bends[:, :, -1]),
        )
