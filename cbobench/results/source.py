"""Hashes the code that a cell's result depends on, files that its pair and the round loop import,
and decides by it whether a result is stale.

These are the files of the two classes, of their bases and of the round loop, and all that they
import, directly or not, wherever in a file. Imports for type checkers alone do not count, and
cbobench/__init__.py does not: a public name counts as the module where it lies. Of a file the code
counts, without comments, docstrings and layout, in the same way for every version of Python.

Installed packages count by their names, and NumPy and SciPy by their versions (`libraries`).
Imports by a computed name are not seen, but for what a user's file looks up in a registry.

Nothing is imported because a run folder names it. A user's module is only examined if this process
has imported it for another reason (the suite that it plays, a notebook's import), or was asked to
(`import_named`).
"""

from __future__ import annotations

import ast
import hashlib
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.util import find_spec, resolve_name
from pathlib import Path
from pkgutil import iter_modules
from typing import Any, NamedTuple

from cbobench.algorithms import ALGORITHMS
from cbobench.errors import CbobenchError, Misuse
from cbobench.problems import PROBLEMS
from cbobench.registry import Registry, import_object
from cbobench.results.provenance import installed_version
from cbobench.suite.cells import Pair
from cbobench.surface import HOMES

PACKAGE = __name__.split(".")[0]
LOOP = {f"{PACKAGE}.{module}" for module in ("play.block", "play.isolation", "threads")}
"""Where a cell's play begins, and what records it."""
SURFACE = {
    f"{PACKAGE}.{name}": home
    for name, home in HOMES.items()
    if home.split(".")[1] not in ("report", "results", "sweep")
}
"""By public name, the module of what users' classes derive or call; what runs and reads plays
nothing.
"""
REGISTRIES = {
    f"{PACKAGE}.algorithms.ALGORITHMS": ALGORITHMS,
    f"{PACKAGE}.problems.PROBLEMS": PROBLEMS,
}
SITES = {"site-packages", "dist-packages"}
# of the standard library and installed packages
ROOTS = [sysconfig.get_path(kind) for kind in ("stdlib", "platstdlib", "purelib", "platlib")]


class Module(NamedTuple):
    """A module whose code counts.

    Attributes:
        path: of its file.
        digest: hash of its code.
        imported: names of what it may import; some of them are no modules.
    """

    path: Path
    digest: str
    imported: frozenset[str]


@cache
def source_hash(problem: str, algorithm: str | None = None) -> str:
    """Return the hash of the code behind a pair's cells, as it is on disk.

    Args:
        problem: registered name or import path.
        algorithm: the same; None: the code behind the problem alone, without the round loop.

    Raises:
        Misuse: no such class.
    """
    modules = _find_modules(problem, algorithm)
    return _hash(f"{name} {module.digest}" for name, module in modules.items())[:16]


def module_hashes(problem: str, algorithm: str) -> dict[str, str]:
    """Return by module the hash of its code, to say where two processes differ."""
    modules = _find_modules(problem, algorithm)
    return {name: module.digest for name, module in modules.items()}


def closure(problem: str, algorithm: str) -> dict[str, Path]:
    """Return the files, by module name, that playing a pair imports."""
    return {name: module.path for name, module in _find_modules(problem, algorithm).items()}


def refuse_edits(problem: str, algorithm: str) -> None:
    """Raise `Misuse` if code of a pair has changed on disk since this process loaded it.

    Otherwise, results of the old code would carry the hash of the new code.
    """
    for name, module in _find_modules(problem, algorithm).items():
        # what is not imported yet will be loaded as it is now
        if name not in sys.modules:
            continue
        if _first_seen.setdefault(module.path, module.digest) != module.digest:
            raise Misuse(
                f"{module.path} has changed since this process imported {name}; start Python again "
                "to play it"
            )


_first_seen: dict[Path, str] = {}


def look_again() -> None:
    """Read changed files again, in a process that outlives an edit (a notebook)."""
    for cached in (source_hash, _reach, _load_module, _is_installed, find_code):
        cached.cache_clear()


