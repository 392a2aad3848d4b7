"""Ways in which code may reach a cell, each with an edit that changes results: the cell is stale after every one."""

from __future__ import annotations

import importlib
import subprocess
import sys
import zipfile

import pytest

import cbobench
from cbobench.errors import Misuse
from cbobench.results import source

PLAIN = "from cbobench.problems.rkhs import RKHS1D\n\n\nclass Mine(RKHS1D):\n    FACTOR = {}\n"
LAZY = "def __getattr__(name):\n    import importlib\n    return getattr(importlib.import_module('lib.base'), name)\n"
CASES = {
    "a base behind a lazy package": (
        {"mine.py": "from lib import Base\n\n\nclass Mine(Base):\n    pass\n", "lib/__init__.py": LAZY,
         "lib/base.py": PLAIN.format(1).replace("Mine", "Base")}, "mine:Mine", "lib/base.py",
    ),
    "a module with a standard name": ({"code.py": PLAIN.format(1)}, "code:Mine", "code.py"),
    "a helper with a standard name": (
        {"mine.py": "from profile import K\n" + PLAIN.format("K"), "profile.py": "K = 1\n"}, "mine:Mine", "profile.py",
    ),
    "a class changed where it is named": (
        {"mine.py": PLAIN.format(1), "face.py": "from mine import Mine\n\nMine.FACTOR = 1\n"}, "face:Mine", "face.py",
    ),
    "an import for all but type checkers": (
        {"mine.py": "from typing import TYPE_CHECKING\nif not TYPE_CHECKING:\n    from helper import K\n"
         + PLAIN.format("K"), "helper.py": "K = 1\n"}, "mine:Mine", "helper.py",
    ),
    "a star": (
        {"mine.py": "from lib import *\n" + PLAIN.format("laws.K"), "lib/__init__.py": "__all__ = ['laws']\n",
         "lib/laws.py": "K = 1\n"}, "mine:Mine", "lib/laws.py",
    ),
    "a file that Python cannot parse": (
        {"mine.py": "try:\n    from legacy import K\nexcept SyntaxError:\n    K = 1\n" + PLAIN.format("K"),
         "legacy.py": "print 'K = 1'\n"}, "mine:Mine", "legacy.py",
    ),
    "a very deep expression": (
        {"mine.py": "from helper import K\n" + PLAIN.format("K"), "helper.py": f"K = 1{' + 0' * 1200}\n"},
        "mine:Mine", "helper.py",
    ),
}  # fmt: skip


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Write a user's files; modules are imported afresh and forgotten afterwards."""
    monkeypatch.syspath_prepend(str(tmp_path))
    shadowed = {}

    def forget(tops):
        """Take modules of these names away, whoever imported them."""
        return {name: sys.modules.pop(name) for name in list(sys.modules) if name.split(".")[0] in tops}

    def write(files):
        tops = {name.split("/")[0].removesuffix(".py") for name in files}
        shadowed.update(forget(tops - set(shadowed)))
        for name, text in files.items():
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text(text)
        importlib.invalidate_caches()
        source.look_again()
        written.update(tops)
        return tmp_path

    written = set()
    yield write
    forget(written)
    sys.modules.update(shadowed)
    source.look_again()


@pytest.mark.parametrize("case", CASES)
def test_an_edit_makes_stale(project, case):
    files, name, edited = CASES[case]
    folder = project(files)
    first = source.source_hash(name, "random")
    source.look_again()
    assert source.source_hash(name, "random") == first
    text = files[edited]
    (folder / edited).write_text(text.replace("1", "2") if "1" in text else text + "\nX = 1\n")
    source.look_again()
    assert source.source_hash(name, "random") != first


def test_a_module_in_a_zip_is_left_out(project, tmp_path, monkeypatch):
    with zipfile.ZipFile(tmp_path / "parts.zip", "w") as archive:
        archive.writestr("zipped.py", "K = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path / "parts.zip"))
    project({"mine.py": "from zipped import K\n" + PLAIN.format("K")})
    assert "zipped" not in source.closure("mine:Mine", "random")


SUITE = "suite: m\nhorizon: 3\nseeds: 2\nproblems: ['mine:Mine']\nalgorithms: [random]\n"


def test_an_edit_under_a_running_process_is_refused(project, write_suite, tmp_path):
    """Its results would be those of the code that is loaded, under the hash of the code on disk."""
    folder = project({"mine.py": PLAIN.format(1)})
    suite = write_suite(SUITE)
    cbobench.run(suite, out=tmp_path / "m", cpus=0)
    (folder / "mine.py").write_text("# a note\n" + PLAIN.format(1))
    assert cbobench.run(suite, out=tmp_path / "m", cpus=0, again=["stale"]).played == 0
    (folder / "mine.py").write_text(PLAIN.format(2))
    with pytest.raises(Misuse, match="mine.py has changed since this process imported mine; start Python again"):
        cbobench.run(suite, out=tmp_path / "m", cpus=0, again=["stale"])


def test_a_class_of_the_script_that_runs_is_refused(tmp_path, write_suite):
    script = tmp_path / "script.py"
    script.write_text(
        PLAIN.format(1) + "\n\nif __name__ == '__main__':\n    import cbobench\n"
        f"    cbobench.run('{write_suite(SUITE.replace('mine:', '__main__:'))}', out='m', cpus=0)\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert "lies in the script that runs; put the class into a module of its own" in done.stderr


def test_code_that_is_not_at_hand_is_said(project, write_suite, tmp_path, command):
    project({"mine.py": PLAIN.format(1)})
    cbobench.run(write_suite(SUITE), out=tmp_path / "m", cpus=0)
    (tmp_path / "mine.py").unlink()
    out = command("status", tmp_path / "m", "--imports").stdout
    assert "0 stale" in out
    assert "2 cells could not be checked for staleness: mine:Mine cannot be imported (from" in out
    assert "2/2 (2 unchecked)" in command("compare", tmp_path / "m").stdout


def test_every_base_and_spelling_begins_a_closure(project):
    project({"face.py": "from mine import Mine\n", "mine.py": PLAIN.format(1)})
    assert {"face", "mine", "cbobench.problems.rkhs"} <= set(source.closure("face:Mine", "random"))
