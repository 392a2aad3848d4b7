"""The bounds of R₊ and V in Theorems 1 and 2 of Zhou & Ji (2022), with the constants of their proofs (Appendices A, B).

And which assumptions of these theorems a play breaks.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cbobench.algorithms.ckb import CKB
from cbobench.algorithms.optimistic import Optimistic, OptimisticReward
from cbobench.gp.actions import Finite
from cbobench.gp.beliefs import UCB, Thompson
from cbobench.gp.kernels import Array
from cbobench.papers.events import Events
from cbobench.papers.program import Program
from cbobench.play.play import Play


def theorem_bounds(a: CKB, events: Events, horizon: int) -> dict[str, Any]:
    """Bounds at T, and for UCB after earlier rounds: columns of the audit table. Empty if no theorem applies.

    Their inequalities (12), (15) and Lemma 2, with χ(φ) >= T1 + T2 and the slack ε of Section 4:

        R₊(T) <= χ(0) + Σ_j T (G_j + ε)²/(2V_j) + 2BTε/δ
        V(T) <= 2/ρ (χ(ρ) + Σ_j V_j ρ²/2 + T (G_j + ε)²/(2V_j)) - Tε

    For UCB χ(φ) = 2 Σ_t β_t σ(x_t) + φ Σ_j 2 Σ_t β_jt σ(x_t); the bounds at T have β_T √(4(T + 2)γ_T) in the place of
    the sums (Chowdhury & Gopalan 2017, Lemma 4), with γ_T of the actions played.
    """
    if not a.capped or a.anytime:
        return {}
    cap, G = a.cap[:, :1], a.bounds[:, 1:]
    lost = 2 * a.bounds[:, :1] * a.slack / a.setting.margin(a.delta)[:, None]

    def regret(chi: Array, t: int) -> Array:
        return np.asarray(chi + _dual_step_cost(a, G, t) + t * lost)

    def violation(chi: Array, t: int) -> Array:
        pulled = (a.inverse_step * cap**2 / 2).sum(axis=1, keepdims=True)
        return np.maximum(2 / cap * (chi + pulled + _dual_step_cost(a, G, t)) - t * a.slack, 0.0)

    def priced(terms: Array) -> Array:
        return np.asarray(terms[:, :1] + cap * terms[:, 1:].sum(axis=1, keepdims=True))

    gain = np.asarray(a.posterior.gain).reshape(len(G), -1).max(axis=1)[:, None]
    deviations = np.sqrt(4 * (horizon + 2) * gain)
    if not all(isinstance(explore, UCB) for explore in a.explorations):
        chi = _chi_of_thompson(a, events, deviations, horizon)
        return {"regret_bound": regret(chi, horizon)[:, 0], "violation_bound": violation(chi, horizon)[:, 0]}
    final_sums, marks = 2 * events.width * deviations, events.marks.tolist()
    sums = [*zip(2 * events.curve, marks, strict=True)]
    return {
        "regret_bound": regret(final_sums[:, :1], horizon)[:, 0],
        "violation_bound": violation(priced(final_sums), horizon)[:, 0],
        "curve_t": [marks] * len(G),
        "curve_regret": np.concatenate([regret(s[:, :1], t) for s, t in sums], axis=1),
        "curve_violation": np.concatenate([violation(priced(s), t) for s, t in sums], axis=1),
    }


def _dual_step_cost(a: CKB, G: Array, t: int) -> Array:
    """The cost of the dual steps, Σ_j t (G_j + ε)²/(2V_j), (S, 1)."""
    return np.asarray((t * (G + a.slack) ** 2 / (2 * a.inverse_step)).sum(axis=1, keepdims=True))


def _chi_of_thompson(a: CKB, events: Events, deviations: Array, horizon: int) -> Array:
    """χ of Theorem 2, (22) before the O, (S, 1).

    1/p_4 is 1 + 2/p_3. It leaves out p_{2,t}, which exceeds p_3 in the first rounds, where no p_4 satisfies the proof.
    """
    n, m, cap = events.truth.shape[2], a.bounds.shape[1] - 1, a.cap[:, :1]
    wide = [1 + explore.concentration(horizon, n) for explore in a.explorations]  # (c^(1) + c^(2))/β
    c = events.width * np.array([wide[0], *[wide[1]] * m])
    weighted_width = c[:, :1] + cap * c[:, 1:].sum(axis=1, keepdims=True)
    inverse = 1 + 2 / (a.explorations[0].optimism() * a.explorations[1].optimism() ** m)
    kappa = 4 * a.bounds[:, :1] + 4 * cap * a.bounds[:, 1:].sum(axis=1, keepdims=True)
    luck = np.sqrt(2 * horizon * np.log(1 / a.alpha))
    return np.asarray(
        inverse * weighted_width * deviations + events.missed * kappa + inverse * weighted_width * kappa * luck
    )


OF_CKB = "CKB: "
"""Prefix of notes that concern the theorems of CKB, not the confidence bounds."""
NEARLY = 1 + 1e-6  # norms come from a least-squares fit, and δ from a solver


def find_broken_premises(play: Play, norm: Array | None, program: Program | None) -> list[list[str]]:
    """The broken assumptions of Theorems 1 and 2, per cell.

    Args:
        play: finished.
        norm: true RKHS norms of the functions, (S, 1 + m); None if unknown.
        program: the linear program of the instances, or None.
    """
    setting, algorithm = play.setting, play.algorithm
    premises: list[tuple[str, object]] = [
        ("functions move", bool(setting.changes)),
        ("functions are known by sampling alone", not play.instances.exact),
        ("feedback is delayed", setting.delayed),
        ("k(x, x) > 1", isinstance(setting.actions, Finite) and bool((setting.actions.prior > NEARLY).any())),
    ]
    if not isinstance(algorithm, OptimisticReward):
        return [["no widths"] for _ in range(setting.replicates)]
    if not isinstance(algorithm, Optimistic) and algorithm.models_constraints:
        return [["bounds are those of an inner target"] for _ in range(setting.replicates)]
    a, form = algorithm, algorithm.width_form()
    bounds, noise = a.bounds, a.noise_constants()
    q = bounds.shape[1]
    premises += [
        ("β is a constant", not isinstance(form, str)),
        ("β is scaled", isinstance(form, str) and a.beta_scale < 1),
        ("λ is not 1 + 2/T", form == "theory" and not np.isclose(a.regulariser, 1 + 2 / play.horizon, rtol=1e-12)),
        ("γ is a rate", a.gain == "rate"),
        ("R < noise", (noise * NEARLY < setting.noise[:, :q]).any(axis=1)),
    ]
    if norm is not None:
        premises += [
            ("B < |f|", bounds[:, 0] * NEARLY < norm[:, 0]),
            ("G < |g|", (bounds[:, 1:] * NEARLY < norm[:, 1:q]).any(axis=1)),
        ]
    if isinstance(a, CKB):
        premises += [(f"{OF_CKB}{text}", holds) for text, holds in _ckb_premises(play, a, program)]
    premises_by_seed = [(text, np.broadcast_to(np.asarray(holds), len(bounds))) for text, holds in premises]
    return [[text for text, holds in premises_by_seed if holds[s]] for s in range(len(bounds))]


def _ckb_premises(play: Play, a: CKB, program: Program | None) -> list[tuple[str, object]]:
    setting = play.setting
    delta, rho = setting.margin(a.delta), a.cap[:, 0]
    step = a.bounds[:, 1:] * np.sqrt(play.horizon) / a.cap
    premises: list[tuple[str, object]] = [
        ("slack > δ/2", a.slack > delta / 2 * NEARLY),
        ("ρ < 4B/δ", rho * NEARLY < 4 * a.bounds[:, 0] / delta),
        ("V is not G√T/ρ", not a.anytime and ~np.isclose(a.inverse_step, step).all(axis=1)),
        ("φ is not capped", not a.capped),
        ("epochs", a.anytime),
    ]
    if program is not None:
        mixture = (program.weights > 0).sum(axis=1) > 1
        true = np.maximum(program.margin, setting.slater)  # of a box, the program knows the candidates alone
        premises += [
            ("δ exceeds the true one", delta > true * NEARLY),
            ("ρ < 2φ*", rho < 2 * program.dual.max(axis=1, initial=0.0)),
            ("π* is a mixture (TS)", mixture & any(isinstance(e, Thompson) for e in a.explorations)),
        ]
    return premises
