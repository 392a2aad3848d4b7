"""Functions of one frozen dataclass that are called with its fields: a keyword, its type and its
default stand once.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from cbobench.errors import unknown

Fields = ParamSpec("Fields")
Options = TypeVar("Options")
Result = TypeVar("Result")


def accept_fields(
    options_class: Callable[Fields, Options], hidden: Collection[str] = ()
) -> Callable[[Callable[[Options], Result]], Callable[Fields, Result]]:
    """Return a decorator that lets a function of one `options_class` be called with the fields of
    it.

    The function's own keywords follow them. `help`, `inspect.signature` and the completion of
    notebooks show all. Where the function's docstring has a line "Args: see `...`.", `help` shows
    there what the docstrings of the class and its bases say under "Attributes:".

    Args:
        hidden: fields that callers do not give.

    Raises:
        Misuse: when the function is called with a keyword that there is not.
    """
    is_argument_line = re.compile(r"^Args: see `\w+`\.\n", re.MULTILINE)

    def decorate(function: Callable[[Options], Result]) -> Callable[Fields, Result]:
        _, *own_parameters = inspect.signature(function).parameters.values()
        own_names = [parameter.name for parameter in own_parameters]
        field_parameters = inspect.signature(options_class).parameters.values()
        parameters = [*(p for p in field_parameters if p.name not in hidden), *own_parameters]
        allowed = [parameter.name for parameter in parameters]

        @wraps(function)
        def call(*arguments: Fields.args, **keywords: Fields.kwargs) -> Result:
            for name in keywords:
                if name not in allowed:
                    raise unknown("option", name, allowed)
            own: dict[str, Any] = {
                name: keywords.pop(name) for name in own_names if name in keywords
            }
            return function(options_class(*arguments, **keywords), **own)

        signature = inspect.signature(function).replace(parameters=parameters)
        call.__signature__ = signature  # type: ignore[attr-defined]
        # From Python 3.13 on docstrings are kept without indentation; before, `help` takes it off.
        doc = inspect.cleandoc(function.__doc__ or "") + "\n"
        call.__doc__ = is_argument_line.sub(lambda _: _describe_fields(options_class), doc)
        return call

    return decorate


def _describe_fields(options_class: Callable[..., object]) -> str:
    """Return the "Args:" of a function that is called with the fields of a class."""
    parts = ["Args:\n"]
    for base in reversed(inspect.getmro(options_class)):  # type: ignore[arg-type]
        # The fields end with the section: what follows is of the class.
        doc = inspect.cleandoc(base.__dict__.get("__doc__") or "")
        _, _, attributes = doc.partition("Attributes:\n")
        attributes = attributes.partition("\n\n")[0]
        parts.append(attributes.rstrip() + "\n" if attributes else "")
    return "".join(parts)
