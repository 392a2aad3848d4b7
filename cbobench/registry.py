"""The registry: a class states its name, and every module of its package is found by location. No
list to edit.

Of other packages and the user's modules, only those named as module:Class are imported.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import pkgutil
import re
import sys
import traceback
import warnings
from collections.abc import Callable, Iterable, Sequence
from contextlib import chdir, redirect_stdout
from pathlib import Path
from shutil import which
from types import ModuleType
from typing import Any, TypeVar

import numpy as np

from cbobench.errors import Misuse, one_line, reraise_stop, show, unknown

PACKAGE = __name__.partition(".")[0]
C = TypeVar("C", bound=type)
# runs before the first import from a file
SET_PATH = 'import sys; sys.path[:] = sys.argv.pop(1).split("\\n")\n'
OWN = "or your own as module:Class"  # what else a name may be
IMPORT_PATH = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")
IMPORTED: set[str] = set()
"""Top-level modules of others that this process has imported for a name (see `find_stranger`)."""


class Registry:
    """Names of one kind of thing (problems or algorithms), discovered in its packages.

    Args:
        kind: the word used in messages, such as "algorithm".
        packages: the packages whose modules register.
        base: the class from which a user's class must derive, as "module:Class" (imported late).
    """

    def __init__(self, kind: str, packages: Sequence[str], base: str) -> None:
        self.kind = kind
        self.packages = packages
        self.base = base
        self._classes: dict[str, type] = {}
        self._discovered = False

    def register(self, name: str) -> Callable[[C], C]:
        """Class decorator: register the class under `name`."""

        def add(cls: C) -> C:
            if self._classes.get(name, cls) is not cls:
                raise ValueError(
                    f"{self.kind} {name!r} is registered twice: {self._classes[name]} and {cls}"
                )
            self._classes[name] = cls
            cls.name = name  # type: ignore[attr-defined]
            return cls

        return add

    def names(self) -> list[str]:
        """Return all registered names, sorted."""
        self._discover()
        return sorted(self._classes)

    def get(
        self, name: str, *, location: str = "", imports: bool = True, beside: Sequence[Path] = ()
    ) -> type[Any]:
        """Return the class of that name, or at an import path `package.module:Class`.

        Args:
            location: file and line, at the start of an error.
            imports: whether import paths are allowed.
            beside: folders to search for the module of an import path, besides Python's path.

        Raises:
            Misuse: an unknown name, or a class that cannot be imported, is not allowed, or is of
                the wrong kind.
        """
        # An import path says itself where its class is, so nothing else is asked:
        # no registered name has a colon.
        if ":" in name:
            return self._imported(name, location, imports, beside)
        self._discover()
        if name not in self._classes:
            raise unknown(
                self.kind,
                name,
                self._classes,
                location=location,
                listing=f"cbobench list {self.kind}s",
                then=OWN,
            )
        return self._classes[name]

    def _imported(
        self, path: str, location: str, imports: bool, beside: Sequence[Path]
    ) -> type[Any]:
        if not IMPORT_PATH.fullmatch(path):
            raise Misuse(
                f"{location}{show(path)} is not an import path; write package.module:Class"
            )
        if path.startswith("__main__:"):
            raise Misuse(
                f"{location}{show(path)} lies in the script that runs; put the class into a "
                "module of its own"
            )
        if not imports:
            raise Misuse(
                f"{location}{show(path)} would import code; --no-imports refuses it; allowed: "
                "registered names"
            )
        base = import_object(self.base, location)
        cls = import_object(path, location, beside, self.kind, (base,))
        if not (isinstance(cls, type) and issubclass(cls, base)):
            base_name = self.base.replace(":", ".")
            raise Misuse(
                f"{location}{show(path)} is not a subclass of {base_name}; derive it to use it "
                f"as {self.kind}"
            )
        return cls

    def _discover(self) -> None:
        if self._discovered:
            return
        for package in self.packages:
            for module in pkgutil.walk_packages(
                importlib.import_module(package).__path__, f"{package}."
            ):
                importlib.import_module(module.name)
        self._discovered = True


def find_stranger(path: str) -> str:
    """Return the top-level module of an import path, or of a module; "" for ours."""
    top = path.replace(":", ".").partition(".")[0]
    if top == PACKAGE:
        return ""
    return top


def registry_of(
    name: str, registries: Sequence[Registry], beside: Sequence[Path], besides: Iterable[str] = ()
) -> Registry:
    """Return the registry that has a name, or the class at an import path.

    Args:
        beside: as for `Registry.get`.
        besides: other names that an error lists.

    Raises:
        Misuse: neither, or an import path that fails.
    """
    if ":" not in name:
        for registry in registries:
            if name in registry.names():
                return registry
        every = [*besides, *(name for registry in registries for name in registry.names())]
        listing = "cbobench list algorithms, problems or suites"
        raise unknown("name", name, every, listing=listing, then=OWN)
    bases = tuple(import_object(registry.base) for registry in registries)
    cls = import_object(name, beside=beside, bases=bases)
    for registry, base in zip(registries, bases, strict=True):
        if isinstance(cls, type) and issubclass(cls, base):
            return registry
    raise Misuse(
        f"{show(name)} is neither an algorithm nor a problem; derive AskTell, OneRun or another "
        "algorithm, or BoxProblem or another problem"
    )


def import_object(
    path: str,
    location: str = "",
    beside: Sequence[Path] = (),
    noun: str = "class",
    bases: tuple[type, ...] = (object,),
) -> Any:
    """Return the object at `package.module:name`.

    Args:
        location: file and line, at the start of an error.
        beside: folders to search for the module, besides Python's path (see `find_beside`).
        noun: the word for it in an error.
        bases: an error names the module's own classes that derive from one of them.

    Raises:
        Misuse: the module is not found, is found twice, cannot be imported, or has no such name.
    """
    module_name, _, attribute = path.partition(":")
    module = _import_module(module_name, location, beside)
    try:
        return getattr(module, attribute)
    except AttributeError:
        top_package = module_name.partition(".")[0]
        classes = [c for c in vars(module).values() if isinstance(c, type) and issubclass(c, bases)]
        names = [c.__name__ for c in classes if c.__module__.partition(".")[0] == top_package]
        raise unknown(f"{noun} in {module_name}", attribute, names, location=location) from None


def _import_module(name: str, location: str, beside: Sequence[Path]) -> ModuleType:
    """Import a module; see `import_object`."""
    find_beside(name, location, beside)
    IMPORTED.update({find_stranger(name)} - {""})
    try:
        # what it prints is no part of a table
        with (
            chdir("."),
            np.errstate(),
            warnings.catch_warnings(),
            redirect_stdout(sys.stderr),
        ):
            return importlib.import_module(name)
    except BaseException as error:  # a user's module may raise any error
        reraise_stop(error)
        # Of the module itself or a package above it, not of one that it imports.
        if isinstance(error, ModuleNotFoundError) and f"{name}.".startswith(f"{error.name}."):
            raise _missing_module(name, location, beside) from error
        # Python's own: argparse is no place to look for a fault
        library = Path(traceback.__file__).parent
        frames = [
            frame
            for frame in traceback.extract_tb(error.__traceback__)
            if Path(frame.filename).parent != library and "importlib" not in frame.filename
        ]
        file = "" if len(frames) < 2 else f" (line {frames[-1].lineno} of {frames[-1].filename})"
        fix = ""
        if isinstance(error, ModuleNotFoundError):
            fix = "; install it, or put its folder on PYTHONPATH"
        elif isinstance(error, SystemExit):
            fix = (
                "; it ends Python when it is imported: put what a script does under if __name__ "
                "== '__main__'"
            )
        raise Misuse(
            f"{location}cannot import {show(name)}: {one_line(error)}{file}{fix}"
        ) from error


def search_path() -> list[str]:
    """Return Python's search path for a new process: as here, with the current folder last.

    So no file there shadows a module of Python's or an installed one, unless cbobench itself lies
    there.
    """
    try:
        current = os.path.realpath("")
    except FileNotFoundError:  # removed
        current = ""
    entries = [
        entry
        for entry in sys.path
        if isinstance(entry, str) and (current or Path(entry).is_absolute())
    ]
    last = {current} - {os.path.realpath(Path(__file__).parents[1])}
    return sorted(
        dict.fromkeys(map(os.path.abspath, entries)),
        key=lambda entry: os.path.realpath(entry) in last,
    )


def fresh_interpreter(code: str, *arguments: str) -> list[str]:
    """Return the command that runs some code with `search_path`; the code finds the arguments in
    sys.argv[1:].
    """
    return [sys.executable, "-P", "-c", SET_PATH + code, "\n".join(search_path()), *arguments]


def find_beside(module: str, location: str, folders: Sequence[Path]) -> None:
    """Make a module in one of some folders importable, here and in workers, without running it.

    Its folder is appended to Python's path for the life of this process, so installed modules keep
    priority.

    Raises:
        Misuse: Python finds another module of that name, or two of the folders have one.
    """
    top = module.partition(".")[0]
    if not folders or top == PACKAGE:
        return
    # Python would take what is installed, and whoever wrote the suite means the file beside it:
    # neither wins.
    # The file must not take the place of a module that others import,
    # and the module must not be played by mistake.
    places = [place for folder in folders if (place := _locate_module(folder.resolve(), top))]
    try:
        spec = importlib.util.find_spec(top)
    except (ImportError, ValueError):
        spec = None
    every = dict.fromkeys(map(str, places))
    if spec is not None:
        origin = spec.origin or next(iter(spec.submodule_search_locations or [top]))
        every |= {os.path.realpath(origin) if Path(origin).exists() else origin: None}
    if places and len(every) > 1:
        raise Misuse(
            f"{location}the module {show(top)} is {' and '.join(every)}; give yours another name"
        )
    # Last on the path, and only where nothing else has the name.
    if places and spec is None:
        sys.path.append(str(places[0].parent if places[0].stem == top else places[0].parents[1]))
        importlib.invalidate_caches()


def _locate_module(folder: Path, top: str) -> Path | None:
    """Where a folder holds a module: a file, that of a package, or a folder with Python in it."""
    inner = folder / top
    for file in (folder / f"{top}.py", inner / "__init__.py"):
        if file.is_file():
            return file.resolve()
    if any(inner.glob("*.py")) or any(inner.glob("*/*.py")):
        return inner.resolve()
    return None


def _missing_module(module: str, location: str, folders: Sequence[Path]) -> Misuse:
    """The error of a module that is nowhere: where it was looked for."""
    looked = dict.fromkeys(str(folder.resolve()) for folder in folders)
    place = "put its file beside the suite, or" if folders else "install it, or put"
    return Misuse(
        f"{location}cannot import {show(module)}: there is no such module; looked in "
        f"{', '.join([*looked, 'the path of Python'])}; {place} its folder on PYTHONPATH"
    )


def tell_install(extra: str) -> str:
    """Return the command that adds an extra to the environment of this Python.

    It works from a clone as from an index: pip keeps the cbobench that is installed. The `pip` on
    the path may be another environment's, so this Python's is named where it is.
    """
    is_ours = which("pip") == str(Path(sys.executable).with_name("pip"))
    return f"{'' if is_ours else f'{sys.executable} -m '}pip install 'cbobench[{extra}]'"
