"""What is sent to a cluster."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

import pytest

import cbobench
from cbobench.errors import Misuse
from cbobench.results.source import look_again
from cbobench.sweep import ray_start

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


def test_what_cells_import_is_sent_or_else_looked_for(user_modules):
    """Single modules, and whole packages; nothing that is installed."""
    (user_modules / "solo.py").write_text(CLASS.format(more="import beside, whole\nimport numpy\n"))
    (user_modules / "beside.py").write_text("A = 1\n")
    (user_modules / "other.py").write_text("A = 1\n")
    (user_modules / "whole").mkdir()
    (user_modules / "whole" / "__init__.py").write_text("A = 1\n")
    pairs = [("rkhs-1d", "solo:X")]
    ours = str(Path(cbobench.__file__).parent)
    theirs = [str(user_modules / name) for name in ("beside.py", "solo.py", "whole")]
    assert ray_start.collect_code(pairs, ship=True) == ray_start.Code(sent=sorted([ours, *theirs]))
    assert ray_start.collect_code(pairs, ship=False) == ray_start.Code(folders=[str(user_modules)])


def test_what_cannot_be_sent_is_said(user_modules, monkeypatch, small_suite):
    (user_modules / "solo.py").write_text(CLASS.format(more=""))
    with zipfile.ZipFile(user_modules / "archive.zip", "w") as archive:
        archive.writestr("zipped.py", CLASS.format(more=""))
    monkeypatch.syspath_prepend(str(user_modules / "archive.zip"))
    with pytest.raises(
        Misuse, match="--ship cannot send 'zipped': it is no file here; install it on every machine"
    ):
        ray_start.collect_code([("rkhs-1d", "zipped:X")], ship=True)
    with pytest.raises(
        Misuse, match="--ship sends this machine's code to a cluster; give its --address, too"
    ):
        cbobench.run(small_suite(), out=user_modules / "new" / "run", ship=True)
    assert not (user_modules / "new").exists()
