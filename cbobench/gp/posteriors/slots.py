"""Observations of S replicates in slots, with prior covariances, and beliefs with two
derivatives.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cbobench.gp.actions import Finite
from cbobench.gp.box_actions import Box
from cbobench.gp.kernels import (
    Actions,
    Array,
    Indices,
    Mask,
    Matern,
    SquaredExponential,
    squared_lengths,
)
from cbobench.gp.mesh import Mesh
from cbobench.gp.posteriors.factor import Factor
from cbobench.gp.posteriors.interface import Jet, SharedPosterior
from cbobench.gp.taylor import taylor


class Slots(SharedPosterior):
    """The memory of an `ObservationPosterior`. It grows as needed; an empty slot holds zeros.

    Attributes:
        points: the observed actions, (S, slots, d); on a finite set the index, d = 1.
        values: (S, p, slots).
        cross: covariances with the candidates, (S, slots, M).
        full: mask of occupied slots, (S, slots).
        used: c, the number of slots in use, the same for all replicates.
    """

    def __init__(self, actions: Finite | Box, replicates: int, functions: int, slots: int) -> None:
        self.actions = actions
        self.replicates = replicates
        self.functions = functions
        self.slots = slots
        self.box = actions if isinstance(actions, Box) else None
        self.prior = np.ones(len(actions.candidates)) if isinstance(actions, Box) else actions.prior
        self.candidates = len(self.prior)
        self.rows = np.arange(replicates)

    points: Array
    values: Array
    cross: Array
    full: Mask

    def _shapes(self, capacity: int) -> dict[str, tuple[int, ...]]:
        """Shapes per replicate of the arrays that grow with the slots."""
        return {
            "cross": (capacity, self.candidates),
            "points": (capacity, self.box.d if self.box is not None else 1),
            "values": (self.functions, capacity),
            "full": (capacity,),
        }

    def _empty(self) -> None:
        self.used = 0
        self._forget_alike()
        self._allocate(min(self.slots, 64))

    def _allocate(self, capacity: int) -> None:
        """Make room for a number of slots, keeping the content."""
        for name, shape in self._shapes(capacity).items():
            fresh = np.zeros(
                (self.replicates, *shape), dtype=bool if name == "full" else np.float64
            )
            if self.used:
                held = getattr(self, name)
                fresh[tuple(slice(length) for length in held.shape)] = held
            setattr(self, name, fresh)
        self.capacity = capacity

    def reach(self, used: int) -> None:
        """Use a number of slots, at most all."""
        used = min(self.slots, used)
        while used > self.capacity:
            self._allocate(min(self.slots, 2 * self.capacity))
        self.used = max(self.used, used)

    def _put(
        self,
        rows: Indices,
        slots: Indices,
        actions: Actions,
        values: Array,
        cross: Array,
    ) -> None:
        """Put one observation of some replicates, `rows`, into their slots; the arrays hold all
        replicates.
        """
        self.values[rows, :, slots] = values[rows]
        self.cross[rows, slots] = cross[rows]
        self.points[rows, slots] = (actions if self.box is not None else actions[:, None])[rows]
        self.full[rows, slots] = True

    def _clear(self, slot: Indices) -> None:
        """Clear a slot of every replicate, (S,)."""
        self._forget_alike()
        self.values[self.rows, :, slot] = 0.0
        self.cross[self.rows, slot] = 0.0
        self.points[self.rows, slot] = 0.0
        self.full[self.rows, slot] = False

    def _forget_alike(self) -> None:
        # per slot: the first one that holds the same action
        self.alike = np.empty((self.replicates, 0), dtype=np.intp)

    def _alike(self) -> Indices:
        """Return per slot in use the first one that holds the same action, (S, c)."""
        for k in range(self.alike.shape[1], self.used):  # new slots since the last call
            same = (self.points[:, : k + 1] == self.points[:, k : k + 1]).all(axis=2)
            self.alike = np.concatenate([self.alike, same.argmax(axis=1)[:, None]], axis=1)
        return self.alike

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


FEW = 5  # rows; with 200 to 1,000 columns, as measured


class Differentiable(Slots):
    """Observations in slots with the arrays needed to differentiate beliefs.

    Attributes:
        inverse: P, (S, slots, slots); 0 for replicates with a factor.
        weights: w = P y, (S, p, slots).
        factors: by replicate.
    """

    inverse: Array
    weights: Array
    factors: dict[int, Factor]

    def jet(self, points: Array, mask: Mask | None = None) -> Jet:
        assert self.box is not None
        replicates, q, d = points.shape
        mask = np.ones((replicates, q), dtype=bool) if mask is None else mask
        n, mesh = len(taylor(d).steps), self.box.mesh
        if mesh is None or len(self.factors) == self.replicates:
            jet = Jet(np.zeros((replicates, self.functions, q, n)), np.zeros((replicates, q, n)))
        else:  # a factor has more digits than a mesh
            jet = interpolate_jet(mesh, self.mean, self.variance, points)
            mask = mask & np.isin(self.rows, list(self.factors))[:, None]
        if mask.any():
            c, replicate_of = self.used, np.nonzero(mask)[0]
            jet.mean.swapaxes(1, 2)[mask], jet.variance[mask] = models_at(
                points[mask],
                replicate_of,
                self.box.kernel,
                self.points[:, :c],
                self.weights[:, :, :c],
                lambda rows: self._explain(
                    rows, np.searchsorted(replicate_of, np.arange(replicates + 1))
                ),
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
        moved, whitened = np.zeros_like(rows), {}
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


def models_at(
    points: Array,
    replicate_of: Indices,
    kernel: SquaredExponential | Matern,
    observed: Array,
    weights: Array,
    explain: Callable[[Array], tuple[Array, Array]],
) -> tuple[Array, Array]:
    """Return Taylor models of means (q, p, n) and variances (q, n) at points (q, d) of the unit
    cube.

    Args:
        replicate_of: the replicate of every point, (q,).
        observed: points of the slots, (S, c, d).
        weights: w = (K + λI)⁻¹ y, (S, p, c), 0 for an empty slot.
        explain: maps rows (q, 1 + d, c), covariances k with the slots and their slopes, to k (K +
            λI)⁻¹, (q, c), 0 for an empty slot, and to the explained part of all pairs of rows, (q,
            1 + d, 1 + d).
    """
    q, d = points.shape
    layout = taylor(d)
    # coordinate by coordinate: whole planes, which are contiguous
    delta = np.empty((d, q, observed.shape[1]))
    np.subtract(points.T[:, :, None], observed[replicate_of].transpose(2, 0, 1), out=delta)
    k, k1, k2 = kernel.slopes(squared_lengths(np.moveaxis(delta, 0, -1)))
    rows = np.empty((q, 1 + d, delta.shape[2]))  # k and its slope
    rows[:, 0] = k
    twice = 2 * k1
    np.multiply(twice[:, None], delta.swapaxes(0, 1), out=rows[:, 1:])
    moved, explained = explain(rows)
    # d²k(x, x_i)/dx² = 4 k'' δ δᵀ + 2 k' I, in the bends of the means and of k (K + λI)⁻¹ k.
    all_weights = np.concatenate([weights[replicate_of], moved[:, None]], axis=1)
    products, end, k2 = np.empty((len(layout.rows), *k.shape)), 0, 4 * k2
    for i in range(d):  # pairs (i, i), ..., (i, d - 1)
        first, end = end, end + d - i
        np.multiply(k2 * delta[i], delta[i:], out=products[first:end])
        products[first] += twice
    bends = all_weights @ products.transpose(1, 2, 0)  # (q, p + 1, n - 1 - d)
    means = np.concatenate([all_weights[:, :-1] @ rows.mT, bends[:, :-1]], axis=2)
    variances = np.empty((q, means.shape[2]))
    variances[:, 0] = 1 - explained[:, 0, 0]
    variances[:, 1 : 1 + d] = -2 * explained[:, 0, 1:]
    variances[:, 1 + d :] = -2 * (explained[:, 1 + layout.rows, 1 + layout.columns] + bends[:, -1])
    return means, variances


def interpolate_jet(mesh: Mesh, mean: Array, variance: Array, points: Array) -> Jet:
    """Return the jet at points (S, q, d) of beliefs on a mesh: means (S, p, M) and variances (S,
    M).
    """
    models = mesh.models(np.concatenate([mean, variance[:, None]], axis=1), points)
    return Jet(models[:, :-1], models[:, -1])


def times(rows: Array, matrix: Array) -> Array:
    """Return rows (..., k, c) times a matrix (..., c, c); few rows one by one, which is faster than
    one BLAS call.
    """
    if rows.shape[-2] > FEW:
        return rows @ matrix
    return (rows[..., None, :] @ matrix[..., None, :, :])[..., 0, :]
