"""Which edits make cells stale: over a copy of the package, over what plays really run, and in a
user's own modules.
"""

from __future__ import annotations

import ast
import errno
import gc
import importlib
import json
import os
import shutil
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
from cbobench.problems.simulator import Simulator
from cbobench.results import definitions, source, staleness, store

PACKAGE = Path(cbobench.__file__).parent

PLANTED = '''
"""In a copy of the package: edits that change the hashes of other pairs than they should."""
import ast, json, sys
from pathlib import Path
import cbobench
from cbobench.results import definitions, source

package, step = Path(cbobench.__file__).parent, int(sys.argv[2])
assert package.parent == Path(sys.argv[1]), package
PAIRS = [("rkhs-1d", "ckb-ucb"), ("feasible-pocket-drift", "config"), ("welded-beam", "admmbo")]
texts = {file: file.read_text() for file in package.rglob("*.py")}

def hashes():
    source.look_again()
    return {pair: source.source_hash(*pair) for pair in PAIRS}

def after(edits):
    """Pairs whose cells are stale after some files are written, which are put back."""
    for file, text in edits.items():
        file.write_text(text)
    now = hashes()
    for file in edits:
        file.write_text(texts[file]) if file in texts else file.unlink()
    return [pair for pair in PAIRS if not source.is_same_code(before[pair], now[pair])]

before, wrong = hashes(), []
reached, modules = {}, {}
for pair in PAIRS:
    code, starts = source._starts(*pair)
    modules |= code.modules
    for key in {key for start in starts for key in code.reach(start)}:
        reached.setdefault(key, []).append(pair)
names = {module.path: [*module.statements] for module in modules.values()}
nodes = {
    (module.name, name): node
    for module in modules.values()
    for node in module.parse().body
    for name in definitions.bound_names(node)
}
assert len(reached) > 400
for (module, name), pairs in sorted(reached.items())[::step]:
    if name == source.WHOLE_MODULE:
        continue
    file, node = modules[module].path, nodes[module, name]
    lines = texts[file].splitlines(keepends=True)
    first, last = min(n.lineno for n in [node, *getattr(node, "decorator_list", [])]) - 1, node.end_lineno
    definition = lines[first:last]
    edited = [*definition]
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        edited.append(" " * node.body[-1].col_offset + "_planted = 1\\n")
    else:
        edited[-1] = edited[-1].partition("  #")[0].rstrip("\\n") + " or 1\\n"
    if after({file: "".join([*lines[:first], *edited, *lines[last:]])}) != pairs:
        wrong.append(["not seen", module, name])
    together = isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple)
    if (module, source.WHOLE_MODULE) in reached or together:
        continue
    statements = [n for n in modules[module].parse().body if isinstance(n, (ast.Import, ast.ImportFrom))]
    imports = "".join(ast.unparse(n) + "\\n" for n in statements)
    imports += f"from {module} import {', '.join([n for n in names[file] if n != name] or ['nothing'])}\\n"
    moved = {
        file: "".join([*lines[:first], f"from {module}_moved import {name}\\n", *lines[last:]]),
        file.with_name(file.stem + "_moved.py"): imports.replace("from __future__ import annotations\\n", "")
        + "".join(definition),
    }
    if file.name != "__init__.py" and (stale := after(moved)):
        wrong.append(["a move", module, name])

more = {}
for module in modules.values():
    lines = texts[module.path].splitlines(keepends=True)
    for node in ast.walk(module.parse()):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node):
            line = node.body[0].end_lineno - 1
            lines[line] = lines[line].rstrip()[:-3] + " More words." + chr(34) * 3 + "\\n"
    unrelated = "\\n\\nUNRELATED = 1\\n\\n\\ndef _unrelated(x: int) -> int:\\n    return x\\n"
    whole = (module.name, source.WHOLE_MODULE) in reached
    more[module.path] = "# a comment\\n" + "".join(lines) + ("" if whole else unrelated)
added = "\\n\\n@ALGORITHMS.register('unrelated')\\nclass Unrelated(Optimistic):\\n    x: int = param(1, '')\\n"
more[package / "algorithms" / "optimistic.py"] += added
table, metric = package / "metrics.py", "    Metric('new', 'N', 'New', total(lambda r: r.f)),\\n"
assert "\\n)\\nMETRICS" in more[table]
more[table] = more[table].replace("\\n)\\nMETRICS", f"\\n{metric})\\nMETRICS")
if after(more):
    wrong.append("words, definitions that nothing names, an unrelated method, or a metric that is added")
for old, new in (("sums(rounds), 0.0", "sums(rounds), 1.0"), ("steps = step(rounds)", "steps = 2 * step(rounds)")):
    assert old in texts[table]
    if after({table: texts[table].replace(old, new)}) != PAIRS:
        wrong.append("a metric that is changed")
assert hashes() == before
print(json.dumps(wrong))
'''  # noqa: E501


