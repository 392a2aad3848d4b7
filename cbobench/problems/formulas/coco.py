"""The suite `bbob-constrained` of COCO (Dufossé et al. 2022), from its package: `pip install
'cbobench[coco]'`.

54 functions (9 objectives, each under 6 numbers of constraints) in 6 dimensions with 15 instances;
COCO computes every value. The package is imported when a problem of it is prepared or played, not
before.
"""

from __future__ import annotations

import ctypes
import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib.util import find_spec
from typing import Any, Literal

import numpy as np

from cbobench.errors import Misuse
from cbobench.gp.kernels import Array
from cbobench.params import param
from cbobench.problems import PROBLEMS
from cbobench.problems.channels import lengthscale_of, noise_on
from cbobench.problems.formulas.box import BoxProblem, Reference, pointwise
from cbobench.registry import tell_install

SUITE = "bbob-constrained"
KEPT = 64  # functions that a process keeps open


@lru_cache(KEPT)
def open_function(function: int, dimension: int, instance: int) -> Any:
    """COCO's function, a pointer of this process; without an observer, which would write files.

    A value depends on its point alone. A call holds Python's global lock, so threads may share a
    function; a forked process has a copy of its own.
    """
    import cocoex

    only = f"dimensions: {dimension} function_indices: {function} instance_indices: {instance}"
    suite = cocoex.Suite(SUITE, "", only)  # of 4860 functions it would open each
    return suite.get_problem_by_function_dimension_instance(function, dimension, instance)


def best_point(function: int, dimension: int, instance: int) -> Array:
    """COCO's x*, (d,), by its function in C: the one in Python writes it to a file, with 16 digits
    behind the point.
    """
    from cocoex import interface

    library = ctypes.PyDLL(interface.__file__)
    pointer = ctypes.c_void_p
    number = ctypes.c_size_t
    # Without a restype, ctypes would cut the pointers to 32 bits.
    library.coco_suite.restype = (
        library.coco_suite_get_problem_by_function_dimension_instance.restype
    ) = pointer
    suite = pointer(library.coco_suite(SUITE.encode(), b"", b""))
    triple = map(number, (function, dimension, instance))
    problem = pointer(library.coco_suite_get_problem_by_function_dimension_instance(suite, *triple))
    optimum = np.empty(dimension)
    library.coco_problem_get_best_parameter(problem, pointer(optimum.ctypes.data))
    library.coco_problem_free(problem)
    library.coco_suite_free(suite)
    return optimum


@PROBLEMS.register("coco")
@dataclass(kw_only=True)
class Coco(BoxProblem):
    """A function of COCO's suite `bbob-constrained` (Dufossé et al. 2022), of which f = -cost is
    maximised.

    The values are COCO's to the last bit, in its units and without noise, on its box [-5, 5]^d.
    Functions 1 to 6 have the sphere as objective; each next six the ellipsoid, the linear slope,
    the rotated ellipsoid, discus, bent cigar, different powers, Rastrigin and the rotated
    Rastrigin. Within six the number of constraints grows: 1, 2, 6, 6 + d // 2, 6 + d and 6 + 3d of
    them are active at the optimum, and half as many are not. All are linear, and bent by the
    objective's own transformations.

    Feasible is, as in COCO, where every g_j <= 0, without tolerance. COCO builds each function
    around its optimum: the conditions of Karush, Kuhn and Tucker hold there, which suffices for
    pseudoconvex objectives; Rastrigin's constraints pass through a local optimum, so that no
    feasible one is better. COCO therefore knows x* and f* of every function, and x* is feasible to
    the last bit. It does not state the feasible share. The stated Slater margin is that of COCO's
    initial solution, which is feasible: a lower bound.
    """

    searched = False

    source = "COCO's bbob-constrained (Dufossé et al. 2022)"
    about = (
        "54 functions in 2 to 40 dimensions, 1 to 189 nearly linear constraints, active at the "
        "known optimum"
    )

    function: int = param(
        1, "number of COCO's function: six of each objective", at_least=1, at_most=54
    )
    dimension: Literal[2, 3, 5, 10, 20, 40] = param(2, "d")
    instance: int = param(1, "number of COCO's instance", at_least=1, at_most=15)
    noise_f: float = noise_on(0.0, "f; COCO has none")
    noise_g: float = noise_on(0.0, "every g_j; COCO has none")
    lengthscale: float = lengthscale_of(0.5)

    @classmethod
    def facts(cls) -> dict[str, str]:
        return {
            "actions": "box, d = 2 to 40",
            "constraints": "1 to 189",
            "feasible": "varies",
            "best": "varies",
        }

    @property
    def opened(self) -> Any:
        """COCO's own object."""
        return open_function(self.function, self.dimension, self.instance)

    @cached_property
    def low(self) -> tuple[float, ...]:  # type: ignore[override]
        return tuple(self.opened.lower_bounds.tolist())

    @cached_property
    def high(self) -> tuple[float, ...]:  # type: ignore[override]
        return tuple(self.opened.upper_bounds.tolist())

    @cached_property
    def m(self) -> int:  # type: ignore[override]
        return int(self.opened.number_of_constraints)

    @cached_property
    def reference(self) -> Reference:  # type: ignore[override]
        x = best_point(self.function, self.dimension, self.instance)
        slater = -self.formula(self.opened.initial_solution)[1:].max()
        return Reference(
            x=tuple(x.tolist()),
            f=float(self.formula(x)[0]),
            slater=float(slater),
            share=math.nan,
            accuracy=1e-12,
            how="COCO's construction",
            binds=True,
        )

    def validate(self) -> None:
        """Refuses to go on without COCO, which knows the box."""
        if find_spec("cocoex") is None:
            raise Misuse(
                f"the package coco-experiment is not installed here; {tell_install('coco')}"
            )
        super().validate()

    def identity(self) -> dict[str, Any]:
        import cocoex

        return {"coco-experiment": cocoex.__version__}

    @pointwise
    def formula(self, x: Array) -> Array:
        return np.concatenate([[-self.opened(x)], self.opened.constraint(x)])
