"""Ask and tell: an optimiser of another library, or a few lines of your own, as an algorithm.

    from dataclasses import dataclass

    from cbobench.algorithms.asktell import AskTell, Given


    class Uniform:
        def __init__(self, given: Given):
            self.given = given

        def ask(self):
            return self.given.generator.uniform(self.given.low, self.given.high)

        def tell(self, x, f, g):
            pass


    @dataclass(kw_only=True)
    class Mine(AskTell):
        \"\"\"What it does, in a sentence.\"\"\"

        source = "Author (year)"
        about = "plays uniformly at random"

        def optimiser(self, given):
            return Uniform(given)

In mine.py beside a suite, this is `mine:Mine` there.
"""

from __future__ import annotations

import operator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NoReturn, Protocol

import numpy as np

from cbobench.algorithms.base import NONE, OneRun, Setting
from cbobench.errors import CellFailure, Misuse, show
from cbobench.gp.box_actions import Box
from cbobench.gp.kernels import Array
from cbobench.gp.posteriors.choice import Kind
from cbobench.params import required, state
from cbobench.problems.base import Problem

MOST_ASKS = 100  # in place of points that a known constraint forbids
ROUNDING = 1e-9  # relative to a side: a point this far outside a box is moved onto its face


class Optimiser(Protocol):
    """One run's optimiser.

    Optional methods: `recommend() -> x` (None: nothing yet), which must change nothing (where
    feedback is exact, the best feasible point measured takes its place), `observe(x, f, g)` for
    points of a suite's initial design, which it did not propose (without it, they go to `tell`),
    and `refuse(x)` where the point that was asked for last lies beyond a known constraint: it is
    not played, and `ask` is called again. An
    attribute `failed_fits` counts fits of models that failed; it is recorded.
    """

    def ask(self) -> Any:
        """Return the point x to play next, (d,), numbers of any kind; on a finite set it may be an
        action's index.
        """

    def tell(self, x: Any, f: float, g: Array) -> None:
        """Learn the observation at x: the objective f, to be maximised, and g (m,), feasible if all
        are <= 0. Of a run that failed before any had succeeded f is 0, and of no meaning.

        x is the point that was played, (d,), or the index if `ask` gave one. A round is one `ask`
        and one `tell`. With several evaluations under way (see `Given.parallel`), further asks come
        in between; tells come in the order of the asks, and the last ones never come.
        """


@dataclass(frozen=True)
class Given:
    """What one run's optimiser is given; never f or g without noise.

    Attributes:
        setting: all that a learner may know (see `Setting`), with one replicate.
    """

    setting: Setting

    @property
    def m(self) -> int:
        """Number of constraints."""
        return self.setting.constraints

    @property
    def T(self) -> int:
        """Number of rounds."""
        return self.setting.horizon

    @property
    def parallel(self) -> int:
        """Number of evaluations under way at once: with more than one, `ask` is called again before
        a `tell`.
        """
        return self.setting.parallel

    @property
    def d(self) -> int:
        """Number of coordinates."""
        return self.setting.actions.d

    @cached_property
    def low(self) -> Array:
        """The lower corner (d,) of the box, or of the finite set's points."""
        actions = self.setting.actions
        corner = actions.low if isinstance(actions, Box) else self._points.min(axis=0)
        return np.array(corner, dtype=np.float64)

    @cached_property
    def high(self) -> Array:
        """The upper corner, (d,)."""
        actions = self.setting.actions
        corner = actions.high if isinstance(actions, Box) else self._points.max(axis=0)
        return np.array(corner, dtype=np.float64)

    @cached_property
    def points(self) -> Array | None:
        """The points (n, d) of a finite set; None on a box, or without coordinates."""
        actions = self.setting.actions
        if isinstance(actions, Box) or actions.points is None:
            return None
        return actions.points.copy()

    @property
    def _points(self) -> Array:
        if self.points is None:
            raise CellFailure(
                'the problem has no coordinates; name them in needs: frozenset({"coordinates", '
                "...})"
            )
        return self.points

    @property
    def n(self) -> int | None:
        """Number of actions of a finite set; None on a box."""
        if isinstance(self.setting.actions, Box):
            return None
        return self.setting.actions.n

    @cached_property
    def generator(self) -> np.random.Generator:
        """The run's own generator: every seed, problem and method has its own stream."""
        return self.setting.streams.role("ask and tell")[0]

    @cached_property
    def seed(self) -> int:
        """A number in [0, 2³¹) for a library that needs a seed, from a stream of its own."""
        return int(self.setting.streams.role("seed of a library")[0].integers(2**31))


