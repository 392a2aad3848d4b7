"""Which edits make cells stale: over what plays really run, and in a user's own modules."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import cbobench
from cbobench import params
from cbobench.algorithms import ALGORITHMS
from cbobench.cli import main
from cbobench.errors import Misuse
from cbobench.play.play import Play
from cbobench.problems import PROBLEMS
from cbobench.problems.simulators.simulator import Simulator
from cbobench.results import source
from tests.helpers import play_here

PACKAGE = Path(cbobench.__file__).parent
POCKET = ("feasible-pocket", {"candidates": 64})
SAMPLES = [
    ("rkhs-1d", {}, "ckb-ts"),
    (*POCKET, "scbo"),
    ("feasible-pocket-delayed", {"candidates": 64}, "rpol-censored"),
    ("cloud-latency", {"days": 8}, "penalty-noisy"),
]
MORE = [
    (*POCKET, "rpol-sw"),
    ("rkhs-1d", {}, "admmbo"),
    ("stocks", {"data": "look-alike"}, "sgp-ucb"),
    ("rate-allocation", {"grid": 3}, "stageopt"),
    ("feasible-pocket-drift", {"candidates": 64}, "ckb-restart"),
    ("welded-beam", {"candidates": 64}, "epbo"),
]


@pytest.mark.parametrize(
    ("problem", "settings", "algorithm"),
    SAMPLES + [pytest.param(*sample, marks=pytest.mark.long) for sample in MORE],
)
def test_what_a_play_really_runs_is_reached(problem, settings, algorithm):
    """Against the interpreter: every function of cbobench that is called lies in a file that the
    hash covers.
    """
    covered = {str(path) for path in source.closure(problem, algorithm).values()}
    ran = set()

    def look(frame, event, _):
        file = frame.f_code.co_filename
        if event == "call" and file.startswith(str(PACKAGE)):
            ran.add(file)

    built = params.build(PROBLEMS.get(problem), settings)
    built.prepare(None)
    sys.setprofile(look)
    try:
        play = Play(built, "p", params.build(ALGORITHMS.get(algorithm), {}), "a", [0], 12)
        list(play)
    finally:
        sys.setprofile(None)
    assert ran - covered == set()
    assert len(ran) > 10


def test_code_that_a_pair_does_not_import_does_not_count():
    names = {*source.closure("rkhs-1d", "ckb-ucb")}
    assert names >= {
        "cbobench.problems.rkhs.functions",
        "cbobench.gp.kernels",
        "cbobench.play.block",
    }
    others = ("report", "sweep", "cli", "page", "algorithms.scbo", "problems.literature")
    assert not [name for name in names if name.startswith(tuple(f"cbobench.{n}" for n in others))]
    assert "cbobench" not in names
    assert len(names) < 100


PLAIN = (
    "from cbobench.problems.rkhs.functions import RKHS1D\n\n\n"
    "class Mine(RKHS1D):\n    FACTOR = {}\n"
)
LAZY = (
    "def __getattr__(name):\n    import importlib\n    return "
    "getattr(importlib.import_module('lib.base'), name)\n"
)
USES = "from helper import {0}\n" + PLAIN.format("{0}")
CASES = {
    "a base behind a lazy package": (
        {
            "mine.py": "from lib import Base\n\n\nclass Mine(Base):\n    pass\n",
            "lib/__init__.py": LAZY,
            "lib/base.py": PLAIN.format(1).replace("Mine", "Base"),
        },
        "lib/base.py",
    ),
    "a module with a standard name": ({"code.py": PLAIN.format(1)}, "code.py"),
    "a helper with a standard name": (
        {"mine.py": "from profile import K\n" + PLAIN.format("K"), "profile.py": "K = 1\n"},
        "profile.py",
    ),
    "a class changed where it is named": (
        {"mine.py": PLAIN.format(1), "face.py": "from mine import Mine\n\nMine.FACTOR = 1\n"},
        "face.py",
    ),
    "a class changed by a module that is only imported": (
        {
            "mine.py": PLAIN.format(0) + "\n\nimport patch\n",
            "patch.py": "import mine\n\nmine.Mine.FACTOR = 1\n",
        },
        "patch.py",
    ),
    "an import for all but type checkers": (
        {
            "mine.py": (
                "from typing import TYPE_CHECKING\nif not TYPE_CHECKING:\n    from helper import "
                "K\n"
            )
            + PLAIN.format("K"),
            "helper.py": "K = 1\n",
        },
        "helper.py",
    ),
    "an import in place of one for type checkers": (
        {
            "mine.py": (
                "import typing\nif typing.TYPE_CHECKING:\n    K = 0\nelse:\n    from helper "
                "import K\n"
            )
            + PLAIN.format("K"),
            "helper.py": "K = 1\n",
        },
        "helper.py",
    ),
    "a star": (
        {
            "mine.py": "from lib import *\n" + PLAIN.format("laws.K"),
            "lib/__init__.py": "__all__ = ['laws']\n",
            "lib/laws.py": "K = 1\n",
        },
        "lib/laws.py",
    ),
    "a file that Python cannot parse": (
        {
            "mine.py": "try:\n    from legacy import K\nexcept SyntaxError:\n    K = 1\n"
            + PLAIN.format("K"),
            "legacy.py": "print 'K = 1'\n",
        },
        "legacy.py",
    ),
    "a very deep expression": (
        {"mine.py": USES.format("K"), "helper.py": f"K = 1{' + 0' * 1200}\n"},
        "helper.py",
    ),
    "an alias of a module, in a function": (
        {
            "mine.py": PLAIN.format(0)
            + "\n    def f(self):\n        import lib.parts as p\n        return p.K\n",
            "lib/__init__.py": "",
            "lib/parts.py": "K = 1\n",
        },
        "lib/parts.py",
    ),
    "a relative import": (
        {
            "mine.py": "from lib import f\n" + PLAIN.format("f()"),
            "lib/__init__.py": "from .one import f\n",
            "lib/one.py": "from . import two\n\n\ndef f():\n    return two.K\n",
            "lib/two.py": "K = 1\n",
        },
        "lib/two.py",
    ),
}


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Write a user's files; modules are imported afresh and forgotten afterwards."""
    monkeypatch.syspath_prepend(str(tmp_path))
    shadowed = {}

    def forget(tops):
        """Take modules of these names away, whoever imported them."""
        return {
            name: sys.modules.pop(name) for name in list(sys.modules) if name.split(".")[0] in tops
        }

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
    files, edited = CASES[case]
    name = f"{next(top for top in ('face', 'mine', 'code') if f'{top}.py' in files)}:Mine"
    folder = project(files)
    first = source.source_hash(name, "random")
    (folder / edited).write_text(files[edited].replace("1", "2"))
    source.look_again()
    assert source.source_hash(name, "random") != first


