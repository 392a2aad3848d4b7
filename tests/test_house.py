"""The house rules: imports go one way, rooms keep to their budgets, documents tell the truth."""

from __future__ import annotations

import ast
import functools
import graphlib
import re
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path

import pytest
import yaml

import cbobench
from cbobench import resources
from cbobench.problems.data import DATA_SETS
from tests.conftest import ROOT

PACKAGE = Path(cbobench.__file__).parent
FILES = sorted(
    p
    for p in PACKAGE.rglob("*.py")
    if p.relative_to(PACKAGE).parts[0] not in ("_suites", "_analysis")
)
LEAVES = {
    "errors",
    "registry",
    "rng",
    "params",
    "resources",
    "metrics",
    "threads",
    "words",
    "arithmetic",
    "processes",
    "options",
    "call",
    "watcher",
    "surface",
}
ALLOWED = {
    "errors": set(),
    "rng": set(),
    "metrics": set(),
    "threads": set(),
    "words": set(),
    "registry": {"errors"},
    "processes": set(),
    "watcher": set(),
    "surface": set(),
    "call": {"errors"},
    "options": {"errors"},
    "params": {"errors", "options"},
    "resources": {"errors"},
    "arithmetic": {"errors"},
    "stats": {"errors", "rng"},
    "gp": {"errors", "registry", "rng", "params", "threads"},
    "problems": {
        "gp",
        "errors",
        "registry",
        "rng",
        "params",
        "words",
        "threads",
        "watcher",
    },
    "algorithms": {"problems", "gp", "errors", "registry", "rng", "params"},
    "opponents": {"algorithms", "problems", "gp", "errors", "registry", "rng", "params"},
    "suite": {"algorithms", "problems", "gp", *LEAVES},
    "results": {"suite", "algorithms", "problems", *LEAVES},
    "play": {"results", "suite", "algorithms", "problems", "gp", *LEAVES},
    "sweep": {"play", "results", "suite", "problems", "gp", *LEAVES},
    "report": {"results", "suite", "stats", *LEAVES},
    "papers": {"report", "play", "results", "stats", "algorithms", "problems", "gp", *LEAVES},
    "page": {"report", "results", *LEAVES},
    "check": {"play", "algorithms", "problems", "gp", *LEAVES},
    "replay": {"play", "results", "suite", "algorithms", "problems", *LEAVES},
    "cli": {
        "check",
        "replay",
        "papers",
        "sweep",
        "suite",
        "results",
        "report",
        "page",
        "algorithms",
        "problems",
        "gp",
        *LEAVES,
    },
    "__main__": {"cli"},
    "": {
        "arithmetic",
        "surface",
        "sweep",
        "report",
        "results",
        "algorithms",
        "problems",
        "gp",
        "params",
        "errors",
    },
}


def name_of(path):
    base = PACKAGE.parent if PACKAGE in path.parents else ROOT
    return str(path.relative_to(base))


def room(path):
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return "" if parts == ("__init__",) else parts[0]


@functools.cache
def tree_of(path):
    return ast.parse(path.read_text())


@functools.cache
def nodes_of(path):
    return [*ast.walk(tree_of(path))]


def imported(path):
    return imported_by(nodes_of(path))


def imported_by(nodes):
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            pytest.fail(f"{ast.unparse(node)}: relative import")


def forbidden(path):
    """Imports of a file that its room may not have."""
    here = room(path)
    rooms = {p.name if p.is_dir() else p.stem for p in PACKAGE.iterdir()} - {
        "__init__",
        "__pycache__",
    }
    for name in imported(path):
        if name.split(".")[0] == "ray" and path.name not in ("ray_start.py", "ray_executor.py"):
            yield f"{name_of(path)} imports Ray"
        if not name.startswith("cbobench."):
            continue
        there = name.split(".")[1]
        if there in rooms and there != here and there not in ALLOWED[here]:
            yield f"{name_of(path)} imports {name}"


def test_imports_go_one_way():
    assert [line for path in FILES for line in forbidden(path)] == []


def imported_modules(path, modules):
    """Which of some modules a file imports; one imported from its package is not the package."""
    for node in nodes_of(path):
        for alias in node.names if isinstance(node, ast.Import | ast.ImportFrom) else ():
            base = getattr(node, "module", None)
            full = f"{base}.{alias.name}" if base else alias.name
            yield from [name for name in (full, base) if name in modules][:1]


