"""What outlives a play: the global generators, and what a user's classes and functions share."""

from __future__ import annotations

import inspect
import pickle
import random
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

INSTEAD = "draw from the streams that it is given (setting.streams, given.generator, a seeded generator made from them)"


def _numpy() -> tuple[Callable[[], Any], Callable[[Any], None], Callable[[int], None]]:
    look, put = np.random.get_bit_generator, np.random.set_bit_generator  # type: ignore[attr-defined]
    return (
        (lambda: (look(), look().state)),
        (lambda before: put(before[0])),
        (lambda seed: put(np.random.MT19937(seed))),
    )


def _python() -> tuple[Callable[[], Any], Callable[[Any], None], Callable[[int], None]]:
    return random.getstate, random.setstate, random.seed


def _torch() -> tuple[Callable[[], Any], Callable[[Any], None], Callable[[int], None]]:
    torch = sys.modules["torch"]
    return torch.get_rng_state, torch.set_rng_state, torch.manual_seed


GENERATORS = {"np.random": ("numpy", _numpy), "random": ("random", _python), "torch": ("torch", _torch)}
"""Global generators by the name that a finding gives them: their module, and how to get, set and seed them."""


@contextmanager
def seeded(seed: int) -> Iterator[set[str]]:
    """Within, every global generator begins from a seed; afterwards the names of those that were used, and all is back.

    torch counts where it has been imported.
    """
    used: set[str] = set()
    here = {name: make() for name, (module, make) in GENERATORS.items() if module in sys.modules}
    before = {name: get() for name, (get, _, _) in here.items()}
    for _, _, start in here.values():
        start(seed)
    begun = {name: _bytes(get()) for name, (get, _, _) in here.items()}
    try:
        yield used
    finally:
        for name, (get, put_back, _) in here.items():
            if _bytes(get()) != begun[name]:
                used.add(name)
            put_back(before[name])


def _bytes(state: Any) -> bytes:
    return pickle.dumps(
        state.tolist() if hasattr(state, "tolist") else state[-2:] if isinstance(state, tuple) else state
    )


GLOBAL = "the module global"
"""How the name of one begins: a cache, perhaps, that changes no play."""


def snapshot(cls: type) -> dict[str, bytes]:
    """What instances of a class and its helpers share, by name: class attributes, defaults of functions, globals.

    Looked at are the modules, outside this package, of the class and its bases, and every class and function in them.
    """
    names = {base.__module__ for base in cls.__mro__}
    modules = [sys.modules[name] for name in names if name in sys.modules and name.partition(".")[0] not in SKIPPED]
    found: dict[str, bytes] = {}
    classes = {base for base in cls.__mro__ if base.__module__ in {module.__name__ for module in modules}}
    for module in modules:
        mine = [thing for thing in vars(module).values() if getattr(thing, "__module__", None) == module.__name__]
        classes |= {thing for thing in mine if inspect.isclass(thing)}
        found |= _defaults("", {thing.__name__: thing for thing in mine if inspect.isfunction(thing)})
        for name, value in vars(module).items():
            if not name.startswith("__") and not callable(value) and not inspect.ismodule(value):
                found |= _known(f"{GLOBAL} {name} of {module.__name__}", value)
    for one in classes:
        found |= _defaults(f"{one.__name__}.", vars(one))
        for name, value in vars(one).items():
            plain = not callable(value) and not isinstance(value, property | classmethod | staticmethod)
            if plain and not name.startswith("__") and not name.startswith("_abc"):
                found |= _known(f"the class attribute {one.__name__}.{name}", value)
    return found


def changed_since(before: Mapping[str, bytes], cls: type, apart: object = True) -> list[str]:
    """What a class shares that is not as a snapshot of it was; globals only where plays are apart."""
    now = snapshot(cls).items()
    return [name for name, value in now if before.get(name) != value and (apart or not name.startswith(GLOBAL))]


SKIPPED = ("builtins", "typing", __name__.partition(".")[0])


def _defaults(owner: str, functions: Any) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for name, function in [*functions.items()]:
        if inspect.isfunction(function):
            defaults, code = function.__defaults__ or (), function.__code__
            names = code.co_varnames[code.co_argcount - len(defaults) : code.co_argcount]
            for argument, value in {
                **dict(zip(names, defaults, strict=True)),
                **(function.__kwdefaults__ or {}),
            }.items():
                found |= _known(f"the default of {argument} in {owner}{name}", value)
    return found


def _known(name: str, value: Any) -> dict[str, bytes]:
    try:
        return {name: pickle.dumps(value)}
    except Exception:  # what cannot be written down is not looked at
        return {}
