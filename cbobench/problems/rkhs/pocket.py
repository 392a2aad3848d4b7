"""A small feasible pocket in a box: the test problem of Shi & Eryilmaz (2022) E.1 and Guo, Zhu &
Liu (2022) 7.

f(x) = -sin x_1 - x_2 and g(x) = sin x_1 sin x_2 + 0.95 on [0, 6]². The feasible set is 1.77 % of
the box, in two lobes around (3π/2, π/2) and (π/2, 3π/2); the second is a trap, 5.1 below the
optimum.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from cbobench.errors import Misuse
from cbobench.gp.kernels import Array
from cbobench.params import param
from cbobench.problems import PROBLEMS
from cbobench.problems.base import Ability, Drawn
from cbobench.problems.channels import Phased, noise_on
from cbobench.problems.formulas.box import BoxProblem, Formula, Reference
from cbobench.problems.instances import Generators


def pocket(
    x: Array, shifts: tuple[float, float, float] = (0.0, 0.0, 0.0), level: float = 0.95
) -> Array:
    """(f, g) at points (..., 2): -sin(x_1 + a) - x_2 and sin(x_1 + b) sin(x_2 + c) + level, with
    shifts (a, b, c).
    """
    a, b, c = shifts
    f = -np.sin(x[..., 0] + a) - x[..., 1]
    g = np.sin(x[..., 0] + b) * np.sin(x[..., 1] + c) + level
    return np.stack([f, g], axis=-1)


def move(before: Formula, after: Formula, x: Array) -> Array:
    """What formulas change by at points."""
    return after(x) - before(x)


@PROBLEMS.register("feasible-pocket")
@dataclass(kw_only=True)
class FeasiblePocket(BoxProblem):
    """The pocket with noise on f and g; `noise_g: 0` gives noiseless constraints.

    Shi & Eryilmaz: noise variance 0.01, on f alone or on both. Guo et al. write N(0, 0.05), read as
    a variance.
    """

    source = "Shi & Eryilmaz (2022) E.1; Guo et al. (2022) 7"
    about = (
        "two-dimensional, highly nonlinear, feasible on 1.8 % of the box in two lobes, one a trap"
    )

    low = (0.0, 0.0)
    high = (6.0, 6.0)
    reference = Reference(
        x=(4.712388980384690, 1.253235897503375),
        f=-0.25323589750337505,
        slater=0.05,
        share=0.0177,
        how="closed form: x_1 = 3π/2, sin x_2 = 0.95",
        binds=True,
    )

    def formula(self, x: Array) -> Array:
        return pocket(x)


@dataclass(kw_only=True)
class NoisyPocket(FeasiblePocket):
    """The pocket with the noise of Guo et al., N(0, 0.05)."""

    noise_f: float = noise_on(0.05**0.5, "f")
    noise_g: float = noise_on(0.05**0.5, "g")


@PROBLEMS.register("feasible-pocket-delayed")
@dataclass(kw_only=True)
class DelayedPocket(NoisyPocket):
    """The pocket with feedback on f and g that arrives after independent Poisson delays."""

    source = "Guo et al. (2022) 7"
    about = "the feasible pocket with feedback on f and g after independent Poisson delays"

    delay: float | None = param(
        15.0,
        "mean of independent Poisson delays of f and g; null: told at once",
        above=0,
        at_most=1e9,
    )


DRIFT = (  # shifts, level and optimum of the three phases
    ((0.0, 0.0, 0.0), 0.95, FeasiblePocket.reference),
    (
        (-5.0, 0.0, 5.0),
        0.5,
        Reference(
            x=(2.5930812253360966, 0.0),
            f=0.6703451933399516,
            slater=0.5,
            share=0.186,
            how="closed form: x_2 = 0, x_1 = π - arcsin(-0.5 / sin 5)",
            binds=True,
        ),
    ),
    (
        (4.0, 5.0, 0.0),
        0.95,
        Reference(
            x=(0.0, 1.4342604772535887),
            f=-0.6774579819456605,
            slater=0.05,
            share=0.0135,
            how="closed form: x_1 = 0, sin x_2 = -0.95 / sin 5",
            binds=True,
        ),
    ),
)


@PROBLEMS.register("feasible-pocket-drift")
@dataclass(kw_only=True)
class DriftingPocket(NoisyPocket):
    """The pocket of which f and g change after rounds 100 and 300, with a dynamic optimum.

    f and g are -sin x_1 - x_2 and sin x_1 sin x_2 + 0.95, then -sin(x_1 - 5) - x_2 and sin x_1
    sin(x_2 + 5) + 0.5, then -sin(x_1 + 4) - x_2 and sin(x_1 + 5) sin x_2 + 0.95. The last phase
    lasts from round 301 to the horizon.
    """

    source = "Guo et al. (2022) 7"
    about = "the feasible pocket, changing after rounds 100 and 300, with a dynamic optimum"

    first_change: int = param(100, "f and g change after this round", at_least=1)
    second_change: int = param(300, "and after this one, which comes later", at_least=2)

    def validate(self) -> None:
        super().validate()
        # Each phase would have units of its own, and what is shown is of the first one.
        if self.scaled or self.full_information:
            raise Misuse(
                "functions that move are neither scaled nor shown; allowed here: false for both"
            )
        if self.second_change <= self.first_change:
            raise Misuse(
                f"second_change is {self.second_change}; it must be after first_change, "
                f"{self.first_change}"
            )

    @classmethod
    def facts(cls) -> dict[str, str]:
        phases = [reference for _, _, reference in DRIFT]
        return super().facts() | {
            "feasible": "; ".join(f"{100 * phase.share:.3g} %" for phase in phases),
            "best": "; ".join(f"{phase.f:.4g}" for phase in phases),
        }

    def offers(self) -> frozenset[Ability]:
        # What is safe in one phase may not be in the next.
        return super().offers() - {"a safe seed set", "full information of the constraints"}

    def stated(self) -> Sequence[tuple[Formula, Reference]]:
        return [
            (partial(pocket, shifts=shifts, level=level), reference)
            for shifts, level, reference in DRIFT
        ]

    def draw(self, generators: Generators) -> Drawn:
        # A change comes after its round, so that the next one is the first of a phase.
        starts = (1, self.first_change + 1, self.second_change + 1)
        parts = [
            self.instances(formula, reference, generators) for formula, reference in self.stated()
        ]
        # Methods for functions that move may know how far they do.
        moves = [
            np.tile(self.box.norm(partial(move, before, after)), (len(generators), 1))
            for (before, _), (after, _) in itertools.pairwise(self.stated())
        ]
        return Phased(list(zip(starts, parts, strict=True)), moves)
