"""Problems given by formulas on a box, with reference optima that tests derive again."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import Field, dataclass, make_dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, TypeVar

import numpy as np

from cbobench.errors import Misuse, reraise_stop
from cbobench.gp.actions import Finite
from cbobench.gp.box_actions import Box, finite, sobol
from cbobench.gp.kernels import Array, Mask, StationaryName
from cbobench.params import build, param
from cbobench.problems import PROBLEMS
from cbobench.problems.base import Drawn, Inputs, Objective
from cbobench.problems.channels import FeedbackModel, lengthscale_of, noise_on
from cbobench.problems.data import Site
from cbobench.problems.instances import Formula as Formula
from cbobench.problems.instances import Generators, Settle
from cbobench.problems.known import describe_known, limit_box, make_known
from cbobench.problems.reference import Reference as Reference
from cbobench.problems.reference import check_formula, contradiction
from cbobench.problems.reference import pointwise as pointwise
from cbobench.problems.tables.configurations import Rule, plain_rules
from cbobench.problems.user_classes import refuse_no_constraint
from cbobench.words import list_names

SAMPLE = 2**13  # points at which a formula's range, spread and Slater margin are read off
LARGEST_GRID = 10_000
NEAR = 0.1  # of a side
MANY = 8  # dimensions, from which on a shipped formula's lengthscale grows with their number


@dataclass(frozen=True)
class BoxInstances(Drawn):
    """A formula on a box, the same for every replicate (see `Drawn`).

    Attributes:
        formula: values (..., 1 + m) of (f, g_1, ..., g_m) at points (..., d).
        point, f_star: the best feasible point (d,) and its reward.
        norm, noise, sup: (S, 1 + m); slater: (S,).
    """

    formula: Formula
    point: Array
    f_star: float
    norm: Array
    noise: Array
    sup: Array
    slater: Array
    accuracy: float
    binds: Mask | None = None
    seed_set: None = None

    def values(self, first: int, actions: Array) -> Array:
        return self.formula(actions)

    def best(self, t: int) -> Array:
        return np.tile(self.point, (len(self.noise), 1))

    def settled(self, settle: Settle) -> BoxInstances:
        def settled_formula(x: Array) -> Array:
            values = self.formula(x)
            return np.concatenate([values[..., :1], settle(values[..., 1:])], axis=-1)

        return replace(self, formula=settled_formula)


@dataclass(kw_only=True)
class BoxProblem(FeedbackModel):
    """Base of formulas on a box. Subclasses give `low`, `high`, `m`, `reference` and `formula`; and
    `known`, if comparisons such as "x_1 + 2 * x_2 <= 3" are known: what they forbid is not played.

    With `grid` the action set is the finite grid with that many points per axis, which every
    algorithm can play.
    """

    low: ClassVar[tuple[float, ...]]
    high: ClassVar[tuple[float, ...]]
    m: ClassVar[int] = 1
    known: ClassVar[Sequence[str]] = ()
    reference: ClassVar[Reference]
    seed_independent = True
    searched: ClassVar[bool] = True
    """Whether `cbobench check` holds the stated optimum against a search: not where one takes
    minutes, or where the optimum is known by construction.
    """

    noise_f: float = noise_on(0.1, "f")
    noise_g: float = noise_on(0.1, "every g_j")
    kernel: StationaryName = param(
        "se", "kernel of the learners' models, on the box scaled to the unit cube"
    )
    lengthscale: float = lengthscale_of(0.2)
    candidates: int = param(
        1024,
        "points at which acquisition functions are first evaluated, where no mesh takes their "
        "place",
        at_least=16,
        at_most=65536,
    )
    grid: int | None = param(
        None, "play on a finite grid with this many points per axis instead", at_least=2
    )
    scaled: bool = param(
        False, "shift f to mean 0, divide f and every g_j by their standard deviations over the box"
    )
    seed_size: int = param(
        5, "how many random feasible actions a safe method may start from (grid only)", at_least=1
    )

    @classmethod
    def facts(cls) -> dict[str, str]:
        reference = cls.reference
        return {
            "actions": f"box, d = {len(cls.low)}",
            "constraints": str(cls.m),
            "feasible": f"{100 * reference.share:.3g} %",
            "best": f"{reference.f:.7g}",
        }

    @classmethod
    def noise_near_optimum(cls) -> str:
        try:
            # Asked of each registered class by tables, before any is played.
            ratio = build(cls, {}).noise_ratio()
        # a user's problem may raise anything, and playing it will say so
        except BaseException as error:
            reraise_stop(error)
            return ""
        if math.isnan(ratio):
            return ""
        return (
            f"{100 * ratio:.3g} % of f's deviation over the feasible points within a tenth of a "
            "side of the optimum"
        )

    def noise_ratio(self) -> float:
        """`noise_f`, in units of the standard deviation of f over the feasible points near the
        optimum.

        Those of a Sobol sample of all points that differ from it by at most `NEAR` of a side in any
        coordinate. NaN where f does not differ there.
        """
        best = self.box.unit(np.array(self.optimum.x))
        low = np.maximum(best - NEAR, 0.0)
        high = np.minimum(best + NEAR, 1.0)
        values = self.scaled_formula(
            self.box.scale(low + sobol(self.box.d, 4 * SAMPLE) * (high - low))
        )
        feasible = self._are_feasible(values)
        spread = float(values[feasible, 0].std()) if feasible.any() else 0.0
        if spread:
            return self.noise_f / spread
        return math.nan

    @property
    def optimum(self) -> Reference:
        """`reference`, unless a problem's parameters move it."""
        return self.reference

    def stated(self) -> Sequence[tuple[Formula, Reference]]:
        """What holds one after the other, here one thing for ever: a formula, and what is stated of
        its optimum.
        """
        return [(self.formula, self.optimum)]

    def formula(self, x: Array) -> Array:
        """(f, g_1, ..., g_m) at points (..., d): (..., 1 + m); maximise f, feasible where every g_j
        <= 0.
        """
        raise self.lacks(
            "formula(self, x)",
            "return np.stack([f, g_1, ...], axis=-1) at points x (..., d), with x[..., 0] for x_1",
        )

    def validate(self) -> None:
        refuse_no_constraint(self)
        self.check_corners()
        d = len(self.low)
        if self.grid is not None and self.grid**d > LARGEST_GRID:
            most = int(LARGEST_GRID ** (1 / d) + 1e-9)
            raise Misuse(
                f"grid is {self.grid}, so {self.grid**d:,} actions; allowed: at most {most} per "
                "axis here"
            )

    def prepare(self, data: Site) -> None:
        """Looks for a feasible action of a grid; on a box, holds the stated optimum against the
        formula.

        Raises:
            Misuse: there is none, or the stated optimum is not in the box, not feasible, or has
                another reward.
        """
        for formula, _ in self.formulas():
            check_formula(formula, self.box, self.m, type(self).__name__)

        # `vars` leaves out an inherited name, which would name the problem of a base class.
        name = vars(type(self)).get("name") or f"{type(self).__module__}:{type(self).__qualname__}"
        if not hasattr(self, "reference"):
            raise Misuse(
                f"{type(self).__name__} does not say its reference; to find it: cbobench check "
                f"{name}"
            )

        # On a grid the optimum is looked up, and the stated one does not count.
        actions = self.actions
        if isinstance(actions, Finite):
            assert actions.points is not None
            if not self._are_feasible(self.scaled_formula(actions.points)).any():
                raise Misuse(
                    f"no feasible action on a grid of {self.grid} points per axis; try another "
                    "grid, or the box"
                )
            return

        for formula, reference in self.stated():
            if wrong := self.mistake(formula, reference):
                raise Misuse(f"the stated optimum is {wrong}; to find it: cbobench check {name}")

    def formulas(self) -> Sequence[tuple[Formula, Reference | None]]:
        """As `stated`, also of a class that does not say its reference."""
        if hasattr(self, "reference"):
            return self.stated()
        return [(self.formula, None)]

    def mistake(self, formula: Formula, reference: Reference) -> str:
        """What contradicts a stated optimum; empty if nothing does (see `stated`)."""
        wrong = contradiction(
            formula, reference, self.box, self.m, self.settle, self.scaling[1][1:]
        )
        if not wrong and self.box.forbids(np.array(reference.x)):
            return f"at {reference.x}, which is beyond {list_names(self.known)}"
        return wrong

    @cached_property
    def box(self) -> Box:
        return limit_box(
            Box(
                np.array(self.low),
                np.array(self.high),
                self.kernel,
                self.lengthscale,
                self.candidates,
            ),
            make_known(self.known, [f"x_{i}" for i in range(1, 1 + len(self.low))]),
        )

    @cached_property
    def actions(self) -> Finite | Box:
        if self.grid is None:
            return self.box
        axes = np.meshgrid(
            *[np.linspace(a, b, self.grid) for a, b in zip(self.low, self.high, strict=True)]
        )
        points = np.stack([axis.ravel() for axis in axes], axis=1)
        return finite(points[~self.box.forbids(points)], self.box)

    def describe_inputs(self) -> Inputs | None:
        actions = self.actions
        if isinstance(actions, Box):
            return super().describe_inputs()
        assert actions.points is not None
        return {f"x_{i}": column for i, column in enumerate(actions.points.T.tolist(), 1)}

    def describe_objective(self) -> Objective:
        shift, divisor = self.scaling
        return "f", float(shift[0]), float(divisor[0])

    def measured_in(self) -> tuple[Sequence[Rule], Array, Array] | None:
        # Of functions that move, a past measurement does not say which it was of.
        if len(self.formulas()) > 1:
            return None
        return (plain_rules(self.m), *self.scaling)

    def note(self) -> str:
        parts = describe_known(self.box)
        if self.scaled:
            parts.append(
                "f counts from its mean; f and every g_j are in standard deviations over the box"
            )
        return "; ".join(parts)

    def identity(self) -> dict[str, Any]:
        return {"known": [*self.known]} if self.known else {}

    @cached_property
    def scaling(self) -> tuple[Array, Array]:
        """(shift, divisor) of (f, g_1, ..., g_m), each (1 + m,)."""
        if not self.scaled:
            return np.zeros(1 + self.m), np.ones(1 + self.m)
        # A fixed sample, so that units are the same in every play.
        values = self.formula(self.box.scale(sobol(self.box.d, SAMPLE)))
        shift = np.zeros(1 + self.m)
        shift[0] = values[:, 0].mean()
        return shift, values.std(axis=0)

    def scaled_formula(self, x: Array) -> Array:
        """The formula in the units that are played."""
        shift, divisor = self.scaling
        return (self.formula(x) - shift) / divisor

    def draw(self, generators: Generators) -> Drawn:
        return self.instances(self.scaled_formula, self.optimum, generators)

    def instances(self, formula: Formula, reference: Reference, generators: Generators) -> Drawn:
        """The draws of a formula with a known optimum; on a grid the optimum is found by looking at
        every point.
        """
        noise = np.array([self.noise_f] + [self.noise_g] * self.m, dtype=float)
        # A grid's values are all known: no stated optimum is needed, and the norm is the box's.
        if isinstance(self.actions, Finite):
            assert self.actions.points is not None
            values = formula(self.actions.points).T
            return self.repeat(values, self.box.norm(formula), noise, self.seed_size, generators)
        replicates = len(generators)
        units = sobol(self.box.d, SAMPLE)
        if self.box.known is not None:
            units = np.concatenate([self.box.keep(units), self.box.scattered])
        sample = formula(self.box.scale(units))
        shift, divisor = self.scaling
        # In scaled units the margin is known up to the constraints' divisors; a sample gives a
        # lower bound too.
        sampled = float((-sample[:, 1:].max(axis=1)).max())
        slater = min(1.0, max(sampled, reference.slater / float(divisor[1:].max())))
        binds = None
        if reference.binds is not None:
            binds = np.full(replicates, reference.binds)
        return BoxInstances(
            formula=formula,
            point=np.array(reference.x),
            f_star=float((reference.f - shift[0]) / divisor[0]),
            norm=np.tile(self.box.norm(formula), (replicates, 1)),
            noise=np.tile(noise, (replicates, 1)),
            sup=np.tile(np.abs(sample).max(axis=0), (replicates, 1)),
            slater=np.full(replicates, slater),
            accuracy=reference.accuracy,
            binds=binds,
        )


