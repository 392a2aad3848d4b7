"""Suites and run folders changed at random: each is taken, or refused in one line with exit code 1
or 2.

Never a traceback, never a change on disk. The examples are the same in every run; the long forms
have sixty times as many.
"""

from __future__ import annotations

import contextlib
import functools
import io
import json
import re
import shutil
from pathlib import Path
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cbobench.cli import main, make_parser
from cbobench.errors import printable

SUITES, FOLDERS = 12, 6  # examples of a short form
LONG = 60  # times as many in a long one
# to build one takes a third of the time in which a suite is read
same_parser = functools.cache(make_parser)
FORMS = pytest.mark.parametrize("times", [1, pytest.param(LONG, marks=pytest.mark.long)])
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
BOMB = "&l0 [x, x, x, x, x, x, x, x, x]"
for _level in range(1, 9):
    BOMB = f"&l{_level} [{BOMB}, {', '.join([f'*l{_level - 1}'] * 8)}]"
HAZARDS = (
    BOMB,
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


def contents(folder: Path):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


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
    # what it begins
    err = "".join(line for line in err.splitlines(True) if not line.startswith("dry run: "))
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


RUN = {
    "suite": "s", "horizon": 5, "seeds": 2,
    "problems": [{"rkhs-1d": {"h": 0.25}}], "algorithms": ["ckb-ucb", "random"],
}  # fmt: skip


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """A run folder: its files by path, and the suite of it."""
    folder = tmp_path_factory.mktemp("played")
    (folder / "suite.yaml").write_text(json.dumps(RUN))
    assert called(["run", folder / "suite.yaml", "--out", folder / "run", "--cpus", "0"])[0] == 0
    files = contents(folder / "run").items()
    return lambda: {path.relative_to(folder / "run"): content for path, content in files}


def in_column(table, name, values):
    """A table with other values in a column."""
    return table.set_column(table.column_names.index(name), name, values)


TABLES = {
    "column away": lambda table, name: table.drop_columns([name]),
    "column of texts": lambda table, name: in_column(
        table, name, pa.array(["a\x1b[31m"] * len(table))
    ),
    "column of nulls": lambda table, name: in_column(
        table, name, pa.nulls(len(table), table.schema.field(name).type)
    ),
    "column of lists": lambda table, name: in_column(table, name, pa.array([[1.5]] * len(table))),
    "rows twice": lambda table, name: pa.concat_tables([table, table]),
    "no rows": lambda table, name: table.slice(0, 0),
    "footer": lambda table, name: table,
}
"""Changes of a table, most of them of a column."""


def table_changed(content, how, number):
    """A Parquet file that says something else, and is one."""
    table = pq.read_table(io.BytesIO(content))
    meta = table.schema.metadata
    footer = {
        b"cbobench": [b"[]", b"{}", b"\xff", b"1", b"[" * 5000, meta[b"cbobench"]][number % 6]
    }
    table = TABLES[how](table, table.column_names[number % table.num_columns])
    sink = io.BytesIO()
    pq.write_table(table.replace_schema_metadata(footer if how == "footer" else meta), sink)
    return sink.getvalue()


PLACE, NUMBER = st.integers(0, 10**6), st.integers(0, 255)
CHANGES = st.one_of(
    st.tuples(st.just("flip"), PLACE, st.integers(1, 255)),
    st.tuples(st.just("cut"), PLACE, NUMBER),
    st.tuples(st.just("zero"), PLACE, st.integers(1, 64)),
    st.tuples(st.sampled_from(["swap", "away", "renamed", "folder", "text"]), PLACE, NUMBER),
    st.tuples(st.sampled_from([*TABLES]), PLACE, NUMBER),
    st.tuples(st.just("json"), PLACE, VALUES),
)
COMMANDS = ("status", "compare", "claims", "run")


BYTES = {
    "flip": lambda content, at, bits: (
        content[:at] + bytes([content[at] ^ bits]) + content[at + 1 :] if content else b""
    ),
    "cut": lambda content, at, _: content[:at],
    "zero": lambda content, at, count: content[:at] + bytes(count) + content[at + count :],
    "text": lambda content, at, token: TOKENS[token % len(TOKENS)].encode(),
}
"""Changes of a file's content, most of them at a place."""


def changed(files, which, change):
    """The files of a run with one of them changed."""
    how, position, detail = change
    path = sorted(files)[which % len(files)]
    content = files.pop(path)
    if how in BYTES:
        files[path] = BYTES[how](content, position % max(len(content), 1), detail)
    elif how == "swap" and files:
        second = sorted(files)[position % len(files)]
        files[path], files[second] = files[second], content
    elif how in ("renamed", "folder"):
        files[path.with_name(f"other{path.suffix}") if how == "renamed" else path / "within"] = (
            content
        )
    elif how in TABLES and path.suffix == ".parquet" and content[-4:] == b"PAR1":
        with contextlib.suppress(pa.ArrowException, OSError, KeyError, TypeError):
            content = table_changed(content, how, position)
        files[path] = content
    elif how == "json" and (record := Path("run.json")) in {*files, path}:
        files.setdefault(path, content)
        with contextlib.suppress(ValueError):
            record_content = json.loads(files[record])
            spots = sorted(places(record_content), key=str)
            files[record] = json.dumps(
                replaced(record_content, spots[position % len(spots)], detail)
            ).encode()
    return files


def write_changed(folder, files, changes):
    """Write a run folder with some of its files changed, in place of the one before."""
    for which, change in changes:
        if files:
            files = changed(files, which, change)
    shutil.rmtree(folder, ignore_errors=True)
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)


@FORMS
def test_run_folders_changed_at_random(place, played, times):
    run, suite = place / "run", place / "suite.yaml"
    suite.write_text(json.dumps(RUN))

    @settings(max_examples=FOLDERS * times, **ALIKE)
    @given(
        st.lists(st.tuples(st.integers(0, 20), CHANGES), min_size=1, max_size=2),
        st.sampled_from(COMMANDS),
    )
    def check(changes, command):
        write_changed(run, played(), changes)
        before = contents(place)
        with mock.patch("cbobench.sweep.dry_run.estimate", return_value=""):
            one_line_or_nothing(
                ["run", suite, "--out", run, "--dry-run"] if command == "run" else [command, run]
            )
        assert contents(place) == before

    check()
    shutil.rmtree(run)
