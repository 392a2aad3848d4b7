"""What groups of cells say of one another: methods that are left out, and seeds that were played
unlike.
"""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from cbobench.report.groups import Columns
from cbobench.report.notes import count_crossed_seeds, describe_apart


def group(algorithm, horizon=5, problem="P", cells=1):
    """What `describe_apart` reads of a group, and as many cells as it has."""
    return SimpleNamespace(
        algorithm_label=algorithm, problem_label=problem, horizon=horizon, n=cells
    )


def left_out(*groups, compared):
    """The lines on methods that a comparison of some (by position) leaves out."""
    return describe_apart(groups, [groups[i] for i in compared])


def test_the_others_are_those_that_are_compared():
    """Not those that are left out as well."""
    assert left_out(group("A"), group("B"), group("C", 4), group("D", 6), compared=[0, 1]) == [
        "C has T = 4, the others T = 5: it is not compared with them; play all to one horizon",
        "D has T = 6, the others T = 5: it is not compared with them; play all to one horizon",
    ]
    assert left_out(group("A"), group("C", 4), group("D", 4), compared=[0]) == [
        "C, D have T = 4, the others T = 5: they are not compared with them; play all to one "
        "horizon"
    ]


def test_where_nothing_is_compared_the_others_are_all_of_another_horizon():
    assert left_out(group("A"), group("C", 4), group("D", 6), compared=[]) == [
        f"{name} has T = {ours}, the others T = {rivals}: it is not compared with them; play all "
        "to one horizon"
        for name, ours, rivals in (("A", 5, "4, 6"), ("C", 4, "5, 6"), ("D", 6, "4, 5"))
    ]


def test_the_others_play_the_same_problem():
    """Where only some of the problems are meant, these are named; who has no good cell or takes
    part is not told.
    """
    item, two = group("C", 4, "P"), group("C", 5, "Q")
    assert left_out(group("A"), item, group("A", 5, "Q"), two, compared=[0, 2, 3]) == [
        "C has T = 4 on P, the others T = 5: it is not compared with them; play all to one horizon"
    ]
    assert left_out(group("A"), group("C", 4, cells=0), compared=[0]) == []
    assert left_out(group("A"), group("C", 4), group("C", 5), compared=[0, 2]) == [], (
        "its other horizon takes part"
    )
    assert left_out(group("A"), group("C", 4, "Q"), compared=[0]) == [], "nobody else plays Q"


def played(kinds, arena=("P", 5), cpu=None):
    """What `count_crossed_seeds` reads of a group: the arithmetic of its good cells, by seed."""
    good = pd.DataFrame({"arithmetic": pd.Series(kinds, dtype=object), "cpu": cpu})
    columns, rows = Columns(good), np.arange(len(good))
    return SimpleNamespace(
        arena=arena, seeds=columns.seeds, words=lambda name: columns.words(name, rows)
    )


@pytest.mark.parametrize(
    ("groups", "crossed"),
    [
        ([played({0: "x", 1: "y"}), played({0: "x", 1: "y"})], (0, 2)),
        ([played({0: "x", 1: "y"}), played({0: "x", 1: "x"})], (1, 2)),
        # of one method each: 0 and 2
        ([played({0: "x", 1: "y"}), played({1: "x", 2: "x"})], (1, 1)),
        ([played({0: "x"}), played({0: "x"}), played({0: "y"})], (1, 1)),
        ([played({0: "x"}), played({0: "y"}, ("Q", 5))], (0, 0)),
        ([played({0: "x"}), played({0: "y"}, ("P", 6))], (0, 0)),
        ([played({0: "x"}), played({0: None})], (0, 0)),  # nothing is known of it
        ([played({0: "x", 1: "y"})], (0, 0)),
    ],
)
def test_a_seed_is_crossed_where_methods_that_play_it_compute_unlike(groups, crossed):
    assert count_crossed_seeds(groups) == crossed
