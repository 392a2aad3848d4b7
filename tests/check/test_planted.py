"""Each planted fault is found, by the law that is about it, in a sentence with the fix; sound
classes pass.
"""

from __future__ import annotations

import pytest

from cbobench.check.report import OF_METHODS, check
from tests.check import planted, planted_problems

FAULTS = {
    "GlobalRandomness": ("no global randomness", "the global generator of np.random"),
    "Entropy": (
        "repeatable, nothing shared",
        "the same cells played twice differ in actions, from round 1 on",
    ),
    "Leaking": (
        "repeatable, nothing shared",
        "the class attribute Leaking.played changed while it played",
    ),
    "MutableDefault": (
        "repeatable, nothing shared",
        "the default of past in DefaultLine.tell changed while it played",
    ),
    "Leaks": (
        "repeatable, nothing shared",
        "the module global SEEN of tests.check.planted changed while it played",
    ),
    "Beside": (
        "same bits in any block",
        "seed 2 alone differs from itself among 3 in actions, from round 1 on",
    ),
    "Drawing": ("recommending changes nothing", "recommend() changes actions"),
    "Peeking": ("no peeking at f and g", "on a finite set, it peeks: "),
    "Redrawing": (
        "no peeking at f and g",
        "on a finite set, it peeks: in round 1 it plays otherwise",
    ),
    "Formula": (
        "no peeking at f and g",
        "on a box, it peeks: in round 1 it plays otherwise where only the noise-free",
    ),
    "Looking": ("shown no f and g", "Looking peeks: with reference = True it is shown f and g"),
    "Quits": ("plays", "round 2: SystemExit: 0"),
    "QuitsIn": ("formula of arrays", "fails: SystemExit: 0"),
    "Replacing": ("formula of arrays", "numpy.square: replaced while it ran"),
    "Spread": (
        "plays",
        "ask gave int64 of shape (1,); it must give an array of indices, shape (3,)",
    ),
    "Flat": ("plays", "the score has shape (1, 36); it must be (S, k) = (3, 36)"),
    "Outside": ("plays", "ask() gave x[0] ="),
    "Kinked": ("kinks are parts", "score() has a kink"),
    "Undecorated": (
        "can be made",
        "Undecorated is not a dataclass; decorate it with @dataclass(kw_only=True)",
    ),
    "Averaging": (
        "same bits in any block",
        "differs from itself among 3 in self.prices at the end",
    ),
    "OneForAll": (
        "parameters vary in a block",
        "with two values of slack in one block it differs from itself alone in",
    ),
    "Counting": ("pure scores", "asked twice in round 1, the score gives two answers"),
    "Slow": ("growth with rounds as cost says", "where cost says O(1)"),
    "Beaten": ("optimum not beaten", "f = 1.41421"),
    "Infeasible": ("can be prepared", "which is not feasible: g_1 = 1 there"),
    "FirstAxis": (
        "formula of arrays",
        "formula at points of shape (6, 2) gives shape (2, 2); it must be (6, 2)",
    ),
    "Unseeded": ("seeded from its streams", "the same cells played twice differ in observed f"),
    "Globally": ("seeded from its streams", "the global generator of np.random"),
    "Together": (
        "same bits in any block",
        "seed 2 alone differs from itself among 3 in observed f",
    ),
    "Remembering": ("noise knows no past", "observed otherwise after other actions"),
}


SHORT = {
    name
    for name, (law, _) in FAULTS.items()
    if law in (*OF_METHODS, "shown no f and g", "can be made")
}
"""Faults that the short form of the laws finds, too."""


def findings(name, only=(), short=False):
    module = planted if hasattr(planted, name) else planted_problems
    verdicts = [*check(f"{module.__name__}:{name}", only=only, short=short)]
    return {v.law: str(v.finding) for v in verdicts if v.finding is not None}


@pytest.mark.parametrize("name", FAULTS)
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
        *(pytest.param(n, False, marks=pytest.mark.long) for n in ("Peeking", "Unseeded")),
    ],
)
def test_a_planted_fault_is_found_among_all_laws(name, short):
    assert [*findings(name, short=short)] == [FAULTS[name][0]]


def test_a_module_global_is_blamed_where_it_decides_a_play():
    planted.SEEN.clear()
    laws = ["plays", "repeatable, nothing shared", "same bits in a fresh process"]
    broken_laws = findings("Warm", laws)
    assert [*broken_laws] == laws[2:]
    assert (
        "; the module global SEEN of tests.check.planted changed while it played: keep no state"
        in broken_laws[laws[2]]
    )


@pytest.mark.long
def test_a_cache_is_not_blamed():
    (finding,) = findings("CachedHash", ["same bits in a fresh process"]).values()
    assert "SEEN" not in finding
    assert "read no order of a set of texts" in finding


@pytest.mark.parametrize(
    ("name", "laws"),
    [
        ("Sound", ["plays", "repeatable, nothing shared", "same bits in any block"]),
        ("InParts", ["pure scores", "kinks are parts"]),
        ("Declared", ["growth with rounds as cost says"]),
        pytest.param("Sound", (), marks=pytest.mark.long),
    ],
)
def test_a_sound_twin_passes(name, laws):
    assert findings(name, laws) == {}
