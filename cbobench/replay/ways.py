"""The two ways to replay cells: anew, as a sweep does, to the last bit, or round by round on a
published history.

Where a method is asked round by round, differences of rounding do not add up.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, cast

import numpy as np
import pyarrow as pa

from cbobench.algorithms.admmbo import ADMMBO
from cbobench.algorithms.asktell import AskTell
from cbobench.algorithms.base import NONE, Algorithm, OneRun
from cbobench.algorithms.scbo import SCBO
from cbobench.algorithms.score import ScoreAlgorithm
from cbobench.errors import DamagedRun, one_line
from cbobench.gp.actions import tie_widths
from cbobench.gp.box_actions import Box
from cbobench.gp.kernels import Array
from cbobench.play.block import start
from cbobench.play.failure import reraise_interrupt
from cbobench.play.isolation import captured_output, default_warnings, isolate_play
from cbobench.play.play import Play
from cbobench.play.process import preserve_process
from cbobench.play.task import Task, play_task
from cbobench.problems.base import Actions, Channel, Feedback, Problem
from cbobench.problems.instances import PLAYED
from cbobench.replay.differences import (
    OF_RECOMMENDATION,
    describe,
    find_difference,
    find_false_recommendation,
    find_other_recommendation,
    find_unstored,
    is_of_older_rule,
    published_point,
    recompute,
    to_array,
    value_recommendation,
)
from cbobench.replay.sources import (
    Candidate,
    Outcome,
    Recommendation,
    Rounds,
    Source,
    State,
    Unplayable,
)
from cbobench.results.folder import RunFolder
from cbobench.results.history import Record, read_records
from cbobench.results.query import read_published
from cbobench.threads import single_thread

MISSING = ("ModuleNotFoundError", "ImportError")
"""Errors of a play that lacks a library."""
CALLED = {"start", "look", "see", "tell", "observe", "recommend"}
"""What a play calls of a method, but for `ask`."""
NEAR = 1e-6  # of a side of the box: actions that agree so far are the same
TIE = 1e-9  # of the score: actions whose scores agree so far tie


def play_again(problem: Problem, source: Source, candidates: Sequence[Candidate]) -> list[Outcome]:
    """Return what became of cells of one pair and horizon that were played again.

    Raises:
        DamagedRun: what is published of them is damaged.
    """
    cells = tuple(candidate.cell for candidate in candidates)
    published = read_records(source.folder, source.published, [cell.id for cell in cells])
    task = Task(cells, source.manifest.keep, source="replay", libraries="replay")
    with tempfile.TemporaryDirectory() as place:
        folder = RunFolder(place)
        with default_warnings(), captured_output():
            play_task(problem, task, folder)
        replayed = read_published(folder, None)
        rows = replayed.table.select(["cell", "status", "error"]).to_pylist()
        errors = {row["cell"]: row["error"] or "" for row in rows if row["status"] != "ok"}
        played = read_records(
            folder, replayed, [cell.id for cell in cells if cell.id not in errors]
        )
    outcomes = []
    for candidate in candidates:
        cell = candidate.cell.id
        error = errors.get(cell)
        if error is None:
            outcomes.append(_compare(problem, candidate, published[cell], played[cell]))
            continue
        lacks = error.rpartition(": round ")[2].startswith(MISSING) or error.startswith(MISSING)
        text = error if lacks else f"it fails: {error}"
        outcomes.append(Outcome(candidate, "unplayable" if lacks else "differs", text))
    return outcomes


def _compare(problem: Problem, candidate: Candidate, published: Record, played: Record) -> Outcome:
    absent = candidate.source.absent
    text = find_difference(candidate.cell, published, played, absent)
    is_older = is_of_older_rule(published.final)
    recommendation_text = find_other_recommendation(published, played, absent)
    if not text and recommendation_text and not is_older:
        text = f"the play is the same, but {recommendation_text}"
    elif not text and recommendation_text:
        text = _find_false_values(problem, candidate, published, played)
    return Outcome(
        candidate,
        "differs" if text else "equal",
        text,
        digest=published.digest is not None,
        recommendation="older" if recommendation_text and is_older else "same",
        unstored=find_unstored(published, played, absent),
    )


def _find_false_values(
    problem: Problem, candidate: Candidate, published: Record, played: Record
) -> str:
    """Return where the values of an older rule's recommendation are not those of what it
    recommends, or "".
    """
    cell = candidate.cell
    names = cell.pair.problem.name, cell.pair.algorithm.name
    with (
        single_thread(),
        default_warnings(),
        captured_output(),
        preserve_process(),
        isolate_play(*names, cell.seed),
    ):
        try:
            play, _ = start(problem, [cell], cell.horizon, candidate.source.manifest.keep)
            values, scales = value_recommendation(play, published.final)
        except BaseException as error:  # a problem may raise any error
            reraise_interrupt(error)
            return f"it fails: {one_line(error)}"
    valued = replace(played, final=played.final | values)
    return find_false_recommendation(
        published, valued, {*candidate.source.absent, *OF_RECOMMENDATION} - {*values}, scales
    )


class History(NamedTuple):
    """A recorded play: actions (T,) or (T, d), and what was observed, f (T,) and g (T, m), in the
    units of tables.
    """

    actions: Actions
    f: Array
    g: Array

    @classmethod
    def of(cls, table: pa.Table) -> History:
        """Return the history that a table with the columns `results.history.HISTORY` holds."""
        on_box = table["action"].null_count > 0
        actions = to_array(table["x"]) if on_box else to_array(table["action"]).astype(np.intp)
        return cls(actions, to_array(table["observed_f"]), to_array(table["observed_g"]))


class RecordedChannel:
    """A channel whose answers are the recorded ones, where they were recorded at once; it notes the
    problem's own.

    Args:
        channel: of the problem at hand.
        history: of one cell.
        units: zero and unit of f in tables.

    Attributes:
        answers: what the problem answered, f and g (m,) of each round, in the units of tables.
    """

    def __init__(self, channel: Channel, history: History, units: tuple[float, float]) -> None:
        self.channel, self.history, self.units = channel, history, units
        self.answers: list[tuple[float, Array]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.channel, name)

    def at(self, t: int, actions: Actions) -> Feedback:
        """Return the recorded feedback of round t; that of the problem at hand where it came
        late.
        """
        feedback = self.channel.at(t, actions)
        zero, unit = self.units
        f = feedback.f if self.units == PLAYED else zero + unit * feedback.f
        self.answers.append((float(f[0]), feedback.g[0].copy()))
        if feedback.arrivals is not None:
            return feedback
        # Converted back to the units played, f may lose its last bit: where the problem gives it,
        # it is taken as it is.
        recorded = self.history.f[t - 1 : t]
        own = feedback.f if f[0] == recorded[0] else (recorded - zero) / unit
        return Feedback(own, self.history.g[t - 1 : t].copy())

    def observed(self) -> tuple[Array, Array]:
        """Return the problem's own answers, f (T,) and g (T, m)."""
        f, g = zip(*self.answers, strict=True)
        return np.array(f), np.stack(g)


