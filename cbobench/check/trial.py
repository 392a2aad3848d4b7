"""A class on one small problem, played for some seeds; the findings of laws; state that outlives a
play.
"""

from __future__ import annotations

import gc
import inspect
import pickle
import random
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from cbobench import params
from cbobench.algorithms.base import Setting
from cbobench.errors import CbobenchError, reraise_stop
from cbobench.gp.kernels import Array
from cbobench.play.failure import describe_error
from cbobench.play.play import Play, PlayOptions
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
INSTEAD = (
    "draw from the streams that it is given (setting.streams, given.generator, a seeded "
    "generator made from them)"
)


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
        return f"{self.evidence}; {self.fix}" if self.fix else self.evidence


class Broken(CbobenchError):
    """A play raised an error, so that nothing more can be tested."""


class Reference(NamedTuple):
    """A play as arrays by name, the algorithm after it, the global generators that it used, and
    what it was told: None where that cannot be told again.
    """

    arrays: dict[str, Array]
    algorithm: Any
    used: set[str]
    told: tuple[Setting, Tape] | None


@dataclass(frozen=True)
class Trial:
    """An algorithm with its parameters on a problem.

    Attributes:
        name: its registered name or import path, which names its streams.
        place: the problem's word, which names its streams.
        horizon: number of rounds.
        before: what runs share in this process, as it was before the class first played; None if it
            does not matter.
    """

    cls: type[Any]
    name: str
    problem: Problem
    place: str
    horizon: int = 20
    settings: Mapping[str, Any] = field(default_factory=dict)
    before: SharedState | None = None

    @cached_property
    def state(self) -> SharedState:
        """What runs share in this process, as it was before the first play."""
        return SharedState(self.cls) if self.before is None else self.before

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
        # Recorded before the class plays, because a play may change it.
        _ = self.state
        names = (self.problem, self.place, self.algorithm(), self.name)
        with _small_heap():
            play, told = Play(*names, SEEDS, self.horizon), None
            # What is shown on a box is a function, and numbers cannot replace it.
            shows = "full information of the constraints" in self.problem.offers()
            if not (self.cls.reference or (shows and self.place == "a box")):
                told = record(play)
            with seed_global_generators(2) as used:
                arrays = play_to_arrays(play)
            # The play holds f and g: it must be gone before a replay looks for them.
            del play
            if told is not None:
                told[1].inner = None
                if isinstance(told[0].slopes, Table):
                    told[0].slopes.slopes = None
            gc.collect()
        return Reference(arrays, None, used, told)

    @cached_property
    def recommending_reference(self) -> Reference:
        """The same with a recommendation after each round, which several laws hold other plays
        against; the global generators begin at 1.

        Raises:
            Broken: any error.
        """
        _, algorithm = self.state, self.algorithm()
        with seed_global_generators(1) as used:
            arrays = self.play(SEEDS, self.every_round, algorithm)
        return Reference(arrays, algorithm, used, None)

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
        left_values, right_values = left.get(name), right.get(name)
        if left_values is None or right_values is None or left_values.shape != right_values.shape:
            return f"{name} (there in one of them only)"
        # A NaN counts as equal to a NaN.
        same = (left_values == right_values) | (
            (left_values != left_values) & (right_values != right_values)
        )
        if not same.all():
            since = f", from round {1 + int(np.argwhere(~same)[0][0])} on"
            return name if name.startswith("self.") else name.replace("_", " ") + since
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
    before, algorithm = SharedState(cls), params.build(cls, settings)
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
            yield Trial(
                cls, name, problem, place, horizons[0].get(place, horizons[1]), settings, before
            )


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
    """A channel that records feedback and later replays it, whatever is played."""

    def __init__(self, inner: Channel) -> None:
        self.inner: Channel | None = inner
        self.feedbacks: list[Feedback] = []
        self.constraint_values: list[Array | None] = []

    def before(self, t: int) -> Shown | None:
        if self.inner is not None:
            function = self.inner.before(t)
            self.constraint_values.append(None if function is None else function(None))
        values = self.constraint_values[t - 1]
        return None if values is None else lambda points: values.copy()

    def at(self, t: int, actions: Actions) -> Feedback:
        if self.inner is not None:
            self.feedbacks.append(self.inner.at(t, actions))
        feedback = self.feedbacks[t - 1]
        return replace(feedback, f=feedback.f.copy(), g=feedback.g.copy())


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
    tape, setting = Tape(play.channel), play.setting
    table = None if setting.slopes is None else Table(setting.slopes)
    play.channel, play.setting = tape, replace(setting, slopes=table)
    return play.setting, tape


