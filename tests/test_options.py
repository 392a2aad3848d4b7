"""Functions that are called with the fields of a frozen dataclass: what users type, and what `help` shows of it."""

from __future__ import annotations

import inspect
from dataclasses import MISSING, fields

import pytest

import cbobench
from cbobench.errors import Misuse
from cbobench.params import ParamOptions, param
from cbobench.replay.replay import ReplayOptions, replay
from cbobench.report.compare import CompareOptions
from cbobench.report.plot import PlotOptions
from cbobench.suite.suite_file import LoadOptions, load
from cbobench.sweep.run import ExecuteOptions, PlanOptions, execute, plan
from cbobench.sweep.run_options import RunOptions

CALLED = [cbobench.compare, cbobench.plot, cbobench.run, plan, execute, load, param]
OPTIONS = {
    cbobench.compare: CompareOptions,
    cbobench.plot: PlotOptions,
    cbobench.run: RunOptions,
    plan: PlanOptions,
    execute: ExecuteOptions,
    load: LoadOptions,
    param: ParamOptions,
    replay: ReplayOptions,
}


@pytest.mark.parametrize("function", CALLED, ids=lambda function: function.__name__)
def test_help_says_what_each_keyword_means(function):
    signature, lines = inspect.signature(function), inspect.getdoc(function).splitlines()
    assert "Args:" in lines
    described = [
        name for line in lines if line.startswith("    ") for name in line.strip().partition(": ")[0].split(", ")
    ]
    assert [name for name in signature.parameters if name not in described] == []
    assert "options" not in signature.parameters


@pytest.mark.parametrize("function", OPTIONS, ids=lambda function: function.__name__)
def test_a_signature_has_the_fields_with_their_types_and_defaults(function):
    """As `help`, notebooks and editors show them."""
    parameters, options = inspect.signature(function).parameters, OPTIONS[function]
    declared = {f.name: f for f in fields(options)}
    assert parameters.keys() == declared.keys()
    assert list(parameters) == list(inspect.signature(options).parameters)
    for name, parameter in parameters.items():
        assert parameter.annotation == declared[name].type, name
        assert parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY), name
        default = parameter.empty if declared[name].default is MISSING else declared[name].default
        if inspect.isfunction(default):
            assert repr(parameter.default) == "...", "its address tells nothing"
        else:
            assert parameter.default == default, name


def test_a_wrong_keyword_is_a_line_with_the_nearest():
    for function, wrong, close in (
        (cbobench.compare, "bst", "best"),
        (cbobench.plot, "statistics", "statistic"),
        (cbobench.run, "cpu", "cpus"),
        (plan, "horizons", "horizon"),
    ):
        with pytest.raises(Misuse, match=f"unknown option '{wrong}'; did you mean '{close}'"):
            function("runs/absent", **{wrong: True})
