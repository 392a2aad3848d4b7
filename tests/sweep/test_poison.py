"""Cells that raise anything, or leave anything behind: each is a failed row, and no neighbour notices."""

from __future__ import annotations

import random

import numpy as np
import pytest

import cbobench
from cbobench.errors import CellFailure
from cbobench.play.failure import (
    LONGEST_LINE,
    LONGEST_TRACE,
    Interrupted,
    TimedOut,
    described,
    is_overdue,
    reraise_the_users,
    safe_line,
    safe_text,
)  # fmt: skip
from cbobench.play.isolation import isolated
from tests.sweep.poison import DIED, LEFT, RAISED, write_poison


def suite_of(hows, more="", seeds=4):
    return (
        f"suite: p\nhorizon: 5\nseeds: {seeds}\nproblems: [rkhs-1d]\nalgorithms:\n"
        f"  - poison_plugin:Poison: {{how: {{sweep: [{', '.join(hows)}]}}}}\n{more}"
    )


def rows_of(run):
    frame = cbobench.load_cells(run)
    frame["how"] = frame["algorithm"].str.extract(r"how=([\w ]+)", expand=False)
    return frame


def assert_only_the_poisoned_failed(run, expected, seed=2):
    """And the others' regret is what it is where nothing is poisoned."""
    frame = rows_of(run)
    poisoned = frame[frame["how"].isin(expected)]
    failed = frame[frame["status"] == "failed"]
    assert sorted(failed["how"]) == sorted(expected)
    assert set(failed["seed"]) == {seed}
    for how, error in zip(failed["how"], failed["error"], strict=True):
        assert error.startswith(expected[how]), (how, error)
        assert len(error) <= LONGEST_LINE
        assert error.isprintable()
    assert poisoned[poisoned["seed"] != seed].groupby("seed")["regret"].nunique().eq(1).all()
    assert failed["traceback"].str.len().max() < 2 * LONGEST_TRACE


@pytest.mark.parametrize("cpus", [0, 2])
def test_whatever_a_cell_raises_is_its_row(write_suite, tmp_path, command, cpus):
    environment = write_poison(tmp_path)
    suite = write_suite(suite_of([*RAISED, "none"]))
    done = command("run", suite, "--out", tmp_path / "p", "--cpus", cpus, env=environment)
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    assert_only_the_poisoned_failed(tmp_path / "p", RAISED)
    assert rows_of(tmp_path / "p")["traceback"].dropna().str.contains("in fail").all()


@pytest.mark.slow
def test_whatever_ends_its_worker_is_its_row(write_suite, tmp_path, command):
    """With the reason, as far as the kernel tells it; a neighbour in the block is played again, and stands."""
    environment = write_poison(tmp_path)
    suite = write_suite(suite_of([*DIED, "none"]))
    done = command("run", suite, "--out", tmp_path / "p", "--cpus", 2, env=environment)
    assert done.returncode == 1, done.stderr
    assert_only_the_poisoned_failed(tmp_path / "p", DIED)
    assert not list((tmp_path / "p").rglob("*.tmp"))


def test_the_text_of_a_failure_is_one_safe_line():
    assert described(ValueError("a\x1b[2Jb\r\nsecond"))[0] == r"ValueError: a\x1b[2Jb"
    assert described(ValueError("\ud800 \u202e ok ≤ é"))[0] == r"ValueError: \ud800 \u202e ok ≤ é"
    assert described(CellFailure("of ours"))[0] == "of ours"
    assert described(KeyError())[0] == "KeyError"
    noted = ValueError("x")
    noted.add_note("round 7")
    assert described(noted)[0] == "round 7: ValueError: x"
    noted.__notes__ = [3, "round 8", None]
    assert described(noted)[0] == "round 8: ValueError: x"
    noted.__notes__ = 5
    assert described(noted)[0] == "ValueError: x"
    assert described(type("Bad\x1b", (Exception,), {})("x"))[0] == r"Bad\x1b: x"
    assert len(safe_line("y" * 10**6)) == LONGEST_LINE
    long = safe_text("first\n" + "y" * 10**6 + "\nlast\x07")
    assert len(long) < LONGEST_TRACE + 100
    assert long.startswith("first\ny")
    assert long.endswith("\nlast\\x07")


def test_the_users_signal_is_no_failure_of_a_cell():
    """However a cell dresses it up; and what no signal raised is the cell's own."""

    try:
        try:
            raise Interrupted
        except KeyboardInterrupt:
            raise ValueError("the cell's words") from None
    except ValueError as error:
        dressed = error
    with pytest.raises(Interrupted):
        reraise_the_users(dressed)
    assert not is_overdue(dressed)
    reraise_the_users(KeyboardInterrupt())
    assert is_overdue(TimedOut())


SWALLOWING = """
from cbobench.algorithms.references import Random
import os, signal

class Swallowing(Random):
    def ask(self, t):
        try:
            if t == 3:
                os.kill(os.getpid(), signal.SIGTERM)
        except BaseException:
            pass
        return super().ask(t)
"""


def test_a_signal_that_a_cell_swallows_still_ends_the_sweep(write_suite, tmp_path, command):
    environment = write_poison(tmp_path)
    (tmp_path / "swallowing.py").write_text(SWALLOWING)
    text = "suite: s\nhorizon: 5\nseeds: 3\nproblems: [rkhs-1d]\nalgorithms: [swallowing:Swallowing, random]\n"
    done = command("run", write_suite(text), "--out", "s", "--cpus", 0, env=environment)
    assert done.returncode == 130, done.stderr
    assert "stopped: 3 of 6 cells done; to go on: cbobench run" in done.stderr


TENDER = "  - poison_plugin:Tender\n"


@pytest.mark.parametrize("cpus", [0, 1])
def test_what_a_cell_leaves_behind_no_other_meets(write_suite, tmp_path, command, cpus):
    """Nor does a thread of its own keep the command from ending."""
    environment = write_poison(tmp_path)
    suite = write_suite(suite_of(LEFT, TENDER))
    done = command("run", suite, "--out", tmp_path / "p", "--cpus", cpus, env=environment)
    assert done.returncode == 0, done.stderr
    assert len(rows_of(tmp_path / "p")) == 4 * (len(LEFT) + 1)
    assert done.stdout.startswith("p, T = 5"), "the table is where it belongs"


@pytest.mark.slow
@pytest.mark.parametrize("players", ["fresh workers", "ray"])
def test_rules_that_a_module_sets_when_it_is_imported_are_its_own(write_suite, tmp_path, command, players):
    """In processes that import it with the problem that they are sent."""
    environment = write_poison(tmp_path)
    (tmp_path / "strict.py").write_text(
        "import warnings\nimport numpy as np\nfrom cbobench.problems.rkhs import RKHS1D as Base\n"
        "np.seterr(all='raise')\nwarnings.simplefilter('error')\n\n\nclass Strict(Base):\n    pass\n"
    )
    text = suite_of(["none"], TENDER).replace("[rkhs-1d]", "[rkhs-1d, strict:Strict]")
    done = command("run", write_suite(text), "--out", "p", "--cpus", 1, env=environment, players=players)
    assert done.returncode == 0, done.stderr
    assert len(rows_of("p")) == 16


def test_global_generators_begin_from_the_cells_own_stream():
    def drawn(*name):
        with isolated(*name):
            return np.random.random(), random.random()  # noqa: NPY002

    before = np.random.get_state()[1].tolist(), random.getstate()  # noqa: NPY002
    assert drawn("a", 1) == drawn("a", 1) != drawn("a", 2)
    assert (np.random.get_state()[1].tolist(), random.getstate()) == before  # noqa: NPY002