class Prompted:
    """A method that is asked in each round of a recorded play, which goes on with the recorded
    action.

    Once it fails it is not asked again; the recorded play goes on to its end, because more than the
    method is compared.

    Args:
        method: not started; one cell.
        history: of the cell.
        box: the actions, if they are a box.

    Attributes:
        rounds: how it answered so far.
        difference: the first round whose answer is neither the recorded action nor ties with it.
        of_design: the same of the suite's initial design, which no method chooses.
        failure: what it raised, if it did.
    """

    def __init__(self, method: Algorithm, history: History, box: Box | None) -> None:
        self.method, self.history, self.box = method, history, box
        self.rounds, self.difference, self.of_design = Rounds(), "", ""
        self.failure: BaseException | None = None

    duals = None  # which no comparison needs

    def __getattr__(self, name: str) -> Any:
        """Return what the method has of that name; of what a play calls, a call that fails once
        alone.
        """
        attribute = getattr(self.method, name)
        return partial(self._try, attribute) if name in CALLED else attribute

    def ask(self, t: int) -> Actions:
        """Ask the method, judge its answer, and return the recorded action, which it takes for its
        own.
        """
        self._try(self._judge, t)
        return self.history.actions[t - 1 : t].copy()

    def _try(self, call: Callable[..., Any], *arguments: Any) -> Any:
        """Return what the method answers, or None once it has failed."""
        if self.failure is not None:
            return None
        try:
            return call(*arguments)
        except BaseException as error:  # a method may raise any error
            reraise_interrupt(error)
            self.failure = error
            return None

    def _judge(self, t: int) -> None:
        answer, recorded = np.asarray(self.method.ask(t)), self.history.actions[t - 1 : t].copy()
        is_equal = answer.shape == recorded.shape and (answer == recorded).all()
        if is_equal or self.is_near(answer, recorded):
            self.rounds = self.rounds.add_one("same")
        else:
            gap = (
                None
                if not isinstance(self.method, ScoreAlgorithm)
                else find_score_gap(self.method, recorded)
            )
            self.count_apart(t, answer, recorded, gap)
        if not is_equal:
            adopt(self.method, t, recorded)

    def is_near(self, answer: Actions, recorded: Actions) -> bool:
        """Return whether two actions are the same up to rounding."""
        if self.box is None or answer.shape != recorded.shape:
            return False
        return bool((np.abs(answer - recorded) <= NEAR * (self.box.high - self.box.low)).all())

    def count_apart(
        self, t: int, answer: Actions, recorded: Actions, gap: tuple[float, bool] | None
    ) -> None:
        """Count a round whose actions differ; `gap` as of `find_score_gap`, None without scores."""
        if gap is not None and gap[1]:
            self.rounds = self.rounds.add_one("ties")
            return
        self.rounds = self.rounds.add_one("others")
        score = (
            ""
            if gap is None
            else f"; its score is {abs(gap[0]):.3g} {'higher' if gap[0] > 0 else 'lower'}"
        )
        text = describe("the action", answer[0] if len(answer) else answer, recorded[0])
        self.difference = self.difference or f"round {t:,}: {text}{score}"


