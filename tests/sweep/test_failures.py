"""Cells that fail, crash or hang: each is a failed row, and no other cell notices.

Failures are counted by kind; what cells print, 16 MB of it, reaches no terminal.
"""

from __future__ import annotations

import re
import signal

import pytest

import cbobench
from cbobench.cli import main
from cbobench.errors import CellFailure, reraise_stop
from cbobench.play.task import LONGEST_LINE, LONGEST_TRACE, describe_error, safe_line, safe_text
from cbobench.sweep import scheduler
from tests.helpers import long, long_cases, play_here
from tests.sweep.poison import DIED, LEFT, RAISED, suite_of, write_poison

BROKEN = '''
import os
from dataclasses import dataclass
from cbobench.algorithms.ckb import CKBUCB
from cbobench.params import param
from tests.helpers import long, long_cases


@dataclass(kw_only=True)
class Broken(CKBUCB):
    """Fails on purpose in some replicates."""

    how: str = param("raise", "how")

    def learn(self, t, chosen, feedback):
        super().learn(t, chosen, feedback)
        bad = self.setting.norm[:, 0] > 5.0
        if t == 20 and bad.any() and not os.environ.get("WELL"):
            if self.how == "raise":
                raise ValueError("on purpose")
            if self.how == "exit":
                raise SystemExit(0)
            if self.how == "nan":
                self.dual[bad] = float("nan")

    def ask(self, t):
        actions = super().ask(t)
        if t == 20 and self.how == "range":
            actions = actions.copy()
            actions[self.setting.norm[:, 0] > 5.0] = -1
        return actions
'''
MESSAGES = {
    "raise": "ValueError: on purpose",
    "exit": "SystemExit: 0",
    "nan": "not finite|not a number",
    "range": "round 20: action -1",
}


def test_a_failed_cell_is_a_row_and_can_be_played_again(write_suite, tmp_path, monkeypatch):
    """The others of its block stand, with what they are where nothing fails."""
    (tmp_path / "mine_broken.py").write_text(BROKEN)
    monkeypatch.syspath_prepend(str(tmp_path))
    suite = write_suite(
        f"suite: b\nhorizon: 20\nseeds: 6\nproblems: [rkhs-1d]\nalgorithms:\n"
        f"  - mine_broken:Broken: {{how: {{sweep: [{', '.join(MESSAGES)}]}}}}\n"
    )
    outcome = play_here(suite, tmp_path / "b")
    frame = cbobench.load_cells(tmp_path / "b")
    failed, spared = (frame[frame["status"] == status] for status in ("failed", "ok"))
    assert outcome.failed == len(failed)
    for how, message in MESSAGES.items():
        errors = failed.loc[failed["algorithm"].str.contains(how), "error"]
        assert 0 < len(errors) < 6
        assert errors.str.contains(message).all(), how
    assert failed["traceback"].str.contains("Traceback").all()
    assert failed["regret"].isna().all()
    assert set(cbobench.load_rounds(tmp_path / "b")["cell"]) == set(spared["cell"])
    assert play_here(suite, tmp_path / "b").played == 0
    monkeypatch.setenv("WELL", "yes")
    played_again = play_here(suite, tmp_path / "b", only="*raise*", again=["failed"])
    assert (played_again.played, played_again.failed) == (
        len(failed[failed["algorithm"].str.contains("raise")]),
        0,
    )
    after = cbobench.load_cells(tmp_path / "b", algorithm="mine_broken:Broken[how=raise]")
    assert (after["status"] == "ok").all()
    assert after["attempt"].value_counts().to_dict() == {
        1: 6 - played_again.played,
        2: played_again.played,
    }
    assert (
        len(cbobench.load_rounds(tmp_path / "b", algorithm="mine_broken:Broken[how=raise]"))
        == 6 * 20
    )


def rows_of(run):
    frame = cbobench.load_cells(run)
    frame["how"] = frame["algorithm"].str.extract(r"how=([\w ]+)", expand=False)
    return frame


def assert_only_the_poisoned_failed(run, expected):
    """And the others' regret is what it is where nothing is poisoned."""
    frame = rows_of(run)
    poisoned = frame[frame["how"].isin(expected)]
    failed = frame[frame["status"] == "failed"]
    assert sorted(failed["how"]) == sorted(expected)
    assert set(failed["seed"]) == {2}
    for how, error in zip(failed["how"], failed["error"], strict=True):
        assert error.startswith(expected[how]), (how, error)
        assert len(error) <= LONGEST_LINE
        assert error.isprintable()
    assert poisoned[poisoned["seed"] != 2].groupby("seed")["regret"].nunique().eq(1).all()
    assert failed["traceback"].str.len().max() < 2 * LONGEST_TRACE


