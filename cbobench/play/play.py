"""The only round loop: S cells of one (problem, algorithm) advance together, one round at a
time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

# Before a play needs it: its BLAS would try for ever where memory is limited and little is left.
import scipy.special  # noqa: F401
from numpy.typing import NDArray

from cbobench.algorithms.base import Algorithm, Setting
from cbobench.errors import CellFailure, show
from cbobench.gp.actions import Finite
from cbobench.gp.box_actions import Box, design
from cbobench.gp.kernels import Array
from cbobench.play.recommendations import Recommendations
from cbobench.play.recorder import ChunkMetrics, Recorder
from cbobench.problems.base import Actions, Arrivals, Drawn, Feedback, Problem
from cbobench.problems.channels import AdditiveNoise, UnderWay
from cbobench.problems.instances import check_drawn
from cbobench.problems.tables.past import FILE, take_past
from cbobench.rng import Streams, generators
from cbobench.threads import read_children_seconds

CHUNK = 1000  # rounds whose metrics are computed at once

Observer = Callable[[int], None]
"""Takes a round."""
Learn = Callable[[int, Actions, Feedback], None]
"""Takes a round, its actions and its feedback."""


@dataclass(frozen=True)
class Chunk:
    """Consecutive rounds of S cells.

    Attributes:
        first: the first round, counted from 1.
        actions: (rounds, S), or points (rounds, S, d) of a box.
        observed_f: (rounds, S).
        observed_g: (rounds, S, m). Both hold the feedback on these actions, given at once or later;
            NaN under a problem's own delays.
        duals: (rounds, S, m) after each round, or None.
        metrics: noise-free, cumulative.
    """

    first: int
    actions: Actions
    observed_f: Array
    observed_g: Array
    duals: Array | None
    metrics: ChunkMetrics


@dataclass(frozen=True)
class PlayOptions:
    """What a play adds to its rounds.

    Attributes:
        recommend_after: rounds after which the algorithm is asked for a recommendation, besides the
            last one.
        initial: rounds of the initial design by its name, {"sobol": 10}; or {"file": past
            measurements} (see `read_past`), which are told before round 1 and are no rounds.
        parallel: evaluations under way at once: {"points": 4, "as": "asynchronous"}, or "batch"
            (see `UnderWay`).
        instances: of the seeds (see `draw_instances`), if they are drawn already.
    """

    recommend_after: Iterable[int] = ()
    initial: Mapping[Any, Any] | None = None
    parallel: Mapping[str, Any] | None = None
    instances: Drawn | None = None


class Play:
    """Iterates over the rounds of S cells in chunks; afterwards `metrics` and `seconds` hold the
    cells' summary.

    Instance and feedback streams are named by (problem, seed) only. So every algorithm meets the
    same function, the same initial design and, at round t, the same noise. Names are registered
    names without parameters, so that a sweep
    over a parameter is paired, too: the same weights under another threshold, the same exploration
    draws under another width.

    Args:
        problem: prepared.
        problem_key: name of the problem in the random streams.
        algorithm: fresh.
        algorithm_key: name of the algorithm in its stream.
        seeds: one per cell.
        horizon: T.
        options: what is added to the rounds.
    """

    def __init__(
        self,
        problem: Problem,
        problem_key: str,
        algorithm: Algorithm,
        algorithm_key: str,
        seeds: Sequence[int],
        horizon: int,
        options: PlayOptions = PlayOptions(),
    ) -> None:
        parallel = options.parallel
        instances = options.instances
        self.horizon = horizon
        self.problem = problem
        self.algorithm = algorithm
        if instances is None:
            instances = draw_instances(problem, problem_key, seeds)
        self.instances = instances

        # The noise is named without the algorithm: all methods meet the same.
        feedback = Streams([("feedback", problem_key, seed) for seed in seeds])
        algorithm_streams = Streams(
            [("algorithm", problem_key, algorithm_key, seed) for seed in seeds]
        )
        self.channel = problem.feedback(self.instances, feedback)
        under_way = parallel or {"points": 1}
        self.setting = Setting.of(
            problem, self.instances, horizon, algorithm_streams, under_way["points"]
        )
        self.late = UnderWay(under_way["points"], under_way["as"] == "batch") if parallel else None

        # So is the design, which methods that sample paths on a box must know before they begin.
        self.initial: list[Actions] = []
        self.past: list[tuple[Actions, Feedback]] = []
        for name, count in (options.initial or {}).items():
            design_streams = generators(("initial design", problem_key, seed) for seed in seeds)
            if name == FILE:
                past = (
                    np.repeat(x[:, None], len(seeds), axis=1) for x in take_past(problem, count)
                )
                self.past = [(a, Feedback(v[:, 0], v[:, 1:])) for a, v in zip(*past, strict=True)]
            else:
                self.initial += list(design(problem.actions, name, count, design_streams))
        self.setting = replace(self.setting, past=len(self.past))
        given = [*self.initial, *(played for played, _ in self.past)]
        if given and isinstance(problem.actions, Box):
            self.setting = replace(self.setting, design=np.stack(given, axis=1))

        self.metrics = Recorder(self.instances, horizon)
        asked_after = {*options.recommend_after, horizon}
        self.recommendations = Recommendations(
            problem.actions, self.instances, asked_after, problem.settle
        )
        self.dual_rounds: NDArray[np.int64] | None = None
        # CPU time of the rounds (see `read_cpu_seconds`), which a busy machine does not change; of
        # a simulator at least what its simulations took on the clock, as they may wait
        self.seconds = 0.0
        self.round = 0  # the present round

    @property
    def positive_dual(self) -> Array | None:
        """Share of rounds after which any dual variable is above 0, (S,); None without dual
        variables.
        """
        if self.dual_rounds is None:
            return None
        return self.dual_rounds / self.metrics.rounds

    def __iter__(self) -> Iterator[Chunk]:
        return self.chunks()

    def chunks(self, observers: Sequence[Observer] = ()) -> Iterator[Chunk]:
        """Play the rounds.

        Args:
            observers: called once the actions of a round are chosen; they must change nothing.
        """
        if self.algorithm.reference:
            self.algorithm.look(self.instances)
        self.algorithm.start(self.setting)
        # Past measurements are no rounds: they come before round 1, and metrics know none of them.
        observe_given = self._tell_learned(self.algorithm.observe)
        for t, (played, feedback) in enumerate(self.past, 1 - len(self.past)):
            observe_given(t, played, feedback)
        for first in range(1, self.horizon + 1, CHUNK):
            yield self._chunk(first, min(CHUNK, self.horizon - first + 1), observers)

    def _chunk(self, first: int, rounds: int, observers: Sequence[Observer]) -> Chunk:
        record = _Record(first, rounds, self.setting, self.problem)
        started = read_cpu_seconds()
        simulated = self.problem.simulated_seconds
        try:
            self._play_rounds(record, observers)
        except BaseException as error:  # a user's algorithm or channel may raise any error
            if isinstance(error, Exception):
                record.check_finite()  # perhaps its cause
            if isinstance(error, CellFailure):
                raise CellFailure(f"round {self.round}: {error}") from error
            error.add_note(f"round {self.round}")
            raise

        record.check_finite()
        spent = read_cpu_seconds() - started
        if record.has_duals:
            positive = (record.duals > 0).any(axis=2).sum(axis=0)
            self.dual_rounds = positive if self.dual_rounds is None else self.dual_rounds + positive
        observations = record.actions, record.f, record.g
        recommended = self.recommendations.values(
            first, record.answers, observations, record.arrivals
        )
        metrics = self.metrics.add(record.actions, recommended)
        # A simulation may wait for what no CPU clock of ours counts.
        self.seconds += max(spent, self.problem.simulated_seconds - simulated)
        duals = record.duals if record.has_duals else None
        return Chunk(
            first=first,
            actions=record.actions,
            observed_f=self.metrics.reported(record.f),
            observed_g=record.g,
            duals=duals,
            metrics=metrics,
        )

    def _play_rounds(self, record: _Record, observers: Sequence[Observer]) -> None:
        """Play the rounds of a chunk, each by the same steps, and record them."""
        algorithm = self.algorithm
        channel = self.channel
        allowed = self.problem.actions
        late = self.late
        tell = self._tell_learned(algorithm.tell)
        observe_given = self._tell_learned(algorithm.observe)
        actions = record.actions
        f = record.f
        g = record.g
        arrivals = record.arrivals
        of_actions = actions.shape[1:]
        of_f = f.shape[1:]
        of_g = g.shape[1:]
        n_initial = len(self.initial)
        recommended_rounds = self.recommendations.rounds
        # Most rounds pass the looks below, which take a tenth of what the checks do: types and
        # shapes, and indices as unsigned ones, of which a negative one is larger than any n.
        unsigned, n = (None, 0) if isinstance(allowed, Box) else (actions.view(np.uintp), allowed.n)
        may_have_duals = type(algorithm).duals is not Algorithm.duals
        shows_nothing = isinstance(channel, AdditiveNoise) and channel.shows_nothing

        for i in range(len(actions)):
            self.round = t = record.first + i
            preview = None if shows_nothing else channel.before(t)
            if preview is not None:
                algorithm.see(t, preview)

            is_initial = t <= n_initial
            chosen = self.initial[t - 1] if is_initial else algorithm.ask(t)
            if (
                type(chosen) is not np.ndarray
                or chosen.dtype != actions.dtype
                or chosen.shape != of_actions
            ):
                _check_actions(chosen, allowed, actions)
            actions[i] = chosen  # a copy, because the algorithm and the channel may change theirs
            if unsigned is None or unsigned[i, unsigned[i].argmax()] >= n:
                _check_actions(chosen, allowed, actions)
            for observe in observers:
                observe(t)

            # The channel may be a user's, too: shapes are compared before NumPy can broadcast them.
            feedback = channel.at(t, chosen)
            if (
                feedback.f.shape != of_f
                or feedback.g.shape != of_g
                or feedback.arrivals is not None
            ):
                _check_feedback(feedback, *of_g)
                record.is_late = record.is_late or feedback.arrivals is not None
            record.lacks_f = record.lacks_f or feedback.lacks_f
            f[i] = feedback.f
            g[i] = feedback.g

            # What is told may come later than what is recorded.
            feedback = feedback if late is None else late.after(t, feedback)
            arrivals[i] = feedback.arrivals
            if is_initial:
                observe_given(t, chosen, feedback)
            else:
                tell(t, chosen, feedback)
            dual = algorithm.duals if may_have_duals else None
            if dual is not None:
                record.add_duals(i, dual)
            if t in recommended_rounds:
                record.answers[i] = algorithm.recommend(t)

    def _tell_learned(self, learn: Learn) -> Learn:
        """Return the algorithm's `tell` or `observe` for what learners are told of a feedback."""
        learned = self.problem.learned
        bound = np.zeros(self.setting.constraints)
        if self.algorithm.models_levels and self.setting.middle.any():
            bound = self.setting.middle
        if not self.problem.known_constraints and not bound.any():
            return learn

        def learn_part(t: int, actions: Actions, feedback: Feedback) -> None:
            learn(t, actions, feedback.told(learned, bound))

        return learn_part