def find_score_gap(method: ScoreAlgorithm, recorded: Actions) -> tuple[float, bool]:
    """Return by how much the chosen action's score exceeds the recorded one's in this round, and
    whether they tie.

    Args:
        method: asked, and not yet told.
        recorded: (1,), or a point (1, d) of the box.
    """
    chosen, best = as_chosen(method, recorded), float(method.achieved[0])
    if method.box is None:
        every = method.score(method.belief)
        score = float(every[0, chosen[0]])
    else:
        points = chosen[:, None]
        every = method.parts(method.belief).kinks().total()
        score = float(
            method.parts(method.view(*method.posterior.at(points), points)).kinks().total()[0, 0]
        )
    if best == score:
        return 0.0, True
    width = float(tie_widths(every, every.max(axis=1))[0])
    return best - score, abs(best - score) <= max(width, TIE * max(abs(best), abs(score)))


def as_chosen(method: ScoreAlgorithm, recorded: Actions) -> Actions:
    """Return a recorded action as a method holds its chosen one: an index, or a point of the unit
    cube.

    Raises:
        Unplayable: the method plays on a grid that has no such point here.
    """
    grid = getattr(method, "grid_points", None)
    if grid is not None:
        design = getattr(method, "design", None)
        points = grid if design is None else np.concatenate([grid, design[0]])
        away = np.abs(points - recorded[0]).max(axis=1)
        sides = grid.max(axis=0) - grid.min(axis=0)
        if away.min() > NEAR * sides.max():
            raise Unplayable(
                "the candidates are others here, so that it cannot be asked round by round"
            )
        return np.array([away.argmin()])
    return recorded if method.box is None else method.box.unit(recorded)


def adopt(method: Algorithm, t: int, recorded: Actions) -> None:
    """Let a method that has just answered take the recorded action for its answer."""
    if isinstance(method, ScoreAlgorithm):
        method.chosen = as_chosen(method, recorded)
    elif isinstance(method, OneRun):
        run = method.runs[0]
        action = recorded[0] if recorded.ndim == 2 else int(recorded[0])
        if isinstance(run, AskTell):
            points = run.given.points
            run.proposals[t] = action if recorded.ndim == 2 or points is None else points[action]
        elif isinstance(run, SCBO) and t in run.proposals:
            run.proposals[t] = run.model.input_of(action), run.proposals[t][1]
        elif isinstance(run, ADMMBO):
            run.inputs = run.model.input_of(action)


