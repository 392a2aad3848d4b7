"""Paths on a page: a reader elsewhere needs the name of a file, and not where it lies on somebody's
machine.
"""

from __future__ import annotations

import re

START = r"(?:file://)?(?:~|…)?/(?!/)"
PATH = re.compile(
    rf"(?:(?<=&#x27;)|(?<=&quot;)){START}[^&\n<]*"  # behind a quote, where it may hold spaces
    rf"|(?<![\w./~…<-]){START}[^\s&<>()\[\]{{}},;:|=*?]+"
)
PACKAGES = (
    re.compile(r".*/(?:site-packages|dist-packages|lib/python3\.\d+)/(?=.)"),
    re.compile(r".*/(?=cbobench/.*\.py$)"),
)
"""What stands before the path of a file within its package."""


def shorten_paths(html: str) -> str:
    """Escaped text, or HTML, in which every absolute path is shortened.

    A file of a package is named from the package on, another one by its last name alone.
    """
    return PATH.sub(lambda match: _shorten(match[0]), html)


def _shorten(path: str) -> str:
    place = path.removeprefix("file://").rstrip("/")
    if place.startswith("/") and place.count("/") == 1:
        return path  # one name behind a slash may be anything
    for package in PACKAGES:
        if match := package.match(place):
            return place[match.end() :]
    return f"…/{place.rpartition('/')[2]}"
