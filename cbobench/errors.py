"""Errors a user can meet. Each is one line: what was given, what is allowed, and what to do next.

Given values may be huge, or hold control characters or secrets; `show`, `printable` and
`mask_secrets` make them fit.
"""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from reprlib import Repr
from typing import Any

MOST_NAMES = 20  # names that an error lists; for more it gives their number and the nearest
LONGEST = 500  # characters of the first line of an error
SHORTEST = 3  # characters of the beginning of a name that name it
# least similarity of a name that is meant, and of a further one
LIKE = 0.6
VERY_LIKE = 0.75
STRANGE = re.compile(
    "[\x00-\x1f\x7f-\x9f"  # control characters, among them the escape of terminals
    "\u2028\u2029"  # line separators
    "\u202a-\u202e\u2066-\u2069\u061c\u200e\u200f"  # controls of the direction of text
    # what is not seen, but for the joiners of some scripts
    "\u00ad\u180e\u200b\u2060-\u2064\u206a-\u206f\ufeff"
    "\U0001d173-\U0001d17a\U000e0000-\U000e007f"
    # halves of surrogate pairs, private use, no characters
    "\ud800-\udfff\ue000-\uf8ff\ufff9-\uffff]"
)
SECRET = re.compile(
    r"(?P<user>(?<=://)[^/\s'\"@:]*:[^\s'\"]*(?=@))"
    r"|(?P<name>[?&;][^=&\s]*(?:key|secret|token|passw|credential|sas|sig)[^=&\s]*=)[^&\s'\"]*",
    re.IGNORECASE,
)


class CbobenchError(Exception):
    """Base of every error that the command line prints as one line."""

    exit_code = 1


class Misuse(CbobenchError):
    """The request cannot be carried out as written (exit code 2). Nothing on disk has changed."""

    exit_code = 2


class DamagedRun(CbobenchError):
    """A run folder holds a damaged file (exit code 1)."""


class CellFailure(CbobenchError):
    """An algorithm or a problem broke its contract during a play; the cell becomes a failed row."""


class Interrupted(KeyboardInterrupt):
    """The user stops the sweep. Any other KeyboardInterrupt was raised by a cell and is its
    failure.
    """


class TimedOut(BaseException):
    """A cell took too long. Not an Exception, so that a cell that catches those does not catch
    this.
    """


class Advice(UserWarning):
    """A warning of one line, which the command line prints as such, each text once."""


class _Shown(Repr):
    """A bounded `repr`, also of subclasses of dict and list."""

    def repr1(self, x: Any, level: int) -> str:
        for kind in (dict, list, str):
            if isinstance(x, kind):
                return str(getattr(self, f"repr_{kind.__name__}")(x, level))
        return super().repr1(x, level)

    def repr_dict(self, x: Mapping[Any, Any], level: int) -> str:
        if level <= 0:
            return "{...}"
        parts = [
            f"{self.repr1(k, level - 1)}: {self.repr1(v, level - 1)}"
            for k, v in islice(x.items(), self.maxdict)
        ]
        if len(x) > self.maxdict:
            parts.append("...")
        return f"{{{', '.join(parts)}}}"


_shown = _Shown()
_shown.maxlevel = 3
_shown.maxdict = 6
_shown.maxlist = 8
_shown.maxstring = _shown.maxother = 120
_shown.maxlong = 60


def show(value: object) -> str:
    """Return the `repr`, cut if it is long or deep."""
    return _shown.repr(value)


def printable(text: str) -> str:
    """Return a text on one line, with escapes for characters that a terminal would act on or cannot
    show.
    """
    return STRANGE.sub(lambda match: match.group().encode("unicode_escape").decode(), text)


def mask_secrets(text: str) -> str:
    """Replace secrets in addresses by ***: `s3://KEY:SECRET@bucket`, `?secret_key=SECRET`."""
    return SECRET.sub(lambda match: f"{match['name']}***" if match["name"] else "***", text)


def refuse_strange(text: str, label: str, *, lines: bool = False) -> None:
    """Raise `Misuse` for a text with unprintable characters.

    Args:
        label: the text's name, with its place.
        lines: whether line breaks and tabs are allowed.
    """
    match = STRANGE.search(text.replace("\n", " ").replace("\t", " ") if lines else text)
    if match is not None:
        kinds = {
            "Cc": "control character",
            "Cs": "half of a surrogate pair: bytes that are no UTF-8",
        }
        kind = kinds.get(unicodedata.category(match.group()), "not for reading")
        name = unicodedata.name(match.group(), kind)
        raise Misuse(
            f"{label} {show(text)} holds U+{ord(match.group()):04X} ({name}); allowed: printable "
            "text"
        )


