"""What the theorems assume and a play does not meet, as short notes."""

from __future__ import annotations

import numpy as np

from cbobench.algorithms.ckb import CKB
from cbobench.algorithms.optimistic import Optimistic, OptimisticReward
from cbobench.gp.actions import Finite
from cbobench.gp.beliefs import Thompson
from cbobench.gp.kernels import Array
from cbobench.play.play import Play
from cbobench.problems.program import Program

OF_CKB = "CKB: "
"""Notes that begin so concern the theorems of CKB, and not the confidence bounds."""
NEARLY = 1 + 1e-6  # norms come from a least-squares fit, and δ from a solver


def premises(play: Play, norm: Array | None, program: Program | None) -> list[list[str]]:
    """The notes of each of S cells: none where everything that Theorems 1 and 2 assume is so.

    Args:
        play: finished.
        norm: true RKHS norms of the functions, (S, 1 + m); None where they are not known.
        program: the linear program of the instances, where there is one.
    """
    setting, algorithm = play.setting, play.algorithm
    found: list[tuple[str, object]] = [
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
    found += [
        ("β is a constant", not isinstance(form, str)),
        ("β is scaled", isinstance(form, str) and a.beta_scale < 1),
        ("λ is not 1 + 2/T", form == "theory" and not np.isclose(a.regulariser, 1 + 2 / play.horizon, rtol=1e-12)),
        ("γ is a rate", a.gain == "rate"),
        ("R < noise", (noise * NEARLY < setting.noise[:, :q]).any(axis=1)),
    ]
    if norm is not None:
        found += [
            ("B < |f|", bounds[:, 0] * NEARLY < norm[:, 0]),
            ("G < |g|", (bounds[:, 1:] * NEARLY < norm[:, 1:q]).any(axis=1)),
        ]
    if isinstance(a, CKB):
        found += [(f"{OF_CKB}{text}", holds) for text, holds in _of_ckb(play, a, program)]
    each = [(text, np.broadcast_to(np.asarray(holds), len(bounds))) for text, holds in found]
    return [[text for text, holds in each if holds[s]] for s in range(len(bounds))]


def _of_ckb(play: Play, a: CKB, program: Program | None) -> list[tuple[str, object]]:
    setting = play.setting
    delta, rho = setting.margin(a.delta), a.cap[:, 0]
    step = a.bounds[:, 1:] * np.sqrt(play.horizon) / a.cap
    found: list[tuple[str, object]] = [
        ("slack > δ/2", a.slack > delta / 2 * NEARLY),
        ("ρ < 4B/δ", rho * NEARLY < 4 * a.bounds[:, 0] / delta),
        ("V is not G√T/ρ", not a.anytime and ~np.isclose(a.inverse_step, step).all(axis=1)),
        ("φ is not capped", not a.capped),
        ("epochs", a.anytime),
    ]
    if program is not None:
        mixture = (program.weights > 0).sum(axis=1) > 1
        true = np.maximum(program.margin, setting.slater)  # of a box, the program knows the candidates alone
        found += [
            ("δ exceeds the true one", delta > true * NEARLY),
            ("ρ < 2φ*", rho < 2 * program.dual.max(axis=1, initial=0.0)),
            ("π* is a mixture (TS)", mixture & any(isinstance(e, Thompson) for e in a.explorations)),
        ]
    return found
