"""What must not pass in silence: a run read while it is written, workers with other code, results that are absent."""

from __future__ import annotations

import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import cbobench
from cbobench.cli import main
from cbobench.play.task import OtherCode, play_task_on_worker
from cbobench.report.compare import compare
from cbobench.report.load import Run
from cbobench.results.bundle import open_run
from cbobench.results.folder import RunFolder
from cbobench.results.query import read_published, read_status
from cbobench.sweep.run import plan
from tests.sweep.helpers import environment_of

PACKAGE = Path(cbobench.__file__).parent


def test_what_is_published_between_two_listings_is_no_damage(small_suite, tmp_path, monkeypatch):
    """A reader lists cells and rounds one after the other; a task may publish both files in between."""
    run, held = tmp_path / "run", tmp_path / "held"
    cbobench.run(small_suite(), out=run, cpus=0, block=1)
    names = RunFolder.names
    listed = []

    def publish_after_the_first_listing(self, kind):
        found = names(self, kind)
        if not listed:
            for file in held.glob("*/*.parquet"):
                shutil.move(file, run / file.parent.name / file.name)
        listed.append(kind)
        return found

    for move in ("status", "table", "resume"):
        for kind in ("rounds", "cells"):
            (held / kind).mkdir(parents=True, exist_ok=True)
            for file in sorted((run / kind).glob("*.parquet"))[:5]:
                shutil.move(file, held / kind / file.name)
        listed.clear()
        with monkeypatch.context() as patch:
            patch.setattr(RunFolder, "names", publish_after_the_first_listing)
            if move == "status":
                assert read_status(open_run(run))[1].counts() == {"done": 7, "failed": 0, "stale": 0, "missing": 5}
            elif move == "table":
                assert "0/4" in str(compare(Run(run))) or "3/4" in str(compare(Run(run)))
            else:
                assert len(plan(small_suite(), out=run, cpus=0).tasks) == 5
        assert listed[:2] == ["cells", "rounds"]
    assert len(read_published(open_run(run))) == 12


THERE = """
import pickle, sys
from cbobench.play.task import OtherCode
from cbobench.play.task import play_task_on_worker
problem, task, folder = pickle.load(open(sys.argv[1], "rb"))
try:
    print("receipt", play_task_on_worker(problem, task, folder).ok)
except OtherCode as error:
    print("refused", error)
"""


@pytest.mark.long  # below, a worker is told that its code is other code
def test_a_worker_with_other_code_is_refused(small_suite, tmp_path):
    """In an interpreter that has another gp/confidence.py, as another machine would; nothing is published."""
    shutil.copytree(PACKAGE, tmp_path / "there" / "cbobench", ignore=shutil.ignore_patterns("__pycache__"))
    todo = plan(small_suite(), out=tmp_path / "run", cpus=0)
    task = todo.tasks[0]
    with (tmp_path / "task").open("wb") as file:
        pickle.dump((todo.suite.problems[task.pair.problem.title], task, todo.folder), file)

    def there():
        environment = environment_of(tmp_path / "there")
        words = [sys.executable, "-c", THERE, str(tmp_path / "task")]
        return subprocess.run(words, env=environment, capture_output=True, text=True, check=True).stdout

    changed = tmp_path / "there" / "cbobench" / "gp" / "confidence.py"
    text = changed.read_text()
    changed.write_text(text.replace("scale * bound", "2 * scale * bound"))
    assert changed.read_text() != text
    answer = there()
    assert answer.startswith("refused worker ")
    assert "has other code for rkhs-1d[h=0.25] / ckb-ucb" in answer
    assert not (tmp_path / "run" / "cells").exists()
    changed.write_text("# the same code\n" + text)
    assert there() == "receipt 4\n", "a comment is no other code"


@pytest.mark.parametrize(
    ("what", "other", "says"),
    [
        ("libraries", "numpy 1.0.0, scipy 1.0.0", "libraries for .*: numpy 1.0.0, scipy 1.0.0, the driver has numpy"),
        ("source_hash", "0123-abcdef", "code for rkhs-1d.* / ckb-ucb: 0123-abcdef, the driver has"),
    ],
)
def test_a_worker_that_is_another_is_refused(small_suite, tmp_path, monkeypatch, what, other, says):
    todo = plan(small_suite(), out=tmp_path / "run", cpus=0)
    monkeypatch.setattr(f"cbobench.play.task.{what}", lambda *names: other)
    with pytest.raises(OtherCode, match=f"has other {says}"):
        play_task_on_worker(next(iter(todo.suite.problems.values())), todo.tasks[0], todo.folder)
    assert not (tmp_path / "run" / "cells").exists()


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
    text = "suite: l\nhorizon: 9\nseeds: 3\nproblems: [rkhs-1d]\nalgorithms: [random, losing:Losing]\n"
    assert main(["run", str(write_suite(text)), "--out", "run", "--cpus", "0", "--block", "1"]) == 1
    said = capsys.readouterr()
    assert "played but not in " in said.err
    assert "does every worker reach the same folder? see: cbobench status" in said.err
    assert "1/3" in said.out
