"""Algorithms that are a score over GP beliefs plus an update of their own state: a dual variable, a
safe set.

The base class keeps the model and plays the best-scored action; `optimistic` turns beliefs into
bounds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from cbobench.algorithms.base import NONE, Algorithm, Setting
from cbobench.algorithms.fitting import (
    KERNEL,
    KernelChoice,
    Task,
    check_fit,
    find_obstacle,
    is_fitted,
    noise_of_exact,
)
from cbobench.errors import Misuse
from cbobench.gp.actions import Finite, break_ties, tie_widths
from cbobench.gp.beliefs import (
    ONE,
    Belief,
    BeliefAtPlayed,
    FunctionBelief,
    Parts,
    Score,
    check_shape,
)
from cbobench.gp.box_actions import Box
from cbobench.gp.kernels import Array, Mask
from cbobench.gp.maximise import Starts, Surface, polish
from cbobench.gp.posteriors import choice
from cbobench.gp.posteriors.fitted import FittedPosterior
from cbobench.gp.posteriors.interface import Moments, Posterior, SharedPosterior
from cbobench.gp.posteriors.separate import PendingPosterior, add_pending, make_separate
from cbobench.gp.recommend import Goal, recommend_action
from cbobench.params import param, required, state
from cbobench.problems.base import Actions, Arrivals, Feedback, Problem, Shown
from cbobench.rng import Draws, uniform

Pending = Literal["ignore", "variance", "credit-now", "block"]
"""What a method does about plays whose feedback is still under way.

    ignore       learns from what has arrived, each value at the action that caused it; what is pending does not count
    variance     as `ignore`, but a play shrinks variances (and enters γ) when it is made: pending plays stand in the
                 model with its own mean for a value (Desautels et al. 2014), see
                 `gp.posteriors.separate`
    credit-now   as a method that does not know of delays: whatever arrives in a round counts as an observation of the
                 action that this round plays
    block        plays on only when all that it models of its last new play is known, and repeats the action until then

With credit-now, f and every g_j are credited apart. Where several values of a function arrive in
one round, each is an observation of the round's action, in the order of the rounds that caused
them; where none arrives, the round teaches nothing. Dual variables that move by observed costs add
what arrives, in every mode.

Where a suite keeps several evaluations under way (`parallel`), f and every g_j of a round arrive
together, one round after the other; models then are those without delays, fitted ones too, whose
pending plays stand in a copy of them.

