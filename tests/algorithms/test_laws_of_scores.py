"""Scores: truncation by the plain rule, and the example of the guide."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass

import numpy as np
import pytest

import cbobench.algorithms.optimistic
from cbobench.algorithms.optimistic import Optimistic
from cbobench.errors import Misuse
from cbobench.gp.beliefs import Truncated
from cbobench.params import build
from tests.conftest import ROOT
from tests.helpers import actions, make, play, problem

TASKS = {
    "finite": {"name": "rkhs-1d", "full_information": True},
    "box": {"name": "feasible-pocket", "candidates": 64, "full_information": True},
}


def test_the_example_of_the_guide_is_epbo():
    """What CONTRIBUTING teaches is a kinked score: on a box too it plays what EPBO plays."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    code = textwrap.dedent(
        text[text.index("   ```python") : text.index("   ```\n")].split("\n", 1)[1]
    )
    names = vars(cbobench.algorithms.optimistic) | {"Array": np.ndarray}
    exec(code.replace('@ALGORITHMS.register("my-method")\n', ""), names)
    example, epbo = build(names["MyMethod"], {}), make("epbo")
    example.name = epbo.name
    for task in TASKS.values():
        example_plays, theirs = (
            actions(play(problem(**task), algorithm, horizon=15)[1])
            for algorithm in (example, epbo)
        )
        np.testing.assert_array_equal(example_plays, theirs)


def random_terms(seed=0):
    rng = np.random.default_rng(seed)
    f, g = 3 * rng.standard_normal((4, 200)), 3 * rng.standard_normal((4, 2, 200))
    return f, np.full((4, 1), 1.7), rng.random((4, 2)) * 5, g, np.full((4, 2, 1), 0.9)


def test_truncation_keeps_exact_ties():
    """All actions above B, and all below -B, tie to the last bit; smooth parts minus a kink do
    not.
    """
    f, bound, _, _, _ = random_terms()
    z = Truncated(f, bound)
    assert set(z.total()[f > bound]) == {1.7}
    assert set(z.total()[f < -bound]) == {-1.7}
    np.testing.assert_array_equal(z.total()[np.abs(f) < bound], f[np.abs(f) < bound])
    assert len(set(z.kinks().total()[f > bound])) > 1, "negative control"


def test_truncated_terms_by_the_plain_rule():
    f, bound, price, g, limit = random_terms()
    z = Truncated(f, bound).minus(price, g, limit)
    expected = np.clip(f, -1.7, 1.7) - sum(
        price[:, [j]] * np.clip(g[:, j], -0.9, 0.9) for j in range(2)
    )
    np.testing.assert_allclose(z.total(), expected, rtol=1e-13)
    np.testing.assert_allclose(z.kinks().total(), expected, atol=1e-12)
    kinks = z.kinks()
    assert kinks.kinked.shape == (4, 3, 200)
    assert (kinks.price >= 0).all()
    unpriced = Truncated(f, bound).minus(0 * price, g, limit)
    np.testing.assert_array_equal(unpriced.total(), Truncated(f, bound).total())


def test_an_algorithm_without_a_score_is_refused_in_one_line():
    @dataclass(kw_only=True)
    class Nothing(Optimistic):
        """Defines neither."""

    with pytest.raises(Misuse, match="Nothing defines neither parts nor score; write one of them"):
        build(Nothing, {}).check(problem("rkhs-1d"))
