"""Files of a user's that could be readings or configurations are refused with both readings; a
suite with a table.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from cbobench import params
from cbobench.cli import main
from cbobench.errors import Misuse
from cbobench.problems.data import DataFolder
from cbobench.problems.tables.table import UserTable
from tests.helpers import load
from tests.problems.test_configurations import grid

ARMS = pd.DataFrame(
    np.random.default_rng(0).normal([1, 2, 3], 0.5, (40, 3)), columns=["a", "b", "c"]
)
DOUBTS = {
    "scales": (grid(), "the scales of 'spare_mb' and 'rate' differ by more than a hundred"),
    "whole": (ARMS.assign(c=[1, 2, 3, 4] * 10), "column 'c' takes 4 whole values only"),
}


@pytest.mark.parametrize(("frame", "why"), DOUBTS.values(), ids=DOUBTS)
def test_a_file_that_could_be_either_is_refused_with_both_readings(tmp_path, frame, why):
    frame.to_csv(tmp_path / "c.csv", index=False)
    with pytest.raises(Misuse, match=why) as caught:
        params.build(UserTable, {"rows": "c.csv"}).prepare(DataFolder(base=tmp_path))
    refusal = str(caught.value)
    assert "layout: readings" in refusal
    assert (
        "layout: configurations with inputs: [columns], objective: column, constraints: {column"
        in refusal
    )
    assert str(len(frame)) in refusal
    assert "\n" not in refusal


SUITE = """\
suite: mine
horizon: 10
seeds: 2
problems:
  - table: {{layout: configurations, rows: c.csv, inputs: [width, rate], objective: accuracy,
            constraints: {constraints}}}
algorithms: [cei, random]
"""


@pytest.mark.parametrize("value", ["{swep: [1, 2]}", "{sweep: [{a: 1}]}"])
def test_a_mapping_is_a_value_of_parameters_that_are_mappings_alone(write_suite, value):
    suite = write_suite(
        f"suite: s\nhorizon: 3\nseeds: 1\nproblems:\n  - rkhs-1d: {{h: {value}}}\nalgorithms: "
        "[random]\n"
    )
    with pytest.raises(
        Misuse,
        match=(
            r"suite.yaml:5: rkhs-1d: h is \{.*\}; allowed: number, or \{sweep: \[values\]\} in a "
            r"suite"
        ),
    ):
        load(suite)


def test_a_mapping_may_be_swept(write_suite, tmp_path):
    grid().to_csv(tmp_path / "c.csv", index=False)
    several = (
        "{sweep: [{latency_ms: {at_most: 40}}, {latency_ms: {at_most: 30}, spare_mb: {at_least: "
        "100}}]}"
    )
    loaded = load(
        write_suite(
            SUITE.format(constraints=several).replace("objective:", "ignore: rest, objective:")
        )
    )
    assert [task.constraints for task in loaded.problems.values()] == [1, 2]
    assert 'constraints={"latency_ms":{"at_most":40}}' in next(iter(loaded.problems))


def test_a_suite_with_a_table(write_suite, tmp_path, capsys):
    grid().to_csv(tmp_path / "c.csv", index=False)
    wrong = write_suite(
        SUITE.format(constraints="{latency_ms: {at_most: 5}, spare_mb: {at_least: 1}}")
    )
    assert main(["run", str(wrong), "--out", str(tmp_path / "out"), "--cpus", "0"]) == 2
    assert f"{wrong}:5: table: no feasible configuration" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    suite = write_suite(
        SUITE.format(constraints="{latency_ms: {at_most: 40}, spare_mb: {at_least: 100}}")
    )
    assert main(["run", str(suite), "--out", str(tmp_path / "out"), "--cpus", "0"]) == 0
    assert '"latency_ms":{"at_most":40}' in capsys.readouterr().out.replace("\n", "").replace(
        " ", ""
    )
