"""Run folders and addresses of others: nothing that they name is imported, shown raw, advised or
written over.
"""

from __future__ import annotations

import copy
import json
import os
import shlex
import shutil
import sys

import pyarrow.fs as pafs
import pytest

from cbobench.cli import main
from cbobench.errors import DamagedRun, Misuse, printable
from cbobench.report.load import Run
from cbobench.results.folder import RunFolder, open_run
from cbobench.suite.call import Call
from cbobench.sweep.plan import plan
from tests.helpers import long, play_here, write_manifest
from tests.suite.test_fuzz import places

SUITE = {
    "suite": "s", "horizon": 5, "seeds": 2,
    "problems": [{"rkhs-1d": {"h": 0.25, "label": "L"}}], "algorithms": ["ckb-ucb", "random"],
}  # fmt: skip
READING = (
    ["status"],
    ["compare"],
    ["show"],
    ["figures", "--metric", "regret", "--out", "drawn"],
    ["claims"],
    ["status", "--format", "json"],
)


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """A small run, and what its run.json says."""
    run = tmp_path_factory.mktemp("hostile") / "run"
    play_here(SUITE, run)
    return run, json.loads((run / "run.json").read_text())


@pytest.fixture
def edited(played):
    """Write another run.json; the true one is put back afterwards."""
    run, content = played

    def write(change):
        new = copy.deepcopy(content)
        changed = change(new)
        write_manifest(run, new if changed is None else changed)
        return run

    yield write
    (run / "run.json").write_text(json.dumps(content))


