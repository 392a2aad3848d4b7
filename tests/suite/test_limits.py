"""Suites that mean harm, or were made by accident: one line, soon, with nothing expanded or
written.
"""

from __future__ import annotations

import os
import sys
import tracemalloc
from contextlib import contextmanager
from pathlib import Path

import pytest

from cbobench.cli import main
from cbobench.errors import Misuse, mask_secrets, one_line, printable, refuse_strange, show
from cbobench.suite import yamlio
from cbobench.sweep import blocks
from tests.conftest import ROOT, calls
from tests.helpers import load, long

GOOD = """\
suite: s
horizon: 10
seeds: 3
problems:
  - rkhs-1d: {h: 0.25}
algorithms:
  - ckb-ucb
"""


def bomb(levels=5):
    """A list of 9^levels texts in a few hundred characters."""
    text = "&l0 [x, x, x, x, x, x, x, x, x]"
    for i in range(1, levels + 1):
        text = f"&l{i} [{text}, {', '.join([f'*l{i - 1}'] * 8)}]"
    return text


BOMBS = {
    "value": ("horizon: 10", "horizon: {}"),
    "key": ("horizon: 10", "? {}\n: 10"),
}  # fmt: skip
AXES = ("h", "lengthscale", "B", "G", "noise_f")
SWEEP = "{sweep: [" + ", ".join(str(i / 100) for i in range(1, 101)) + "]}"
WRONG = {
    "a sweep of 100^5": (
        ("{h: 0.25}", "{" + ", ".join(f"{axis}: {SWEEP}" for axis in AXES) + "}"),
        r"suite.yaml:5: 100 h x 100 lengthscale x .* = 10,000,000,000 variants of 'rkhs-1d'; "
        r"allowed: 10,000",
    ),
    "a range of 10^17": (
        ("{h: 0.25}", "{instance: {sweep: 1-99999999999999999}}"),
        r"suite.yaml:5: 10,001 instance = 10,001 variants of 'rkhs-1d'; allowed: 10,000",
    ),
    "pairs": (
        (
            "0.25}\nalgorithms:\n",
            f"{SWEEP}, B: {SWEEP}}}\nalgorithms:\n  - ckb-rand: {{beta_scale: {SWEEP}}}\n",
        ),
        "10,000 problems x 101 algorithms = 1,010,000 pairs; allowed: 100,000",
    ),
    "cells": (
        (
            "seeds: 3\nproblems:\n  - rkhs-1d: {h: 0.25}",
            "seeds: {first: 0, count: 1000000}\nproblems:\n  - rkhs-1d: {h: {sweep: ["
            + "0.1, 0.2, 0.3, 0.4, 0.5, 0.6, "
            "0.7, 0.8, 0.9, 0.11, 0.12]}}",
        ),
        "11 pairs x 1,000,000 seeds = 11,000,000 cells; allowed: 10,000,000",
    ),
    "a list as a mapping": (
        ("{h: 0.25}", "!!map [1]"),
        "suite.yaml:5: not valid YAML: expected a mapping",
    ),
    "an empty int": (
        ("seeds: 3", "seeds: !!int ''"),
        "suite.yaml: not valid YAML: ",
    ),
    "a number of 5,000 digits": (
        ("seeds: 3", "seeds: 1" + 5000 * "0"),
        "not valid YAML: ValueError: ",
    ),
    "bytes": (
        ("0.25", "!!binary aGk="),
        "could not determine a constructor for the tag '.*binary'",
    ),
    "itself": (
        ("seeds: 3", "seeds: &a [*a]"),
        "suite.yaml:3: not valid YAML: an alias within what it stands for",
    ),
    "deep": (
        ("seeds: 3", "seeds: " + 300 * "[" + 300 * "]"),
        "suite.yaml:3: nested more than 20 deep",
    ),
    "deep by aliases": (
        (
            "seeds: 3",
            "about: [&a0 [], "
            + ", ".join(f"&a{i} [*a{i - 1}]" for i in range(1, 40))
            + "]\nseeds: 3",
        ),
        "suite.yaml:3: nested more than 20 deep",
    ),
    "many": (
        ("seeds: 3", f"seeds: [{', '.join(map(str, range(3000)))}]"),
        "more than 2,000 keys and values",
    ),
    "large": (
        ("seeds: 3", "seeds: 3\n#" + 10**6 * "#"),
        "is larger than a suite may be; allowed: 1,000,000",
    ),
    "half a surrogate": (
        ("h: 0.25", r'label: "a\ud800"'),
        r"suite.yaml:5: label 'a\\ud800' holds U\+D800 \(half of",
    ),
    "an escape": (
        ("h: 0.25", r'label: "\e[31mred"'),
        r"label '\\x1b\[31mred' holds U\+001B \(control character\)",
    ),
    "two lines": (("h: 0.25", r'label: "a\nb"'), r"holds U\+000A \(control character\)"),
    "a direction": (("h: 0.25", r'label: "a\u202eb"'), r"holds U\+202E \(RIGHT-TO-LEFT OVERRIDE\)"),
    "no character": (
        ("rkhs-1d: {h: 0.25}", r'table: {rows: "a\0b.csv"}'),
        r"rows 'a\\x00b.csv' holds U\+0000",
    ),
    "a long label": (
        ("h: 0.25", f"label: {201 * 'x'}"),
        "suite.yaml:5: 'label' has 201 characters; allowed: 200",
    ),
    "a seed past the last": (
        ("seeds: 3", f"seeds: {{first: {2**62}, count: 2}}"),
        "allowed: a count, a list",
    ),
    "too many seeds": (
        ("seeds: 3", "seeds: 1000000000"),
        "; from 1 to [0-9,]+ different ones",
    ),
    "code with an end of line": (("- ckb-ucb", r'- "evil:X\n"'), r"holds U\+000A"),
}


