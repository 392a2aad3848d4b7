"""Laws of an algorithm. Each yields the findings that break it, none if it holds. See `report` for
their names.
"""

from __future__ import annotations

import re
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import numpy as np

from cbobench import params
from cbobench.algorithms.base import Setting
from cbobench.check.trial import (
    SEEDS,
    Broken,
    Finding,
    Tape,
    Trial,
    difference,
    seed_global_generators,
    select_replicate,
)
from cbobench.errors import CbobenchError, reraise_stop
from cbobench.gp.kernels import Array
from cbobench.play.play import Play
from cbobench.play.task import describe_error
from cbobench.problems.base import Actions, Drawn, Problem
from cbobench.problems.formulas.box import BoxInstances
from cbobench.problems.instances import Instances

ROUNDS, EARLY = 96, 24  # rounds whose calls are compared
WINDOW = 9  # rounds around each, of which the median counts
STEEP = 1.2  # exponent of t that counts as more than linear
FEW = 4096  # calls or bytes: what takes less is cheap however it grows
DECLARED = re.compile(r"[tkcW]\s*(?:²|³|\^|\*\*)")


def check_documentation(cls: type[Any]) -> Iterator[Finding]:
    """The class states its source and what it does, and so does every parameter."""
    for name in ("source", "about"):
        if not getattr(cls, name):
            yield Finding(
                f"{cls.__name__}.{name} is empty", f'give it a line for the tables: {name} = "..."'
            )
    text = vars(cls).get("__doc__")
    if not text or text.startswith(f"{cls.__name__}("):  # the docstring that dataclass generates
        yield Finding(
            f"{cls.__name__} has no docstring",
            "say in a sentence what it is, and after which source",
        )
    for parameter in params.params_of(cls):
        if not parameter.about:
            yield Finding(
                f"the parameter {parameter.name} has no description",
                "declare it by param(default, about)",
            )


def plays(trial: Trial) -> Iterator[Finding]:
    """It plays: actions of the right shape inside the set, finite numbers, no exception."""
    try:
        _ = trial.recommending_reference
    except Broken as error:
        yield trial.finding(str(error), "a play must raise nothing")


def repeatable(trial: Trial) -> Iterator[Finding]:
    """The same cells, played again in this process, are equal to the last bit, whatever the global
    generators of np.random, random and torch hold.
    """
    with seed_global_generators(2):
        again = trial.play(SEEDS, trial.every_round)
    if apart := difference(trial.recommending_reference.arrays, again):
        yield trial.finding(
            f"the same cells played twice differ in {apart}",
            "seed every generator from the streams given (setting.streams, given.generator), use "
            "no global one, keep no state outside the object, read no clock",
        )


def same_in_any_block(trial: Trial) -> Iterator[Finding]:
    """A seed plays the same alone as beside others, to the last bit, and ends with the same
    attributes; and so do cells of two settings that may share a block.
    """
    yield from _seeds_apart(trial)
    yield from _settings_apart(trial)


def _seeds_apart(trial: Trial) -> Iterator[Finding]:
    """Find a seed that plays otherwise alone or beside another one."""
    reference = trial.recommending_reference
    reference_ends = _last_attributes(reference.algorithm, len(SEEDS))
    for block in ([2], [1, 0]):
        with seed_global_generators(1):
            arrays = trial.play(block, trial.every_round, algorithm := trial.algorithm())
        block_ends = _last_attributes(algorithm, len(block))
        common = [name for name in reference_ends if name in block_ends]
        expected = reference.arrays | {name: reference_ends[name] for name in common}
        arrays |= {name: block_ends[name] for name in common}
        for i, seed in enumerate(block):
            changed_name = difference(select_replicate(expected, seed), select_replicate(arrays, i))
            if changed_name:
                beside = "alone" if len(block) == 1 else "beside another one"
                yield trial.finding(
                    f"seed {seed} {beside} differs from itself among {len(SEEDS)} in "
                    f"{changed_name}",
                    "nothing may be shared by replicates: one stream each, stacked np.matmul for "
                    "products",
                )
                return


NUMBERS = (0.5, 0.8, 2.0, 3.0, 12.0, 40.0)
"""Values for parameters that may vary within a block; two are taken that the class allows."""


