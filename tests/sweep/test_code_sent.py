"""What is sent to a cluster."""

from __future__ import annotations

import sys
import zipfile

import pytest

import cbobench
from cbobench.errors import Misuse
from cbobench.results.source import look_again, source_hash
from cbobench.sweep import cluster

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
