"""What `verify` says of files that a live or late worker has written, and repairs beside calls that begin."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path

import pytest

import cbobench
from cbobench.cli import main
from cbobench.errors import Misuse
from cbobench.results.bundle import open_run
from cbobench.results.folder import RunFolder
from cbobench.results.lease import Lease
from cbobench.results.verify import repair, verify
from cbobench.suite.cells import Cells
from cbobench.sweep.run import plan
from tests.conftest import SMALL


def files(run, kind="rounds"):
    return sorted((run / kind).glob("*.parquet"))


@pytest.fixture
def played(tmp_path):
    """A suite and its run: three tasks of four cells."""
    (tmp_path / "suite.yaml").write_text(SMALL.format(horizon=20, seeds=4))
    cbobench.run(tmp_path / "suite.yaml", out=tmp_path / "run", cpus=0)
    return tmp_path / "suite.yaml", tmp_path / "run"


def test_cells_of_a_straggler_are_no_damage(small_suite, tmp_path, capsys):
    """A worker that outlives its call publishes cells whose rounds were taken for leftovers; others have them, too."""
    suite, run, folder = small_suite(horizon=20), tmp_path / "run", open_run(tmp_path / "run")
    cbobench.run(suite, out=run, cpus=0, block=1)
    cbobench.run(suite, out=tmp_path / "blocks", cpus=0, block=2)
    late = Path(shutil.copy(files(tmp_path / "blocks", "cells")[0], run / "cells"))
    found = verify(folder)
    assert (found.damaged, len(found.late), found.cells, found.twice) == ([], 1, 12, 0)
    assert main(["verify", str(run)]) == 0
    assert "  cells without rounds that another task has played, too: 1 file; they do not count\n" in (
        capsys.readouterr().out
    )
    assert len(cbobench.load_cells(run)) == 12
    for kind in ("cells", "rounds"):
        alone = next(f for f in files(run, kind) if f.name != late.name and ".0-0." in f.name and "ckb-ts" in f.name)
        alone.unlink()
    assert [damage.file for damage in verify(folder).damaged] == [f"cells/{late.name}"], "nobody else has them"


def test_a_repair_and_a_call_exclude_each_other(played, monkeypatch):
    """A call that begins while files are moved is refused; what one has played since the look stays."""
    suite, run = played
    folder, broken = open_run(run), files(run)[0]
    whole = broken.read_bytes()
    broken.write_bytes(whole[:100])
    found, refused = verify(folder), []
    assert len(found.damaged) == 1
    move = RunFolder.move

    def meanwhile(self, relative, to):
        with pytest.raises(Misuse, match="12 of the 12 cells to play in .* are played by process") as error:
            Lease(folder, Cells(cells_of(suite, run))).__enter__()
        refused.append(error)
        move(self, relative, to)

    with monkeypatch.context() as patch:
        patch.setattr(RunFolder, "move", meanwhile)
        assert len(repair(folder, found)) == len(refused) == 2
    assert not list((run / "drivers").iterdir())
    cbobench.run(suite, out=run, cpus=0)
    assert repair(folder, found) == [], "played again since"
    assert verify(folder).cells == 12


def cells_of(suite, run):
    return plan(suite, out=run.parent / "other", cpus=0).tasks.cells.strips


def test_without_a_record_nobody_knows_what_was_asked_for(played, capsys):
    _, run = played
    (run / "run.json").write_text("{")
    shutil.rmtree(run / "invocations")
    assert main(["verify", str(run)]) == 1
    said = capsys.readouterr().out
    assert said.startswith("1 of 7 files is damaged; whole cells: 12 (no record says how many were asked for)\n")
    (run / "run.json").unlink()
    assert main(["status", str(run)]) == 1
    error = capsys.readouterr().err
    assert "run.json is missing, its cells are there; the next cbobench run makes it again from them, or: " in error
    words = shlex.split(error.rpartition("or: cbobench ")[2])
    assert main(words) == 0
    assert "  made again: run.json\n" in capsys.readouterr().out
    assert main(["status", str(run)]) == 0
    assert "12 of 12 cells done" in capsys.readouterr().out
