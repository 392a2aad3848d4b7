"""The search behind `cbobench reference`, against references that were found another way, and on a
user's problem.
"""

from __future__ import annotations

import os
import re
import sys

import numpy as np
import pytest

from cbobench.cli import main
from cbobench.errors import Misuse
from cbobench.gp.box_actions import Box
from cbobench.params import build
from cbobench.problems import PROBLEMS
from cbobench.problems.optimum import search, slopes
from tests.algorithms.easy import Bowl
from tests.conftest import ROOT

HEAD = """\
import numpy as np
from dataclasses import dataclass
from cbobench.problems.box import BoxProblem, Reference

@dataclass(kw_only=True)
class Mine(BoxProblem):
    low, high, m = (0.0, 0.0), (2.0, 3.0), 2

    def formula(self, x):
        a, b = x[..., 0], x[..., 1]
        return np.stack([np.sqrt(a) + np.sqrt(b), a + b - 2, a - b], axis=-1)
"""


def printed(out, label):
    return np.array(eval(re.search(rf"^{label} +(.*)$", out, flags=re.M).group(1)))


@pytest.mark.parametrize(
    ("name", "active"),
    [("gramacy", "g_1"), pytest.param("welded-beam", "g_1, g_2, g_3, g_7", marks=pytest.mark.long)],
)
def test_published_references_are_found_again(name, active, capsys):
    assert main(["reference", name]) == 0
    out, err = capsys.readouterr()
    task = PROBLEMS.get(name)()
    reference = task.reference
    x, f = printed(out, "x"), float(printed(out, "f"))
    assert f == pytest.approx(reference.f, rel=1e-9)
    assert f == task.formula(x)[0]
    assert task.formula(x)[1:].max() <= 0, "feasible to the last bit"
    share, margin = (
        float(re.search(rf"^{word} +(\S+)", out, flags=re.M).group(1))
        for word in ("feasible", "margin")
    )
    assert share / 100 == pytest.approx(reference.share, rel=0.02)
    assert margin == pytest.approx(reference.slater, rel=1e-5)
    assert re.search(r"^active +(.*)$", out, flags=re.M).group(1) == active
    assert ("the stated reference agrees" in out, err) == (True, "")


@pytest.mark.parametrize(
    ("after", "says"),
    [(0, "formula at points of shape (2,) fails"), (40_000, "the formula of ending:Mine fails")],
)
def test_a_formula_that_ends_python_is_one_line(tmp_path, capsys, monkeypatch, after, says):
    """At once, or in the search."""
    ending = (
        f"        POINTS.append(x.size)\n        if sum(POINTS) > {after}:\n            "
        "exit(0)\n        a, b ="
    )
    text = HEAD.replace("@dataclass", "POINTS = []\n\n@dataclass").replace("        a, b =", ending)
    (tmp_path / "ending.py").write_text(text)
    monkeypatch.delitem(sys.modules, "ending", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    assert main(["reference", "ending:Mine", "--starts", "4"]) == 2
    err = capsys.readouterr().err
    assert f"{says}: SystemExit: 0" in err
    assert err.count("\n") == 1


def test_a_users_problem_and_what_it_states(tmp_path, command, capsys, monkeypatch):
    """On a + b <= 2, a <= b the sum of roots is largest at (1, 1); the margin is 1, at (0, 1).

    Three searches, of which the first is in a process of its own: the folder where it starts holds
    the user's module.
    """
    module = tmp_path / "mine.py"
    module.write_text(HEAD)
    done = command("reference", "mine:Mine", env=os.environ | {"PYTHONPATH": str(ROOT)})
    assert (done.returncode, done.stderr) == (0, "")
    np.testing.assert_allclose(printed(done.stdout, "x"), 1.0, atol=1e-6)
    assert float(printed(done.stdout, "f")) == pytest.approx(2.0, abs=1e-12)
    assert float(printed(done.stdout, "margin")) == pytest.approx(1.0)
    code = re.search(
        r"^    reference = Reference\(.*?^    \)$", done.stdout, flags=re.M | re.S
    ).group(0)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "pasted.py").write_text(HEAD + "\n" + code + "\n")  # what is printed can be pasted
    assert main(["reference", "pasted:Mine", "--starts", "4"]) == 0
    assert "the stated reference agrees" in capsys.readouterr().out
    module.write_text(
        HEAD + '\n    reference = Reference((0.9, 0.9), 1.9, 0.5, 0.2, 1e-9, "guess")\n'
    )
    assert main(["reference", "mine:Mine", "--starts", "4"]) == 1
    says = [
        line
        for line in capsys.readouterr().out.splitlines()
        if line.startswith("stated otherwise: ")
    ]
    assert [re.split(r" is | are ", line)[0].split()[-1] for line in says] == [
        "optimum",
        "f",
        "slater",
        "share",
    ]
    assert "better by 0.1" in says[1]


@pytest.mark.parametrize(
    ("names", "says"),
    [
        (["gramcy"], "unknown problem 'gramcy'; did you mean 'gramacy'"),
        (["nowhere:Problem"], "cannot import 'nowhere'"),
        (["mine:Yours"], "unknown problem in mine 'Yours'"),
        (["rkhs-1d"], "finite action set"),
        (["rkhs-box"], "rkhs-box draws a function per seed"),
        (
            ["mine:Broken"],
            "mine:Broken: formula at points of shape (2,) fails: ValueError: not yet",
        ),
        (["gramacy", "--starts", "1"], "--starts is '1'; it must be a whole number from 2 to 4096"),
    ],
)
def test_what_cannot_be_derived_is_one_line(names, says, tmp_path, monkeypatch, capsys):
    broken = (
        "\nclass Broken(Mine):\n    def formula(self, x):\n        raise ValueError('not yet')\n"
    )
    (tmp_path / "mine.py").write_text(HEAD + broken)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "mine", raising=False)
    assert main(["reference", *names]) == 2
    output = capsys.readouterr()
    assert says in output.err
    assert (output.err.count("\n"), output.out) == (1, "")


def test_the_search_in_closed_form_and_where_nothing_is_feasible():
    task = build(Bowl, {})
    optimum = search(task.formula, task.box, starts=4, power=12)
    np.testing.assert_allclose(optimum.x, (0, 1), atol=1e-9)
    assert optimum.values[0] == pytest.approx(-0.08, abs=1e-12)
    assert optimum.values[1] <= 0
    assert (optimum.slater, optimum.active) == (pytest.approx(2.0), ("g_1",))
    assert optimum.share == pytest.approx(0.5, abs=0.01)
    with pytest.raises(
        Misuse, match=r"no feasible point among 4,096 samples and 4 local searches; .*; loosen"
    ):
        search(lambda x: task.formula(x) + np.array([0.0, 2.5]), task.box, starts=2, power=12)


def test_derivatives_need_no_point_outside_the_box():
    box = Box(np.zeros(2), np.ones(2))

    def inside(u):
        assert ((u >= box.low) & (u <= box.high)).all()
        return np.stack([np.exp(u[..., 0]) * u[..., 1], np.sin(3 * u[..., 1])], axis=-1)

    for u in (np.array([0.0, 1.0]), np.array([1.0, 1e-4]), np.array([0.5, 0.3])):
        a, b = u
        expected = [[np.exp(a) * b, np.exp(a)], [0.0, 3 * np.cos(3 * b)]]
        np.testing.assert_allclose(slopes(inside, u), expected, atol=1e-9)
