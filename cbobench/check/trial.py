"""A class on one small problem, played for some seeds; and the findings of laws."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import Any

import numpy as np

from cbobench import params
from cbobench.errors import CbobenchError, Misuse, reraise_stop
from cbobench.gp.kernels import Array
from cbobench.play.isolation import isolate_play
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
ROUNDS = dict.fromkeys(PLACES, 12) | {"a finite set": 20, "a set without coordinates": 20}
SHORT = dict.fromkeys(PLACES, 5) | {"a box": 2}
OF_A_PLAY = ("actions", "observed_f", "observed_g", "duals")
FULL_INFORMATION = "full information of the constraints"


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


@dataclass(frozen=True)
class Trial:
    """An algorithm with its parameters on a problem.

    Attributes:
        name: its registered name or import path, which names its streams.
        place: the problem's word, which names its streams.
        horizon: number of rounds.
        recommends: whether it is asked for a recommendation after each round.
    """

    cls: type[Any]
    name: str
    problem: Problem
    place: str
    horizon: int = 20
    settings: Mapping[str, Any] = field(default_factory=dict)
    recommends: bool = True

    @cached_property
    def recorded(self) -> tuple[dict[str, Array], Tape | None]:
        """A play of all seeds without recommendations, and its tape, None where what was told
        cannot be told again; the global generators begin at 2.

        Raises:
            Broken: any error.
        """
        play = self.begin(self.algorithm(), SEEDS)
        # What is shown on a box is a function, and numbers cannot replace it.
        shows_function = self.place == "a box" and FULL_INFORMATION in self.problem.offers()
        tape = None if self.cls.reference or shows_function else Tape(play)
        with seed_global_generators(2):
            arrays = play_to_arrays(play)
        if tape is not None:
            tape.close()
        return arrays, tape

    @cached_property
    def played(self) -> tuple[dict[str, Array], Any]:
        """A play of all seeds, which several laws hold other plays against, and the algorithm after
        it; the global generators begin at 1.

        Raises:
            Broken: any error.
        """
        algorithm = self.algorithm()
        with seed_global_generators(1):
            return self.play(SEEDS, algorithm), algorithm

    def finding(self, evidence: str, fix: str) -> Finding:
        """What breaks a law on this problem."""
        return Finding(f"on {self.place}, {evidence}", fix)

    def algorithm(self) -> Any:
        """A fresh instance."""
        return params.build(self.cls, self.settings)

    def begin(self, algorithm: Any, seeds: Sequence[int], recommended: Sequence[int] = ()) -> Play:
        """Return a play by an instance, with the rounds after which it is asked to recommend."""
        options = PlayOptions(recommended)
        return Play(self.problem, self.place, algorithm, self.name, seeds, self.horizon, options)

    def play(self, seeds: Sequence[int], algorithm: Any) -> dict[str, Array]:
        """Return the arrays of a play by an instance, by name, with axes (rounds, S, ...).

        Raises:
            Broken: any error.
        """
        recommended = range(1, self.horizon + 1) if self.recommends else ()
        return play_to_arrays(self.begin(algorithm, seeds, recommended))


def play_to_arrays(play: Play) -> dict[str, Array]:
    """See `Trial.play`."""
    try:
        chunks = list(play)
    except BaseException as error:  # a user's class may raise any error
        reraise_stop(error)
        raise Broken(describe_error(error)[0]) from error
    arrays = {
        name: np.concatenate([getattr(c, name) for c in chunks])
        for name in OF_A_PLAY
        if getattr(chunks[0], name) is not None
    }
    for metric in chunks[0].metrics.values:
        arrays[metric] = np.concatenate([c.metrics.values[metric] for c in chunks])
    return arrays


def difference(left: Mapping[str, Array], right: Mapping[str, Array]) -> str:
    """Return the first difference between two plays, with its round; "" if they are equal to the
    last bit.
    """
    for name in dict.fromkeys([*left, *right]):
        is_in_both = name in left and name in right
        if not is_in_both or left[name].shape != right[name].shape:
            return f"{name} (there in one of them only)"
        pairs = zip(left[name], right[name], strict=True)
        same = [np.array_equal(one, other, equal_nan=True) for one, other in pairs]
        if not all(same):
            since = f", from round {1 + same.index(False)} on"
            return name if name.startswith("self.") else name.replace("_", " ") + since
    return ""


def select_replicate(arrays: Mapping[str, Array], replicate: int) -> dict[str, Array]:
    """Return the part of one replicate."""
    return {name: values[:, replicate : replicate + 1] for name, values in arrays.items()}


def find_trials(cls: type[Any], name: str, settings: Mapping[str, Any], short: bool) -> list[Trial]:
    """Return an algorithm on every place that it can play.

    Args:
        short: fewer rounds, on the first place and on a box.

    Raises:
        CbobenchError: it can play nowhere.
    """
    algorithm = params.build(cls, settings)
    horizons = SHORT if short else ROUNDS
    needs = ", ".join(sorted(cls.needs))
    refusal: CbobenchError = Misuse(
        f"no problem here offers what it needs ({needs}); ask for less in needs"
    )

    # A place that is left out does not matter where another one is played.
    trials: list[Trial] = []
    for place in PLACES:
        is_left_out = short and trials and place != "a box"
        problem = prepare_place(place, FULL_INFORMATION in cls.needs)
        if is_left_out or not cls.needs <= problem.offers():
            continue
        try:
            algorithm.check(problem)
        except CbobenchError as error:  # the parameters do not fit this place
            refusal = error
            continue
        trials.append(Trial(cls, name, problem, place, horizons[place], settings))
    if not trials:
        raise refusal
    return trials


@cache
def prepare_place(place: str, full_information: bool) -> Problem:
    """Return the problem of a place, prepared once for all classes that play it."""
    values = dict(PLACES[place])
    cls = PROBLEMS.get(values.pop("name"))
    if full_information and place in ("a finite set", "a box"):
        values["full_information"] = True
    problem: Problem = params.build(cls, values)
    problem.prepare(DataFolder())
    return problem


# What a play is told ------------------------------------------------------------------------------


class Tape:
    """A channel that records feedback and later replays it, whatever is played.

    Attributes:
        setting: of the play.
        facts: the arrays of the setting by name, as they were before the play.
        feedbacks: of each round.
        given: the copies of them that were told, which a method may have changed.
    """

    def __init__(self, play: Play) -> None:
        """Put a play that has not begun on tape."""
        self.inner: Channel | None = play.channel
        self.setting = play.setting
        self.facts = {
            name: fact.copy()
            for name, fact in vars(self.setting).items()
            if isinstance(fact, np.ndarray)
        }
        self.feedbacks: list[Feedback] = []
        self.given: list[Feedback] = []
        self.constraint_values: list[Array | None] = []
        play.channel = self

    def close(self) -> None:
        """Replay from now on, and let go of f and g, which a second play must not find."""
        self.inner = None

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
        given = replace(feedback, f=feedback.f.copy(), g=feedback.g.copy())
        self.given.append(given)
        return given


# What is not the class's own ----------------------------------------------------------------------


@contextmanager
def seed_global_generators(seed: int) -> Iterator[None]:
    """Seed every global generator inside the block; afterwards all are as before.

    PyTorch's counts if it has been imported.
    """
    torch = sys.modules.get("torch")
    with ExitStack() as stack:
        stack.enter_context(isolate_play("check", seed))
        if torch is not None:
            stack.enter_context(torch.random.fork_rng(devices=[]))
            torch.manual_seed(seed)
        yield
