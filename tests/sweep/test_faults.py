"""What must not pass in silence: a run read while it is written, workers with other code, results that are absent."""

from __future__ import annotations

import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import cbobench
from cbobench.play.proof import OtherCode
from cbobench.play.task import carry_out_there
from cbobench.report.compare import compare
from cbobench.report.load import Run
from cbobench.results.folder import RunFolder
from cbobench.results.published import played
from cbobench.results.status import status
from cbobench.results.verify import verify
from cbobench.sweep.run import plan
from tests.sweep.helpers import SLOW, start_and_wait

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
                assert status(RunFolder.at(run))[1].counts() == {"done": 7, "failed": 0, "stale": 0, "missing": 5}
            elif move == "table":
                assert "0/4" in str(compare(Run(run))) or "3/4" in str(compare(Run(run)))
            else:
                assert len(plan(small_suite(), out=run, cpus=0).tasks) == 5
        assert listed[:2] == ["cells", "rounds"]
    assert len(played(RunFolder.at(run))) == 12


@pytest.mark.slow
def test_a_live_run_can_be_read_at_any_time(write_suite, tmp_path, command):
    long = SLOW.replace("seeds: 12", "seeds: 100")  # however slowly it is read beside it
    driver = start_and_wait(write_suite(long), tmp_path / "live", cpus=2, cells=1)
    assert command("status", tmp_path / "live").returncode == 0
    folder, seen = RunFolder.at(tmp_path / "live"), set()
    while driver.poll() is None and len(seen) < 12:
        seen.add(status(folder)[1].counts()["done"])
        assert len(Run(folder).cells) >= max(seen)
        assert verify(folder).damaged == []
    driver.kill()
    driver.communicate(timeout=120)
    assert len(seen) > 2, "it grew while it was read"


THERE = """
import pickle, sys
from cbobench.play.proof import OtherCode
from cbobench.play.task import carry_out_there
problem, task, folder = pickle.load(open(sys.argv[1], "rb"))
try:
    print("receipt", carry_out_there(problem, task, folder).ok)
except OtherCode as error:
    print("refused", error)
"""


def test_a_worker_with_other_code_is_refused(small_suite, tmp_path):
    """In an interpreter that has another gp/width.py, as another machine would; nothing is published."""
    shutil.copytree(PACKAGE, tmp_path / "there" / "cbobench", ignore=shutil.ignore_patterns("__pycache__"))
    todo = plan(small_suite(), out=tmp_path / "run", cpus=0)
    task = todo.tasks[0]
    with (tmp_path / "task").open("wb") as file:
        pickle.dump((todo.suite.problems[task.pair.problem.title], task, todo.folder), file)

    def there():
        environment = os.environ | {"PYTHONPATH": str(tmp_path / "there")}
        words = [sys.executable, "-c", THERE, str(tmp_path / "task")]
        return subprocess.run(words, env=environment, capture_output=True, text=True, check=True).stdout

    width = tmp_path / "there" / "cbobench" / "gp" / "width.py"
    text = width.read_text()
    width.write_text(text.replace("scale * bound", "2 * scale * bound"))
    assert width.read_text() != text
    answer = there()
    assert answer.startswith("refused worker ")
    assert "has other code for rkhs-1d[h=0.25] / ckb-ucb" in answer
    assert not (tmp_path / "run" / "cells").exists()
    width.write_text("# the same code\n" + text)
    assert there() == "receipt 4\n", "a comment is no other code"


def test_a_worker_with_another_numpy_is_refused(small_suite, tmp_path, monkeypatch):
    todo = plan(small_suite(), out=tmp_path / "run", cpus=0)
    monkeypatch.setattr("cbobench.play.proof.libraries", lambda name: "numpy 1.0.0, scipy 1.0.0")
    with pytest.raises(OtherCode, match="other libraries for .*: numpy 1.0.0, scipy 1.0.0, the driver has numpy"):
        carry_out_there(next(iter(todo.suite.problems.values())), todo.tasks[0], todo.folder)


LOSING = '''
import pathlib
from cbobench.algorithms.references import Random


class Losing(Random):
    """Someone deletes the cells of a run while it is played."""

    def start(self, setting):
        super().start(setting)
        if setting.horizon > 5:
            for file in pathlib.Path("run/cells").glob("*.parquet"):
                file.unlink()
'''


@pytest.mark.parametrize("cpus", [0, 2])
def test_absent_cells_are_said_and_end_with_1(write_suite, tmp_path, command, cpus):
    """Of a folder that loses files, or that the workers' machine does not share."""
    (tmp_path / "losing.py").write_text(LOSING)
    text = "suite: l\nhorizon: {}\nseeds: 3\nproblems: [rkhs-1d]\nalgorithms: [random, losing:Losing]\n"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])}
    words = ("--out", "run", "--cpus", cpus, "--block", 1)
    done = command("run", write_suite(text.format(9)), *words, env=environment)
    assert done.returncode == 1
    assert "played but not in " in done.stderr
    assert "does every worker reach the same folder? see: cbobench status" in done.stderr
    assert "0/3" in done.stdout or "2/3" in done.stdout or "1/3" in done.stdout
    if cpus:
        return
    shutil.rmtree(tmp_path / "run")
    fine = command("run", write_suite(text.format(5)), *words, env=environment)
    assert fine.returncode == 0, fine.stderr
    assert "absent" not in fine.stderr