def code_hash(path: Path) -> str:
    """Return the hash of all code in a file."""
    return _parse(path.read_bytes(), "")[0]


def libraries(algorithm: str | None = None) -> str:
    """Return the versions of libraries that may round a result differently; stored beside the
    source hash.

    Args:
        algorithm: registered name or import path of one that may need libraries of its own.
    """
    names = ["numpy", "scipy"]
    if algorithm is not None:
        names += ALGORITHMS.get(algorithm).libraries
    return versions(tuple(dict.fromkeys(names)))


def import_libraries(algorithm: str) -> None:
    """Import what an algorithm of another library needs, which it does itself in its first
    rounds.
    """
    for name in ALGORITHMS.get(algorithm).libraries:
        import_module(name)


def versions(names: tuple[str, ...]) -> str:
    """Return the installed versions, as in `numpy 2.0.0, scipy 1.14.0`."""
    return ", ".join(f"{name} {installed_version(name) or 'none'}" for name in names)


@cache
def other_versions(recorded: str) -> bool:
    """Return whether the result of `libraries`, made here or elsewhere, differs from the installed
    versions.
    """
    # A stranger's text may name any number of libraries: the first other one ends the search.
    return any(entry != versions((entry.partition(" ")[0],)) for entry in recorded.split(", "))


def _find_modules(problem: str, algorithm: str | None) -> dict[str, Module]:
    """Return the modules whose code counts for a pair, or for a problem alone, sorted by name."""
    starts = _name_modules(PROBLEMS, problem)
    if algorithm is not None:
        starts |= LOOP | _name_modules(ALGORITHMS, algorithm)
    modules: dict[str, Module] = {}
    for start in starts:
        modules |= _reach(start)
    # Sorted, as the hash must not depend on which was found first.
    return dict(sorted(modules.items()))


def _name_modules(registry: Registry, name: str) -> set[str]:
    """Return the names of the modules of a class and its bases, and of its import path."""
    modules = {base.__module__ for base in registry.get(name).__mro__}
    if ":" in name:
        modules.add(name.partition(":")[0])
    return modules


@cache
def _reach(start: str) -> dict[str, Module]:
    """Return by name a module, the packages that hold it, and all that these import, directly or
    not, as far as their code counts.
    """
    reached: dict[str, Module] = {}
    waiting = [start]
    # Modules import each other in circles: each is followed once.
    while waiting:
        for name in _with_parents(waiting.pop()):
            if name in reached or not _counts(name, start):
                continue
            if (module := _load_module(name)) is not None:
                reached[name] = module
                waiting += module.imported
    return reached


def _with_parents(name: str) -> list[str]:
    """Return a, a.b and a.b.c for a.b.c, because importing a module imports its packages."""
    parts = name.split(".")
    return [".".join(parts[:i]) for i in range(1, len(parts) + 1)]


def _counts(name: str, start: str) -> bool:
    """Return whether the code of a module counts where that of another one does: ours and the
    user's, and of an installed package where a class of it is played.
    """
    top = name.partition(".")[0]
    if top == PACKAGE:
        return name != PACKAGE
    is_played = top == start.partition(".")[0] and top not in sys.stdlib_module_names
    return is_played or not _is_installed(top)


@cache
def _load_module(name: str) -> Module | None:
    """Return a module as it is on disk; None if there is no file of Python with that name."""
    path = find_code(name)[0]
    if path is None:
        return None
    is_package = path.name == "__init__.py"
    package = name if is_package else name.rpartition(".")[0]
    digest, imported = _parse(path.read_bytes(), package)
    # A user's file may import public names, and look up classes in a registry.
    if name.partition(".")[0] != PACKAGE:
        imported = frozenset(module for word in imported for module in _expand_import(word))
    return Module(path, digest, imported)


