"""Values that take long to compute, kept in the user's cache folder from one command to the next.

A value is read back only under the key that it was written with, and only from a folder and a file
that nobody else owns or may write. Where there is no such folder nothing is kept. Whoever deletes
it loses time alone.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from contextlib import suppress
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any


def read_value(name: str, key: bytes) -> Any:
    """Return the value that was last kept under a name if it has this key, else None.

    Args:
        name: of its file in the folder.
        key: all that the value follows from.
    """
    # A pipe in its place is not waited for.
    with suppress(OSError), open(_find_folder() / name, "rb", opener=_open_at_once) as file:
        seal, text = file.readline(), file.read()
        if _is_private(os.fstat(file.fileno())) and seal == _seal(key, text):
            return json.loads(text)
    return None


def _open_at_once(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def keep_value(name: str, key: bytes, value: Any) -> None:
    """Keep a value of JSON under a name, in place of the one before; its sets become lists."""
    # Renamed, so that no process reads half of it; on a full disk nothing is left.
    with suppress(OSError), NamedTemporaryFile(dir=_find_folder(), buffering=0) as file:
        text = json.dumps(value, default=sorted, separators=(",", ":")).encode()
        file.write(_seal(key, text) + text)
        Path(file.name).replace(Path(file.name).with_name(name))


def _find_folder() -> Path:
    """Return the folder, which is made if need be.

    Raises:
        OSError: the environment names none, or others could write it.
    """
    caches = "Library/Caches" if sys.platform == "darwin" else ".cache"
    home = Path(os.environ.get("HOME", ""), caches)
    folder = Path(os.environ.get("XDG_CACHE_HOME") or home, "cbobench")
    if folder.is_absolute():
        folder.parent.mkdir(mode=0o700, exist_ok=True)  # not the home folder: some users have none
        folder.mkdir(mode=0o700, exist_ok=True)
        if _is_private(folder.lstat()):  # nor is it a link, which may be anyone's
            return folder
    raise PermissionError(f"{folder} is no private folder")


def _is_private(place: os.stat_result) -> bool:
    """Return whether a folder or file is this user's, and nobody else may write it."""
    return place.st_uid == os.geteuid() and not place.st_mode & 0o022


def _seal(key: bytes, text: bytes) -> bytes:
    """Return the first line of a file, which no other key and no damaged text has."""
    return hashlib.sha256(hashlib.sha256(key).digest() + text).hexdigest().encode() + b"\n"
