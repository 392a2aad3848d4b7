"""Tables with types: the same problem as with lists of names, and libraries that know types are
told them.
"""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest

from cbobench.algorithms.asktell import Given
from cbobench.algorithms.base import Setting
from cbobench.errors import Misuse
from cbobench.problems.tables.table import UserTable
from cbobench.rng import Streams
from tests.helpers import actions, make, play, prepare_class, refused

BASES = {"base": [f"b{i}" for i in range(6)], "solvent": [f"s{i}" for i in range(4)]}
AMOUNTS = {"heat": [30, 60, 90], "time": [1.0, 10.0, 100.0]}
TYPES = {
    "base": {"choice": BASES["base"]}, "solvent": {"choice": BASES["solvent"]},
    "heat": {"int": [30, 90]}, "time": {"float": [1, 100], "log": True},
}  # fmt: skip
NAMES = {"inputs": [*TYPES], "one_hot": ["base", "solvent"], "log": ["time"]}


def grid():
    """A full grid of reactions: main effects, an interaction and a cost."""
    rng, levels = np.random.default_rng(3), BASES | AMOUNTS
    frame = pd.DataFrame(itertools.product(*levels.values()), columns=[*levels])
    codes = [frame[name].map(values.index).to_numpy() for name, values in levels.items()]
    effects = sum(rng.normal(size=code.max() + 1)[code] for code in codes)
    return frame.assign(
        y=effects + 0.5 * rng.normal(size=(6, 4))[codes[0], codes[1]],
        cost=rng.uniform(size=len(frame)),
    )


def table(base, frame=None, **settings):
    (grid() if frame is None else frame).to_csv(base / "c.csv", index=False)
    roles = {
        "layout": "configurations",
        "rows": "c.csv",
        "objective": "y",
        "constraints": {"cost": {"at_most": 0.8}},
    }
    return prepare_class(UserTable, base, **(roles | {"inputs": TYPES, "scaled": False} | settings))


def started(task, name, horizon=40, **settings):
    """A run of a method, and the seed of its library."""
    run = make(name, **settings)
    run.start(Setting.of(task, task.draw([np.random.default_rng(0)]), horizon, Streams([("a", 0)])))
    return run.runs[0], Given(run.runs[0].setting).seed


def test_types_and_lists_of_names_are_one_problem(tmp_path):
    typed, named = table(tmp_path), table(tmp_path, **NAMES)
    np.testing.assert_array_equal(typed.actions.points, named.actions.points)
    assert (typed.actions.names, typed.by_name) == (named.actions.names, named.by_name)
    assert named.actions.space is None
    played = [actions(play(task, make("cei"), seeds=2, horizon=12)[1]) for task in (typed, named)]
    np.testing.assert_array_equal(*played)


@pytest.mark.parametrize("roles", [{"inputs": TYPES}, NAMES])
def test_the_coordinates_of_a_category_share_a_lengthscale(tmp_path, roles):
    learner = make("cei", kernel="fit")
    play(table(tmp_path, **roles), learner, seeds=1, horizon=12)
    for lengths in learner.posterior.lengthscales[0]:
        assert (lengths[:6] == lengths[0]).all()
        assert (lengths[6:10] == lengths[6]).all()
        assert len(set(lengths)) == 4


def test_the_order_of_a_mapping_changes_nothing(tmp_path):
    swapped = table(tmp_path, inputs=dict(reversed(TYPES.items())))
    assert [t.name for t in swapped.actions.space.types] == [*TYPES]
    np.testing.assert_array_equal(swapped.actions.points, table(tmp_path).actions.points)


def test_every_row_is_its_own_nearest_configuration(tmp_path):
    # not in the order of the coordinates
    codes = {"base": {"choice": [3, True, None, "x", 0.5, "b5"]}}
    new_names = dict(zip(BASES["base"], [3, True, None, "x", 0.5, "b5"], strict=True))
    frame = grid().assign(base=[str(new_names[name]) for name in grid()["base"]])
    space = table(tmp_path, frame, inputs=TYPES | codes).actions.space
    for index, configuration in enumerate(space.configurations):
        assert space.nearest(configuration) == index
        assert space.at(space.points[index]) == configuration
        assert space.decode(space.code(index)) == index
        assert space.code(space.points[index]) == space.code(index)
    assert [c["base"] for c in space.configurations[::36]] == [*new_names.values()]


def test_repeated_rows_are_one_configuration(tmp_path):
    task = table(tmp_path, pd.concat([grid()[::2], grid()]))
    assert task.actions.n == len(task.actions.space.configurations) == len(grid())
    assert task.actions.space.points is not task.actions.points
    np.testing.assert_array_equal(task.actions.space.points, task.actions.points)


