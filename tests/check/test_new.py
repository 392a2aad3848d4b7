"""What `cbobench new` writes obeys the laws and plays; it overwrites nothing."""

from __future__ import annotations

import pytest

from cbobench.check.report import check
from cbobench.cli import main
from cbobench.cli.new import new
from cbobench.errors import Misuse
from tests.helpers import play_here

SOME = ("parameters declared", "plays", "repeatable", "optimum as declared")


@pytest.mark.parametrize("kind", ["algorithm", "problem", "simulator"])
def test_what_is_written_obeys_the_laws_and_plays(tmp_path, kind):
    code, suite = new(kind, "fresh-one", tmp_path)
    assert (code.name, suite.name) == ("fresh_one.py", "fresh_one.yaml")
    assert max(map(len, code.read_text().splitlines())) <= 120
    verdicts = [*check("fresh_one:FreshOne", only=SOME)]
    assert [str(v.finding) for v in verdicts if v.finding is not None] == []
    assert len(verdicts) > 2
    done = play_here(suite, tmp_path / "run", seeds=1, horizon=5)
    assert done.failed == 0
    assert done.played == (6 if kind == "algorithm" else 3)


def test_nothing_is_overwritten(tmp_path, clean_tree):
    (tmp_path / "mine.yaml").write_text("suite: mine\n")
    before = clean_tree()
    with pytest.raises(Misuse, match="mine.yaml would be overwritten; choose another name"):
        new("algorithm", "mine", tmp_path)
    assert clean_tree() == before


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("random", "'random' is a module that Python has; choose another name, such as my_random"),
        ("3x", "'3x' is no name for a module; allowed: letters"),
        ("a/b", "'a/b' is no name"),
        ("class", "'class' is a word of Python's grammar; choose another name, such as my_class"),
    ],
)
def test_a_name_that_cannot_be_imported_is_refused(tmp_path, clean_tree, capsys, name, says):
    assert main(["new", "problem", name]) == 2
    assert says in capsys.readouterr().err
    assert clean_tree() == []


def test_the_command_says_what_to_do_next(tmp_path, capsys):
    assert main(["new", "algorithm", "mine"]) == 0
    out, err = capsys.readouterr()
    assert out == "mine.py\nmine.yaml\n"
    assert (
        err
        == "to look for mistakes: cbobench check mine:Mine; to play it: cbobench run mine.yaml\n"
    )


def test_a_simulator_is_a_kind_of_problem(tmp_path, capsys):
    assert main(["new", "problem", "mine", "--simulator"]) == 0
    assert "class Mine(Simulator):" in (tmp_path / "mine.py").read_text()
    assert main(["new", "algorithm", "other", "--simulator"]) == 2
    assert "write: cbobench new problem NAME --simulator" in capsys.readouterr().err
    assert not (tmp_path / "other.py").exists()