def find_causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error with its causes and contexts."""
    visited = set()
    waiting = [error]
    while waiting:
        cause = waiting.pop()
        if id(cause) not in visited:
            visited.add(id(cause))
            yield cause
            earlier = (cause.__cause__, cause.__context__)
            waiting += [error for error in earlier if error is not None]


def reraise_stop(error: BaseException) -> None:
    """Raise `KeyboardInterrupt` or `TimedOut` again if an error is one, or was caused by one; and
    what Ray raises in a worker that it ends, which is no failure of the cell at hand.

    A user's code may raise anything else, such as the SystemExit of `sys.exit`: that is a failure
    of its own. These come from outside, even where the code that they meet converts them.
    """
    for cause in find_causes(error):
        by_ray = hasattr(cause, "ray_terminate_msg")
        if by_ray or isinstance(cause, KeyboardInterrupt | TimedOut):
            raise cause


def one_line(error: BaseException) -> str:
    """Return the type of an error and the first line of its message."""
    kind = type(error).__name__
    try:
        lines = str(error).strip().splitlines()
    except BaseException as another:  # a user's error may fail to print
        reraise_stop(another)
        return f"{kind} (its message cannot be read)"
    if lines:
        return printable(mask_secrets(f"{kind}: {lines[0][:LONGEST]}"))
    return kind


def words_of(noun: str, value: Any) -> list[str]:
    """Return the names that a reader gives, one or several. Raises `Misuse` for other types."""
    names = [value] if isinstance(value, str) or not isinstance(value, Iterable) else list(value)
    if not all(isinstance(word, str) for word in names):
        raise Misuse(f"{noun} is {show(value)}; give a name, or a list of names")
    return names


def nearest(text: str, allowed: Iterable[str]) -> str | None:
    """Return the allowed name that is most likely meant, or None if none is close."""
    return next(iter(find_near(text, allowed)), None)


def find_near(text: str, allowed: Iterable[str]) -> list[str]:
    """Return the allowed names that may be meant, the most likely first.

    Those with the same words in another order, else the first by alphabet that begins so; and the
    one with the most letters in common.
    """
    lower = {name.lower(): name for name in allowed}
    word = str(text)[:LONGEST].lower()
    parts = sorted(re.split("[-_ ]", word))
    close = [name for name in lower if sorted(re.split("[-_ ]", name)) == parts]
    if not close and len(word) >= SHORTEST:
        close = sorted(name for name in lower if name.startswith(word))[:1]
    close += difflib.get_close_matches(word, list(lower), n=1, cutoff=VERY_LIKE if close else LIKE)
    return [lower[name] for name in dict.fromkeys(close)]


def unknown(
    noun: str,
    value: object,
    allowed: Iterable[str],
    *,
    location: str = "",
    listing: str = "",
    then: str = "",
    most: int = 0,
) -> Misuse:
    """Return a `Misuse` for an unknown name, with the nearest one, and all allowed names if they
    are few.

    Args:
        location: file and line, at the start of the message.
        listing: the command that lists all names.
        then: other allowed input.
        most: up to how many names all are listed, `MOST_NAMES` by default.
    """
    names = sorted({str(name) for name in allowed})
    close = find_near(value, names) if isinstance(value, str) else []
    parts = [f"{location}unknown {noun} {show(value)}"]
    if close and close[0] != value:
        parts.append(f"did you mean {' or '.join(map(repr, close))}?")
    if len(names) <= (most or MOST_NAMES):
        parts.append(f"allowed: {', '.join(names) or 'none'}")
    else:
        parts.append(f"there are {len(names)}" + (f": {listing}" if listing else ""))
    if then:
        parts.append(then)
    return Misuse("; ".join(parts))


def wrong_value(name: str, value: object, allowed: str, location: str = "") -> Misuse:
    """Return a `Misuse` for a value of another kind, or out of its range.

    Args:
        location: file and line, at the start of the message.
    """
    return Misuse(f"{location}{name} is {show(value)}; allowed: {allowed}")
