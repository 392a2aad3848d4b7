"""The contract of an algorithm, batched over S replicates.

    start(setting)            once
    ask(t) -> actions         every round, t = 1, 2, ..., T
    tell(t, actions, feedback)
    observe(t, actions, feedback) in place of both, in the rounds of a suite's initial design; of
                              c past measurements before round 1, with t = 1 - c, ..., 0

An algorithm sees its own past feedback and what `Setting` says a learner may know; never f or g.
Most derive `score.ScoreAlgorithm`; one that thinks one run at a time derives `OneRun`.
"""

from __future__ import annotations

import copy
import operator
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

import numpy as np

from cbobench.errors import CellFailure, Misuse, show
from cbobench.gp.actions import Finite
from cbobench.gp.box_actions import ActionSet, Box
from cbobench.gp.kernels import Array, Indices, Mask
from cbobench.gp.posteriors.choice import Kind
from cbobench.params import required, state
from cbobench.problems.base import Ability, Actions, Drawn, Feedback, Problem, Shown
from cbobench.problems.instances import Instances, slater_margin
from cbobench.rng import Streams

NONE = -1
"""In place of an action of a finite set: no recommendation."""


@dataclass(frozen=True)
class Setting:
    """What a learner is given for S replicates in lock step.

    Attributes:
        actions: the action set.
        constraints: m.
        horizon: T.
        norm, sup: bounds on RKHS norms and on absolute values of (f, g_1, ..., g_m), (S, 1 + m).
        noise: sub-Gaussian constants R of the observations, (S, 1 + m). These, norm and sup are
            infinite where nobody knows them.
        slater: delta, (S,); NaN where nobody knows it.
        seed_set: mask of actions known to be safe, (S, n), or None.
        streams: the algorithm's own randomness.
        delayed: whether feedback arrives late.
        changes: rounds after which the functions move, and the norms (S, 1 + m) of the moves.
        design: the points (S, c, d) of a suite's initial design on a box, which rounds 1 to c play,
            or of its past measurements; None without either.
        past: number c of past measurements that it is told before round 1 (see `observe`).
        parallel: number of evaluations under way at once. With more than one, feedback is delayed,
            and rounds are told in order, each with f and every g_j for all replicates (see
            `problems.channels.UnderWay`).
        kernel_is_known: see `Problem`.
        fails_by_chance: whether an action may fail in one round and succeed in another.
        middle: of every g_j (see `Problem.middle`), (m,); () where none has levels.
    """

    actions: ActionSet
    constraints: int
    horizon: int
    norm: Array
    sup: Array
    noise: Array
    slater: Array
    seed_set: Mask | None
    streams: Streams
    delayed: bool = False
    changes: tuple[tuple[int, Array], ...] = ()
    parallel: int = 1
    design: Array | None = None
    past: int = 0
    kernel_is_known: bool = False
    fails_by_chance: bool = False
    middle: Array = field(default_factory=lambda: np.zeros(0))

    @classmethod
    def of(
        cls, problem: Problem, instances: Drawn, horizon: int, streams: Streams, parallel: int = 1
    ) -> Setting:
        """Return the setting of drawn instances, without a design, for what learners are told."""
        # With several evaluations under way, a value arrives after later choices were made.
        delayed = parallel > 1 or "feedback at once" not in problem.offers()
        learned = problem.learned
        middle = np.zeros(0)
        if problem.middle is not None:
            middle = problem.middle[learned[1:] - 1]
        slater = instances.slater
        if problem.known_constraints and isinstance(instances, Instances):
            slater = slater_margin(instances.g[:, learned[1:] - 1])
        return cls(
            actions=problem.actions,
            constraints=len(learned) - 1,
            horizon=horizon,
            norm=instances.norm[:, learned],
            sup=instances.sup[:, learned],
            noise=instances.noise[:, learned],
            slater=slater,
            seed_set=instances.seed_set,
            streams=streams,
            delayed=delayed,
            changes=tuple((t, norms[:, learned]) for t, norms in instances.changes()),
            parallel=parallel,
            kernel_is_known=problem.kernel_is_known,
            fails_by_chance=instances.fails_by_chance,
            middle=middle,
        )

    @property
    def replicates(self) -> int:
        return len(self.norm)

    @property
    def observations(self) -> int:
        """How many observations a model may hold: those of T rounds, and past measurements."""
        return self.horizon + self.past

    @property
    def exact(self) -> Mask:
        """Which functions are observed without noise, and stay as they are, (S, 1 + m)."""
        is_lasting = not self.fails_by_chance and not self.changes
        return np.asarray((self.noise == 0) & is_lasting)

    @property
    def finite(self) -> Finite:
        """The action set of an algorithm for finite sets."""
        assert isinstance(self.actions, Finite)
        return self.actions

    @property
    def safe_seed(self) -> Mask:
        """`seed_set`, for an algorithm that needs one."""
        assert self.seed_set is not None
        return self.seed_set

    def margin(self, delta: float | Array | Literal["true"]) -> Array:
        """Return the Slater margin δ that a method uses, (S,): the true one, or a number, or
        numbers (S, 1).

        Raises:
            CellFailure: the true one is requested but unknown.
        """
        if isinstance(delta, str) and np.isnan(self.slater).any():
            raise CellFailure(
                "no feasible point of this problem is known, nor its Slater margin; give delta: "
                "NUMBER"
            )
        if isinstance(delta, str):
            return self.slater
        return np.full((self.replicates, 1), delta)[:, 0]

    def only(self, replicate: int) -> Setting:
        """Return the setting of one replicate (S = 1)."""
        row = slice(replicate, replicate + 1)
        cut = {
            name: values[row]
            for name in ("norm", "sup", "noise", "slater", "seed_set", "design")
            if (values := getattr(self, name)) is not None
        }
        moves = tuple((t, norms[row]) for t, norms in self.changes)
        streams = self.streams.only(replicate)
        return replace(self, **cut, changes=moves, streams=streams)


