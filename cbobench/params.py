"""Parameters: named, typed, bounded fields of a dataclass, checked before anything runs.

Problems and algorithms are keyword-only dataclasses whose constructor fields are made with `param`.
The same declaration validates a suite file, names a cell, and prints `cbobench show`.

Functions of many options are called with the fields of one frozen dataclass (`accept_fields`): a
keyword, its type and its default stand once.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import operator
import re
import types
import typing
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import KW_ONLY, MISSING, Field, dataclass
from typing import Any, Literal, ParamSpec, TypeVar

import numpy as np

from cbobench.errors import Misuse, nearest, one_line, reraise_stop, show, unknown

T = TypeVar("T")
Fields = ParamSpec("Fields")
Options = TypeVar("Options")
Result = TypeVar("Result")
LARGEST = 1e100  # products of larger numbers overflow
BOUNDS = {
    "above": operator.gt,
    "at_least": operator.ge,
    "below": operator.lt,
    "at_most": operator.le,
}


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
        field_parameters = inspect.signature(options_class).parameters.values()
        parameters = [*(p for p in field_parameters if p.name not in hidden), *own_parameters]
        allowed = [parameter.name for parameter in parameters]

        @functools.wraps(function)
        def call(*arguments: Fields.args, **keywords: Fields.kwargs) -> Result:
            for name in keywords:
                if name not in allowed:
                    raise unknown("option", name, allowed)
            own: dict[str, Any] = {
                p.name: keywords.pop(p.name) for p in own_parameters if p.name in keywords
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


@dataclass(frozen=True)
class ParamOptions:
    """What is declared of a parameter.

    Attributes:
        default: its value where a suite gives none.
        about: one line of description.
        above, at_least, below, at_most: bounds for numbers.
        called: the parameter's name, if the class uses that attribute for something else.
        quiet: whether the default is left out of a cell's identity, for parameters added later.
        varies: whether cells with different numbers may play in one block. The class then finds an
            array (S, 1) in the place of the number, and must give every replicate the bits that it
            has alone.
    """

    default: Any
    about: str
    _: KW_ONLY
    above: float | None = None
    at_least: float | None = None
    below: float | None = None
    at_most: float | None = None
    called: str = ""
    quiet: bool = False
    varies: bool = False


@accept_fields(ParamOptions)
def param(options: ParamOptions) -> Any:
    """Return a constructor field with a default, one line of description, and bounds for its
    numeric values.

    Args: see `ParamOptions`.
    """
    metadata = {**vars(options)}
    default = metadata.pop("default")
    if isinstance(default, (list, dict)):
        return dataclasses.field(default_factory=lambda: default.copy(), metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


def state() -> Any:
    """Return a field that is not a parameter but is set during a play."""
    return dataclasses.field(init=False, repr=False, compare=False)


def required(method: Callable[..., T]) -> Callable[..., T]:
    """Mark a method of a base class that subclasses must write; `build` refuses a class without
    it.
    """

    @functools.wraps(method)
    def unwritten(self: Any, *args: Any, **options: Any) -> T:
        raise _unwritten_error(type(self), method)

    unwritten.required = True  # type: ignore[attr-defined]
    return unwritten


def _unwritten_error(cls: type, method: Any) -> Misuse:
    parameters = ", ".join(inspect.signature(method).parameters)
    about = (inspect.getdoc(method) or "").partition("\n")[0].rstrip(".")
    return Misuse(
        f"{cls.__name__} does not define {method.__name__}({parameters}); write it"
        + (f": {about}" if about else "")
    )


@dataclass(frozen=True)
class Param:
    """One parameter as a reader sees it, its type with bounds; `varies` as of `param`."""

    name: str
    type: str
    default: Any
    about: str
    varies: bool = False


def _fields(cls: type) -> dict[str, Field[Any]]:
    return {f.metadata.get("called") or f.name: f for f in dataclasses.fields(cls) if f.init}


@functools.cache
def _hints(cls: Any) -> dict[str, Any]:
    """Return the types of a class's fields; Python compiles each of them again at every call."""
    return typing.get_type_hints(cls)


def _default(f: Field[Any]) -> Any:
    if f.default_factory is not MISSING:
        return f.default_factory()
    return f.default


def params_of(cls: type) -> list[Param]:
    """Return every parameter of a problem or algorithm class, in order of declaration."""
    _refuse_undeclared(cls)
    hints = _hints(cls)
    return [
        Param(
            name=name,
            type=describe(hints[f.name], _describe_bounds(f.metadata)),
            default=_default(f),
            about=f.metadata.get("about", ""),
            varies=f.metadata.get("varies", False),
        )
        for name, f in _fields(cls).items()
    ]


