"""Every parameter of every algorithm changes some result, on one of a few small problems.

Alternatives come from a parameter's type. Where a parameter acts only beside another one's value
(N, points of a discrete law), that value is found by trying, soonest where `HINTS` names it. A new
algorithm is entered by being registered; one with a parameter that nothing depends on fails.
"""

from __future__ import annotations

import functools
import itertools
import types
import typing
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pytest

from cbobench.algorithms import ALGORITHMS
from cbobench.algorithms.references import IGPUCB
from cbobench.errors import CbobenchError, Misuse
from cbobench.params import build, param, params_of
from tests.helpers import actions, entry, long, play, problem

PROBLEMS = {
    "grid": {"name": "rkhs", "d": 2, "n": 36, "full_information": True},
    "drift": {
        "name": "feasible-pocket-drift",
        "candidates": 16,
        "first_change": 8,
        "second_change": 16,
    },
    "delay": {"name": "feasible-pocket-delayed", "grid": 9, "delay": 3.0},
    "box": {"name": "feasible-pocket", "candidates": 16},
    "exact": {"name": "gramacy", "noise_f": 0.0, "noise_g": 0.0},
}
UNDER_WAY = "three evaluations under way"
# where a parameter may act, if not everywhere
PLACES = {"pending": ("delay", UNDER_WAY), "copula": ("box",), "anchored": ("exact",)}
SHORT, LONG = 30, 90
ACTIVE = {"beta_scale": 0.05, "B": "sup"}  # so that constraints bind within few rounds
BRIEF = {"first_f": 1, "first_g": 1, "later_f": 1, "later_g": 1}  # ADMM iterations of two rounds
# by a parameter's name: beside which other values it acts
HINTS: dict[str, list[dict[str, Any]]] = {
    **{name: [ACTIVE, BRIEF | {"iterations": 1}] for name in ("delta", "rho", "V", "slack")},
    **{name: [BRIEF] for name in ("later_f", "later_g", "tolerance", "iterations")},
    **{name: [{"law": "discrete-gaussian"}] for name in ("points", "low", "high")},
    **{name: [{"S": 5}] for name in ("cap", "psi", "c")},
    "n": [{"psi": "power", "S": 5}],
    "L": [{"metric": "input"}],
    "longest": [{"length": 0.3, "successes": 1}],
    "first": [{"keep": False}],
    "anew": [{"shortest": 0.3}],
    "subtract_mean": [{"points": 1}],
    "threshold": [{"beta_scale": 0.03}],
    "G": [{"lam": 0.3}],
    "stop_when_infeasible": [{"beta": 0.3}],
}
EVERY = [(name, p.name) for name in ALGORITHMS.names() for p in params_of(ALGORITHMS.get(name))]


def declared_in(name: str, parameter: str) -> type:
    """The class that declares a method's parameter."""
    return next(
        base
        for base in ALGORITHMS.get(name).__mro__
        if parameter in vars(base).get("__annotations__", ())
    )


# Of methods that share a parameter the last one.
ONCE = [*{(declared_in(*pair), pair[1]): pair for pair in EVERY}.values()]

# Whose plays take a second, so by night.
DEAR = {
    "admmbo",
    "cobyla",
    "cobyqa",
    "egobox",
    "furbo",
    "nomad",
    "optuna-gp",
    "scbo",
    "slsqp",
    "smt-optim",
    "vq-ucb",
}
DEAR_PAIRS = {
    ("bandit-oco", "points"),
    ("cei", "anchored"),
    ("config", "stop_when_infeasible"),
    ("nei", "samples"),
    ("rpol-sw", "inclusive"),
}


@functools.cache
def task(place: str) -> Any:
    return problem(**PROBLEMS["grid" if place == UNDER_WAY else place])


