"""A class on one small problem, played for some seeds; and the findings of laws."""

from __future__ import annotations

import gc
import random
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import Any, NamedTuple

import numpy as np

from cbobench import params
from cbobench.algorithms.base import Setting
from cbobench.errors import CbobenchError, reraise_stop
from cbobench.gp.kernels import Array
from cbobench.play.play import Play, PlayOptions
from cbobench.play.task import describe_error
from cbobench.problems import PROBLEMS
from cbobench.problems.base import Actions, Channel, Feedback, Problem, Shown
from cbobench.problems.data import DataFolder

SEEDS = (0, 1, 2)
PLACES: dict[str, dict[str, Any]] = {
    "a finite set": {"name": "rkhs", "d": 2, "n": 36, "m": 2},
    "a box": {"name": "gramacy", "candidates": 64},
    "a set without coordinates": {"name": "stocks", "data": "look-alike"},
    "delays": {"name": "feasible-pocket-delayed", "candidates": 64, "delay": 3.0},
    "functions that move": {
        "name": "feasible-pocket-drift",
        "candidates": 64,
        "first_change": 4,
        "second_change": 8,
    },
}
ROUNDS = {"a box": 12, "delays": 12, "functions that move": 12}
SHORT = {"a box": 2}


@dataclass(frozen=True)
class Finding:
    """A broken law.

    Attributes:
        evidence: what was seen, and where.
        fix: what to do, if `evidence` does not say it.
    """

    evidence: str
    fix: str = ""

    def __str__(self) -> str:
        if self.fix:
            return f"{self.evidence}; {self.fix}"
        return self.evidence


class Broken(CbobenchError):
    """A play raised an error, so that nothing more can be tested."""


class Reference(NamedTuple):
    """A play as arrays by name, the algorithm after it, and what it was told: None where that
    cannot be told again.
    """

    arrays: dict[str, Array]
    algorithm: Any
    told: tuple[Setting, Tape] | None


@dataclass(frozen=True)
class Trial:
    """An algorithm with its parameters on a problem.

    Attributes:
        name: its registered name or import path, which names its streams.
        place: the problem's word, which names its streams.
        horizon: number of rounds.
    """

    cls: type[Any]
    name: str
    problem: Problem
    place: str
    horizon: int = 20
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def every_round(self) -> range:
        """The rounds, after each of which a recommendation may be asked for."""
        return range(1, self.horizon + 1)

    @cached_property
    def reference(self) -> Reference:
        """A play of all seeds without recommendations, on tape where that can be; the global
        generators begin at 2.

        Raises:
            Broken: any error.
        """
        names = (self.problem, self.place, self.algorithm(), self.name)
        play = Play(*names, SEEDS, self.horizon)
        told = None
        # What is shown on a box is a function, and numbers cannot replace it.
        shows = "full information of the constraints" in self.problem.offers()
        if not (self.cls.reference or (shows and self.place == "a box")):
            told = record(play)
        with seed_global_generators(2):
            arrays = play_to_arrays(play)
        # The play holds f and g: it must be gone before a replay looks for them.
        del play
        if told is not None:
            told[1].inner = None
            if isinstance(told[0].slopes, Table):
                told[0].slopes.slopes = None
        gc.collect()
        return Reference(arrays, None, told)

    @cached_property
    def recommending_reference(self) -> Reference:
        """The same with a recommendation after each round, which several laws hold other plays
        against; the global generators begin at 1.

        Raises:
            Broken: any error.
        """
        algorithm = self.algorithm()
        with seed_global_generators(1):
            arrays = self.play(SEEDS, self.every_round, algorithm)
        return Reference(arrays, algorithm, None)

    def finding(self, evidence: str, fix: str) -> Finding:
        """What breaks a law on this problem."""
        return Finding(f"on {self.place}, {evidence}", fix)

    def algorithm(self) -> Any:
        """A fresh instance."""
        return params.build(self.cls, self.settings)

    def play(
        self, seeds: Sequence[int], recommended_rounds: Iterable[int] = (), algorithm: Any = None
    ) -> dict[str, Array]:
        """Return a play's arrays by name, with axes (rounds, S, ...).

        Args:
            recommended_rounds: rounds after which it is asked for a recommendation.
            algorithm: an observed instance, in place of a fresh one.

        Raises:
            Broken: any error.
        """
        algorithm = self.algorithm() if algorithm is None else algorithm
        names = (self.problem, self.place, algorithm, self.name)
        return play_to_arrays(Play(*names, seeds, self.horizon, PlayOptions(recommended_rounds)))


def play_to_arrays(play: Play) -> dict[str, Array]:
    """See `Trial.play`."""
    try:
        chunks = list(play)
    except BaseException as error:  # a user's class may raise any error
        reraise_stop(error)
        raise Broken(describe_error(error)[0]) from error
    arrays = {
        name: np.concatenate([getattr(c, name) for c in chunks])
        for name in ("actions", "observed_f", "observed_g")
    }
    if chunks[0].duals is not None:
        arrays["duals"] = np.concatenate([np.asarray(c.duals) for c in chunks])
    for metric in chunks[0].metrics.values:
        arrays[metric] = np.concatenate([c.metrics.values[metric] for c in chunks])
    return arrays