@pytest.mark.parametrize(
    ("text", "reached"),
    [
        ("from cbobench import PROBLEMS\n", "cbobench.problems.formulas.literature"),
        ("from cbobench.algorithms import ALGORITHMS\n", "cbobench.opponents.local_search"),
        ("import cbobench\n", "cbobench.algorithms.scbo"),
        ("from cbobench import *\n", "cbobench.algorithms.safe"),
        ("from cbobench import SafeSet\n", "cbobench.algorithms.safe"),
    ],
)
def test_what_a_user_may_look_up_counts(project, text, reached):
    project({"mine.py": text + PLAIN.format(0)})
    assert reached in source.closure("mine:Mine", "random")
    project({"mine.py": PLAIN.format(0)})
    assert reached not in source.closure("mine:Mine", "random"), "negative control"


def test_what_changes_no_result_makes_nothing_stale(project):
    start = "from typing import TYPE_CHECKING\n"
    plain = f"{start}\n\ndef f(a):\n    return a + 1\n\n\n" + PLAIN.format("f(1)")
    folder = project({"mine.py": plain})
    first = source.source_hash("mine:Mine", "random")
    for text in (
        plain.replace("f(a):", "f(a):  # adds\n    '''Adds.'''").replace("a + 1", "(\n  a + 1)"),
        plain.replace(start, f"{start}if TYPE_CHECKING:\n    import never\n"),
    ):
        assert text != plain
        (folder / "mine.py").write_text(text)
        source.look_again()
        assert source.source_hash("mine:Mine", "random") == first
    (folder / "mine.py").write_text(plain.replace("a + 1", "a + 2"))
    source.look_again()
    assert source.source_hash("mine:Mine", "random") != first, "negative control"


