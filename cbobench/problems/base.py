"""The interface of a problem: its instances per seed, a learner's knowledge, and the feedback of a
round.

Sign convention, once and for all: maximise f subject to g_j <= 0.

A problem is a keyword-only dataclass of parameters. `prepare` does the work that all seeds share
(and reads files, on the driver only); `draw` makes the instances of S seeds; `feedback` makes the
noisy channel. Metrics use the noise-free f and g of `Instances`, never what the learner was told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property, wraps
from typing import Any, ClassVar, Literal, Protocol

import numpy as np

from cbobench.errors import Misuse
from cbobench.gp.actions import Finite
from cbobench.gp.box_actions import Box
from cbobench.gp.kernels import Actions as Actions
from cbobench.gp.kernels import Array, Indices, Mask
from cbobench.gp.posteriors.interface import Arrivals as Arrivals
from cbobench.problems.instances import Drawn as Drawn
from cbobench.problems.instances import Generators
from cbobench.problems.instances import Instances as Instances
from cbobench.problems.instances import choose_seed_set as choose_seed_set
from cbobench.problems.user_classes import refuse_unread
from cbobench.rng import Streams
from cbobench.threads import single_thread

Ability = Literal[
    "a finite action set",
    "coordinates",
    "a safe seed set",
    "full information of the constraints",
    "feedback at once",
    "a known optimum",
]


Fact = Literal["B", "G", "R", "delta"]
"""What a method may read of a problem: bounds on f and on every g_j, the noise's constant, Slater's
margin. Named as the parameters that state them.
"""


Inputs = dict[str, Any]
"""By name, an input's value at every action of a finite set ([...]), or its type on a box
({"float": [low, high]}).
"""


Objective = tuple[str, float, float]
"""(name, zero, unit): zero + unit · f is the user's own quantity, such as a column; f is as tables
show it.
"""


@dataclass(frozen=True)
class Feedback:
    """Feedback after a round: noisy reward (S,) and constraint values (S, m) of the round's action.

    With delayed feedback f and g are NaN, and `arrivals` holds what reaches the learner in this
    round instead. With `lacks_f` some f are NaN: those of runs that failed before any had
    succeeded, of which nothing is known but that they are infeasible.
    """

    f: Array
    g: Array
    arrivals: Arrivals | None = None
    lacks_f: bool = False

    @property
    def values(self) -> Array:
        """f and every g_j side by side, (S, 1 + m)."""
        return np.concatenate([self.f[:, None], self.g], axis=1)

    def costs(self, rectified: bool = False) -> Array:
        """Sum of the constraint values, or of their positive parts, that are told in this round,
        (S, m).
        """

        def read(g: Array) -> Array:
            if rectified:
                return np.maximum(g, 0.0)
            return g

        # Positive parts are of single values: late ones may be of opposite signs.
        if self.arrivals is None:
            return read(self.g)
        return self._each(read)

    def _each(self, value: Callable[[Array], Array]) -> Array:
        """Sum over the constraint values that arrive late in this round, (S, m)."""
        total = np.zeros_like(self.g)
        a = self.arrivals
        assert a is not None
        of_g = a.function > 0
        # Several values of one constraint may arrive at once; += would count one of them.
        np.add.at(total, (a.replicate[of_g], a.function[of_g] - 1), value(a.value[of_g]))
        return total

    def counts(self) -> Array:
        """Number of values of each constraint that arrive in this round, (S, m)."""
        if self.arrivals is None:
            # four calls less than np.ones in every round of some methods
            return np.zeros(self.g.shape) + 1.0
        return self._each(np.ones_like)

    def told(self, functions: Indices, bound: Array) -> Feedback:
        """What it tells of f and some g_j, which are counted from other bounds.

        Args:
            functions: 0 for f, then j of these g_j, ascending.
            bound: what is taken off each of these g_j.
        """
        g = self.g[:, functions[1:] - 1] - bound
        if self.arrivals is None:
            return replace(self, g=g)
        a = self.arrivals
        is_told = np.isin(a.function, functions)
        position = np.searchsorted(functions, a.function[is_told])
        arrivals = Arrivals(
            replicate=a.replicate[is_told],
            round=a.round[is_told],
            function=position,
            value=a.value[is_told] - np.append(0.0, bound)[position],
        )
        return replace(self, g=g, arrivals=arrivals)

    def since(self, first: int) -> Feedback:
        """What it tells of rounds from `first` on; the round at hand is one of them."""
        a = self.arrivals
        if a is None or first == 1:
            return self
        new = a.round >= first
        recent = Arrivals(**{field.name: getattr(a, field.name)[new] for field in fields(a)})
        return replace(self, arrivals=recent)

    def rounds(self) -> Iterator[tuple[int, Feedback]]:
        """The rounds that are told now, with f and g of all replicates, where several evaluations
        are under way.
        """
        assert self.arrivals is not None
        replicates, m = self.g.shape
        # Every round comes whole here, and arrivals are sorted: they are a block of each replicate.
        values = self.arrivals.value.reshape(replicates, -1, 1 + m)
        rounds = self.arrivals.round.reshape(replicates, -1, 1 + m)[0, :, 0]
        for k, t in enumerate(rounds.tolist()):
            f = values[:, k, 0]
            yield t, Feedback(f, values[:, k, 1:], lacks_f=bool(np.isnan(f).any()))


Shown = Callable[[Array | None], Array]
"""g_t, shown before acting: its values (S, m, n) at all actions (`None`), or (S, m, k) at points
(S, k, d) of a box.
"""


class Channel(Protocol):
    """The noisy channel of S replicates; the noise of round t does not depend on what was played
    before.
    """

    def before(self, t: int) -> Shown | None:
        """What is shown before the actions of round t are chosen: g_t under full information, else
        nothing.
        """
        return None

    def at(self, t: int, actions: Actions) -> Feedback:
        """Feedback for the actions of round t; rounds are asked in order."""
        ...


class Problem:
    """Base of every problem. Subclasses are dataclasses registered with
    `@PROBLEMS.register("name")`.

    Class attributes:
        source: where the problem comes from, for tables.
        about: one line for tables.
        feasibility_tolerance: constraint values up to it, in the units played, are rounding and
            count as 0.
        seed_independent: whether every seed draws the same instance.
        simulates: whether values are of simulations, which may take long.
        kernel_is_known: whether the kernel of its actions is the one of its functions, as they are
            drawn from its space, or are readings with that covariance; methods then use it unless
            they are told to fit (`kernel`). Where it is a stand-in, they fit one.
        stated_facts: the values of `facts`, of a class that does not compute them.

    Attributes:
        simulated_seconds: that its simulations have taken so far, on the clock.
        unknown: which facts nobody knows of its functions, so that a method that reads them must be
            given them.
        known_constraints: which of them, j from 1 on, are known of every action before it is
            played: all actions keep them, and learners are not told of them.
        middle: of every g_j the middle between its last allowed and its first forbidden level,
            (m,), 0 where it has no levels (see `Configurations`); None: none has.
    """

    name: ClassVar[str] = ""
    source: ClassVar[str] = ""
    about: ClassVar[str] = ""
    feasibility_tolerance: ClassVar[float] = 0.0
    seed_independent: ClassVar[bool] = False
    simulates: ClassVar[bool] = False
    kernel_is_known: bool = False
    stated_facts: ClassVar[tuple[str, str, str, str]] = ("finite", "1", "varies", "varies")
    simulated_seconds: float = 0.0
    unknown: frozenset[Fact] = frozenset()
    known_constraints: Sequence[int] = ()
    middle: Array | None = None

    def __init_subclass__(cls, **options: Any) -> None:
        """Wraps `draw` so that all readers of a draw agree on what is feasible, and has what is
        kept computed by one BLAS thread.
        """
        super().__init_subclass__(**options)
        # A product that is split over threads has other bits, and what is kept enters every play.
        for kept in vars(cls).values():
            if isinstance(kept, cached_property):
                kept.func = single_thread()(kept.func)
        # A draw that is inherited has been wrapped already.
        if not hasattr(cls.draw, "settles"):
            cls.draw = _settling(cls.draw)  # type: ignore[assignment, method-assign]

    @classmethod
    def check_class(cls) -> None:
        """Raises `Misuse` for what the class states in a word that nothing reads."""
        refuse_unread(cls)

    def settle(self, g: Array) -> Array:
        """Constraint values of any shape, with 0 in place of those in (0, feasibility_tolerance].

        Raises:
            Misuse: the tolerance is negative or not finite.
        """
        most = self.feasibility_tolerance
        if not 0 <= most < np.inf:
            raise Misuse(
                f"feasibility_tolerance is {most}; it must be at least 0 and finite, such as 1e-12"
            )
        # No copy for the many problems without a tolerance.
        if most:
            return np.where((g > 0) & (g <= most), 0.0, g)
        return g

    def _are_feasible(self, values: Array) -> Mask:
        """Where every g_j is settled to at most 0, of (f, g_1, ..., g_m), (n, 1 + m) to (n,)."""
        return np.asarray((self.settle(values[:, 1:]) <= 0).all(axis=1))

    @classmethod
    def complete(cls, settings: dict[str, Any]) -> dict[str, Any]:
        """Resolved parameters as a suite that is read now means them; those of stored cells are
        complete.
        """
        return settings

    @classmethod
    def facts(cls) -> dict[str, str]:
        """In words, for tables, with default parameters: action set, number of constraints,
        feasible share and f*.
        """
        return dict(
            zip(("actions", "constraints", "feasible", "best"), cls.stated_facts, strict=True)
        )

    @classmethod
    def noise_near_optimum(cls) -> str:
        """With default parameters, how large the noise on f is beside f's spread near the optimum;
        or nothing.
        """
        return ""

    def offers(self) -> frozenset[Ability]:
        """Abilities of the problem. An algorithm that needs others refuses it."""
        actions = self.actions
        # Subclasses take away what they do not have.
        abilities: set[Ability] = {"feedback at once", "a known optimum"}
        if isinstance(actions, Finite):
            abilities |= {"a finite action set", "a safe seed set"}
        # Arms, such as those of a covariance that was given, may have no coordinates.
        if isinstance(actions, Box) or actions.points is not None:
            abilities.add("coordinates")
        return frozenset(abilities)

    def prepare(self, data: Any) -> None:
        """Work shared by all seeds; called once, on the driver, before anything is played.

        Args:
            data: a `cbobench.problems.data.Site`, where original data sets are looked for.

        Raises:
            Misuse: missing or unreadable data, or no feasible action whatever the seed.
        """

    def identity(self) -> dict[str, Any]:
        """Part of a cell's id beyond the parameters, such as hashes of files."""
        return {}

    def describe_inputs(self) -> Inputs | None:
        """How readers call what an action is made of, once prepared; None if it is a number
        only.
        """
        if isinstance(self.actions, Box):
            ends = zip(self.actions.low.tolist(), self.actions.high.tolist(), strict=True)
            return {f"x_{i}": {"float": [low, high]} for i, (low, high) in enumerate(ends, 1)}
        # Arms without names are known by their number.
        if self.actions.names is None:
            return None
        return {"action": list(self.actions.names)}

    def describe_objective(self) -> Objective:
        """What f is in the units and with the sign of the user, once prepared."""
        return "f", 0.0, 1.0

    def measured_in(self) -> tuple[Sequence[Any], Array, Array] | None:
        """How past measurements are read, once prepared: the columns of f and every g_j, as
        `configurations.Rule`, and shift and divisor (1 + m,) of the units played; None if the
        problem takes none.
        """
        return None

    def note(self) -> str:
        """One line for readers of a prepared problem's results, such as units and the regret's
        reference.
        """
        return ""

    def lacks(self, member: str, fix: str) -> Misuse:
        """The error for a subclass that lacks a required member."""
        return Misuse(f"{type(self).__name__} does not define {member}; {fix}")

    def check_corners(self) -> None:
        """Raises `Misuse` for a problem on a box whose class gives no `low` and `high`, or none
        that make a box.
        """
        for name in ("low", "high"):
            if not hasattr(self, name):
                raise self.lacks(name, f"write {name} = (...), one number per coordinate")
        low, high = (np.asarray(getattr(self, name), dtype=float) for name in ("low", "high"))
        if low.shape != high.shape or low.ndim != 1 or not (low < high).all():
            raise Misuse(
                f"{type(self).__name__}: low is {tuple(low.tolist())}, high is "
                f"{tuple(high.tolist())}; give as many of each, and each low below its high"
            )

    @property
    def actions(self) -> Finite | Box:
        """The action set."""
        raise self.lacks(
            "actions",
            "give a property that returns a Finite or a Box, or derive BoxProblem or Simulator",
        )

    @property
    def constraints(self) -> int:
        """m, as the class says it."""
        m: int | None = getattr(self, "m", None)
        if m is None:
            raise self.lacks(
                "constraints", "give a property that returns m, how many g_j there are"
            )
        return m

    @property
    def learned(self) -> Indices:
        """The functions that learners are told: 0 for f, then j of every g_j that is not known."""
        return np.setdiff1d(np.arange(1 + self.constraints), self.known_constraints)

    def draw(self, generators: Sequence[np.random.Generator]) -> Drawn:
        """The instances of S seeds; replicate s uses only generators[s]."""
        raise self.lacks(
            "draw(self, generators)",
            "return Instances: f (S, n), g (S, m, n), norm and noise (S, 1 + m)",
        )

    def repeat(
        self,
        functions: Array,
        norm: Array,
        noise: Array,
        seed_size: int,
        generators: Generators,
    ) -> Instances:
        """One instance for all replicates; only the seed sets differ.

        Args:
            functions: (f, g_1, ..., g_m), (1 + m, n).
            norm, noise: of each function, (1 + m,).
        """
        # Copies, one per replicate: what differs is where a safe method may start.
        replicates = len(generators)
        f = np.tile(functions[0], (replicates, 1))
        g = np.tile(functions[1:], (replicates, 1, 1))
        seeds = choose_seed_set(self.settle(g), seed_size, generators)
        norm = np.tile(norm, (replicates, 1))
        noise = np.tile(noise, (replicates, 1))
        return Instances(f=f, g=g, norm=norm, noise=noise, seed_set=seeds)

    def feedback(self, instances: Drawn, streams: Streams) -> Channel:
        """The noisy channel, from the feedback streams of the cells."""
        raise self.lacks(
            "feedback(self, instances, streams)",
            "return a Channel, or derive FeedbackModel, which has one",
        )

    def known_instance(self) -> Drawn | None:
        """The instance if every seed draws the same one; a sweep tries it before it starts."""
        if self.seed_independent:
            # Any generator does: it draws the seed set alone.
            return self.draw([np.random.default_rng(0)])
        return None


Draw = Callable[[Any, Generators], Drawn]


def _settling(draw: Draw) -> Draw:
    @wraps(draw)
    def settled(self: Problem, generators: Generators) -> Drawn:
        drawn = draw(self, generators)
        # Most problems have none, and their draws stay as they are.
        if self.feasibility_tolerance:
            return drawn.settled(self.settle)
        return drawn

    settled.settles = True  # type: ignore[attr-defined]
    return settled
