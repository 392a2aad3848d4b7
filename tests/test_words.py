"""Numbers with their nouns and verbs; a table in an encoding that has not all signs."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from cbobench.algorithms import ALGORITHMS
from cbobench.cli import main, make_parser
from cbobench.errors import nearest
from cbobench.registry import tell_install
from cbobench.report.quantities import quantities
from cbobench.words import count_noun, part_of
from tests.conftest import ROOT
from tests.report.made import make

PARSERS = next(action for action in make_parser()._actions if action.dest == "command").choices
COMMANDS = [*PARSERS]


def test_a_number_has_its_noun_and_verb():
    assert [count_noun(n, "file") for n in (0, 1, 2)] == ["0 files", "1 file", "2 files"]
    assert [count_noun(11_400, "cell"), part_of(11_400, 20_000, "cell")] == [
        "11,400 cells",
        "11,400 of 20,000 cells are",
    ]
    assert [part_of(*n, "file") for n in ((1, 2), (0, 1), (2, 3), (0, 2), (1, 1))] == [
        "1 of 2 files is",
        "0 of 1 file is",
        "2 of 3 files are",
        "0 of 2 files are",
        "1 of 1 file is",
    ]


@pytest.mark.parametrize(
    ("word", "names", "expected"),
    [
        ("figure", COMMANDS, "figures"),
        ("comapre", COMMANDS, "compare"),
        ("simple", quantities(), "simple_regret"),
        ("Viol", quantities(), "violation"),
        ("hard_violation", quantities(), "violation_hard"),
        ("simple_regrt", quantities(), "simple_regret"),
        ("ckb", ALGORITHMS.names(), "ckb-rand"),
        ("ucb-ckb", ALGORITHMS.names(), "ckb-ucb"),
        ("ab", ["abc-and-so-on"], None),
        ("xyz", COMMANDS, None),
    ],
)
def test_the_name_that_is_meant(word, names, expected):
    assert nearest(word, names) == expected
    assert nearest(word, reversed([*names])) == expected, "whatever their order"


def test_an_extra_is_installed_into_the_environment_that_lacks_it(monkeypatch, tmp_path):
    """A `pip` on the path may be another environment's, which has no cbobench."""
    beside, elsewhere = tmp_path / "own", tmp_path / "system"
    for folder in (beside, elsewhere):
        folder.mkdir()
        (folder / "pip").touch(mode=0o755)
    monkeypatch.setattr(sys, "executable", str(beside / "python"))
    monkeypatch.setenv("PATH", str(beside))
    assert tell_install("cma") == "pip install 'cbobench[cma]'"
    for path in (elsewhere, tmp_path):
        monkeypatch.setenv("PATH", str(path))
        assert tell_install("cma") == f"{beside}/python -m pip install 'cbobench[cma]'"


@pytest.mark.slow
def test_a_table_in_a_locale_without_greek(tmp_path, capsys):
    cells = {
        ("P", "A"): {"regret": [1.0, 2, 3], "positive_dual": [0.5] * 3},
        ("P", "B"): {"simple_regret": [None] * 3},
    }
    run = make(tmp_path / "run", cells, seeds=range(3))
    bare = {k: v for k, v in os.environ.items() if not k.startswith(("LC_", "LANG", "PYTHON"))}
    command = [
        sys.executable,
        "-m",
        "cbobench",
        "compare",
        str(run),
        "--metric",
        "r",
        "R",
        "V+",
        "positive_dual",
    ]
    environment = bare | {
        "PYTHONIOENCODING": "ascii",
        "PYTHONUTF8": "0",
        "LC_ALL": "C",
        "COLUMNS": "200",
    }
    done = subprocess.run(command, env=environment, capture_output=True, check=True, cwd=ROOT)
    lines = done.stdout.decode().splitlines()
    assert main(command[3:]) == 0
    assert "V⁺" in capsys.readouterr().out
    text = "".join(lines)
    assert text.isascii()
    heading, _, first = lines[1:4]
    assert "V?" in heading.split()
    assert heading.rindex("? > 0") + len("? > 0") == first.rindex("50.0 %") + len("50.0 %"), (
        "columns stay aligned"
    )