class _Record:
    """What is played and observed in the rounds of a chunk; rounds to come are 0.

    Attributes:
        first: round of the chunk.
        actions, f, g, duals: (rounds, S[, d]), (rounds, S), (rounds, S, m), and (rounds, S, k) of
            the k constraints that learners are told of.
        arrivals: what the algorithm was told of each round, if feedback is late.
        answers: recommendations by position; None for the incumbent.
        has_duals: whether the algorithm has dual variables.
        is_late: whether the problem itself delays what it gives, so that f and g are not yet known.
        lacks_f: whether nothing is known of some f (see `Feedback`).
    """

    def __init__(self, first: int, rounds: int, setting: Setting, problem: Problem) -> None:
        replicates = setting.replicates
        allowed = problem.actions
        self.first = first
        self.actions: Actions = np.zeros((rounds, replicates), dtype=np.intp)
        if isinstance(allowed, Box):
            self.actions = np.zeros((rounds, replicates, allowed.d))
        self.f = np.zeros((rounds, replicates))
        self.g = np.zeros((rounds, replicates, problem.constraints))
        self.duals = np.zeros((rounds, replicates, setting.constraints))
        self.arrivals: list[Arrivals | None] = [None] * rounds
        self.answers: dict[int, Actions | None] = {}
        self.has_duals = self.is_late = self.lacks_f = False

    def add_duals(self, i: int, duals: Array) -> None:
        """Take the dual variables after a round. Raises `CellFailure` for another shape."""
        place = self.duals[i]
        # A quick look first, as `np.shape` takes longer and is rarely needed.
        is_alike = type(duals) is np.ndarray and duals.shape == place.shape
        if not is_alike and np.shape(duals) != place.shape:
            raise CellFailure(f"duals has shape {np.shape(duals)}; it must be {place.shape}")
        place[:] = duals
        self.has_duals = True

    def check_finite(self) -> None:
        """Refuse dual variables that are not finite, and observations unless they are late."""
        # NaN stands for what is not known, or not known yet, which is no fault.
        duals = self.duals
        f = np.where(np.isnan(self.f), 0.0, self.f) if self.lacks_f else self.f
        observations = np.zeros((*duals.shape[:2], 0)) if self.is_late else np.dstack([f, self.g])
        finite_by_kind = [np.isfinite(values).all(axis=2) for values in (observations, duals)]
        is_finite = np.stack(finite_by_kind, axis=1)  # (rounds, 2, S)
        if is_finite.all():
            return
        i, kind, s = (int(k) for k in np.argwhere(~is_finite)[0])
        t = self.first + i
        if kind == 0:
            values = ", ".join(f"{value:g}" for value in observations[i, s])
            raise CellFailure(
                f"round {t}: an observation of replicate {s} is not a number: (f, g) = ({values})"
            )
        raise CellFailure(f"round {t}: the dual variable of replicate {s} is not finite")


