"""Hashes the code that a cell's result depends on: the definitions that its pair and the round loop
reach.

A definition is a function, a class or an assignment at the top of a module. Its names are resolved
as Python would: in its module, through imports, in other modules. The hash covers the content of
definitions and the meaning of their names, not their place, so a definition may move to another
file. Comments, docstrings, layout and the annotations of plain functions do not count.

A module counts whole if its names do not tell what it does: it runs statements on import, binds a
name twice, imports a star, or looks names up itself (`definitions.DYNAMIC`). Every imported module
counts for what its import may do: modules that count whole, and assignments that call something.
Installed packages count by their names, and NumPy and SciPy by their versions (`libraries`).
Imports by a computed name are not seen.

Each metric has a hash of its own behind the pair's, so that an added metric is a missing column,
not another result.
"""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Iterable, Iterator
from functools import cache, cached_property
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path

from cbobench import HOMES
from cbobench.algorithms import ALGORITHMS
from cbobench.errors import Misuse
from cbobench.problems import PROBLEMS
from cbobench.results.definitions import (
    WHOLE_MODULE,
    Definition,
    Module,
    parse,
    sha256,
    with_parents,
)
from cbobench.results.provenance import installed_version

PACKAGE = __name__.split(".")[0]
LOOP = (
    ("play.block", "start"),
    ("play.block", "summaries"),
    ("play.isolation", "isolate_play"),
    ("threads", "single_thread"),
)
"""Where a cell's play begins, and what records it."""
METRICS = (f"{PACKAGE}.metrics", "_TABLE")
REGISTRIES = {
    (f"{PACKAGE}.algorithms", "ALGORITHMS"): ALGORITHMS,
    (f"{PACKAGE}.problems", "PROBLEMS"): PROBLEMS,
}
SURFACE = {
    f"{PACKAGE}.{name}": home
    for name, home in HOMES.items()
    if home.split(".")[1] not in ("report", "results", "sweep")
}
"""By public name, the module of what users' classes derive or call; what runs and reads plays
nothing.
"""
SITES = {"site-packages", "dist-packages"}
# of the standard library and installed packages
ROOTS = [sysconfig.get_path(kind) for kind in ("stdlib", "platstdlib", "purelib", "platlib")]
Key = tuple[str, str]
"""A definition: its module and its name."""


@cache
def source_hash(problem: str, algorithm: str) -> str:
    """Return the hash of the code behind a pair's cells, as it is on disk: the pair's, then the
    metrics'.

    Args:
        problem, algorithm: registered names or import paths.

    Raises:
        Misuse: no such class.
    """
    code, starts = _starts(problem, algorithm)
    return f"{code.hash_of(starts)[:16]}-{code.metrics}"


@cache
def problem_hash(problem: str) -> str:
    """Return the hash of the code behind a problem (registered name or import path), without
    methods and round loop.
    """
    code, starts = _starts(problem)
    return code.hash_of(starts)[:16]


def module_hashes(problem: str, algorithm: str) -> dict[str, str]:
    """Return, by module, the hash of what a pair's hash covers of it, to say where two processes
    differ.
    """
    code, starts = _starts(problem, algorithm)
    looks: dict[str, list[str]] = {}
    for module, name in {key for start in starts for key in code.reach(start)}:
        looks.setdefault(module, []).append(code._look((module, name))[0])
    return {module: sha256(sorted(lines)) for module, lines in looks.items()}


def is_same_code(recorded: str, current: str) -> bool:
    """Return whether a cell's hash matches today's code, which may have more metrics."""
    (pair, _, metrics), (current_pair, _, current_metrics) = (
        recorded.partition("-"),
        current.partition("-"),
    )
    todays_metrics = {current_metrics[i : i + 6] for i in range(0, len(current_metrics), 6)}
    return pair == current_pair and all(
        metrics[i : i + 6] in todays_metrics for i in range(0, len(metrics), 6)
    )


def closure(problem: str, algorithm: str) -> dict[str, Path]:
    """Return the files, by module name, that playing a pair imports."""
    code, starts = _starts(problem, algorithm)
    return {name: code.modules[name].path for module, _ in starts for name in code.imported(module)}


def refuse_edits(problem: str, algorithm: str) -> None:
    """Raise `Misuse` if code of a pair has changed on disk since this process loaded it.

    Otherwise, results of the old code would carry the hash of the new code.
    """
    code, starts = _starts(problem, algorithm)
    for module, name in sorted({key for start in starts for key in code.reach(start)}):
        path, digest = code.modules[module].path, code.definition((module, name)).digest
        if module in sys.modules and _first_seen.setdefault((path, name), digest) != digest:
            raise Misuse(
                f"{path} has changed since this process imported {module}; start Python again to "
                "play it"
            )


_first_seen: dict[tuple[Path, str], str] = {}


def look_again() -> None:
    """Read changed files again, in a process that outlives an edit (a notebook)."""
    for cached in (source_hash, problem_hash, _code, top_level):
        cached.cache_clear()


