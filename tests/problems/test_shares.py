"""Stated shares of feasible points: seeded samples of the box, closed forms where there are some, and a control."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import gammaincc

from cbobench.gp.box_actions import scrambled_sobol
from cbobench.params import build
from cbobench.problems import PROBLEMS, ridge
from cbobench.problems.box import BoxProblem

SCRAMBLINGS = 8
FEWER = {"robust-speed-reducer": 11, "rover-60": 5, "structure-124": 5}  # log2 of the points of a scrambling
BY_PARTS = {"ridge-20"}  # takes milliseconds per point
NAMES = [
    name
    for name in PROBLEMS.names()
    if issubclass(PROBLEMS.get(name), BoxProblem) and name not in {"coco", "feasible-pocket-delayed", *BY_PARTS}
]


def made(name):
    return build(PROBLEMS.get(name), {})


def last_digit(share: float) -> float:
    """Half a unit of the last digit that is stated."""
    return 0.5 * 10.0 ** int(Decimal(repr(share)).as_tuple().exponent)


def sampled(name: str) -> list[tuple[float, float, float]]:
    """(stated share, sampled share, its standard error by independent scramblings), of each phase."""
    task, found = made(name), []
    power = FEWER.get(name, 10 if task.box.d > 10 else 13 if task.box.d > 2 else 16)
    for formula, reference in task.stated():
        each = []
        for k in range(SCRAMBLINGS):
            unit = scrambled_sobol(task.box.d, np.random.default_rng(k)).random_base2(power)
            each.append(float((formula(task.box.scale(unit))[:, 1:] <= 0).all(axis=1).mean()))
        error = max(float(np.std(each, ddof=1)), 2.0**-power) / math.sqrt(SCRAMBLINGS)
        found.append((reference.share, float(np.mean(each)), error))
    return found


@pytest.mark.parametrize("name", NAMES)
def test_the_stated_share_is_that_of_a_sample(name):
    for stated, share, error in sampled(name):
        assert abs(share - stated) <= 4 * error + last_digit(stated)
        wrong = stated + 10 * error + 2 * last_digit(stated)  # negative control
        assert abs(share - wrong) > 4 * error + last_digit(stated)


def test_the_ridges_share_by_parts():
    """P(g_2 <= 0), of a formula that takes all points at once, times P(g_1 <= 0 | g_2 <= 0)."""
    task, gen, count, kept = made("ridge-20"), np.random.default_rng(0), 0, []
    for _ in range(8):
        x = task.box.scale(gen.random((2**15, 20)))
        squares = np.exp(math.log(100) * x)
        strength = 442 * (squares[:, :10] + squares[:, 10:])
        within = (ridge.PRICES * strength / (1 + strength)).sum(axis=1) <= 6
        count += int(within.sum())
        kept.append(x[within][:8])
    values = np.stack([task.formula(x) for x in np.concatenate(kept)])
    assert (values[:, 2] <= 0).all()
    both, stated = count / 2**18 * float((values[:, 1] <= 0).mean()), task.reference.share
    error = both * math.sqrt(1 / count + (values[:, 1] > 0).mean() / len(values))
    assert abs(both - stated) <= 4 * error + last_digit(stated)


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith("keane")])
def test_keanes_share_in_closed_form(name):
    """-ln of a uniform variable is exponential, so their sum is gamma; the sum of uniform variables is Irwin-Hall."""
    task = made(name)
    d, quarter = task.box.d, Fraction(task.box.d, 4)
    product = gammaincc(d, d * math.log(10) - math.log(0.75))
    terms = ((-1) ** k * math.comb(d, k) * (quarter - k) ** d for k in range(int(quarter) + 1))
    total = float(sum(terms) / math.factorial(d))
    stated = task.reference.share
    overlap = product * total  # less than if they were independent: a large sum makes a small product rare
    assert 0 <= stated - (1 - product - total) + last_digit(stated) <= overlap + 2 * last_digit(stated)


@pytest.mark.parametrize("arrivals", [4.0, 8.0, 20.0, 35.0])
def test_the_queues_share_moves_with_the_arrivals(arrivals):
    task = build(PROBLEMS.get("queue-stability"), {"arrivals": arrivals})
    units = scrambled_sobol(2, np.random.default_rng(0)).random_base2(14)
    sample = float((task.formula(8 * units)[:, 1] <= 0).mean())
    assert task.optimum.share == pytest.approx(sample, abs=3e-4)
