"""Performance and data profiles against fixed references, so that one algorithm's profile needs no
other algorithm.

Dolan & Moré (2002) take ratios to the best of the algorithms at hand, and Moré & Wild (2009)
targets from it: adding an algorithm then moves every curve. Here references and targets belong to
the problem, as in COCO (Hansen et al. 2021). NaN stands for what was not reached or is not defined,
such as a failed cell or a simple regret before the first
feasible action: it solves nothing, and it still counts as a problem.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from cbobench.errors import Misuse
from cbobench.stats.intervals import Array, numbers


def performance_profile(costs: ArrayLike, reference: ArrayLike, ratios: ArrayLike) -> Array:
    """Share of problems on which an algorithm's cost is at most `ratio` times the problem's
    reference.

    Args:
        costs: (algorithms, problems), lower is better, NaN where there is none.
        reference: (problems,), positive: the cost that counts as 1.
        ratios: (k,).

    Returns:
        (algorithms, k).

    Raises:
        Misuse: shapes that do not fit, no problem, a reference that is not positive.
    """
    cost = np.atleast_2d(numbers(costs, "costs"))
    tau = numbers(ratios, "ratios")
    unit = numbers(reference, "reference")
    # Written so that NaN is refused, too.
    if not (unit > 0).all():
        raise Misuse(f"reference holds {unit[~(unit > 0)].flat[0]}; ratios need positive ones")
    if cost.shape[1:] != unit.shape or len(unit) == 0:
        raise Misuse(
            f"costs have shape {cost.shape}; allowed: (algorithms, {len(unit)} references), at "
            "least one"
        )
    # NaN compares as false: a failed cell solves nothing, and still counts.
    return (cost[:, :, None] <= tau * unit[:, None]).mean(axis=1)


def data_profile(first: ArrayLike, at: ArrayLike) -> Array:
    """Share of (problem, target) pairs solved by each round, as COCO draws them.

    Args:
        first: rounds to target of one algorithm, any shape (problems, seeds, targets); infinite or
            NaN for never.
        at: rounds, (k,).

    Returns:
        (k,).
    """
    rounds = np.asarray(first, dtype=np.float64).ravel()
    when = numbers(at, "rounds")
    if len(rounds) == 0:
        raise Misuse("no (problem, target) pair is given; a profile needs at least one")
    # What was never reached stays in the number that is divided by.
    solved = np.sort(rounds[np.isfinite(rounds)])
    return np.searchsorted(solved, when, side="right") / len(rounds)
