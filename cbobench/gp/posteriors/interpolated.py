"""Posteriors in feature space on a box whose beliefs a mesh resolves: a round costs the same whatever t is."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cbobench.gp.box import Box
from cbobench.gp.kernels import Array
from cbobench.gp.posteriors.contract import VARIANCE_FLOOR, Jet, Mask
from cbobench.gp.posteriors.features import FeaturePosterior
from cbobench.gp.posteriors.jets import interpolated


class InterpolatedPosterior(FeaturePosterior):
    """Posteriors of p functions on a box with a mesh, for S replicates (see `contract.Posterior`).

    Means and variances at the candidates, which are the points of the mesh, are all there is to know; beliefs between
    them are interpolated (see `cbobench.gp.mesh`). Errors of 1e-14 in the kernel become some 1e-14/λ in the means.
    """

    def __init__(self, box: Box, lam: float, replicates: int, functions: int) -> None:
        assert box.mesh is not None
        self.mesh = box.mesh
        super().__init__(self.mesh.features(self.mesh.points), lam, replicates, functions, np.ones(len(box.candidates)))

    def reset(self, lam: float | None = None) -> None:
        super().reset(lam)
        self.entered: list[tuple[Array, Mask]] = []

    def _enter(self, actions: NDArray[Any], values: Array, mask: Mask | None) -> None:
        super()._enter(actions, values, mask)
        self.entered.append((actions, np.ones(self.replicates, dtype=bool) if mask is None else mask))

    def at_observations(self) -> tuple[Array, Array, Mask]:
        actions, held = zip(*self.entered, strict=True)
        return *self.at(np.stack(actions, axis=1)), np.stack(held, axis=1)

    def _phi(self, actions: NDArray[Any]) -> Array:
        return self.mesh.features(actions)

    def _spread(self, weights: Array) -> Array:
        return self.mesh.spread(weights)

    def _mean_at(self, actions: NDArray[Any]) -> Array:
        return self.mesh.values(self.mean, actions[:, None])[:, :, 0]

    def reveal(self, replicate: int, t: int, action: Any, function: int, value: float) -> None:
        factor = self.factor[replicate]
        a = np.matmul(factor, np.matmul(self.mesh.features(action[None]), factor)[0])
        self.mean[replicate, function] += value / self.lam * self.mesh.spread(a[None])[0]

    def at(self, actions: NDArray[Any]) -> tuple[Array, Array]:
        variance = self.mesh.values(self.variance[:, None], actions)[:, 0]
        return self.mesh.values(self.mean, actions), np.maximum(variance, VARIANCE_FLOOR)

    def jet(self, points: Array, wanted: Mask | None = None) -> Jet:
        return interpolated(self.mesh, self.mean, self.variance, points)
