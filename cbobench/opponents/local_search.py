"""Local optimisers, started again and again: those of SciPy (Virtanen et al. 2020), and NOMAD 4
(Audet et al. 2022; LGPL-3): `pip install 'cbobench[nomad]'`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from cbobench.algorithms import ALGORITHMS
from cbobench.algorithms.asktell import Given
from cbobench.algorithms.references import SobolSequence
from cbobench.errors import Misuse, show
from cbobench.gp.kernels import Array
from cbobench.gp.mixed_actions import Mixed
from cbobench.opponents.library import (
    MARGIN_IS,
    CubeMethod,
    CubeRun,
    LibraryMethod,
    silence_library,
)
from cbobench.params import param
from cbobench.problems.base import Problem

SEEDS = 100_000  # a seed costs NOMAD as many draws as it says


class Unknown(Exception):
    """A run asks for a point (d,) that was not evaluated."""


class Restarts(CubeRun):
    """SciPy's `minimize` as ask and tell: a run is repeated from its start until it asks for a
    point without a value.

    It calls functions, which have nothing to return before a round is over. Its steps depend on
    their values alone, so with those known so far it comes to the same point again.
    """

    def __init__(self, run: Given, method: LocalMethod) -> None:
        super().__init__(run, method)
        self.sobol = SobolSequence(run.d, run.generator)
        self.values: dict[bytes, tuple[float, Array]] = {}
        self.failing: set[bytes] = set()
        self.start: Array | None = None
        self.design: list[Array] = []
        # What is added to constraints; without a design, which shows their spread, in units of g.
        self.shift: float | Array = method.margin

    def ask(self) -> Array:
        while True:
            if self.start is None:
                self.start = self._next_start()
                self.values = {}
                self.failing = set()
            try:
                self._run(self.start)
            except Unknown as error:
                self.point: Array = error.args[0]
                if not self._is_passed(self.point):
                    return self._pull_inside(self.point)
            else:
                self.start = None

    def _next_start(self) -> Array:
        """Return the next point of the Sobol sequence that may be played."""
        start = self.sobol.next()
        limited = self.cube.limited
        while limited is not None and limited.beyond(start):
            start = self.sobol.next()
        return self.cube.count(start)

    def _is_passed(self, point: Array) -> bool:
        """Whether a point is answered without a play."""
        return False

    def _pull_inside(self, point: Array) -> Array:
        """Return what is played for a point: the last one that known constraints allow, on the way
        from the start.
        """
        limited = self.cube.limited
        if limited is not None and self.start is not None:
            point = limited.pull_inside(point[None], self.start[None])[0]
        return self.cube.action(self.cube.uncount(point))

    def tell(self, x: Array, f: float, g: Array) -> None:
        self.values[self.point.tobytes()] = f, g

    def observe(self, x: Array, f: float, g: Array) -> None:
        """Start at the best of the points that were not asked for; its values are known."""
        if self.method.margin > 0:
            self.design.append(g)
            self.shift = self.method.margin * np.std(self.design, axis=0)
        if self.is_best(f, g):
            self.start = self.cube.count(self.cube.unit(x))
            self.values = {self.start.tobytes(): (f, g)}

    @silence_library()
    def _run(self, start: Array) -> None:
        from scipy.optimize import minimize  # imported late: SciPy takes long to load

        def look(x: Any) -> tuple[float, Array]:
            point = np.array(x, dtype=np.float64)
            if point.tobytes() not in self.values:
                raise Unknown(point)
            return self.values[point.tobytes()]

        options = {self.method.step_option: self.method.step}
        bounds = [(0.0, 1.0)] * len(start)
        # SciPy's constraints are feasible if >= 0.
        constraints = [{"type": "ineq", "fun": lambda x: -(look(x)[1] + self.shift)}]
        limited = self.cube.limited
        if limited is not None:
            known = {"type": "ineq", "fun": lambda x: -limited.walls(np.array([[x]]))[0, :, 0]}
            constraints.append(known)
        minimize(
            lambda x: -look(x)[0],
            start,
            (),
            self.method.solver,
            bounds=bounds,
            constraints=constraints,
            tol=self.method.tolerance,
            options=options,
        )


@dataclass(kw_only=True)
class LocalMethod(CubeMethod):
    """Base of SciPy's local optimisers on a box.

    The first run starts at the best point of a suite's initial design, if there is one; whenever a
    run ends, the next one starts at a new point of a scrambled Sobol sequence and knows nothing of
    the runs before. f and every g_j are observed at once, and a point that a run asks for again has
    the value that it had. On a finite set the nearest action is played, and the point as it was
    asked keeps what was observed there: differences of SLSQP are then 0. Known constraints are
    given to the solver; of a point beyond them the last one that is allowed is played, on the way
    from the run's start. Whole numbers and choices are refused, but for a sample of configurations.

    SciPy's own settings are for a user to whom a small violation does not matter. Where it does,
    `margin` has runs end inside (of the spread over the initial design; without one it is in units
    of g), and `tolerance` has them go on to the last digits.

    Class attributes:
        solver: SciPy's name of it.
        step_option: SciPy's name of the parameter `step`.
    """

    solver: ClassVar[str]
    step_option: ClassVar[str]
    optimiser_class = Restarts

    margin: float = param(0.0, MARGIN_IS, at_least=0.0, quiet=True)
    tolerance: float | None = param(
        None,
        "where a run ends (tol; SLSQP: of f, others: a radius); null: SciPy's",
        above=0.0,
        quiet=True,
    )

    def check(self, problem: Problem) -> None:
        super().check(problem)
        if isinstance(problem.actions, Mixed):
            raise Misuse(
                "it takes floats alone; the problem has whole numbers or choices; allowed: "
                "configurations: 2048 of the problem, a sample of them; or cei or scbo"
            )


@dataclass(kw_only=True)
class RegionMethod(LocalMethod):
    """Base of those with a trust region, whose radius begins at `step` and ends at `tolerance`."""

    step: float = param(
        0.2, "first radius, in units of the sides (SciPy: 1, all of the box)", above=0.0
    )

    def validate(self) -> None:
        if self.tolerance is not None and self.tolerance > self.step:
            raise Misuse(
                f"tolerance {show(self.tolerance)} is above step {show(self.step)}; allowed: a "
                "last radius that is no larger than the first; give a smaller tolerance"
            )


@ALGORITHMS.register("cobyla")
@dataclass(kw_only=True)
class Cobyla(RegionMethod):
    """COBYLA: the best point of linear models of f and every g_j, through d + 1 points, in a
    shrinking trust region.

    To it the walls are constraints, over which it may step: then the nearest point of the box is
    played, and its observation is assigned to the point as it was asked.
    """

    source = "Powell (1994); SciPy"
    about = (
        "local search by linear models of f and every constraint (SciPy's COBYLA), with restarts"
    )
    cost = "O(t d²), with Python's overhead: a run is repeated every round"
    solver = "COBYLA"
    step_option = "rhobeg"


@ALGORITHMS.register("slsqp")
@dataclass(kw_only=True)
class SLSQP(LocalMethod):
    """SLSQP: sequential quadratic programming, with gradients from finite differences, d
    evaluations for each.

    A difference is of observations as they are: noise that is larger than f changes over it makes
    the gradient noise. A run often meets active constraints from outside, and ends where they are
    violated by rounding or a little more: on a problem without a feasibility tolerance such points
    are infeasible.
    """

    source = "Kraft (1988); SciPy"
    about = (
        "sequential quadratic programming with finite differences (SciPy's SLSQP), with restarts"
    )
    cost = "O(t d²): a run is repeated every round"
    solver = "SLSQP"
    step_option = "eps"

    step: float = param(
        2.0**-26, "of a finite difference, in units of the sides (eps; SciPy's)", above=0.0
    )


@ALGORITHMS.register("cobyqa")
@dataclass(kw_only=True)
class COBYQA(RegionMethod):
    """COBYQA: sequential quadratic programming on quadratic models, in a shrinking trust region.

    Models of f and every g_j interpolate 2d + 1 points and change as little as they must. No step
    leaves the box, and a start that is within a radius of a wall is moved onto it or a radius away.
    """

    source = "Ragonneau (2022); SciPy"
    about = (
        "local search by quadratic models of f and every constraint (SciPy's COBYQA), with restarts"
    )
    cost = "O(t d³), with Python's overhead: a run is repeated every round"
    solver = "COBYQA"
    step_option = "initial_tr_radius"


class MeshRuns(Restarts):
    """NOMAD's `optimize`, repeated from its start: its state is the process's, so none is kept.

    An evaluation beyond a known constraint fails, which NOMAD takes for an extreme barrier.
    """

    def _is_passed(self, point: Array) -> bool:
        limited = self.cube.limited
        if limited is None or not limited.beyond(self.cube.uncount(point)):
            return False
        self.failing.add(point.tobytes())
        return True

    def _run(self, start: Array) -> None:
        import PyNomad

        unknown: list[Array] = []

        # No exception passes through NOMAD: the one evaluation too many fails, and it stops.
        def evaluate(evaluation: Any) -> int:
            point = np.array([evaluation.get_coord(i) for i in range(self.cube.d)])
            if point.tobytes() in self.failing:
                return 0
            if point.tobytes() not in self.values:
                unknown.append(point)
                return 0
            f, g = self.values[point.tobytes()]
            outputs = -f, *(g + self.shift)
            evaluation.setBBO(" ".join(str(float(value)) for value in outputs).encode())
            return 1

        # The generator's state outlives a run, and a run's parameter SEED does not set it back.
        seed = self.cube.run.seed % SEEDS
        PyNomad.setSeed(seed)
        PyNomad.resetRandomNumberGenerator()
        types = np.where(self.cube.counted, "I", "R")
        settings = [
            f"BB_INPUT_TYPE ( {' '.join(types)} )",
            f"BB_OUTPUT_TYPE OBJ {'PB ' * self.cube.run.m}",
            f"MAX_BB_EVAL {len(self.values) + len(self.failing) + 1}",
            f"SEED {seed}",
            "DISPLAY_DEGREE 0",
            "NB_THREADS_PARALLEL_EVAL 1",
        ]
        # Whole numbers have bounds that are values.
        half = 0.5 * self.cube.counted
        low, high = self.cube.ends
        bounds = (low + half).tolist(), (high - half).tolist()
        PyNomad.optimize(evaluate, start.tolist(), *bounds, settings)
        if unknown:
            raise Unknown(unknown[0])


@ALGORITHMS.register("nomad")
@dataclass(kw_only=True)
class Nomad(LibraryMethod):
    """NOMAD 4: mesh adaptive direct search, which polls around the best points on a mesh that gets
    finer, with quadratic models to search and to order the polls.

    Constraints are met by the progressive barrier: beside the best feasible point it keeps the best
    infeasible one below a bound on the violation, which falls. Settings are the library's. The
    first run starts at the best point of a suite's initial design, if there is one; whenever a run
    ends, the next one starts at a new point of a scrambled Sobol sequence. Whole numbers, and the
    numbers of choices, are its integers (`BB_INPUT_TYPE`); those that are scaled by logarithms are
    rounded. On a finite set the nearest action is played, and the point as it was asked keeps what
    was observed there: an action may be played many times, as its other points are new to NOMAD.

    To NOMAD a violation of up to 1e-13 is none, and a run ends where its mesh is as fine.
    """

    source = "Audet, Le Digabel, Rochon Montplaisir and Tribes (2022)"
    about = "mesh adaptive direct search with quadratic models (the NOMAD library), with restarts"
    cost = "a run is repeated every round: about a second at t = 60"
    extra = "nomad"
    libraries = ("PyNomad",)
    optimiser_class = MeshRuns

    margin: float = param(0.0, MARGIN_IS, at_least=0.0, quiet=True)