def _describe_bounds(metadata: Mapping[str, Any]) -> str:
    """Return the bounds of a parameter's numbers in words: above 0 and at most 1e+09."""
    stated = [key for key in BOUNDS if metadata.get(key) is not None]
    return " and ".join(f"{key.replace('_', ' ')} {metadata[key]:g}" for key in stated)


def describe(annotation: Any, bounds: str = "") -> str:
    """Return a type in a reader's words: `number`, `'norm' | 'sup' | number above 0` with its
    numbers' bounds, ...
    """
    origin = typing.get_origin(annotation)
    if origin is Literal:
        return " | ".join(repr(v) for v in typing.get_args(annotation))
    if origin in (typing.Union, types.UnionType):
        return " | ".join(describe(a, bounds) for a in typing.get_args(annotation))
    if origin is list:
        return f"list of {describe(typing.get_args(annotation)[0], bounds)}"
    if origin is dict:
        return "mapping"
    names = {
        float: "number",
        int: "whole number",
        str: "text",
        bool: "true | false",
        type(None): "null",
    }
    name = str(names.get(annotation, getattr(annotation, "__name__", str(annotation))))
    if bounds and annotation in (float, int):
        return f"{name} {bounds}"
    return name


def _choices(annotation: Any) -> list[str]:
    """Return the words that an annotation allows."""
    if typing.get_origin(annotation) is Literal:
        return [word for word in typing.get_args(annotation) if isinstance(word, str)]
    return [word for part in typing.get_args(annotation) for word in _choices(part)]


def plain(value: Any) -> Any:
    """Convert mappings and lists, however deep, to those of Python itself."""
    if isinstance(value, Mapping):
        return {key: plain(element) for key, element in value.items()}
    if isinstance(value, list):
        return [plain(element) for element in value]
    return value


def _coerce(value: Any, annotation: Any) -> tuple[bool, Any]:
    """Return (fits, value in the declared type)."""
    origin = typing.get_origin(annotation)
    arguments = typing.get_args(annotation)
    if origin is Literal:
        # YAML reads the words true and false as Booleans.
        word = str(value).lower() if isinstance(value, bool) else value
        word = word if word in arguments else value
        return any(word == v and type(word) is type(v) for v in arguments), word
    if origin in (typing.Union, types.UnionType):
        # The first type that fits wins. A value may fit several,
        # as 1 is a whole number and the number 1.0.
        # Cells are named by what it becomes, so the class's order decides,
        # and no best fit is looked for.
        pairs = (_coerce(value, option) for option in arguments)
        return next(((fits, coerced) for fits, coerced in pairs if fits), (False, value))
    if origin is list:
        if not isinstance(value, list):
            return False, value
        elements = [_coerce(element, arguments[0]) for element in value]
        return all(fits for fits, _ in elements), [element for _, element in elements]
    if origin is dict:
        return isinstance(value, Mapping) and all(isinstance(key, str) for key in value), plain(
            value
        )
    if annotation is Any:
        return True, value
    if annotation is float:
        fits = _is_number(value) and abs(value) <= LARGEST  # neither is of NaN
        return fits, float(value) if fits else value
    if annotation is int:
        return isinstance(value, int) and not isinstance(value, bool), value
    return isinstance(value, annotation), value


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _check_bounds(name: str, value: Any, metadata: Mapping[str, Any]) -> None:
    for number in filter(_is_number, value if isinstance(value, list) else [value]):
        for key, keeps in BOUNDS.items():
            bound = metadata.get(key)
            if bound is not None and not keeps(number, bound):
                raise Misuse(
                    f"{name} is {show(number)}; it must be {key.replace('_', ' ')} {bound:g}"
                )


