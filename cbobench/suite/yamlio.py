"""Safe YAML with line numbers.

It extends PyYAML's safe loader: duplicate keys are refused, 1e-3 is a number, only true and false
are booleans (so `no` and `on` stay words), and 10:30 is text. Mappings and lists remember the line
of every entry. Limits keep reading fast and within memory, whoever wrote the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import yaml

from cbobench.errors import Misuse, one_line, refuse_strange, show

MAX_BYTES = 10**6  # size of a file
MAX_NODES = 20_000  # keys and values, counted at every use of an alias
MAX_DEPTH = 20
# characters of a value, a label, the suite's name
MAX_TEXT = 10_000
MAX_LABEL = 200
MAX_NAME = 100
MAX_HORIZON = 10**9
MAX_SEED = 2**62
MAX_SEEDS = 10**6
MAX_VARIANTS = 10_000  # problems, or algorithms, after expanding sweeps
MAX_PAIRS = 100_000
MAX_CELLS = 10**7
MAX_CPUS = 4096  # of a task, and of a machine
SEVERAL_LINES = "about"  # key of a text with several lines


@dataclass(frozen=True)
class SourceLine:
    """A place in a suite file, at the start of an error."""

    path: Path

    def __call__(self, line: int) -> str:
        if line:
            return f"{self.path}:{line}: "
        return f"{self.path}: "


def refuse_size(nodes: int, depth: int, location: str) -> None:
    """Raise `Misuse` for more than a suite may hold."""
    if depth > MAX_DEPTH:
        raise Misuse(f"{location}nested more than {MAX_DEPTH} deep; a suite needs no more than 6")
    if nodes > MAX_NODES:
        raise Misuse(
            f"{location}more than {MAX_NODES:,} keys and values (allowed; those behind an alias "
            "count each time); "
            "many seeds are {first: a, count: n}"
        )


def texts(content: Any, key: str = "", line: int = 0) -> Iterator[tuple[str, str, int]]:
    """Yield every text in mappings and lists with lines, keys included: (its name, the text, its
    line).
    """
    if isinstance(content, Mapping):
        for name, value in content.items():
            entry_line = getattr(content, "lines", {}).get(name, line)
            yield "the key", name, entry_line
            yield from texts(value, name, entry_line)
    elif isinstance(content, list):
        lines = getattr(content, "lines", [line] * len(content))
        for value, entry_line in zip(content, lines, strict=True):
            yield from texts(value, key, entry_line)
    elif isinstance(content, str):
        yield key, content, line


def check_texts(content: Any, location: SourceLine) -> None:
    """Raise `Misuse` for a text that is too long or holds unprintable characters."""
    for key, text, line in texts(content):
        longest = {"label": MAX_LABEL, "suite": MAX_NAME}.get(key, MAX_TEXT)
        if len(text) > longest:
            raise Misuse(
                f"{location(line)}{show(key)} has {len(text):,} characters; allowed: {longest:,}"
            )
        name = key if key == "the key" or key.isidentifier() else show(key)
        refuse_strange(text, f"{location(line)}{name}", lines=key == SEVERAL_LINES)


class Located(dict[str, Any]):
    """A mapping that knows the line of each key."""

    lines: dict[str, int]


class LocatedList(list[Any]):
    """A list that knows the line of each item."""

    lines: list[int]


class _Loader(yaml.SafeLoader):
    """A loader of JSON's tags alone, with limits that hold before any object is made."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # filled below  # noqa: RUF012
    yaml_constructors: ClassVar[dict[Any, Any]] = {}
    nodes = depth = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        self.nodes = self.nodes + 1
        self.depth = self.depth + 1
        refuse_size(self.nodes, self.depth, _place(self.peek_event()))  # type: ignore[no-untyped-call]
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node


_TAG = "tag:yaml.org,2002:"
_Loader.add_implicit_resolver(f"{_TAG}bool", re.compile(r"^(true|false)$"), list("tf"))
_Loader.add_implicit_resolver(f"{_TAG}null", re.compile(r"^(null|~|)$"), ["n", "~", ""])
_Loader.add_implicit_resolver(
    f"{_TAG}int", re.compile(r"^[-+]?(0|[1-9][0-9]*)$"), list("-+0123456789")
)
_Loader.add_implicit_resolver(
    f"{_TAG}float",
    re.compile(r"^[-+]?([0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))([eE][-+]?[0-9]+)?$"),
    list("-+0123456789."),
)


def _measure(node: yaml.Node, sizes: dict[int, tuple[int, int] | None]) -> tuple[int, int]:
    """Return (nodes, depth) of a node's subtree with every alias expanded."""
    if id(node) in sizes:
        size = sizes[id(node)]
        if size is None:
            raise _wrong(node, "an alias within what it stands for")
        return size
    # Marked as begun: an alias within what it stands for would never end.
    sizes[id(node)] = None
    children = node.value if isinstance(node, yaml.CollectionNode) else ()
    entries = (entry if isinstance(entry, tuple) else (entry,) for entry in children)
    parts = [_measure(child, sizes) for entry in entries for child in entry]
    nodes = 1 + sum(n for n, _ in parts)
    depth = 1 + max((d for _, d in parts), default=0)
    refuse_size(nodes, depth, _place(node))
    sizes[id(node)] = nodes, depth
    return nodes, depth


def _place(node: yaml.Node | yaml.Event) -> str:
    mark = node.start_mark
    if mark is not None:
        return f"{mark.name}:{mark.line + 1}: "
    return ""


