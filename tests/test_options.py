"""Functions that are called with the fields of a frozen dataclass: what users type, and what `help`
shows of it.
"""

from __future__ import annotations

import inspect
from dataclasses import MISSING, fields

import pytest

import cbobench
from cbobench.errors import Misuse
from cbobench.params import ParamOptions, param
from cbobench.report.compare import CompareOptions
from cbobench.report.figures.plot import PlotOptions
from cbobench.suite.call import Call

CALLED = [cbobench.compare, cbobench.plot, cbobench.run, param]
OPTIONS = {
    cbobench.compare: CompareOptions,
    cbobench.plot: PlotOptions,
    param: ParamOptions,
}


@pytest.mark.parametrize("function", CALLED, ids=lambda function: function.__name__)
def test_help_says_what_each_keyword_means(function):
    signature, lines = inspect.signature(function), inspect.getdoc(function).splitlines()
    assert "Args:" in lines
    described = [
        name
        for line in lines
        if line.startswith("    ")
        for name in line.strip().partition(": ")[0].split(", ")
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
        assert parameter.default == default, name


def test_a_run_is_called_with_what_a_call_chooses_and_who_is_told():
    parameters = inspect.signature(cbobench.run).parameters
    fields_of_call = [name for name in inspect.signature(Call).parameters if name != "command"]
    assert [*parameters] == [*fields_of_call, "on_receipt", "on_note"]
    assert parameters["cpus"] == inspect.signature(Call).parameters["cpus"]
    with pytest.raises(Misuse, match="unknown option 'command'"):
        cbobench.run("quickstart", command=["x"])


def test_a_wrong_keyword_is_a_line_with_the_nearest():
    for function, wrong, close in (
        (cbobench.compare, "rank", "ranks"),
        (cbobench.plot, "statistics", "statistic"),
        (cbobench.run, "cpu", "cpus"),
        (cbobench.run, "on_notes", "on_note"),
    ):
        with pytest.raises(Misuse, match=f"unknown option '{wrong}'; did you mean '{close}'"):
            function("runs/absent", **{wrong: True})
