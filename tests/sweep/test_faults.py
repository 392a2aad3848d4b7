"""What must not pass in silence: a run read while it is written, workers with other code, results
that are absent.
"""

from __future__ import annotations

import pickle
import re
import shutil
from dataclasses import replace

import pytest

from cbobench.cli import main
from cbobench.play.task import OtherCode, play_task_on_worker
from cbobench.report.compare import compare
from cbobench.report.load import Run
from cbobench.report.tables.status import read_status
from cbobench.results.folder import RunFolder, open_run
from cbobench.results.query import read_published
from cbobench.suite.call import Call
from cbobench.sweep.plan import plan
from tests.helpers import play_here


def test_what_is_published_between_two_listings_is_no_damage(small_suite, tmp_path, monkeypatch):
    """A reader lists cells and rounds one after the other; a task may publish both files in
    between.
    """
    run, held = tmp_path / "run", tmp_path / "held"
    play_here(small_suite(), run, block=1)
    names = RunFolder.names
    listed = []

    def publish_after_the_first_listing(self, kind):
        tasks = names(self, kind)
        if not listed:
            for file in held.glob("*/*.parquet"):
                shutil.move(file, run / file.parent.name / file.name)
        listed.append(kind)
        return tasks

    counts = {"done": 7, "failed": 0, "stale": 0, "missing": 5}
    for look in (
        lambda: read_status(open_run(run))[1].counts() == counts,
        lambda: re.search("[03]/4", str(compare(Run(run)))),
        lambda: len(plan(Call(small_suite(), out=run, cpus=0, block=1)).tasks) == 5,
    ):
        for kind in ("rounds", "cells"):
            (held / kind).mkdir(parents=True, exist_ok=True)
            for file in sorted((run / kind).glob("*.parquet"))[:5]:
                shutil.move(file, held / kind / file.name)
        listed.clear()
        with monkeypatch.context() as patch:
            patch.setattr(RunFolder, "names", publish_after_the_first_listing)
            assert look()
        assert listed[:2] == ["cells", "rounds"]
    assert len(read_published(open_run(run))) == 12


@pytest.mark.parametrize(
    ("noun", "other_value", "says"),
    [
        (
            "libraries",
            "numpy 1.0.0, scipy 1.0.0",
            "libraries for .*: numpy 1.0.0, scipy 1.0.0, the driver has numpy",
        ),
        ("source_hash", "0123-abcdef", "code for rkhs-1d.* / ckb-ucb: 0123-abcdef, the driver has"),
    ],
)
def test_a_worker_that_is_another_is_refused(
    small_suite, tmp_path, monkeypatch, noun, other_value, says
):
    todo = plan(Call(small_suite(), out=tmp_path / "run", cpus=0))
    monkeypatch.setattr(f"cbobench.play.task.{noun}", lambda *names: other_value)
    with pytest.raises(OtherCode, match=f"has other {says}"):
        play_task_on_worker(next(iter(todo.suite.problems.values())), todo.tasks[0], todo.folder)
    assert not (tmp_path / "run" / "cells").exists()


def test_a_refusal_names_the_modules_that_differ(small_suite, tmp_path):
    """It reaches the driver through a pipe, and is compared with the code there."""
    todo = plan(Call(small_suite(), out=tmp_path / "run", cpus=0))
    task = replace(todo.tasks[0], source="0123-abcdef")
    with pytest.raises(OtherCode) as refused:
        play_task_on_worker(next(iter(todo.suite.problems.values())), task, todo.folder)
    error = pickle.loads(pickle.dumps(refused.value))  # noqa: S301 - its own
    assert "other code is in the list of what counts" in str(error.name_modules())
    error.hashes = error.hashes | {"cbobench.gp.kernels": "another", "mine": "not here"}
    assert str(error.name_modules()).endswith(
        "run again; other code is in cbobench.gp.kernels, mine"
    )


LOSING = '''
import pathlib
from cbobench.algorithms.references import Random


class Losing(Random):
    """Someone deletes the cells of a run while it is played."""

    def start(self, setting):
        super().start(setting)
        for file in pathlib.Path("run/cells").glob("*.parquet"):
            file.unlink()
'''


def test_absent_cells_are_said_and_end_with_1(write_suite, tmp_path, capsys, monkeypatch):
    """Of a folder that loses files, or that the workers' machine does not share."""
    (tmp_path / "losing.py").write_text(LOSING)
    monkeypatch.syspath_prepend(str(tmp_path))
    text = (
        "suite: l\nhorizon: 9\nseeds: 3\nproblems: [rkhs-1d]\nalgorithms: [random, losing:Losing]\n"
    )
    assert main(["run", str(write_suite(text)), "--out", "run", "--cpus", "0", "--block", "1"]) == 1
    captured = capsys.readouterr()
    assert "played but not in " in captured.err
    assert "does every worker reach the same folder? see: cbobench status" in captured.err
    assert "1/3" in captured.out