def _settings_apart(trial: Trial) -> Iterator[Finding]:
    """Find cells of two settings that play otherwise in one block than alone."""
    pair = [dict(trial.settings), dict(trial.settings)]
    for parameter in params.params_of(trial.cls):
        if parameter.varies:
            pair = _with_two_values(trial.cls, pair, parameter.name)
    if pair[0] == pair[1]:
        return
    seeds = [seed for seed in SEEDS[:2] for _ in pair]
    together = trial.play(seeds, algorithm=params.build_block(trial.cls, pair * 2))
    for i, settings in enumerate(pair):
        alone = replace(trial, settings=settings).play(SEEDS[:2])
        in_block = {name: values[:, i::2] for name, values in together.items()}
        if apart := difference(alone, in_block):
            yield trial.finding(
                f"beside a cell of other parameters a cell differs from itself alone in {apart}",
                "use what varies as an array (S, 1), or declare it without varies=True",
            )
            return


def _with_two_values(cls: type[Any], pair: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    """Return two settings with another number each for a parameter; as they are, if the class
    allows no two of `NUMBERS`.
    """
    allowed = []
    for number in NUMBERS:
        with suppress(CbobenchError):
            for settings in pair:
                params.build(cls, settings | {name: number})
            allowed.append(number)
    if len(allowed) < 2:
        return pair
    return [pair[0] | {name: allowed[0]}, pair[1] | {name: allowed[-1]}]


def _last_attributes(algorithm: Any, replicates: int) -> dict[str, Array]:
    """Return attributes with a value for each replicate, as of one round, (1, S, ...)."""
    arrays = {
        name: value for name, value in vars(algorithm).items() if isinstance(value, np.ndarray)
    }
    return {
        f"self.{name} at the end": a[None]
        for name, a in arrays.items()
        if a.shape[:1] == (replicates,)
    }


def recommending_changes_nothing(trial: Trial) -> Iterator[Finding]:
    """Asking for a recommendation changes no bit of a play."""
    names = ("actions", "observed_f", "observed_g", "duals")
    asked = trial.recommending_reference.arrays
    left_alone = trial.reference.arrays
    apart = difference(
        {name: asked[name] for name in names if name in asked},
        {name: left_alone[name] for name in names if name in left_alone},
    )
    if apart:
        yield trial.finding(
            f"recommend() changes {apart}",
            "it must draw nothing and keep nothing: read the model only",
        )


def leaves_what_it_is_told(trial: Trial) -> Iterator[Finding]:
    """What a method is told stays as it was: each feedback, and the arrays of its setting."""
    if trial.reference.told is None:
        return
    setting, tape = trial.reference.told
    changed = [
        f"setting.{name}"
        for name, before in tape.facts.items()
        if not np.array_equal(getattr(setting, name), before, equal_nan=True)
    ]
    for t, (recorded, given) in enumerate(zip(tape.feedbacks, tape.given, strict=False), 1):
        before, after = ({"f": x.f[None], "g": x.g[None]} for x in (recorded, given))
        if difference(before, after):
            changed.append(f"the feedback of round {t}")
            break
    if changed:
        yield trial.finding(
            f"it changes {changed[0]}", "others are told the same: change a copy of your own"
        )


# A round grows as `cost` says ---------------------------------------------------------------------


def grows_as_it_says(trial: Trial) -> Iterator[Finding]:
    """A late round calls functions, and takes memory for a while, at most linearly more than an
    early one.

    Unless `cost` says otherwise. Nothing is timed, so that the verdict is the same on any machine:
    a loop over all observations shows in the calls, a matrix of all pairs in the memory.
    """
    if DECLARED.search(trial.cls.cost):
        return
    work = _measure_work(trial)
    for unit, measured in zip(("calls", "bytes"), zip(*work, strict=True), strict=True):
        first, last = (float(np.median(measured[end - WINDOW : end])) for end in (EARLY, ROUNDS))
        exponent = np.log(last / max(first, 1.0)) / np.log(ROUNDS / EARLY) if last > FEW else 0.0
        if exponent > STEEP:
            counts = f"{first:,.0f} {unit} in round {EARLY} and {last:,.0f} in round {ROUNDS}"
            growth = f"about t^{exponent:.1f}, where cost says {trial.cls.cost}"
            yield trial.finding(
                f"a round takes {counts}, {growth}",
                'update what each round adds instead of beginning anew, or say so: cost = "O(t²)"',
            )
            return


def _measure_work(trial: Trial) -> list[tuple[int, int]]:
    """Return how many functions `ask` and `tell` call in each of `ROUNDS` rounds of one seed, and
    the most bytes that they take at once."""
    long = replace(trial, horizon=ROUNDS)
    algorithm = long.algorithm()
    play = Play(long.problem, long.place, algorithm, long.name, SEEDS[:1], long.horizon)
    work: list[tuple[int, int]] = []

    def measured(method: Callable[..., Any], begins: bool) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            count = 0

            def profile(frame: Any, event: str, argument: Any) -> None:
                nonlocal count
                count += event in ("call", "c_call")

            # A profiler that is on, of a debugger or of coverage, is put back afterwards.
            outer = sys.getprofile()
            held = tracemalloc.get_traced_memory()[0]
            tracemalloc.reset_peak()
            sys.setprofile(profile)
            try:
                return method(*arguments)
            finally:
                sys.setprofile(outer)
                peak = tracemalloc.get_traced_memory()[1] - held
                before = (0, 0) if begins else work.pop()
                work.append((before[0] + count, max(before[1], peak)))

        return call

    algorithm.ask, algorithm.tell = measured(algorithm.ask, True), measured(algorithm.tell, False)
    traced = tracemalloc.is_tracing()
    tracemalloc.start()
    try:
        with seed_global_generators(1):
            list(play)
    except BaseException as error:  # a user's class may raise any error
        reraise_stop(error)
        raise Broken(f"{error} (of {ROUNDS} rounds)") from error
    finally:
        if not traced:
            tracemalloc.stop()
    return work


# What is played depends on what is told, not on f and g without noise -----------------------------


def no_peeking(trial: Trial) -> Iterator[Finding]:
    """With the same feedback and other noise-free functions it plays the same. Only a yardstick,
    which says so, is shown f and g.
    """
    cls = trial.cls
    if cls.reference and "f and g" not in cls.knows:
        yield Finding(
            f"{cls.__name__} peeks: with reference = True it is shown f and g without noise",
            'remove reference; a yardstick says knows = ("f and g",)',
        )
    first = trial.reference.arrays["actions"]
    told = trial.reference.told
    if told is None:
        return
    with _poison_problem(trial.problem), seed_global_generators(1):
        for t, (played, replayed) in enumerate(zip(first, _replay(trial, *told), strict=True), 1):
            evidence = ""
            if isinstance(replayed, str):
                evidence = f"it fails in round {t} where f and g are hidden ({replayed})"
            elif not np.array_equal(played, replayed):
                evidence = (
                    f"in round {t} it plays otherwise where only the noise-free f and g are others"
                )
            if evidence:
                yield trial.finding(
                    f"it peeks: {evidence}",
                    "go by what tell() is given and what Setting says; never by instances, "
                    "formulas or draws",
                )
                return


def _replay(trial: Trial, setting: Setting, tape: Tape) -> Iterator[Actions | str]:
    """Return its play under replayed feedback, up to the first exception."""
    algorithm = trial.algorithm()
    for t in range(1, trial.horizon + 1):
        answer: Actions | str
        try:
            if t == 1:
                algorithm.start(setting)
            function = tape.before(t)
            if function is not None:
                algorithm.see(t, function)
            chosen = algorithm.ask(t)
            answer = chosen.copy()
            algorithm.tell(t, chosen, tape.at(t, chosen))
        except BaseException as error:  # a user's class may raise any error
            reraise_stop(error)
            answer = describe_error(error)[0]
        yield answer


@contextmanager
def _poison_problem(problem: Problem) -> Iterator[None]:
    """Inside the block, draws have f and g reversed over the actions, and formulas give other
    values.
    """
    cls = type(problem)
    draw, formula = cls.draw, getattr(cls, "formula", None)
    with ExitStack() as patches:
        altered = lambda self, generators: _alter_functions(draw(self, generators))  # noqa: E731
        patches.enter_context(patch.object(cls, "draw", altered))
        if formula is not None:
            patches.enter_context(patch.object(cls, "formula", lambda self, x: -formula(self, x)))
        yield


def _alter_functions(drawn: Drawn) -> Drawn:
    """Return the same facts with other functions."""
    if isinstance(drawn, Instances):
        return replace(drawn, f=drawn.f[:, ::-1] * 0.5, g=drawn.g[:, :, ::-1] * 0.5)
    if isinstance(drawn, BoxInstances):
        formula = drawn.formula
        return replace(drawn, formula=lambda x: -formula(x))
    return drawn
