"""The Cholesky factor of a nearly noiseless posterior, for which products with an inverse are too
inexact.

With K + λI = RᵀR, the variance at x is k(x, x) - |R⁻ᵀ k_x|² and the mean (R⁻ᵀ k_x).(R⁻ᵀ y).
Triangular solves have the error of a kernel with perturbed last digits (Higham 2002, ch. 8 and 10),
whereas the error of k_x.P k_x with an inverse P grows like 1/λ, and bordering P from round to round
adds to it.

The effect of perturbed digits is estimated: with a = (K + λI)⁻¹ k_x and weights w = (K + λI)⁻¹ y, a
perturbation ε moves a mean by about ε |a| |w| and a variance by about ε (1 + |a|²). To estimate
|a|, a function with values ±1 is carried along with the others; its mean at x is a sum of ±a_i,
whose size is about |a|.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

from cbobench.errors import CellFailure
from cbobench.gp.kernels import Array, Indices

EXACT = 1e-6  # error of a posterior at which its cell fails
SMALL = 1e-3  # λ under which a posterior is nearly noiseless
BLOCK = 32  # columns per block of LAPACK's rotations
DIGITS = 0.5  # error of a kernel in units of the last place
ROUNDING = float(np.finfo(np.float64).eps)


@cache
def lapack() -> Any:
    """Import LAPACK's routines late: SciPy takes long to load, and most posteriors do not need
    them.
    """
    from scipy.linalg import lapack as routines

    return routines


class Factor:
    """K + λI = RᵀR of one replicate's observations in an order of their own, with R⁻ᵀ of all needed
    vectors.

    Adding or removing an observation costs O(c M + c²) for c observations and M candidates.

    Args:
        gram: K, (c, c).
        lam: λ.
        cross: covariances with the candidates, (c, M).
        values: (p, c).
        slots: the posterior's slot of every observation, (c,).

    Raises:
        CellFailure: λ is lost in the rounding of K, here and in `append`.
    """

    def __init__(
        self, gram: Array, lam: float, cross: Array, values: Array, slots: Indices
    ) -> None:
        self.lam = lam
        self.count = len(slots)
        self.slots = slots
        values = np.concatenate([values, signs(slots)[None]])
        self._allocate(max(64, self.count), cross.shape[1], len(values))
        c = self.count
        if c:
            root, info = lapack().dpotrf(gram + lam * np.eye(c), lower=0)
            if info:
                raise lost(lam, c)
            self.root[:c, :c] = root
            self.z[:c] = self._solve(cross)
            self.u[:, :c] = self._solve(values.T).T
        self.spread = (self.u[-1:, :c] @ self.z[:c])[0]

    root: Array  # R, in LAPACK's memory order
    z: Array  # R⁻ᵀ cross
    u: Array  # R⁻ᵀ y, of every function and of the signs
    spread: Array  # the mean of the signs at the candidates, (M,)

    def _allocate(self, capacity: int, candidates: int, functions: int) -> None:
        root = np.zeros((capacity, capacity), order="F")
        z = np.zeros((capacity, candidates))
        u = np.zeros((functions, capacity))
        if hasattr(self, "root"):
            held = len(self.root)
            root[:held, :held], z[:held], u[:, :held] = self.root, self.z, self.u
        self.root = root
        self.z = z
        self.u = u

    def _solve(self, columns: Array, transposed: int = 1) -> Array:
        """Return R⁻ᵀ times columns (c, k), or R⁻¹ if not transposed."""
        if not self.count or not columns.shape[1]:
            return np.zeros(columns.shape)
        return lapack().dtrtrs(self.root[:, : self.count], columns, trans=transposed)[0]

    def whiten(self, rows: Array) -> Array:
        """Return R⁻ᵀ k for covariances k with all slots, (..., slots) to (..., c)."""
        k = rows[..., self.slots]
        return np.ascontiguousarray(
            self._solve(k.reshape(math.prod(k.shape[:-1]), self.count).T).T
        ).reshape(k.shape)

    def solve_whitened(self, whitened: Array, slots: int) -> Array:
        """Return (K + λI)⁻¹ k at all slots from R⁻ᵀ k, (q, c) to (q, slots)."""
        solved = np.zeros((len(whitened), slots))
        solved[:, self.slots] = self._solve(whitened.T, transposed=0).T
        return solved

    def append(
        self, slot: int, to_slots: Array, variance: float, to_candidates: Array, values: Array
    ) -> tuple[Array, Array]:
        """Append an observation.

        Args:
            to_slots, to_candidates: its covariances with all slots, and with the candidates (M,).
            variance: its prior variance.
            values: (p,).

        Returns:
            Its u (p,) and z (M,): means at the candidates grow by u z, variances fall by z².
        """
        c = self.count
        if c == len(self.root):
            self._allocate(2 * c, self.z.shape[1], len(self.u))
        column = self.whiten(to_slots[None])[0]
        pivot = variance + self.lam - (column * column).sum()
        if not pivot > 8 * ROUNDING * (c + 1):  # rounding error of variance + λ - variance
            raise lost(self.lam, c + 1)
        root = np.sqrt(pivot)
        self.root[:c, c], self.root[c, c] = column, root
        self.z[c] = (to_candidates - (column[None] @ self.z[:c])[0]) / root
        values = np.append(values, signs(np.array([slot])))
        self.u[:, c] = (values - (self.u[:, :c] * column).sum(axis=1)) / root
        self.slots = np.append(self.slots, slot)
        self.count = c + 1
        self.spread += self.u[-1, c] * self.z[c]
        return self.u[:-1, c], self.z[c]

    def remove(self, slot: int) -> tuple[Array, Array]:
        """Remove the observation in a slot by rotations of R, which keep all digits.

        Returns:
            u (p,) and z (M,): means at the candidates fall by u z, variances grow by z².
        """
        c = self.count
        i = int(np.flatnonzero(self.slots == slot)[0])
        n = c - 1 - i
        z = self.z[[i]]
        u = self.u[:, [i]].T
        # Rotations that make the removed row 0 keep the rest a triangle; the last row is free.
        if n:
            later = np.asfortranarray(self.root[i + 1 : c, i + 1 : c])
            triangle, row, blocks, _ = lapack().dtpqrt(
                0, min(BLOCK, n), later, self.root[i : i + 1, i + 1 : c]
            )
            # z and u are turned with R, as they were solved by it.
            later_rows = np.concatenate([self.z[i + 1 : c], self.u[:, i + 1 : c].T], axis=1)
            removed_row = np.concatenate([z, u], axis=1)
            m = z.shape[1]
            later_rows, removed_row, _ = lapack().dtpmqrt(
                0, row, blocks, later_rows, removed_row, trans="T"
            )
            z = removed_row[:, :m]
            u = removed_row[:, m:]
            self.root[:i, i : c - 1] = self.root[:i, i + 1 : c]
            self.root[i : c - 1, i : c - 1] = np.triu(triangle)
            self.z[i : c - 1], self.u[:, i : c - 1] = later_rows[:, :m], later_rows[:, m:].T

        # Unused places hold zeros.
        self.root[:c, c - 1] = self.root[c - 1, :c] = self.z[c - 1] = self.u[:, c - 1] = 0.0
        self.slots = np.delete(self.slots, i)
        self.count = c - 1
        self.spread -= u[0, -1] * z[0]
        return u[0, :-1], z[0]

    def reveal(self, slot: int, function: int, value: float) -> Array:
        """Add a value to an observation; return the change of the mean at the candidates, (M,)."""
        unit = value * (self.slots == slot)
        added = self._solve(unit[:, None])[:, 0]
        self.u[function, : self.count] += added
        return (added[None] @ self.z[: self.count])[0]

    @property
    def whitened(self) -> Array:
        """z of the observations, (c, M)."""
        return self.z[: self.count]

    def weights(self, slots: int) -> Array:
        """Return (K + λI)⁻¹ y at all slots, (p, slots)."""
        return self.solve_whitened(self.u[:-1, : self.count], slots)

    def means(self, whitened: Array) -> Array:
        """Return means of every function and of the signs, from R⁻ᵀ k: (q, c) to (p + 1, q)."""
        return self.u[:, : self.count] @ whitened.T

    @property
    def gain(self) -> float:
        """1/2 log det(I + K/λ)."""
        pivots = self.root.diagonal()[: self.count]
        return float(np.log(np.abs(pivots) / np.sqrt(self.lam)).sum())

    def inverse_diagonal(self, slots: int) -> Array:
        """Return the diagonal of (K + λI)⁻¹ at all slots, (slots,). Costs O(c³)."""
        diagonal = np.zeros(slots)
        if self.count:
            inverse = lapack().dtrtri(self.root[: self.count, : self.count])[0]
            diagonal[self.slots] = (np.triu(inverse) ** 2).sum(axis=1)
        return diagonal

    def check(
        self, weights: Array, largest: Array, variance: Array, spread: Array | None = None
    ) -> None:
        """Estimate the error of means (in units of the largest value) and deviations at the
        candidates.

        Args:
            weights: (p, slots).
            largest: the largest absolute observed value, (p,).
            variance: at the candidates, (M,).
            spread: the mean of the signs, for points other than the candidates.

        Raises:
            CellFailure: the error is about 1e-6 or more.
        """
        spread = np.maximum(np.abs(self.spread if spread is None else spread), 1.0)
        size = np.sqrt((weights**2).sum(axis=1)) / np.where(largest > 0, largest, 1.0)
        off = DIGITS * ROUNDING * (1 + spread**2)
        error = max(
            DIGITS * ROUNDING * spread.max() * size.max(), (off / np.sqrt(variance + off)).max()
        )
        if not error < EXACT:
            raise lost(self.lam, self.count)


def signs(slots: Indices) -> Array:
    """Return ±1 per slot, without a pattern that neighbouring slots could share."""
    return np.where((slots * 0.6180339887498949) % 1 < 0.5, 1.0, -1.0)


def lost(lam: float, count: int) -> CellFailure:
    """Return the error that ends a cell whose λ is too small."""
    return CellFailure(
        f"λ = {lam:.3g} is lost in double precision with {count} observations held (error above "
        f"{EXACT:g}); "
        "give a larger lam: 1e-8 is exact without noise"
    )