def _wrong(node: yaml.Node, problem: str) -> yaml.MarkedYAMLError:
    return yaml.constructor.ConstructorError(None, None, problem, node.start_mark)


def _mapping(loader: _Loader, node: yaml.Node) -> Located:
    if not isinstance(node, yaml.MappingNode):
        raise _wrong(node, "expected a mapping")
    result = Located()
    result.lines = {}
    for key_node, value_node in node.value:
        if not isinstance(key_node, yaml.ScalarNode):
            raise _wrong(key_node, "a key must be text")
        key = str(loader.construct_object(key_node))
        if key in result:
            raise _wrong(key_node, f"key {show(key)} is given twice")
        result[key] = loader.construct_object(value_node, deep=True)
        result.lines[key] = key_node.start_mark.line + 1
    return result


def _sequence(loader: _Loader, node: yaml.Node) -> LocatedList:
    if not isinstance(node, yaml.SequenceNode):
        raise _wrong(node, "expected a list")
    result = LocatedList(loader.construct_object(item, deep=True) for item in node.value)
    result.lines = [item.start_mark.line + 1 for item in node.value]
    return result


_Loader.add_constructor(f"{_TAG}map", _mapping)
_Loader.add_constructor(f"{_TAG}seq", _sequence)
for _tag in (f"{_TAG}null", f"{_TAG}bool", f"{_TAG}int", f"{_TAG}float", f"{_TAG}str", None):
    _Loader.add_constructor(_tag, yaml.SafeLoader.yaml_constructors[_tag])


def copy_without_lines(value: Any) -> Any:
    """Copy Python's mappings and lists as if they had been read from a file; every line is 0.

    Raises:
        Misuse: a key that is no text, or more than a suite may hold.
    """
    if isinstance(value, Mapping):
        result = Located()
        result.lines = dict.fromkeys(value, 0)
        for key, item in value.items():
            if not isinstance(key, str):
                raise Misuse(
                    f"the suite: the key {show(key)} is no text; name it as in a suite file"
                )
            result[key] = copy_without_lines(item)
        return result
    if isinstance(value, (list, tuple)):
        items = LocatedList(copy_without_lines(item) for item in value)
        items.lines = [0] * len(items)
        return items
    if isinstance(value, np.generic):
        return value.item()
    return value


SYNTAX = {
    "mapping values": (
        "no key may stand here: indent the line as its neighbours, or quote a text that holds ': '"
    ),
    "expected <block end>": "the line is not indented as the entries before it, or one bracket "
    "too many is closed",
    "expected '<document start>'": "the line is not indented as the keys before it",
    "found character '\\t'": "indent with spaces, not with a tab",
    "could not find expected ':'": "a key needs ': ' after it",
    "expected ',' or": "this bracket is not closed, or a comma is missing in it",
    "found unexpected end of stream": "this quote is not closed",
}
"""Explanations of the parser's messages, by how these begin."""


def _explain_error(error: yaml.MarkedYAMLError) -> str:
    """Return place and cause: line and column of a syntax error, the line of another error."""
    problem = error.problem or ""
    explanation = next(
        (explanation for begin, explanation in SYNTAX.items() if problem.startswith(begin)), None
    )
    found_late = problem.startswith(
        ("could not find expected ':'", "expected ',' or", "found unexpected end")
    )
    mark = error.context_mark if found_late else error.problem_mark
    if mark is None:
        place = ""
    else:
        place = f":{mark.line + 1}" + (f":{mark.column + 1}" if explanation else "")
    return f"{place}: not valid YAML: {explanation or problem}"


def read(path: Path) -> Located:
    """Return the mapping in a YAML file.

    Raises:
        Misuse: no such file, not YAML, not a mapping, or more than a suite may hold.
    """
    try:
        with path.open("rb") as stream:
            # One byte above the limit shows that a file is too large, however large it is.
            text = stream.read(MAX_BYTES + 1)
        if len(text) > MAX_BYTES:
            raise Misuse(f"{path} is larger than a suite may be; allowed: {MAX_BYTES:,} bytes")
        loader = _Loader(text.decode())
        loader.name = str(path)
        node = loader.get_single_node()
        # Measured before any object is made: a few aliases within aliases stand for billions of
        # nodes.
        if node is not None:
            _measure(node, {})
        content = None if node is None else loader.construct_document(node)
    except Misuse:
        raise
    except OSError as error:
        raise Misuse(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise Misuse(
            f"{path} is not text in UTF-8: byte {error.start} is 0x{text[error.start]:02x}"
        ) from error
    except yaml.MarkedYAMLError as error:
        raise Misuse(f"{path}{_explain_error(error)}") from error
    except Exception as error:  # PyYAML passes on any error of its constructors
        raise Misuse(f"{path}: not valid YAML: {one_line(error)}") from error
    if not isinstance(content, Located):
        raise Misuse(
            f"{path}: a suite is a mapping with the keys suite, horizon, seeds, problems, "
            "algorithms"
        )
    return content


def load(suite: Mapping[str, Any] | Any, path: Path) -> Located:
    """Return what a suite holds, a mapping or else the file at the path, with texts that may be
    printed.

    Raises:
        Misuse: it cannot be read, or holds more than a suite may.
    """
    content: Located = copy_without_lines(suite) if isinstance(suite, Mapping) else read(path)
    # What may not be printed is refused before any error quotes it.
    check_texts(content, SourceLine(path))
    return content