def test_a_suggestion_beside_the_rows_is_moved_to_the_nearest(tmp_path):
    task = table(tmp_path, inputs=TYPES | {"heat": {"int": [0, 200]}})
    space = task.actions.space
    moved = space.configurations[
        space.nearest({"base": "b2", "solvent": "s1", "heat": 180, "time": 25.0})
    ]
    assert moved == {"base": "b2", "solvent": "s1", "heat": 90, "time": 10.0}


WRONG = {
    "no type": ({"inputs": TYPES | {"heat": None}}, "inputs: 'heat' is None; allowed: {float: "),
    "log": ({"log": ["time"]}, "inputs has types, which say what log does; leave log out"),
    "text": (
        {"inputs": TYPES | {"base": {"int": [0, 5]}}},
        r"column 'base' holds text, such as 'b0'; .* {choice: \[",
    ),
    "range": (
        {"inputs": TYPES | {"heat": {"int": [30, 60]}}},
        "'heat', row 7 is 90, but inputs allows 30 to 60",
    ),
    "unknown": (
        {"inputs": TYPES | {"solvent": {"choice": ["s0", "s1", "s2", "z"]}}},
        "'solvent', row 28 is 's3', but inputs allows s0, s1, s2, z; .*or leave the row out",
    ),
    "absent": (
        {"inputs": TYPES | {"solvent": {"choice": [*BASES["solvent"], "s9"]}}},
        "'s9', which no row has",
    ),
}


@pytest.mark.parametrize(("settings", "message"), WRONG.values(), ids=WRONG)
def test_contradictions_are_one_line(tmp_path, settings, message):
    with refused(message):
        table(tmp_path, **settings)


def test_a_broken_number_is_no_whole_one(tmp_path):
    with pytest.raises(
        Misuse, match=r"input 'heat', row 1 is 30.5, but inputs says int; write float there"
    ):
        table(
            tmp_path,
            grid().assign(heat=grid()["heat"] + 0.5),
            inputs=TYPES | {"heat": {"int": [0, 100]}},
        )


# Libraries ----------------------------------------------------------------------------------------

GAPLESS = {"heat": [1, 2, 3], "time": [0.5, 1.0, 2.0]}


def test_on_a_full_grid_optuna_plays_as_in_its_own_loop(tmp_path):
    optuna = pytest.importorskip("optuna", reason="pip install 'cbobench[optuna]'")
    levels, frame, played = BASES | GAPLESS, grid(), []
    frame["heat"], frame["time"] = (
        frame["heat"] // 30,
        [GAPLESS["time"][int(np.log10(x))] for x in frame["time"]],
    )
    types = {name: {"choice": values} for name, values in levels.items()}
    types["heat"] = {"int": [1, 3]}
    single_run, seed = started(table(tmp_path, frame, inputs=types), "optuna-tpe")
    sampler = optuna.samplers.TPESampler(n_startup_trials=10, n_ei_candidates=24, seed=seed)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    rows = {row: i for i, row in enumerate(frame[[*levels]].itertuples(index=False, name=None))}

    def suggest(trial, name):
        if name == "heat":
            return trial.suggest_int(name, 1, 3)
        return trial.suggest_categorical(name, levels[name])

    def objective(trial):
        played.append(rows[tuple(suggest(trial, name) for name in levels)])
        trial.set_constraint("g1", float(frame["cost"][played[-1]] - 0.8))
        return float(frame["y"][played[-1]])

    study.optimize(objective, n_trials=40)
    for t, index in enumerate(played, 1):
        assert single_run.ask_one(t) == index
        single_run.tell_one(
            t, index, float(frame["y"][index]), np.array([frame["cost"][index] - 0.8])
        )
    assert len({*played}) < 40, "it plays some configurations again, here as there"


def test_optuna_is_told_the_configuration_that_was_measured(tmp_path):
    pytest.importorskip("optuna", reason="pip install 'cbobench[optuna]'")
    task = table(tmp_path)
    single_run, _ = started(task, "optuna-tpe", startup=5)
    space, codes = task.actions.space, []
    for t in range(1, 16):
        index = single_run.ask_one(t)
        single_run.tell_one(t, index, float(t), np.array([-1.0]))
        codes.append(space.code(index))
    study = single_run.run_optimiser.study
    complete = [trial for trial in study.trials if trial.state.name == "COMPLETE"]
    assert [trial.params for trial in complete] == codes
    assert [trial.value for trial in complete] == [*range(1, 16)]
    assert len(study.trials) == 30, "every suggestion lies between the rows, and stands as failed"
