"""Where feedback is exact, every method recommends the best feasible action that it has
measured.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from cbobench.algorithms import ALGORITHMS
from cbobench.algorithms.asktell import AskTell
from cbobench.algorithms.base import Algorithm, OneRun
from cbobench.play.recorder import Recorder
from cbobench.problems.base import Feedback
from cbobench.problems.instances import Drawn
from cbobench.problems.simulators.simulator import Simulator
from tests.check.test_check import SIBLINGS
from tests.helpers import entry, long_cases, make, play, prepare, prepare_class, problem

EXACT = {"noise_f": 0.0, "noise_g": 0.0}
HORIZON = 20


class Corner:
    """Proposes random points and recommends the upper corner, whatever it was told."""

    def __init__(self, facts):
        self.given = facts

    def ask(self):
        return self.given.low + self.given.generator.random(self.given.d) * (
            self.given.high - self.given.low
        )

    def tell(self, x, f, g):
        pass

    def recommend(self):
        return self.given.high


class Proposing(AskTell):
    name = "test-corner"

    def optimiser(self, facts):
        return Corner(facts)


@dataclass(kw_only=True)
class Looping(OneRun):
    """Plays one action after the other, round a finite set, and recommends the last of the set."""

    name = "test-looping"

    def start_one(self, setting):
        self.t = 0

    def ask_one(self, t):
        return (7 * t) % self.setting.finite.n

    def recommend_one(self, t):
        return self.setting.finite.n - 1


@dataclass(kw_only=True)
class Last(Algorithm):
    """The same for all replicates at once."""

    name = "test-last"

    def start(self, setting):
        self.setting = setting

    def ask(self, t):
        return np.full(self.setting.replicates, (7 * t) % self.setting.finite.n)

    def recommend(self, t):
        return np.full(self.setting.replicates, self.setting.finite.n - 1)


def measured_best(chunk, settle=np.asarray):
    """Best f of the feasible actions observed up to each round, (T, S); -inf before there is
    one.
    """
    feasible = (settle(chunk.observed_g) <= 0).all(axis=2)
    return np.maximum.accumulate(np.where(feasible, chunk.observed_f, -np.inf), axis=0)


def recommendations(task, algorithm, horizon=HORIZON, **options):
    """The play of an algorithm that is asked after every round, its chunk, and values (T, S, 1 + m)
    recommended.
    """
    recommended = []
    with pytest.MonkeyPatch.context() as patch:
        add = Recorder.add
        patch.setattr(
            Recorder,
            "add",
            lambda self, actions, values: recommended.append(values) or add(self, actions, values),
        )
        cells, (chunk,) = play(task, algorithm, 3, horizon, asked=range(1, horizon), **options)
    return cells, chunk, np.concatenate(recommended)


def assert_best_measured(chunk, recommended, settle=np.asarray):
    """No recommendation is worse than what was measured, and none infeasible once something
    feasible was.
    """
    best = measured_best(chunk, settle)
    is_measured = best > -np.inf
    assert is_measured.any()
    np.testing.assert_array_equal(recommended[..., 0][is_measured], best[is_measured])
    assert (recommended[..., 1:][is_measured] <= 0).all()


def task_for(name):
    """A noise-free problem that a method can play, on a box if it can."""
    needs = ALGORITHMS.get(name).needs
    is_shown = "full information of the constraints" in needs
    box = not needs & {"a finite action set", "a safe seed set"}
    return problem(
        "gardner-1",
        **EXACT,
        full_information=is_shown,
        **({"candidates": 64} if box else {"grid": 9}),
    )


@pytest.mark.parametrize(
    "name", [entry(name, long=name in SIBLINGS) for name in ALGORITHMS.names()]
)
def test_of_every_method_no_recommendation_is_worse_than_what_it_measured(name):
    _, chunk, recommended = recommendations(task_for(name), make(name))
    assert_best_measured(chunk, recommended)


@pytest.mark.parametrize("cls", [Proposing, Looping, Last])
def test_so_of_methods_of_users(cls):
    task = problem("gardner-1", **EXACT, grid=9)
    _, chunk, recommended = recommendations(task, cls())
    assert_best_measured(chunk, recommended)


@pytest.mark.parametrize(
    ("name", "grid"),
    [
        ("cei", 9),
        ("ckb-ts", None),
        ("random", None),
        *long_cases(("cei", None), ("admmbo", None), ("penalty-noiseless", 9)),
    ],
)
def test_the_rule_changes_no_action_and_no_observation(name, grid, monkeypatch):
    task = problem("gardner-1", **EXACT, grid=grid, candidates=64)
    _, chunk, _ = recommendations(task, make(name))
    monkeypatch.setattr(
        Drawn, "noiseless", property(lambda self: np.zeros(len(self.noise), dtype=bool))
    )
    _, before, recommended = recommendations(task, make(name))
    for column in ("actions", "observed_f", "observed_g", "duals"):
        values, values_before = getattr(chunk, column), getattr(before, column)
        assert (values is None) == (values_before is None)
        assert values is None or values.tobytes() == values_before.tobytes()
    for metric in set(chunk.metrics.values) - {"recommended_regret", "recommended_violation"}:
        assert chunk.metrics.values[metric].tobytes() == before.metrics.values[metric].tobytes(), (
            metric
        )
    if name == "cei":
        best = measured_best(before)
        assert (recommended[..., 0][best > -np.inf] != best[best > -np.inf]).any(), (
            "a model recommends otherwise"
        )


def test_before_anything_feasible_is_measured_the_model_decides(monkeypatch):
    task = problem("gardner-1", **EXACT, candidates=64)
    _, chunk, recommended = recommendations(task, make("cei"), 8)
    none = measured_best(chunk) == -np.inf
    assert none.any()
    monkeypatch.setattr(
        Drawn, "noiseless", property(lambda self: np.zeros(len(self.noise), dtype=bool))
    )
    np.testing.assert_array_equal(recommended[none], recommendations(task, make("cei"), 8)[2][none])


@pytest.mark.parametrize(
    "noise", [{"noise_f": 0.0, "noise_g": 0.05}, {"noise_f": 0.05, "noise_g": 0.0}]
)
def test_noise_on_one_function_leaves_it_to_the_model(noise):
    task = problem("gardner-1", **noise, grid=9)
    _, _, recommended = recommendations(task, Last())
    np.testing.assert_array_equal(
        recommended, np.broadcast_to(recommended[0, 0], recommended.shape)
    )


def test_where_functions_move_what_was_measured_before_does_not_count():
    moving = prepare(
        "feasible-pocket-drift", **EXACT, grid=9, first_change=5, second_change=HORIZON
    )
    _, _, recommended = recommendations(moving, Last())
    assert len(np.unique(recommended[:, 0], axis=0)) == 2, "one action, of two functions"
    still = prepare(
        "feasible-pocket-drift", **EXACT, grid=9, first_change=HORIZON, second_change=2 * HORIZON
    )
    _, chunk, recommended = recommendations(still, Last())
    assert_best_measured(chunk, recommended)


def test_delayed_observations_count_once_f_and_every_g_are_told():
    task = problem("gardner-1", **EXACT, grid=9, delay=3.0)
    is_told = np.zeros((HORIZON, 3, 2), dtype=bool)
    arrived = np.zeros((HORIZON, HORIZON, 3), dtype=bool)

    @dataclass(kw_only=True)
    class Noting(Last):
        def tell(self, t, actions, feedback):
            a = feedback.arrivals
            is_told[a.round - 1, a.replicate, a.function] = True
            arrived[t - 1] = is_told.all(axis=2)

    cells, chunk, recommended = recommendations(task, Noting())
    values = cells.instances.values(1, chunk.actions)
    corner_values = cells.instances.values(1, np.full((1, 3), task.actions.n - 1))[0]
    for t, s in np.ndindex(HORIZON, 3):
        feasible = arrived[t, :, s] & (values[:, s, 1] <= 0)
        assert recommended[t, s, 0] == (
            values[feasible, s, 0].max() if feasible.any() else corner_values[s, 0]
        )


@dataclass(kw_only=True)
class YesOrNo(Simulator):
    """A bowl of which a corner counts as forbidden; how far away it is no learner is told."""

    source = about = "a test"
    low, high = (0.0, 0.0), (1.0, 1.0)
    noisy = False
    target = 1.0

    def simulate(self, x, gen):
        if x[0] < 0.15:
            raise RuntimeError("no such plant")
        return [1 - (x[0] - 0.8) ** 2 - (x[1] - 0.8) ** 2, 1.0 if x[0] + x[1] > 1.3 else -1.0]


@dataclass(kw_only=True)
class Doubted(YesOrNo):
    """The same, which does not say that it has no noise."""

    noisy = True


@dataclass(kw_only=True)
class Rounded(YesOrNo):
    """Its constraint is above 0 by rounding nearly everywhere."""

    feasibility_tolerance = 1e-9

    def simulate(self, x, gen):
        f, g = super().simulate(x, gen)
        return [f, g if g > 0 else 1e-12]


@pytest.mark.parametrize(
    ("cls", "name"),
    [
        (Rounded, "cei"),
        (YesOrNo, "random"),
        *long_cases((YesOrNo, "cei"), (Rounded, "admmbo"), (YesOrNo, "penalty-noisy")),
    ],
)
def test_a_simulator_without_noise(cls, name):
    task = prepare_class(cls)
    settings = {"B": 3.0} if name == "penalty-noisy" else {}
    cells, chunk, recommended = recommendations(task, make(name, **settings), 25)
    assert_best_measured(chunk, recommended, task.settle)
    x = cells.recommendations.last[0]
    assert (x[:, 0] >= 0.15).all(), "an evaluation that failed counts as infeasible"


@pytest.mark.parametrize("rule", ["skip", {"f": 5.0, "g": 0.001}])
def test_a_failed_simulation_is_nothing_measured(rule):
    task = prepare_class(YesOrNo, on_failure=rule)
    cells, chunk, _ = recommendations(task, make("random"), 40)
    assert cells.channel.failed.all()
    x, values = cells.recommendations.last
    truth = np.array([[task.simulate(point, None) for point in points] for points in x[None]])[0]
    np.testing.assert_array_equal(values, truth)
    played = [
        [task.simulate(p, None) for p in chunk.actions[:, s] if p[0] >= 0.15] for s in range(3)
    ]
    np.testing.assert_array_equal(
        values[:, 0], [max(f for f, g in of_seed if g <= 0) for of_seed in played]
    )


def test_what_does_not_say_that_it_has_no_noise_may_have_some():
    task = prepare_class(Doubted, repeats=2)
    cells = recommendations(task, make("cei"), 3)[0]
    assert not cells.recommendations.exact.any()


ROWS = "a,b,f,g\n" + "".join(
    f"{i},{j},{10 - (i - 3) ** 2 - (j - 2) ** 2},{i + j - 4}\n" for i in range(5) for j in range(5)
)
COLUMNS = {
    "scaled": False,
    "inputs": ["a", "b"],
    "amounts": ["a", "b"],
    "objective": "f",
    "constraints": {"g": {"at_most": 0}},
}


@pytest.mark.parametrize(
    ("extra_rows", "settings", "exact"),
    [
        ("", {}, True),
        ("", {"noise": 0.0}, True),
        ("", {"noise": {"f": 0.0}}, True),
        ("", {"noise": {"f": 0.1}}, False),
        ("", {"noise": {"g": 0.1}}, False),
        ("0,0,-3,-4\n", {}, True),  # measured twice, and the same
        ("0,0,-2,-4\n", {}, False),
        ("0,0,-2,-4\n", {"noise": "gaussian"}, False),
        ("0,0,-2,-4\n", {"noise": 0.0}, True),
        ("5,5,,3\n", {"on_failure": "infeasible"}, True),
        ("5,5,,3\n5,5,,3\n", {"on_failure": "infeasible"}, True),
        # it fails every other time, and does not scatter else
        ("0,0,,\n", {"on_failure": "infeasible"}, False),
        ("0,0,,\n", {"on_failure": "infeasible", "noise": 0.0}, True),
    ],
)
def test_a_table(tmp_path, extra_rows, settings, exact):
    (tmp_path / "t.csv").write_text(ROWS + extra_rows)
    task = prepare("table", rows=str(tmp_path / "t.csv"), **COLUMNS, **settings)
    cells, chunk, recommended = recommendations(task, Last())
    assert cells.recommendations.exact.tolist() == [exact] * 3
    if exact:
        assert_best_measured(chunk, recommended)
    else:
        np.testing.assert_array_equal(
            recommended, np.broadcast_to(recommended[0, 0], recommended.shape)
        )


def test_feedback_of_a_user_s_own_problem():
    """A channel of one's own counts as exact where the instances say that there is no noise."""
    task = problem("rkhs", n=30)
    drawn = task.draw

    class Told:
        def __init__(self, instances):
            self.instances = instances

        def before(self, t):
            return None

        def at(self, t, actions):
            values = self.instances.values(t, actions[None])[0]
            return Feedback(values[:, 0], values[:, 1:])

    task.draw = lambda generators: replace(drawn(generators), noise=np.zeros((len(generators), 2)))
    task.feedback = lambda instances, streams: Told(instances)
    _, chunk, recommended = recommendations(task, Last())
    assert_best_measured(chunk, recommended)
