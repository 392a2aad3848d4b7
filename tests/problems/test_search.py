"""The search that derives optima, against references that were found another way, and what
`cbobench check` says of a user's.
"""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pytest

from cbobench.check.report import DERIVED, check
from cbobench.cli import main
from cbobench.errors import Misuse
from cbobench.gp.box_actions import Box
from cbobench.params import build
from cbobench.problems import PROBLEMS
from cbobench.problems.reference import Reference, derive, find_contradictions, search, slopes
from tests.algorithms.easy import Bowl

HEAD = """\
import numpy as np
from dataclasses import dataclass
from cbobench.problems.formulas.box import BoxProblem, Reference

@dataclass(kw_only=True)
class Mine(BoxProblem):
    low, high, m = (0.0, 0.0), (2.0, 3.0), 2

    def formula(self, x):
        a, b = x[..., 0], x[..., 1]
        return np.stack([np.sqrt(a) + np.sqrt(b), a + b - 2, a - b], axis=-1)
"""


@pytest.mark.parametrize(
    ("after", "law"), [(0, "constraints as declared"), (40_000, "optimum as derived")]
)
def test_a_formula_that_ends_python_is_one_line(tmp_path, capsys, monkeypatch, after, law):
    """At once, or in the search."""
    ending = (
        f"        POINTS.append(x.size)\n        if sum(POINTS) > {after}:\n            "
        "exit(0)\n        a, b ="
    )
    text = HEAD.replace("@dataclass", "POINTS = []\n\n@dataclass").replace("        a, b =", ending)
    (tmp_path / "ending.py").write_text(text)
    monkeypatch.delitem(sys.modules, "ending", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    assert main(["check", "ending:Mine"]) == 1
    lines = capsys.readouterr().out.splitlines()
    broken = [line for line in lines if line.startswith("  FAIL") and "SystemExit: 0" in line]
    assert len(broken) == 1
    assert law in broken[0]


def write_mine(folder, monkeypatch, text=HEAD):
    """A user's module, which is imported anew."""
    (folder / "mine.py").write_text(text)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, "mine", raising=False)


def judge_optimum():
    """What the law on optima says of it."""
    return next(v for v in check("mine:Mine", only=[DERIVED]) if v.law == DERIVED)


def test_what_is_derived_can_be_pasted(tmp_path, monkeypatch):
    """On a + b <= 2, a <= b the sum of roots is largest at (1, 1); the margin is 1, at (0, 1)."""
    write_mine(tmp_path, monkeypatch)
    said = str(judge_optimum().finding)
    assert "Mine does not say its optimum; " in said
    code = said.partition("; write: ")[2]
    derived = eval(code.partition(" = ")[2], {"Reference": Reference})
    np.testing.assert_allclose(derived.x, 1.0, atol=1e-6)
    assert (derived.f, derived.slater) == (pytest.approx(2.0), pytest.approx(1.0))
    assert (derived.share, derived.binds) == (pytest.approx(1 / 6, rel=0.01), True)
    write_mine(tmp_path, monkeypatch, f"{HEAD}\n    {code}\n")
    pasted = judge_optimum()
    assert (pasted.skipped, pasted.finding) == (False, None)


@pytest.mark.parametrize(
    ("stated", "says"),
    [
        ({}, []),
        ({"x": (0.9, 0.9), "f": 1.8973665961010275}, ["f is 1.89", "better by 0.103"]),
        ({"x": (0.9, 0.9), "f": 1.9}, ["the optimum is f = 1.9 at", "f is 1.9;"]),
        ({"slater": 1.1}, ["slater is 1.1; found: 1"]),
        ({"share": 0.2}, ["share is 0.2; found: 0.1667"]),
        ({"share": float("nan")}, []),
        ({"binds": False}, ["binds is False; the best f of the whole box is 3.1"]),
    ],
    ids=str,
)
def test_what_is_stated_is_compared_both_ways(tmp_path, monkeypatch, stated, says):
    write_mine(tmp_path, monkeypatch)
    task = PROBLEMS.get("mine:Mine")()
    right = Reference((1.0, 1.0), 2.0, 1.0, 1 / 6, 1e-9, "closed form", binds=True)
    reference = replace(right, **stated)
    mistake = task.mistake(task.formula, reference)
    found = derive(task.formula, task.box, None if mistake else reference)
    lines = "; ".join(find_contradictions(found, reference, mistake))
    assert [phrase for phrase in says if phrase not in lines] == []
    assert bool(lines) == bool(says)


def test_the_search_in_closed_form_and_where_nothing_is_feasible():
    task = build(Bowl, {})
    optimum = search(task.formula, task.box, starts=4, power=12)
    np.testing.assert_allclose(optimum.x, (0, 1), atol=1e-9)
    assert optimum.values[0] == pytest.approx(-0.08, abs=1e-12)
    assert optimum.values[1] <= 0
    assert optimum.slater == pytest.approx(2.0)
    assert optimum.share == pytest.approx(0.5, abs=0.01)
    with pytest.raises(
        Misuse,
        match=r"no feasible point among 4,096 samples and 4 local searches; .*; "
        "loosen a constraint, or move a side of the box",
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
