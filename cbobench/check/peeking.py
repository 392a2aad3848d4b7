"""Law: what an algorithm plays depends on what it is told, and not on f and g without noise.

A play is recorded; then it is played again where everything that an algorithm may see is as before, and f and g are
other functions wherever code may look for them: in the instances, in the problem, behind what the setting holds.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from cbobench.algorithms.base import Setting
from cbobench.check.methods import SEEDS
from cbobench.check.shared import seeded
from cbobench.check.trial import Broken, Finding, Trial, played
from cbobench.gp.kernels import Array
from cbobench.play.failure import described
from cbobench.play.play import Play
from cbobench.problems.base import Actions, Channel, Drawn, Feedback, Problem, Shown
from cbobench.problems.box import BoxInstances
from cbobench.problems.instances import Instances


class _Tape:
    """A channel that records what is told, and afterwards tells it again, whatever is played."""

    def __init__(self, inner: Channel) -> None:
        self.inner: Channel | None = inner
        self.told: list[Feedback] = []
        self.shown: list[Array | None] = []

    def before(self, t: int) -> Shown | None:
        if self.inner is not None:
            shown = self.inner.before(t)
            self.shown.append(None if shown is None else shown(None))
        values = self.shown[t - 1]
        return None if values is None else lambda points: values.copy()

    def at(self, t: int, actions: Actions) -> Feedback:
        if self.inner is not None:
            self.told.append(self.inner.at(t, actions))
        told = self.told[t - 1]
        return replace(told, f=told.f.copy(), g=told.g.copy())


class _Table:
    """What `setting.slopes` gives, kept as numbers: the second play has no function to ask."""

    def __init__(self, slopes: Any) -> None:
        self.slopes = slopes
        self.known: dict[bytes, Array] = {}

    def __call__(self, metric: Array) -> Array:
        key = metric.tobytes()
        if key not in self.known:
            if self.slopes is None:
                raise Broken("it asks for slopes under a metric that it did not ask for before")
            self.known[key] = self.slopes(metric)
        return self.known[key].copy()


def no_peeking(trial: Trial) -> Iterator[Finding]:
    """With the same feedback and other noise-free functions it plays the same."""
    if trial.cls.reference or _shows_on_a_box(trial):
        return
    play = Play(trial.problem, trial.place, trial.algorithm(), trial.name, SEEDS, trial.horizon)
    tape, setting = _Tape(play.channel), play.setting
    table = None if setting.slopes is None else _Table(setting.slopes)
    setting = replace(setting, slopes=table)
    play.channel, play.setting = tape, setting
    with seeded(1):
        first = played(play)["actions"]
    tape.inner = None
    if table is not None:
        table.slopes = None
    del play
    gc.collect()
    with _poisoned(trial.problem), seeded(1):
        for t, (mine, theirs) in enumerate(zip(first, _again(trial, setting, tape), strict=True), 1):
            if isinstance(theirs, str):
                yield _finding(trial, f"it fails in round {t} where f and g are hidden ({theirs})")
                return
            if not np.array_equal(mine, theirs):
                yield _finding(trial, f"in round {t} it plays otherwise where only the noise-free f and g are others")
                return


def _again(trial: Trial, setting: Setting, tape: _Tape) -> Iterator[Actions | str]:
    """What it plays when it is told the same again; what it raises ends that."""
    algorithm = trial.algorithm()
    for t in range(1, trial.horizon + 1):
        try:
            if t == 1:
                algorithm.start(setting)
            shown = tape.before(t)
            if shown is not None:
                algorithm.see(t, shown)
            chosen = algorithm.ask(t)
            yield chosen.copy()
            algorithm.tell(t, chosen, tape.at(t, chosen))
        except Exception as error:  # a user's class may raise anything
            yield described(error)[0]


def _finding(trial: Trial, seen: str) -> Finding:
    fix = "go by what tell() is given and by what Setting says; never by instances, formulas or draws of the problem"
    return Finding(f"on {trial.place}, it peeks: {seen}", fix)


def _shows_on_a_box(trial: Trial) -> bool:
    """Whether functions are shown that cannot be written down as numbers."""
    return trial.place == "a box" and "full information of the constraints" in trial.problem.offers()


@contextmanager
def _poisoned(problem: Problem) -> Iterator[None]:
    """Within, what the problem draws has f and g reversed over the actions, and its formulas give other values."""
    cls = type(problem)
    hidden = {name: vars(cls).get(name) for name in ("draw", "formula")}
    draw = cls.draw
    formula = getattr(cls, "formula", None)

    def other(self: Problem, generators: Sequence[np.random.Generator]) -> Drawn:
        return _other(draw(self, generators))

    try:
        cls.draw = other  # type: ignore[method-assign]
        if formula is not None:
            cls.formula = lambda self, x: -formula(self, x)  # type: ignore[attr-defined]
        yield
    finally:
        for name, own in hidden.items():
            if own is not None:
                setattr(cls, name, own)
            elif name in vars(cls):
                delattr(cls, name)


def _other(drawn: Drawn) -> Drawn:
    """The same facts, and other functions."""
    if isinstance(drawn, Instances):
        return replace(drawn, f=drawn.f[:, ::-1] * 0.5, g=drawn.g[:, :, ::-1] * 0.5)
    if isinstance(drawn, BoxInstances):
        formula = drawn.formula
        return replace(drawn, formula=lambda x: -formula(x))
    return drawn