class Algorithm:
    """Base of every algorithm. Subclasses are keyword-only dataclasses registered with
    `@ALGORITHMS.register("name")`.

    Class attributes:
        source: the paper, for tables.
        about: one line for tables.
        knows: what it must be told, in the words of the papers (B, G, R, lambda, kernel, safe seed,
            ...).
        needs: what a problem must offer; otherwise the pair is refused before anything runs.
        cost: work per seed and round, for tables.
        libraries: what must be installed beside cbobench; their versions are recorded with each
            result.
        reference: True for a reference method, which is no learner and may `look` at f and g.
        blind: whether it learns nothing, so that past measurements are not told and its cells stay
            the same.
        models_levels: whether its models take a constraint with levels for one whose bound is in
            the middle between two (see `Problem.middle`), as those without a theorem do.
        late: whether it plays with evaluations under way (a suite's `parallel`) although it needs
            feedback at once: rounds are told in order, some after later ones were asked for.

    Attributes:
        fits: whether its models' kernels are fitted, which is recorded; None without models.
    """

    name = ""
    source = ""
    about = ""
    knows: ClassVar[tuple[str, ...]] = ()
    needs: ClassVar[frozenset[Ability]] = frozenset()
    cost = "O(1)"
    libraries: ClassVar[tuple[str, ...]] = ()
    reference = False
    blind = False
    models_levels = False
    late = False
    fits: bool | None = None

    def check(self, problem: Problem) -> None:
        """Refuse, beyond `needs`, a problem that these parameters cannot serve. Raises `Misuse`."""

    def check_late(self, problem: Problem) -> None:
        """Refuse to play with evaluations under way (see `late`). Raises `Misuse`."""
        if "feedback at once" not in problem.offers():
            raise Misuse("the problem has delays of its own; remove `parallel`, or the delays")
        if "feedback at once" in self.needs and not self.late:
            raise Misuse(
                "it needs feedback at once, before the next round is chosen; remove `parallel`, "
                "or the method"
            )

    def posterior_kind(self, problem: Problem) -> Kind:
        """Return the kind of posterior on a problem, to estimate memory: `observations`,
        `features`, or the cheapest.
        """
        return "cheapest"

    def look(self, instances: Drawn) -> None:
        """See the drawn instances; called before `start`, for reference methods only."""

    @required
    def start(self, setting: Setting) -> None:
        """Start the runs of `setting`, in lock step."""

    def see(self, t: int, g_t: Shown) -> None:
        """See the constraint function g_t of the coming round, on problems with full
        information.
        """

    @required
    def ask(self, t: int) -> Actions:
        """Return the actions of round t: indices (S,) of a finite set, or points (S, d) of a
        box.
        """
        raise NotImplementedError

    def tell(self, t: int, actions: Actions, feedback: Feedback) -> None:
        """Learn the feedback of round t."""

    def observe(self, t: int, actions: Actions, feedback: Feedback) -> None:
        """Learn the feedback of a round of the suite's initial design, in place of `ask` and
        `tell`; or, with t <= 0, a past measurement.
        """
        self.tell(t, actions, feedback)

    def recommend(self, t: int) -> Actions | None:
        """Return the recommendation after round t, if the run ended now: (S,), or points (S, d) of
        a box.

        `NONE`, or NaN, means no recommendation yet. It is called after some rounds only and must
        change nothing: no randomness, no state, no dependence on earlier calls. None, the default
        without a model of f and every g_j, means the incumbent by observed values.

        Where feedback is exact, the best feasible action measured takes its place, from the first
        one on (see `cbobench.play.recommendations`).
        """
        return None

    @property
    def duals(self) -> Array | None:
        """Return the dual variables after the last round, (S, m), if there are any."""
        return None

    @property
    def cap_hits(self) -> Indices | None:
        """Return how often a guard of ours (a cap against overflow) was active, (S,), if there is
        one.
        """
        return None

    @property
    def failed_fits(self) -> Indices | None:
        """Return how many of a library's fits of models failed, (S,), if it counts them."""
        return None

    @property
    def declared_infeasible(self) -> Mask | None:
        """Return the replicates that have declared their problem infeasible, (S,), if it does such
        a thing.
        """
        return None


