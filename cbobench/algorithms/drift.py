"""What methods for moving functions share: the window, or restart period, of their theorems."""

from __future__ import annotations

import math

import numpy as np

from cbobench.algorithms.base import Setting
from cbobench.errors import CellFailure
from cbobench.gp.gain import greedy_gain


def theory_window(setting: Setting, lam: float) -> int:
    """W = γ_T^(1/4) √(T / P_T), at least 1 and at most T; T where nothing moves.

    P_T is the largest over f and g_j of Σ_t |f_{t+1} - f_t|_k (Guo et al. 2022, Sec. 6; Deng et al. 2022), and γ_T the
    greedy bound of the information gain.

    Raises:
        CellFailure: replicates differ in P_T; they share a window, and it must not depend on who else is played. Or P_T
            is infinite.
    """
    horizon = setting.horizon
    moves = [norms for when, norms in setting.changes if when < horizon]
    each = np.sum(moves, axis=0).max(axis=1) if moves else np.zeros(1)
    if not np.isfinite(each).all():
        raise CellFailure("the window reads norms of the functions' moves, but one is infinite; give it as a number")
    if np.ptp(each) > 1e-9 * each.max():
        raise CellFailure(
            "the seeds' functions move by different amounts; give the window or restart period as a number"
        )
    variation = float(each[0])
    if variation == 0:
        return horizon
    gain = float(greedy_gain(setting.actions, lam, horizon)[-1])
    return min(horizon, max(1, math.ceil(gain**0.25 * math.sqrt(horizon / variation))))
