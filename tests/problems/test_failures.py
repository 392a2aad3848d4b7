"""Evaluations that fail: what they count as, retries, what methods are told, and what is shown."""

from __future__ import annotations

import sys
from asyncio import CancelledError
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest

import cbobench
from cbobench.algorithms.references import Random
from cbobench.errors import CellFailure, Interrupted, Misuse, TimedOut, one_line
from cbobench.params import build
from cbobench.problems.tables.table import UserTable
from tests.algorithms.test_contract import check_alone_as_in_a_block
from tests.helpers import actions, entry, long_cases, make, play, play_here, prepare_class, refused
from tests.problems.test_simulator import Noisy, truth
from tests.report.made import make as make_run


@dataclass(kw_only=True)
class Flaky(Noisy):
    """f = 10 - |x - (1, 2)|², g = x_1 + x_2 - 2.5; a tenth of the runs fails, half of them by
    raising.
    """

    about = "a bowl that fails"
    share = 0.1

    def simulate(self, x, gen):
        luck = gen.random()
        if luck < self.share / 2:
            raise ArithmeticError("diverged")
        f = 10 - (x[0] - 1) ** 2 - (x[1] - 2) ** 2
        return [np.nan if luck < self.share else f + 0.1 * gen.normal(), x[0] + x[1] - 2.5]


class Batch(Flaky):
    """The same, many runs at once: a batch that raises is tried run by run."""

    def simulate_many(self, x, gens):
        return np.array(
            [super(Batch, self).simulate(point, gen) for point, gen in zip(x, gens, strict=True)]
        )


def prepared(cls=Flaky, share=0.1, **settings):
    return prepare_class(type("Flaky", (cls,), {"__module__": "mine", "share": share}), **settings)


def find_failed(cells, chunk):
    """Which observations are those of failed runs, (rounds, S)."""
    failed = chunk.observed_g[..., 0] == 1.0
    np.testing.assert_array_equal(cells.channel.failed, failed.sum(axis=0))
    return failed


def test_a_failed_run_is_told_as_the_worst_f_so_far_and_a_unit_of_g():
    cells, (chunk,) = play(prepared(), make("random"), seeds=3, horizon=60)
    failed = find_failed(cells, chunk)
    assert 5 < failed.sum() < 40
    _, g = truth(chunk.actions)
    np.testing.assert_allclose(chunk.observed_g[~failed][:, 0], g[~failed], atol=1e-9)
    for s in range(3):
        worst = np.nan
        for f, has_failed in zip(chunk.observed_f[:, s], failed[:, s], strict=True):
            if has_failed:
                np.testing.assert_array_equal(f, worst)
            else:
                worst = np.fmin(worst, f)


class Late(Noisy):
    """Nothing succeeds in the first rounds of a process, far from 0."""

    noisy = False
    left = 0

    def simulate(self, x, gen):
        type(self).left -= 1
        if type(self).left >= 0:
            raise ArithmeticError("not warm yet")
        f, g = truth(np.asarray(x))
        return [f - 1e6, g]


def begin_late(failures, **settings):
    task = prepared(Late, **settings)
    type(task).left = failures
    return task


LEARNERS = [
    *[("cei", {}), ("cei", {"kernel": "given"}), ("cei", {"kernel": "given", "lam": 0.01})],
    *[("scbo", {}), ("scbo", {"kernel": "given"}), ("scbo", {"copula": True}), ("furbo", {})],
    *[("admmbo", {}), ("admmbo", {"values": "observed", "kernel": "given"}), ("nei", {})],
    *[("epbo", {"beta": 2.0}), ("epbo", {"beta": 2.0, "kernel": "given"}), ("bandit-oco", {})],
    *[("penalty-noisy", {"beta": 2.0}), ("cobyla", {})],
    *[entry(name, {}) for name in ("optuna-tpe", "egobox", "botorch-cei", "cma-es")],
]


