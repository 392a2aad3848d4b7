"""The registry: a class says its name, and every module of its package is found by location. No list to edit."""

from __future__ import annotations

import importlib
import pkgutil
import re
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from cbobench.errors import Misuse, one_line, show, unknown

C = TypeVar("C", bound=type)
IMPORT_PATH = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")


class Registry:
    """Names of one kind of thing (problems or algorithms), discovered in one package.

    Args:
        what: the word used in messages, such as "algorithm".
        package: the package whose modules register.
        base: the class that a user's own must derive from, as "module:Class" (imported late).
    """

    def __init__(self, what: str, package: str, base: str) -> None:
        self.what = what
        self.package = package
        self.base = base
        self._classes: dict[str, type] = {}
        self._discovered = False

    def register(self, name: str) -> Callable[[C], C]:
        """Class decorator: make the class known under `name`."""

        def add(cls: C) -> C:
            if self._classes.get(name, cls) is not cls:
                raise ValueError(f"{self.what} {name!r} is registered twice: {self._classes[name]} and {cls}")
            self._classes[name] = cls
            cls.name = name  # type: ignore[attr-defined]
            return cls

        return add

    def names(self) -> list[str]:
        """All registered names, sorted."""
        self._discover()
        return sorted(self._classes)

    def get(self, name: str, *, where: str = "", imports: bool = True) -> type[Any]:
        """The class of that name, or the one at an import path `package.module:Class`.

        Raises:
            Misuse: an unknown name, or an import path that fails, is not allowed, or is of the wrong kind.
        """
        if ":" in name:
            return self._imported(name, where, imports)
        self._discover()
        if name not in self._classes:
            raise unknown(self.what, name, self._classes, where=where, then="or your own as package.module:Class")
        return self._classes[name]

    def _imported(self, path: str, where: str, imports: bool) -> type[Any]:
        if not IMPORT_PATH.fullmatch(path):
            raise Misuse(f"{where}{show(path)} is not an import path; write package.module:Class")
        if path.startswith("__main__:"):
            raise Misuse(f"{where}{show(path)} lies in the script that runs; put the class into a module of its own")
        if not imports:
            raise Misuse(f"{where}{show(path)} would import code; --no-imports refuses it; allowed: registered names")
        cls = import_object(path, where)
        base = import_object(self.base, where)
        if not (isinstance(cls, type) and issubclass(cls, base)):
            raise Misuse(f"{where}{show(path)} is not a subclass of {self.base}; derive it to use it as {self.what}")
        return cls

    def _discover(self) -> None:
        if self._discovered:
            return
        package = importlib.import_module(self.package)
        for module in pkgutil.iter_modules(package.__path__):
            importlib.import_module(f"{self.package}.{module.name}")
        self._discovered = True


def import_object(path: str, where: str = "") -> Any:
    """The object at `package.module:name`.

    Raises:
        Misuse: the module cannot be imported or has no such name.
    """
    module_name, _, attribute = path.partition(":")
    try:
        with np.errstate(), warnings.catch_warnings():  # its rules are not those of the other cells
            module = importlib.import_module(module_name)
    except (Exception, SystemExit) as error:  # a user's module may fail in any way
        raise Misuse(f"{where}cannot import {show(module_name)}: {one_line(error)}") from error
    try:
        return getattr(module, attribute)
    except AttributeError:
        names = [n for n in vars(module) if not n.startswith("_")]
        raise unknown(f"name in {module_name}", attribute, names, where=where) from None