def _expand_import(name: str) -> list[str]:
    """Return what a full name in an import of a user's file may load.

    A public name loads the module where it lies, a star all modules of a package. Whoever imports a
    registry may look up any class in it, and whoever imports cbobench as a whole any public name.
    """
    if name in (PACKAGE, f"{PACKAGE}.*"):
        return [module for public in SURFACE for module in _expand_import(public)]
    if name in SURFACE:
        name = f"{SURFACE[name]}.{name.rpartition('.')[2]}"
    if name in REGISTRIES:
        return [
            module for package in REGISTRIES[name].packages for module in _list_modules(package)
        ]
    if name.endswith(".*"):
        return _list_modules(name.removesuffix(".*"))
    return [name]


def _list_modules(package: str) -> list[str]:
    """Return the names of a package, of the modules in it, and of those in its packages."""
    names = [package]
    for module in iter_modules(map(str, find_code(package)[1]), f"{package}."):
        names += _list_modules(module.name) if module.ispkg else [module.name]
    return names


@cache
def find_code(name: str) -> tuple[Path | None, tuple[Path, ...]]:
    """Return the file of a module and the folders of its submodules; none for built-in or zipped
    ones. Nothing is imported.
    """
    package, _, last = name.rpartition(".")
    if not package:
        return _find_top(name)
    folders = find_code(package)[1]
    # Of a package and a module with one name Python takes the package.
    places = [
        place
        for folder in folders
        for place in (folder / last / "__init__.py", folder / f"{last}.py")
    ]
    files = [place for place in places if place.is_file()]
    inner = [folder / last for folder in folders if (folder / last).is_dir()]
    file = files[0] if files else None
    return file, tuple(inner)


def _find_top(name: str) -> tuple[Path | None, tuple[Path, ...]]:
    """Return the same of a top-level module."""
    try:
        module = sys.modules.get(name)
        spec: ModuleSpec | None = find_spec(name) if module is None else module.__spec__
    except (ImportError, ValueError, AttributeError):
        spec = None
    if spec is None:
        return None, ()
    folders = tuple(Path(place) for place in spec.submodule_search_locations or ())
    # The origin of a compiled, built-in or zipped module is no file of Python.
    origin = spec.origin or ""
    if origin.endswith(".py") and Path(origin).is_file():
        return Path(origin), folders
    return None, folders


@cache
def _is_installed(top: str) -> bool:
    """Return whether a top-level module belongs to the standard library or to installed
    packages.
    """
    file, folders = find_code(top)
    places = list(folders)
    if file is not None:
        places.append(file)
    return any(
        bool({*place.parts} & SITES) or any(place.is_relative_to(root) for root in ROOTS)
        for place in places
    )


@cache
def _parse(text: bytes, package: str) -> tuple[str, frozenset[str]]:
    """Return the hash of the code of a text, and the full names in its imports, each of a module or
    of what lies in one. A text is parsed once: no clock is asked whether its file has changed.

    Args:
        package: from which its relative imports start.
    """
    try:
        lines, statements = _describe(ast.parse(text))
        imported = {name for statement in statements for name in _full_names(statement, package)}
    # Python cannot parse or import it: only its bytes can be compared.
    except (SyntaxError, ValueError, RecursionError, MemoryError, ImportError):
        return hashlib.sha256(text).hexdigest(), frozenset()
    return _hash(lines), frozenset(imported)


def _describe(tree: ast.Module) -> tuple[list[str], list[ast.Import | ast.ImportFrom]]:
    """Return a syntax tree as lines that are the same in every version of Python, and its imports.

    Fields without content are left out, as later versions have more of them.
    """
    lines: list[str] = []
    statements: list[ast.Import | ast.ImportFrom] = []
    waiting: list[Any] = [tree]
    while waiting:
        part = waiting.pop()
        if isinstance(part, list):
            parts = [*_select_run(part)]
            # with its length, so that lists that are nested otherwise give other lines
            lines.append(str(len(parts)))
            waiting += parts
        elif isinstance(part, ast.AST):
            values = {name: getattr(part, name, None) for name in part._fields}
            filled = {name: value for name, value in values.items() if value not in (None, [])}
            lines.append(f"{type(part).__name__} {' '.join(filled)}")
            waiting += filled.values()
            if isinstance(part, ast.Import | ast.ImportFrom):
                statements.append(part)
        else:
            lines.append(repr(part))
    return lines, statements


