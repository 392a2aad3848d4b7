"""Paired differences: known answers, Wilcoxon's test against SciPy and by enumeration, what pairing
is worth.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats

from cbobench.stats.intervals import interval
from cbobench.stats.paired_tests import (
    EXACT,
    choose_family,
    compare_sides,
    decidable,
    difference,
    find_beaten,
    find_winner,
    holm,
    signed_rank,
)


def enumerated(apart):
    """Pratt's p-value and effect by all assignments of signs."""
    apart = np.asarray(apart, dtype=float)
    ranks = stats.rankdata(np.abs(apart))[apart != 0]
    signs = np.array(list(itertools.product([-1, 1], repeat=len(ranks)))).reshape(-1, len(ranks))
    rank_sum = (np.sign(apart[apart != 0]) * ranks).sum()
    p = (np.abs(signs @ ranks) >= abs(rank_sum) - 1e-9).mean()
    return p, rank_sum / stats.rankdata(np.abs(apart)).sum()


def test_a_difference_by_hand():
    a = np.array([1.0, 5, 2, 7, 4, 3])
    b = np.array([2.0, 3, 5, 3, 4, 8])  # a - b: -1, 2, -3, 4, 0, -5
    compared = difference(a, b)
    assert (compared.n, compared.wins, compared.ties, compared.losses) == (6, 3, 1, 2)
    assert compared.mean == pytest.approx(-0.5, abs=1e-12)
    assert compared.median == pytest.approx(-0.5, abs=1e-12)
    # ranks of sizes: 0 has 1, then 2 (-), 3 (+), 4 (-), 5 (+), 6 (-); lower is better: (12 - 8) /
    # 21
    assert compared.effect == pytest.approx(4 / 21, abs=1e-12)
    # of 32 signs of {2, 3, 4, 5, 6} those with a sum as far from 0 as 4
    assert compared.p == pytest.approx(enumerated(a - b)[0], abs=1e-12)
    assert (compared.mean_low, compared.mean_high) == interval(a - b)
    assert (compared.median_low, compared.median_high) == interval(a - b, "median")


def test_what_is_better_turns_wins_and_effect_but_not_the_difference():
    a, b = np.random.default_rng(0).poisson(3, size=(2, 30))
    lower, higher, back = difference(a, b), difference(a, b, "higher"), difference(b, a)
    assert (lower.mean, lower.median, lower.p) == (higher.mean, higher.median, higher.p)
    assert (lower.wins, lower.losses, lower.effect) == (higher.losses, higher.wins, -higher.effect)
    assert (back.mean, back.wins, back.p, back.effect) == (
        -lower.mean,
        lower.losses,
        lower.p,
        -lower.effect,
    )


@pytest.mark.parametrize("n", [1, 2, 5, 12, 20, 50])
def test_without_ties_p_is_scipys_exact_one(n):
    for seed in range(5):
        x = np.random.default_rng(seed).normal(0.3, 1, size=n)
        assert signed_rank(x)[0] == pytest.approx(
            stats.wilcoxon(x, method="exact").pvalue, rel=1e-9
        )


def test_with_ties_and_zeros_p_is_the_share_of_signs():
    gen = np.random.default_rng(0)
    for n in (1, 3, 5, 8, 9, 10, 10):
        x = gen.integers(-3, 5, size=n)
        assert signed_rank(x) == pytest.approx(enumerated(x), abs=1e-12)


def test_many_pairs_take_the_normal_law():
    for seed in range(5):
        gen = np.random.default_rng(seed)
        x = gen.poisson(3, size=300) - gen.poisson(3, size=300)
        assert signed_rank(x)[0] == pytest.approx(
            stats.wilcoxon(x, zero_method="pratt").pvalue, rel=1e-9
        )
    x = np.random.default_rng(0).normal(0.12, 1, size=EXACT)
    near = signed_rank(np.append(x, 1e-9))[0]
    assert signed_rank(x)[0] == pytest.approx(near, rel=0.05)


def test_few_differences_among_many_zeros_are_exact():
    """Four of one sign are two of sixteen assignments; the normal law would say 0.046."""
    for zeros in (0, 50, EXACT + 1):
        assert signed_rank([1.0, 2.0, 3.0, 4.0] + [0.0] * zeros)[0] == pytest.approx(
            0.125, abs=1e-12
        )