@dataclass(kw_only=True)
class AskTell(OneRun):
    """Base of an algorithm that wraps an optimiser with `ask` and `tell`, a fresh one for every
    run.

    Subclasses write `optimiser`; parameters are their fields. The result of `ask` is checked: d
    finite numbers inside the box. On a finite set, points are moved to the nearest action, with
    sides of equal length. Set `late = True` if the optimiser may be asked again before it is told,
    as a suite's `parallel` does.
    """

    needs = frozenset({"coordinates", "feedback at once"})

    run_optimiser: Optimiser = state()
    given: Given = state()

    @required
    def optimiser(self, given: Given) -> Optimiser:
        """Return the optimiser of one run, in its first state; its randomness is from
        `given.generator` or `given.seed`.
        """
        raise NotImplementedError

    def check_late(self, problem: Problem) -> None:
        if not self.late and "feedback at once" in problem.offers():
            raise Misuse(
                "it needs feedback at once, before the next round is chosen: its class does not "
                "say `late = True`; "
                "remove `parallel`, or the method"
            )
        super().check_late(problem)

    def posterior_kind(self, problem: Problem) -> Kind:
        return "none"

    def start_one(self, setting: Setting) -> None:
        self.given = Given(setting)
        self.proposals: dict[int, Any] = {}
        self.run_optimiser = self.optimiser(self.given)
        # Checked before the first round, where the message can say what to do.
        for method in ("ask", "tell"):
            if not callable(getattr(self.run_optimiser, method, None)):
                answer = show(self.run_optimiser)
                self._refuse(
                    f"optimiser() gave {answer}, which has no method {method}(); give an optimiser"
                )

    def ask_one(self, t: int) -> Any:
        answer = self.run_optimiser.ask()
        for _ in range(MOST_ASKS):
            action = self._action(answer, "ask()")
            if not self._is_forbidden(action):
                break
            getattr(self.run_optimiser, "refuse", lambda x: None)(action)
            answer = self.run_optimiser.ask()
        else:
            self._refuse(
                f"{MOST_ASKS} points in a row lie beyond a known constraint; play a method that "
                "takes known constraints, such as cei or scbo"
            )
        # It is told in its own terms: an index if it gave one, else the point played.
        as_answered = isinstance(action, np.ndarray) or _index(answer) is not None
        self.proposals[t] = action if as_answered else self.given._points[action]
        return action

    def _is_forbidden(self, action: Any) -> bool:
        """Return whether a known constraint of a box forbids an action."""
        actions = self.setting.actions
        return isinstance(actions, Box) and bool(actions.forbids(action))

    def tell_one(self, t: int, action: Any, f: float, g: Array) -> None:
        point = self.proposals.pop(t)
        # Copies, because an optimiser may write into what it is given.
        if isinstance(point, np.ndarray):
            point = point.copy()
        self.run_optimiser.tell(point, f, g.copy())

    def observe_one(self, t: int, action: Any, f: float, g: Array) -> None:
        """Learn the observation at an action that the optimiser did not propose."""
        as_played = isinstance(action, np.ndarray) or self.given.points is None
        x = action if as_played else self.given._points[action]
        getattr(self.run_optimiser, "observe", self.run_optimiser.tell)(x, f, g.copy())

    def recommend_one(self, t: int) -> Any:
        recommend = getattr(self.run_optimiser, "recommend", None)
        if recommend is None:
            return None
        answer = recommend()
        # Not the base's None, which would recommend the incumbent by observed values.
        if answer is None:
            if self.given.n is not None:
                return NONE
            return np.full(self.given.d, np.nan)
        return self._action(answer, "recommend()")

    def failed_fits_one(self) -> int | None:
        return getattr(self.run_optimiser, "failed_fits", None)

    def _action(self, answer: Any, method: str) -> Any:
        """Return an answer of the optimiser as an action: an index of a finite set, or a point (d,)
        of a box.
        """
        # On a finite set a whole number is an index; elsewhere it is no point.
        index = _index(answer)
        if index is not None and self.given.n is not None and 0 <= index < self.given.n:
            return index

        # What is no point of numbers stays NaN, which is refused below.
        x = np.array([np.nan])
        if self.given.n is None or self.given.points is not None:
            with suppress(TypeError, ValueError):
                x = np.array(answer, dtype=np.float64)
        if x.shape != (self.given.d,) or not np.isfinite(x).all():
            self._refuse(f"{method} gave {show(answer)}; it must give {self._allowed_answer}")
        # Libraries round: what lies a hair outside is meant to lie on the face.
        low = self.given.low
        high = self.given.high
        side = high - low
        outside = (x < low - ROUNDING * side) | (x > high + ROUNDING * side)
        if outside.any():
            i = int(outside.argmax())
            self._refuse(
                f"{method} gave x[{i}] = {x[i]:.10g}; allowed: {low[i]:.10g} to {high[i]:.10g}"
            )

        # Sides count as equally long, so that no unit of a coordinate decides what is nearest.
        actions = self.setting.actions
        if isinstance(actions, Box):
            return actions.round(np.clip(x, low, high))
        away = (self.given.points - x) / np.where(side > 0, side, 1.0)
        return int((away**2).sum(axis=1).argmin())

    @property
    def _allowed_answer(self) -> str:
        n = self.given.n
        d = self.given.d
        point = f"a point of {d} finite numbers, shape {(d,)}"
        if n is None:
            return point
        index = f"an index, 0 to {n - 1}"
        if d == 0:
            return index
        return f"{index}, or {point}"

    def _refuse(self, problem: str) -> NoReturn:
        raise CellFailure(f"{self.name or type(self).__name__}: {problem}")


def _index(answer: Any) -> int | None:
    """Return the whole number that an answer is, if it is one."""
    try:
        # To Python True is a whole number; to an optimiser it is a mistake.
        if isinstance(answer, bool | np.bool_) or np.ndim(answer):
            return None
        return operator.index(answer)
    except (TypeError, ValueError):
        return None
