"""Laws of an algorithm. Each yields the findings that break it, none if it holds. See `report` for
their names.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import numpy as np

from cbobench import params
from cbobench.check.trial import (
    OF_A_PLAY,
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
from cbobench.play.task import describe_error
from cbobench.problems.base import Actions, Drawn, Problem
from cbobench.problems.formulas.box import BoxInstances
from cbobench.problems.instances import Instances


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


def plays(trial: Trial, fix: str = "a play must raise nothing") -> Iterator[Finding]:
    """It plays: actions of the right shape inside the set, finite numbers, no exception."""
    try:
        _ = trial.played
    except Broken as error:
        yield trial.finding(str(error), fix)


OWN_STREAMS = (
    "seed every generator from the streams given (setting.streams, given.generator), use no global "
    "one, keep no state outside the object, read no clock"
)


def repeatable(trial: Trial, fix: str = OWN_STREAMS) -> Iterator[Finding]:
    """The same cells, played again in this process, are equal to the last bit, whatever the global
    generators of np.random, random and torch hold.
    """
    arrays, _ = trial.played
    with seed_global_generators(2):
        again = trial.play(SEEDS, trial.algorithm())
    if apart := difference(arrays, again):
        yield trial.finding(f"the same cells played twice differ in {apart}", fix)


def same_in_any_block(trial: Trial) -> Iterator[Finding]:
    """A seed plays the same alone as beside others, to the last bit, and ends with the same
    attributes; and so do cells of two settings that may share a block.
    """
    yield from find_seeds_apart(
        trial,
        "nothing may be shared by replicates: one stream each, stacked np.matmul for products",
    )
    yield from _find_settings_apart(trial)


def find_seeds_apart(trial: Trial, fix: str) -> Iterator[Finding]:
    """Find a seed that plays otherwise alone or beside another one."""
    reference, reference_algorithm = trial.played
    reference_ends = _last_attributes(reference_algorithm, len(SEEDS))
    for block, beside in (([2], "alone"), ([1, 0], "beside another one")):
        algorithm = trial.algorithm()
        with seed_global_generators(1):
            arrays = trial.play(block, algorithm)
        block_ends = _last_attributes(algorithm, len(block))
        # An attribute may have as many rows as one of the blocks has seeds by chance.
        common = [name for name in reference_ends if name in block_ends]
        expected = reference | {name: reference_ends[name] for name in common}
        arrays |= {name: block_ends[name] for name in common}
        for i, seed in enumerate(block):
            apart = difference(select_replicate(expected, seed), select_replicate(arrays, i))
            if apart:
                yield trial.finding(
                    f"seed {seed} {beside} differs from itself among {len(SEEDS)} in {apart}", fix
                )


NUMBERS = (0.5, 0.8, 2.0, 3.0, 12.0, 40.0)
"""Values for parameters that may vary within a block; two are taken that the class allows."""


def _find_settings_apart(trial: Trial) -> Iterator[Finding]:
    """Find cells of two settings that play otherwise in one block than alone."""
    # Every parameter that may vary within a block has two values in it.
    pair = [dict(trial.settings), dict(trial.settings)]
    for parameter in params.params_of(trial.cls):
        if parameter.varies:
            allowed = _list_allowed(trial.cls, pair, parameter.name)
            for settings, number in zip(pair, allowed[:1] + allowed[1:][-1:], strict=False):
                settings[parameter.name] = number
    if pair[0] == pair[1]:
        return

    # The two take turns in the block: cells of each are every second one.
    seeds = [seed for seed in SEEDS[:2] for _ in pair]
    together = trial.play(seeds, params.build_block(trial.cls, pair * 2))
    for i, settings in enumerate(pair):
        alone = trial.play(SEEDS[:2], params.build(trial.cls, settings))
        in_block = {name: values[:, i::2] for name, values in together.items()}
        if apart := difference(alone, in_block):
            yield trial.finding(
                f"beside a cell of other parameters a cell differs from itself alone in {apart}",
                "use what varies as an array (S, 1), or declare it without varies=True",
            )


def _list_allowed(cls: type[Any], pair: list[dict[str, Any]], name: str) -> list[float]:
    """Return those of `NUMBERS` that a parameter may have in both of two settings."""
    allowed = []
    for number in NUMBERS:
        with suppress(CbobenchError):
            for settings in pair:
                params.build(cls, settings | {name: number})
            allowed.append(number)
    return allowed


def _last_attributes(algorithm: Any, replicates: int) -> dict[str, Array]:
    """Return attributes with a value for each replicate, as of one round, (1, S, ...)."""
    return {
        f"self.{name} at the end": value[None]
        for name, value in vars(algorithm).items()
        if isinstance(value, np.ndarray) and value.shape[:1] == (replicates,)
    }


def recommending_changes_nothing(trial: Trial) -> Iterator[Finding]:
    """Asking for a recommendation changes no bit of a play."""
    asked, left_alone = (
        {name: arrays[name] for name in OF_A_PLAY if name in arrays}
        for arrays, _ in (trial.played, trial.recorded)
    )
    if apart := difference(asked, left_alone):
        yield trial.finding(
            f"recommend() changes {apart}",
            "it must draw nothing and keep nothing: read the model only",
        )


def leaves_what_it_is_told(trial: Trial) -> Iterator[Finding]:
    """What a method is told stays as it was: each feedback, and the arrays of its setting."""
    _, tape = trial.recorded
    if tape is None:
        return
    changed = [
        f"setting.{name}"
        for name, before in tape.facts.items()
        if not np.array_equal(getattr(tape.setting, name), before, equal_nan=True)
    ]
    changed += [
        f"the feedback of round {t}"
        for t, (told, given) in enumerate(zip(tape.feedbacks, tape.given, strict=False), 1)
        for before, after in ((told.f, given.f), (told.g, given.g))
        if not np.array_equal(before, after, equal_nan=True)
    ]
    for what in changed:
        yield trial.finding(
            f"it changes {what}", "others are told the same: change a copy of your own"
        )


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
    arrays, tape = trial.recorded
    if tape is None:
        return

    # Its first round that is another under the same feedback shows what else it looks at.
    evidence = ""
    with _poison_problem(trial.problem), seed_global_generators(1):
        replayed = _replay(trial, tape)
        for t, played in enumerate(arrays["actions"], 1):
            try:
                if not np.array_equal(played, next(replayed)):
                    evidence = (
                        f"in round {t} it plays otherwise where only the noise-free f and g are "
                        "others"
                    )
            except BaseException as error:  # a user's class may raise any error
                reraise_stop(error)
                reason = describe_error(error)[0]
                evidence = f"it fails in round {t} where f and g are hidden ({reason})"
            if evidence:
                break
    if evidence:
        yield trial.finding(
            f"it peeks: {evidence}",
            "go by what tell() is given and what Setting says; never by instances, formulas or "
            "draws",
        )


def _replay(trial: Trial, tape: Tape) -> Iterator[Actions]:
    """Yield what it plays under replayed feedback, round by round."""
    algorithm = trial.algorithm()
    algorithm.start(tape.setting)
    for t in range(1, trial.horizon + 1):
        function = tape.before(t)
        if function is not None:
            algorithm.see(t, function)
        chosen = algorithm.ask(t)
        yield chosen.copy()
        algorithm.tell(t, chosen, tape.at(t, chosen))


def _poison_problem(problem: Problem) -> AbstractContextManager[Any]:
    """Inside the block, draws have f and g reversed over the actions, and formulas give other
    values.
    """
    cls = type(problem)
    draw, formula = cls.draw, getattr(cls, "formula", None)
    altered: dict[str, Any] = {
        "draw": lambda self, generators: _alter_functions(draw(self, generators))
    }
    if formula is not None:
        altered["formula"] = lambda self, x: -formula(self, x)
    return patch.multiple(cls, **altered)


def _alter_functions(drawn: Drawn) -> Drawn:
    """Return the same facts with other functions."""
    if isinstance(drawn, Instances):
        return replace(drawn, f=drawn.f[:, ::-1] * 0.5, g=drawn.g[:, :, ::-1] * 0.5)
    if isinstance(drawn, BoxInstances):
        formula = drawn.formula
        return replace(drawn, formula=lambda x: -formula(x))
    return drawn
