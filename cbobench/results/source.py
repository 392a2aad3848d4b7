"""Which code a cell's result depends on: a hash over the modules that the round loop and both classes import.

The closure is static and transitive: imports are read from the files, at the top of a module and within functions,
inside the package and inside a user's own modules. What is installed from elsewhere is not looked at; of that NumPy
and SciPy count by their versions (`libraries`). What is hashed is the code: comments, docstrings and the layout of
lines change nothing. Imports under `if TYPE_CHECKING:` are not followed, nor is the package's own `__init__`, which
plays nothing; what is imported by a name that is computed, or read with `exec`, is not seen.
"""

from __future__ import annotations

import ast
import hashlib
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path

from cbobench.algorithms import ALGORITHMS
from cbobench.errors import Misuse
from cbobench.problems import PROBLEMS
from cbobench.registry import Registry

PACKAGE = __name__.split(".")[0]
LOOP = tuple(f"{PACKAGE}.{name}" for name in ("play.play", "play.recorder", "play.rows", "play.block", "threads"))
"""The round loop, and what records it."""
SITES = {"site-packages", "dist-packages"}


@cache
def source_hash(problem: str, algorithm: str) -> str:
    """Hash of the code behind the cells of a pair, as it is on disk (see `look_again`).

    Args:
        problem, algorithm: registered names or import paths.

    Raises:
        Misuse: no such class.
    """
    modules = closure(problem, algorithm)
    digest = hashlib.sha256()
    for name in sorted(modules):
        digest.update(f"{name} {code_hash(modules[name])}\n".encode())
    return digest.hexdigest()[:16]


def closure(problem: str, algorithm: str) -> dict[str, Path]:
    """Files by module name that the cells of a pair depend on."""
    found: dict[str, Path] = {}
    for start in dict.fromkeys([*LOOP, *_origins(PROBLEMS, problem), *_origins(ALGORITHMS, algorithm)]):
        found |= _reachable(start)
    return found


def _origins(registry: Registry, name: str) -> list[str]:
    """Modules of a class and its bases, and the one that an import path names, which may have changed the class."""
    bases = [base.__module__ for base in registry.get(name).__mro__ if base.__module__ != "builtins"]
    return [*bases, *([name.partition(":")[0]] if ":" in name else [])]


def refuse_edits(problem: str, algorithm: str) -> None:
    """Raises `Misuse` where this process has loaded code of a pair that has changed on disk since it was first seen.

    The results of the old code would carry the hash of the new one.
    """
    for name, path in closure(problem, algorithm).items():
        if name in sys.modules and _first_seen.setdefault(path, code_hash(path)) != code_hash(path):
            raise Misuse(f"{path} has changed since this process imported {name}; start Python again to play it")


_first_seen: dict[Path, str] = {}


def libraries(algorithm: str | None = None) -> str:
    """The libraries whose versions may round a result differently; a mark of its own beside the source's.

    Args:
        algorithm: registered name or import path of one that may need libraries of its own.
    """
    return versions(("numpy", "scipy", *(ALGORITHMS.get(algorithm).libraries if algorithm else ())))


@cache
def versions(names: tuple[str, ...]) -> str:
    """The versions that are installed, as in `numpy 2.0.0, scipy 1.14.0`."""
    from importlib.metadata import PackageNotFoundError, version

    def installed(name: str) -> str:
        try:
            return version(name)
        except PackageNotFoundError:
            return "none"

    return ", ".join(f"{name} {installed(name)}" for name in names)


def other_versions(made: str) -> bool:
    """Whether what `libraries` said of some code, here or elsewhere, is not what is installed here."""
    return made != versions(tuple(word.split(" ")[0] for word in made.split(", ")))


@cache
def _reachable(start: str) -> dict[str, Path]:
    """Files of a module and of every module that it imports, directly or not."""
    found: dict[str, Path] = {}
    waiting = _with_parents(start)
    while waiting:
        name = waiting.pop()
        if name in found or name == PACKAGE:
            continue
        path = own_file(name, start.split(".")[0])
        if path is None:
            continue
        found[name] = path
        waiting += imports_of(path, name)
    return found


@cache
def own_file(name: str, family: str) -> Path | None:
    """The file of a module if its code is looked at: of the package, of a user's, or of the same installed family."""
    top, *rest = name.split(".")
    file, folders = top_level(top)
    own = top in (PACKAGE, family)
    if not own and any(_is_installed(place) for place in (*folders, *([file] if file else []))):
        return None
    for part in rest:
        tried = [(folder / part / "__init__.py", folder / f"{part}.py", folder / part) for folder in folders]
        file = next((path for paths in tried for path in paths[:2] if path.is_file()), None)
        folders = tuple(paths[2] for paths in tried if paths[2].is_dir())
    return file


