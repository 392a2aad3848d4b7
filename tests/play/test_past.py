"""Past measurements of a suite: methods are told them before round 1, and nothing else changes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cbobench.algorithms import ALGORITHMS
from cbobench.cli import main
from cbobench.play.play import Play, PlayOptions
from cbobench.problems.base import Feedback
from cbobench.problems.tables.past import MOST_ROWS, read_past, take_past
from tests.check.test_check import SIBLINGS
from tests.helpers import LEARNERS, actions, entry, load, make, prepare, problem, refused, swept

ROWS = "x_1,x_2,f,g_1\n1,2,0.4,-0.9\n4.5,3,0.9,0.25\n1,2,0.5,-0.8\n"
SUITE = """
suite: past
horizon: 6
seeds: 3
initial: {file: past.csv}
problems: [gardner-1]
algorithms: [cei, cobyla, random, oracle]
"""
OVENS = "temp,kind,yield,smoke\n100,a,1,0.1\n100,1.10,2,0.2\n150,a,2.5,0.6\n150,1.10,3.5,0.4\n"


def write(folder: Path, text: str = ROWS) -> Path:
    (folder / "past.csv").write_text(text)
    (folder / "suite.yaml").write_text(SUITE)
    return folder / "past.csv"


@pytest.mark.parametrize("name", [entry(name, long=name in SIBLINGS) for name in LEARNERS])
def test_a_play_is_that_of_a_method_that_was_told_by_hand(tmp_path, name):
    """In any block; also where a model holds as many observations as rounds and past ones."""
    task = problem("gardner-1", noise_f=0.1, candidates=64)
    if not ALGORITHMS.get(name).needs <= task.offers():
        return
    past = read_past(write(tmp_path), "")
    play = Play(task, "test", make(name), name, [0, 1], 5, PlayOptions(initial={"file": past}))
    told = actions(list(play))
    alone = Play(task, "test", make(name), name, [1], 5, PlayOptions(initial={"file": past}))
    assert np.array_equal(actions(list(alone)), told[:, 1:])
    by_hand = Play(task, "test", make(name), name, [0, 1], 5)
    method, shift, divisor = by_hand.algorithm, *task.scaling
    method.start(play.setting)
    for t, row in enumerate([[1, 2, 0.4, -0.9], [4.5, 3, 0.9, 0.25], [1, 2, 0.5, -0.8]], -2):
        values = (np.array(row[2:]) - shift) / divisor
        x = np.tile(np.array(row[:2], dtype=float), (2, 1))
        method.observe(t, x, Feedback(np.full(2, values[0]), np.full((2, 1), values[1])))
    assert play.setting.past == 3
    method.start = lambda setting: None
    assert np.array_equal(actions(list(by_hand)), told)


@pytest.mark.parametrize("lam", [0.1, 1e-9])
def test_no_past_measurement_is_dropped_for_a_later_one(tmp_path, lam):
    """A model holds T observations and the past ones: its mean is the textbook's, of all."""
    task = problem("gardner-1", scaled=False, kernel="matern52")
    past = read_past(write(tmp_path), "")
    method = make("ckb-ucb", kernel="given", lam=lam, B=1.0, G=1.0, rho=4.0, V=1.0)
    play = Play(task, "test", method, "ckb-ucb", [0], 6, PlayOptions(initial={"file": past}))
    (chunk,) = list(play)
    told, values = take_past(task, past)
    x = task.box.unit(np.concatenate([told, chunk.actions[:, 0]]))
    observed = np.column_stack([chunk.observed_f, chunk.observed_g[:, 0]])
    y = np.concatenate([values, observed])
    weights = np.linalg.solve(task.box.kernel(x, x) + lam * np.eye(len(x)), y)
    expected = task.box.kernel(task.box.candidates, x) @ weights
    np.testing.assert_allclose(method.posterior.mean[0], expected.T, rtol=1e-5, atol=1e-5)