def find_circle(files, root):
    """Modules that import each other in a circle, imports within functions and for types alone
    included.
    """
    modules = {
        ".".join(p.relative_to(root).with_suffix("").parts).removesuffix(".__init__"): p
        for p in files
    }
    graph = {name: {*imported_modules(path, modules)} - {name} for name, path in modules.items()}
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return error.args[1]
    return []


def test_no_files_import_each_other_in_a_circle():
    assert find_circle(FILES, PACKAGE.parent) == []


def test_a_circle_within_functions_and_of_types_is_found(tmp_path):
    (tmp_path / "a.py").write_text("def f():\n    from b import x\n")
    (tmp_path / "b.py").write_text("if TYPE_CHECKING:\n    import c\n")
    (tmp_path / "c.py").write_text("from a import f\n")
    assert {*find_circle(sorted(tmp_path.glob("*.py")), tmp_path)} == {"a", "b", "c"}


def test_recipes_import_only_cbobench():
    allowed = {"cbobench", "sys", "__future__", "collections", "itertools"}
    recipes = [*resources.recipes().values(), *resources.recipes("claims").values()]
    assert len(recipes) == 7
    assert [
        (p.name, n) for p in recipes for n in imported(p) if n.split(".")[0] not in allowed
    ] == []


def test_the_import_rule_can_fail(tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "PACKAGE", tmp_path)
    for folder in ("sweep", "report", "gp"):
        (tmp_path / folder).mkdir()
    wrong = tmp_path / "sweep" / "x.py"
    wrong.write_text("import ray\nfrom cbobench.report import load\nfrom cbobench.gp import box\n")
    other = tmp_path / "report" / "y.py"
    other.write_text("from cbobench.sweep.run import run\n")
    says = ["Ray", "cbobench.report", "cbobench.report.load"]
    assert [line.split(" imports ")[1] for line in forbidden(wrong)] == says
    assert [line.split(" imports ")[1] for line in forbidden(other)] == [
        "cbobench.sweep.run",
        "cbobench.sweep.run.run",
    ]


BUDGET = ROOT / "tests" / "budget.yaml"


def weigh(path):
    """Nodes of a file's syntax tree, without docstrings and contexts: what has to be read, however
    it is packed into lines and statements.
    """
    owners = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    nodes = [n for n in nodes_of(path) if not isinstance(n, ast.expr_context)]
    documented = [
        n for n in nodes if isinstance(n, owners) and ast.get_docstring(n, clean=False) is not None
    ]
    return len(nodes) - 2 * len(documented)


def weigh_rooms(paths, folder):
    """Nodes of every folder in `folder`, and of the files beside them, under `top`."""
    weights = Counter()
    for path in paths:
        parts = path.relative_to(folder).parts
        weights[parts[0] if len(parts) > 1 else "top"] += weigh(path)
    return weights


def overdrawn(weights, budget):
    return [
        f"{room}: {count} of {budget.get(room, 0)}"
        for room, count in weights.items()
        if count > budget.get(room, 0)
    ]


def weigh_outside():
    """Nodes of all tests, and of what lies in docs, benchmarks and analysis."""
    tests = sum(weigh(path) for path in (ROOT / "tests").rglob("*.py"))
    others = sum(
        weigh(path)
        for folder in ("website", "benchmarks", "analysis")
        for path in (ROOT / folder).rglob("*.py")
    )
    return {"tests": tests, "docs, benchmarks, analysis": others}


def test_rooms_keep_to_their_budgets(tmp_path):
    budget = yaml.safe_load(BUDGET.read_text())
    assert overdrawn(weigh_rooms(FILES, PACKAGE), budget["cbobench"]) == []
    assert overdrawn(weigh_outside(), budget["outside"]) == []
    (tmp_path / "gp").mkdir()
    (tmp_path / "gp" / "a.py").write_text(
        '"""One."""\nimport b\n\n\ndef c():\n    """Two."""\n    return b\n'
    )
    (tmp_path / "d.py").write_text("a, b = x, y\n")
    weights = weigh_rooms([*tmp_path.rglob("*.py")], tmp_path)
    assert weights == {"gp": 7, "top": 8}
    assert overdrawn(weights, {"gp": 6, "top": 8}) == ["gp: 7 of 6"]


FOR_REPAIRS = 1 / 40  # of the least that tests ever weighed; a repair brings a test that was red


