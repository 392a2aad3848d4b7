"""A stated optimum that contradicts its formula is refused when the problem is prepared, before
anything is played.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cbobench.errors import Misuse
from cbobench.problems import PROBLEMS
from cbobench.problems.formulas.cec2006 import HeldOut
from cbobench.problems.formulas.high_dimensional import HighDimensional
from cbobench.problems.formulas.literature import gramacy as Gramacy
from cbobench.problems.rkhs import pocket
from tests.algorithms.easy import Bowl
from tests.helpers import on_boxes, prepare_class

GRAMACY, BOWL = Gramacy.reference, Bowl.reference


def prepared(cls, reference=None, **settings):
    attributes = {} if reference is None else {"reference": reference}
    return prepare_class(
        type(cls.__name__, (cls,), attributes | {"__module__": "mine"}), **settings
    )


@pytest.mark.parametrize(
    ("cls", "change", "says"),
    [
        (
            Bowl,
            {"x": (0.2, 1.2), "f": 0.0},
            r"x = \(0.2, 1.2\), which is not feasible: g_1 = 0.4 there",
        ),
        (Bowl, {"f": -0.07}, r"f = -0.07 at x = \(0, 1\), where the formula gives f = -0.08"),
        (Bowl, {"f": -0.08 + 3e-9}, "f = -0.079999997 at"),
        (Bowl, {"f": float("nan")}, "f = nan at"),
        (Bowl, {"x": (0.0, 1.0, 0.0)}, r"x = \(0, 1, 0\), but the box has 2 dimensions"),
        (Bowl, {"x": (-1.5, 1.0)}, "which is not in the box"),
        (Gramacy, {"x": (0.19512, 0.40466)}, r"which is not feasible: g_1 = \S+e-06 there"),
    ],
)
def test_a_contradiction_is_one_line_that_says_what_to_do(cls, change, says):
    with pytest.raises(
        Misuse,
        match=f"^the stated optimum is .*{says}.*; .*cbobench check mine:{cls.__name__}$",
    ):
        prepared(cls, replace(cls.reference, **change))


def test_a_published_rounded_optimum_may_say_how_accurate_it_is():
    rounded = replace(BOWL, x=(0.001, 0.998), f=-0.08)
    with pytest.raises(Misuse, match=r"the formula gives f = -0\.0804"):
        prepared(Bowl, rounded)
    prepared(Bowl, replace(rounded, accuracy=1e-3))


def test_a_tolerance_allows_for_rounded_coordinates():
    rounded = replace(BOWL, x=(1e-9, 1.0), f=-0.08)
    with pytest.raises(Misuse, match="not feasible: g_1 = 1e-09"):
        prepared(Bowl, rounded)
    prepared(type("Bowl", (Bowl,), {"feasibility_tolerance": 1e-8}), rounded)


@pytest.mark.parametrize("name", on_boxes(HighDimensional, HeldOut))
def test_ours_are_consistent_whatever_the_parameters(name):
    cls = PROBLEMS.get(name)
    prepare_class(cls)
    for settings in (
        {"scaled": True},
        {"scaled": False},
        {"kappa": 1e6, "c": 0.9},
        {"arrivals": 3.0},
    ):
        if "scaled" in settings and name in ("feasible-pocket-drift", "queue-stability"):
            continue
        if {*settings} <= {*cls.__dataclass_fields__}:
            prepare_class(cls, **settings)


def test_every_phase_is_looked_at(monkeypatch):
    for k in range(3):
        phases = [list(phase) for phase in pocket.DRIFT]
        phases[k][2] = replace(phases[k][2], f=1.0)
        monkeypatch.setattr(pocket, "DRIFT", phases)
        with pytest.raises(Misuse, match="f = 1 at"):
            prepared(pocket.DriftingPocket)
        monkeypatch.undo()


def test_a_grid_finds_its_own_optimum():
    task = prepared(Bowl, replace(BOWL, f=99.0, x=()), grid=5)
    assert task.draw([np.random.default_rng(0)]).f_star[0] < 0