def test_a_module_in_a_zip_is_left_out(project, tmp_path, monkeypatch):
    with zipfile.ZipFile(tmp_path / "parts.zip", "w") as archive:
        archive.writestr("zipped.py", "K = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path / "parts.zip"))
    project({"mine.py": "from zipped import K\n" + PLAIN.format("K")})
    assert "zipped" not in source.closure("mine:Mine", "random")


def test_every_base_and_spelling_begins_a_closure(project):
    project({"face.py": "from mine import Mine\n", "mine.py": PLAIN.format(1)})
    assert {"face", "mine", "cbobench.problems.rkhs.functions"} <= set(
        source.closure("face:Mine", "random")
    )


OF_SIMULATORS = {f"cbobench.problems.simulators.{name}" for name in ("kept", "simulator")}


@pytest.mark.parametrize(
    "problem", [name for name in PROBLEMS.names() if not issubclass(PROBLEMS.get(name), Simulator)]
)
def test_code_of_simulators_counts_for_them_alone(problem):
    """An edit of it makes no cell of another problem stale."""
    assert not source.closure(problem, "ckb-ucb").keys() & OF_SIMULATORS


def test_code_of_simulators_counts_for_them(project):
    text = "from cbobench import Simulator\n\n\nclass Mine(Simulator):\n    m = 1\n"
    project({"mine.py": text})
    assert source.closure("mine:Mine", "ckb-ucb").keys() >= OF_SIMULATORS


SUITE = "suite: m\nhorizon: 3\nseeds: 2\nproblems: ['mine:Mine']\nalgorithms: [random]\n"


def test_an_edit_under_a_running_process_is_refused(project, write_suite, tmp_path):
    """Its results would be those of the code that is loaded, under the hash of the code on disk."""
    folder = project({"mine.py": PLAIN.format(1)})
    suite = write_suite(SUITE)
    play_here(suite, tmp_path / "m")
    (folder / "mine.py").write_text("# a note\n" + PLAIN.format(1))
    assert play_here(suite, tmp_path / "m", again=["stale"]).played == 0
    (folder / "mine.py").write_text(PLAIN.format(2))
    for out in ("another", "m"):
        with pytest.raises(
            Misuse, match="mine.py has changed since this process imported mine; start Python again"
        ):
            play_here(suite, tmp_path / out, again=["stale"])


def test_a_class_of_the_script_that_runs_is_refused(tmp_path, write_suite):
    script = tmp_path / "script.py"
    script.write_text(
        PLAIN.format(1) + "\n\nif __name__ == '__main__':\n    import cbobench\n"
        f"    cbobench.run('{write_suite(SUITE.replace('mine:', '__main__:'))}', out='m', cpus=0)\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True)
    assert "lies in the script that runs; put the class into a module of its own" in done.stderr


def test_another_numpy_is_a_mark_of_its_own(small_suite, tmp_path, capsys, monkeypatch):
    """Not stale, and said so."""
    run = tmp_path / "run"
    monkeypatch.setattr("cbobench.sweep.blocks.libraries", lambda name: "numpy 1.0.0, scipy 1.0.0")
    play_here(small_suite(horizon=5), run)
    main(["status", str(run)])
    output = capsys.readouterr().out
    assert "12 of 12 cells done, 0 failed, 0 missing, 0 stale" in output
    assert "12 cells played with other libraries than this machine's numpy" in output
    main(["status", str(run), "--format", "json"])
    assert json.loads(capsys.readouterr().out)["other_libraries"] == 12
    assert set(cbobench.load_cells(run)["libraries"]) == {"numpy 1.0.0, scipy 1.0.0"}
