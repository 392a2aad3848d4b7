"""What is stated of boxes against seeded samples: shares of feasible points, optima, margins, and
what binds.
"""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import gammaincc

from cbobench.gp.box_actions import scrambled_sobol
from cbobench.params import build
from cbobench.problems import PROBLEMS
from cbobench.problems.formulas import high_dimensional
from cbobench.problems.formulas.box import BoxProblem
from cbobench.problems.formulas.high_dimensional import HighDimensional
from tests.helpers import build_task, long

SCRAMBLINGS = 8
# log2 of the points of a scrambling
FEWER = {"rover-60": 5, "structure-124": 5}
# of which a sample sees little: test_held_out.py
SELDOM = {"cec-g1", "cec-g7", "cec-g9", "cec-g10", "cec-g18", "cec-g19"}
BY_PARTS = {"ridge-20"}  # takes milliseconds per point
DEAR = ["rover-60", "two-hundred"]
NAMES = [
    name
    for name in PROBLEMS.names()
    if issubclass(PROBLEMS.get(name), BoxProblem)
    and name not in {"coco", "feasible-pocket-delayed", *BY_PARTS}
]


def last_digit(share: float) -> float:
    """Half a unit of the last digit that is stated."""
    return 0.5 * 10.0 ** int(Decimal(repr(share)).as_tuple().exponent)


def sampled(formula, box, power):
    """Of independent scramblings of 2^power points, each: feasible share, best feasible f, highest
    f, and margin.
    """
    for k in range(SCRAMBLINGS):
        values = formula(
            box.scale(scrambled_sobol(box.d, np.random.default_rng(k)).random_base2(power))
        )
        worst = values[:, 1:].max(axis=1)
        yield (
            (worst <= 0).mean(),
            values[worst <= 0, 0].max(initial=-np.inf),
            values[:, 0].max(),
            -worst.min(),
        )


@pytest.mark.parametrize("name", [*sorted({*NAMES} - {*DEAR}), *long(*DEAR)])
def test_what_is_stated_of_a_box_is_seen_in_a_sample(name):
    """Shares, within their error; no feasible point and no margin is better; infeasible points are
    where they bind.
    """
    task = build_task(name)
    power = FEWER.get(name, 10 if task.box.d > 10 else 13 if task.box.d > 2 else 16)
    for formula, reference in task.stated():
        shares, f, highest, margin = np.transpose([*sampled(formula, task.box, power)])
        error = max(float(shares.std(ddof=1)), 2.0**-power) / math.sqrt(SCRAMBLINGS)
        assert abs(shares.mean() - reference.share) <= 4 * error + last_digit(reference.share)
        wrong = reference.share + 10 * error + 2 * last_digit(reference.share)  # negative control
        assert abs(shares.mean() - wrong) > 4 * error + last_digit(reference.share)
        allowed = reference.accuracy * (1 + abs(reference.f))
        assert f.max() <= reference.f + allowed
        assert margin.max() <= reference.slater * (1 + 1e-9)
        # of which a sample sees little: test_high_dimensional.py
        if not isinstance(task, HighDimensional) and name not in SELDOM:
            assert (highest.max() > reference.f + allowed) == reference.binds
            assert f.max() > reference.f - 0.6 * (1 + abs(reference.f)), (
                "the sample sees the optimum"
            )
            assert margin.max() > 0.5 * reference.slater
    drawn = task.draw([np.random.default_rng(s) for s in range(3)])
    np.testing.assert_array_equal(
        drawn.binds, [any(reference.binds for _, reference in task.stated())] * 3
    )


def test_the_ridges_share_by_parts():
    """P(g_2 <= 0), of a formula that takes all points at once, times P(g_1 <= 0 | g_2 <= 0)."""
    task, gen, count, inside = build_task("ridge-20"), np.random.default_rng(0), 0, []
    for _ in range(8):
        x = task.box.scale(gen.random((2**15, 20)))
        squares = np.exp(math.log(100) * x)
        strength = 442 * (squares[:, :10] + squares[:, 10:])
        within = (high_dimensional.PRICES * strength / (1 + strength)).sum(axis=1) <= 6
        count += int(within.sum())
        inside.append(x[within][:8])
    values = np.stack([task.formula(x) for x in np.concatenate(inside)])
    assert (values[:, 2] <= 0).all()
    share, stated = count / 2**18 * float((values[:, 1] <= 0).mean()), task.reference.share
    error = share * math.sqrt(1 / count + (values[:, 1] > 0).mean() / len(values))
    assert abs(share - stated) <= 4 * error + last_digit(stated)


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith("keane")])
def test_keanes_share_in_closed_form(name):
    """-ln of a uniform variable is exponential, so their sum is gamma; the sum of uniform variables
    is Irwin-Hall.
    """
    task = build_task(name)
    d, quarter = task.box.d, Fraction(task.box.d, 4)
    product = gammaincc(d, d * math.log(10) - math.log(0.75))
    terms = ((-1) ** k * math.comb(d, k) * (quarter - k) ** d for k in range(int(quarter) + 1))
    total = float(sum(terms) / math.factorial(d))
    stated = task.reference.share
    # less than if they were independent: a large sum makes a small product rare
    overlap = product * total
    assert (
        0 <= stated - (1 - product - total) + last_digit(stated) <= overlap + 2 * last_digit(stated)
    )


@pytest.mark.parametrize("arrivals", [4.0, 8.0, 20.0, 35.0])
def test_the_queues_share_moves_with_the_arrivals(arrivals):
    task = build(PROBLEMS.get("queue-stability"), {"arrivals": arrivals})
    units = scrambled_sobol(2, np.random.default_rng(0)).random_base2(14)
    sample = float((task.formula(8 * units)[:, 1] <= 0).mean())
    assert task.optimum.share == pytest.approx(sample, abs=3e-3)
