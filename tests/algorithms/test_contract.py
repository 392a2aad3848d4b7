"""Laws that every registered algorithm obeys on every registered problem; a new one is entered by
being registered.
"""

from __future__ import annotations

import numpy as np
import pytest

from cbobench.algorithms import ALGORITHMS
from cbobench.algorithms.base import OneRun
from cbobench.algorithms.references import Random
from cbobench.check.methods import check_documentation
from cbobench.check.trial import difference, play_to_arrays, select_replicate
from cbobench.errors import CellFailure
from cbobench.metrics import METRICS
from cbobench.params import build
from cbobench.play.play import Play, PlayOptions
from cbobench.problems import PROBLEMS
from cbobench.problems.formulas.cec2006 import HeldOut
from cbobench.problems.formulas.high_dimensional import HighDimensional
from cbobench.problems.simulators.mixed import MixedDesign
from tests.helpers import actions, entry, make, play, problem

EXAMPLES = {
    "rkhs-1d": [{}, {"constraint": "independent"}],
    "rkhs": [{"d": 2, "n": 40, "m": 2, "kernel": "matern52"}],
    "light-sensors": [{"data": "look-alike"}],
    "stocks": [{"data": "look-alike"}],
    "feasible-pocket": [
        {"candidates": 64},
        {"grid": 25},
        {"full_information": True, "candidates": 64},
    ],
    "feasible-pocket-delayed": [{"candidates": 64, "delay": 3.0}, {"grid": 25, "delay": 3.0}],
    "feasible-pocket-drift": [{"candidates": 64, "first_change": 10, "second_change": 20}],
    "cloud-latency": [{"days": 8}],
    "expert-guidance": [{}, {"full_information": False}],
    "no-fixed-penalty": [{"candidates": 64}, {"grid": 41, "penalty": "exponential"}],
    "queue-stability": [{"candidates": 64}, {"grid": 8}],
    "rate-allocation": [{"candidates": 64}, {"grid": 3, "noise_g": 0.1155}],
    "tuning-under-deadline": [{}],
    "gardner-1": [{"candidates": 64}, {"grid": 15}],
    "gramacy": [{"candidates": 64}, {"grid": 15}],
    "hartmann-4": [{"candidates": 64}],
    "pressure-vessel": [{"candidates": 64}],
    "speed-reducer": [{"candidates": 64}],
    "tension-spring": [{"candidates": 64}],
    "welded-beam": [{"candidates": 64}],
    "ackley-10": [{"candidates": 64}],
}


ALL = {"name": "rkhs-1d", "full_information": True}  # offers whatever an algorithm may need
TASKS = [(p, s) for p in PROBLEMS.names() for s in EXAMPLES.get(p, [])]
DEAR = {
    "pressure-vessel",
    "speed-reducer",
    "tension-spring",
    "welded-beam",
}
"""Problems like another one that take long to prepare; the nightly test of every pair has them,
too.
"""


def test_every_problem_has_an_example():
    # Which need a file or a package: see test_data.py, test_coco.py and test_measured.py in
    # tests/problems/.
    missing = {"table", "coco", "forest"} | {
        name for name in PROBLEMS.names() if name.startswith("measured-")
    }
    larger = {
        name
        for name in PROBLEMS.names()
        if issubclass(PROBLEMS.get(name), HighDimensional | HeldOut | MixedDesign)
    } - {"ackley-10"}
    assert set(PROBLEMS.names()) - set(EXAMPLES) == missing | larger


def check_alone_as_in_a_block(task, name, horizon=10):
    """The same bits alone and among four seeds; finite metrics but for those that may be unknown.
    The whole play.
    """
    if task.constraints > 2:
        horizon = 6  # rounds of many are long
    if "torch" in ALGORITHMS.get(name).libraries:
        horizon = 12  # ten points of an initial design, and two rounds with models
    block, alone = (
        Play(task, "test", make(name), name, seeds, horizon, PlayOptions(range(1, horizon)))
        for seeds in (range(4), [3])
    )
    came_to = play_to_arrays(block)
    assert difference(select_replicate(came_to, 3), play_to_arrays(alone)) == ""
    final = dict(block.metrics.final)
    plus = final.pop("regret_plus")
    unknown = {metric for metric, values in final.items() if not np.isfinite(values).all()}
    assert unknown <= {metric for metric in METRICS if METRICS[metric].nullable}
    assert (np.isnan(plus) | (plus >= final["regret"] - 1e-9)).all()
    return came_to