def test_whatever_a_cell_raises_is_its_row(write_suite, tmp_path, cli):
    write_poison(tmp_path)
    done = cli(
        "run", write_suite(suite_of([*RAISED, "none"])), "--out", tmp_path / "p", "--cpus", 2
    )
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    assert_only_the_poisoned_failed(tmp_path / "p", RAISED)
    assert rows_of(tmp_path / "p")["traceback"].dropna().str.contains("in fail").all()


@pytest.mark.parametrize(
    ("players", "died"),
    [
        (None, DIED),
        *long_cases(("ray", {"exit": DIED["exit"]}), ("fresh workers", {"exit": DIED["exit"]})),
    ],
)
def test_whatever_ends_its_worker_is_its_row(write_suite, tmp_path, cli, players, died):
    """With the reason, as far as the kernel tells it; a neighbour in the block is played again, and
    stands.
    """
    write_poison(tmp_path)
    done = cli(
        "run",
        write_suite(suite_of([*died, "none"])),
        "--out",
        tmp_path / "p",
        "--cpus",
        2,
        players=players,
    )
    assert done.returncode == 1, done.stderr
    assert done.stdout.startswith("p, T = 5"), done.stderr  # only the table is on standard output
    assert "raylet" not in done.stdout + done.stderr
    assert_only_the_poisoned_failed(tmp_path / "p", died)
    assert len(rows_of(tmp_path / "p")) == 4 * (len(died) + 1)
    assert not list((tmp_path / "p").rglob("*.tmp"))


HANGING = """\
suite: h
horizon: 5
seeds: [2, 3]
timeout: 2
problems: [rkhs-1d]
algorithms:
  - poison_plugin:Poison: {how: {sweep: [none, hang]}}

"""


@pytest.mark.parametrize(("cpus", "players"), [(0, None), (2, None), *long_cases((2, "ray"))])
def test_a_cell_that_hangs_is_a_row_with_its_stack(
    write_suite, tmp_path, monkeypatch, cli, cpus, players
):
    """The others of its block stand; one that cannot be interrupted loses its process."""
    monkeypatch.setattr(scheduler, "GRACE", 1.0)
    write_poison(tmp_path)
    suite = write_suite(HANGING.replace("hang]", "hang, deaf hang]" if cpus else "hang]"))
    done = cli("run", suite, "--out", "h", "--cpus", cpus, players=players)
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    assert "Timeout" not in done.stderr
    frame = rows_of("h")
    failed = frame[frame["status"] == "failed"].set_index("how")
    hows = ["deaf hang", "hang"] if cpus else ["hang"]
    assert sorted(failed.index) == hows
    assert set(failed["seed"]) == {2}
    assert failed.loc["hang", "error"] == "round 3: timed out after 2 s"
    if cpus:
        assert re.fullmatch(
            r"timed out after \d+ s, and could not be interrupted", failed.loc["deaf hang", "error"]
        )
    trace = failed.loc["hang", "traceback"]
    assert 'poison_plugin.py", line' in trace
    assert "in harm" in trace
    fine = frame[frame["seed"] != 2].groupby("seed")["regret"]
    assert fine.count().eq(1 + len(hows)).all()
    assert fine.nunique().eq(1).all()
    assert not list((tmp_path / "h").rglob("*.tmp"))


def test_the_text_of_a_failure_is_one_safe_line():
    assert describe_error(ValueError("a\x1b[2Jb\r\nsecond"))[0] == r"ValueError: a\x1b[2Jb"
    assert (
        describe_error(ValueError("\ud800 \u202e ok ≤ é"))[0] == r"ValueError: \ud800 \u202e ok ≤ é"
    )
    assert describe_error(CellFailure("of ours"))[0] == "of ours"
    assert describe_error(KeyError())[0] == "KeyError"
    noted = ValueError("x")
    noted.__notes__ = [3, "round 8", None]
    assert describe_error(noted)[0] == "round 8: ValueError: x"
    assert len(safe_line("y" * 10**6)) == LONGEST_LINE
    long = safe_text("first\n" + "y" * 10**6 + "\nlast\x07")
    assert len(long) < LONGEST_TRACE + 100
    assert (long[:7], long[-9:]) == ("first\ny", "\nlast\\x07")


SWALLOWING = """
from cbobench.algorithms.references import Random
import os, signal

class Swallowing(Random):
    def ask(self, t):
        try:
            if t == 3:
                os.kill(os.getpid(), signal.SIGHUP)
        except BaseException:
            {how}
        return super().ask(t)
"""


