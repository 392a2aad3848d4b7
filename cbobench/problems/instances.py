"""Instances: the noise-free functions of S replicates, with bounds and reference optima.

On a finite set the references are the best feasible action, the best policy of R+ (an exact linear
program), and the actions from which safe methods start.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from cbobench.errors import CellFailure
from cbobench.gp.actions import LARGEST, Finite
from cbobench.gp.box_actions import Box
from cbobench.gp.kernels import Actions, Array, Indices, Mask

Generators = Sequence[np.random.Generator]
"""One per replicate."""
Settle = Callable[[Array], Array]
"""Constraint values of any shape, as `Problem.settle` gives them."""
PAIRS = 2**18  # of actions per batch, so that intermediate arrays stay small
ROUNDING = 4e-16  # of two products of differences: by what rounding may part them


def best_feasible(f: Array, g: Array) -> Indices:
    """Index of the best action with every g_j <= 0.

    Args:
        f: (S, n).
        g: (S, m, n).

    Raises:
        CellFailure: some replicate has no feasible action.
    """
    feasible = np.asarray((g <= 0).all(axis=1))
    lacking = ~feasible.any(axis=1)
    if lacking.any():
        raise CellFailure(
            f"replicate {lacking.argmax()} has no feasible action: nothing to compare with"
        )
    return np.where(feasible, f, -np.inf).argmax(axis=1)


def best_policy_value(f: Array, g: Array) -> Array:
    """max over distributions pi of E_pi f with E_pi g_j <= 0 for all j (Zhou & Ji 2022, eq. 2),
    shape (S,).

    With one constraint the optimum mixes at most two actions, so all pairs (feasible, infeasible)
    are tried: exact, and a thousand times faster than a solver. With more, HiGHS solves the LP.
    """
    if g.shape[1] == 0:
        return f.max(axis=1)
    if g.shape[1] == 1:
        return np.array([_best_mixture(f[s], g[s, 0]) for s in range(len(f))])
    return np.array([_linear_program(f[s], g[s]) for s in range(len(f))])


def _best_mixture(f: Array, g: Array) -> float:
    if len(f) > LARGEST:  # on 100,000 actions there are 2.5e9 pairs
        few = _crossing_edge(f, g)
        f = f[few]
        g = g[few]
    inside = np.flatnonzero(g <= 0)
    outside = np.flatnonzero(g > 0)
    best = float(f[inside].max())
    # Nothing to mix: the best action is the best policy.
    if len(outside) == 0:
        return best

    # All pairs of 10,000 actions would take a gigabyte.
    step = max(1, PAIRS // len(outside))
    for i in range(0, len(inside), step):
        batch = inside[i : i + step]
        slack = -g[batch][:, None]
        excess = g[outside][None, :]
        # the largest share of the infeasible action that keeps E g = 0
        share = slack / (slack + excess)
        mixed = (1 - share) * f[batch][:, None] + share * f[outside][None, :]
        best = max(best, float(mixed.max()))
    return best


def _crossing_edge(f: Array, g: Array) -> list[int]:
    """The best feasible action, and the ends of the edge of the upper hull of f over g that crosses
    g = 0.

    All actions lie under the line of that edge, which does not fall: so no mixture with E g <= 0 is
    better than the edge at 0. An action above the line of two others takes the place of the end on
    its side of 0; the line is then higher at 0, so that no two ends come again. Where the best of
    all is feasible, there is no edge.
    """
    best = inside = int(np.where(g <= 0, f, -np.inf).argmax())
    outside = int(f.argmax())
    while g[inside] <= 0 < g[outside]:
        run = g[outside] - g[inside]
        rise = f[outside] - f[inside]
        # The action that is farthest above the line of both ends.
        highest = int((f * run - g * rise).argmax())
        # Rounding alone must not put an action above the line, or two ends might take turns.
        up = (f[highest] - f[inside]) * run
        along = (g[highest] - g[inside]) * rise
        if not up - along > ROUNDING * (abs(up) + abs(along)):
            break
        if g[highest] <= 0:
            inside = highest
        else:
            outside = highest
    return [best, inside, outside]


def _linear_program(f: Array, g: Array) -> float:
    from scipy.optimize import linprog

    # linprog minimises, and keeps shares from falling below 0 by default; they add up to 1.
    solution = linprog(
        -f, A_ub=g, b_ub=np.zeros(len(g)), A_eq=np.ones((1, len(f))), b_eq=[1.0], method="highs"
    )
    if not solution.success:
        raise CellFailure(f"the policy LP has no solution ({solution.message})")
    return float(-solution.fun)


def slater_margin(g: Array) -> Array:
    """delta = min(1, max over actions of -max_j g_j), shape (S,): Assumption 1 of Zhou & Ji, at a
    single action.
    """
    if g.shape[1] == 0:
        return np.ones(len(g))
    return np.minimum(1.0, (-g.max(axis=1)).max(axis=1))


def choose_seed_set(g: Array, size: int, generators: Generators) -> Mask:
    """`size` feasible actions per replicate, uniformly at random (all of them where there are
    fewer), (S, n).

    The draw comes from a child of each generator, so that it does not depend on how much the
    instance used.

    Random rather than safest: where g = h - f the safest actions are the best ones, which would
    hand a safe method the answer.
    """
    mask = np.zeros((len(g), g.shape[2]), dtype=bool)
    for s, gen in enumerate(generators):
        feasible = np.flatnonzero((g[s] <= 0).all(axis=0))
        if len(feasible) == 0:
            raise CellFailure("no feasible action to start from")
        mask[s, gen.spawn(1)[0].permutation(feasible)[:size]] = True
    return mask


Formula = Callable[[Array], Array]
"""Values (..., 1 + m) of (f, g_1, ..., g_m) at points (..., d)."""


PLAYED = (0.0, 1.0)  # rewards are reported in the units played


class Drawn(ABC):
    """One draw of a problem per replicate, whatever its action set.

    Attributes:
        norm: bounds on RKHS norms of (f, g_1, ..., g_m), (S, 1 + m).
        noise: sub-Gaussian constants R of the observations of (f, g_1, ..., g_m), (S, 1 + m).
            These, norm and sup are infinite where nobody knows them.
        sup: largest absolute values of (f, g_1, ..., g_m), (S, 1 + m).
        slater: delta = min(1, -min_x max_j g_j), (S,).
        f_star: reward of the best feasible action, (S,) or one for all, NaN where unknown; left out
            where it moves.
        seed_set: mask of the actions a safe method may start from, (S, n), all of them feasible;
            None: there is none.
        redraws: how many infeasible draws were thrown away, (S,) or one number for all.
        accuracy: by how much a feasible action may beat the stored optimum, (relative to 1 + |f*|);
            infinite where that is a target, or the best that is known.
        exact: whether `values` are known without noise at any action.
        fails_by_chance: whether an action may fail in one round and succeed in another, which is
            noise, too.
        ends_only: whether of the actions recommended only those in the end are asked for, because
            values cost much.
        units: (zero, unit): rewards are reported as zero + unit · f, where f is in the units
            played.
        binds: whether the best action of all is better than the best feasible one, by more than the
            accuracy, (S,); where functions move, in any phase; None: not known.
    """

    norm: Array
    noise: Array
    sup: Array
    slater: Array
    f_star: Array | float
    seed_set: Mask | None
    redraws: Indices | int = 0
    accuracy: float = 0.0
    exact: bool = True
    fails_by_chance: bool = False
    ends_only: bool = False
    units: tuple[float, float] = PLAYED
    binds: Mask | None = None

    @property
    def noiseless(self) -> Mask:
        """Whether f and every g_j are known to be observed without noise, (S,)."""
        return np.asarray(~self.noise.any(axis=1) & (not self.fails_by_chance))

    @abstractmethod
    def values(self, first: int, actions: Actions) -> Array:
        """Noise-free (f, g_1, ..., g_m) of rounds `first`, ..., (rounds, S, 1 + m), for actions
        (rounds, S[, d]).

        NaN at actions that were not played, where only what was observed is known.
        """

    def measure_again(self, actions: Actions) -> Array | None:
        """Better values (S, 1 + m) of the actions recommended in the end, or None; NaN where
        nothing is recommended.
        """
        return None

    def stars(self, first: int, rounds: int) -> tuple[Array, Array]:
        """Reward of the best feasible action and of the best randomised policy, each NaN where
        unknown, (rounds, S).
        """
        shape = (rounds, len(self.noise))
        return np.broadcast_to(self.f_star, shape), np.full(shape, np.nan)

    @abstractmethod
    def best(self, t: int) -> Actions:
        """The best feasible action of round t, (S,) or (S, d)."""

    def changes(self) -> tuple[tuple[int, Array], ...]:
        """Rounds t after which the functions move, with the norms (S, 1 + m) of the moves; empty if
        they never do.
        """
        return ()

    @abstractmethod
    def settled(self, settle: Settle) -> Drawn:
        """The same draw with constraint values as `Problem.settle` gives them."""


@dataclass(frozen=True)
class Instances(Drawn):
    """One draw per replicate of a problem on a finite action set, which stays as it is (see
    `Drawn`).

    Attributes:
        f: noise-free reward, (S, n).
        g: noise-free constraints, (S, m, n).
        norm: bounds on RKHS norms of (f, g_1, ..., g_m), (S, 1 + m).
        noise: sub-Gaussian constants R of the observations of (f, g_1, ..., g_m), (S, 1 + m).
        seed_set: mask of the actions a safe method may start from, (S, n); all of them feasible.
        redraws: how many infeasible draws were thrown away, (S,) or one number for all.
    """

    f: Array
    g: Array
    norm: Array
    noise: Array
    seed_set: Mask
    redraws: Indices | int = 0
    accuracy: float = 0.0
    exact: bool = True
    units: tuple[float, float] = PLAYED
    fails_by_chance: bool = False

    @property
    def replicates(self) -> int:
        return len(self.f)

    @property
    def constraints(self) -> int:
        return self.g.shape[1]

    @cached_property
    def functions(self) -> Array:
        """f and g stacked, (S, 1 + m, n)."""
        return np.concatenate([self.f[:, None], self.g], axis=1)

    @cached_property
    def sup(self) -> Array:  # type: ignore[override]
        """Largest absolute values of (f, g_1, ..., g_m), (S, 1 + m)."""
        return np.abs(self.functions).max(axis=2)

    @cached_property
    def optimum(self) -> Indices:
        """Best feasible action, (S,)."""
        return best_feasible(self.f, self.g)

    @cached_property
    def f_star(self) -> Array:  # type: ignore[override]
        """Reward of the best feasible action, (S,)."""
        return np.take_along_axis(self.f, self.optimum[:, None], axis=1)[:, 0]

    @cached_property
    def binds(self) -> Mask:  # type: ignore[override]
        """Whether the best action of all is infeasible and better than the best feasible one,
        (S,).
        """
        return self.f.max(axis=1) - self.f_star > self.accuracy * (1 + np.abs(self.f_star))

    @cached_property
    def f_plus(self) -> Array:
        """Value of the best randomised policy, (S,); at least `f_star`."""
        return best_policy_value(self.f, self.g)

    @cached_property
    def slater(self) -> Array:  # type: ignore[override]
        """delta = min(1, -min_x max_j g_j), (S,)."""
        return slater_margin(self.g)

    @cached_property
    def _flat(self) -> tuple[Array, Indices]:
        # Kept, because `values` is asked for in every round of a play.
        replicates, p, n = self.functions.shape
        return self.functions.reshape(-1), n * np.arange(replicates * p).reshape(replicates, p)

    def values(self, first: int, actions: Indices) -> Array:
        flat, offsets = self._flat
        return flat[offsets + actions[..., None]]

    def stars(self, first: int, rounds: int) -> tuple[Array, Array]:
        shape = (rounds, self.replicates)
        return np.broadcast_to(self.f_star, shape), np.broadcast_to(self.f_plus, shape)

    def best(self, t: int) -> Indices:
        return self.optimum

    def settled(self, settle: Settle) -> Instances:
        return replace(self, g=settle(self.g))


def check_drawn(drawn: Drawn, actions: Finite | Box, replicates: int, constraints: int) -> None:
    """Raises `CellFailure` if a draw has a wrong shape or values that are not finite."""
    p = 1 + constraints
    shapes: dict[str, tuple[int, ...]] = {"norm": (replicates, p), "noise": (replicates, p)}
    # Only draws on finite sets hold f and g as arrays.
    if isinstance(drawn, Instances) and isinstance(actions, Finite):
        shapes = {"f": (replicates, actions.n), "g": (replicates, constraints, actions.n)} | shapes
    for name, shape in shapes.items():
        values = np.asarray(getattr(drawn, name))
        if values.shape != shape:
            raise CellFailure(
                f"{name} of the drawn instances has shape {values.shape}; it must be {shape}"
            )
        # Booleans would swap what is feasible, complex numbers lose a part
        if values.dtype.kind not in "iuf":
            raise CellFailure(
                f"{name} of the drawn instances is of type {values.dtype}; it must be real numbers"
            )
        # Bounds may be infinite, where nobody knows them.
        if name in ("norm", "noise"):
            wrong = np.isnan(values) | (values < 0)
            allowed = "at least 0, or infinite where unknown"
        else:
            wrong = ~np.isfinite(values)
            allowed = "finite"
        if wrong.any():
            place = tuple(np.argwhere(wrong)[0].tolist())
            raise CellFailure(
                f"{name}{list(place)} of the drawn instances is {values[place]:g}; it must be "
                f"{allowed}"
            )
