"""Tables without a layout are refused; a suite with a table."""

from __future__ import annotations

import pytest

from cbobench import params
from cbobench.cli import main
from cbobench.errors import Misuse
from cbobench.problems.tables.table import UserTable
from tests.helpers import load
from tests.problems.test_configurations import grid


def test_rows_without_a_layout_are_refused_with_both_readings():
    with pytest.raises(Misuse) as caught:
        params.build(UserTable, {"rows": "c.csv"})
    refusal = str(caught.value)
    assert "layout: readings" in refusal
    assert (
        "layout: configurations with inputs: [columns], objective: column, constraints: {column"
        in refusal
    )
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
