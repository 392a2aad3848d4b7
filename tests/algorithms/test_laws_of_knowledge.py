"""Law: a method is told what its `knows` says, and nothing else.

Norms, bounds, noise constants, Slater margins, seed sets and moves are spied on while they are
read. The horizon is read by every method, for memory; whether a method knows it shows in its plays,
with another horizon.
"""

from __future__ import annotations

import functools
import sys
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import pytest

from cbobench.algorithms import ALGORITHMS
from cbobench.algorithms.base import Setting
from cbobench.algorithms.references import IGPUCB
from cbobench.errors import CbobenchError
from cbobench.params import build, params_of
from cbobench.problems.base import Drawn, Problem
from cbobench.rng import Streams, generator
from tests.algorithms.test_laws_of_parameters import DEAR, list_other_values
from tests.helpers import entry, problem

WORDS = {
    "B": "B",
    "G": "G",
    "R": "R",
    "δ": "δ",
    "T": "T",
    "safe seed set": "seed set",
    "variation": "variation",
}
FACTS = {"noise": "R", "slater": "δ", "seed_set": "seed set", "changes": "variation"}
READ: set[str] = set()
PLACES = {
    "finite": {"name": "rkhs", "d": 2, "n": 36, "full_information": True},
    "drift": {
        "name": "feasible-pocket-drift",
        "candidates": 16,
        "first_change": 4,
        "second_change": 8,
    },
    "delay": {"name": "feasible-pocket-delayed", "grid": 9, "delay": 3.0},
}
ROUNDS = 12


class Watched(np.ndarray):
    """Facts of (f, g_1, ..., g_m): reads of the first column are of B, reads of the others of G."""

    def __getitem__(self, key: Any) -> Any:
        columns = (
            np.arange(self.shape[1])[key[1]] if isinstance(key, tuple) else np.arange(self.shape[1])
        )
        READ.update("B" if column == 0 else "G" for column in np.atleast_1d(columns))
        return np.asarray(self)[key]

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        READ.update("BG")
        return getattr(ufunc, method)(
            *(np.asarray(i) if isinstance(i, Watched) else i for i in inputs), **options
        )


@dataclass(frozen=True)
class Spy(Setting):
    """A setting that notes which facts are read of it; copies of it, and its number of replicates,
    read nothing.
    """

    def __getattribute__(self, name: str) -> Any:
        value = super().__getattribute__(name)
        caller = sys._getframe(1)
        copying = (
            caller.f_globals["__name__"] == "cbobench.algorithms.base"
            and caller.f_code.co_name not in FRONT
        )
        if (
            name not in (*FACTS, "norm", "sup")
            or copying
            or caller.f_globals["__name__"] == "dataclasses"
        ):
            return value
        if name in FACTS:
            READ.add(FACTS[name])
            return value
        return value.view(Watched)


FRONT = ("margin", "safe_seed")  # what a method asks these for, it reads


def parse_knows(knows: tuple[str, ...]) -> set[str]:
    """The facts that a `knows` names: a word, or a word and how it enters, as in `δ (through
    ρ)`.
    """
    return {
        fact
        for word, fact in WORDS.items()
        for phrase in knows
        if phrase == word or phrase.startswith(f"{word} ")
    }


@functools.cache
def drawn(place: str) -> tuple[Problem, Drawn]:
    task = problem(**PLACES[place])
    return task, task.draw([generator("instance", "spy", seed) for seed in (0, 1)])


def first_plays(cls: type, settings: dict[str, Any], place: str, horizon: int) -> np.ndarray:
    """The plays of the first rounds; what is read on the way is noted in READ."""
    task, instances = drawn(place)
    streams = [Streams([(role, seed) for seed in (0, 1)]) for role in ("feedback", "algorithm")]
    channel, setting = (
        task.feedback(instances, streams[0]),
        Setting.of(task, instances, horizon, streams[1]),
    )
    algorithm = build(cls, settings)
    if algorithm.reference:
        algorithm.look(instances)
    algorithm.start(Spy(**{f.name: getattr(setting, f.name) for f in fields(Setting)}))
    chosen = []
    for t in range(1, ROUNDS + 1):
        preview = channel.before(t)
        if preview is not None:
            algorithm.see(t, preview)
        chosen.append(algorithm.ask(t).copy())
        algorithm.tell(t, chosen[-1], channel.at(t, chosen[-1]))
    return np.array(chosen)


def reads(
    cls: type, settings: dict[str, Any], facts: frozenset[str] = frozenset()
) -> frozenset[str]:
    """Facts that a method reads on some problem with these settings, and those that are known
    already.
    """
    READ.clear()
    for place in PLACES:
        task, _ = drawn(place)
        if cls.needs <= task.offers():
            try:
                build(cls, settings).check(task)
                short = first_plays(cls, settings, place, 16)
                if "T" not in facts and not np.array_equal(
                    short, first_plays(cls, settings, place, 600)
                ):
                    facts |= {"T"}
            except CbobenchError:
                continue  # these settings do not fit this problem
    return facts | READ


def read_somewhere(cls: type, expected: set[str] | None = None) -> frozenset[str]:
    """Facts that a method reads with its defaults, or with another named value of a parameter.

    Args:
        expected: where these are found, no more values are tried.
    """
    facts = reads(cls, {})
    dear_last = sorted(params_of(cls), key=lambda p: p.name in ("pending", "kernel"))
    for settings in (
        {p.name: value} for p in dear_last for value in list_other_values(cls, p.name)[0]
    ):
        if facts == expected:
            break
        facts = reads(cls, settings, facts)
    return facts


@pytest.mark.parametrize(
    "name",
    [entry(name, long=name in {*DEAR, "fixed-penalty", "nei"}) for name in ALGORITHMS.names()],
)
def test_a_method_reads_what_it_says_it_must_know(name):
    cls = ALGORITHMS.get(name)
    assert read_somewhere(cls, parse_knows(cls.knows)) == parse_knows(cls.knows)


@pytest.mark.long
@pytest.mark.parametrize("name", [*map(entry, ALGORITHMS.names())])
def test_with_no_value_of_a_parameter_a_method_reads_more(name):
    cls = ALGORITHMS.get(name)
    assert read_somewhere(cls) == parse_knows(cls.knows)


class Nosy(IGPUCB):
    """Looks at a Slater margin, and at the norms of the constraints, that it does not say."""

    def prepare(self):
        self.seen = self.setting.margin("true"), self.setting.norm[:, 1:].max()


class Modest(IGPUCB):
    """Says that it must know a seed set, and does not."""

    knows = (*IGPUCB.knows, "safe seed set")


def test_reads_that_are_not_declared_are_caught():
    assert reads(Nosy, {}) - parse_knows(Nosy.knows) == {"δ", "G"}
    assert parse_knows(Modest.knows) - reads(Modest, {}) == {"seed set"}