def test_a_family_leaves_out_what_cannot_come_out():
    mixed = [10] * 30 + [20] * 3
    for counts in (
        [],
        [1, 2, 3, 4, 5],
        [6, 6],
        [10] * 25,
        [10] * 26,
        mixed,
        [6, 1, 1, 1],
        [3] * 9 + [40],
    ):
        mask = choose_family(counts)
        n = np.sort(np.array(counts)[mask])
        assert not len(n) or decidable(n[0], len(n)), "each of it can come out"
        for excluded in {*np.array(counts)[~mask]}:
            larger = [c for c in counts if c >= excluded]
            assert not decidable(excluded, len(larger)), "and no larger one has that"
    assert choose_family([6, 1, 1, 1]).tolist() == [True, False, False, False]
    assert choose_family(mixed).sum() == 3


def test_edges():
    empty = difference([], [])
    assert empty.n == empty.wins == empty.ties == empty.losses == 0
    assert np.isnan([empty.mean, empty.median, empty.p, empty.effect, empty.mean_low]).all()
    single = difference([1.0], [2.0])
    assert (single.n, single.mean, single.median, single.p, single.effect, single.wins) == (
        1,
        -1,
        -1,
        1,
        1,
        1,
    )
    assert np.isnan(
        [single.mean_low, single.mean_high, single.median_low, single.median_high]
    ).all()
    equal = difference([3.0] * 5, [3.0] * 5)
    assert (equal.mean, equal.mean_low, equal.mean_high, equal.p, equal.effect, equal.ties) == (
        0,
        0,
        0,
        1,
        0,
        5,
    )
    two = difference([1.0, 2.0], [2.0, 4.0])
    assert (two.p, two.wins) == (0.5, 2)


def test_holm_by_hand():
    """Ordered 0.005, 0.01, 0.03, 0.04 times 4, 3, 2, 1: 0.02, 0.03, 0.06, and 0.04 may not fall
    below 0.06.
    """
    np.testing.assert_allclose(
        holm([0.01, 0.04, 0.03, 0.005]), [0.03, 0.06, 0.06, 0.02], rtol=0, atol=1e-12
    )
    np.testing.assert_allclose(holm([0.5, 0.9]), [1, 1], rtol=0, atol=1e-12)
    np.testing.assert_allclose(
        holm([[0.02, np.nan], [np.nan, 0.01]]), [[0.02, np.nan], [np.nan, 0.02]], atol=1e-12
    )
    assert holm([]).shape == (0,)
    assert holm([0.3]) == [0.3]


def test_sides_of_all_pairs_are_those_of_each_pair():
    """Against SciPy, and against the two-sided test where there are ties, zeros, gaps, or more
    pairs than are exact.
    """
    gen = np.random.default_rng(0)
    p, counts = compare_sides(x := gen.normal(size=(5, 12)))
    for i, j in itertools.permutations(range(5), 2):
        expected = stats.wilcoxon(x[i], x[j], alternative="greater", method="exact").pvalue
        assert p[i, j] == pytest.approx(expected, rel=1e-9)
    assert np.isnan(np.diag(p)).all()
    tied = gen.poisson(3, size=(6, 11)).astype(float)
    tied[0, 3] = tied[2, :2] = np.nan
    for values in (tied, gen.normal(size=(3, EXACT + 20))):
        p, counts = compare_sides(values)
        for i, j in itertools.permutations(range(len(values)), 2):
            apart = values[i] - values[j]
            apart = apart[~np.isnan(apart)]
            assert counts[i, j] == len(apart)
            two_sided, effect = signed_rank(apart)
            assert min(1, 2 * min(p[i, j], p[j, i])) == pytest.approx(two_sided, abs=1e-12)
            assert effect == 0 or (p[i, j] < p[j, i]) == (effect > 0)


@pytest.mark.parametrize("shape", [(0, 0), (1, 5), (3, 0), (2, 1)])
def test_where_nothing_can_be_told_nothing_is_beaten(shape):
    beaten, is_judged = find_beaten(*compare_sides(np.arange(float(np.prod(shape))).reshape(shape)))
    assert not beaten.any()
    assert not is_judged.any()


