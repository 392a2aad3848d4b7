"""Seeds set apart by whether the constraint binds: nothing of them is lost on the way."""

from __future__ import annotations

import cbobench
from cbobench.algorithms import ALGORITHMS
from cbobench.cli import main
from cbobench.report.load import Run
from tests.report.made import make

SEEDS = range(10)
CELLS = {("Q", name): {"regret": [float(i) for i in SEEDS], "binds": [i < 4 for i in SEEDS]} for name in "AB"}


def row_of(frame, problem, algorithm):
    return frame[(frame["problem_label"] == problem) & (frame["algorithm_label"] == algorithm)].iloc[0]


def test_groups_by_binds_keep_the_marks_of_their_cells(tmp_path):
    part = Run(make(tmp_path / "run", CELLS, seeds=SEEDS))
    part.__dict__["stale"] = set(part.cells.query("seed in [1, 2, 7]")["cell"])
    part.__dict__["unchecked"] = set(part.cells.query("seed == 0")["cell"])
    whole = cbobench.summary(part)
    frame = cbobench.summary(part, by="binds")
    for name in ("n", "expected", "failed", "stale", "unchecked"):
        assert frame[name].sum() == whole[name].sum(), name
    counts = row_of(frame, "Q: binds", "A")[["stale", "unchecked"]], row_of(frame, "Q: does not bind", "A")["stale"]
    assert (counts[0].tolist(), counts[1]) == ([2, 1], 1)
    assert "4/4 (2 stale, 1 unchecked)" in str(cbobench.compare(part, by="binds"))


def test_seeds_of_which_nothing_is_known_are_a_group_of_their_own(tmp_path):
    lost = {("Q", name): [3, 8] for name in "AB"} | {("Q", "A"): [3, 8, 9]}
    found = Run(make(tmp_path / "run", CELLS, seeds=SEEDS, failed=lost))
    frame = cbobench.summary(found, by="binds")
    assert frame["expected"].sum() == 20
    rest = row_of(frame, "Q: not known whether it binds", "A")
    assert (rest["n"], rest["failed"], rest["expected"]) == (0, 2, 2)
    text = str(cbobench.compare(found, by="binds"))
    assert "0/2 (2 failed)" in text
    assert "4/5 (1 failed)" in text


def test_a_problem_of_which_it_is_not_known_says_nothing_of_it(tmp_path):
    unknown = {("Open", "A"): {"regret": CELLS["Q", "A"]["regret"]}}
    run = make(tmp_path / "run", CELLS | unknown, seeds=SEEDS)
    text = str(cbobench.compare(run))
    assert "Q (binds in 4/10)" in text
    assert "Open" in text
    assert "Open (" not in text


def test_status_names_what_played_and_is_no_more(tmp_path, capsys, monkeypatch):
    run = make(tmp_path / "run", CELLS, seeds=SEEDS)
    assert main(["status", str(run)]) == 0
    assert "staleness" not in capsys.readouterr().out
    monkeypatch.delitem(ALGORITHMS._classes, "random")
    assert main(["status", str(run)]) == 0
    assert (
        "20 cells could not be checked for staleness: random is nothing that this cbobench has; look with the version"
        in capsys.readouterr().out
    )
