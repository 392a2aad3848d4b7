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
from cbobench.algorithms.score import ScoreAlgorithm
from cbobench.check.trial import (
    INSTEAD,
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
from cbobench.gp.beliefs import Belief, FunctionBelief
from cbobench.gp.kernels import Array
from cbobench.play.failure import describe_error
from cbobench.play.play import Play
from cbobench.problems.base import Actions, Drawn, Problem
from cbobench.problems.box import BoxInstances
from cbobench.problems.instances import Instances
from cbobench.rng import generator

ROUNDS, EARLY = 96, 24  # rounds whose calls are compared
WINDOW = 9  # rounds around each, of which the median counts
STEEP = 1.2  # exponent of t that counts as more than linear
FEW = 4096  # calls or bytes: what takes less is cheap however it grows
LINES = 6  # lines of beliefs per round, searched for kinks
COARSE = 128  # steps on a line
SLIGHT = 0.01  # relative to the largest slope: smaller changes are rounding
DECLARED = re.compile(r"[tkc]\s*(?:²|³|\^|\*\*)")


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
        fix = next(
            (fix for word, fix in FIXES.items() if word in str(error)), "a play must raise nothing"
        )
        yield trial.finding(str(error), fix)


FIXES = {  # advice, by a part of the play's error
    "is not in the box": "clip to setting.actions.low and setting.actions.high, or draw inside "
    "them",
    "no index of the set": "indices count from 0",
    "ask() gave": "see AskTell in cbobench/algorithms/asktell.py",
    "ask gave": "give one action per replicate (S = number of seeds in the block)",
    "the score": "a score has a value for each of S replicates and k candidates, and no NaN",
    "duals": "give (S, m) finite dual variables, or leave the property out",
    "recommend": "a recommendation is an action of the set, NaN or NONE where there is none yet",
    "broadcast": "arrays of beliefs are (S, k) for f and (S, m, k) for g; sum constraints over "
    "axis 1",
}


def no_global_randomness(trial: Trial) -> Iterator[Finding]:
    """No draw comes from the global generators of np.random, random or torch, whatever their
    seed.
    """
    if used := trial.recommending_reference.used:
        names = " and ".join(sorted(used))
        yield trial.finding(f"it draws from, or seeds, the global generator of {names}", INSTEAD)


def repeatable(trial: Trial) -> Iterator[Finding]:
    """The same cells, played again in this process, are equal to the last bit."""
    state, first = trial.state, trial.recommending_reference.arrays

    def replay() -> str:
        with seed_global_generators(1):
            return difference(first, trial.play(SEEDS, trial.every_round))

    # The second play is one without recommendations. Where it differs, a third one, with them,
    # tells whether they are why, which is another law.
    apart = replay() if recommending_apart(trial) else ""
    if changed := state.changed() or (state.causes(lambda: not replay()) if apart else []):
        yield trial.finding(
            f"{' and '.join(changed)} changed while it played",
            "it is shared by all runs of a process: make it in start (start_one, optimiser) "
            "instead",
        )
    elif apart:
        yield trial.finding(
            f"the same cells played twice differ in {apart}",
            "seed every generator from the streams given, keep no state outside the object, read "
            "no clock",
        )


def same_in_any_block(trial: Trial) -> Iterator[Finding]:
    """A seed plays the same alone as beside others, to the last bit, and ends with the same
    attributes.
    """
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
"""Values for parameters that vary within a block; two are taken that the class allows."""


def parameters_vary_within_a_block(trial: Trial) -> Iterator[Finding]:
    """Cells whose parameters vary as the class allows play the same alone as in one block, to the
    last bit.
    """
    pairs = {
        p.name: pair
        for p in params.params_of(trial.cls)
        if p.varies and (pair := _two_settings(trial, p))
    }
    if not pairs:
        return
    merged = [
        dict(trial.settings) | {name: pair[i][name] for name, pair in pairs.items()} for i in (0, 1)
    ]
    try:
        for settings in merged:
            params.build(trial.cls, settings)
        if not _vary_together(trial, merged):
            return  # all parameters at once: one block in place of one for each
    except CbobenchError:
        pass  # values that are allowed one by one, but not beside each other
    for name, pair in pairs.items():
        if apart := _vary_together(trial, pair):
            yield trial.finding(
                f"with two values of {name} in one block it {apart}",
                "use the parameter as an array (S, 1), or declare it without varies=True",
            )


def _vary_together(trial: Trial, pair: list[dict[str, Any]]) -> str:
    """Return how a block of cells of two settings differs from each of them alone; "" if it does
    not.
    """
    seeds = [seed for seed in SEEDS[:2] for _ in pair]
    try:
        together = trial.play(seeds, algorithm=params.build_block(trial.cls, pair * 2))
    except Broken as error:
        return f"raises in one block: {error}"
    # The cells of a setting in a block of their own play as alone, which another law says.
    differences = (
        difference(
            replace(trial, settings=settings).play(SEEDS[:2]),
            {name: values[:, i :: len(pair)] for name, values in together.items()},
        )
        for i, settings in enumerate(pair)
    )
    return next((f"differs from itself alone in {name}" for name in differences if name), "")


def _two_settings(trial: Trial, parameter: params.Param) -> list[dict[str, Any]]:
    """Return the trial's settings with two numbers for a parameter; none if it takes no two of
    `NUMBERS`.
    """
    accepted = []
    for number in NUMBERS:
        settings = dict(trial.settings) | {parameter.name: number}
        with suppress(CbobenchError):
            params.build(trial.cls, settings)
            accepted.append(settings)
    return [accepted[0], accepted[-1]] if len(accepted) > 1 else []


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
    if apart := recommending_apart(trial):
        yield trial.finding(
            f"recommend() changes {apart}",
            "it must draw nothing and keep nothing: read the model only",
        )


def recommending_apart(trial: Trial) -> str:
    """Return the first difference between the plays with and without recommendations."""
    names = ("actions", "observed_f", "observed_g", "duals")
    plays = trial.recommending_reference, trial.reference
    return difference(*({n: p.arrays[n] for n in names if n in p.arrays} for p in plays))


def reference_says_so(cls: type[Any]) -> Iterator[Finding]:
    """A yardstick that is shown f and g says that it knows them; a method is shown neither."""
    if cls.reference and "f and g" not in cls.knows:
        yield Finding(
            f"{cls.__name__} peeks: with reference = True it is shown f and g without noise",
            'remove reference; a yardstick says knows = ("f and g",)',
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
            outer, held = sys.getprofile(), tracemalloc.get_traced_memory()[0]
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
    """With the same feedback and other noise-free functions it plays the same."""
    first, told = trial.reference.arrays["actions"], trial.reference.told
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


# Scores over beliefs: defined once, pure, the same in every form, kinks given as parts ------------


def defined_hooks(cls: type[Any]) -> set[str]:
    """Return which of `score` and `parts` a class or its bases define, except the common base."""
    return {
        hook
        for hook in ("score", "parts")
        if getattr(cls, hook) is not getattr(ScoreAlgorithm, hook)
    }


def defined_once(cls: type[Any]) -> Iterator[Finding]:
    """A score is defined as `score` or as `parts`; of two formulas one would be climbed and the
    other played.
    """
    if issubclass(cls, ScoreAlgorithm) and len(defined_hooks(cls)) != 1:
        hooks = " and ".join(sorted(defined_hooks(cls))) or "neither score nor parts"
        yield Finding(
            f"{cls.__name__} defines {hooks}", "write parts where the score has kinks, else score"
        )


def pure(trial: Trial) -> Iterator[Finding]:
    """A score may be called many times a round, in any form and at any points, without changing
    anything.
    """
    if not issubclass(trial.cls, ScoreAlgorithm):
        return
    complaints: list[str] = []

    def look(algorithm: Any, t: int, belief: Belief) -> None:
        # On a box it is climbed at other points than those of the belief, in another form.
        beliefs = [belief]
        if algorithm.box is not None:
            points = np.stack(
                [generator("check", t, s).random((9, algorithm.box.d)) for s in range(len(SEEDS))]
            )
            beliefs.append(algorithm.view(*algorithm.posterior.at(points), points))
        # Asked again before and after its parts: a score that draws or keeps something gives itself
        # away.
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
                        complaints.append(
                            f"in round {t}, total() and kinks() of its parts are two formulas"
                        )

    with seed_global_generators(1):
        _play_watched(trial, look)
    if complaints:
        yield trial.finding(
            complaints[0], "a score reads the belief and self, draws nothing and changes nothing"
        )


def kinks_are_parts(trial: Trial) -> Iterator[Finding]:
    """A `score` that is climbed on a box has no kink: its slope does not jump along lines of
    beliefs.
    """
    if (
        not issubclass(trial.cls, ScoreAlgorithm)
        or defined_hooks(trial.cls) != {"score"}
        or trial.place != "a box"
    ):
        return
    jumps: list[int] = []

    def look(algorithm: Any, t: int, belief: Belief) -> None:
        for line in range(LINES if t > 1 and not jumps else 0):
            coarse, fine = (
                _jump(algorithm.score(_line(belief, line, steps)), steps)
                for steps in (COARSE, 4 * COARSE)
            )
            if (fine > np.maximum(0.6 * coarse, SLIGHT)).any():
                jumps.append(t)

    with seed_global_generators(1):
        _play_watched(trial, look)
    if jumps:
        yield trial.finding(
            f"in round {jumps[0]}, score() has a kink: its slope jumps where a belief moves on",
            "give what is in [.]⁺, min, max or abs as parts() (see Parts in "
            "cbobench/gp/parts.py): maxima lie on kinks",
        )


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
    """Return a belief at points of a line, between two sets of moments, with means of both signs
    beyond the widths.
    """
    rng = generator("line", number)
    shares = np.linspace(0.0, 1.0, steps + 1)

    def function(moments: FunctionBelief) -> FunctionBelief:
        reach = 2 * float((np.abs(moments.mean) + moments.width * moments.deviation).max())
        shape, deviation_shape = moments.mean.shape[:-1], moments.deviation.shape[:-1]
        start, end = rng.uniform(-reach, reach, (2, *shape, 1))
        largest = float(moments.deviation.max())
        low, high = rng.uniform(0.2 * largest, largest, (2, *deviation_shape, 1))
        path = None if moments.path is None else rng.uniform(-reach, reach, (*shape, 1)) * shares
        return replace(
            moments,
            mean=start + (end - start) * shares,
            deviation=low + (high - low) * shares,
            path=path,
        )

    g_t = None if belief.shown is None else np.repeat(belief.shown[..., :1], steps + 1, axis=-1)
    return Belief(function(belief.f), None if belief.g is None else function(belief.g), g_t)


def _jump(score: Array, steps: int) -> Array:
    """Return the largest change of slope between two steps, relative to the largest slope, (S,)."""
    slope = np.diff(score, axis=1) * steps
    largest = np.abs(slope).max(axis=1)
    return np.divide(
        np.abs(np.diff(slope, axis=1)).max(axis=1),
        largest,
        out=np.zeros_like(largest),
        where=largest > 0,
    )
