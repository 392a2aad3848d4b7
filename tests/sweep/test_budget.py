"""`--budget`: what is there when it is spent is balanced over pairs, and the same command goes
on.
"""

from __future__ import annotations

from math import inf

import pytest

import cbobench
from cbobench.cli import main
from cbobench.errors import Misuse
from cbobench.suite.call import Call, parse_budget
from tests.helpers import long, play_here


def test_units_and_what_is_no_budget():
    assert [parse_budget(word) for word in ("90cpus", "1.5cpumin", "2cpuh", None)] == [
        90,
        90,
        7200,
        inf,
    ]
    for wrong in ("2h", "cpuh", "0cpuh", "-1cpuh", "2  cpuh", "", "1e3cpus", 7):
        with pytest.raises(Misuse, match="above 0 with its unit: cpus, cpumin, cpuh"):
            Call("quickstart", budget=wrong)


@pytest.mark.parametrize("extra", [[], ["--dry-run"]])
def test_a_wrong_budget_is_refused_before_anything_is_said(small_suite, tmp_path, capsys, extra):
    assert (
        main(["run", str(small_suite()), "--out", str(tmp_path / "run"), "--budget", "2h", *extra])
        == 2
    )
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == (
        "cbobench: budget is '2h'; allowed: a number above 0 with its unit: cpus, cpumin, cpuh "
        "(as in 2cpuh)\n"
    )


@pytest.mark.parametrize("cpus", [0, *long(2)])
def test_a_budget_ends_a_run_between_seeds_and_the_same_command_goes_on(
    small_suite, tmp_path, capsys, cpus
):
    suite, run = small_suite(horizon=20, seeds=3), tmp_path / "run"
    command = [
        "run",
        str(suite),
        "--out",
        str(run),
        "--cpus",
        str(cpus),
        "--block",
        "1",
        "--budget",
        "0.000001cpus",
    ]
    done = 0
    for _ in range(2):
        assert main(command) == 0
        err = capsys.readouterr().err
        counts = cbobench.load_cells(run).groupby("algorithm").size()
        assert done < counts.sum() < 9
        done = int(counts.sum())
        are = "is" if done == 1 else "are"
        assert f"the budget is spent: {done} of 9 cells {are} done; to go on: cbobench run" in err
    full = cbobench.run(suite, out=run, cpus=cpus, budget="1cpuh")
    assert (full.spent, full.played) == (False, 9 - done)
    frame = cbobench.load_rounds(run)
    assert frame.equals(cbobench.load_rounds(play_here(suite, tmp_path / "plain")))