@pytest.mark.parametrize(("name", "settings"), LEARNERS)
def test_before_any_success_nothing_is_told_of_f(name, settings):
    """Five rounds that nobody can judge; then learners know all that was told."""
    algorithm = make(name, **settings)
    cells, (chunk,) = play(begin_late(5), algorithm, seeds=1, horizon=14)
    assert np.isnan(chunk.observed_f[:5, 0]).all()
    assert np.isfinite(chunk.observed_f[5:]).all()
    assert (chunk.observed_g[:5] == 1.0).all()
    lowest = np.nanmin(chunk.observed_f)
    np.testing.assert_array_equal(chunk.metrics.f[:5, 0], lowest)
    np.testing.assert_array_equal(chunk.metrics.f[5:], chunk.observed_f[5:])


@pytest.mark.parametrize(("name", "settings"), [("cei", {}), ("nei", {}), ("scbo", {})])
def test_a_model_of_f_has_the_worst_in_place_of_what_it_was_not_told(name, settings):
    algorithm = make(name, **settings)
    _, (chunk,) = play(begin_late(4), algorithm, seeds=1, horizon=12)
    model = getattr(algorithm, "posterior", None) or algorithm.runs[0].model.fitted
    told = np.where(
        np.isnan(chunk.observed_f[:, 0]), np.nanmin(chunk.observed_f), chunk.observed_f[:, 0]
    )
    np.testing.assert_array_equal(model.observed[0, 0], told[: model.count])
    np.testing.assert_array_equal(model.observed[0, 1], chunk.observed_g[: model.count, 0, 0])
    assert abs(model.centre[0, 0] + 1e6) < 100, "nothing of it is 0"


@pytest.mark.parametrize(
    ("name", "parallel"),
    [
        ("cei", None),
        ("scbo", {"points": 3, "as": "asynchronous"}),
        *long_cases(("nei", None), ("cei", {"points": 3, "as": "asynchronous"})),
    ],
)
def test_replicates_without_a_success_change_no_bit_of_others(name, parallel):
    class Corner(Late):
        def simulate(self, x, gen):
            if x[0] > 1.0:
                raise ArithmeticError
            f, g = truth(np.asarray(x))
            return [f - 1e6, g]

    block, alone = (
        actions(play(prepared(Corner), make(name), seeds, 12, parallel=parallel)[1])
        for seeds in ([0, 1], [1])
    )
    np.testing.assert_array_equal(block[:, 1:2], alone)


def test_what_is_not_told_never_arrives():
    algorithm = make("epbo", beta=2.0)
    cells, _ = play(begin_late(5, delay=2.0), algorithm, seeds=1, horizon=14)
    told = [value for values in cells.channel.waiting.values() for value in values]
    assert not any(round_number <= 5 and function == 0 for _, round_number, function, _ in told)


def test_a_cell_without_any_success_fails_and_says_why():
    with pytest.raises(CellFailure, match="every simulation failed; the last: .*not warm yet"):
        play(begin_late(99), make("cei"), seeds=1, horizon=6)
    _, (chunk,) = play(begin_late(99, on_failure={"f": -3, "g": 2}), make("random"), 1, 6)
    assert (chunk.metrics.f == -3).all()


def test_metrics_are_means_of_the_runs_that_succeed():
    task = prepared(repeats=40)
    _, chunks = play(task, make("random"), seeds=2, horizon=15)
    f, g = truth(actions(chunks))
    np.testing.assert_allclose(chunks[0].metrics.f, f, atol=0.1)
    np.testing.assert_allclose(chunks[0].metrics.g[..., 0], g, atol=1e-9)


def test_a_point_at_which_most_runs_fail_is_infeasible():
    class Cliff(Flaky):
        def simulate(self, x, gen):
            if x[0] > 1 and gen.random() < 0.9:
                raise ArithmeticError
            return super().simulate(x, gen)

    task = prepared(Cliff, share=0.0)
    _, chunks = play(task, make("random"), seeds=2, horizon=40)
    g, over = chunks[0].metrics.g[..., 0], actions(chunks)[..., 0] > 1
    assert (g[over] > 0).all()
    assert (g[~over] <= 0).any()


def test_values_may_be_stated():
    task = prepared(on_failure={"f": -7, "g": 9})
    _, chunks = play(task, make("random"), seeds=3, horizon=60)
    failed = np.isclose(chunks[0].observed_f, -7)
    assert 5 < failed.sum() < 40
    np.testing.assert_allclose(chunks[0].observed_g[failed], 9)


