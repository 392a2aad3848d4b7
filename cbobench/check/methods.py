"""Laws of an algorithm: each gives what breaks it, and nothing where it holds. See `report` for their names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from cbobench import params
from cbobench.check.shared import INSTEAD, changed_since, seeded, snapshot
from cbobench.check.trial import Broken, Finding, Trial, at, difference
from cbobench.gp.kernels import Array

SEEDS = (0, 1, 2, 3)


def documented(cls: type[Any]) -> Iterator[Finding]:
    """It says where it comes from and what it does, and so does every parameter."""
    for name in ("source", "about"):
        if not getattr(cls, name):
            yield Finding(f"{cls.__name__}.{name} is empty", f'give it a line for the tables: {name} = "..."')
    text = vars(cls).get("__doc__")
    if not text or text.startswith(f"{cls.__name__}("):  # what a dataclass writes by itself
        yield Finding(f"{cls.__name__} has no docstring", "say in a sentence what it is, and after which source")
    for parameter in params.params_of(cls):
        if not parameter.about:
            yield Finding(f"the parameter {parameter.name} has no description", "declare it by param(default, about)")


def plays(trial: Trial) -> Iterator[Finding]:
    """It plays: actions of the right shape inside the set, finite numbers, nothing raised."""
    try:
        trial.play(SEEDS, asked=range(1, trial.horizon, 4))
    except Broken as error:
        yield Finding(f"on {trial.place}, {error}", fix_of(str(error)))


def fix_of(text: str) -> str:
    """What helps against an error of a play."""
    for word, fix in FIXES.items():
        if word in text:
            return fix
    return "a play must raise nothing"


FIXES = {
    "is not in the box": "clip to setting.actions.low and setting.actions.high, or draw inside them",
    "no index of the set": "indices count from 0",
    "ask() gave": "see AskTell in cbobench/algorithms/asktell.py",
    "ask gave": "give one action per replicate (S = number of seeds in the block)",
    "the score": "a score has a value for each of S replicates and k candidates, and no NaN",
    "duals": "give (S, m) finite dual variables, or leave the property out",
    "recommend": "a recommendation is an action of the set, NaN or NONE where there is none yet",
    "broadcast": "arrays of beliefs are (S, k) for f and (S, m, k) for g; sum constraints over axis 1",
}


def no_global_randomness(trial: Trial) -> Iterator[Finding]:
    """No draw comes from np.random, random or torch's global generator, whatever its seed."""
    with seeded(1) as used:
        trial.play(SEEDS)
    if used:
        names = " and ".join(sorted(used))
        yield Finding(f"on {trial.place}, it draws from, or seeds, the global generator of {names}", INSTEAD)


def repeatable(trial: Trial) -> Iterator[Finding]:
    """The same cells, played again in this process, are the same to the last bit."""
    before = snapshot(trial.cls)
    with seeded(1):
        first = trial.play(SEEDS)
    with seeded(2) as used:
        second = trial.play(SEEDS)
    apart = difference(first, second)
    if changed := changed_since(before, trial.cls, apart):
        what = f"on {trial.place}, {' and '.join(changed)} changed while it played"
        yield Finding(what, "it is shared by all runs of a process: make it in start (start_one, optimiser) instead")
    elif apart and not used:
        what = f"on {trial.place}, the same cells played twice differ in {apart}"
        yield Finding(
            what, "seed every generator from the streams given, keep no state outside the object, read no clock"
        )


def same_in_any_block(trial: Trial) -> Iterator[Finding]:
    """A seed plays the same alone as beside others, to the last bit, and ends with the same attributes."""
    asked = range(1, trial.horizon, 3)
    with seeded(1):
        whole = trial.play(SEEDS, asked, all_of_them := trial.algorithm())
    for block in ([3], [2, 0]):
        with seeded(1):
            part = trial.play(block, asked, some := trial.algorithm())
        mine, theirs = _kept(all_of_them, len(SEEDS)), _kept(some, len(block))
        both = [name for name in mine if name in theirs]
        whole, part = whole | {name: mine[name] for name in both}, part | {name: theirs[name] for name in both}
        for i, seed in enumerate(block):
            apart = difference(at(whole, seed), at(part, i))
            if apart:
                beside = "alone" if len(block) == 1 else "beside another one"
                what = f"on {trial.place}, seed {seed} {beside} differs from itself among {len(SEEDS)} in {apart}"
                yield Finding(
                    what, "nothing may be shared by replicates: one stream each, stacked np.matmul for products"
                )
                return


def _kept(algorithm: Any, replicates: int) -> dict[str, Array]:
    """Attributes with a value for each replicate, as of one round, (1, S, ...)."""
    arrays = {name: value for name, value in vars(algorithm).items() if isinstance(value, np.ndarray)}
    return {f"self.{name} at the end": a[None] for name, a in arrays.items() if a.shape[:1] == (replicates,)}


def recommending_changes_nothing(trial: Trial) -> Iterator[Finding]:
    """To be asked what it would recommend changes no bit of a play."""
    with seeded(1):
        asked, unasked = trial.play(SEEDS, range(1, trial.horizon)), trial.play(SEEDS)
    names = ("actions", "observed_f", "observed_g", "duals")
    apart = difference(*({n: play[n] for n in names if n in play} for play in (asked, unasked)))
    if apart:
        yield Finding(
            f"on {trial.place}, recommend() changes {apart}",
            "it must draw nothing and keep nothing: read the model only",
        )


def reference_says_so(cls: type[Any]) -> Iterator[Finding]:
    """A yardstick that is shown f and g says that it knows them; a method is shown neither."""
    if cls.reference and "f and g" not in cls.knows:
        yield Finding(
            f"{cls.__name__} peeks: with reference = True it is shown f and g without noise",
            'remove reference; a yardstick says knows = ("f and g",)',
        )
