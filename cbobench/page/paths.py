"""Paths on a page: a reader elsewhere needs the name of a file, and not where it lies on somebody's
machine.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

# of packed numbers, or of such by metric: their base64 may look like a path
NUMBERS = ("curves", "by_seed", "share")
START = r"(?:file://)?(?:~|…)?/(?!/)"
PATH = (
    rf"""(?<=["']){START}[^"'\n]*"""  # behind a quote, where it may hold spaces
    rf"""|(?<![\w./~…-]){START}[^\s"'<>()\[\]{{}},;:|=*?]+"""
)
LIBRARY = re.compile(r".*/(?:site-packages|dist-packages|lib/python3\.\d+)/(?=.)")
OURS = re.compile(r".*/(?=cbobench/.*\.py$)")


def shorten_paths(content: Any, places: Sequence[str] = ()) -> Any:
    """Return what a page holds with every absolute path shortened, in keys as well.

    A file of an installed package is named from the package on, another one by its name alone, with
    a number where two on the page have the same. Addresses of buckets stay.

    Args:
        content: a value of JSON.
        places: files and folders that it names, perhaps without quotes though they hold spaces.
    """
    place_patterns = [
        re.escape(place) for place in sorted(places, key=len, reverse=True) if place[:1] == "/"
    ]
    pattern = re.compile("|".join([*place_patterns, PATH]))
    paths: dict[str, None] = {}

    def collect(path: str) -> str:
        paths[_strip(path)] = None
        return path

    _replace(content, pattern, collect)
    short_names = _name_shortly(path for path in paths if _relative(path) is None)
    return _replace(
        content, pattern, lambda path: _relative(_strip(path)) or short_names[_strip(path)]
    )


def _replace(
    content: Any, pattern: re.Pattern[str], shorten: Callable[[str], str], key: str = ""
) -> Any:
    """Every path in a value of JSON replaced."""
    if key in NUMBERS and isinstance(content, (str, dict)):
        return content
    if isinstance(content, str):
        return pattern.sub(
            lambda match: shorten(match[0]) if _is_absolute(match[0]) else match[0], content
        )
    if isinstance(content, dict):
        return {
            _replace(name, pattern, shorten): _replace(value, pattern, shorten, name)
            for name, value in content.items()
        }
    if isinstance(content, (list, tuple)):
        return [_replace(value, pattern, shorten) for value in content]
    return content


def _is_absolute(path: str) -> bool:
    """One name behind a slash may be anything."""
    return path[0] != "/" or _strip(path).count("/") > 1


def _strip(path: str) -> str:
    return path.removeprefix("file://").rstrip("/")


def _relative(path: str) -> str | None:
    """The path of a file of a package from that on, None for other files."""
    for place in (LIBRARY, OURS):
        if match := place.match(path):
            return path[match.end() :]
    return None


def _name_shortly(paths: Iterable[str]) -> dict[str, str]:
    """The last name of each path, with a number where another one on the page has it, too."""
    names: dict[str, str] = {}
    counts: Counter[str] = Counter()
    for path in paths:
        name = path.rpartition("/")[2]
        counts[name] += 1
        names[path] = f"…/{name}" + (f" ({counts[name]})" if counts[name] > 1 else "")
    return names