@pytest.mark.parametrize(
    ("how", "before", "played"),
    [
        ("pass", signal.SIG_DFL, 3),
        ("raise ValueError('of the cell') from None", signal.SIG_DFL, 0),
        ("pass", signal.SIG_IGN, 6),
    ],
)
def test_a_signal_that_a_cell_swallows_still_ends_the_sweep(
    write_suite, tmp_path, how, before, played
):
    """Or dresses; that of a terminal that is closed, but not where nohup had it ignored."""
    (tmp_path / "swallowing.py").write_text(SWALLOWING.format(how=how))
    text = (
        "suite: s\nhorizon: 5\nseeds: 3\nproblems: [rkhs-1d]\nalgorithms: "
        "[swallowing:Swallowing, random]\n"
    )
    handler = signal.signal(signal.SIGHUP, before)
    try:
        outcome = play_here(write_suite(text), "s")
    finally:
        signal.signal(signal.SIGHUP, handler)
    assert (outcome.stopped, outcome.played) == (played < 6, played)


TENDER = "  - poison_plugin:Tender\n"


@pytest.mark.parametrize("cpus", [0, *long(1)])
def test_what_a_cell_leaves_behind_no_other_meets(write_suite, tmp_path, command, cpus):
    """Nor does a thread of its own keep the command from ending."""
    environment = write_poison(tmp_path)
    suite = write_suite(suite_of(LEFT, TENDER))
    done = command("run", suite, "--out", tmp_path / "p", "--cpus", cpus, env=environment)
    assert done.returncode == 0, done.stderr
    assert len(rows_of(tmp_path / "p")) == 4 * (len(LEFT) + 1)
    assert done.stdout.startswith("p, T = 5"), "the table is where it belongs"


LOUD = """
import os, sys, warnings
from cbobench.algorithms.references import Random


class Loud(Random):
    def ask(self, t):
        print("round", t)
        sys.stderr.write("\\x1b[31mred\\n" * 40_000)
        sys.stdout.buffer.write(b"bytes")
        os.write(1, b"x" * 100_000)
        os.write(sys.stderr.fileno(), b"y" * 100_000)
        warnings.warn("careful")
        return super().ask(t)
"""


@pytest.fixture
def loud(write_suite, tmp_path, cli):
    (tmp_path / "loud.py").write_text(LOUD)
    suite = write_suite(
        "suite: s\nhorizon: 4\nseeds: 3\nproblems: [rkhs-1d]\nalgorithms: [loud:Loud]\n"
    )

    def play(players, cpus):
        done = cli("run", suite, "--cpus", cpus, "--block", 1, players=players)
        assert done.returncode == 0, done.stderr[-2000:]
        return done.stdout + done.stderr

    return play


@pytest.mark.parametrize("players", [None, *long("ray")])
def test_what_cells_print_is_not_shown_and_one_line_says_so(loud, players):
    shown_text = loud(players, 2)
    assert len(shown_text) < 5000
    line = "what cells print is shown only with --cpus 0; rkhs-1d / loud:Loud began with 'round 1'"
    assert [text for text in shown_text.splitlines() if "cells print" in text] == [line]


def test_failures_are_told_by_kind_during_a_run_and_at_its_end(
    write_suite, tmp_path, monkeypatch, capsys
):
    write_poison(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    text = suite_of(["ansi", "memory"]).replace("{how", "{every: true, how")
    suite = write_suite(text)
    assert main(["run", str(suite), "--out", "t", "--cpus", "0", "--block", "2"]) == 1
    error = capsys.readouterr().err
    assert re.search(r"bell \(poison_plugin.py:\d+\)", error)
    lines = re.sub(r" \(poison_plugin.py:\d+\)", "", error).splitlines()
    ansi = r"4 x ValueError: red \x1b[31m and \x07 bell"
    assert lines[2] == ansi.replace("4 x", "2 failed: 2 x")
    assert lines[3] == f"4 failed: {ansi.replace('4', '2', 1)}, 2 x MemoryError"
    assert f"8 failed: {ansi}, 4 x MemoryError" in lines[4:]
    assert sum(line.startswith("failed: ") for line in lines) == 2


def test_a_worker_that_ray_ends_fails_no_cell():
    raylet = pytest.importorskip("ray._raylet")
    with pytest.raises(SystemExit) as ended:
        raylet.raise_sys_exit_with_custom_error_message("The worker got SIGTERM.", exit_code=1)
    wrapped = RuntimeError("a library's")
    wrapped.__cause__ = ended.value
    with pytest.raises(SystemExit):
        reraise_stop(wrapped)
    reraise_stop(SystemExit(1))  # of a user's code: a failure of its own