def test_retries_draw_other_numbers_and_leave_the_rest_as_it_is():
    never, thrice = prepared(), prepared(on_failure={"retry": 3})
    untried, chunks = play(never, make("random"), seeds=3, horizon=80)
    two, retried_chunks = play(thrice, make("random"), seeds=3, horizon=80)
    assert untried.channel.failed.sum() > 10 > two.channel.failed.sum()
    good = ~find_failed(untried, chunks[0])
    np.testing.assert_allclose(
        chunks[0].observed_f[good], retried_chunks[0].observed_f[good], atol=1e-9
    )
    assert (
        np.abs(retried_chunks[0].observed_f - truth(actions(retried_chunks))[0]) < 1
    ).mean() > 0.99


@pytest.mark.parametrize(("cls", "rule"), [(Flaky, "infeasible"), (Batch, {"retry": 1})])
def test_blocks_change_no_bit(cls, rule):
    check_alone_as_in_a_block(prepared(cls, on_failure=rule, repeats=3), "random", 40)


def test_batches_are_what_single_runs_are():
    by_class = [
        play(prepared(cls), make("random"), seeds=2, horizon=40)[1][0] for cls in (Flaky, Batch)
    ]
    np.testing.assert_array_equal(by_class[0].observed_f, by_class[1].observed_f)
    np.testing.assert_array_equal(by_class[0].metrics.f, by_class[1].metrics.f)


def test_of_a_skipped_run_nothing_is_told():
    feedbacks = []

    class Listener(type(make("random"))):
        def tell(self, t, chosen, feedback):
            feedbacks.append((t, feedback.arrivals))

    task = prepared(on_failure="skip")
    assert "feedback at once" not in task.offers()
    cells, _ = play(task, build(Listener, {}), seeds=3, horizon=60)
    arrived = {(t, s) for t, a in feedbacks for s in a.replicate.tolist()}
    assert len(arrived) == 180 - cells.channel.failed.sum() < 180
    assert all(np.isfinite(a.value).all() and (a.round == t).all() for t, a in feedbacks)


def test_fail_ends_the_cell_and_names_the_way_on():
    task = prepared(share=0.5, on_failure="fail")
    with pytest.raises(
        CellFailure, match=r"round \d+: Flaky: simulate .*; on_failure: infeasible goes on"
    ):
        play(task, make("random"), seeds=1, horizon=40)


WRONG = {
    "word": ("infeasable", r"on_failure is 'infeasable'; did you mean 'infeasible'\?"),
    "key": ({"retries": 3}, r"on_failure: unknown key 'retries'.*did you mean 'retry'"),
    "retry": ({"retry": 0}, "on_failure: retry is 0; it must be a whole number from 1 to 100"),
    "then": ({"then": "stop"}, "on_failure: unknown outcome 'stop'"),
    "both": ({"then": "skip", "f": 1}, "on_failure: f or g is stated, but then is skip"),
    "length": (
        {"g": [1, 2]},
        r"on_failure: g is \[1, 2\]; it must be a finite number, or a list of 1",
    ),
    "feasible": (
        {"g": -1},
        "on_failure: g is -1; a failed evaluation is infeasible only if some g_j is above 0",
    ),
    "number": ({"f": "low"}, "on_failure: f is 'low'; it must be a finite number"),
}


@pytest.mark.parametrize(("rule", "message"), WRONG.values(), ids=WRONG)
def test_wrong_rules_are_one_line(rule, message):
    with refused(message):
        build(type("Flaky", (Flaky,), {"__module__": "mine"}), {"on_failure": rule})


def test_skip_and_delays_exclude_each_other():
    with pytest.raises(
        Misuse, match="on_failure is skip, and feedback has a delay; leave one of them out"
    ):
        prepared(on_failure="skip", delay=3.0)


class Base(BaseException):
    """Of no Exception."""


ENDS = [
    SystemExit(0),
    SystemExit("solver diverged"),
    GeneratorExit(),
    CancelledError(),
    Base("own"),
]


