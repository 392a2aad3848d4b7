"""FuRBO: SCBO with its trust region where the models expect feasible points (Ascia, Raponi, Bäck & Duddeck 2025)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from cbobench.algorithms import ALGORITHMS
from cbobench.algorithms.fitting import Bilog
from cbobench.algorithms.scbo import SCBO
from cbobench.gp.kernels import Array
from cbobench.params import param

FEWEST = 4  # inspectors that span a region
AT_ONCE = 2048  # inspectors, which bounds memory


@ALGORITHMS.register("furbo")
@dataclass(kw_only=True)
class FuRBO(SCBO):
    """SCBO whose trust region is the smallest box around the most promising of many inspectors.

    Inspectors lie in a ball of radius R about the best point: in a uniform direction, at a uniform distance; those
    outside the unit cube are left out. The models' means rank them: feasible ones first, by f; then the others by their
    largest g_j, each divided by its largest absolute value among inspectors. A tenth of the drawn number spans the box.
    τ_succ successes double R, τ_fail failures halve it, and under R_min everything starts anew, as with SCBO's side.

    These are the rules of the authors' code, and so are the numbers, and g as it is.

    Differs from the authors' code:

    1. The judgement of centre and success, candidates, fits and restarts are those of SCBO here.
    2. On a finite set the inspectors are the actions in the ball.
    3. Where fewer than 4 are left, as in a corner in many dimensions, the region is a cube of side R.
    """

    source = "Ascia et al. (2025)"
    about = "SCBO with its trust region around the points that the models rank best, feasible ones first"
    cost = "O(d c t² + c k²) for c candidates, k of them drawn"

    length: float = param(1.0, "first radius R, in the unit cube", above=0.0)
    longest: float = param(1.0, "R_max", above=0.0)
    successes: int = param(2, "τ_succ", at_least=1)
    failures: int | Literal["theory"] = param(3, "τ_fail; theory: SCBO's", at_least=1)
    margin: float = param(0.0, "a success improves on the incumbent by this share of its absolute value", at_least=0.0)
    bilog: Bilog = param(False, "model sign(g) ln(1 + |g|) in place of g (SCBO's)")
    inspectors: int = param(1000, "how many, for every coordinate", at_least=FEWEST)
    share: float = param(0.1, "of the inspectors that spans the region", above=0.0, at_most=1.0)

    def _bounds(self, middle: Array) -> tuple[Array, Array]:
        drawn, inside = self._inspect(middle)
        if len(inside) < FEWEST:
            return super()._bounds(middle)
        parts = np.array_split(inside, -(-len(inside) // AT_ONCE))
        means = np.concatenate([self.model.at(part)[0] for part in parts], axis=1)
        best = self.model.units(inside[rank(means)[: max(FEWEST, int(self.share * drawn))]])
        return best.min(axis=0), best.max(axis=0)

    def _inspect(self, middle: Array) -> tuple[int, NDArray[Any]]:
        """Return how many inspectors were drawn about a point (d,), and those that are actions, (q,) or (q, d)."""
        most, units = self.inspectors * len(middle), self.model.cube.units
        if units is not None:
            near = np.flatnonzero(((units - middle) ** 2).sum(axis=1) <= self.side**2)
            near = near if len(near) <= most else self.generator.permutation(near)[:most]
            return len(near), near
        directions = self.generator.standard_normal((most, len(middle)))
        distances = self.side * self.generator.random((most, 1))
        points = middle + distances * directions / np.linalg.norm(directions, axis=1, keepdims=True)
        return most, points[((points >= 0) & (points <= 1)).all(axis=1)]


def rank(means: Array) -> NDArray[np.intp]:
    """Return points from the best to the worst by means (1 + m, q): feasible by f, then others by their largest g_j."""
    scale = np.abs(means[1:]).max(axis=1, keepdims=True)
    worst = (means[1:] / np.where(scale > 0, scale, 1.0)).max(axis=0)
    return np.lexsort((np.where(worst > 0, worst, -means[0]), worst > 0))
