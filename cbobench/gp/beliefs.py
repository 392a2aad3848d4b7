"""What a learner believes of its functions at k candidate actions, for S replicates."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from cbobench.gp.kernels import Array

ONE = np.ones((1, 1))


@dataclass(slots=True)
class FunctionBelief:
    """The posterior of one function (arrays (S, k)) or of m functions (arrays (S, m, k)) at k candidates.

    Attributes:
        mean: posterior means.
        deviation: latent posterior standard deviations; broadcasts against `mean` (functions share it).
        width: the confidence width beta_t, (S, 1) or (S, m, 1); one deviation for methods that set none.
        path: a zero-mean joint sample with the posterior covariance, drawn for this round; None unless asked for.
    """

    mean: Array
    deviation: Array
    width: Array = field(default_factory=lambda: ONE)
    path: Array | None = None


@dataclass(slots=True)
class Belief:
    """Beliefs of the reward f and the constraints g at the same candidates.

    Attributes:
        f: arrays (S, k).
        g: arrays (S, m, k); None for a learner that models no constraint.
        shown: the round's constraint function g_t at the candidates, (S, m, k), under full information.
    """

    f: FunctionBelief
    g: FunctionBelief | None
    shown: Array | None = None

    @property
    def constraint(self) -> FunctionBelief:
        """`g`, for algorithms that always model it."""
        assert self.g is not None
        return self.g


class AtPlayed:
    """Cuts a belief over all n actions down to the played one (k = 1); holds the index arithmetic."""

    def __init__(self, replicates: int, constraints: int, n: int) -> None:
        self.rows = n * np.arange(replicates)
        self.stacks = n * np.arange(replicates * constraints).reshape(replicates, constraints)

    def __call__(self, belief: Belief, actions: NDArray[np.intp]) -> Belief:
        """The belief at one action per replicate: f arrays (S, 1), g arrays (S, m, 1)."""
        row = (self.rows + actions)[:, None]
        f = _take(belief.f, row, row)
        stack = (self.stacks + actions[:, None])[:, :, None]
        shown = None if belief.shown is None else _flat(belief.shown).take(stack)
        if belief.g is None:
            return Belief(f, None, shown)
        shared = belief.g.deviation.shape[1] == 1  # one covariance for all constraints
        return Belief(f, _take(belief.g, stack, row[:, :, None] if shared else stack), shown)


def _take(function: FunctionBelief, index: NDArray[np.intp], deviation_index: NDArray[np.intp]) -> FunctionBelief:
    path = None if function.path is None else _flat(function.path).take(index)
    deviation = _flat(function.deviation).take(deviation_index)
    return FunctionBelief(_flat(function.mean).take(index), deviation, function.width, path)


def _flat(values: Array) -> Array:
    return values.reshape(-1)