@pytest.mark.parametrize("error", ENDS, ids=repr)
def test_a_run_that_ends_by_any_other_error_has_failed_too(error):
    """As those do that call the main of a program, which ends by sys.exit."""

    class Ending(Noisy):
        edge = 1.9

        def simulate(self, x, gen):
            if x[0] > self.edge:
                raise error
            return super().simulate(x, gen)

    task = prepared(Ending)
    cells, chunks = play(task, make("random"), seeds=2, horizon=60)
    np.testing.assert_array_equal(cells.channel.failed, (actions(chunks)[..., 0] > 1.9).sum(axis=0))
    assert cells.channel.failed.sum() > 0
    Ending.edge = -1.0
    with pytest.raises(CellFailure, match="every simulation failed; the last: Flaky:") as caught:
        play(prepared(Ending), make("random"), seeds=1, horizon=2)
    assert str(caught.value).endswith(f"]: {one_line(error)}")


@pytest.mark.parametrize("stop", [KeyboardInterrupt, Interrupted, TimedOut])
@pytest.mark.parametrize("how", ["as it is", "as a cause", "as a context"])
def test_what_stops_a_run_from_outside_is_no_failure_of_its_own(stop, how):
    class Converting(Noisy):
        def simulate(self, x, gen):
            try:
                raise stop("from outside")
            except BaseException as error:
                if how == "as a cause":
                    raise RuntimeError("converted") from error
                if how == "as a context":
                    sys.exit(1)
                raise

    with pytest.raises(stop, match="from outside"):
        play(prepared(Converting), make("random"), seeds=1, horizon=2)


def test_cells_that_fail_beside_others_are_no_context_of_theirs(tmp_path):
    """A user's KeyboardInterrupt fails its own cell, not a simulation that fails in another one of
    the block.
    """
    suite = {
        "suite": "s",
        "horizon": 30,
        "seeds": 2,
        "problems": [{f"{__name__}:Exiting": {"repeats": 0}}],
        "algorithms": [f"{__name__}:Interrupting"],
    }
    done = play_here(suite, tmp_path / "run")
    cells = cbobench.load_cells(done).set_index("seed")
    assert cells["status"].to_dict() == {0: "ok", 1: "failed"}
    assert cells["error"][1].startswith("round 2: KeyboardInterrupt")
    assert cells["failed_evaluations"][0] > 0


class Exiting(Noisy):
    def simulate(self, x, gen):
        return super().simulate(x, gen) if x[0] < 1.6 else sys.exit(1)


class Interrupting(Random):
    def ask(self, t):
        if t == 2 and any(scope[-1] == 1 for scope in self.setting.streams.scopes):
            raise KeyboardInterrupt
        return super().ask(t)


ROLES = {
    "layout": "configurations", "rows": "c.csv", "inputs": ["a"], "objective": "f", "scaled": False,
    "constraints": {"g": {"at_most": 2}},
}  # fmt: skip


def table(folder, rows, **settings):
    pd.DataFrame(rows, columns=["a", "f", "g"]).to_csv(folder / "c.csv", index=False)
    return prepare_class(UserTable, folder, **(ROLES | settings))


ROWS = [
    (0.0, 1.0, 1.0),
    (0.0, 3.0, 1.0),
    (0.5, 5.0, None),
    (0.5, 9.0, 3.0),
    (0.5, None, None),
    (1.5, 4.0, 0.0),
]


def test_rows_without_a_value_are_failed_measurements(tmp_path):
    task = table(tmp_path, ROWS, on_failure="infeasible")
    drawn = task.draw([np.random.default_rng(0)])
    np.testing.assert_allclose(
        drawn.f[0], [2, 1, 4], err_msg="0.5 has a value in one row of three: the worst"
    )
    np.testing.assert_allclose(drawn.g[0, 0], [-1, 1, -2])
    cells, chunks = play(task, make("random"), seeds=4, horizon=60)
    chosen, observed = actions(chunks), chunks[0].observed_g[..., 0]
    assert set(observed[chosen == 1].round(9)) == {1.0}, "the two failed rows and the measured one"
    assert 0 < cells.channel.failed.sum() < (chosen == 1).sum()
    assert "2 of 6 rows failed" in task.note()