def ask_by_round(problem: Problem, candidate: Candidate) -> Outcome:
    """Return how a cell's method answers in each round of its published history, and what else
    differs.

    What the recorded actions determine is computed again, whatever the method answers.

    Raises:
        DamagedRun: what is published of it is damaged.
    """
    # As a worker plays it, but that the recorded actions and observations are put in the place of
    # new ones.
    source, cell = candidate.source, candidate.cell
    published = read_records(source.folder, source.published, [cell.id])[cell.id]
    assert published.history is not None, "only cells with a history are asked"
    names = cell.pair.problem.name, cell.pair.algorithm.name
    with (
        single_thread(),
        default_warnings(),
        captured_output(),
        preserve_process(),
        isolate_play(*names, cell.seed),
    ):
        try:
            history = History.of(published.history)
            play, _ = start(problem, [cell], cell.horizon, source.manifest.keep)
            play.recommendations.rounds = {cell.horizon}
            prompted, answers = prompt(play, history)
            played, scales = recompute(published, play, list(play), answers.observed())
        except DamagedRun:
            raise
        # a problem may raise any error, and so may the recorded actions make it
        except BaseException as error:
            reraise_interrupt(error)
            state: State = "unplayable" if isinstance(error, ImportError) else "differs"
            return Outcome(candidate, state, f"it fails: {one_line(error)}")
        recommended = play.recommendations.last
        assert recommended is not None, "it is asked after the last round"
    # What the recorded actions determine must agree, whatever the method answers.
    text = find_difference(cell, published, played, source.absent, scales)
    text = text or find_false_recommendation(published, played, source.absent, scales)
    # Answers of other libraries are counted, and are no difference: only ours promise the same
    # arithmetic.
    is_ours = not prompted.method.libraries
    recommendation: Recommendation = "unknown"
    if prompted.failure is None:
        recommendation = _judge_recommendation(published, recommended[0], prompted.box)
        if recommendation == "other" and play.recommendations.modelled is not True:
            text = text or "what it recommends is not the best action that it observed"
    text = text or prompted.of_design or (prompted.difference if is_ours else "")
    outcome = partial(
        Outcome,
        candidate,
        rounds=prompted.rounds,
        is_ours=is_ours,
        recommendation=recommendation,
        unstored=find_unstored(published, played, source.absent),
    )
    if text or prompted.failure is None:
        return outcome("differs" if text else "equal", text)
    failure = prompted.failure
    why = str(failure) if isinstance(failure, Unplayable) else f"it fails: {one_line(failure)}"
    # What a library makes of points that it did not propose is its own affair.
    is_fault = is_ours and not isinstance(failure, ImportError | Unplayable)
    return outcome("differs" if is_fault else "unplayable", why)


def _judge_recommendation(
    published: Record, recommended: Actions, box: Box | None
) -> Recommendation:
    """Return whether the final recommendation (1,) or (1, d) of a play is the published one."""
    point = published_point(published.final)
    is_none = bool(np.isnan(recommended).all() if box is not None else recommended[0] == NONE)
    if point is None or is_none:
        same = point is None and is_none
    else:
        width = 0.0 if box is None else NEAR * (box.high - box.low)
        same = point.shape == recommended.shape and bool(
            (np.abs(point - recommended) <= width).all()
        )
    if same:
        return "same"
    return "older" if is_of_older_rule(published.final) else "other"


def prompt(play: Play, history: History) -> tuple[Prompted, RecordedChannel]:
    """Let a play that has not begun go along a recorded one."""
    box = play.problem.actions if isinstance(play.problem.actions, Box) else None
    prompted = Prompted(play.algorithm, history, box)
    for i, designed in enumerate(play.initial):
        recorded = history.actions[i : i + 1].copy()
        if (designed == recorded).all() or prompted.is_near(designed, recorded):
            prompted.rounds = prompted.rounds.add_one("same")
        else:
            prompted.count_apart(i + 1, designed, recorded, None)
            prompted.of_design = prompted.difference
        play.initial[i] = recorded
    if play.initial and play.setting.design is not None:
        play.setting = replace(play.setting, design=np.stack(play.initial, axis=1))
    answers = RecordedChannel(play.channel, history, play.instances.units)
    play.algorithm, play.channel = cast(Algorithm, prompted), cast(Channel, answers)
    return prompted, answers