@dataclass(kw_only=True)
class OneRun(Algorithm):
    """Base of an algorithm for one run at a time; it is copied per replicate and looped. Slower,
    and easier to write.

    Subclasses write `start_one`, `ask_one` and `tell_one`; arrays there have no replicate axis.
    With `late`, a round is told with its t and its action, after further asks.

    Class attributes:
        takes_untold: whether it is told NaN for an f that nobody knows, of a run that failed before
            any had succeeded; else 0 stands for it.
    """

    needs = frozenset({"feedback at once"})
    takes_untold = False

    setting: Setting = state()

    @required
    def start_one(self, setting: Setting) -> None:
        """Start a run; every array of `setting` has a leading axis of length 1."""

    @required
    def ask_one(self, t: int) -> Any:
        """Return the action of round t: an index of a finite set, or a point (d,) of a box."""

    def tell_one(self, t: int, action: Any, f: float, g: Array) -> None:
        """Learn the feedback of a round: the action as `ask_one` gave it, its reward and its
        constraint values (m,).
        """

    def observe_one(self, t: int, action: Any, f: float, g: Array) -> None:
        """Learn the feedback of a round of the suite's initial design, or a past measurement (t <=
        0).
        """
        self.tell_one(t, action, f, g)

    def recommend_one(self, t: int) -> Any:
        """Return the recommendation after round t, as `ask_one` does; None for the incumbent by
        observed values.

        Where feedback is exact, the best feasible action measured takes its place (see
        `Algorithm.recommend`).
        """
        return None

    def dual_one(self) -> Array | None:
        """Return the dual variables (m,), if there are any."""
        return None

    def failed_fits_one(self) -> int | None:
        """Return how many of a library's fits of models failed, if it counts them."""
        return None

    def start(self, setting: Setting) -> None:
        # Copies, because a run keeps its state on its instance.
        self.runs = [copy.deepcopy(self) for _ in range(setting.replicates)]
        self.under_way: dict[int, tuple[Actions, bool]] = {}
        for s, run in enumerate(self.runs):
            run.setting = setting.only(s)
            run.start_one(run.setting)
        # Parameters and problem decide it, which all runs share.
        self.fits = self.runs[0].fits

    def ask(self, t: int) -> Actions:
        return self._stack_actions([run.ask_one(t) for run in self.runs])

    def recommend(self, t: int) -> Actions | None:
        actions = [run.recommend_one(t) for run in self.runs]
        # One answer is for all: a run without a recommendation leaves all to the incumbent.
        if any(action is None for action in actions):
            return None
        return self._stack_actions(actions)

    def _stack_actions(self, actions: list[Any]) -> Actions:
        action_set = self.runs[0].setting.actions
        on_box = isinstance(action_set, Box)
        d = action_set.d
        if isinstance(action_set, Box):
            allowed = f"a point, shape {(d,)}"
        else:
            allowed = f"an index, 0 to {action_set.n - 1}"

        # A subclass may return anything: what has no shape, or is no index, is refused by name.
        for action in actions:
            try:
                if on_box:
                    is_action = np.shape(action) == (d,)
                else:
                    is_action = operator.index(action) is not None
            except (TypeError, ValueError):
                is_action = False
            if not is_action:
                raise CellFailure(f"ask_one gave {show(action)}; it must give {allowed}")
        dtype = np.float64 if on_box else np.intp
        return np.array(actions, dtype=dtype)

    def tell(self, t: int, actions: Actions, feedback: Feedback) -> None:
        self._pass_on(t, actions, feedback, True)

    def observe(self, t: int, actions: Actions, feedback: Feedback) -> None:
        self._pass_on(t, actions, feedback, False)

    def _pass_on(self, t: int, actions: Actions, feedback: Feedback, was_asked: bool) -> None:
        self.under_way[t] = actions.copy(), was_asked
        # With evaluations under way, feedback is of earlier rounds and goes with their actions.
        is_late = self.runs[0].setting.parallel > 1
        told = feedback.rounds() if is_late else iter([(t, feedback)])
        for round_number, values in told:
            played, was_asked = self.under_way.pop(round_number)
            f = values.f
            # Of a run that failed nobody knows f, and most optimisers take no NaN.
            if values.lacks_f and not self.takes_untold:
                f = np.where(np.isnan(f), 0.0, f)
            for s, run in enumerate(self.runs):
                # As `ask_one` gives it: a point, or a plain int in place of a NumPy scalar.
                action = played[s] if played.ndim == 2 else int(played[s])
                learn = run.tell_one if was_asked else run.observe_one
                learn(round_number, action, float(f[s]), values.g[s])

    @property
    def duals(self) -> Array | None:
        duals: list[Any] = [run.dual_one() for run in self.runs]
        if any(d is None for d in duals):
            return None
        return np.stack(duals)

    @property
    def failed_fits(self) -> Indices | None:
        counts: list[Any] = [run.failed_fits_one() for run in self.runs]
        if None in counts:
            return None
        return np.array(counts, dtype=np.intp)
