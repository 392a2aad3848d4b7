"""Functions that are called with the fields of a frozen dataclass: what users type, and what `help` shows of it."""

from __future__ import annotations

import inspect

import pytest

import cbobench
from cbobench.errors import Misuse
from cbobench.params import param
from cbobench.suite.suite_file import load
from cbobench.sweep.run import execute, plan

CALLED = [cbobench.compare, cbobench.plot, cbobench.run, plan, execute, load, param]


@pytest.mark.parametrize("function", CALLED, ids=lambda function: function.__name__)
def test_help_says_what_each_keyword_means(function):
    signature, lines = inspect.signature(function), inspect.getdoc(function).splitlines()
    assert "Args:" in lines
    described = [
        name for line in lines if line.startswith("    ") for name in line.strip().partition(": ")[0].split(", ")
    ]
    assert [name for name in signature.parameters if name not in described] == []
    assert "options" not in signature.parameters


def test_a_wrong_keyword_is_a_line_with_the_nearest():
    for function, wrong, close in (
        (cbobench.compare, "bst", "best"),
        (cbobench.plot, "statistics", "statistic"),
        (cbobench.run, "cpu", "cpus"),
        (plan, "horizons", "horizon"),
    ):
        with pytest.raises(Misuse, match=f"unknown option '{wrong}'; did you mean '{close}'"):
            function("runs/absent", **{wrong: True})