def raised_totals(folder):
    """Commits of a checkout by which a total rises: of cbobench's rooms, or outside; that of tests
    above what repairs may cost, and each above what was granted for a purpose that is named.
    """

    def git(*arguments):
        return subprocess.run(
            ["git", "-c", "safe.directory=*", *arguments],
            cwd=folder,
            capture_output=True,
            text=True,
            check=True,
        ).stdout

    def totals_of(commit):
        budget = yaml.safe_load(git("show", f"{commit}:tests/budget.yaml"))
        # before the budget counted nodes, it counted statements, and had no such part
        if "outside" not in budget:
            return None
        totals = {"cbobench": sum(budget["cbobench"].values()), **budget["outside"]}
        granted = budget.get("granted", {})
        return {name: total - granted.get(name, 0) for name, total in totals.items()}

    commits = git("log", "--reverse", "--format=%H", "--", "tests/budget.yaml").split()
    allowed: dict[str, float] = {}
    for commit in commits:
        totals = totals_of(commit) or {}
        raised = [name for name, total in totals.items() if total > allowed.get(name, total)]
        if raised:
            yield f"{commit[:7]} raises {raised}"
        for name, total in totals.items():
            least = total * (1 + FOR_REPAIRS) if name == "tests" else total
            allowed[name] = min(allowed.get(name, least), least)


def test_no_total_rises(tmp_path):
    """What one room gains another one loses, in the same commit."""
    if (ROOT / ".git").exists():
        assert [*raised_totals(ROOT)] == []
    (tmp_path / "tests").mkdir()

    def commit(tests, granted=0, **rooms):
        content = {"cbobench": rooms, "outside": {"tests": tests}}
        content["granted"] = {"cbobench": granted}
        (tmp_path / "tests" / "budget.yaml").write_text(yaml.safe_dump(content))
        subprocess.run(["git", "add", "."], cwd=tmp_path, check=True)
        identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
        subprocess.run(["git", *identity, "commit", "-qm", "x"], cwd=tmp_path, check=True)

    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    commit(80, gp=3, page=2)
    commit(82, gp=4, page=1)
    assert [*raised_totals(tmp_path)] == []
    commit(82, granted=2, gp=5, page=2)
    assert [*raised_totals(tmp_path)] == []
    commit(83, gp=4, page=2)
    raised = [line.split(" raises ")[1] for line in raised_totals(tmp_path)]
    assert raised == ["['cbobench', 'tests']"]


ARGUMENT = re.compile(r"    (\w+(?:, \w+)*):(?: |$)")


def unknown_arguments(path):
    """Names below `Args:` of a docstring that its function or class does not take."""
    for node in nodes_of(path):
        if not isinstance(node, ast.FunctionDef | ast.ClassDef) or "Args:\n" not in (
            text := ast.get_docstring(node) or ""
        ):
            continue
        section = text.partition("Args:\n")[2].partition("\n\n")[0].splitlines()
        listed = [
            name
            for line in section
            if (match := ARGUMENT.match(line))
            for name in match[1].split(", ")
        ]
        parts = [node] if isinstance(node, ast.FunctionDef) else node.body
        taken = {part.target.id for part in parts if isinstance(part, ast.AnnAssign)}
        for function in [part for part in parts if isinstance(part, ast.FunctionDef)]:
            if function is node or function.name in ("__init__", "__new__"):
                taken |= {
                    argument.arg
                    for argument in ast.walk(function.args)
                    if isinstance(argument, ast.arg)
                }
        yield from (
            f"{path}:{node.lineno} {node.name} takes no {name}"
            for name in listed
            if name not in taken
        )


def test_docstrings_name_the_arguments_that_there_are(tmp_path):
    assert [line for path in FILES for line in unknown_arguments(path)] == []
    (wrong := tmp_path / "wrong.py").write_text(
        'def f(a, *b):\n    """Do.\n\n    Args:\n        a, c: x: y.\n        b: x\n            '
        'd: y\n    """\n\n'
        'class C:\n    """Do.\n\n    Args:\n        a: x.\n        e: x.\n\n    Attributes:\n    '
        '    g: x.\n    """\n'
        "    h: int\n\n    def __init__(self, a): ...\n"
    )
    assert [line.split(" ")[-1] for line in unknown_arguments(wrong)] == ["c", "e"]


# its deadlines, of minutes, end a wait; nothing else may look at a clock
WAITS = {"tests/processes.py"}


CLOCK = r"\b(?:time|monotonic|perf_counter|process_time|thread_time)(?:_ns)?\(\)"


