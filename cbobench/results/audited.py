"""What an audited run says of the theory, cell by cell: the columns of `audit/*.parquet`, one table for all readers."""

from __future__ import annotations

from typing import NamedTuple

import pyarrow as pa

_NUMBER, _NUMBERS, _YES, _COUNT = pa.float64(), pa.list_(pa.float64()), pa.bool_(), pa.int64()


class Audited(NamedTuple):
    """A column: null where it does not apply (an algorithm without widths, functions that move)."""

    name: str
    type: pa.DataType
    about: str


AUDITED = (
    Audited("rounds", _COUNT, "rounds in which events were looked at; 0: the theory says nothing here (see notes)"),
    Audited("alpha", _NUMBER, "α: all bounds together are promised to hold in all rounds with probability 1 - α"),
    Audited("est", _NUMBER, "share of rounds in which |f - μ| <= βσ and |g_j - μ_j| <= β_j σ_j at all actions (E^est)"),
    Audited("est_each", _NUMBERS, "the same for f, g_1, ..., g_m alone"),
    Audited("est_always", _YES, "whether E^est held in every round: what is promised"),
    Audited("needed", _NUMBERS, "largest |f - μ|/(βσ), |g_j - μ_j|/(β_j σ_j) in all rounds; 1 is just enough"),
    Audited("optimism", _NUMBER, "share of rounds in which f̄_t - φ_t·ḡ_t at x* is at least its true value"),
    Audited("optimism_always", _YES, "whether in every round"),
    Audited("conc", _NUMBER, "share of rounds with E^conc: estimates within c^(2)σ of the means at all actions"),
    Audited("conc_promised", _NUMBER, "the mean over rounds of 1 - p_{2,t}"),
    Audited("anti", _NUMBER, "share of rounds with E^anti: estimates of the best policy optimistic by c^(1)σ"),
    Audited("anti_promised", _NUMBER, "p_3"),
    Audited("norm", _NUMBERS, "RKHS norms of (f, g_1, ..., g_m); on a box the regularised ones"),
    Audited("bound", _NUMBERS, "B, G_1, ..., G_m in use"),
    Audited("noise", _NUMBERS, "sub-Gaussian constants of the noise on (f, g_1, ..., g_m)"),
    Audited("noise_used", _NUMBERS, "R in use"),
    Audited("dual_optimum", _NUMBERS, "φ* of the finite linear program"),
    Audited("dual_cap", _NUMBER, "ρ in use"),
    Audited("margin", _NUMBER, "δ of the safest policy, a mixture of actions"),
    Audited("margin_single", _NUMBER, "δ of the safest action"),
    Audited("margin_used", _NUMBER, "δ in use"),
    Audited("mixed", _COUNT, "how many actions the best policy π* mixes"),
    Audited("gain", _NUMBER, "information gain of the actions played, at the end"),
    Audited("gain_used", _NUMBER, "γ in the width of the last round"),
    Audited("certified", _COUNT, "different actions outside the seed set that were ever called safe"),
    Audited("certified_unsafe", _COUNT, "how many of them are not"),
    Audited("regret_bound", _NUMBER, "bound of R₊ at T, with β_T √(4(T + 2)γ_T) in the place of Σ β_t σ(x_t)"),
    Audited("violation_bound", _NUMBER, "bound of V at T, likewise"),
    Audited("curve_t", pa.list_(pa.int64()), "rounds of the curves, at most 64"),
    Audited("curve_regret", _NUMBERS, "bound of R₊ after these rounds with the sums of β_t σ(x_t) (optimistic bounds)"),
    Audited("curve_violation", _NUMBERS, "bound of V after these rounds, likewise"),
    Audited("notes", pa.list_(pa.string()), "why the theorems do not apply to this cell"),
)