@pytest.mark.parametrize("rule", ["infeasible", {"f": 1, "g": 1}])
@pytest.mark.parametrize("endless", [np.inf, -np.inf])
def test_an_infinite_value_is_a_failed_measurement_as_a_missing_one(tmp_path, rule, endless):
    rows = [tuple(endless if value is None else value for value in row) for row in ROWS]
    task, missing = (table(tmp_path, table_rows, on_failure=rule) for table_rows in (rows, ROWS))
    with_infinite, with_missing = (
        table_task.draw([np.random.default_rng(0)]) for table_task in (task, missing)
    )
    np.testing.assert_array_equal(with_infinite.functions, with_missing.functions)
    np.testing.assert_array_equal(task.played.measured.failed, missing.played.measured.failed)
    assert task.note() == missing.note()


def test_whole_numbers_with_nulls_in_parquet_are_failed_measurements(tmp_path):
    frame = pd.DataFrame(ROWS, columns=["a", "f", "g"]).astype({"f": "Int64", "g": "Int64"})
    frame.to_parquet(tmp_path / "c.parquet")
    task = prepare_class(
        UserTable, tmp_path, **(ROLES | {"rows": "c.parquet", "on_failure": "infeasible"})
    )
    assert task.played.measured.failed.sum() == 2


def test_half_of_the_rows_is_enough(tmp_path):
    rows = [*ROWS[:2], (0.5, 5.0, None), (0.5, 9.0, 1.5), ROWS[-1]]
    drawn = table(tmp_path, rows, on_failure={"f": -1, "g": 7}).draw([np.random.default_rng(0)])
    np.testing.assert_allclose(drawn.f[0], [2, 9, 4])
    np.testing.assert_allclose(drawn.g[0, 0], [-1, -0.5, -2])


def test_without_repetitions_a_failed_row_is_counted_too(tmp_path):
    task = table(
        tmp_path,
        [(0.0, 1.0, 1.0), (0.5, None, None), (1.5, 4.0, 0.0)],
        on_failure={"f": -1, "g": 7},
    )
    cells, chunks = play(task, make("random"), seeds=2, horizon=30)
    failed = actions(chunks) == 1
    np.testing.assert_array_equal(cells.channel.failed, failed.sum(axis=0))
    assert set(chunks[0].observed_f[failed]) == {-1.0}
    assert set(chunks[0].observed_g[failed].ravel()) == {7.0}


def test_what_tables_refuse(tmp_path):
    with pytest.raises(
        Misuse,
        match=r"3 missing or infinite .* or say on_failure: infeasible if these measurements",
    ):
        table(tmp_path, ROWS)
    with pytest.raises(Misuse, match=r"on_failure is \{'retry': 2\}; of a table: fail, infeasible"):
        table(tmp_path, ROWS, on_failure={"retry": 2})
    with pytest.raises(Misuse, match="on_failure is no parameter of layout: readings"):
        build(UserTable, {"layout": "readings", "rows": "c.csv", "on_failure": "infeasible"})


def test_failed_fits_are_said_with_their_rounds(tmp_path):
    cells = {
        ("p", "a"): {"failed_fits": [2, 0, None]},
        ("p", "b"): {"failed_fits": [0, 0, 0], "failed_evaluations": [3, 0, 0]},
    }
    text = str(cbobench.compare(make_run(tmp_path / "run", cells, seeds=range(3), horizon=20)))
    assert "failed evaluations: b 3 of 60" in text
    assert "failed fits: a 2 in 60 rounds" in text


def test_a_sweep_goes_on_and_says_how_often(tmp_path):
    suite = {
        "suite": "flaky", "horizon": 20, "seeds": 3, "problems": [f"{__name__}:Flaky"],
        "algorithms": ["random", "sobol"],
    }  # fmt: skip
    done = play_here(suite, tmp_path / "run")
    assert (done.played, done.failed) == (6, 0)
    cells = cbobench.load_cells(done)
    assert cells["failed_evaluations"].sum() > 0
    text = cbobench.compare(done).render(width=400)
    count = int(cells.loc[cells["algorithm"] == "random", "failed_evaluations"].sum())
    assert f"failed evaluations: random {count} of 60" in text