def code_hash(path: Path) -> str:
    """Return the hash of all code in a file."""
    return parse(path, path.stem).definition(WHOLE_MODULE).digest


def libraries(algorithm: str | None = None) -> str:
    """Return the versions of libraries that may round a result differently; stored beside the
    source hash.

    Args:
        algorithm: registered name or import path of one that may need libraries of its own.
    """
    names = ["numpy", "scipy"]
    if algorithm is not None:
        names += ALGORITHMS.get(algorithm).libraries
        names += filter(None, [ALGORITHMS.package(algorithm)])  # its compiled code has no hash
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


def _starts(problem: str, algorithm: str | None = None) -> tuple[Code, list[Key]]:
    """Return the code that counts for a pair, and its entry points: both classes, their bases,
    import paths, the round loop; or those of a problem alone.
    """
    starts = [(f"{PACKAGE}.{module}", name) for module, name in LOOP if algorithm is not None]
    for registry, name in ((PROBLEMS, problem), (ALGORITHMS, algorithm)):
        if name is None:
            continue
        starts += [
            (base.__module__, base.__qualname__.split(".")[0])
            for base in registry.get(name).__mro__
        ]
        module, _, attribute = registry.import_path(name).partition(":")
        starts += [(module, attribute)] if attribute else []
    tops = {module.split(".")[0] for module, _ in starts} - sys.stdlib_module_names - {PACKAGE}
    return _code(frozenset(top for top in tops if any(map(_is_installed, _places(top))))), list(
        dict.fromkeys(starts)
    )


