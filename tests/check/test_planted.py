"""Each planted fault is found, by the law that is about it, in a sentence with the fix; sound
classes pass.
"""

from __future__ import annotations

import pytest

from cbobench.check.report import OF_METHODS, check
from tests.check import planted, planted_problems
from tests.helpers import long, long_cases

TWICE = "the same cells played twice differ in "
FAULTS = {
    "GlobalRandomness": ("repeatable", TWICE + "actions, from round 1 on"),
    "Entropy": ("repeatable", TWICE + "actions, from round 1 on"),
    "Leaking": ("repeatable", TWICE + "actions, from round 1 on"),
    "Beside": (
        "same bits in any block",
        "seed 2 alone differs from itself among 3 in actions, from round 1 on",
    ),
    "Averaging": (
        "same bits in any block",
        "differs from itself among 3 in self.prices at the end",
    ),
    "OneForAll": (
        "same bits in any block",
        "beside a cell of other parameters a cell differs from itself alone in ",
    ),
    "Overwriting": ("feedback and setting unchanged", "it changes the feedback of round 1"),
    "Drawing": ("recommending changes nothing", "recommend() changes actions"),
    "Redrawing": (
        "no peeking at f and g",
        "on a finite set, it peeks: in round 1 it plays otherwise",
    ),
    "Formula": (
        "no peeking at f and g",
        "on a box, it peeks: in round 1 it plays otherwise where only the noise-free",
    ),
    "Looking": (
        "no peeking at f and g",
        "Looking peeks: with reference = True it is shown f and g",
    ),
    "Quits": ("plays", "round 2: SystemExit: 0"),
    "Spread": (
        "plays",
        "ask gave int64 of shape (1,); it must give an array of indices, shape (3,)",
    ),
    "Flat": ("plays", "the score has shape (1, 36); it must be (S, k) = (3, 36)"),
    "Outside": ("plays", "ask() gave x[0] ="),
    "Undecorated": (
        "can be made",
        "Undecorated is not a dataclass; decorate it with @dataclass(kw_only=True)",
    ),
    "QuitsIn": ("constraints as declared", "fails: SystemExit: 0"),
    "Unstated": ("optimum as derived", "Unstated does not say its optimum"),
    "Mistaken": ("optimum as derived", "slater is 0.5; found: 1"),
    "Local": ("optimum as derived", "found: -0.599788"),
    "FirstAxis": (
        "constraints as declared",
        "formula at points of shape (6, 2) gives shape (2, 2); it must be (6, 2)",
    ),
    "Infeasible": ("can be prepared", "which is not feasible: g_1 = 1 there"),
    "Beaten": ("optimum as declared", "f = 1.41421"),
    "Misstated": ("optimum as declared", "has f = 1.414213562, and 2 is stored"),
    "Unreachable": ("optimum as declared", "is not feasible: g_1 = 1 there"),
    "Unseeded": ("repeatable", TWICE + "observed f"),
    "Together": (
        "same bits in any block",
        "seed 2 alone differs from itself among 3 in observed f",
    ),
}


SHORT = {name for name, (law, _) in FAULTS.items() if law in (*OF_METHODS, "can be made")}
"""Faults that the short form of the laws finds, too."""


def findings(name, only=(), short=False):
    module = planted if hasattr(planted, name) else planted_problems
    verdicts = [*check(f"{module.__name__}:{name}", only=only, short=short)]
    return {v.law: str(v.finding) for v in verdicts if v.finding is not None}


@pytest.mark.parametrize("name", [*sorted(FAULTS.keys() - {"Unstated"}), *long("Unstated")])
def test_a_planted_fault_is_found_by_its_law(name):
    law, says = FAULTS[name]
    broken_laws = findings(name, [law], short=name in SHORT and hasattr(planted, name))
    assert law in broken_laws
    assert says in broken_laws[law]
    assert "; " in broken_laws[law], "the fix is said"
    assert "\n" not in broken_laws[law]


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("Beside", True),
        *long_cases(("Unseeded", False)),
    ],
)
def test_a_planted_fault_is_found_among_all_laws(name, short):
    assert [*findings(name, short=short)] == [FAULTS[name][0]]


@pytest.mark.parametrize(
    ("name", "laws", "short"),
    [
        ("Sound", ["plays", "repeatable", "same bits in any block"], True),
        ("InParts", ["same bits in any block", "feedback and setting unchanged"], True),
        *long_cases(("Sound", (), False), ("InParts", (), False)),
    ],
)
def test_a_sound_twin_passes(name, laws, short):
    assert findings(name, laws, short) == {}