def refused(path, message):
    def refuse():
        nonlocal text
        with pytest.raises(Misuse, match=message) as error:
            load(path, imports=False)
        text = str(error.value)

    text = ""
    assert calls(refuse) < 200 * yamlio.MAX_NODES, (
        "a few per character, none for what is behind an alias"
    )
    assert len(text) < 2000
    assert printable(text) == text, "one line, which a terminal may see"


@pytest.mark.parametrize("position", ["value", "key"])
def test_an_alias_bomb_is_counted_and_not_expanded(write_suite, position):
    old, new = BOMBS[position]
    assert old in GOOD
    refused(
        write_suite(GOOD.replace(old, new.format(bomb()), 1)),
        r"suite.yaml:\d: more than 20,000 keys and values",
    )


@pytest.mark.parametrize("how", WRONG)
def test_what_is_refused(write_suite, monkeypatch, how):
    monkeypatch.setattr(yamlio, "MAX_NODES", 2000)  # to read 20,000 takes a second
    (old, new), message = WRONG[how]
    assert old in GOOD
    refused(write_suite(GOOD.replace(old, new, 1)), message)


def test_an_alias_that_is_small_may_be_used_twice(write_suite):
    twice = GOOD.replace("- rkhs-1d: {h: 0.25}", "- rkhs-1d: &h {h: 0.25}").replace(
        "0.25}", "0.25, label: L}"
    )
    twice = twice.replace("algorithms", "  - mine_not_asked: *h\nalgorithms")
    content = yamlio.read(write_suite(twice))
    assert (
        content["problems"][0]["rkhs-1d"]
        == content["problems"][1]["mine_not_asked"]
        == {"h": 0.25, "label": "L"}
    )
    with pytest.raises(Misuse, match="unknown problem 'mine_not_asked'"):
        load(write_suite(twice))


def test_bytes_that_are_no_utf8(tmp_path, capsys):
    path = tmp_path / "latin.yaml"
    path.write_bytes(GOOD.encode() + b"about: caf\xe9\n")
    with pytest.raises(Misuse, match=r"latin.yaml is not text in UTF-8: byte \d+ is 0xe9"):
        load(path)
    named = tmp_path / os.fsdecode(b"caf\xe9.yaml")
    named.write_text(GOOD)
    with pytest.raises(
        Misuse, match=r"the suite's file name .*caf\\udce9.yaml' holds U\+DCE9 \(half of"
    ):
        load(named)
    for arguments in (
        ["run", str(named)],
        ["run", "quickstart", "--out", str(tmp_path / "r\udce9")],
        ["status", "\x1b[2J"],
    ):
        assert main(arguments) == 2
        text = capsys.readouterr().err
        assert text.startswith("cbobench: the argument ")
        assert printable(text[:-1]) == text[:-1]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["caf\udce9.yaml", "latin.yaml"]


