"""Suites changed at random: each is taken, or refused in one line with exit code 1 or 2.

Never a traceback, never a change on disk. The examples are the same in every run; the long forms
have sixty times as many.
"""

from __future__ import annotations

import contextlib
import functools
import io
import json
import re
from unittest import mock

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cbobench.cli import main, make_parser
from cbobench.errors import printable
from tests.helpers import long
from tests.suite.test_limits import bomb

SUITES = 12  # examples of a short form
LONG = 60  # times as many in a long one
# to build one takes a third of the time in which a suite is read
same_parser = functools.cache(make_parser)
FORMS = pytest.mark.parametrize("times", [1, *long(LONG)])
ALIKE = {
    "derandomize": True,
    "database": None,
    "deadline": None,
    "suppress_health_check": list(HealthCheck),
}

SUITE = """\
suite: s
about: words
horizon: 5
seeds: {first: 0, count: 2}
record: {rounds: 3}
shared: {beta_scale: 0.2}
problems:
  - rkhs-1d: {h: 0.25, tail: 4.0, label: "one [h]"}
  - rkhs: {d: 1, n: 12, m: 2, kernel: matern32}
algorithms:
  - random
  - ckb-rand: {beta_scale: {sweep: [0.2, 1.0]}, lam: theory}
"""
TOKENS = (
    "[",
    "]",
    "{",
    "}",
    ": ",
    "- ",
    ", ",
    "&a ",
    "*a",
    "<<: *a",
    "!!map ",
    "!!seq ",
    "!!int ",
    "!!binary ",
    "!!set ",
    "!!python/name:os.system ",
    "---\n",
    "...\n",
    "%YAML 9.9\n",
    "\t",
    "\n",
    "\n  ",
    "#",
    "'",
    '"',
    "|\n",
    ">\n",
    "? ",
    "@",
    "`",
    "~",
    "null",
    "true",
    "no",
    ".nan",
    ".inf",
    "-1",
    "0",
    "1e400",
    "1e-400",
    "9" * 30,
    "9" * 5000,
    "1.5",
    "label: ",
    "sweep: ",
    "{sweep: []}",
    "{sweep: [1, [2], {a: 3}]}",
    "theory",
    "oracle",
    "stocks",
    "evil:X",
    "a.b:",
    ":",
    "ckb-ucb",
    "../..",
    "/etc/passwd",
    "\\",
    '"\\e[31m"',
    '"\\ud800"',
    '"\\0"',
    "\x1b",
    "\x85",
    "\u2028",
    "\u202e",
    "\ufeff",
    "é",
    "漢",
    "😀",
    "x" * 300,
    "[" * 50,
    "grid: 9999",
    "d: 50",
    "n: 100000000",
)
HAZARDS = (
    bomb(8),
    "!!map [1]",
    "!!seq {a: 1}",
    "!!int ''",
    "!!float ''",
    "!!binary aGk=",
    "!!set {a}",
    "!!timestamp 2001-01-01",
    "&a [*a]",
    "&a {b: *a}",
    '"a\\ud800"',
    '"\\e[31m"',
    '"a\\nb"',
    '"\\0"',
    "9" * 5000,
    "[" * 5000,
    "x" * 20_000,
    "{sweep: [{a: 1}]}",
    "{sweep: {sweep: [1]}}",
    "{first: 0, count: 99999999}",
    "../../x",
    "[[], [[]], null]",
    "? [a, b]\n: 1",
)
VALUES_AT = [match.span() for match in re.finditer(r"(?<=: )[^,}\n]+|(?<=- )\w[\w-]+", SUITE)]
CUTS = st.one_of(
    st.tuples(st.integers(0, len(SUITE)), st.integers(0, 30), st.sampled_from(["", *TOKENS])),
    st.tuples(
        st.sampled_from([(start, end - start) for start, end in VALUES_AT]),
        st.sampled_from(HAZARDS),
    ).map(lambda drawn: (*drawn[0], drawn[1])),
)
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=10),
    st.sampled_from(TOKENS),
    st.sampled_from(
        [
            0,
            1,
            2,
            10**6,
            2**62,
            2**70,
            -0.0,
            1e101,
            1e-320,
            "rkhs",
            "random",
            "ckb-ts",
            "norm",
            "label",
        ]
    ),
)
VALUES = st.recursive(
    LEAVES,
    lambda s: st.lists(s, max_size=3) | st.dictionaries(st.text(max_size=4), s, max_size=3),
    max_leaves=6,
)


def cut(text, cuts):
    """A text with pieces taken out and others put in."""
    for start, length, token in cuts:
        text = text[:start] + token + text[start + length :]
    return text


def places(value, path=()):
    """The path of everything within a value of JSON."""
    yield path
    for key, item in (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    ):
        yield from places(item, (*path, key))


def replaced(value, path, new):
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = replaced(copy[path[0]], path[1:], new)
    return copy


def called(arguments):
    """Exit code and what was printed of a command in this process; whatever it raises fails the
    test.
    """
    out, err = io.StringIO(), io.StringIO()
    ready_parser = mock.patch("cbobench.cli.arguments.make_parser", same_parser)
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), ready_parser:
        code = main([str(argument) for argument in arguments])
    return code, out.getvalue(), err.getvalue()


def one_line_or_nothing(arguments):
    code, out, err = called(arguments)
    assert code in (0, 1, 2)
    assert code or not err
    if err:
        assert err.startswith("cbobench: ")
        assert len(err) < 5000
        assert printable(err[:-1]) + "\n" == err
    assert "\x1b" not in out
    return code


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("fuzz")


def dry_run(place, suite):
    """What is asked of a suite: everything but to play it."""
    (place / "suite.yaml").write_bytes(suite)

    def named(todo, *_):
        """All that would be written and shown of it."""
        text = json.dumps(todo.suite.grid.to_json(), ensure_ascii=False)
        assert printable(text) == text.encode().decode()
        return text

    with mock.patch("cbobench.sweep.dry_run.estimate", named):
        code = one_line_or_nothing(
            ["run", place / "suite.yaml", "--out", place / "run", "--dry-run", "--no-imports"]
        )
    assert [path.name for path in place.iterdir()] == ["suite.yaml"]
    return code


def test_the_suite_that_is_changed_is_good(place):
    assert dry_run(place, SUITE.encode()) == 0


@FORMS
def test_texts_changed_at_random(place, times):
    @settings(max_examples=SUITES * times, **ALIKE)
    @given(st.lists(CUTS, min_size=1, max_size=3))
    def check(cuts):
        assert dry_run(place, cut(SUITE, cuts).encode()) in (0, 2)

    check()


PARSED = {
    "suite": "s",
    "about": "words",
    "horizon": 5,
    "seeds": {"first": 0, "count": 2},
    "record": {"rounds": 3},
    "shared": {"beta_scale": 0.2},
    "problems": [
        {"rkhs-1d": {"h": 0.25, "tail": 4.0, "label": "one"}},
        {"rkhs": {"d": 1, "n": 12, "m": 2}},
    ],
    "algorithms": ["random", {"ckb-rand": {"beta_scale": {"sweep": [0.2, 1.0]}, "lam": "theory"}}],
}


@FORMS
def test_values_changed_at_random(place, times):
    """JSON is YAML: escapes that JSON writes for half a surrogate pair come as they are."""

    @settings(max_examples=SUITES * times, **ALIKE)
    @given(st.sampled_from(sorted(places(PARSED), key=str)), VALUES)
    def check(path, value):
        assert dry_run(place, json.dumps(replaced(PARSED, path, value)).encode()) in (0, 2)

    check()
