"""Paired differences: known answers, Wilcoxon's test against SciPy and by enumeration, what pairing is worth."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats

from cbobench.stats.intervals import interval
from cbobench.stats.paired_tests import EXACT, choose_family, decidable, difference, holm, mean_ranks, signed_rank


def enumerated(apart):
    """Pratt's p-value and effect by all assignments of signs."""
    apart = np.asarray(apart, dtype=float)
    ranks = stats.rankdata(np.abs(apart))[apart != 0]
    signs = np.array(list(itertools.product([-1, 1], repeat=len(ranks)))).reshape(-1, len(ranks))
    seen = (np.sign(apart[apart != 0]) * ranks).sum()
    p = (np.abs(signs @ ranks) >= abs(seen) - 1e-9).mean()
    return p, seen / stats.rankdata(np.abs(apart)).sum()


def test_a_difference_by_hand():
    a = np.array([1.0, 5, 2, 7, 4, 3])
    b = np.array([2.0, 3, 5, 3, 4, 8])  # a - b: -1, 2, -3, 4, 0, -5
    found = difference(a, b)
    assert (found.n, found.wins, found.ties, found.losses) == (6, 3, 1, 2)
    assert found.mean == pytest.approx(-0.5, abs=1e-12)
    assert found.median == pytest.approx(-0.5, abs=1e-12)
    # ranks of sizes: 0 has 1, then 2 (-), 3 (+), 4 (-), 5 (+), 6 (-); lower is better: (12 - 8) / 21
    assert found.effect == pytest.approx(4 / 21, abs=1e-12)
    # of 32 signs of {2, 3, 4, 5, 6} those with a sum as far from 0 as 4
    assert found.p == pytest.approx(enumerated(a - b)[0], abs=1e-12)
    assert (found.mean_low, found.mean_high) == interval(a - b)
    assert (found.median_low, found.median_high) == interval(a - b, "median")


def test_what_is_better_turns_wins_and_effect_but_not_the_difference():
    a, b = np.random.default_rng(0).poisson(3, size=(2, 30))
    lower, higher, back = difference(a, b), difference(a, b, "higher"), difference(b, a)
    assert (lower.mean, lower.median, lower.p) == (higher.mean, higher.median, higher.p)
    assert (lower.wins, lower.losses, lower.effect) == (higher.losses, higher.wins, -higher.effect)
    assert (back.mean, back.wins, back.p, back.effect) == (-lower.mean, lower.losses, lower.p, -lower.effect)


def test_mean_ranks_are_scipys():
    gen = np.random.default_rng(0)
    for x in (gen.normal(size=20), gen.integers(4, size=30) - 2.0, np.array([0.0, -0.0, 1.0]), np.empty(0)):
        np.testing.assert_array_equal(mean_ranks(x), stats.rankdata(x))


@pytest.mark.parametrize("n", [1, 2, 5, 12, 20, 50])
def test_without_ties_p_is_scipys_exact_one(n):
    for seed in range(5):
        x = np.random.default_rng(seed).normal(0.3, 1, size=n)
        assert signed_rank(x)[0] == pytest.approx(stats.wilcoxon(x, method="exact").pvalue, rel=1e-9)


def test_with_ties_and_zeros_p_is_the_share_of_signs():
    gen = np.random.default_rng(0)
    for n in (1, 3, 5, 8, 9, 10, 10):
        x = gen.integers(-3, 5, size=n)
        assert signed_rank(x) == pytest.approx(enumerated(x), abs=1e-12)


def test_many_pairs_take_the_normal_law():
    for seed in range(5):
        gen = np.random.default_rng(seed)
        x = gen.poisson(3, size=300) - gen.poisson(3, size=300)
        assert signed_rank(x)[0] == pytest.approx(stats.wilcoxon(x, zero_method="pratt").pvalue, rel=1e-9)
    x = np.random.default_rng(0).normal(0.12, 1, size=EXACT)
    near = signed_rank(np.append(x, 1e-9))[0]
    assert signed_rank(x)[0] == pytest.approx(near, rel=0.05)


def test_few_differences_among_many_zeros_are_exact():
    """Four of one sign are two of sixteen assignments; the normal law would say 0.046."""
    for zeros in (0, 50, EXACT + 1):
        assert signed_rank([1.0, 2.0, 3.0, 4.0] + [0.0] * zeros)[0] == pytest.approx(0.125, abs=1e-12)


def test_a_family_leaves_out_what_cannot_come_out():
    mixed = [10] * 30 + [20] * 3
    for counts in ([], [1, 2, 3, 4, 5], [6, 6], [10] * 25, [10] * 26, mixed, [6, 1, 1, 1], [3] * 9 + [40]):
        mask = choose_family(counts)
        n = np.sort(np.array(counts)[mask])
        assert not len(n) or decidable(n[0], len(n)), "each of it can come out"
        for more in {*np.array(counts)[~mask]}:
            larger = [c for c in counts if c >= more]
            assert not decidable(more, len(larger)), "and no larger one has that"
    assert choose_family([6, 1, 1, 1]).tolist() == [True, False, False, False]
    assert choose_family(mixed).sum() == 3


def test_edges():
    nothing = difference([], [])
    assert nothing.n == nothing.wins == nothing.ties == nothing.losses == 0
    assert np.isnan([nothing.mean, nothing.median, nothing.p, nothing.effect, nothing.mean_low]).all()
    one = difference([1.0], [2.0])
    assert (one.n, one.mean, one.median, one.p, one.effect, one.wins) == (1, -1, -1, 1, 1, 1)
    assert np.isnan([one.mean_low, one.mean_high, one.median_low, one.median_high]).all()
    equal = difference([3.0] * 5, [3.0] * 5)
    assert (equal.mean, equal.mean_low, equal.mean_high, equal.p, equal.effect, equal.ties) == (0, 0, 0, 1, 0, 5)
    two = difference([1.0, 2.0], [2.0, 4.0])
    assert (two.p, two.wins) == (0.5, 2)


def test_shuffled_pairs_lose_the_power_that_pairing_gives():
    """Instances differ by 10, algorithms by 0.5: same seeds show it, other seeds cannot."""
    gen = np.random.default_rng(0)
    a = 10 * gen.normal(size=(100, 20))
    b = a + 0.5 + 0.5 * gen.normal(size=(100, 20))
    assert np.mean([difference(x, y).p < 0.05 for x, y in zip(a, b, strict=True)]) > 0.95
    assert np.mean([difference(x, gen.permutation(y)).p < 0.05 for x, y in zip(a, b, strict=True)]) < 0.1


def test_holm_by_hand():
    """Ordered 0.005, 0.01, 0.03, 0.04 times 4, 3, 2, 1: 0.02, 0.03, 0.06, and 0.04 may not fall below 0.06."""
    np.testing.assert_allclose(holm([0.01, 0.04, 0.03, 0.005]), [0.03, 0.06, 0.06, 0.02], rtol=0, atol=1e-12)
    np.testing.assert_allclose(holm([0.5, 0.9]), [1, 1], rtol=0, atol=1e-12)
    np.testing.assert_allclose(holm([[0.02, np.nan], [np.nan, 0.01]]), [[0.02, np.nan], [np.nan, 0.02]], atol=1e-12)
    assert holm([]).shape == (0,)
    assert holm([0.3]) == [0.3]
