"""Staleness over real files: the package is copied, its files are changed one after the other, nothing is replaced."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import cbobench
from cbobench.algorithms import ALGORITHMS
from cbobench.problems import PROBLEMS
from cbobench.results import source
from tests.conftest import ROOT

PACKAGE = Path(cbobench.__file__).parent

CHANGES = '''
"""In a copy of the package: for each module, which pairs are stale after its code changes, or only its words."""
import ast, itertools, json, sys
from pathlib import Path
import cbobench
from cbobench.algorithms import ALGORITHMS
from cbobench.problems import PROBLEMS
from cbobench.results import source

package = Path(cbobench.__file__).parent
assert package.parent == Path(sys.argv[1]), package

def one_per_module(registry):
    return {registry.get(name).__module__: name for name in registry.names()}.values()

# Each problem with several algorithms, and each algorithm with several problems.
every = itertools.product(enumerate(one_per_module(PROBLEMS)), enumerate(one_per_module(ALGORITHMS)))
pairs = [(problem, algorithm) for (i, problem), (j, algorithm) in every if (i + j) % 5 == 0]
holding = {pair: set(source.closure(*pair)) for pair in pairs}

def hashes():
    source.look_again()
    return {pair: source.source_hash(*pair) for pair in pairs}

def stale():
    now = hashes()
    return {pair for pair in pairs if now[pair] != before[pair]}

before = hashes()
wrong, found, texts = [], {}, {}
for file in sorted(package.rglob("*.py")):
    parts = file.relative_to(package.parent).with_suffix("").parts
    name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    text = texts[file] = file.read_text()
    expected = {pair for pair in pairs if name in holding[pair]}
    tree = ast.parse(text)
    lines = text.splitlines(keepends=True)
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node):
            line = node.body[0].end_lineno - 1
            assert lines[line].rstrip().endswith(chr(34) * 3), (name, lines[line])
            lines[line] = lines[line].rstrip()[:-3] + " More words." + chr(34) * 3 + "\\n"
    file.write_text(text + "\\n_ADDED = 1\\n")
    if (others := stale()) != expected:
        wrong.append([name, len(others), len(expected)])
    file.write_text("# a comment\\n\\n" + "".join(lines) + "\\n# another\\n")
    found[name] = sorted({a for p, a in expected} if len(expected) < len(pairs) else ["*"])
assert not stale(), "other words in every module are no other code"
for file, text in texts.items():
    file.write_text(text)
assert not stale()
print(json.dumps({"wrong": wrong, "algorithms": found}))
'''


@pytest.fixture(scope="module")
def copied(tmp_path_factory):
    folder = tmp_path_factory.mktemp("copy")
    shutil.copytree(PACKAGE, folder / "cbobench", ignore=shutil.ignore_patterns("__pycache__"))
    return folder


@pytest.mark.slow
def test_changing_a_module_makes_stale_exactly_the_pairs_that_depend_on_it(copied):
    (copied / "changes.py").write_text(CHANGES)
    done = subprocess.run(
        [sys.executable, "changes.py", copied], cwd=copied, env=os.environ | {"PYTHONPATH": str(copied)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["wrong"] == []
    algorithms = answer["algorithms"]
    assert len(algorithms) > 80
    loop = ("play.play", "play.recorder", "play.rows", "play.block")
    for everyone in (*loop, "threads", "metrics", "rng", "gp.kernels", "problems.base"):
        assert algorithms[f"cbobench.{everyone}"] == ["*"], everyone
    for nobody in ("cli", "commands", "report.figures", "sweep.ray_executor", "results.query", "suite.load"):
        assert algorithms[f"cbobench.{nobody}"] == [], nobody
    modules = {name: ALGORITHMS.get(name).__module__ for name in ALGORITHMS.names()}
    drifting, improving = (
        {modules[a] for a in algorithms[f"cbobench.algorithms.{name}"]} for name in ("drift", "improvement")
    )
    assert {modules["rpol-sw"], modules["ckb-restart"]} <= drifting
    assert not {modules["cei"], modules["random"], modules["stageopt"]} & drifting
    assert {modules["cei"], modules["admmbo"]} <= improving
    assert modules["ckb-ucb"] not in improving


PLAYED = """
import json, sys
from cbobench import params
from cbobench.play.play import Play
from cbobench.play.block import summaries
import importlib

def build(path, settings):
    module, _, name = path.partition(":")
    return params.build(getattr(importlib.import_module(module), name), settings)

