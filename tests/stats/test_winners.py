"""Which method is best by resampled seeds and problems: against all resamples, and of equal methods
as a negative control.
"""

from __future__ import annotations

import itertools
import statistics

import numpy as np
import pytest

from cbobench.stats.winners import DRAWS, FEW, MOST, Lead, find_lead


def gaussian(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape)


@pytest.mark.parametrize("n", [2, 3, 4])
def test_shares_are_those_of_all_resamples(n):
    values = gaussian(n, 3, n)
    values[2, 0] = values[1, 0]  # a tie in some resamples
    shares, resamples = np.zeros(3), list(itertools.product(range(n), repeat=n))
    for picked in resamples:
        medians = [statistics.median(row[i] for i in picked) for row in values.tolist()]
        winners = [j for j in range(3) if medians[j] == min(medians)]
        shares[winners] += 1 / len(winners) / len(resamples)
    shares = np.minimum(shares, 1 - 0.5**n)
    assert find_lead([values]).shares == pytest.approx(shares, abs=2.5 / np.sqrt(DRAWS))


def test_the_same_numbers_at_every_call_and_in_any_order_of_methods():
    samples = [gaussian(i, 4, 7) for i in range(FEW)]
    lead = find_lead(samples)
    assert np.array_equal(lead.shares, find_lead(samples).shares)
    turned = find_lead([values[::-1] for values in samples])
    assert np.array_equal(lead.shares, turned.shares[::-1])
    assert (turned.best, turned.rival, turned.more) == (3 - lead.best, 3 - lead.rival, lead.more)


@pytest.mark.parametrize(("k", "n", "problems"), [(2, 8, 1), (3, 8, 1), (3, 5, FEW)])
def test_of_equal_methods_each_is_best_as_often_and_none_is_often_sure(k, n, problems):
    tables = 150
    leads = [find_lead([gaussian((t, p), k, n) for p in range(problems)]) for t in range(tables)]
    shares = np.array([lead.shares for lead in leads])
    error = shares[:, 0].std() / np.sqrt(tables)
    assert abs(shares[:, 0].mean() - 1 / k) < 4 * error
    # Of two equal methods, one is ahead in 95 % of resamples in a tenth of all tables, if shares
    # are those of a normal law; three binomial deviations are allowed for.
    sure = (shares.max(axis=1) >= 0.95).mean()
    assert sure <= 0.1 + 3 * np.sqrt(0.09 / tables)


@pytest.mark.parametrize("problems", [1, FEW])
def test_a_method_that_is_better_is_found(problems):
    shift = np.array([[0.0], [3.0], [3.0]])
    lead = find_lead([gaussian((7, p), 3, 10) + shift for p in range(problems)])
    assert lead.best == 0
    assert lead.shares[0] > 0.95
    assert lead.more == 0


def test_few_seeds_are_never_sure_though_all_agree():
    apart = np.array([[0.0, 0.1, 0.2], [5.0, 5.1, 5.2]])
    assert find_lead([apart]) == Lead(0, 1, pytest.approx([1 - 2**-3, 0.0]), 2)
    assert find_lead([apart] * 2).shares[0] == 1 - 2**-6


def test_equal_values_share_and_ask_for_no_number_of_seeds():
    lead = find_lead([np.ones((2, 5))])
    assert lead.shares.tolist() == [0.5, 0.5]
    assert lead.more is None


def test_with_so_many_more_seeds_the_two_are_told_apart_in_about_half_of_all_cases():
    told = []
    for table in range(60):
        values = gaussian((11, table), 2, 200) + np.array([[0.0], [0.8]])
        lead = find_lead([values[:, :8]])
        if lead.best == 0 and lead.more and lead.more < 190:
            told.append(find_lead([values[:, : 8 + lead.more]]).shares[0] >= 0.95)
    assert len(told) > 20
    assert 0.3 < np.mean(told) < 0.95
    assert MOST > 1
