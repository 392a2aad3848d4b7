"""The command, and what is shipped: every registered method obeys the laws that a user's must, with
no list to edit.
"""

from __future__ import annotations

import json

import pytest

from cbobench.algorithms import ALGORITHMS
from cbobench.check.report import DERIVED, OF_METHODS, OF_PROBLEMS, check
from cbobench.cli import main
from tests.helpers import entry, long

SIBLINGS = {  # whose code beside a score of their own is that of another method
    "ckb-rand",
    "cobyla",
    "cobyqa",
    "config",
    "fixed-penalty",
    "furbo",
    "gp-ts",
    "igp-ucb",
    "penalty-noiseless",
    "penalty-noisy",
    "pymoo-de",
    "rpol-ucb",
    "scgp-ucb",
    "sgp-ucb",
    "vq-ucb",
}


@pytest.mark.parametrize(
    "name", [entry(name, long=name in SIBLINGS) for name in ALGORITHMS.names()]
)
def test_every_method_obeys_the_laws(name):
    verdicts = [*check(name, short=True)]
    assert [str(v.finding) for v in verdicts if v.finding is not None] == []
    assert {v.law for v in verdicts if not v.skipped} >= {*OF_METHODS}


@pytest.mark.long
@pytest.mark.parametrize("name", [*map(entry, ALGORITHMS.names())])
def test_every_method_obeys_the_laws_in_their_long_form(name):
    assert [str(v.finding) for v in check(name) if v.finding is not None] == []


@pytest.mark.parametrize("name", ["gramacy", *long("feasible-pocket-drift")])
def test_a_problem_obeys_the_laws(name):
    verdicts = [*check(name)]
    assert [str(v.finding) for v in verdicts if v.finding is not None] == []
    assert {v.law for v in verdicts if not v.skipped} >= {*OF_PROBLEMS, DERIVED}


MINE = """\
from dataclasses import dataclass
from cbobench.algorithms.base import OneRun


@dataclass(kw_only=True)
class Half(OneRun):
    def start_one(self, setting):
        pass


class Thing:
    pass


class Torn(OneRun):
    '''Divides.'''

    source = about = "mine"

    def start_one(self, setting):
        self.zero = 0

    def ask_one(self, t):
        return 1 // self.zero
"""


@pytest.fixture
def checked_module(tmp_path):
    (tmp_path / "mine_checked.py").write_text(MINE)
    return "mine_checked"


def test_a_broken_law_is_exit_code_1_and_a_sentence_with_the_fix(checked_module, capsys):
    assert main(["check", f"{checked_module}:Half"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "mine_checked:Half (algorithm)"
    assert lines[1].split()[:4] == ["FAIL", "can", "be", "made"]
    assert (
        "  Half does not define ask_one(self, t); write it: Return the action of round t: an "
        "index of a" in lines[1]
    )
    assert (
        "not looked at before that is mended: parameters declared; plays; repeatable;" in lines[-2]
    )
    assert lines[-1] == "1 law of 8 broken"


def test_a_terminal_shows_what_is_tested_while_it_is_tested(checked_module, capsys, monkeypatch):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert main(["check", f"{checked_module}:Torn"]) == 1
    shown = capsys.readouterr().out
    began, _, verdict = shown.partition("  FAIL  plays")
    assert began.endswith("  ...   plays\r" + 79 * " " + "\r"), "taken away before the verdict"
    assert [line.rpartition("\r")[2][:12] for line in shown.split("\n")[1:3]] == [
        "  ok    can ",
        "  ok    para",
    ]
    monkeypatch.setattr("sys.stdout.isatty", lambda: False)
    assert main(["check", f"{checked_module}:Torn"]) == 1
    assert "..." not in capsys.readouterr().out


def test_what_is_raised_is_said_with_its_line(checked_module, capsys):
    assert main(["check", f"{checked_module}:Torn", "--format", "json"]) == 1
    laws = {law["law"]: law for law in json.loads(capsys.readouterr().out)["laws"]}
    assert "on a finite set, round 1: ZeroDivisionError" in laws["plays"]["what"]
    assert (
        f"(mine_checked.py:{1 + MINE.splitlines().index('        return 1 // self.zero')})"
        in laws["plays"]["what"]
    )
    assert laws["can be made"]["ok"]
    assert laws["no peeking at f and g"] == {
        "law": "no peeking at f and g",
        "ok": False,
        "skipped": True,
    }


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (
            ["mine_checked:Thing"],
            "'mine_checked:Thing' is neither an algorithm nor a problem; derive AskTell, OneRun",
        ),
        (["mine_checked:Haf"], "did you mean 'Half'?"),
        (["gramcy"], "did you mean 'gramacy'?"),
        (
            ["gramacy", "--set", "noise_f"],
            "--set 'noise_f' is no parameter; write --set NAME=VALUE",
        ),
        (["gramacy", "--set", "noise_f=lots"], "noise_f is 'lots'; allowed: number"),
        (
            ["cei", "--set", "kernel=fti"],
            "kernel is 'fti'; did you mean 'fit'?; allowed: 'auto' | 'given' | 'fit'",
        ),
        (["gramacy", "--set", "nose=1"], "unknown parameter 'nose'"),
    ],
)
def test_wrong_words_are_refused(checked_module, capsys, arguments, says):
    assert main(["check", *arguments]) == 2
    out, err = capsys.readouterr()
    assert says in err
    assert (out, err.count("\n")) == ("", 1)
