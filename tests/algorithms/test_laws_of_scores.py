"""Laws of scores: written once, the same to the bit however they are asked for, and kinked where they have kinks."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass

import numpy as np
import pytest

import cbobench.algorithms.optimistic
from cbobench.algorithms import ALGORITHMS
from cbobench.algorithms.optimistic import Optimistic
from cbobench.algorithms.references import IGPUCB
from cbobench.algorithms.score import ScoreAlgorithm
from cbobench.check import scores
from cbobench.check.trial import Trial
from cbobench.errors import Misuse
from cbobench.gp.parts import Parts, Truncated
from cbobench.params import build
from tests.conftest import ROOT
from tests.helpers import actions, make, play, problem

SCORED = [name for name in ALGORITHMS.names() if issubclass(ALGORITHMS.get(name), ScoreAlgorithm)]
FINITE = {"name": "rkhs-1d", "full_information": True}
TASKS = {"finite": FINITE, "box": {"name": "feasible-pocket", "candidates": 64, "full_information": True}}
OFFERS = {where: problem(**task).offers() for where, task in TASKS.items()}
PLAYABLE = [
    (name, where) for where, offers in OFFERS.items() for name in SCORED if ALGORITHMS.get(name).needs <= offers
]


@pytest.mark.parametrize("name", SCORED)
def test_a_score_is_written_once(name):
    assert not list(scores.defined_once(ALGORITHMS.get(name)))


class Twice(IGPUCB):
    def parts(self, belief):
        return Parts.of(1 + self.explore_f(belief.f))


def trial(cls, name, where):
    return Trial(cls, name, problem(**TASKS[where]), f"a {where}", horizon=12)


@pytest.mark.parametrize(("name", "where"), PLAYABLE)
def test_every_form_of_a_score_is_the_same_score(name, where):
    assert not list(scores.pure(trial(ALGORITHMS.get(name), name, where)))


@pytest.mark.parametrize("name", [name for name, where in PLAYABLE if where == "box"])
def test_kinks_are_parts(name):
    cls = ALGORITHMS.get(name)
    assert not list(scores.kinks_are_parts(trial(cls, name, "box")))
    if scores.defined_hooks(cls) == {"parts"}:
        algorithm, seen = make(name), []
        begin = algorithm.begin

        def spy(t, belief):
            begin(t, belief)
            seen.append(algorithm.parts(belief).kinks().kinked.shape[1])

        algorithm.begin = spy
        play(problem(**TASKS["box"]), algorithm, horizon=3)
        assert max(seen) > 0


def test_two_formulas_are_caught():
    assert list(scores.defined_once(Twice))
    (found,) = scores.pure(trial(Twice, "twice", "finite"))
    assert "parts() and score() are two formulas" in found.what


def test_the_example_of_the_guide_is_epbo():
    """What CONTRIBUTING teaches is a kinked score: on a box too it plays what EPBO plays."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    code = textwrap.dedent(text[text.index("   ```python") : text.index("   ```\n")].split("\n", 1)[1])
    names = vars(cbobench.algorithms.optimistic) | {"Array": np.ndarray}
    exec(code.replace('@ALGORITHMS.register("my-method")\n', ""), names)
    example, epbo = build(names["MyMethod"], {}), make("epbo")
    example.name = epbo.name
    for where in TASKS.values():
        mine, theirs = (actions(play(problem(**where), one, horizon=15)[1]) for one in (example, epbo))
        np.testing.assert_array_equal(mine, theirs)


def random_terms(seed=0):
    rng = np.random.default_rng(seed)
    f, g = 3 * rng.standard_normal((4, 200)), 3 * rng.standard_normal((4, 2, 200))
    return f, np.full((4, 1), 1.7), rng.random((4, 2)) * 5, g, np.full((4, 2, 1), 0.9)


def test_truncation_keeps_exact_ties():
    """All actions above B, and all below -B, tie to the last bit; smooth parts minus a kink do not."""
    f, bound, _, _, _ = random_terms()
    z = Truncated(f, bound)
    assert set(z.total()[f > bound]) == {1.7}
    assert set(z.total()[f < -bound]) == {-1.7}
    np.testing.assert_array_equal(z.total()[np.abs(f) < bound], f[np.abs(f) < bound])
    assert len(set(z.kinks().total()[f > bound])) > 1, "negative control"


def test_truncated_terms_by_the_plain_rule():
    f, bound, price, g, limit = random_terms()
    z = Truncated(f, bound).minus(price, g, limit)
    expected = np.clip(f, -1.7, 1.7) - sum(price[:, [j]] * np.clip(g[:, j], -0.9, 0.9) for j in range(2))
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
