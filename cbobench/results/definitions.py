"""The definitions of a Python file: a hash and the names of each, and the file's imports."""

from __future__ import annotations

import ast
import gc
import hashlib
import re
import sys
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from cbobench.results.store import retry
from cbobench.results.user_cache import keep_value, read_value

DYNAMIC = {
    *("__import__", "__init_subclass__", "__subclasses__", "import_module"),
    *("eval", "exec", "globals", "locals", "vars"),
}
DYNAMIC_WORD = re.compile(rb"\b(?:%s)\b" % b"|".join(name.encode() for name in sorted(DYNAMIC)))
ANALYSIS = b"%b\n%b" % (sys.version.encode(), Path(__file__).read_bytes())
"""What reads the syntax trees: Python and this file."""
WHOLE_MODULE = "*"  # in place of a definition's name: the whole module


class Definition(NamedTuple):
    """Hash of a definition, and the dotted names in it."""

    digest: str
    names: Collection[str]


class Statement(NamedTuple):
    """What is kept of a statement at the top of a file.

    Attributes:
        definition: of the whole of it.
        decorators, bases: dotted names in those of a function or class.
    """

    definition: Definition
    decorators: Collection[str]
    bases: Collection[str]


class Module:
    """The definitions and imports of a file, without its syntax tree: Python's search for cycles
    would look at it.

    Attributes:
        imports: by local name, the possible targets, anywhere in the file.
        imported: modules that it may import, with the packages that hold them.
        starred: modules from which it imports everything.
        statements: by the name that they define; empty if the module counts whole.
        calling: names of assignments that call something.
    """

    def __init__(self, path: Path, name: str, text: bytes) -> None:
        self.path, self.name, self._text = path, name, text
        self._entries: dict[str, list[Definition]] = {}
        self._is_exact = True
        # All that an analysis follows from, so that no clock is asked whether a file has changed.
        key = b"\n".join([ANALYSIS, repr((name, path.name)).encode(), text])
        if (kept := read_value(sha256([name]), key)) is not None:
            self._take(*kept)
            return
        self._analyse()
        if self._is_exact:
            analysis = [self.imports, self.imported, self.starred, self.calling, self.whole]
            keep_value(sha256([name]), key, [*analysis, self._whole_definition, self.statements])

    def _analyse(self) -> None:
        """Find out what the attributes say."""
        self.imports: dict[str, set[str]] = {}
        self.imported: set[str] = set()
        self.starred: list[str] = []
        self.nodes: dict[str, ast.AST] = {}
        self.calling: list[str] = []
        self._whole_definition: Definition | None = None
        try:
            tree = self.parse()
            for node in _import_statements(tree.body):
                self._add_import(node)
            self.whole = bool(self.starred) or not self._split(tree) or self._is_dynamic(tree)
            if self.whole:
                self._whole_definition = self._define(tree)
        # not parsable: only the bytes can be compared
        except (SyntaxError, ValueError, RecursionError):
            self._whole_definition = self._bytes()
            self.whole = True
        self.statements = {name: self._keep(node) for name, node in self.nodes.items()}
        del self.nodes

    def _take(
        self,
        imports: dict[str, list[str]],
        imported: list[str],
        starred: list[str],
        calling: list[str],
        whole: bool,
        definition: list[Any] | None,
        statements: dict[str, list[Any]],
    ) -> None:
        """Take over a kept analysis."""
        self.imports = {name: {*targets} for name, targets in imports.items()}
        self.imported, self.starred, self.calling, self.whole = {*imported}, starred, calling, whole
        self._whole_definition = Definition(*definition) if definition else None
        self.statements = {
            name: Statement(Definition(*definition), *names)
            for name, (definition, *names) in statements.items()
        }

    def parse(self) -> ast.Module:
        """Return its syntax tree."""
        return ast.parse(self._text)

    def _add_import(self, node: ast.Import | ast.ImportFrom) -> None:
        if isinstance(node, ast.Import):
            for alias in node.names:
                local = alias.asname or alias.name.split(".")[0]
                self.imports.setdefault(local, set()).add(alias.name if alias.asname else local)
                self.imported.update(with_parents(alias.name))
            return
        package = self.name if self.path.name == "__init__.py" else self.name.rpartition(".")[0]
        parents = (
            package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
        )
        base = ".".join([*parents, *([node.module] if node.module else [])])
        for alias in node.names:
            if alias.name == "*":
                self.starred.append(base)
            else:
                self.imports.setdefault(alias.asname or alias.name, set()).add(
                    f"{base}.{alias.name}"
                )
            self.imported.update(with_parents(f"{base}.{alias.name}"))

    def _split(self, tree: ast.Module) -> bool:
        """Collect the definitions. Return False if other statements run, or a name is bound
        twice.
        """
        for node in tree.body:
            if (
                isinstance(node, ast.Import | ast.ImportFrom | ast.Pass)
                or _is_text(node)
                or _never_runs(node)
            ):
                continue
            names = bound_names(node)
            if not names or {*names} & {*self.nodes, *self.imports}:
                return False
            self.nodes |= dict.fromkeys(names, node)
            if isinstance(node, ast.Assign | ast.AnnAssign) and any(
                isinstance(n, ast.Call) for n in ast.walk(node)
            ):
                self.calling += names
        # A module's __getattr__ may answer for any name.
        return "__getattr__" not in self.nodes

    def _is_dynamic(self, tree: ast.Module) -> bool:
        if DYNAMIC_WORD.search(self._text) is None:  # a quick check that clears most files
            return False
        identifiers = {part for name in self._define(tree).names for part in name.split(".")}
        identifiers |= {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
        return not identifiers.isdisjoint(DYNAMIC)

    def _keep(self, node: ast.AST) -> Statement:
        decorators, bases = (
            self._define(getattr(node, field, [])) for field in ("decorator_list", "bases")
        )
        return Statement(self._define(node), decorators.names, bases.names)

    def _define(self, node: Any) -> Definition:
        try:
            return define(node)
        except RecursionError:
            return self._bytes()

    def _bytes(self) -> Definition:
        self._is_exact = False  # how deep is too deep, depends on who asks
        return Definition(hashlib.sha256(self._text).hexdigest(), frozenset())

    def definition(self, name: str) -> Definition:
        """Return the definition of a name; if it is too deeply nested for Python, the hash of the
        file.
        """
        if name != WHOLE_MODULE:
            return self.statements[name].definition
        if self._whole_definition is None:
            self._whole_definition = self._define(self.parse())
        return self._whole_definition

    def entries(self, name: str) -> list[Definition]:
        """Return the definitions of the entries of a tuple or list that an assignment gives a
        name.
        """
        if name not in self._entries:
            assigned: Any = next(node for node in self.parse().body if name in bound_names(node))
            self._entries[name] = [self._define(entry) for entry in assigned.value.elts]
        return self._entries[name]


def with_parents(name: str) -> list[str]:
    """Return a, a.b and a.b.c for a.b.c, because importing a module imports its packages."""
    parts = name.split(".")
    return [".".join(parts[:i]) for i in range(1, len(parts) + 1)]


def parse(path: Path, name: str) -> Module:
    """Parse a file, again if it has changed."""
    return _parse_text(path, name, retry(path.read_bytes, str(path), remote=False))


@cache
def _parse_text(path: Path, name: str, text: bytes) -> Module:
    with _without_collection():
        return Module(path, name, text)


@contextmanager
def _without_collection() -> Iterator[None]:
    """Hold Python's search for cycles: a syntax tree is many objects, all of them kept, and makes
    it look at all.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _import_statements(nodes: Iterable[ast.AST]) -> Iterator[ast.Import | ast.ImportFrom]:
    for node in nodes:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        elif isinstance(node, ast.If) and _is_for_checkers(node):
            yield from _import_statements(node.orelse)
        # expressions hold no imports
        elif isinstance(node, ast.stmt | ast.ExceptHandler | ast.match_case):
            yield from _import_statements(ast.iter_child_nodes(node))


def _is_for_checkers(node: ast.If) -> bool:
    return ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING")


def _never_runs(node: ast.stmt) -> bool:
    """Return whether a statement does nothing in an imported module."""
    script = ("__name__ == '__main__'",)
    return (
        isinstance(node, ast.If)
        and not node.orelse
        and (_is_for_checkers(node) or ast.unparse(node.test) in script)
    )


def _is_text(node: ast.AST) -> bool:
    """Return whether a statement is a docstring, or a string below an attribute."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def bound_names(node: ast.stmt) -> list[str]:
    """Return the names that a definition binds; [] for other statements."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [node.name]
    if not isinstance(node, ast.Assign | ast.AnnAssign):
        return []
    targets: list[ast.expr] = []
    for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
        targets += target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
    names = [part.id for part in targets if isinstance(part, ast.Name)]
    return names if len(names) == len(targets) else []


def define(node: ast.AST | list[ast.expr]) -> Definition:
    """Describe a statement, an expression, or some expressions."""
    tokens: list[str] = []
    names: set[str] = set()
    _write(node, tokens, names, annotated=False)
    return Definition(sha256(tokens), frozenset(names))


def sha256(lines: Iterable[str]) -> str:
    """Hash some lines."""
    return hashlib.sha256("\n".join(lines).encode("utf-8", "surrogatepass")).hexdigest()


def _write(node: Any, tokens: list[str], names: set[str], annotated: bool) -> None:
    """Append a syntax tree as tokens that do not depend on the version of Python: only fields with
    content.

    Args:
        names: collects the dotted names.
        annotated: whether annotations count: they do in classes, and in functions with a decorator
            that may read them.
    """
    if isinstance(node, list):
        for item in node:
            _write(item, tokens, names, annotated)
    elif not isinstance(node, ast.AST):
        tokens.append(f"{type(node).__name__} {node!r}")
    elif name := _dotted_name(node):
        names.add(name)
        tokens.append(f"name {name}")
    elif not _is_text(node):
        tokens.append(type(node).__name__)
        _write_fields(node, tokens, names, annotated)
        tokens.append(")")


def _write_fields(node: ast.AST, tokens: list[str], names: set[str], annotated: bool) -> None:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        annotated = bool(node.decorator_list)
    elif isinstance(node, ast.ClassDef):
        annotated = True
    for field in node._fields:  # `ast.iter_fields` takes twice as long
        value = getattr(node, field, None)
        if value is None or value == [] or field in ("ctx", "kind", "type_comment"):
            continue
        if annotated or field not in ("annotation", "returns"):
            tokens.append(field)
            _write(value, tokens, names, annotated)


def _dotted_name(node: ast.AST) -> str:
    """Return a dotted name; "" for other expressions."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""