@cache
def top_level(name: str) -> tuple[Path | None, tuple[Path, ...]]:
    """The file of a top-level module, and the folders of its submodules; neither for what is built in, or in a zip."""
    try:
        module = sys.modules.get(name)
        spec: ModuleSpec | None = find_spec(name) if module is None else module.__spec__
    except (ImportError, ValueError, AttributeError):
        spec = None
    if spec is None:
        return None, ()
    file = Path(spec.origin) if spec.origin is not None and spec.origin.endswith(".py") else None
    folders = tuple(Path(place) for place in spec.submodule_search_locations or ())
    return file if file is not None and file.is_file() else None, folders


def _is_installed(path: Path) -> bool:
    return any(path.is_relative_to(place) for place in _installed()) or bool({*path.parts} & SITES)


@cache
def _installed() -> tuple[Path, ...]:
    """Folders of the standard library and of installed packages."""
    return tuple(Path(sysconfig.get_path(kind)) for kind in ("stdlib", "platstdlib", "purelib", "platlib"))


def imports_of(path: Path, name: str) -> list[str]:
    """Modules that a file imports, and the packages that hold them; a name imported from a package may be a module."""
    named, whole = _named(_look(path)[1], name if path.name == "__init__.py" else name.rpartition(".")[0])
    every = [f"{base}.{module}" for base in whole for module in _submodules(base)]
    return list(dict.fromkeys([*named, *(part for one in every for part in _with_parents(one))]))


@cache
def _named(nodes: tuple[ast.Import | ast.ImportFrom, ...], package: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What imports in a module of a package name, with the packages that hold it; and of what they take everything."""
    found: list[str] = []
    whole: list[str] = []
    for node in nodes:
        if isinstance(node, ast.Import):
            named = [alias.name for alias in node.names]
        else:
            base = node.module or ""
            if node.level:
                parents = package.split(".")
                base = ".".join([*parents[: len(parents) - node.level + 1], *([base] if base else [])])
            named = [base, *(f"{base}.{alias.name}" for alias in node.names)]
            whole += [base] if node.names[0].name == "*" else []
        for one in named:
            found += _with_parents(one)
    return tuple(dict.fromkeys(found)), tuple(whole)


def _with_parents(name: str) -> list[str]:
    """a, a.b and a.b.c of a.b.c: to import a module is to import the packages that hold it."""
    parts = name.split(".")
    return [".".join(parts[:i]) for i in range(1, len(parts) + 1)]


def _submodules(name: str) -> list[str]:
    """What `from name import *` may import beside the package itself."""
    file = own_file(name, name.split(".")[0])
    found = file.parent.glob("*.py") if file is not None and file.name == "__init__.py" else ()
    return sorted(path.stem for path in found if path.stem != "__init__")


def _imports(nodes: Iterable[ast.AST]) -> Iterator[ast.Import | ast.ImportFrom]:
    for node in nodes:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        elif isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING"):
            yield from _imports(node.orelse)
        elif isinstance(node, ast.stmt | ast.ExceptHandler | ast.match_case):  # no expression holds an import
            yield from _imports(ast.iter_child_nodes(node))


def look_again() -> None:
    """Read files again that have changed on disk, in a process that outlives an edit (a notebook)."""
    for cached in (source_hash, _reachable, own_file, top_level, _look):
        cached.cache_clear()


def code_hash(path: Path) -> str:
    """Hash of the code in a file: of its syntax tree without docstrings."""
    return _look(path)[0]


@cache
def _look(path: Path) -> tuple[str, tuple[ast.Import | ast.ImportFrom, ...]]:
    stamp = path.stat()
    return _read(path, stamp.st_mtime_ns, stamp.st_size)


@cache
def _read(path: Path, changed: int, size: int) -> tuple[str, tuple[ast.Import | ast.ImportFrom, ...]]:
    """The code's hash, and what it imports; of a file that Python cannot parse the hash of its bytes, and nothing."""
    words: list[str] = []
    try:
        tree = ast.parse(path.read_bytes())
        _write(tree, words)
    except (SyntaxError, ValueError, RecursionError):
        return hashlib.sha256(path.read_bytes()).hexdigest(), ()
    return hashlib.sha256("\n".join(words).encode("utf-8", "surrogatepass")).hexdigest(), tuple(_imports(tree.body))


def _write(node: object, words: list[str]) -> None:
    """A syntax tree as words that do not depend on the version of Python: only fields that hold something."""
    if isinstance(node, ast.AST):
        words.append(type(node).__name__)
        documented = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        for name, value in ast.iter_fields(node):
            if value is None or value == [] or name in ("ctx", "kind", "type_comment"):
                continue
            words.append(name)
            _write(_undocumented(value) if documented and name == "body" else value, words)
        words.append(")")
    elif isinstance(node, list):
        for item in node:
            _write(item, words)
    else:
        words.append(f"{type(node).__name__} {node!r}")


def _undocumented(body: list[ast.stmt]) -> list[ast.stmt]:
    """Statements without those that are nothing but a string: docstrings, and texts below an attribute."""
    return [s for s in body if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))]
