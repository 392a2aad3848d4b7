"""Gaussian-process posteriors of S replicates in observation space: for windows, most boxes,
high-rank kernels.

Kept per replicate are the inverse P = (K + lambda I)^-1 over the observations in memory, their
covariances with the M candidates, and w = P y. An observation at x enters by bordering, the step of
an incremental Cholesky factor: with a = P k_x and s = k(x, x) + lambda - k_x.a (the squared new
diagonal entry of that factor),

    P <- [[P + a a^T / s, -a / s], [-a^T / s, 1 / s]],

and leaves by the same formula read backwards, which a Cholesky factor does not offer; hence P.
Observations live in slots; an empty slot is a row and column of zeros. P is computed afresh now and
then, so that rounding does not pile up.
Where λ is small, P has too few digits: such a replicate has a Cholesky factor in its place (see
`factor`), and P = 0. The cost per replicate and round is O(c M + c^2) for c slots in use.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cbobench.errors import CellFailure
from cbobench.gp.actions import Finite
from cbobench.gp.box_actions import ActionSet, Box
from cbobench.gp.jets import Jet, interpolate_jet, models_at, taylor, times
from cbobench.gp.kernels import Actions, Array, Indices, Mask, squared_lengths
from cbobench.gp.posteriors.factor import SMALL, Factor
from cbobench.gp.posteriors.interface import (
    VARIANCE_FLOOR,
    Moments,
    MomentsOfSlots,
    SharedPosterior,
    pick,
)


class ObservationPosterior(SharedPosterior):
    """Posteriors of p functions at the candidates of an action set, for S replicates (see
    `interface.Posterior`).

    Args:
        actions: a `Finite` set (its actions are the candidates) or a `Box`.
        lam: lambda.
        replicates: S.
        functions: p, observed together.
        slots: largest number of kept observations (the horizon, or a window).

    Attributes:
        mean: (S, p, M).
        variance: (S, M).
        gain: (S,), of the kept observations.
        used: c, the number of slots in use, the same for all replicates.
        points: the observed actions, (S, slots, d); on a finite set the index, d = 1.
        values: (S, p, slots).
        cross: covariances with the candidates, (S, slots, M).
        full: mask of occupied slots, (S, slots); an empty one holds zeros.
        inverse: P, (S, slots, slots); 0 for replicates with a factor.
        weights: w = P y, (S, p, slots).
        factors: by replicate.
    """

    def __init__(
        self, actions: ActionSet, lam: float, replicates: int, functions: int, slots: int
    ) -> None:
        self.actions = actions
        self.replicates = replicates
        self.functions = functions
        self.slots = slots
        self.box = actions if isinstance(actions, Box) else None
        self.prior = np.ones(len(actions.candidates)) if isinstance(actions, Box) else actions.prior
        self.rows = np.arange(replicates)
        self.reset(lam)

    def reset(self, lam: float | None = None) -> None:
        if lam is not None:
            self.lam = lam
            self.noise = np.full(self.replicates, lam)
        self.mean = np.zeros((self.replicates, self.functions, len(self.prior)))
        self.variance = np.tile(self.prior, (self.replicates, 1))
        self.gain = np.zeros(self.replicates)
        self.updates = 0
        self.used = 0
        shape = self.replicates, self.slots
        self.points = np.zeros((*shape, self.box.d if self.box is not None else 1))
        self.values = np.zeros((self.replicates, self.functions, self.slots))
        self.cross = np.zeros((*shape, len(self.prior)))
        self.full = np.zeros(shape, dtype=bool)
        self.inverse = np.zeros((*shape, self.slots))
        self.weights = np.zeros_like(self.values)
        self.factors: dict[int, Factor] = {}
        for s in np.flatnonzero(self.noise < SMALL).tolist():
            self._factorise(s)

    def reach(self, used: int) -> None:
        """Use a number of slots, at most all."""
        self.used = max(self.used, min(self.slots, used))

    def _covariances(self, actions: Actions, c: int) -> tuple[Array, Array, Array]:
        """Return covariances of the actions with the candidates (S, M), the first c slots (S, c),
        and themselves.
        """
        if self.box is None:
            assert isinstance(self.actions, Finite)
            index = actions.astype(np.intp)
            variances = self.prior[index]
            return self.actions.rows(index), self.cross[self.rows, :c, index], variances
        kernel = self.box.kernel
        candidates = kernel.profile(squared_lengths(actions[:, None] - self.box.candidates))
        slots = (
            kernel.profile(squared_lengths(actions[:, None] - self.points[:, :c]))
            * self.full[:, :c]
        )
        return candidates, slots, np.ones(len(actions))

    def _gram(self, points: Array) -> Array:
        """Return prior covariances of slots, (c, d) to (c, c)."""
        if isinstance(self.actions, Box):
            return self.actions.kernel(points, points)
        index = points[:, 0].astype(np.intp)
        return self.actions.between(index, index)

    # Entering, leaving, and learning later --------------------------------------------------------

    def update(self, actions: Actions, values: Array) -> None:
        """If all slots are full, forget the oldest observation first."""
        slot = np.full(self.replicates, self.updates % self.slots)
        if self.updates >= self.slots:
            self.drop(slot)
        self.updates += 1
        self.reach(self.updates)
        self._enter(actions, values, slot, None)
        # Rounding piles up in P: it is computed afresh at powers of two, and once per window.
        if self.updates & (self.updates - 1) == 0 or self.updates % self.slots == 0:
            self.refresh()

    def update_some(self, t: int, actions: Actions, values: Array, mask: Mask) -> None:
        self.reach(t)
        self._enter(actions, values, self.full.sum(axis=1), mask)

    def _enter(self, actions: Actions, values: Array, slot: Indices, mask: Mask | None) -> None:
        if not np.isfinite(values).all():
            raise CellFailure(
                f"an observation of replicate {np.argwhere(~np.isfinite(values))[0, 0]} is not a "
                "number"
            )
        c = self.used
        # Before the observation is put into its slot, so that it has no covariance with itself
        # there.
        to_candidates, to_slots, variance = self._covariances(actions, c)
        rows = self.rows if mask is None else self.rows[mask]
        slots = slot[rows]
        self.values[rows, :, slots] = values[rows]
        self.cross[rows, slots] = to_candidates[rows]
        self.points[rows, slots] = (actions if self.box is not None else actions[:, None])[rows]
        self.full[rows, slots] = True
        for s in self._with_factor(rows):
            self._moves(
                s,
                1,
                *self.factors[s].append(
                    slot[s], to_slots[s], variance[s], to_candidates[s], values[s]
                ),
            )
        if len(self.factors) == self.replicates:
            return
        # Where λ is small a factor stands in place of P, which stays 0.
        if self.factors:
            mask = (True if mask is None else mask) & (self.noise >= SMALL)
            rows = self.rows[mask]
            slots = slot[rows]
        # The letters are those of the formula above; the floor takes what rounding pushes below
        # zero.
        inverse = self.inverse[:, :c, :c]
        a = (inverse @ to_slots[..., None])[..., 0]
        latent = variance - (a * to_slots).sum(axis=1)
        s = np.maximum(latent, VARIANCE_FLOOR) + self.noise
        column = to_candidates - (a[:, None, :] @ self.cross[:, :c])[:, 0]
        residual = values - (self.weights[..., :c] * to_slots[:, None]).sum(axis=2)
        step = residual / s[:, None]
        # All replicates are computed, and some move by 0: a stack has the same bits, whoever is
        # left out.
        if mask is not None:
            a = a * mask[:, None]
            column = column * mask[:, None]
            step = step * mask[:, None]
        self.mean += step[..., None] * column[:, None]
        self.variance -= column**2 / s[:, None]
        np.maximum(self.variance, VARIANCE_FLOOR, out=self.variance)
        scaled = a / s[:, None]
        inverse += scaled[..., None] * a[:, None]
        self.weights[..., :c] -= step[..., None] * a[:, None]
        self.gain += 0.5 * np.log(s / self.noise) * (1.0 if mask is None else mask)
        # Last, because the slot's own row and column were among those that moved.
        self.inverse[rows, :c, slots] = -scaled[rows]
        self.inverse[rows, slots, :c] = -scaled[rows]
        self.inverse[rows, slots, slots] = 1 / s[rows]
        self.weights[rows, :, slots] = step[rows]

    def drop(self, slot: Indices) -> None:
        """Forget the observation in a slot of every replicate, (S,)."""
        c = self.used
        if len(self.factors) < self.replicates:
            p = self.inverse[self.rows, :c, slot]
            pivot = p[self.rows, slot][:, None]  # 1 / s of the observation, as if it were the last
            if self.factors:
                pivot[self.noise < SMALL] = 1.0  # there P = 0, and nothing moves
            u = self.weights[self.rows, :, slot]
            column = (p[:, None, :] @ self.cross[:, :c])[:, 0]
            self.mean -= (u / pivot)[..., None] * column[:, None]
            self.variance += column**2 / pivot
            self.weights[..., :c] -= (u / pivot)[..., None] * p[:, None]
            self.inverse[:, :c, :c] -= (p / pivot)[..., None] * p[:, None]
            self.gain += 0.5 * np.log(pivot[:, 0] * self.noise)
            self.inverse[self.rows, :, slot] = 0.0
            self.inverse[self.rows, slot, :] = 0.0
            self.weights[self.rows, :, slot] = 0.0
        for s in self._with_factor(self.rows):
            self._moves(s, -1, *self.factors[s].remove(int(slot[s])))
        self.values[self.rows, :, slot] = 0.0
        self.cross[self.rows, slot] = 0.0
        self.points[self.rows, slot] = 0.0
        self.full[self.rows, slot] = False

    def _with_factor(self, rows: Indices) -> list[int]:
        if self.factors:
            return [s for s in rows.tolist() if s in self.factors]
        return []

    def _moves(self, s: int, sign: int, u: Array, z: Array) -> None:
        """Move means and variances after a replicate with a factor added (1) or removed (-1) an
        observation.
        """
        self.mean[s] += sign * u[:, None] * z
        self.variance[s] = np.maximum(self.variance[s] - sign * z**2, VARIANCE_FLOOR)
        self.gain[s] = self.factors[s].gain
        self._weigh(s)

    def _weigh(self, s: int) -> None:
        """Compute the weights of a replicate with a factor, which must be exact."""
        factor = self.factors[s]
        c = self.used
        self.weights[s, :, :c] = factor.weights(c)
        factor.check(
            self.weights[s, :, :c],
            np.abs(self.values[s, :, :c]).max(axis=1, initial=0.0),
            self.variance[s],
        )

    def reveal(self, replicate: int, t: int, action: Any, function: int, value: float) -> None:
        c = self.used
        slot = t - 1
        self.values[replicate, function, slot] += value
        if replicate in self.factors:
            self.mean[replicate, function] += self.factors[replicate].reveal(slot, function, value)
            self._weigh(replicate)
            return
        p = self.inverse[replicate, slot, :c]
        self.weights[replicate, function, :c] += value * p
        self.mean[replicate, function] += value * (p[None] @ self.cross[replicate, :c])[0]

    def refresh(self) -> None:
        """Compute P, w and the candidates' moments from scratch."""
        self._refresh(slice(None))

    def set_noise(self, lam: Array) -> None:
        """Set another λ per replicate, (S,); replicates whose λ changes are computed from
        scratch.
        """
        changed = np.flatnonzero(lam != self.noise)
        self.noise = lam.copy()
        if len(changed):
            self._refresh(changed)

    def _refresh(self, rows: slice | Indices) -> None:
        """Refresh some replicates only; the others keep their bits."""
        small = self.rows[rows][self.noise[rows] < SMALL]
        for s in small.tolist():
            self._factorise(s)
        if len(small):
            rows = self.rows[rows][self.noise[rows] >= SMALL]
        for s in self._with_factor(self.rows[rows]):
            del self.factors[s]
        c = self.used
        points = self.points[rows]
        full = self.full[rows]
        values = self.values[rows]
        cross = self.cross[rows]
        gram = np.zeros((len(points), c, c))
        for s in range(len(points)):
            gram[s] = self._gram(points[s, :c])
        pair_mask = full[:, :c, None] & full[:, None, :c]
        gram = np.where(pair_mask, gram, 0.0)
        gram[:, np.arange(c), np.arange(c)] += np.where(full[:, :c], self.noise[rows, None], 1.0)
        inverse = np.where(pair_mask, np.linalg.inv(gram), 0.0)
        # LAPACK's inverse of a symmetric matrix is symmetric up to rounding only.
        inverse = (inverse + inverse.mT) / 2
        self.inverse[rows, :c, :c] = inverse
        weights = (values[..., None, :c] @ self.inverse[rows][:, None, :c, :c])[:, :, 0]
        self.weights[rows, :, :c] = weights
        self.mean[rows] = (self.weights[rows][..., None, :c] @ cross[:, None, :c])[:, :, 0]
        explained = (cross[:, :c] * (self.inverse[rows][:, :c, :c] @ cross[:, :c])).sum(axis=1)
        self.variance[rows] = np.maximum(self.prior - explained, VARIANCE_FLOOR)

    def _factorise(self, s: int) -> None:
        """Compute a factor in place of P for one replicate, from scratch, in the order of the
        observations.
        """
        held = np.flatnonzero(self.full[s])
        if s in self.factors:
            held = self.factors[s].slots
        cross = self.cross[s, held]
        values = self.values[s][:, held]
        factor = Factor(self._gram(self.points[s, held]), self.noise[s], cross, values, held)
        self.factors[s], self.inverse[s] = factor, 0.0
        u = factor.u[:-1, : len(held)]
        z = factor.whitened
        self.mean[s] = (u[:, None] @ z)[:, 0]
        self.variance[s] = np.maximum(self.prior - (z**2).sum(axis=0), VARIANCE_FLOOR)
        self._weigh(s)

    # What may be asked ----------------------------------------------------------------------------

    def at(self, actions: Actions) -> Moments:
        if self.box is None:
            return super().at(actions)
        c = self.used
        squared = squared_lengths(actions[..., None, :] - self.points[:, None, :c])
        k = self.box.kernel.profile(squared) * self.full[:, None, :c]
        mean = (self.weights[..., None, :c] @ k[:, None].mT)[:, :, 0]
        explained = (k * self._times_inverse(k)).sum(axis=2)
        for s, factor in self.factors.items():
            explained[s] = (factor.whiten(k[s]) ** 2).sum(axis=1)
        return mean, np.maximum(1 - explained, VARIANCE_FLOOR)

    def at_observations(self) -> MomentsOfSlots:
        """Computed from K P = I - lambda P; slots with the same action agree to the bit."""
        c = self.used
        lam = self.noise[:, None]
        diagonal = np.diagonal(self.inverse[:, :c, :c], axis1=1, axis2=2)
        if self.factors:
            diagonal = diagonal.copy()
        for s, factor in self.factors.items():
            diagonal[s] = factor.inverse_diagonal(c)
        mean = self.values[..., :c] - lam[:, None] * self.weights[..., :c]
        variance = np.maximum(lam * (1 - lam * diagonal), 0.0)
        points = self.points[:, :c]
        alike = (points[:, :, None] == points[:, None]).all(axis=3).argmax(axis=2)
        return pick(mean, alike), pick(variance[:, None], alike)[:, 0], self.full[:, :c]

    def observations(self) -> Array:
        return self.points[:, : self.used]

    def covariances(self, replicate: int, function: int, indices: Indices) -> Array:
        assert isinstance(self.actions, Finite)
        c = self.used
        cross = self.cross[replicate, :c]
        if replicate in self.factors:
            z = self.factors[replicate].whitened
            explained = z[:, indices].T @ z
        else:
            explained = (cross[:, indices].T @ self.inverse[replicate, :c, :c]) @ cross
        return self.actions.rows(indices) - explained

    def _times_inverse(self, rows: Array) -> Array:
        """Return k P for rows (S, k, c): zero for replicates with a factor."""
        if len(self.factors) == self.replicates:
            return np.zeros_like(rows)
        return rows @ self.inverse[:, : self.used, : self.used]

    def jet(self, points: Array, mask: Mask | None = None) -> Jet:
        assert self.box is not None
        replicates, q, d = points.shape
        mask = np.ones((replicates, q), dtype=bool) if mask is None else mask
        n = len(taylor(d).steps)
        mesh = self.box.mesh
        if mesh is None or len(self.factors) == self.replicates:
            jet = Jet(np.zeros((replicates, self.functions, q, n)), np.zeros((replicates, q, n)))
        else:  # a factor has more digits than a mesh
            jet = interpolate_jet(mesh, self.mean, self.variance, points)
            mask = mask & np.isin(self.rows, list(self.factors))[:, None]
        if mask.any():
            c = self.used
            replicate_of = np.nonzero(mask)[0]
            jet.mean.swapaxes(1, 2)[mask], jet.variance[mask] = models_at(
                points[mask],
                replicate_of,
                self.box.kernel,
                self.points[:, :c],
                self.weights[..., :c],
                lambda rows: self._explain(
                    rows, np.searchsorted(replicate_of, np.arange(replicates + 1))
                ),
                np.arange(d),
            )
        return jet

    def _explain(self, rows: Array, first: Indices) -> tuple[Array, Array]:
        """k P of rows k, and k P k' of all pairs, for q points' covariances with the slots and
        slopes (q, 1 + d, c).

        Args:
            first: which of the points is the first of each replicate, (S + 1,).
        """
        c = self.used
        rows = rows * self.full[np.repeat(self.rows, np.diff(first)), None, :c]
        moved = np.zeros_like(rows)
        whitened = {}
        for s in range(self.replicates):
            replicate_rows = rows[first[s] : first[s + 1]]
            if s in self.factors:
                whitened[s] = self.factors[s].whiten(replicate_rows)
                moved[first[s] : first[s + 1], 0] = self.factors[s].solve_whitened(
                    whitened[s][:, 0], c
                )
            # only this replicate's rows, so that it has the same bits in any block
            elif replicate_rows.size:
                products = times(replicate_rows.reshape(-1, c), self.inverse[s, :c, :c])
                moved[first[s] : first[s + 1]] = products.reshape(replicate_rows.shape)
        explained = moved @ rows.mT
        for s, white in whitened.items():
            explained[first[s] : first[s + 1]] = white @ white.mT
        return moved[:, 0], explained