def read_cpu_seconds() -> float:
    """Return the CPU time of this process, all its threads, and the programs it has started.

    A method may compute in any of them. Our own threads, which watch a play, take next to nothing.
    """
    return time.process_time() + read_children_seconds()


def draw_instances(problem: Problem, problem_key: str, seeds: Sequence[int]) -> Drawn:
    """Return the instances of some seeds, checked; `problem_key` as of `Play`."""
    drawn = problem.draw(generators(("instance", problem_key, seed) for seed in seeds))
    check_drawn(drawn, problem.actions, len(seeds), problem.constraints)
    return drawn


def _check_actions(chosen: Actions, allowed: Finite | Box, actions: Actions) -> None:
    """Refuse actions outside the set, and values that NumPy would cast or broadcast into
    `actions`.
    """
    shape = actions.shape[1:]
    # Whole numbers may stand for coordinates, other numbers never for an index.
    kinds = "iu" if actions.dtype.kind == "i" else "fiu"
    if (
        not isinstance(chosen, np.ndarray)
        or chosen.shape != shape
        or chosen.dtype.kind not in kinds
    ):
        if isinstance(chosen, np.ndarray):
            answer = f"{chosen.dtype} of shape {chosen.shape}"
        else:
            answer = show(chosen)
        noun = "indices" if actions.dtype.kind == "i" else "points"
        raise CellFailure(f"ask gave {answer}; it must give an array of {noun}, shape {shape}")

    # With the right kind and shape, each replicate's action can be looked at.
    if isinstance(allowed, Box):
        inside = ((chosen >= allowed.low) & (chosen <= allowed.high)).all(axis=1)
        complaint = f"not in the box from {allowed.low.tolist()} to {allowed.high.tolist()}"
        if inside.all():
            inside = (allowed.round(chosen) == chosen).all(axis=1)
            complaint = "between whole numbers or choices; give round(...) of the box"
        if allowed.known is not None and inside.all():
            inside = ~allowed.forbids(chosen)
            complaint = "beyond a known constraint, which this method does not keep"
    else:
        inside = (chosen >= 0) & (chosen < allowed.n)
        complaint = f"no index of the set; it must give 0 to {allowed.n - 1}"
    if not inside.all():
        s = int(inside.argmin())
        raise CellFailure(f"action {chosen[s]} of replicate {s} is {complaint}")


def _check_feedback(feedback: Feedback, replicates: int, m: int) -> None:
    """Refuse observations of other shapes, and arrivals that are not finite."""
    f = feedback.f
    g = feedback.g
    arrivals = feedback.arrivals
    if f.shape != (replicates,) or g.shape != (replicates, m):
        shapes = f"f {f.shape} and g {g.shape}"
        raise CellFailure(
            f"feedback has shapes {shapes}; they must be {(replicates,)} and {(replicates, m)}"
        )
    if arrivals is not None and not np.isfinite(arrivals.value).all():
        k = int(np.isfinite(arrivals.value).argmin())
        observation = (
            f"the observation of round {arrivals.round[k]} that arrives for replicate "
            f"{arrivals.replicate[k]}"
        )
        raise CellFailure(f"{observation} is not a number: {arrivals.value[k]:g}")