@contextmanager
def _small_heap() -> Iterator[None]:
    """Let the garbage collector look at new objects alone: to look at all of a process takes a
    tenth of a second.
    """
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


# What outlives a play -----------------------------------------------------------------------------


@contextmanager
def seed_global_generators(seed: int) -> Iterator[set[str]]:
    """Seed every global generator inside the block; afterwards yield the names of those used, and
    restore all.

    PyTorch's counts if it has been imported.
    """
    generators: dict[str, tuple[Callable[[], Any], Callable[[Any], Any], Callable[[int], Any]]] = {
        "np.random": (
            lambda: np.random.get_state(legacy=False),  # noqa: NPY002
            np.random.set_state,
            lambda seed: np.random.set_state(dict(np.random.MT19937(seed).state)),  # noqa: NPY002
        ),
        "random": (random.getstate, random.setstate, random.seed),
    }
    if torch := sys.modules.get("torch"):
        generators["torch"] = (torch.get_rng_state, torch.set_rng_state, torch.manual_seed)
    used: set[str] = set()
    before = {name: look() for name, (look, _, _) in generators.items()}
    for _, _, start in generators.values():
        start(seed)
    begun = {name: _state(look()) for name, (look, _, _) in generators.items()}
    try:
        yield used
    finally:
        for name, (look, put_back, _) in generators.items():
            if _state(look()) != begun[name]:
                used.add(name)
            put_back(before[name])


def _state(state: Any) -> bytes:
    return pickle.dumps(state.tolist() if hasattr(state, "tolist") else state)


class SharedState:
    """Shared state of a class's runs in this process: class attributes, defaults of functions,
    globals.

    It covers the modules, outside this package, of the class and its bases, and every class and
    function in them, except what cannot be pickled.
    """

    def __init__(self, cls: type) -> None:
        self.cls = cls
        self.modules = [
            sys.modules[name]
            for name in {base.__module__ for base in cls.__mro__}
            if name in sys.modules
            and name.partition(".")[0] not in ("builtins", "typing", __name__.partition(".")[0])
        ]
        self.values = _pickle_values(_class_values(cls, self.modules))
        self.globals = _pickle_values(_global_values(self.modules))

    def changed(self) -> list[str]:
        """Return class attributes and defaults that have changed."""
        return [
            name
            for name, value in SharedState(self.cls).values.items()
            if self.values.get(name) != value
        ]

    def causes(self, same_again: Callable[[], bool]) -> list[str]:
        """Return changed module globals that decide a play: restoring one makes it `same_again`.
        Mere caches do not count.
        """
        causes, current = [], _pickle_values(_global_values(self.modules))
        for (module, name), value in self.globals.items():
            if current.get((module, name)) != value:
                setattr(sys.modules[module], name, pickle.loads(value))  # noqa: S301 - what has been pickled here
                if same_again():
                    causes.append(f"the module global {name} of {module}")
        return causes


def _class_values(cls: type, modules: Sequence[ModuleType]) -> Iterator[tuple[str, Any]]:
    names = {module.__name__ for module in modules}
    members = [member for module in modules for member in vars(module).values()]
    members = [member for member in members if getattr(member, "__module__", "") in names]
    for member in members:
        if inspect.isfunction(member):
            yield from _defaults(member.__name__, member)
    classes = {member for member in members if inspect.isclass(member)}
    for owner in classes | {base for base in cls.__mro__ if base.__module__ in names}:
        for name, value in vars(owner).items():
            if inspect.isfunction(value):
                yield from _defaults(f"{owner.__name__}.{name}", value)
                continue
            special = callable(value) or isinstance(value, property | classmethod | staticmethod)
            if not (special or name.startswith(("__", "_abc"))):
                yield f"the class attribute {owner.__name__}.{name}", value


def _defaults(name: str, function: Any) -> Iterator[tuple[str, Any]]:
    for argument in inspect.signature(function).parameters.values():
        if argument.default is not argument.empty:
            yield f"the default of {argument.name} in {name}", argument.default


def _global_values(modules: Sequence[ModuleType]) -> Iterator[tuple[tuple[str, str], Any]]:
    for module in modules:
        for name, value in vars(module).items():
            if not (name.startswith("__") or callable(value) or inspect.ismodule(value)):
                yield (module.__name__, name), value


def _pickle_values(values: Iterable[tuple[Any, Any]]) -> dict[Any, bytes]:
    pickled = {}
    for name, value in values:
        try:
            pickled[name] = pickle.dumps(value)
        except BaseException as error:  # a user's object may raise any error
            reraise_stop(error)
            continue
    return pickled