@functools.cache
def result(
    cls: type, settings: tuple[tuple[str, Any], ...], place: str, horizon: int
) -> tuple[np.ndarray, ...] | None:
    """Actions and duals of two seeds; None where the settings are refused."""
    try:
        algorithm = build(cls, dict(settings))
        algorithm.check(task(place))
        parallel = {"points": 3, "as": "asynchronous"} if place == UNDER_WAY else None
        if parallel:
            algorithm.check_late(task(place))
        _, chunks = play(task(place), algorithm, seeds=2, horizon=horizon, parallel=parallel)
    except CbobenchError:
        return None
    duals = [] if chunks[0].duals is None else [np.concatenate([c.duals for c in chunks])]
    return actions(chunks), *duals


def options(annotation: Any) -> list[Any]:
    """The types that a parameter may have, and the words and numbers that it may be."""
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        return [choice for option in typing.get_args(annotation) for choice in options(option)]
    return (
        list(typing.get_args(annotation))
        if typing.get_origin(annotation) is Literal
        else [annotation]
    )


def list_other_values(cls: type, name: str) -> tuple[list[Any], list[Any]]:
    """Other values of a parameter by its type: those that are named, and numbers."""
    default = next(p.default for p in params_of(cls) if p.name == name)
    allowed = options(typing.get_type_hints(cls)[name])
    named = [
        v
        for v in [*allowed, *([True, False] if bool in allowed else [])]
        if not isinstance(v, type) and v != default
    ]
    numbers: list[Any] = []
    plain = isinstance(default, (int, float)) and not isinstance(default, bool)
    if int in allowed:
        numbers += [default + 1, default // 2, 1, 5] if plain else [2, 5, 10]
    if float in allowed:
        numbers += [3 * default, default / 3, 0.5, 5.0, 0.0] if plain else [0.3, 3.0, 0.03]
    return named, [v for v in numbers if v != default]


def contexts(cls: type, name: str) -> Iterator[tuple[dict[str, Any], int]]:
    """Settings beside which to look, and for how many rounds."""
    other_parameters = [p.name for p in params_of(cls) if p.name != name]
    yield from ((hint, horizon) for hint in HINTS.get(name, []) for horizon in (SHORT, LONG))
    yield {}, SHORT
    yield from (
        ({parameter: value}, SHORT)
        for parameter in other_parameters
        for value in list_other_values(cls, parameter)[0]
    )
    yield {}, LONG
    yield from (
        ({parameter: value}, LONG)
        for parameter in other_parameters
        for value in list_other_values(cls, parameter)[1]
    )


def what_shows(cls: type, name: str, places: Sequence[str] = tuple(PROBLEMS)) -> str | None:
    """A case in which the parameter changes a result."""
    named, numbers = list_other_values(cls, name)
    playable = [place for place in places if cls.needs <= task(place).offers()]
    for (context, horizon), place in itertools.product(contexts(cls, name), playable):
        base = result(cls, tuple(context.items()), place, horizon)
        for value in [*named, *numbers] if base is not None else []:
            changed = result(cls, (*context.items(), (name, value)), place, horizon)
            if changed is not None and not all(map(np.array_equal, base, changed)):
                return f"{place}, T = {horizon}, {context}: {name} = {value}"
    return None


@pytest.mark.parametrize(
    ("name", "parameter"),
    [
        entry(*pair, long=pair[0] in DEAR or pair in DEAR_PAIRS or pair not in ONCE)
        for pair in EVERY
    ],
)
def test_every_parameter_changes_some_result_of_a_method(name, parameter):
    places = PLACES.get(parameter, tuple(PROBLEMS))
    assert what_shows(ALGORITHMS.get(name), parameter, places), (
        f"nothing depends on {name}.{parameter}"
    )


@dataclass(kw_only=True)
class Spare(IGPUCB):
    """Has a parameter that nothing reads, and one that only its own check reads."""

    word: Literal["one", "other"] = param("one", "nothing")
    even: int = param(2, "checked, and never used", at_least=0)

    def validate(self):
        if self.even % 2:
            raise Misuse("even is odd")


@pytest.mark.parametrize("parameter", [*long("word"), "even"])
def test_a_parameter_that_does_nothing_is_caught(parameter):
    assert what_shows(Spare, parameter, ["grid"]) is None
    assert what_shows(Spare, "beta_scale", ["grid"])