problem = build(sys.argv[1], json.loads(sys.argv[2]))
problem.prepare(None)
play = Play(problem, "p", build(sys.argv[3], {}), "a", [0], 12)
list(play)
assert summaries(play)[0]["status"] == "ok"
print(json.dumps([name for name in sys.modules if name.split(".")[0] == "cbobench"]))
"""


def path_of(cls):
    return f"{cls.__module__}:{cls.__qualname__}"


POCKET = ("feasible-pocket", {"candidates": 64})
SAMPLES = [
    ("rkhs-1d", {}, "ckb-ts"), (*POCKET, "rpol-sw"), (*POCKET, "config"), ("rkhs-1d", {}, "admmbo"),
    (*POCKET, "scbo"), (*POCKET, "cei"), ("feasible-pocket-delayed", {"candidates": 64}, "rpol-censored"),
    ("rkhs-1d", {"full_information": True}, "scgp-ucb"), ("tuning-under-deadline", {}, "safeopt"),
    ("rate-allocation", {"grid": 3}, "stageopt"), ("stocks", {"data": "look-alike"}, "sgp-ucb"),
    ("cloud-latency", {"days": 8}, "penalty-noisy"), ("expert-guidance", {}, "bandit-oco"),
    ("feasible-pocket-drift", {"candidates": 64}, "ckb-restart"), ("welded-beam", {"candidates": 64}, "epbo"),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("problem", "settings", "algorithm"), SAMPLES)
def test_what_a_play_really_imports_is_in_the_closure(problem, settings, algorithm):
    """Against the interpreter: a process that plays a pair and does nothing else has loaded no module beyond it."""
    words = [path_of(PROBLEMS.get(problem)), json.dumps(settings), path_of(ALGORITHMS.get(algorithm))]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", PLAYED, *words], env=environment, capture_output=True, text=True, check=True
    )
    loaded = set(json.loads(done.stdout)) - {"cbobench"}
    closure = set(source.closure(problem, algorithm))
    assert loaded <= closure
    assert "cbobench.play.play" in loaded, "positive control: the process did play"
    assert not [name for name in closure if name.startswith(("cbobench.report", "cbobench.sweep", "cbobench.cli"))]


MINE = '''"""Mine."""
from cbobench.algorithms.references import Random
from mine_parts.words import gain


class Mine(Random):
    def ask(self, t):
        return super().ask(t) * int(gain() > 0)
'''


@pytest.mark.slow
def test_a_users_module_and_what_it_imports_count(command, write_suite, tmp_path):
    """By the command line, as a user would: change a helper, look at the status, play the stale cells again."""
    (tmp_path / "mine.py").write_text(MINE)
    (tmp_path / "mine_parts").mkdir()
    (tmp_path / "mine_parts" / "__init__.py").write_text("")
    helper = tmp_path / "mine_parts" / "words.py"
    helper.write_text("def gain():\n    from mine_parts import deep\n\n    return deep.GAIN\n")
    deep = tmp_path / "mine_parts" / "deep.py"
    deep.write_text("GAIN = 1\n")
    suite = write_suite("suite: m\nhorizon: 5\nseeds: 2\nproblems: [rkhs-1d]\nalgorithms: [mine:Mine, random]\n")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])}

    def status():
        return command("status", tmp_path / "m", "--imports", env=environment).stdout.splitlines()[0]

    first = command("run", suite, "--out", tmp_path / "m", "--cpus", 0, env=environment)
    assert first.returncode == 0, first.stderr
    assert status().endswith("0 stale")
    deep.write_text("# a note\nGAIN = 1  # the same\n")
    assert status().endswith("0 stale")
    deep.write_text("GAIN = 2\n")
    assert status().endswith("2 stale"), "the cells of mine:Mine, not those of random"
    again = command("run", suite, "--out", tmp_path / "m", "--cpus", 0, "--again", "stale", env=environment)
    assert again.returncode == 0, again.stderr
    assert status().endswith("0 stale")
    shutil.rmtree(tmp_path / "mine_parts")
    (tmp_path / "mine.py").unlink()
    assert status().endswith("0 stale"), "code that is not at hand cannot be compared"


def test_another_numpy_is_a_mark_of_its_own(small_suite, tmp_path, command, monkeypatch):
    """Not stale, and said so."""
    run = tmp_path / "run"
    monkeypatch.setattr("cbobench.sweep.blocks.libraries", lambda name: "numpy 1.0.0, scipy 1.0.0")
    cbobench.run(small_suite(), out=run, cpus=0)
    done = command("status", run)
    assert "12 of 12 cells done, 0 failed, 0 missing, 0 stale" in done.stdout
    assert "12 cells played with other libraries than this machine's numpy" in done.stdout
    assert json.loads(command("status", run, "--format", "json").stdout)["other_libraries"] == 12
    assert set(cbobench.load_cells(run)["libraries"]) == {"numpy 1.0.0, scipy 1.0.0"}


def test_relative_and_guarded_imports(tmp_path):
    """Imports are read as Python reads them; those for type checkers are not followed."""
    (tmp_path / "inner").mkdir()
    file = tmp_path / "inner" / "__init__.py"
    file.write_text(
        "from typing import TYPE_CHECKING\nfrom . import a\nfrom .b import c\nfrom .. import d\n"
        "if TYPE_CHECKING:\n    import never\nelse:\n    import other\n"
        "try:\n    import e\nexcept ImportError:\n    import f\n"
        "def late():\n    while True:\n        import g.h\n"
    )
    found = source.imports_of(file, "outer.inner")
    assert {"outer.inner.a", "outer.inner.b", "outer.d", "other", "e", "f", "g", "g.h"} <= set(found)
    assert "never" not in found


def test_layout_is_no_code(tmp_path):
    texts = {
        "plain": "x = [1, 2]\n\n\ndef f(a):\n    return a + 1\n",
        "spread": "# why\nx = [\n    1,\n    2,\n]\ndef f(a):\n    '''Adds.'''\n    return (a + 1)\n",
        "other": "x = [1, 2]\n\n\ndef f(a):\n    return a + 2\n",
        "text": "x = [1, '2']\n\n\ndef f(a):\n    return a + 1\n",
    }
    hashes = {}
    for name, text in texts.items():
        (tmp_path / f"{name}.py").write_text(text)
        hashes[name] = source.code_hash(tmp_path / f"{name}.py")
    assert hashes["plain"] == hashes["spread"]
    assert len(set(hashes.values())) == 3
