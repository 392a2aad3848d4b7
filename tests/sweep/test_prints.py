"""What cells print: 16 MB of it reach no terminal, and one line says so, whoever plays."""

from __future__ import annotations

import gc
import logging
import sys

import pytest

from cbobench.play.isolation import captured_output

LOUD = """
import os, sys, warnings
from cbobench.algorithms.references import Random


class Loud(Random):
    def ask(self, t):
        print("round", t)
        sys.stderr.write("\\x1b[31mred\\n" * 40_000)
        sys.stdout.buffer.write(b"bytes")
        os.write(1, b"x" * 100_000)
        os.write(sys.stderr.fileno(), b"y" * 100_000)
        warnings.warn("careful")
        return super().ask(t)
"""


@pytest.fixture
def loud(write_suite, tmp_path, cli):
    (tmp_path / "loud.py").write_text(LOUD)
    suite = write_suite("suite: s\nhorizon: 4\nseeds: 3\nproblems: [rkhs-1d]\nalgorithms: [loud:Loud]\n")

    def play(players, cpus):
        done = cli("run", suite, "--cpus", cpus, "--block", 1, players=players)
        assert done.returncode == 0, done.stderr[-2000:]
        return done.stdout + done.stderr

    return play


@pytest.mark.parametrize("players", [None, pytest.param("ray", marks=pytest.mark.long)])
def test_what_cells_print_is_not_shown_and_one_line_says_so(loud, players):
    said = loud(players, 2)
    assert len(said) < 5000
    line = "what cells print is shown only with --cpus 0; rkhs-1d / loud:Loud began with 'round 1'"
    assert [found for found in said.splitlines() if "cells print" in found] == [line]


def test_who_keeps_a_stream_of_an_earlier_play_may_write_to_it():
    with captured_output():
        kept, handler = sys.stdout, logging.StreamHandler()
    with captured_output() as printed:
        kept.write("late\n")
        handler.emit(logging.makeLogRecord({"msg": "late"}))
        del kept, handler
        gc.collect()
        print("now")
    assert printed.line() == "now"
