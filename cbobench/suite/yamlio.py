"""YAML, safely and with line numbers.

On top of PyYAML's safe loader: duplicate keys are refused, numbers such as 1e-3 are numbers, only true and false are
booleans (so `no` and `on` stay words), and 10:30 is text. Mappings and lists remember the line of every entry.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from cbobench.errors import Misuse, one_line


class Located(dict[str, Any]):
    """A mapping that knows the line of each key."""

    lines: dict[str, int]
    line: int


class LocatedList(list[Any]):
    """A list that knows the line of each item."""

    lines: list[int]


class _Loader(yaml.SafeLoader):
    yaml_implicit_resolvers: dict[str, Any] = {}  # filled below  # noqa: RUF012


_Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(r"^(true|false)$"), list("tf"))
_Loader.add_implicit_resolver("tag:yaml.org,2002:null", re.compile(r"^(null|~|)$"), ["n", "~", ""])
_Loader.add_implicit_resolver("tag:yaml.org,2002:int", re.compile(r"^[-+]?(0|[1-9][0-9]*)$"), list("-+0123456789"))
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"^[-+]?([0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))([eE][-+]?[0-9]+)?$"),
    list("-+0123456789."),
)


def _mapping(loader: _Loader, node: yaml.MappingNode) -> Located:
    result = Located()
    result.lines, result.line = {}, node.start_mark.line + 1
    for key_node, value_node in node.value:
        key = str(loader.construct_object(key_node, deep=True))
        if key in result:
            raise yaml.constructor.ConstructorError(None, None, f"key {key!r} is given twice", key_node.start_mark)
        result[key] = loader.construct_object(value_node, deep=True)
        result.lines[key] = key_node.start_mark.line + 1
    return result


def _sequence(loader: _Loader, node: yaml.SequenceNode) -> LocatedList:
    result = LocatedList(loader.construct_object(item, deep=True) for item in node.value)
    result.lines = [item.start_mark.line + 1 for item in node.value]
    return result


_Loader.add_constructor("tag:yaml.org,2002:map", _mapping)
_Loader.add_constructor("tag:yaml.org,2002:seq", _sequence)


def located(value: Any) -> Any:
    """Mappings and lists of Python, copied, as if they had been read; nothing in them has a line (0).

    Raises:
        Misuse: a key that is no text.
    """
    if isinstance(value, Mapping):
        result = Located()
        result.lines, result.line = dict.fromkeys(value, 0), 0
        for key, one in value.items():
            if not isinstance(key, str):
                raise Misuse(f"the suite: the key {key!r} is no text; name it as in a suite file")
            result[key] = located(one)
        return result
    if isinstance(value, (list, tuple)):
        some = LocatedList(located(one) for one in value)
        some.lines = [0] * len(some)
        return some
    return value.item() if isinstance(value, np.generic) else value


def read(path: Path) -> Located:
    """The mapping in a YAML file.

    Raises:
        Misuse: no such file, not YAML, or not a mapping.
    """
    try:
        content = yaml.load(path.read_text(encoding="utf-8"), Loader=_Loader)  # noqa: S506  (derives SafeLoader)
    except OSError as error:
        raise Misuse(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise Misuse(f"{path} is not text in UTF-8") from error
    except yaml.MarkedYAMLError as error:
        line = f":{error.problem_mark.line + 1}" if error.problem_mark else ""
        raise Misuse(f"{path}{line}: not valid YAML: {error.problem}") from error
    except (yaml.YAMLError, ValueError, KeyError, AttributeError, RecursionError) as error:
        raise Misuse(f"{path}: not valid YAML: {one_line(error)}") from error
    if not isinstance(content, Located):
        raise Misuse(f"{path}: a suite is a mapping with the keys suite, horizon, seeds, problems, algorithms")
    return content