P = TypeVar("P", bound=BoxProblem)


def longer(d: int) -> Any:
    """The parameter `lengthscale` in d dimensions.

    Two random points of the unit cube are √(d/6) apart, so that a constant lengthscale makes of the
    kernel white noise.
    """
    return lengthscale_of(round(0.3 * math.sqrt(d), 2))


def define(
    name: str, base: type[P], *, accuracy: float = 1e-9, binds: bool = True, **stated: Any
) -> Callable[[Formula], type[P]]:
    """Decorator that registers a formula (..., d) to (..., 1 + m) as the problem `name`, with the
    formula's docstring.

    Whoever loads a pickled problem looks up its class by module and name: what the decorator gives
    must be called as the problem is, with _ for -.

    Args:
        base: of the class.
        accuracy, binds: of the `Reference`.
        stated: the other fields of the reference; attributes of the class, such as `low`, `high`
            and `m`; other defaults of its parameters, made with `param`. From eight dimensions on,
            the lengthscale is longer.
    """

    def make(formula: Formula) -> type[P]:
        # A class as one would write it, so that pickles, tables and checks see no difference.
        members = {"__doc__": formula.__doc__, "formula": lambda self, x: formula(x), **stated}
        parameters = {k: members.pop(k) for k, v in stated.items() if isinstance(v, Field)}
        optimum = {k: members.pop(k) for k in ("x", "f", "slater", "share", "how")}
        members["reference"] = Reference(**optimum, accuracy=accuracy, binds=binds)
        if (d := len(optimum["x"])) >= MANY:
            parameters["lengthscale"] = longer(d)
        columns = [(parameter, float, value) for parameter, value in parameters.items()]
        cls = make_dataclass(
            name.replace("-", "_"), columns, bases=(base,), namespace=members, kw_only=True
        )
        # Pickle looks the class up where the formula stands.
        cls.__module__ = formula.__module__
        return PROBLEMS.register(name)(cls)

    return make


def split(x: Array) -> Array:
    """Coordinates of points (..., d), one after the other: (d, ...)."""
    return np.moveaxis(x, -1, 0)


def join(*values: Array) -> Array:
    """Values (...) of f, g_1, ..., g_m as one array, (..., 1 + m)."""
    return np.stack(values, axis=-1)


def read_numbers(text: str) -> tuple[float, ...]:
    """The numbers of a table, read row by row."""
    return tuple(map(float, text.split()))


def read_rows(text: str) -> Array:
    """The numbers of a table, one row a line, as an array."""
    return np.array([read_numbers(line) for line in text.strip().splitlines()])