def timed(path):
    """Assertions and comparisons of a test file in which a clock has a say, be it by way of a
    name.
    """
    functions = [node for node in nodes_of(path) if isinstance(node, ast.FunctionDef)]
    for function in functions:
        nodes, clock = [*ast.walk(function)], CLOCK
        assigned = [node for node in nodes if isinstance(node, ast.Assign)]
        for node in 3 * assigned:  # a name may come of a name
            if re.search(clock, ast.unparse(node.value)):
                names = [re.escape(ast.unparse(target)) for target in node.targets]
                clock = "|".join([clock, *(rf"\b{name}\b" for name in names)])
        for node in nodes:
            if isinstance(node, ast.Assert | ast.Compare) and re.search(clock, ast.unparse(node)):
                yield f"{name_of(path)}:{node.lineno}"


def test_no_test_depends_on_speed(tmp_path, monkeypatch):
    paths = [path for path in (ROOT / "tests").rglob("*.py") if name_of(path) not in WAITS]
    timed_paths = [path for path in paths if re.search(CLOCK, path.read_text())]
    assert [line for path in timed_paths for line in timed(path)] == []
    wrong = tmp_path / "wrong.py"
    wrong.write_text(
        "import time\nfrom time import process_time_ns\n\ndef test_a():\n    began = "
        "time.monotonic()\n    work()\n"
        "    took = time.monotonic() - began\n    assert took < 1\n\ndef test_b():\n"
        "    assert not process_time_ns()\n\n"
        "def test_c():\n    while time.time() < 3:\n        time.sleep(1)\n    began = 3\n    "
        "assert began < 4\n"
    )
    monkeypatch.setattr(sys.modules[__name__], "ROOT", tmp_path)
    assert {line.partition(":")[2] for line in timed(wrong)} == {"8", "11", "14"}


def test_the_version_is_one_number():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["version"] == cbobench.__version__
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == cbobench.__version__
    assert f"## {cbobench.__version__}" in (ROOT / "CHANGELOG.md").read_text()


def test_every_python_that_is_promised_is_tested():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    promised = [c.split(" :: ")[-1] for c in project["classifiers"] if re.search(r":: 3\.\d+$", c)]
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())["jobs"]
    assert jobs["all"]["strategy"]["matrix"]["python"] == promised
    assert project["requires-python"] == f">={promised[0]}"
    commands = [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]
    assert commands[0] == "bash .ci/run"
    assert "--constraint lowest.txt" in commands[1]


def test_users_see_types_and_names():
    assert (PACKAGE / "py.typed").is_file()
    assert {name for name in dir(cbobench) if not name.startswith("_")} == {*cbobench.__all__} - {
        "__version__"
    }
    assert {"__version__", "__doc__", "__file__"} <= {*dir(cbobench)}
    assert all(hasattr(cbobench, name) for name in dir(cbobench))
    code = "import cbobench, sys; dir(cbobench); print({'pandas', 'ray'} & set(sys.modules))"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout
        == "set()\n"
    )


def test_no_file_changes_what_numpy_does_with_errors():
    assert [name_of(path) for path in FILES if "np.seterr" in path.read_text()] == []


def unstable(path):
    """Lines of a file that sort indices where equal values come in an order that the instruction
    set decides.
    """
    for node in nodes_of(path):
        text = ast.unparse(node) if isinstance(node, ast.Call) else ""
        if re.match(r"[\w.]*arg(sort|partition)\(", text) and "stable" not in text:
            yield node.lineno


def test_no_order_depends_on_the_instruction_set(tmp_path):
    found = {name_of(path): [*unstable(path)] for path in FILES}
    assert {name: lines for name, lines in found.items() if lines} == {}
    wrong = "np.argsort(x)\nx.argsort()\nnp.argpartition(x, 3)\nnp.argsort(x, kind='stable')\n"
    (tmp_path / "wrong.py").write_text(wrong + "x.argsort(stable=True)\nnp.partition(x, 3)\n")
    assert sorted(unstable(tmp_path / "wrong.py")) == [1, 2, 3]


def test_no_data_without_a_licence():
    ours = [path for path in ROOT.iterdir() if path.name not in (".git", ".venv")]
    data_files = {data_set.file for data_set in DATA_SETS.values()}
    assert not {p.name for top in ours for p in (top, *top.rglob("*"))} & data_files
    assert data_files <= {*(ROOT / ".gitignore").read_text().splitlines()}
