"""Files of a user's that could be readings or configurations are refused with both readings; a suite with a table."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from cbobench import params
from cbobench.errors import Misuse
from cbobench.problems.data import DataFolder
from cbobench.problems.table import UserTable
from cbobench.suite.load import load
from tests.problems.test_configurations import grid

ARMS = pd.DataFrame(np.random.default_rng(0).normal([1, 2, 3], 0.5, (40, 3)), columns=["a", "b", "c"])
DOUBTS = {
    "scales": (grid(), "the scales of 'spare_mb' and 'rate' differ by more than a hundred"),
    "text": (ARMS.assign(kind="x"), "column 'kind' holds text"),
    "whole": (ARMS.assign(c=[1, 2, 3, 4] * 10), "column 'c' takes 4 whole values only"),
}


@pytest.mark.parametrize("case", DOUBTS)
def test_a_file_that_could_be_either_is_refused_with_both_readings(tmp_path, case):
    frame, why = DOUBTS[case]
    frame.to_csv(tmp_path / "c.csv", index=False)
    with pytest.raises(Misuse, match=why) as caught:
        params.build(UserTable, {"rows": "c.csv"}).prepare(DataFolder(base=tmp_path))
    both = str(caught.value)
    assert "layout: readings" in both
    assert "layout: configurations with inputs: [columns], objective: column, constraints: {column" in both
    assert str(len(frame)) in both
    assert "\n" not in both


def test_row_numbers_are_no_arm(tmp_path):
    ARMS.to_csv(tmp_path / "c.csv")
    for settings, message in (({}, "may be either"), ({"layout": "readings"}, "a column has no name")):
        with pytest.raises(Misuse, match=message):
            params.build(UserTable, {"rows": "c.csv"} | settings).prepare(DataFolder(base=tmp_path))
    ok = params.build(UserTable, {"rows": "c.csv", "ignore": ["Unnamed: 0"]})
    ok.prepare(DataFolder(base=tmp_path))
    assert ok.actions.names == ("a", "b", "c")


def test_said_readings_are_readings(tmp_path):
    frame = ARMS.assign(c=1000 * ARMS["c"])
    frame.to_csv(tmp_path / "c.csv", index=False)
    task = params.build(UserTable, {"rows": "c.csv", "layout": "readings", "threshold": 1.5})
    task.prepare(DataFolder(base=tmp_path))
    assert task.actions.n == 3
    np.testing.assert_allclose(task.known_instance().f[0], frame.mean())


SUITE = """\
suite: mine
horizon: 10
seeds: 2
problems:
  - table: {{layout: configurations, rows: c.csv, inputs: [width, rate], objective: accuracy,
            constraints: {constraints}}}
algorithms: [cei, random]
"""


@pytest.mark.parametrize("given", ["{swep: [1, 2]}", "{sweep: [{a: 1}]}"])
def test_a_mapping_is_a_value_of_parameters_that_are_mappings_alone(write_suite, given):
    suite = write_suite(
        f"suite: s\nhorizon: 3\nseeds: 1\nproblems:\n  - rkhs-1d: {{h: {given}}}\nalgorithms: [random]\n"
    )
    with pytest.raises(
        Misuse, match=r"suite.yaml:5: rkhs-1d: h is \{.*\}; allowed: number, or \{sweep: \[values\]\} in a suite"
    ):
        load(suite)


def test_a_mapping_may_be_swept(write_suite, tmp_path):
    grid().to_csv(tmp_path / "c.csv", index=False)
    several = "{sweep: [{latency_ms: {at_most: 40}}, {latency_ms: {at_most: 30}, spare_mb: {at_least: 100}}]}"
    loaded = load(write_suite(SUITE.format(constraints=several).replace("objective:", "ignore: rest, objective:")))
    assert [task.constraints for task in loaded.problems.values()] == [1, 2]
    assert 'constraints={"latency_ms":{"at_most":40}}' in next(iter(loaded.problems))


def test_a_suite_with_a_table(command, write_suite, tmp_path, clean_tree):
    grid().to_csv(tmp_path / "c.csv", index=False)
    wrong = write_suite(SUITE.format(constraints="{latency_ms: {at_most: 5}, spare_mb: {at_least: 1}}"))
    before = clean_tree()
    done = command("run", wrong, "--out", tmp_path / "out", "--cpus", "0")
    assert (done.returncode, done.stderr.count("\n"), clean_tree()) == (2, 1, before)
    assert f"{wrong}:5: table: no feasible configuration" in done.stderr
    suite = write_suite(SUITE.format(constraints="{latency_ms: {at_most: 40}, spare_mb: {at_least: 100}}"))
    done = command("run", suite, "--out", tmp_path / "out", "--cpus", "0")
    assert done.returncode == 0, done.stderr
    assert '"latency_ms":{"at_most":40}' in done.stdout.replace("\n", "").replace(" ", "")