@pytest.fixture
def evil(tmp_path, monkeypatch):
    """A module that leaves a mark where it is imported."""
    (tmp_path / "evil.py").write_text(
        f"from pathlib import Path\nPath({str(tmp_path / 'mark')!r}).touch()\n"
        "from cbobench.algorithms.references import Random\n"
        "\n\nclass X(Random):\n    pass\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "evil", raising=False)
    yield tmp_path / "mark"
    sys.modules.pop("evil", None)


def name_evil(content):
    """Say that evil:X is what played, where a reader looks first."""
    text = json.dumps(content["grids"][0])
    content["grids"] = [json.loads(text.replace(name, "evil:X")) for name in ("random", "rkhs-1d")]


def run_with_evil(tmp_path, evil):
    """A run whose cells evil:X did play."""
    play_here(SUITE | {"algorithms": ["evil:X", "random"]}, tmp_path / "theirs")
    assert evil.exists(), "a suite that names it runs it"
    evil.unlink()
    del sys.modules["evil"]
    return tmp_path / "theirs"


def test_reading_a_run_imports_nothing_that_it_names(edited, evil, tmp_path, capsys):
    theirs = run_with_evil(tmp_path, evil)
    for run, reading in ((edited(name_evil), READING), (theirs, READING[:2])):
        for arguments in reading:
            main([arguments[0], str(run), *arguments[1:]])
        assert Run(run).stale == set()
    assert not evil.exists()
    capsys.readouterr()
    assert main(["status", str(theirs)]) == 0
    assert (
        "2 cells could not be checked for staleness: evil:X is not imported to read a run, unless"
        in (capsys.readouterr().out)
    )
    main(["compare", str(theirs)])
    assert "2/2 (2 unchecked)" in capsys.readouterr().out
    assert not evil.exists()
    main(["status", str(theirs), "--imports"])
    assert evil.exists()
    assert "unchecked" not in capsys.readouterr().out
    main(["compare", str(theirs)])
    assert "unchecked" not in capsys.readouterr().out, "it is imported now"


def test_no_imports_holds_for_what_the_folder_names(edited, evil, tmp_path, write_suite, capsys):
    theirs = run_with_evil(tmp_path, evil)
    suite = tmp_path / "suite.yaml"
    suite.write_text(json.dumps(SUITE | {"algorithms": ["random"]}))
    assert main(["run", str(suite), "--out", str(theirs), "--no-imports", "--cpus", "0"]) == 0
    assert not evil.exists()
    suite.write_text(json.dumps(SUITE | {"algorithms": ["evil:X"]}))
    assert main(["run", str(suite), "--out", str(theirs), "--no-imports", "--cpus", "0"]) == 2
    assert "'evil:X' would import code; --no-imports refuses it" in capsys.readouterr().err
    assert not evil.exists()


STRANGE = (
    None,
    True,
    -1,
    1.5,
    float("nan"),
    10**30,
    "",
    "\ud800",
    "\x1b[31m",
    [],
    [1],
    {},
    {"a": 1},
    [[[]]],
    10**5 * "e",
)


def read_or_refusal(run):
    """None and what tables would show, or the kind of an error and what it says."""
    try:
        record = Run(run).record
    except (DamagedRun, Misuse) as error:
        return type(error), str(error)
    return None, " ".join(
        [record.suite, *record.labels("problems").values(), *record.labels("algorithms").values()]
    )[:999]


@pytest.mark.parametrize("step", [len(STRANGE), *long(1)])
def test_any_json_in_any_place_is_read_or_refused(played, edited, step):
    """A value in every place, each kind in its turn, or all kinds: the run is read, or one line
    says what is wrong.
    """
    run, content = played
    outcomes = set()
    spots = [path for path in places(content) if path[:2] != ("invocations", 0) or len(path) == 3]
    for number, path in enumerate(spots):
        for value in STRANGE[number % step :: step]:

            def put(content, path=path, value=value):
                if not path:
                    return value
                for key in path[:-1]:
                    content = content[key]
                content[path[-1]] = value
                return None

            edited(put)
            outcome = read_or_refusal(run)
            outcomes.add(outcome[0])
            assert printable(outcome[1]) == outcome[1]
            assert len(outcome[1]) < 1000
    assert outcomes == {None, DamagedRun}


@pytest.mark.parametrize(
    "text",
    ["[" * 100_000, '{"schema": 1' + 5000 * "0" + "}", '{"schema": {"a": ' * 300 + "1" + 600 * "}"],
)
def test_json_that_python_cannot_read(edited, text, played, capsys):
    run, _ = played
    edited(lambda content: None)
    (run / "run.json").write_text(text)
    assert main(["status", str(run)]) == 1
    assert capsys.readouterr().err.count("\n") == 1


def test_no_command_but_ours_is_advised(edited, capsys):
    def add_seeds(content, command):
        content["grids"][0] |= {"seeds": [0, 1, 2], "command": command}

    run = edited(lambda content: add_seeds(content, ["rm", "-rf", "~"]))
    main(["status", str(run)])
    assert "rm -rf" not in capsys.readouterr().out
    run = edited(
        lambda content: add_seeds(content, ["cbobench", "run", "s.yaml", "--only", "a\nb"])
    )
    main(["status", str(run)])
    assert (
        f"to go on: cbobench run s.yaml --only 'a\\nb' --out {shlex.quote(str(run))}\n"
        in capsys.readouterr().out
    )


SECRET = "s3cr3t/+k3y"


@pytest.mark.parametrize(
    "address",
    [
        f"s3://KEY:{SECRET}@bucket/run",
        *long(f"s3://bucket/run?region=eu&secret_key={SECRET}"),
    ],
)
def test_secrets_of_a_store_are_neither_shown_nor_kept(monkeypatch, tmp_path, address, capsys):
    suite = tmp_path / "suite.yaml"
    suite.write_text(json.dumps(SUITE))
    for kind in ("cells", "rounds"):  # a bucket needs no folders
        (tmp_path / "store" / kind).mkdir(parents=True)
    monkeypatch.setattr(RunFolder, "_place", (pafs.LocalFileSystem(), str(tmp_path / "store")))
    assert main(["run", str(suite), "--out", address, "--cpus", "0"]) == 0
    for arguments in (
        ["status"],
        ["status", "--format", "json"],
        ["compare"],
        ["claims"],
        ["compare", address],
    ):
        main([arguments[0], address, *arguments[1:]])
    assert all(
        SECRET.encode() not in file.read_bytes() for file in tmp_path.glob("store/**/*.json")
    )
    (tmp_path / "store" / "run.json").rename(tmp_path / "store" / "elsewhere")
    shutil.rmtree(tmp_path / "store" / "cells")  # the record would be made again for these
    assert main(["status", address]) == 2
    assert main(["run", str(suite), "--out", address]) == 2
    output = capsys.readouterr()
    assert "***" in output.out
    assert "is not empty and not a run folder" in output.err
    written = (tmp_path / "store" / "elsewhere").read_text()
    assert json.loads(written)["grids"][0]["command"][3:5] == [
        "--out",
        address.replace(f"KEY:{SECRET}", "***").replace(SECRET, "***"),
    ]
    for text in (output.out, output.err, written, repr(open_run(address)), str(open_run(address))):
        assert SECRET not in text
    monkeypatch.undo()
    with pytest.raises(Misuse, match="cannot use 'gopher://...@x' as a run folder") as error:
        open_run(f"gopher://K:{SECRET}@x").fs  # noqa: B018
    assert SECRET not in str(error.value)


def test_a_prefix_that_holds_other_objects_is_refused(monkeypatch, tmp_path):
    fs = pafs.SubTreeFileSystem(str(tmp_path), pafs.LocalFileSystem())
    (tmp_path / "bucket" / "thesis").mkdir(parents=True)
    (tmp_path / "bucket" / "thesis" / "a.tex").write_text("")
    (tmp_path / "bucket" / "empty" / "cells").mkdir(parents=True)
    (tmp_path / "bucket" / "empty" / ".run.json.1.tmp").write_text("")
    monkeypatch.setattr(
        RunFolder, "_place", property(lambda self: (fs, self.uri.removeprefix("s3://")))
    )
    for out, why in (
        ("s3://bucket", "is not empty and not a run folder: it holds 'empty'; give another --out"),
        ("s3://bucket/thesis", "is not empty and not a run folder: it holds 'a.tex'"),
        ("s3://bucket/thesis/a.tex", "is a file; give a folder for the run"),
    ):
        with pytest.raises(Misuse, match=f"{out} {why}"):
            plan(Call(SUITE, out=out, cpus=0))
    for free in ("s3://bucket/empty", "s3://bucket/new", "s3://none/at/all"):
        assert plan(Call(SUITE, out=free, cpus=0)).done == 0


def test_a_folder_whose_name_is_no_text(tmp_path):
    for name in ("r\udcff", "r\x1b[2J", "r\0"):
        with pytest.raises(Misuse, match=r"the run folder's name .* holds U\+"):
            open_run(tmp_path / name)
    os.mkdir(tmp_path / "r\udcff")  # noqa: PTH102
    os.chdir(tmp_path / "r\udcff")
    with pytest.raises(Misuse, match=r"holds U\+DCFF"):
        open_run("run")


def test_labels_name_no_files(tmp_path, capsys):
    """Titles and labels with paths in them: every file is within the run, or the folder of
    figures.
    """
    label = "../../x/../y"
    suite = SUITE | {
        "problems": [{"rkhs-1d": {"label": label}}],
        "algorithms": [{"random": {"label": "/abs/" + label}}],
    }
    run = tmp_path / "in" / "run"
    play_here(suite, run)
    assert (
        main(["figures", str(run), "--metric", "regret", "--out", str(tmp_path / "in" / "drawn")])
        == 0
    )
    assert [p.name for p in tmp_path.iterdir()] == ["in"]
    assert sorted(p.name for p in (tmp_path / "in").iterdir()) == ["drawn", "run"]
    assert not [p for p in (tmp_path / "in" / "drawn").rglob("*") if p.is_dir()]