@pytest.mark.slow
@pytest.mark.parametrize("step", [190, pytest.param(4, marks=pytest.mark.long)])
def test_edits_of_reached_definitions_are_seen_and_no_others(tmp_path, step):
    shutil.copytree(PACKAGE, tmp_path / "cbobench", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "planted.py").write_text(PLANTED)
    done = subprocess.run(
        [sys.executable, "planted.py", tmp_path, str(step)], cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == []


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
    """Against the interpreter: every function of cbobench that is called lies in a definition that
    the hash covers.
    """
    code, starts = source._starts(problem, algorithm)
    reached = {key for start in starts for key in code.reach(start)}
    covered = {(str(code.modules[module].path), name) for module, name in reached}
    ran = set()

    def look(frame, event, _):
        file = frame.f_code.co_filename
        if event == "call" and file.startswith(str(PACKAGE)):
            ran.add((file, frame.f_code.co_qualname.split(".")[0]))

    built = params.build(PROBLEMS.get(problem), settings)
    built.prepare(None)
    sys.setprofile(look)
    try:
        play = Play(built, "p", params.build(ALGORITHMS.get(algorithm), {}), "a", [0], 12)
        list(play)
    finally:
        sys.setprofile(None)
    table = str(PACKAGE / "metrics.py")
    covered_whole = {file for file, name in covered if name == source.WHOLE_MODULE} | {table}
    anonymous = ("<lambda>", "<listcomp>", "<genexpr>", "<dictcomp>", "<setcomp>", "<module>")
    assert {
        (f, n) for f, n in ran - covered if f not in covered_whole and n not in anonymous
    } == set()
    assert len(ran) > 50
    assert not [
        m
        for m in source.closure(problem, algorithm)
        if m.startswith(("cbobench.report", "cbobench.sweep"))
    ]


PLAIN = "from cbobench.problems.rkhs import RKHS1D\n\n\nclass Mine(RKHS1D):\n    FACTOR = {}\n"
LAZY = (
    "def __getattr__(name):\n    import importlib\n    return "
    "getattr(importlib.import_module('lib.base'), name)\n"
)
USES = "from helper import {0}\n" + PLAIN.format("{0}{1}")
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
    "a class changed by the value of a name": (
        {
            "mine.py": PLAIN.format(0)
            + "\n\ndef change():\n    Mine.FACTOR = 1\n\n\nDONE = change()\n"
        },
        "mine.py",
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
        {"mine.py": USES.format("K", ""), "helper.py": f"K = 1{' + 0' * 1200}\n"},
        "helper.py",
    ),
    "a default": (
        {"mine.py": USES.format("f", "()"), "helper.py": "def f(x=1):\n    return x\n"},
        "helper.py",
    ),
    "a decorator's argument": (
        {
            "mine.py": USES.format("f", "()"),
            "helper.py": "@(lambda f: lambda: 1)\ndef f():\n    pass\n",
        },
        "helper.py",
    ),
    "a registry filled by decorators": (
        {
            "mine.py": USES.format("KINDS", "['a']()"),
            "helper.py": "KINDS = {}\n\n\ndef kind(cls):\n"
            "    KINDS[cls.__name__] = cls\n    return cls\n\n\n@kind\nclass a:\n    x = 1\n",
        },
        "helper.py",
    ),
    "a registry filled by subclasses": (
        {
            "mine.py": USES.format("Base", ".__subclasses__()[0].x"),
            "helper.py": "class Base:\n    pass\n\n\nclass Other(Base):\n    x = 1\n",
        },
        "helper.py",
    ),
    "a name that is computed": (
        {
            "mine.py": "import helper\n" + PLAIN.format("getattr(helper, 'K' + '')"),
            "helper.py": "K = 1\n",
        },
        "helper.py",
    ),
    "a name bound twice": (
        {"mine.py": USES.format("K", ""), "helper.py": "K = 0\nK = 1\n"},
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
    "the annotation of a parameter": (
        {"mine.py": "from typing import Literal\n" + PLAIN.format("{}\n    x: Literal['1'] = '1'")},
        "mine.py",
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
    text = files[edited]
    (folder / edited).write_text(text.replace("1", "2") if "1" in text else text + "\nX = 1\n")
    source.look_again()
    assert source.source_hash(name, "random") != first


def test_another_definition_of_the_same_name_makes_stale(project):
    """Although both are reached before and after."""
    files = {
        "a.py": "def f():\n    return 1\n",
        "b.py": "import a\n\n\ndef f():\n    return a.f() + 1\n",
    }
    text = "import a, b\nfrom b import f\n" + PLAIN.format("(f(), a.f(), b.f())")
    folder = project({**files, "mine.py": text})
    first = source.source_hash("mine:Mine", "random")
    (folder / "mine.py").write_text(text.replace("from b", "from a"))
    source.look_again()
    assert source.source_hash("mine:Mine", "random") != first


def test_a_lookup_in_a_registry_counts_every_class(project):
    text = PLAIN.format("PROBLEMS.get('rkhs' + '-1d')").replace(
        "\n", "\nfrom cbobench.problems import PROBLEMS\n", 1
    )
    project({"mine.py": text})
    code, starts = source._starts("mine:Mine", "random")
    assert ("cbobench.problems.literature", source.WHOLE_MODULE) in {
        key for start in starts for key in code.reach(start)
    }


def test_what_changes_no_result_makes_nothing_stale(project):
    plain = "def f(a):\n    return a + 1\n\n\n" + PLAIN.format("f(1)")
    folder = project({"mine.py": plain})
    first = source.source_hash("mine:Mine", "random")
    for text in (
        plain.replace("def f(a):", "def f(a: int) -> 'Mine':\n    '''Adds.'''").replace(
            "a + 1", "(\n        a + 1)"
        ),
        "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    import never\n\n" + plain,
        plain
        + (
            "\n\nclass Unrelated(RKHS1D):\n    pass\n\n\nif __name__ == '__main__':\n    "
            "print(f(1))\n"
        ),
    ):
        (folder / "mine.py").write_text(text)
        source.look_again()
        assert source.source_hash("mine:Mine", "random") == first
    (folder / "mine.py").write_text(plain.replace("a + 1", "a + 2"))
    source.look_again()
    assert source.source_hash("mine:Mine", "random") != first, "negative control"


def test_a_reading_that_was_interrupted_leaves_no_module_out(monkeypatch):
    """As where Ctrl-C comes in a notebook: the next hash is the whole one, not that of the modules
    read so far.
    """
    complete_hash, parse, reads = source.source_hash("rkhs-1d", "random"), source.parse, []
    source.look_again()

    def interrupted(path, name):
        reads.append(name)
        if name == "cbobench.gp.kernels":
            raise KeyboardInterrupt
        return parse(path, name)

    with monkeypatch.context() as patch:
        patch.setattr(source, "parse", interrupted)
        with pytest.raises(KeyboardInterrupt):
            source.source_hash("rkhs-1d", "random")
    assert reads[-1] == "cbobench.gp.kernels"
    assert source.source_hash("rkhs-1d", "random") == complete_hash


def test_files_are_parsed_once_and_their_trees_go(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    parsed, parse = [], definitions.Module.parse
    monkeypatch.setattr(
        definitions.Module, "parse", lambda module: parsed.append(module.name) or parse(module)
    )
    definitions._parse_text.cache_clear()
    for problem in ("rkhs-1d", "stocks", "speed-reducer"):
        for algorithm in ("ckb-ucb", "stageopt", "scbo"):
            source.look_again()
            source.source_hash(problem, algorithm)
            source.refuse_edits(problem, algorithm)
    assert len({*parsed}) > 50
    assert len(parsed) - len({*parsed}) <= 2, (
        "but for the table of metrics, and a module that is named as a whole"
    )
    assert not [tree for tree in gc.get_objects() if isinstance(tree, ast.FunctionDef)]
    pair = "speed-reducer", "scbo"
    before = source.source_hash(*pair)
    for analysis, least, most in ((definitions.ANALYSIS, 0, 1), (b"another", 50, 200)):
        monkeypatch.setattr(definitions, "ANALYSIS", analysis)
        definitions._parse_text.cache_clear()
        parsed.clear()
        source.look_again()
        assert source.source_hash(*pair) == before
        assert least <= len({*parsed}) <= most, "what this analysis has left is taken over"


def test_a_text_is_read_where_neither_size_nor_time_tells(project, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    hashes = []
    for number in (1, 2, 1):
        project({"mine.py": PLAIN.format(number)})
        os.utime(tmp_path / "mine.py", (1, 1))
        hashes.append(source.source_hash("mine:Mine", "random"))
    assert hashes[0] == hashes[2] != hashes[1]


def test_a_module_in_a_zip_is_left_out(project, tmp_path, monkeypatch):
    with zipfile.ZipFile(tmp_path / "parts.zip", "w") as archive:
        archive.writestr("zipped.py", "K = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path / "parts.zip"))
    project({"mine.py": "from zipped import K\n" + PLAIN.format("K")})
    assert "zipped" not in source.closure("mine:Mine", "random")


def test_every_base_and_spelling_begins_a_closure(project):
    project({"face.py": "from mine import Mine\n", "mine.py": PLAIN.format(1)})
    assert {"face", "mine", "cbobench.problems.rkhs"} <= set(source.closure("face:Mine", "random"))


OF_SIMULATORS = {f"cbobench.problems.{name}" for name in ("pilot", "simulated", "simulator")}


@pytest.mark.parametrize(
    "problem", [name for name in PROBLEMS.names() if not issubclass(PROBLEMS.get(name), Simulator)]
)
def test_code_of_pilots_counts_for_simulators_alone(problem):
    """An edit of it makes no cell of another problem stale."""
    code, starts = source._starts(problem, "ckb-ucb")
    assert not {module for start in starts for module, _ in code.reach(start)} & OF_SIMULATORS
    assert not source.closure(problem, "ckb-ucb").keys() & OF_SIMULATORS


def test_code_of_pilots_counts_for_simulators(project):
    project(
        {
            "mine.py": (
                "from cbobench.problems.simulator import Simulator\n\n\nclass Mine(Simulator):\n "
                "   m = 1\n"
            )
        }
    )
    code, starts = source._starts("mine:Mine", "ckb-ucb")
    assert {module for start in starts for module, _ in code.reach(start)} >= OF_SIMULATORS


def test_more_metrics_are_no_other_code():
    assert source.is_same_code("0123-aaaaaabbbbbb", "0123-aaaaaabbbbbbcccccc")
    assert not source.is_same_code("0123-aaaaaabbbbbb", "0123-aaaaaacccccc")
    assert not source.is_same_code("0123-aaaaaa", "0124-aaaaaa")


SUITE = "suite: m\nhorizon: 3\nseeds: 2\nproblems: ['mine:Mine']\nalgorithms: [random]\n"


def test_an_edit_under_a_running_process_is_refused(project, write_suite, tmp_path):
    """Its results would be those of the code that is loaded, under the hash of the code on disk."""
    folder = project({"mine.py": PLAIN.format(1)})
    suite = write_suite(SUITE)
    cbobench.run(suite, out=tmp_path / "m", cpus=0)
    (folder / "mine.py").write_text("# a note\n" + PLAIN.format(1))
    assert cbobench.run(suite, out=tmp_path / "m", cpus=0, again=["stale"]).played == 0
    (folder / "mine.py").write_text(PLAIN.format(2))
    with pytest.raises(
        Misuse, match="mine.py has changed since this process imported mine; start Python again"
    ):
        cbobench.run(suite, out=tmp_path / "m", cpus=0, again=["stale"])


def test_a_class_of_the_script_that_runs_is_refused(tmp_path, write_suite):
    script = tmp_path / "script.py"
    script.write_text(
        PLAIN.format(1) + "\n\nif __name__ == '__main__':\n    import cbobench\n"
        f"    cbobench.run('{write_suite(SUITE.replace('mine:', '__main__:'))}', out='m', cpus=0)\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert "lies in the script that runs; put the class into a module of its own" in done.stderr


def test_our_own_modules_are_at_hand_by_their_import_paths():
    assert staleness._is_examinable("cbobench.problems.forest:Forest")
    assert not staleness._is_examinable("cbobench_of_others.forest:Forest")


def test_another_numpy_is_a_mark_of_its_own(small_suite, tmp_path, capsys, monkeypatch):
    """Not stale, and said so."""
    run = tmp_path / "run"
    monkeypatch.setattr("cbobench.sweep.blocks.libraries", lambda name: "numpy 1.0.0, scipy 1.0.0")
    cbobench.run(small_suite(horizon=5), out=run, cpus=0)
    main(["status", str(run)])
    output = capsys.readouterr().out
    assert "12 of 12 cells done, 0 failed, 0 missing, 0 stale" in output
    assert "12 cells played with other libraries than this machine's numpy" in output
    main(["status", str(run), "--format", "json"])
    assert json.loads(capsys.readouterr().out)["other_libraries"] == 12
    assert set(cbobench.load_cells(run)["libraries"]) == {"numpy 1.0.0, scipy 1.0.0"}


def test_a_file_of_code_on_a_disk_that_is_away_for_a_moment_is_read_again(tmp_path, monkeypatch):
    """Workers hash the code of a simulator while they play: that its disk is away is no fault of a
    cell.
    """
    path, failing = tmp_path / "mine.py", ["read_bytes"]
    path.write_text("A = 1\n")
    monkeypatch.setattr(store, "FIRST_PAUSE", 0.001)
    monkeypatch.setattr(Path, "read_bytes", fail_once(Path.read_bytes, "read_bytes", failing, path))
    assert [*definitions.parse(path, "mine").statements] == ["A"]
    assert failing == []


def fail_once(true_call, name, failing, place):
    def call(path, *args, **options):
        if path == place and name in failing:
            failing.remove(name)
            raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))
        return true_call(path, *args, **options)

    return call