def test_who_is_beaten_by_hand():
    """The second of three is worse in all ten seeds, p = 1/1024; the third is better or worse by
    turns.
    """
    first = np.arange(10.0)
    turns = first + np.where(np.arange(10) % 2, 0.3, -0.2)
    p, counts = compare_sides([first, first + 1, turns])
    assert p[1, 0] == p[1, 2] == 2.0**-10
    assert [part.tolist() for part in find_beaten(p, counts)] == [[False, True, False], [True] * 3]


def test_who_is_the_winner_by_hand():
    """Every other one is worse in all ten seeds; beside a third that is better or worse by turns
    nobody wins.
    """
    first = np.arange(10.0)
    turns = first + np.where(np.arange(10) % 2, 0.3, -0.2)
    assert find_winner(*compare_sides([first + 1, first, first + 2])) == (1, True)
    assert find_winner(*compare_sides([first, first + 1, turns])) == (None, True)
    assert find_winner(*compare_sides([first, first])) == (None, True)
    gaps = np.where(np.arange(10) < 4, first + 3, np.nan)
    assert find_winner(*compare_sides([first, first + 1, gaps])) == (None, False), "four seeds"


@pytest.mark.parametrize("methods", [2, 3, 8])
def test_a_winner_is_the_best_and_equal_methods_seldom_have_one(methods):
    """Of two that are equal either is found in at most 5 % of tables, of more nearly none."""
    gen = np.random.default_rng(methods)
    found = {0.0: [], 3.0: []}
    for shift in found:
        for _ in range(400):
            values = gen.standard_normal((methods, 20)) + gen.normal(size=20)
            values[1:] += shift
            found[shift].append(find_winner(*compare_sides(values))[0])
    named = np.mean([winner is not None for winner in found[0.0]])
    assert named <= 0.1 + 3 * np.sqrt(0.09 / 400)
    assert np.mean([winner == 0 for winner in found[3.0]]) > 0.95
    assert {*found[3.0]} <= {0, None}, "never a worse one"


@pytest.mark.parametrize(
    ("methods", "needed"), [(2, 5), (4, 6), (7, 7), (13, 8), (26, 9), (52, 10)]
)
def test_the_seeds_that_tell_who_is_beaten(methods, needed):
    """(methods - 1) / 2^n must be below 5 %."""
    for seeds, decides in ((needed - 1, False), (needed, True)):
        beaten, is_judged = find_beaten(
            *compare_sides(np.arange(methods)[:, None] + np.zeros(seeds))
        )
        assert beaten.tolist() == [False] + [decides] * (methods - 1)
        assert is_judged.tolist() == [decides] * methods


def test_clear_losers_and_too_few_pairs_make_no_test_harder():
    """Of two that are near, nine of ten seeds tell, beside ten that are far behind or hold three
    seeds only.
    """
    gen = np.random.default_rng(1)
    best = gen.normal(size=10)
    worse = best + np.append(np.linspace(1, 2, 9), -0.1)
    assert find_beaten(*compare_sides([best, worse]))[0].tolist() == [False, True]
    for far in (best + 50, np.where(np.arange(10) < 3, best, np.nan)):
        beaten = find_beaten(*compare_sides([best, worse, *(far + i for i in range(10))]))[0]
        assert beaten[:2].tolist() == [False, True]


@pytest.mark.parametrize("methods", [2, 3, 8])
@pytest.mark.parametrize("seeds", [10, 20])
@pytest.mark.parametrize("law", ["standard_normal", "standard_cauchy", "standard_exponential"])
def test_the_best_keep_their_stars_in_95_percent_and_the_worse_lose_them(methods, seeds, law):
    gen = np.random.default_rng([methods, seeds])
    lost = {0.0: [], 3.0: []}
    for shift in lost:
        for _ in range(200):
            values = getattr(gen, law)((methods, seeds)) + gen.normal(size=seeds)
            values[1:] += shift
            lost[shift].append(find_beaten(*compare_sides(values))[0])
    assert np.mean(lost[0.0]) < 0.08
    assert np.mean(np.array(lost[3.0])[:, 0]) < 0.08, "the best"
    assert np.mean(np.array(lost[3.0])[:, 1:]) > (0.15 if law == "standard_cauchy" else 0.8)
