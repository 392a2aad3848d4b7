"""A word in a class that nothing reads is refused, with the one that is meant; constants of one's
own pass.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from cbobench import params
from cbobench.algorithms.asktell import AskTell
from cbobench.errors import Misuse
from cbobench.params import param
from cbobench.problems.formulas.box import BoxProblem
from cbobench.problems.simulators.simulator import Simulator


@dataclass(kw_only=True)
class Kiln(Simulator):
    source, about = "a test", "a cost that falls"
    low, high = (0.0,), (1.0,)
    height, flow, steps = 3.0, 1, [1, 2]  # constants that only look like high and low
    table, noise_model = {"a": 1}, np.zeros(2)

    def simulate(self, x, gen):
        return [-x[0], x[0] - self.height]


def make_class(base, **attributes):
    return dataclass(kw_only=True)(type("Mine", (base,), {"__module__": "mine", **attributes}))


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        (
            {"noise": False},
            "Mine: noise = False is read by nothing; did you mean 'noisy'? (a constant of your "
            "own: ca",
        ),
        (
            {"objective": {"minimise": "cost"}},
            "Mine names one of objective and constraints; add constraints = {",
        ),
        ({"minimise": "cost"}, "f is maximised as it is returned"),
        (
            {"constraints": {"late": {"at_most": 0.1}}},
            "Mine names one of objective and constraints; add objective = {",
        ),
        ({"input": {}}, "did you mean 'inputs'?"),
        ({"bounds": [(0, 1)]}, "the corners of the box are low and high"),
        ({"one_hot": ["gas"]}, "inputs = {"),
        (
            {"repeats": 8},
            "Mine: repeats = 8 leaves the parameter's default at 10; set repeats in the suite, or "
            "write repeats",
        ),
    ],
)
def test_a_wrong_word_is_refused_with_the_right_one(attributes, message):
    with pytest.raises(Misuse) as refused:
        params.build(make_class(Kiln, **attributes), {})
    assert message in str(refused.value)
    assert str(refused.value).startswith("Mine")


def test_right_words_and_constants_of_ones_own_pass():
    params.build(Kiln, {})
    params.build(make_class(Kiln, noisy=False, target=1.0, m=1, _noise=False, logger=print), {})


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"objective": {"minimise": "cost"}}, "to minimise a cost, return -cost"),
        ({"constraints": {"late": {"at_most": 0.1}}}, "the class says how many: m = 2"),
    ],
)
def test_a_formula_has_no_names_for_its_values(attributes, message):
    with pytest.raises(Misuse, match=message):
        params.build(make_class(BoxProblem, low=(0.0,), high=(1.0,), **attributes), {})


def test_a_formula_and_a_method_are_held_to_their_words_too():
    with pytest.raises(Misuse, match="did you mean 'reference'"):
        params.build(make_class(BoxProblem, low=(0.0,), high=(1.0,), references=(1.0,)), {})

    class Stepping(AskTell):
        step: float = param(0.5, "of a step")

        def optimiser(self, facts):
            return None

    base = dataclass(kw_only=True)(Stepping)
    with pytest.raises(
        Misuse, match="step = 0.1 leaves the parameter's default at 0.5; set step in the suite"
    ):
        params.build(make_class(base, step=0.1), {})


def test_parameters_of_an_init_of_ones_own_are_refused_because_no_run_would_record_them():
    class Own(AskTell):
        def __init__(self, step=0.1):
            self.step = step

        def optimiser(self, facts):
            return None

    with pytest.raises(
        Misuse, match="Own: no suite can set 'step' of __init__, and no run records it; leave __"
    ):
        params.build(Own, {})

    @dataclass(kw_only=True)
    class Passing(Kiln):
        def __init__(self, **settings):
            super().__init__(**settings)

    assert params.build(Passing, {"repeats": 8}).repeats == 8