With block, the values of the repeated plays are learned as they arrive, at the action they belong
to. A method's own state (a dual variable, a safe set) moves in every round, whether the action is
new or not. Forgetting all data (a restart) ends the wait, as what it waits for would be thrown
away.
"""  # noqa: E501

PENDING = "plays whose delayed feedback is under way: see algorithms/score.py"


@dataclass(kw_only=True)
class ScoreAlgorithm(Algorithm):
    """An algorithm that plays the best score over GP beliefs, ties broken at random.

    Class attributes:
        models_constraints: whether g is modelled, or f alone.
        grid_points: of a box (n, d), for a method that plays on a finite grid of it; set by an
            instance.
        looks_back: whether `learn` wants the belief at the played action.
        narrow: whether maxima of the score on a box may be narrower than the spacing of its
            candidates, as those of a product of probabilities are.

    A subclass that refuses delays, or has a rule of its own for them, makes `pending` a class
    variable.
    """

    kernel: KernelChoice = param("auto", KERNEL)
    pending: Pending = param("ignore", PENDING)

    setting: Setting = state()
    posterior: Posterior = state()
    chosen: Actions = state()
    widths: Array | None = state()

    cost = "O(nr + r²); rough box O(tM + t²)"
    models_constraints = True
    looks_back = True
    grid_points: ClassVar[Array | None] = None
    narrow = False

    def check(self, problem: Problem) -> None:
        # Each of the two has a default that calls the other.
        if type(self).score is ScoreAlgorithm.score and type(self).parts is ScoreAlgorithm.parts:
            raise Misuse(
                f"{type(self).__name__} defines neither parts nor score; write one of them"
            )
        check_fit(self.kernel, problem, self.obstacle(problem))

    def obstacle(self, task: Task) -> str:
        """Return why this method's models cannot be fitted, see `fitting.find_obstacle`."""
        return find_obstacle(task)

    def is_fitted(self, task: Task) -> bool:
        """Return whether this method's models are fitted."""
        return is_fitted(self.kernel, task, self.obstacle(task))

    def known_noise(self) -> Array:
        """Noise variances (S, 1 + m) that fitted models take as given; NaN of what is fitted."""
        return noise_of_exact(self.setting)

    def undecided(self) -> Mask | None:
        """Return the functions, (1 + m,), of which fitted models may take the bilog; None for
        none.
        """
        return None

    def signed(self) -> Mask | None:
        """Return the functions, (1 + m,), of which the sign alone counts; None for none."""
        return None

    def posterior_kind(self, problem: Problem) -> choice.Kind:
        if self.is_fitted(problem):
            return "observations"
        return "cheapest"

    # What a subclass says -------------------------------------------------------------------------

    @required
    def lam_for(self, horizon: float) -> float:
        """Return λ of the model, for a horizon."""
        raise NotImplementedError

    def evidence_horizon(self, horizon: int) -> float | None:
        """Return the horizon of λ in a model that recommends and keeps all data; None if the play's
        model does.

        For a method that begins anew although the functions stay the same: what it forgets is still
        true of them.
        """
        return None

    def prepare(self) -> None:
        """Set up the algorithm's own state; `self.setting` and the model exist."""

    def begin_round(self, t: int) -> None:
        """Begin an epoch or restart that is due before round t, counted from round 1 whoever chose
        the actions.
        """

    def begin(self, t: int, belief: Belief) -> None:
        """Update the algorithm's own state (a safe set, say) from the belief over all actions, once
        per round.
        """

    def parts(self, belief: Belief) -> Score:
        """Return the score of k candidates, for scores with kinks: [g]⁺, min, max, a truncation.
        The best is played.

        Must change nothing: it may be called many times a round. A subclass defines this, or
        `score`.
        """
        return Parts.of(self.score(belief))

    def score(self, belief: Belief) -> Array:
        """Return the score as numbers (S, k): for scores that are smooth, or played on finite sets
        only.
        """
        return self.parts(belief).total()

    def learn(self, t: int, chosen: Belief, feedback: Feedback) -> None:
        """Update the algorithm's own state; `chosen` is the round's belief at the played action (k
        = 1).

        With `looks_back` false it is the belief over all candidates, which exists anyway.
        """

    def keeps(self) -> Mask | None:
        """Return the replicates that repeat their last action, (S,), once the best is known; None
        for nobody.
        """
        if self.setting.delayed and self.pending == "block":
            return self.wait.open
        return None

    def targets(self, feedback: Feedback) -> Array:
        """Return the values to model, (S, p): f and, if constraints are modelled, g_1, ..., g_m."""
        if not self.models_constraints:
            return feedback.f[:, None]
        return np.concatenate([feedback.f[:, None], feedback.g], axis=1)

    def told_values(self, feedback: Feedback) -> Array:
        """Return `targets`, in which the prior's mean stands for an f that nobody knows, but for
        fitted models, which take it as it is.
        """
        values = self.targets(feedback)
        if feedback.lacks_f and not self.fits:
            return np.where(np.isnan(values), 0.0, values)
        return values

    def view(self, mean: Array, variance: Array, points: Array | None) -> Belief:
        """Return the round's belief from moments at k points, with the round's `widths`: (S, 1) of
        f or (S, p) of all.

        Args:
            mean: (S, p, k).
            variance: (S, k), or (S, p, k) if functions have their own.
            points: (S, k, d) in the unit cube of a box; None for all candidates.
        """
        deviation = np.sqrt(variance)
        g_t = None
        if self.shown is not None:
            if points is None and self.fits and self.box is not None:  # not the problem's mesh
                points = np.broadcast_to(
                    self.box.candidates, (len(mean), *self.box.candidates.shape)
                )
            g_t = self.shown(points)

        # Functions that are observed together share their deviations.
        if deviation.ndim == 3:
            of_f = deviation[:, 0]
            of_g = deviation[:, 1:]
        else:
            of_f = deviation
            of_g = deviation[:, None]

        # Some methods set widths of f alone, and some set none.
        widths = self.widths
        width_f = width_g = ONE
        if widths is not None:
            width_f = widths[:, :1]
            if widths.shape[1] >= mean.shape[1]:
                width_g = widths[:, 1:, None]

        f = FunctionBelief(mean[:, 0], of_f, width_f)
        if not self.models_constraints:
            return Belief(f, None, g_t)
        return Belief(f, FunctionBelief(mean[:, 1:], of_g, width_g), g_t)

    def goal(self, mean: Array, variance: Array) -> Goal:
        """Return the moments behind a recommendation, from moments as in `view`: means of f, means
        and variances of every g_j.
        """
        of_g = variance[:, 1:] if variance.ndim == 3 else variance[:, None]
        return mean[:, 0], mean[:, 1:], of_g

    def _goal_of_levels(self, mean: Array, variance: Array) -> Goal:
        """Return `goal` with the bounds of levels in the middle between two, where the models have
        them at the last allowed one.
        """
        f, g, of_g = self.goal(mean, variance)
        middle = self.setting.middle
        if middle.any() and not self.models_levels:
            g = g - middle[:, None]
        return f, g, of_g

    # What the base does ---------------------------------------------------------------------------

    def start(self, setting: Setting) -> None:
        self.setting = setting
        self.widths = None
        # What a method leaves out is not called; a watcher may have set one on the instance.
        self.own_steps = {
            step
            for step in ("begin_round", "begin", "score", "keeps", "learn")
            if getattr(getattr(self, step), "__func__", None) is not getattr(ScoreAlgorithm, step)
        }
        # no state of a replicate, so no array by itself
        self._rows = (np.arange(setting.replicates),)
        self.box = setting.actions if isinstance(setting.actions, Box) else None
        if self.grid_points is None:  # else the box decided
            self.fits = self.is_fitted(setting)
        if self.fits and self.box is not None:
            # Fitted kernels are Matérn-5/2, whose posteriors no mesh resolves.
            self.box = replace(self.box, kernel_name="matern52", meshed=False)
        if self.box is not None:
            self.starts = Starts(self.box, self.narrow)
            self.observed: list[Array] = []

        self.ties = Draws(setting.streams.role("ties"), uniform)
        functions = 1 + setting.constraints if self.models_constraints else 1
        self.posterior = self._fresh_posterior(functions)

        # Where epochs forget, recommendations need not: they have a model of their own.
        self.evidence: Posterior | None = None
        horizon = self.evidence_horizon(setting.horizon)
        if horizon is not None:
            self.evidence = self._fresh_posterior(functions)
            self.evidence.reset(self.lam_for(horizon))

        # replicates whose recommendation rests on data
        self.informed = np.zeros(setting.replicates, dtype=bool)
        self.learned = 0  # rounds that it was told whole
        self.ahead: PendingPosterior | None = None
        if setting.parallel > 1 and self.pending == "variance":
            self.posterior = self.ahead = add_pending(self.posterior, lambda: self.cheapest(1))

        # What was measured without noise is known where it was played.
        self.measured: Array | None = None
        self.exact_g = setting.exact[:, 1:]
        is_finite = isinstance(setting.actions, Finite) and self.grid_points is None
        if is_finite and self.models_constraints and self.exact_g.any():
            self.measured = np.full((*self.exact_g.shape, setting.finite.n), np.nan)

        # What of the history counts; the schedule below sets the rest as at a restart.
        self.wait = Wait(setting.replicates, functions)
        self.shown: Shown | None = None
        self.history: list[Actions] = []
        self.evidence_since = 1
        self.first_own = 1  # the first round whose action this algorithm chooses
        self.begin_schedule(setting.horizon)
        self.prepare()

    def _fresh_posterior(self, functions: int) -> Posterior:
        if not self.fits:
            return self.make_posterior(functions)
        actions = self.box or self.setting.actions
        replicates = self.setting.replicates
        noise = self.known_noise()
        further = self.further_units()
        undecided = self.undecided()
        posterior = FittedPosterior(
            actions, replicates, functions, noise, further=further, undecided=undecided
        )
        signed = self.signed()
        if signed is not None:
            posterior.signed = signed
        return posterior

    def further_units(self) -> Array | None:
        """Return actions of each replicate's own beside a finite set, in its unit cube (S, c, d);
        None if none.
        """
        return None

    def make_posterior(self, functions: int) -> Posterior:
        """Return the posterior of this algorithm's functions, one each under delays; λ comes with
        the schedule.
        """
        if not self.setting.delayed or self.setting.parallel > 1:
            return self.cheapest(functions)
        return make_separate(functions, lambda: self.cheapest(1), self.pending == "variance")

    def cheapest(self, functions: int) -> SharedPosterior:
        """Return a posterior of functions that are observed together."""
        s = self.setting
        return choice.make_cheapest(
            s.actions, s.replicates, functions, s.observations, self.lam_for(s.horizon)
        )

    def begin_schedule(self, horizon: int) -> None:
        """Forget all data and set λ for a horizon, at the start and at every restart."""
        self.regulariser = self.lam_for(horizon)
        self.forget(self.regulariser)

    def forget(self, lam: float | None = None, stale: bool = False) -> None:
        """Forget all data and pending plays; the schedule continues, with another λ if given.

        Recommendations keep them if they have a model of their own, unless they are stale, as
        functions move.
        """
        self.posterior.reset(lam)
        if stale and self.evidence is not None:
            self.evidence.reset()
            self.evidence_since = len(self.history) + 1
        if stale or self.evidence is None:
            self.informed[:] = False
            self.learned = 0
        self.wait.end()
        self.since = len(self.history) + 1
        self.played = self.told = 0  # rounds since then, and those absorbed whole

    def believe(self, t: int) -> Belief:
        """Return the belief over all candidates before round t."""
        return self.view(self.posterior.mean, self.posterior.variance, None)

    @property
    def scored(self) -> Posterior:
        """The posterior whose beliefs are scored: the play's."""
        return self.posterior

    def scout(self, points: Array) -> Moments:
        """Return moments as for `view` at points (S, k, d), by which climbs' starts are chosen."""
        return self.scored.at(points)

    def see(self, t: int, g_t: Shown) -> None:
        self.shown = g_t

    def ask(self, t: int) -> Actions:
        own = self.own_steps
        if "begin_round" in own:
            self.begin_round(t)
        # Kept for `learn`, which sees the belief that the round was chosen by.
        belief = self.belief = self.believe(t)
        if "begin" in own:
            self.begin(t, belief)
        last = None if self.played == 0 else self.chosen
        if self.box is not None:
            self.chosen, self._achieved = self.maximise(t, self.box, last)
        else:
            score = self.score(belief) if "score" in own else self.parts(belief).total()
            mean_shape = belief.f.mean.shape  # (S, k), or of several means
            shape = mean_shape[0], mean_shape[-1]
            # Tested before the call, which most rounds are spared.
            if type(score) is not np.ndarray or score.shape != shape:
                check_shape(score, shape)
            self.chosen = break_ties(score, self.ties.at(t))
            self._scores = score

        # Asked only now, because some decide by the score of the best action.
        repeats = self.keeps() if "keeps" in own or self.setting.delayed else None
        if repeats is not None and last is not None:
            if self.box is not None:
                repeats = repeats[:, None]
            self.chosen = np.where(repeats, last, self.chosen)
        if self.box is None and self.grid_points is None:
            return self.chosen  # a call less in most rounds
        return self._to_play()

    def _to_play(self) -> Actions:
        """Return the round's chosen actions as the problem takes them."""
        if self.grid_points is not None:
            return self._points(self.chosen)
        if self.box is None:
            return self.chosen
        return self.box.scale(np.asarray(self.chosen, dtype=np.float64))

    def _points(self, actions: Actions) -> Array:
        """Return the points of a box (S, d) that actions of its grid are, (S,), for a method that
        plays on one.
        """
        raise NotImplementedError

    @property
    def achieved(self) -> Array:
        """Return the scores of the round's chosen actions, (S,)."""
        if self.box is not None:
            return self._achieved
        return self._scores[self._rows[0], self.chosen]

    def maximise(self, t: int, box: Box, also: Array | None) -> tuple[Array, Array]:
        """Return the best-scored points of the unit cube, (S, d), and their scores: the best
        candidates, polished.

        Args:
            also: further points (S, d) to climb from; None while the prior is stationary, a tie of
                all.
        """

        # The candidates decide alone where nothing is known, and are what climbs must beat.
        def walled(parts: Parts, points: Array) -> Parts:
            return parts if box.known is None else parts.walled(box.walls(points))

        parts = walled(self.parts(self.belief).kinks(), box.candidates[None])
        coin = self.ties.at(t)
        mean_shape = self.belief.f.mean.shape
        total = check_shape(parts.total(), (mean_shape[0], mean_shape[-1]))
        best = break_ties(total, coin)
        rows = np.arange(len(total))
        candidate = box.candidates[best]
        achieved = total[rows, best]
        highest = total.max(axis=1)
        widths = tie_widths(total, highest)

        # Before any data all points tie; the start is drawn uniformly, because a mesh is denser at
        # its sides.
        flat = total.min(axis=1) >= highest - widths
        anywhere = box.scattered[(coin * len(box.scattered)).astype(np.intp)]
        candidate = np.where(flat[:, None], anywhere, candidate)
        if also is None:
            return candidate, achieved

        also = also[:, None]
        scored = self.scored

        def scorer(mean: Array, variance: Array, points: Array) -> Parts:
            return walled(self.parts(self.view(mean, variance, points)).kinks(), points)

        def at(points: Array) -> Parts:
            return scorer(*self.scout(points), points)

        observed = np.stack(self.observed, axis=1) if self.starts.narrow else also
        start = np.concatenate([also, self.starts(parts, at, observed)], axis=1)
        surface = Surface(scorer, scored.jet, box.spacing, box.held)
        points, values = polish(surface, start, self.starts.narrow, widths)

        # What was found is a start of the next round, too: its basin may be too narrow to find
        # twice.
        self.starts.ended = points

        # The best end has starts of its own around it: a cusp is narrower than any spacing, and no
        # climb changes a whole number or a choice.
        if self.starts.again:
            starts = self.starts.around(points[rows, values.argmax(axis=1)], at)
            further, reached = polish(surface, starts, True, widths, self.starts.pace)
            points = np.concatenate([points, further], axis=1)
            values = np.concatenate([values, reached], axis=1)

        # The end of a climb is played only if it beats the candidate by more than rounding.
        top = break_ties(values, coin, widths)
        gained = values[rows, top] - achieved
        higher = gained > widths  # on a plateau the candidate, drawn among all ties, stays
        point = np.where(higher[:, None], points[rows, top], candidate)
        if box.known is not None:
            point = box.pull_inside(point, candidate)
        return point, np.where(higher, values[rows, top], achieved)

    def tell(self, t: int, actions: Actions, feedback: Feedback) -> None:
        if "learn" in self.own_steps:
            # Before the model learns, because the step is by what was believed at the choice.
            chosen = self.belief
            if self.looks_back and self.box is None:
                chosen = BeliefAtPlayed(chosen, self.chosen)
            elif self.looks_back:
                chosen = self._at_points(self.chosen[:, None])
            # Late feedback on a design is learned, but moves no dual variable.
            own_rounds = feedback if self.first_own == 1 else feedback.since(self.first_own)
            self.learn(t, chosen, own_rounds)
        self.condition(t, feedback)
        if self.box is not None:
            self._keep_point()
        self.played += 1

    def observe(self, t: int, actions: Actions, feedback: Feedback) -> None:
        """Update the model, epochs and restarts as in every round; no dual variable moves.

        Late feedback on a design's rounds moves none either. Past measurements begin no epoch.
        """
        if t > 0:
            self.begin_round(t)
        self.first_own = t + 1
        self.chosen = actions if self.box is None else self.box.unit(actions)
        self.condition(t, feedback)
        if self.box is not None:
            self._keep_point()
        self.played += 1

    def _keep_point(self) -> None:
        if self.starts.narrow:
            self.observed.append(self.chosen)

    def _at_points(self, points: Array) -> Belief:
        """Return the round's belief at points (S, k, d) of a box."""
        return self.view(*self.posterior.at(points), points)

    def condition(self, t: int, feedback: Feedback) -> None:
        """Update the posterior with the feedback of a round."""
        if feedback.arrivals is None:
            self.informed[:] = True
            self.absorb(self.chosen, feedback)
            if self.evidence is None:
                self.learned += 1
            else:
                self._keep(self.chosen, feedback)
            return
        self.history.append(self.chosen)
        self.wait.update(t, feedback.arrivals)
        arrivals = feedback.arrivals
        if self.pending == "credit-now":  # as observations of this round's action
            arrivals = replace(arrivals, round=np.full_like(arrivals.round, t))

        # What arrives from before the data were forgotten informs nobody.
        first = self.since if self.evidence is None else self.evidence_since
        self.informed[arrivals.replicate[arrivals.round >= first]] = True

        # Under a problem's own delays functions arrive apart, each for a model of its own.
        if self.setting.parallel == 1:
            self.posterior.receive(t, self.history, arrivals, self.since)
            if self.evidence is not None:
                self.evidence.receive(t, self.history, arrivals, first)
            return

        # With several evaluations under way f and every g_j of a round arrive together.
        if self.ahead is not None:
            self.ahead.play(self.chosen)
        for played_round, values in replace(feedback, arrivals=arrivals).rounds():
            if played_round >= self.since:
                self.absorb(self.history[played_round - 1], values)
            if played_round >= first:
                self._keep(self.history[played_round - 1], values)

    def absorb(self, played: Actions, feedback: Feedback) -> None:
        """Update the posterior with a whole round: actions (S,), or (S, d) of the cube, and f and g
        observed there.
        """
        self.posterior.update(played, self.told_values(feedback))
        if self.measured is not None:
            known_g = np.where(self.exact_g, feedback.g, np.nan)
            self.measured[self._rows[0], :, played] = known_g
        self.told += 1

    def _keep(self, played: Actions, feedback: Feedback) -> None:
        """Update the model that recommends with a whole round, if it is another one."""
        if self.evidence is not None:
            self.evidence.update(played, self.told_values(feedback))
        self.learned += 1

    def recommend(self, t: int) -> Actions | None:
        """Return the best posterior mean of f among actions with P(g_j <= 0) >= 0.95 for every j,
        or known to be feasible.

        Without one, the action whose least probable constraint is the most probable; none before
        the model has data, whatever is pending. It depends on the posterior alone: that of the
        play, or one of all data (see `evidence_horizon`). None, for the incumbent, if f alone is
        modelled. Where feedback is exact, it counts only until a feasible action is measured (see
        `Algorithm.recommend`).
        """
        if not self.models_constraints:
            return None
        sure = self.setting.seed_set if "a safe seed set" in self.needs else None
        model = self.posterior if self.evidence is None else self.evidence
        has_observations = self.learned > 0 or not self.setting.delayed
        actions = recommend_action(
            self._goal_of_levels, model, self.box, sure, self.measured, has_observations
        )
        if self.setting.delayed:
            # A replicate to which nothing has arrived yet has no recommendation.
            actions[~self.informed] = NONE if self.box is None else np.nan
        return actions


class Wait:
    """Tracks the replicates whose last new play is not fully observed yet.

    Args:
        replicates: S.
        functions: number of functions, from f on, that a play must reveal.
    """

    def __init__(self, replicates: int, functions: int) -> None:
        self.missing = np.zeros((replicates, functions), dtype=bool)
        self.round = np.zeros(replicates, dtype=np.intp)

    @property
    def open(self) -> Mask:
        """The replicates that wait, (S,)."""
        return np.asarray(self.missing.any(axis=1))

    def end(self) -> None:
        """Wait for nothing."""
        self.missing[:] = False

    def update(self, t: int, arrivals: Arrivals) -> None:
        """Record that round t was played by replicates that do not wait already, and what
        arrived.
        """
        fresh = ~self.open
        self.round[fresh] = t
        self.missing[fresh] = True
        a = arrivals

        # Nothing waits for functions that are not modelled, or for plays that were repeated.
        applies = (a.function < self.missing.shape[1]) & (a.round == self.round[a.replicate])
        self.missing[a.replicate[applies], a.function[applies]] = False
