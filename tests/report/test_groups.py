"""Groups of an open run are made once, whoever asks."""

from __future__ import annotations

import cbobench
from cbobench.report import groups
from cbobench.report.figures import Profile
from cbobench.report.load import Run
from cbobench.report.quantities import Quantity
from tests.helpers import swept

SUITE = "suite: g\nhorizon: 10\nseeds: 2\nproblems: [rkhs-1d]\nalgorithms: [random, oracle]\n"


def test_the_groups_of_a_run_are_made_once(tmp_path, monkeypatch, words_of):
    """However often the panels and the caption of a figure ask; what a table adds to them stays its own."""
    made, grouped = [], groups._group_cells
    monkeypatch.setattr(groups, "_group_cells", lambda run, only: made.append(only) or grouped(run, only))
    run = Run(swept(tmp_path, SUITE))
    assert words_of(run, [Profile("performance"), Profile("data")])
    assert made == [None]
    cbobench.compare(run, target=1.0)
    assert "rounds_to_target" not in groups.find_groups(run)[0].good
    assert made == [None]
    assert groups.find_groups(run)[0] is groups.find_groups(run, problems=["rkhs-1d"])[0], "nor are they copied"
    groups.find_groups(run.only("*"))
    assert len(made) == 2


def test_tables_take_the_values_of_a_group_from_its_frame_once(tmp_path, monkeypatch):
    taken, plain = [], Quantity.of
    monkeypatch.setattr(Quantity, "of", lambda self, cells: taken.append((self.name, id(cells))) or plain(self, cells))
    run = Run(swept(tmp_path, SUITE))
    for asked in ({}, {"best": True}, {"against": "oracle"}):
        cbobench.compare(run, **asked)
    assert taken
    assert len(taken) == len(set(taken))