def difference(left: Mapping[str, Array], right: Mapping[str, Array]) -> str:
    """Return the first difference between two plays, with its round; "" if they are equal to the
    last bit.
    """
    for name in dict.fromkeys([*left, *right]):
        left_values = left.get(name)
        right_values = right.get(name)
        if left_values is None or right_values is None or left_values.shape != right_values.shape:
            return f"{name} (there in one of them only)"
        # A NaN counts as equal to a NaN.
        same = (left_values == right_values) | (
            (left_values != left_values) & (right_values != right_values)
        )
        if not same.all():
            since = f", from round {1 + int(np.argwhere(~same)[0][0])} on"
            if name.startswith("self."):
                return name
            return name.replace("_", " ") + since
    return ""


def select_replicate(arrays: Mapping[str, Array], replicate: int) -> dict[str, Array]:
    """Return the part of one replicate."""
    return {name: values[:, replicate : replicate + 1] for name, values in arrays.items()}


def trials(
    cls: type[Any],
    name: str,
    settings: Mapping[str, Any],
    refusals: list[str] | None = None,
    short: bool = False,
) -> Iterator[Trial]:
    """Yield an algorithm on every place that it can play.

    Args:
        refusals: takes the reasons of the other places.
        short: fewer rounds, on the first place and on a box.
    """
    algorithm = params.build(cls, settings)
    places = 0
    for place in PLACES:
        if short and places and place != "a box":
            continue
        full = "full information of the constraints" in cls.needs and place in (
            "a finite set",
            "a box",
        )
        problem = prepare_place(place, full)
        if cls.needs <= problem.offers():
            try:
                algorithm.check(problem)
            except CbobenchError as error:  # the parameters do not fit this place
                if refusals is not None:
                    refusals.append(str(error))
                continue
            places += 1
            horizons = (SHORT, 5) if short else (ROUNDS, 20)
            yield Trial(cls, name, problem, place, horizons[0].get(place, horizons[1]), settings)


@cache
def prepare_place(place: str, full_information: bool) -> Problem:
    """Return the problem of a place, prepared once for all classes that play it."""
    values = {key: value for key, value in PLACES[place].items() if key != "name"}
    values |= {"full_information": True} if full_information else {}
    problem: Problem = params.build(PROBLEMS.get(PLACES[place]["name"]), values)
    problem.prepare(DataFolder())
    return problem


# What a play is told ------------------------------------------------------------------------------


class Tape:
    """A channel that records feedback and later replays it, whatever is played.

    Attributes:
        facts: the arrays of the setting by name, as they were before the play.
        feedbacks: of each round.
        given: the copies of them that were told, which a method may have changed.
    """

    def __init__(self, inner: Channel, facts: Mapping[str, Array]) -> None:
        self.inner: Channel | None = inner
        self.facts = facts
        self.feedbacks: list[Feedback] = []
        self.given: list[Feedback] = []
        self.constraint_values: list[Array | None] = []

    def before(self, t: int) -> Shown | None:
        if self.inner is not None:
            function = self.inner.before(t)
            self.constraint_values.append(None if function is None else function(None))
        values = self.constraint_values[t - 1]
        if values is None:
            return None
        return lambda points: values.copy()

    def at(self, t: int, actions: Actions) -> Feedback:
        if self.inner is not None:
            self.feedbacks.append(self.inner.at(t, actions))
        feedback = self.feedbacks[t - 1]
        given = replace(feedback, f=feedback.f.copy(), g=feedback.g.copy())
        self.given.append(given)
        return given


class Table:
    """Values of `setting.slopes`, stored as numbers because the second play has no function to
    ask.
    """

    def __init__(self, slopes: Any) -> None:
        self.slopes = slopes
        self.values: dict[bytes, Array] = {}

    def __call__(self, metric: Array) -> Array:
        key = metric.tobytes()
        if key not in self.values:
            if self.slopes is None:
                raise Broken("it asks for slopes under a metric that it did not ask for before")
            self.values[key] = self.slopes(metric)
        return self.values[key].copy()


def record(play: Play) -> tuple[Setting, Tape]:
    """Put a play on tape; its setting, and the tape."""
    setting = play.setting
    arrays = {name: a for name, a in vars(setting).items() if isinstance(a, np.ndarray)}
    tape = Tape(play.channel, facts={name: a.copy() for name, a in arrays.items()})
    table = None if setting.slopes is None else Table(setting.slopes)
    play.channel = tape
    play.setting = replace(setting, slopes=table)
    return play.setting, tape


# What is not the class's own ----------------------------------------------------------------------


@contextmanager
def seed_global_generators(seed: int) -> Iterator[None]:
    """Seed every global generator inside the block; afterwards all are as before.

    PyTorch's counts if it has been imported.
    """
    of_numpy, of_python = np.random.get_state(legacy=False), random.getstate()  # noqa: NPY002
    torch = sys.modules.get("torch")
    of_torch = None if torch is None else torch.get_rng_state()
    np.random.set_state(dict(np.random.MT19937(seed).state))  # noqa: NPY002
    random.seed(seed)
    if torch is not None:
        torch.manual_seed(seed)
    try:
        yield
    finally:
        np.random.set_state(of_numpy)  # noqa: NPY002
        random.setstate(of_python)
        if torch is not None:
            torch.set_rng_state(of_torch)
