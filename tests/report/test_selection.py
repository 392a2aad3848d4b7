"""What a reader chose of a run, computed once: groups, quantities, what is lacking, and the table
made of it.
"""

from __future__ import annotations

import pytest

from cbobench.errors import Misuse
from cbobench.report import selection as module
from cbobench.report.compare import TABLES, CompareOptions, compare
from cbobench.report.selection import Selection
from tests.report.made import make


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    expected = {("P", a): {"regret": [1.0, 2.0, 3.0]} for a in "AB"}
    return make(tmp_path_factory.mktemp("selection") / "run", expected, seeds=range(3))


def test_a_selection_holds_what_was_chosen(run):
    chosen = Selection.of(run, only="P/A", metric=["R", "N"])
    assert [group.algorithm_label for group in chosen.groups] == ["A"]
    assert [quantity.symbol for quantity in chosen.shown] == ["R", "N"]
    assert chosen.title == "made, T = 100"
    assert chosen.lacks == {}


def test_a_table_asks_for_its_groups_and_for_what_they_lack_once(run, monkeypatch):
    calls: list[str] = []

    def count_calls(name):
        ours = getattr(module, name)
        monkeypatch.setattr(module, name, lambda *arguments: calls.append(name) or ours(*arguments))

    count_calls("select_horizon")
    count_calls("find_lack")
    compare(run, metric=["R", "N"])
    assert calls == ["select_horizon", "find_lack", "find_lack"], "once for each quantity"


def test_every_kind_of_table_has_its_function(run):
    requested = CompareOptions(run, run, best=False)
    kinds = {"results", *requested.kinds}
    for options in ({"best": True}, {"against": "A"}, {"ranks": True}, {"profile": True}):
        kinds |= {*CompareOptions(run, **options).kinds}
    assert kinds == {*TABLES}


def test_an_unknown_order_is_refused(run):
    with pytest.raises(Misuse, match="unknown order 'seed'"):
        Selection.of(run, by="seed")