class Code:
    """The modules whose code counts: cbobench's, the user's, and those of some installed packages.

    Args:
        families: names of those packages.
    """

    def __init__(self, families: frozenset[str]) -> None:
        self.families = families
        self.modules: dict[str, Module] = {}
        self.module = cache(self._module)
        self._look = cache(self._look_up)
        self.imported = cache(self._imported)
        self.reach = cache(self._reach)
        self.reach_on_import = cache(self._reach_on_import)

    def _module(self, name: str) -> Module | None:
        """Return a module whose code counts; None for other modules and other names."""
        path = self._file(name)
        if path is not None:
            self.modules[name] = parse(path, name)
        return self.modules.get(name)

    def _file(self, name: str) -> Path | None:
        top, *submodules = name.split(".")
        file, folders = top_level(top)
        if name == PACKAGE or (
            top not in (PACKAGE, *self.families) and any(map(_is_installed, _places(top)))
        ):
            return None
        for part in submodules:
            tried = [
                (folder / part / "__init__.py", folder / f"{part}.py", folder / part)
                for folder in folders
            ]
            file = next((path for paths in tried for path in paths[:2] if path.is_file()), None)
            folders = tuple(paths[2] for paths in tried if paths[2].is_dir())
        return file

    def _imported(self, start: str) -> frozenset[str]:
        """Return a module, its packages, and all modules that they import, directly or not."""
        reached: set[str] = set()
        waiting = with_parents(start)
        while waiting:
            name = waiting.pop()
            if name not in reached and (module := self.module(name)) is not None:
                reached.add(name)
                homes = [SURFACE[imported] for imported in module.imported if imported in SURFACE]
                waiting += [
                    *module.imported,
                    *(package for home in homes for package in with_parents(home)),
                    *(submodule for base in module.starred for submodule in self._starred(base)),
                ]
        return frozenset(reached)

    def _starred(self, name: str) -> list[str]:
        """Return what `from name import *` may import: the module and its submodules."""
        module = self.module(name)
        paths = (
            module.path.parent.glob("*.py")
            if module is not None and module.path.name == "__init__.py"
            else ()
        )
        names = [
            name,
            *(f"{name}.{path.stem}" for path in sorted(paths) if path.stem != "__init__"),
        ]
        return [name for name in names if self.module(name) is not None]

    def _run_on_import(self, name: str) -> Iterator[Key]:
        """Yield the definitions of a module that may have an effect without being named."""
        module = self.modules[name]
        if module.whole:
            yield name, WHOLE_MODULE
        for definition in module.calling:
            if (name, definition) != METRICS:
                yield name, definition
        for definition, statement in module.statements.items():
            decorators = self._keys(module, statement.decorators) - REGISTRIES.keys()
            bases = self._keys(module, statement.bases)
            if decorators or any(
                WHOLE_MODULE in base and not base[0].startswith(f"{PACKAGE}.") for base in bases
            ):
                yield name, definition

    def _keys(self, module: Module, names: Iterable[str]) -> set[Key]:
        """Return the definitions behind names."""
        return {
            key for name in names for key in self.meaning(module, name) if not isinstance(key, str)
        }

    def resolve(self, dotted: str, visited: frozenset[str] = frozenset()) -> set[Key | str]:
        """Return the meaning of a full dotted name: definitions whose code counts, or the name
        itself.
        """
        parts = dotted.split(".")
        if (home := SURFACE.get(".".join(parts[:2]))) is not None:
            parts = [*home.split("."), *parts[1:]]
        for cut in range(len(parts), 0, -1):
            module = self.module(".".join(parts[:cut]))
            if module is not None and cut == len(parts):
                return {(module.name, WHOLE_MODULE)}
            if module is not None:
                return self.meaning(module, ".".join(parts[cut:]), visited) or {
                    (module.name, WHOLE_MODULE)
                }
        return {dotted}

    def meaning(
        self, module: Module, name: str, visited: frozenset[str] = frozenset()
    ) -> set[Key | str]:
        """Return the meaning of a dotted name in a module; an empty set for local and built-in
        names.
        """
        first, dot, rest = name.partition(".")
        meanings: set[Key | str] = {(module.name, first)} if first in module.statements else set()
        # Visited targets are left out, because modules may import each other in a circle.
        for target in module.imports.get(first, set()) - visited:
            meanings |= self.resolve(f"{target}{dot}{rest}", visited | {target})
        return meanings

    def _reach(self, start: Key) -> frozenset[Key]:
        """Return the definitions behind a name, those that importing its module runs, and all that
        they reach.
        """
        named = self._follow(self._starting(start))
        return named.union(*(self.reach_on_import(name) for name in self.imported(start[0])))

    def _starting(self, start: Key) -> list[Key]:
        return [key for key in self.resolve(".".join(start)) if not isinstance(key, str)]

    def _reach_on_import(self, name: str) -> frozenset[Key]:
        return self._follow([*self._run_on_import(name)])

    def _follow(self, waiting: list[Key]) -> frozenset[Key]:
        reached: set[Key] = set()
        while waiting:
            key = waiting.pop()
            if key not in reached:
                reached.add(key)
                waiting += self._look(key)[1]
        return frozenset(reached)

    def hash_of(self, starts: Iterable[Key]) -> str:
        """Hash all that the entry points reach."""
        begun = [f"start {self._look(key)[0]}" for start in starts for key in self._starting(start)]
        return self._hash({key for start in starts for key in self.reach(start)}, begun)

    def _hash(self, keys: Iterable[Key], lines: Iterable[str] = ()) -> str:
        return sha256(sorted({*lines, *(self._look(key)[0] for key in keys)}))

    @cached_property
    def metrics(self) -> str:
        """Six digits for each metric of the table."""
        module = self.module(METRICS[0])
        assert module is not None
        descriptions = [
            self._describe(METRICS, module, entry) for entry in module.entries(METRICS[1])
        ]
        return "".join(
            sorted(self._hash(self._follow(named), [digest])[:6] for digest, named in descriptions)
        )

    def definition(self, key: Key) -> Definition:
        return self.modules[key[0]].definition(key[1])

    def _look_up(self, key: Key) -> tuple[str, list[Key]]:
        """Return the hash of a definition with the meaning of its names, and the definitions among
        that.
        """
        return self._describe(key, self.modules[key[0]], self.definition(key))

    def _describe(self, key: Key, module: Module, definition: Definition) -> tuple[str, list[Key]]:
        names, lines, named = {*definition.names}, set(), []
        if key[1] == WHOLE_MODULE:
            names |= module.imports.keys() - {name.partition(".")[0] for name in names}
            named += [
                (submodule, WHOLE_MODULE)
                for base in module.starred
                for submodule in self._starred(base)
            ]
        for name in names:
            for target in self.meaning(module, name):
                if isinstance(target, str):
                    lines.add(f"{name} {target}")
                elif target != METRICS:
                    lines.add(f"{name} {self.definition(target).digest}")
                    named += [target, *self._registered(key, name, target)]
                    named += (
                        [(target[0], WHOLE_MODULE)] if "__subclasses__" in name.split(".") else []
                    )
        return sha256([definition.digest, *sorted(lines)]), named

    def _registered(self, key: Key, name: str, target: Key) -> list[Key]:
        """Return all modules of a registry in which a user's code looks something up."""
        if (
            target not in REGISTRIES
            or name.split(".")[-1] == "register"
            or key[0].split(".")[0] == PACKAGE
        ):
            return []
        return [
            (module, WHOLE_MODULE)
            for package in REGISTRIES[target].packages
            for module in self._starred(package)
        ]


_code = cache(Code)


@cache
def top_level(name: str) -> tuple[Path | None, tuple[Path, ...]]:
    """Return the file of a top-level module and the folders of its submodules; none for built-in or
    zipped ones.
    """
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


def _places(top: str) -> list[Path]:
    file, folders = top_level(top)
    return [*folders, *([file] if file else [])]


@cache
def _is_installed(path: Path) -> bool:
    """Return whether a path belongs to the standard library or to installed packages."""
    return any(path.is_relative_to(root) for root in ROOTS) or bool({*path.parts} & SITES)