def test_what_is_shown_is_bounded():
    tree = yamlio.copy_without_lines(
        {"a": {"b": {"c": {"d": 1}}}, **{str(i): list(range(100)) for i in range(100)}}
    )
    assert len(show(tree)) < 1000
    assert show(tree).startswith("{'a': {'b': {'c': {...}}}, '0': [0, 1,")
    assert len(show("x" * 10**6)) == 120
    assert show("a\x1b") == r"'a\x1b'"
    assert show([1, "a", None, 0.5]) == "[1, 'a', None, 0.5]"

    class Mute(Exception):
        def __str__(self):
            raise ValueError("nothing")

    assert one_line(Mute()) == "Mute (its message cannot be read)"
    assert one_line(ValueError("a\x1b[1m\nb")) == r"ValueError: a\x1b[1m"
    refuse_strange("λ₊ é 漢字 👩‍💻", "a label")


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("s3://KEY:SECRET@bucket/run", "s3://***@bucket/run"),
        ("cannot use 's3://K:SE/CR+ET@b/x' as a", "cannot use 's3://***@b/x' as a"),
        (
            "s3://b/x?region=eu&secret_key=SECRET&access_key=K",
            "s3://b/x?region=eu&secret_key=***&access_key=***",
        ),
        ("gs://b?Session_Token=T&scheme=http", "gs://b?Session_Token=***&scheme=http"),
        ("s3://bucket/a@b and file:///tmp/a@b", "s3://bucket/a@b and file:///tmp/a@b"),
    ],
)
def test_secrets_of_addresses_are_masked(text, masked):
    assert mask_secrets(text) == masked


def test_the_page_on_security_tells_the_limits():
    text = " ".join((ROOT / "SECURITY.md").read_text().split())
    for number, noun in (
        (yamlio.MAX_BYTES, "bytes"),
        (yamlio.MAX_NODES, "keys and values"),
        (yamlio.MAX_DEPTH, "levels"),
        (yamlio.MAX_TEXT, "characters per text"),
        (yamlio.MAX_LABEL, "per label"),
        (yamlio.MAX_NAME, "in the suite's name"),
        (yamlio.MAX_VARIANTS, "variants per entry"),
        (yamlio.MAX_PAIRS, "pairs"),
        (yamlio.MAX_CELLS, "cells"),
    ):
        assert f"{number:,} {noun}" in text
    assert (yamlio.MAX_HORIZON, blocks.CELL_MEMORY // 10**9) == (10**9, 4)


SIMULATOR = """
import numpy as np
from pathlib import Path
from cbobench.problems.simulators.simulator import Simulator

class Slow(Simulator):
    low, high, m, noisy = (0.0,), (1.0,), 1, False

    def simulate(self, x, gen):
        Path("simulated").touch()
        return 0.0, 0.0
"""
MEGABYTE = 2**20


@pytest.fixture
def simulator(tmp_path, monkeypatch):
    (tmp_path / "sim_of_limits.py").write_text(SIMULATOR)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    yield "sim_of_limits:Slow"
    sys.modules.pop("sim_of_limits", None)


def write_large(simulator, variants, seeds="1000000"):
    swept = (
        f"{{beta_scale: {{sweep: [{', '.join(str(i / 100) for i in range(1, variants + 1))}]}}}}"
    )
    text = (
        f"suite: large\nhorizon: 20\nseeds: {seeds}\nproblems: [{simulator}]\nalgorithms:\n  - "
        f"ckb-rand: {swept}\n"
    )
    Path("large.yaml").write_text(text)
    return Path("large.yaml")


@contextmanager
def allocates_less(limit):
    """What is refused by its size is not made before."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < limit
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("seeds", ["{first: 7, count: 1000000}", *long("1000000")])
@pytest.mark.parametrize("only", ["*/ckb-rand*", *long(None, "*")])
def test_too_many_cells_are_refused_before_anything_is_made_or_simulated(simulator, only, seeds):
    path = write_large(simulator, 41, seeds)
    refusal = "41 pairs x 1,000,000 seeds = 41,000,000 cells; allowed: 10,000,000"
    with pytest.raises(Misuse, match=refusal), allocates_less(10 * MEGABYTE):
        load(path, only=only)
    assert not Path("simulated").exists()
