"""What is sent to a cluster, and what its nodes answer before they play."""

from __future__ import annotations

import os
import sys
import zipfile
from dataclasses import replace
from functools import cache

import pytest

import cbobench
from cbobench.call import Call
from cbobench.errors import Misuse
from cbobench.results import lease
from cbobench.results.lease import TEMPORARY, Lease, find_leftovers
from cbobench.results.source import libraries, look_again, source_hash
from cbobench.sweep import cluster
from cbobench.sweep.plan import plan

CLASS = "from cbobench.algorithms.references import Random\n{more}\n\nclass X(Random):\n    pass\n"


@pytest.fixture
def user_modules(tmp_path, monkeypatch):
    """A folder of the user's own modules, forgotten afterwards."""
    folder = tmp_path / "mine"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    yield folder
    for name in [
        name
        for name in sys.modules
        if name.partition(".")[0] in ("solo", "beside", "whole", "zipped")
    ]:
        del sys.modules[name]
    look_again()


def sources(name):
    return {("rkhs-1d", name): source_hash("rkhs-1d", name)}


def test_a_module_goes_with_what_it_imports_and_no_more(user_modules):
    (user_modules / "solo.py").write_text(CLASS.format(more="import beside\nimport numpy\n"))
    (user_modules / "beside.py").write_text("A = 1\n")
    (user_modules / "other.py").write_text("A = 1\n")
    (user_modules / "large.npz").write_bytes(bytes(100))
    files = cluster.collect_code(sources("solo:X"), ship=True).files
    assert {name for name in files if not name.startswith("cbobench/")} == {"solo.py", "beside.py"}
    assert {"cbobench/gp/confidence.py", "cbobench/problems/measured/tuning.csv"} <= {*files}
    assert not [name for name in files if "__pycache__" in name or name.endswith(".pyc")]
    assert cluster.collect_code(sources("solo:X"), ship=False).files == {}


def test_of_a_package_all_goes_that_may_be_code(user_modules, tmp_path):
    package = user_modules / "whole"
    for place in ("data", "runs/r", "tests", ".git", "venv/bin", "more", "code/data"):
        (package / place).mkdir(parents=True)
        (package / place / "file.py").write_text("A = 1\n")
    (package / "__init__.py").write_text(CLASS.format(more="from whole.code.data import file\n"))
    (package / "table.json").write_text("{}")
    code = cluster.collect_code(sources("whole:X"), ship=True)
    sent = {name for name in code.files if not name.startswith("cbobench/")}
    assert sent == {
        f"whole/{name}"
        for name in ("__init__.py", "table.json", "more/file.py", "code/data/file.py")
    }
    tops = code.copy_to(tmp_path / "out")
    assert tops == [str(tmp_path / "out" / "cbobench"), str(tmp_path / "out" / "whole")]
    assert (tmp_path / "out" / "whole" / "code" / "data" / "file.py").read_text() == "A = 1\n"


def test_what_cannot_be_sent_is_said(user_modules, monkeypatch, small_suite):
    (user_modules / "solo.py").write_text(CLASS.format(more=""))
    with zipfile.ZipFile(user_modules / "archive.zip", "w") as archive:
        archive.writestr("zipped.py", CLASS.format(more=""))
    monkeypatch.syspath_prepend(str(user_modules / "archive.zip"))
    with pytest.raises(
        Misuse, match="--ship cannot send 'zipped': it is no file here; install it on every machine"
    ):
        cluster.collect_code({("rkhs-1d", "zipped:X"): ""}, ship=True)
    with pytest.raises(
        Misuse, match="--ship sends this machine's code to a cluster; give its --address, too"
    ):
        cbobench.run(small_suite(), out=user_modules / "new" / "run", ship=True)
    assert not (user_modules / "new").exists()


@pytest.fixture
def claimed(small_suite, tmp_path, monkeypatch):
    """The folder of a run that is about to be played; nobody waits for files that do not come."""
    monkeypatch.setattr(lease, "VISIBLE_WITHIN", 0.0)
    monkeypatch.setattr(cluster, "VISIBLE_WITHIN", 0.0)
    todo = plan(Call(small_suite(), out=tmp_path / "run", cpus=0))
    with Lease(todo.folder, todo.tasks.cells) as held:
        yield held.folder


@cache
def pair_here():
    """A pair, its source hash and its libraries, as a driver sends them to a node."""
    return "rkhs-1d", "ckb-ucb", source_hash("rkhs-1d", "ckb-ucb"), libraries()


def test_a_node_that_is_as_it_must_be(claimed):
    mark = cluster.marker_of("5f" * 28)
    answer = cluster.check_here(claimed, mark, [pair_here()])
    assert answer == ""
    assert [*find_leftovers(claimed, "")] == [], "its driver lives"
    assert TEMPORARY.fullmatch(mark)[2] == str(os.getpid()), "who is asked whether it does"
    assert {*claimed.listing("drivers")} == {mark, f"{claimed.driver}.json"}
    cluster.refuse_wrong_nodes(claimed, {mark: ("host-1", answer)})
    assert [*claimed.listing("drivers")] == [f"{claimed.driver}.json"], "nothing is left"


@pytest.mark.parametrize(
    ("pairs", "says"),
    [
        ({2: "0"}, "has other code for rkhs-1d / ckb-ucb: .*--ship, then run again"),
        (
            {3: "numpy 1.0, scipy 1.0"},
            "has other libraries .*; install the same on every machine, then run",
        ),
        ({1: "nowhere:X"}, "cannot play rkhs-1d / nowhere:X: cannot import 'nowh.*--ship"),
    ],
)
def test_a_node_with_other_code(claimed, pairs, says):
    answer = cluster.check_here(
        claimed, "n1", [tuple(pairs.get(i, word) for i, word in enumerate(pair_here()))]
    )
    with pytest.raises(
        Misuse, match=rf"nothing is played: 1 of 2 nodes \(host-1\): worker \S+ {says}"
    ):
        cluster.refuse_wrong_nodes(
            claimed,
            {
                "n1": ("host-1", answer),
                "n2": ("host-2", cluster.check_here(claimed, "n2", [pair_here()])),
            },
        )
    assert [*claimed.listing("drivers")] == [f"{claimed.driver}.json"]


def test_a_node_with_another_folder(claimed, tmp_path):
    """Neither sees the other's file: the worker says so, or the driver does where it was misled."""
    elsewhere = replace(claimed, uri=str(tmp_path / "elsewhere"))
    answer = cluster.check_here(elsewhere, "n1", [pair_here()])
    assert f"does not see the driver's folder {elsewhere}" in answer
    (tmp_path / "elsewhere" / "drivers").mkdir(parents=True)
    # a copy of the folder
    (tmp_path / "elsewhere" / "drivers" / f"{claimed.driver}.json").write_text("{}")
    answers = {
        f"n{i}": (f"host-{i}", cluster.check_here(elsewhere, f"n{i}", [pair_here()]))
        for i in range(6)
    }
    with pytest.raises(Misuse) as error:
        cluster.refuse_wrong_nodes(claimed, answers)
    assert str(error.value) == (
        "nothing is played: 6 of 6 nodes (host-0, host-1, host-2, host-3, …): what it writes "
        f"into {claimed} is not "
        "seen here; give --out on a file system that all share"
    )
