"""A model fitted to real data under budgets, in 20 dimensions; the data come from scikit-learn."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from importlib.util import find_spec
from typing import Any

import numpy as np

from cbobench.errors import Misuse
from cbobench.gp.kernels import Array
from cbobench.problems import PROBLEMS
from cbobench.problems.best_known import RIDGE_20
from cbobench.problems.box import Reference, pointwise
from cbobench.problems.high_dimensional import HighDimensional, longer

PRICES = np.array([0, 0, 1, 1, 2, 2, 2, 2, 2, 2.0])  # age, sex, body mass, blood pressure, six of the blood serum
FREEDOM, MONEY = 10.0, 6.0  # most degrees of freedom, most to pay for measurements
FIRST, SECOND = np.triu_indices(10, 1)  # of the 45 pairs of features


@lru_cache
def diabetes() -> tuple[Array, Array, Array]:
    """Ten features and their 45 products, Φ (442, 55), the target, (442,), each of mean 0 and deviation 1, and ΦᵀΦ.

    Raises:
        Misuse: scikit-learn is not installed.
    """
    if find_spec("sklearn") is None:
        raise Misuse("ridge-20 needs the data of scikit-learn, not installed here; pip install 'cbobench[sklearn]'")
    from sklearn.datasets import load_diabetes

    raw, target = load_diabetes(return_X_y=True, scaled=False)
    single = (raw - raw.mean(axis=0)) / raw.std(axis=0)
    features = np.concatenate([single, single[:, FIRST] * single[:, SECOND]], axis=1)
    features = np.ascontiguousarray((features - features.mean(axis=0)) / features.std(axis=0))
    return features, (target - target.mean()) / target.std(), features.T @ features


@PROBLEMS.register("ridge-20")
@dataclass(kw_only=True)
class Ridge20(HighDimensional):
    """Weights of a ridge regression with interactions, under budgets of degrees of freedom and of measurements.

    The diabetes data of Efron et al. (2004), as scikit-learn ships them: 442 patients, ten features, disease progress a
    year later. Features, their 45 products and the target are brought to mean 0 and deviation 1: Φ (442, 55) and y. x =
    (log₁₀ w_1, ..., log₁₀ w_10, log₁₀ v_1, ..., log₁₀ v_10) in [-2.5, 0]²⁰. Column i of Φ is multiplied by w_i, the
    product of i and j by v_i v_j, and a ridge regression with penalty 1 and a free intercept fitted, so that a small
    weight drops its column. f is the share of variance explained by leave-one-out prediction, in closed form: with S
    the diagonal matrix of the weights, M = S (S Φᵀ Φ S + I)⁻¹ S and h_k = 1 / 442 + φ_kᵀ M φ_k,

        f = 1 - Σ_k ((y_k - φ_kᵀ M Φᵀ y) / (1 - h_k))² / Σ_k y_k².

    g_1 = Σ_k h_k / 10 - 1: at most ten effective degrees of freedom. g_2 = Σ_i p_i u_i / 6 - 1: measuring feature i
    costs p_i (age and sex 0, body mass and blood pressure 1, the six values of the blood serum 2 each) as far as it is
    used, u_i = 442 (w_i² + v_i²) / (1 + 442 (w_i² + v_i²)), what a ridge regression on it alone does not shrink.
    Weights, prices and budgets are ours. The value is best known, not proven; both constraints are active there.
    """

    source = "ours, data of Efron et al. (2004)"
    about = "20-dimensional, ridge regression on scikit-learn's diabetes data, budgets of freedom and measurements bind"

    lengthscale: float = longer(20)

    low, high = (-2.5,) * 20, (0.0,) * 20
    m = 2
    reference = Reference(
        x=RIDGE_20,
        f=0.5182005582287716,
        slater=0.8956223,
        share=0.00438,
        accuracy=math.inf,
        how="best known: multistart SLSQP; both constraints active; least max g where all weights are least",
        binds=True,
    )

    def identity(self) -> dict[str, Any]:
        return {"diabetes": sha256(b"".join(part.tobytes() for part in diabetes()[:2])).hexdigest()}

    @pointwise
    def formula(self, x: Array) -> Array:
        features, target, gram = diabetes()
        weights = 10.0 ** np.ascontiguousarray(x)
        w, v = weights[:10], weights[10:]
        scale = np.concatenate([w, v[FIRST] * v[SECOND]])
        design = features * scale
        inverse = np.linalg.inv(scale[:, None] * gram * scale + np.eye(len(scale)))
        shrunk = design @ inverse
        leverages = 1 / len(target) + (shrunk * design).sum(axis=-1)
        left_out = (target - shrunk @ (design.T @ target)) / (1 - leverages)
        strength = len(target) * (w * w + v * v)
        paid = (PRICES * strength / (1 + strength)).sum()
        f = 1 - (left_out * left_out).mean() / (target * target).mean()
        return np.array([f, leverages.sum() / FREEDOM - 1, paid / MONEY - 1])
