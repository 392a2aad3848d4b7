"""A class on one small problem, played for some seeds, and what a law says that is broken."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cbobench import params
from cbobench.errors import CbobenchError
from cbobench.gp.kernels import Array
from cbobench.play.failure import described
from cbobench.play.play import Play
from cbobench.problems import PROBLEMS
from cbobench.problems.base import Problem
from cbobench.problems.data import DataFolder

PLACES: dict[str, dict[str, Any]] = {
    "a finite set": {"name": "rkhs", "d": 2, "n": 36, "m": 2},
    "a box": {"name": "gramacy", "candidates": 64},
    "a set without coordinates": {"name": "stocks", "data": "look-alike"},
    "delays": {"name": "feasible-pocket-delayed", "candidates": 64, "delay": 3.0},
    "functions that move": {"name": "feasible-pocket-drift", "candidates": 64, "first_change": 4, "second_change": 8},
}
ROUNDS = {"a box": 12, "delays": 12, "functions that move": 12}


@dataclass(frozen=True)
class Finding:
    """A law that is broken.

    Attributes:
        what: what was seen, and where.
        fix: what to do, where `what` does not say it.
    """

    what: str
    fix: str = ""

    def __str__(self) -> str:
        return f"{self.what}; {self.fix}" if self.fix else self.what


class Broken(CbobenchError):
    """A play raised something: nothing more can be said of it."""


@dataclass(frozen=True)
class Trial:
    """An algorithm with its parameters on a problem.

    Attributes:
        name: its registered name or import path, which names its streams.
        place: the problem's word, which names its streams.
        horizon: rounds to play.
    """

    cls: type[Any]
    name: str
    problem: Problem
    place: str
    horizon: int = 20
    settings: Mapping[str, Any] = field(default_factory=dict)

    def algorithm(self) -> Any:
        """A fresh one."""
        return params.build(self.cls, self.settings)

    def play(self, seeds: Sequence[int], asked: Iterable[int] = (), algorithm: Any = None) -> dict[str, Array]:
        """What the seeds came to, arrays with axes (rounds, S, ...), by name.

        Args:
            asked: rounds after which it is asked for a recommendation.
            algorithm: one that is watched, in place of a fresh one.

        Raises:
            Broken: whatever was raised.
        """
        made = self.algorithm() if algorithm is None else algorithm
        return played(Play(self.problem, self.place, made, self.name, seeds, self.horizon, asked))


def played(play: Play) -> dict[str, Array]:
    """See `Trial.play`."""
    try:
        chunks = list(play)
    except Exception as error:  # a user's class may raise anything
        raise Broken(described(error)[0]) from error
    found = {
        name: np.concatenate([getattr(c, name) for c in chunks]) for name in ("actions", "observed_f", "observed_g")
    }
    if chunks[0].duals is not None:
        found["duals"] = np.concatenate([np.asarray(c.duals) for c in chunks])
    for metric in chunks[0].metrics.values:
        found[metric] = np.concatenate([c.metrics.values[metric] for c in chunks])
    return found


def difference(one: Mapping[str, Array], other: Mapping[str, Array]) -> str:
    """The first thing in which two plays differ, with its round; empty where they are the same to the last bit."""
    for name in dict.fromkeys([*one, *other]):
        mine, theirs = one.get(name), other.get(name)
        if mine is None or theirs is None or mine.shape != theirs.shape:
            return f"{name} (there in one of them only)"
        same = (mine == theirs) | ((mine != mine) & (theirs != theirs))
        if not same.all():
            since = f", from round {1 + int(np.argwhere(~same)[0][0])} on"
            return name if name.startswith("self.") else name.replace("_", " ") + since
    return ""


def at(one: Mapping[str, Array], replicate: int) -> dict[str, Array]:
    """The part of one replicate."""
    return {name: values[:, replicate : replicate + 1] for name, values in one.items()}


def trials(
    cls: type[Any], name: str, settings: Mapping[str, Any], refusals: list[str] | None = None
) -> Iterator[Trial]:
    """An algorithm on every place that it can play; what it says of the others is added to `refusals`."""
    algorithm = params.build(cls, settings)
    for place, given in PLACES.items():
        full = "full information of the constraints"
        more = {"full_information": True} if full in cls.needs and place in ("a finite set", "a box") else {}
        problem = made(**(given | more))
        if cls.needs <= problem.offers():
            try:
                algorithm.check(problem)
            except CbobenchError as error:  # these parameters do not fit it
                if refusals is not None:
                    refusals.append(str(error))
                continue
            yield Trial(cls, name, problem, place, ROUNDS.get(place, 20), settings)


def made(name: str, **settings: Any) -> Problem:
    """A prepared problem of ours."""
    problem: Problem = params.build(PROBLEMS.get(name), settings)
    problem.prepare(DataFolder())
    return problem