def resolve(cls: type, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return all parameters of `cls`: the given ones checked, the others at their defaults.

    Raises:
        Misuse: an unknown parameter, a value of the wrong type, or one out of range.
    """
    fields = _fields(cls)
    hints = _hints(cls)
    for name in settings:
        if name not in fields:
            raise unknown("parameter", name, fields)
    # In the order of the class, whatever the order of the settings:
    # cells are named by this mapping.
    values = {}
    for name, f in fields.items():
        if name not in settings:
            values[name] = _default(f)
            continue
        fits, value = _coerce(settings[name], hints[f.name])
        if not fits:
            if isinstance(settings[name], Mapping):
                swept = ", or {sweep: [values]} in a suite"
            else:
                swept = ""
            close = nearest(value, _choices(hints[f.name])) if isinstance(value, str) else None
            suggestion = f"did you mean {close!r}?; " if close else ""
            raise Misuse(
                f"{name} is {show(settings[name])}; {suggestion}allowed: "
                f"{describe(hints[f.name])}{swept}"
            )
        _check_bounds(name, value, f.metadata)
        values[name] = value
    return values


def identity(cls: type, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the resolved parameters that identify a play: all but `quiet` ones at their
    defaults.
    """
    quiet = {name: _default(f) for name, f in _fields(cls).items() if f.metadata.get("quiet")}
    return {
        name: value for name, value in values.items() if name not in quiet or value != quiet[name]
    }


_finished: set[type] = set()


def refuse_unfinished(cls: type) -> None:
    """Raise `Misuse` for a class that lacks a method, is no dataclass, or has a parameter without a
    default.

    So is one that gives a parameter of its base another default in a way that Python ignores, or
    that refuses itself in a class method `check_class`.
    """
    if cls in _finished:
        return
    for name in dir(cls):
        if getattr(method := inspect.getattr_static(cls, name), "required", False):
            raise _unwritten_error(cls, method)
    _refuse_undeclared(cls)
    _refuse_ignored_default(cls)
    getattr(cls, "check_class", lambda: None)()
    _finished.add(cls)


def _refuse_undeclared(cls: type) -> None:
    # The decorator of a base class does not process them.
    bare = any(isinstance(value, Field) for value in vars(cls).values())
    if bare or not dataclasses.is_dataclass(cls):
        raise Misuse(
            f"{cls.__name__} is not a dataclass; decorate it with @dataclass(kw_only=True)"
        )
    parameters = inspect.signature(cls.__init__).parameters.values()  # type: ignore[misc]
    names = [p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)][1:]
    if strange := [name for name in names if name not in {f.name for f in dataclasses.fields(cls)}]:
        raise Misuse(
            f"{cls.__name__}: no suite can set {strange[0]!r} of __init__, and no run "
            "records it; leave "
            "__init__ out, decorate the class with @dataclass(kw_only=True), and write "
            f"{strange[0]}: TYPE = param(...)"
        )
    for f in _fields(cls).values():
        if f.default_factory is MISSING and f.default is MISSING:
            raise Misuse(
                f"the parameter {f.name!r} has no default; declare it with param(default, about)"
            )


def _refuse_ignored_default(cls: type) -> None:
    # A dataclass takes the default of the class that annotates the field: without an annotation it
    # stays as it was.
    for f in _fields(cls).values():
        stated = inspect.getattr_static(cls, f.name, f.default)
        is_value = stated is None or isinstance(
            stated, bool | int | float | str | list | dict | tuple
        )
        if is_value and f.default_factory is MISSING and stated != f.default:
            kind = getattr(f.type, "__name__", f.type)
            raise Misuse(
                f"{cls.__name__}: {f.name} = {show(stated)} leaves the parameter's default at "
                f"{show(f.default)}; set {f.name} in the suite, or write {f.name}: {kind} = "
                f"param({show(stated)}, ...)"
            )


def build(cls: type[T], settings: Mapping[str, Any]) -> T:
    """Return an object of `cls` with checked parameters, after its own `validate()` if it has
    one.
    """
    refuse_unfinished(cls)
    values = resolve(cls, settings)
    fields = _fields(cls)
    try:
        instance: T = cls(**{fields[name].name: value for name, value in values.items()})
        validate = getattr(instance, "validate", None)
        if validate is not None:
            validate()
    except Misuse:
        raise
    except BaseException as error:  # a user's class may raise any error
        reraise_stop(error)
        raise Misuse(f"{cls.__name__}: {one_line(error)}") from error
    return instance


def shared_values(cls: type, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the resolved parameters that cells of one block must have in common: all but numbers
    that may vary.
    """
    fields = _fields(cls)
    return {
        n: value for n, value in resolve(cls, settings).items() if not _may_vary(fields[n], value)
    }


def _may_vary(f: Field[Any], value: Any) -> bool:
    return _is_number(value) and f.metadata.get("varies", False)


def build_block(cls: type[T], settings_list: Sequence[Mapping[str, Any]]) -> T:
    """Return an object for S replicates with parameters of their own, which agree in their
    `shared_values`.

    Parameters in which they differ are arrays (S, 1).
    """
    # Many replicates share one mapping: each distinct one is built once.
    distinct = {id(settings): settings for settings in settings_list}
    objects = {which: build(cls, settings) for which, settings in distinct.items()}
    replicates = [objects[id(settings)] for settings in settings_list]
    block = replicates[0]
    for f in _fields(cls).values():
        values = [getattr(replicate, f.name) for replicate in replicates]
        if _may_vary(f, values[0]) and any(value != values[0] for value in values):
            setattr(block, f.name, np.array(values, dtype=np.float64)[:, None])
    return block
