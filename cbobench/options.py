"""Functions of one frozen dataclass that are called with its fields: a keyword, its type and its default stand once."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from cbobench.errors import unknown

Fields = ParamSpec("Fields")
Options = TypeVar("Options")
Result = TypeVar("Result")


def accept_fields(
    options_class: Callable[Fields, Options],
) -> Callable[[Callable[[Options], Result]], Callable[Fields, Result]]:
    """Return a decorator that lets a function of one `options_class` be called with the fields of it.

    `help`, `inspect.signature` and the completion of notebooks show the fields. Where the function's docstring has a
    line "Args: see `...`.", `help` shows there what the docstrings of the class and its bases say under "Attributes:".

    Raises:
        Misuse: when the function is called with a keyword that is no field.
    """
    signature = _without_addresses(inspect.signature(options_class))
    is_argument_line = re.compile(r"^( *)Args: see `\w+`\.\n", re.MULTILINE)

    def decorate(function: Callable[[Options], Result]) -> Callable[Fields, Result]:
        @wraps(function)
        def call(*arguments: Fields.args, **keywords: Fields.kwargs) -> Result:
            for name in keywords:
                if name not in signature.parameters:
                    raise unknown("option", name, signature.parameters)
            return function(options_class(*arguments, **keywords))

        returns = inspect.signature(function).return_annotation
        call.__signature__ = signature.replace(return_annotation=returns)  # type: ignore[attr-defined]
        call.__doc__ = is_argument_line.sub(_describe_fields(options_class), function.__doc__ or "")
        return call

    return decorate


class _SomeFunction:
    """Stands in a signature for a default that is a function."""

    def __repr__(self) -> str:
        return "..."


def _without_addresses(signature: inspect.Signature) -> inspect.Signature:
    """A signature that shows `...` for a default that is a function: where that lies in memory tells nothing."""
    shown = [
        parameter.replace(default=_SomeFunction()) if inspect.isfunction(parameter.default) else parameter
        for parameter in signature.parameters.values()
    ]
    return signature.replace(parameters=shown)


def _describe_fields(options_class: Callable[..., object]) -> str:
    """Return the "Args:" of a function that is called with the fields of a class."""
    parts = ["    Args:\n"]
    for base in reversed(inspect.getmro(options_class)):  # type: ignore[arg-type]
        _, _, attributes = (base.__dict__.get("__doc__") or "").partition("Attributes:\n")
        parts.append(attributes.rstrip() + "\n" if attributes else "")
    return "".join(parts)