def _select_run(items: Iterable[Any]) -> Iterator[Any]:
    """Yield the parts of a list that Python runs: without docstrings, and without what is for type
    checkers.
    """
    for item in items:
        if isinstance(item, ast.If) and _is_for_checkers(item.test):
            yield from _select_run(item.orelse)
        elif not _is_text(item):
            yield item


def _is_text(node: Any) -> bool:
    """Return whether a statement is a docstring, or a string below an attribute."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _is_for_checkers(test: ast.expr) -> bool:
    """Return whether a condition is `TYPE_CHECKING` or `typing.TYPE_CHECKING`."""
    return "TYPE_CHECKING" in (getattr(test, "id", ""), getattr(test, "attr", ""))


def _full_names(node: ast.Import | ast.ImportFrom, package: str) -> Iterator[str]:
    """Yield the full names of what a statement imports.

    Raises:
        ImportError: a relative import leads out of all packages.
    """
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
        return
    base = resolve_name("." * node.level + (node.module or ""), package)
    yield from (f"{base}.{alias.name}" for alias in node.names)


def _hash(lines: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode("utf-8", "surrogatepass")).hexdigest()


class Origin(NamedTuple):
    """Code, libraries, CPU and arithmetic that played a cell; files of older versions lack the last
    two.
    """

    source: str
    libraries: str
    cpu: str | None
    arithmetic: str | None


def _is_examinable(path: str) -> bool:
    """Return whether a class can be examined without importing the user's code; our own modules are
    none of it.
    """
    module = path.partition(":")[0]
    return module in sys.modules or module.split(".")[0] == __name__.split(".")[0]


def find_imports(pair: Pair) -> list[str]:
    """Return the names of a pair that are import paths."""
    return [name for name in (pair.problem.name, pair.algorithm.name) if ":" in name]


def registered_names() -> set[str]:
    """Return the names of all problems and algorithms of this cbobench."""
    return {*PROBLEMS.names(), *ALGORITHMS.names()}


def import_named(pairs: Iterable[Pair]) -> None:
    """Import the modules that pairs name, as far as possible (`--imports` of the reading
    commands).
    """
    for path in sorted({path for pair in pairs for path in find_imports(pair)}):
        with suppress(CbobenchError):
            if not _is_examinable(path):
                import_object(path, beside=[Path()])


class Freshness:
    """Compares published cells with the present code; examines the code of a pair once.

    Args:
        of_bundle: whether they are of a bundle, of which nothing is said: whether other code plays
            the same, only a replay can tell.
    """

    def __init__(self, of_bundle: bool = False) -> None:
        look_again()
        self.of_bundle = of_bundle
        self._current: dict[tuple[str, str], str | None] = {}

    def current(self, pair: Pair) -> str | None:
        """Return the hash of the code that would play a pair now; None for a user's module that is
        not imported.
        """
        names = pair.problem.name, pair.algorithm.name
        if names not in self._current:
            try:
                known = all(map(_is_examinable, find_imports(pair)))
                self._current[names] = source_hash(*names) if known else None
            except CbobenchError:
                self._current[names] = None
        return self._current[names]

    def stale(self, pair: Pair, origin: Origin) -> bool:
        """Return whether the code that played a cell has changed since."""
        if self.of_bundle:
            return False
        current_hash = self.current(pair)
        return current_hash is not None and origin.source != current_hash

    def unknown(self, pair: Pair) -> bool:
        """Return whether the code that would play a pair cannot be examined."""
        return not self.of_bundle and self.current(pair) is None

    def other_libraries(self, origin: Origin) -> bool:
        """Return whether other libraries played a cell: its bits may differ, but it is not
        stale.
        """
        return other_versions(origin.libraries)
