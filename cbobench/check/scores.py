"""Laws of a score over GP beliefs: defined once, pure, the same in every form, kinks given as parts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from cbobench.algorithms.score import ScoreAlgorithm
from cbobench.check.trial import SEEDS, Finding, Trial, seed_global_generators
from cbobench.gp.beliefs import Belief, FunctionBelief
from cbobench.gp.kernels import Array
from cbobench.rng import generator

LINES = 6  # lines of beliefs per round, searched for kinks
COARSE = 128  # steps on a line
SLIGHT = 0.01  # relative to the largest slope: smaller changes are rounding


def defined_hooks(cls: type[Any]) -> set[str]:
    """Return which of `score` and `parts` a class or its bases define, except the common base."""
    return {hook for hook in ("score", "parts") if getattr(cls, hook) is not getattr(ScoreAlgorithm, hook)}


def defined_once(cls: type[Any]) -> Iterator[Finding]:
    """A score is defined as `score` or as `parts`; of two formulas one would be climbed and the other played."""
    if issubclass(cls, ScoreAlgorithm) and len(defined_hooks(cls)) != 1:
        hooks = " and ".join(sorted(defined_hooks(cls))) or "neither score nor parts"
        yield Finding(f"{cls.__name__} defines {hooks}", "write parts where the score has kinks, else score")


def pure(trial: Trial) -> Iterator[Finding]:
    """A score may be called many times a round, in any form and at any points, without changing anything."""
    if not issubclass(trial.cls, ScoreAlgorithm):
        return
    complaints: list[str] = []

    def look(algorithm: Any, t: int, belief: Belief) -> None:
        beliefs = [belief]
        if algorithm.box is not None:
            points = np.stack([generator("check", t, s).random((9, algorithm.box.d)) for s in range(len(SEEDS))])
            beliefs.append(algorithm.view(*algorithm.posterior.at(points), points))
        for sample in beliefs:
            first = algorithm.score(sample).copy()
            total, repeated = algorithm.parts(sample).total(), algorithm.score(sample)
            if not np.array_equal(first, repeated, equal_nan=True):
                complaints.append(f"asked twice in round {t}, the score gives two answers")
            elif not np.array_equal(total, first, equal_nan=True):
                complaints.append(f"in round {t}, parts() and score() are two formulas")
            else:
                with np.errstate(invalid="ignore"):
                    kinks = algorithm.parts(sample).kinks().total()
                    if not np.allclose(kinks, first, rtol=1e-9, atol=1e-9, equal_nan=True):
                        complaints.append(f"in round {t}, total() and kinks() of its parts are two formulas")

    with seed_global_generators(1):
        _play_watched(trial, look)
    if complaints:
        yield Finding(
            f"on {trial.place}, {complaints[0]}", "a score reads the belief and self, draws nothing and changes nothing"
        )


def kinks_are_parts(trial: Trial) -> Iterator[Finding]:
    """A `score` that is climbed on a box has no kink: its slope does not jump along lines of beliefs."""
    if not issubclass(trial.cls, ScoreAlgorithm) or defined_hooks(trial.cls) != {"score"} or trial.place != "a box":
        return
    jumps: list[int] = []

    def look(algorithm: Any, t: int, belief: Belief) -> None:
        for line in range(LINES if t > 1 and not jumps else 0):
            coarse, fine = (_jump(algorithm.score(_line(belief, line, steps)), steps) for steps in (COARSE, 4 * COARSE))
            if (fine > np.maximum(0.6 * coarse, SLIGHT)).any():
                jumps.append(t)

    with seed_global_generators(1):
        _play_watched(trial, look)
    if jumps:
        evidence = f"on {trial.place}, in round {jumps[0]}, score() has a kink: its slope jumps where a belief moves on"
        fix = (
            "give what is in [.]⁺, min, max or abs as parts() (see Parts in cbobench/gp/parts.py): maxima lie on kinks"
        )
        yield Finding(evidence, fix)


def _play_watched(trial: Trial, look: Callable[[Any, int, Belief], None]) -> None:
    """Play, and examine the score in every round."""
    algorithm = trial.algorithm()
    begin = algorithm.begin

    def spy(t: int, belief: Belief) -> None:
        begin(t, belief)
        look(algorithm, t, belief)

    algorithm.begin = spy
    trial.play(SEEDS, algorithm=algorithm)


def _line(belief: Belief, number: int, steps: int) -> Belief:
    """Return a belief at points of a line, between two sets of moments, with means of both signs beyond the widths."""
    rng = generator("line", number)
    shares = np.linspace(0.0, 1.0, steps + 1)

    def function(moments: FunctionBelief) -> FunctionBelief:
        reach = 2 * float((np.abs(moments.mean) + moments.width * moments.deviation).max())
        shape, deviation_shape = moments.mean.shape[:-1], moments.deviation.shape[:-1]
        start, end = rng.uniform(-reach, reach, (2, *shape, 1))
        largest = float(moments.deviation.max())
        low, high = rng.uniform(0.2 * largest, largest, (2, *deviation_shape, 1))
        path = None if moments.path is None else rng.uniform(-reach, reach, (*shape, 1)) * shares
        return replace(moments, mean=start + (end - start) * shares, deviation=low + (high - low) * shares, path=path)

    g_t = None if belief.shown is None else np.repeat(belief.shown[..., :1], steps + 1, axis=-1)
    return Belief(function(belief.f), None if belief.g is None else function(belief.g), g_t)


def _jump(score: Array, steps: int) -> Array:
    """Return the largest change of slope between two steps, relative to the largest slope, (S,)."""
    slope = np.diff(score, axis=1) * steps
    largest = np.abs(slope).max(axis=1)
    return np.divide(np.abs(np.diff(slope, axis=1)).max(axis=1), largest, out=np.zeros_like(largest), where=largest > 0)