def test_rows_are_read_in_the_units_and_inputs_of_a_table(tmp_path):
    (tmp_path / "ovens.csv").write_text(OVENS)
    limits = {"smoke": {"at_most": 0.5}}
    options = {"rows": str(tmp_path / "ovens.csv"), "inputs": ["temp", "kind"]}
    task = prepare(
        "table", **options, one_hot=["kind"], objective={"minimise": "yield"}, constraints=limits
    )
    past = read_past(write(tmp_path, "kind,yield,smoke,temp\n1.10,3.6,0.45,150.0\na,1,0,100\n"), "")
    chosen, values = take_past(task, past)
    assert chosen.tolist() == [3, 0]
    f, g = np.array([-1.0, -2.0, -2.5, -3.5]), np.array([0.1, 0.2, 0.6, 0.4])
    assert values[0] == pytest.approx([(-3.6 - f.mean()) / f.std(), -0.05 / g.std()])
    for row in ("1.1,1,0,150", "a,1,0,151"):
        with refused(r"row 1: .* is no action of the problem, and no near one"):
            take_past(task, read_past(write(tmp_path, f"kind,yield,smoke,temp\n{row}\n"), ""))


def test_another_file_gives_other_cells_but_of_methods_that_learn_nothing(tmp_path):
    ids = []
    for text in (ROWS, ROWS.replace("0.25", "0.26")):
        write(tmp_path, text)
        cells = load(tmp_path / "suite.yaml").grid.cells.by_pair
        ids.append({c.pair.algorithm.name: c.ids.tolist() for c in cells})
    (tmp_path / "suite.yaml").write_text(SUITE.replace("initial: {file: past.csv}", ""))
    cells = load(tmp_path / "suite.yaml").grid.cells.by_pair
    plain = {c.pair.algorithm.name: c.ids.tolist() for c in cells}
    for name, numbers in plain.items():
        assert len({tuple(i[name]) for i in (*ids, plain)}) == (
            1 if name in ("random", "oracle") else 3
        ), numbers


def test_runs_resume_and_bundles_are_replayed_without_the_file(tmp_path, capsys):
    write(tmp_path)
    run = swept(tmp_path, SUITE)
    assert main(["run", str(tmp_path / "suite.yaml"), "--out", str(run), "--cpus", "0"]) == 0
    printed = capsys.readouterr()
    assert "12 done before" in printed.err
    assert "were told 3 past measurements of past.csv" in printed.out.replace("\n", " ")
    (tmp_path / "past.csv").unlink()
    assert main(["export", str(run), "--out", str(tmp_path / "b.zip")]) == 0
    assert main(["verify", str(tmp_path / "b.zip"), "--replay", "12"]) == 0
    assert "12 equal" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("x_2", "x2"), r"gardner-1: initial 'past.csv' has no column 'x_2', a column 'x2' wi"),
        (("0.25", ""), r"column 'g_1' holds text, such as ''; .* \(the first: row 2\)"),
        (("0.25", "inf"), "holds 1 missing or infinite entries .* row 2"),
        (("4.5", "7.5"), r"row 2: 'x_1 = 7.5, x_2 = 3' is no action of the problem, whose box"),
        ((ROWS, ""), "suite.yaml:5: initial 'past.csv' is empty"),
        (("x_1", "f"), "2 columns are called 'f'"),
        (("1,2,0.5", "1,2,0.5,-0.8\n" * MOST_ROWS + "1,2,0.5"), "has 1,003 rows; allowed: 1,000"),
    ],
)
def test_a_wrong_file_is_refused_in_one_line(tmp_path, change, message):
    write(tmp_path, ROWS.replace(*change))
    with refused(message):
        load(tmp_path / "suite.yaml")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("past.csv", "new.csv"), "suite.yaml:5: initial '.*new.csv' does not exist"),
        (("{file: past.csv}", "past.csv"), r"initial is 'past.csv'; .* \{file: past.csv\}"),
        (("problems", "parallel: 2\nproblems"), "parallel is 2, but past measurements"),
        (("gardner-1", "rkhs-1d"), "rkhs-1d: it takes no past measurements"),
        (("gardner-1", "feasible-pocket-drift"), "it takes no past measurements"),
    ],
)
def test_a_suite_that_takes_no_file_is_refused_in_one_line(tmp_path, change, message):
    write(tmp_path)
    (tmp_path / "suite.yaml").write_text(SUITE.replace(*change))
    with refused(message):
        load(tmp_path / "suite.yaml")