@pytest.mark.parametrize(("task", "settings"), [case for case in TASKS if case[0] not in DEAR])
def test_every_problem_is_the_same_alone_as_in_a_block(task, settings):
    check_alone_as_in_a_block(problem(task, **settings), "random", 20)


@pytest.mark.long
@pytest.mark.parametrize(("task", "settings"), TASKS)
@pytest.mark.parametrize("name", [*map(entry, ALGORITHMS.names())])
def test_every_pair_plays_the_same_alone_as_in_a_block(name, task, settings):
    prepared = problem(task, **settings)
    if not ALGORITHMS.get(name).needs <= prepared.offers():
        pytest.skip(f"{name} needs what {task} does not offer")
    check_alone_as_in_a_block(prepared, name, 20)


@pytest.mark.parametrize(
    "name", [*map(entry, sorted(set(ALGORITHMS.names()) - {"oracle", "sgp-ucb", "stageopt"}))]
)
def test_the_first_play_is_no_free_ride(name):
    """Under a stationary prior round 1 is a tie of all actions, and must not go to the lowest index
    each time.

    Thompson samples often have their maximum at an end of the interval, and COBYQA moves a start
    that is near one, so the bound for one action is generous.
    """
    first = actions(play(problem(**ALL), make(name), seeds=60, horizon=1)[1])[0]
    assert np.bincount(first).max() <= (30 if "ts" in name or name == "cobyqa" else 5)
    assert len(np.unique(first)) > 10


@pytest.mark.parametrize("name", PROBLEMS.names())
def test_a_problem_is_documented(name):
    assert not list(check_documentation(PROBLEMS.get(name)))


def test_algorithms_meet_the_same_instance_and_noise():
    """Through what was recorded: the noise-free optimum agrees, and so does the noise at every
    round.
    """
    task = problem("rkhs-1d", noise=0.5)
    played = {}
    for name in ("ckb-ucb", "random", "sgp-ucb"):
        cells, chunks = play(task, make(name), seeds=4, horizon=60)
        f = np.concatenate([c.metrics.f for c in chunks])
        g = np.concatenate([c.metrics.g for c in chunks])
        observed_f = np.concatenate([c.observed_f for c in chunks])
        observed_g = np.concatenate([c.observed_g for c in chunks])
        played[name] = (cells.instances.functions, observed_f - f, observed_g - g)
    for other_name in ("random", "sgp-ucb"):
        for ckb_values, theirs in zip(played["ckb-ucb"], played[other_name], strict=True):
            np.testing.assert_allclose(ckb_values, theirs, atol=1e-12)
    noise = played["random"][1]
    assert not np.allclose(noise[:, 0], noise[:, 1]), (
        "negative control: other seeds have other noise"
    )
    assert not np.allclose(noise[0], noise[1])


class Sly(Random):
    """Reuses its own array and edits what it is told."""

    def ask(self, t):
        self.own = super().ask(t).copy() if t == 1 else self.own
        return self.own

    def tell(self, t, actions, feedback):
        self.own += 1
        self.own %= 100
        feedback.f[:] = 1e9


def test_what_was_played_is_recorded_whatever_the_algorithm_does_to_it():
    _, chunks = play(problem("rkhs-1d"), build(Sly, {}), seeds=2, horizon=10)
    played = actions(chunks)
    np.testing.assert_array_equal(played, (played[0] + np.arange(10)[:, None]) % 100)
    assert np.abs(chunks[0].observed_f).max() < 1e6


def test_oracle_has_no_regret_and_no_violation():
    cells, _ = play(problem("rkhs-1d"), make("oracle"), seeds=5)
    assert not any(cells.metrics.final[m].any() for m in ("regret", "violation_hard", "violations"))


def test_a_fractional_action_is_no_action():
    class Half(OneRun):
        def start_one(self, setting):
            pass

        def ask_one(self, t):
            return 1.7

    with pytest.raises(
        CellFailure, match=r"round 1: ask_one gave 1.7; it must give an index, 0 to 99"
    ):
        play(problem("rkhs-1d"), build(Half, {}), seeds=1, horizon=2)
