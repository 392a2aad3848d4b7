"""What becomes of an evaluation that fails: a simulator raised, gave no finite numbers, or a table
has no value.

As in Optuna and Ax, a trial that fails does not end a study.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from cbobench.errors import Misuse, show, unknown
from cbobench.gp.kernels import Array
from cbobench.problems.tables.columns import units_of

Outcome = Literal["infeasible", "skip", "fail"]
OUTCOMES = get_args(Outcome)
KEYS = ("retry", "then", "f", "g")
MOST_RETRIES = 100
ABOUT = (
    "a failed evaluation: infeasible (counts as the worst f of the cell so far and a unit of every "
    "g, or as those stated), skip (the method is told nothing), fail (ends the cell); {retry: k, "
    "then: ..., f: ..., g: ...} retries first, with other random numbers"
)


@dataclass(frozen=True)
class FailureRule:
    """The parameter `on_failure`.

    Attributes:
        then: what a failed evaluation becomes once the retries are spent.
        retries: further attempts.
        f, g: its values in the problem's units; None for the worst that were seen.
    """

    then: Outcome = "infeasible"
    retries: int = 0
    f: float | None = None
    g: tuple[float, ...] | None = None

    @classmethod
    def of(cls, declaration: str | Mapping[str, Any], m: int) -> FailureRule:
        """Read the parameter, for m constraints.

        Raises:
            Misuse: an unknown word or key, a number of retries or values that cannot be.
        """
        if isinstance(declaration, str):
            declaration = {"then": declaration}
        for key in declaration:
            if key not in KEYS:
                raise unknown("key", key, KEYS, location="on_failure: ")
        retries, then, f, g = (declaration.get(key) for key in KEYS)
        if retries is not None and not (type(retries) is int and 1 <= retries <= MOST_RETRIES):
            raise Misuse(
                f"on_failure: retry is {show(retries)}; it must be a whole number from 1 to "
                f"{MOST_RETRIES}"
            )
        if then not in (None, *OUTCOMES):
            raise unknown("outcome", then, OUTCOMES, location="on_failure: ")
        if then not in (None, "infeasible") and not (f is None and g is None):
            raise Misuse(f"on_failure: f or g is stated, but then is {then}; leave one of them out")
        if f is not None and not _is_finite(f):
            raise Misuse(f"on_failure: f is {show(f)}; it must be a finite number")
        values = None if g is None else cls._constraint_values(g, m)
        return cls(then or "infeasible", retries or 0, f, values)

    @staticmethod
    def _constraint_values(declaration: Any, m: int) -> tuple[float, ...]:
        values = declaration if isinstance(declaration, list) else [declaration] * m
        if len(values) != m or not all(_is_finite(value) for value in values):
            raise Misuse(
                f"on_failure: g is {show(declaration)}; it must be a finite number, or a list of "
                f"{m}"
            )
        if max(values, default=1.0) <= 0:
            raise Misuse(
                f"on_failure: g is {show(declaration)}; a failed evaluation is infeasible only "
                "if some g_j is above 0"
            )
        return tuple(float(value) for value in values)

    def values_of(self, measurements: Array) -> Array:
        """Return the values (1 + m,) that a failed evaluation counts as, given those seen, (n, 1 +
        m).

        Unless stated, f is the lowest seen, and each g_j the highest seen, or its spread where that
        is not above 0.
        """
        g = measurements[:, 1:].max(axis=0, initial=-np.inf)
        # A failed evaluation must be infeasible, even if nothing infeasible has been measured.
        worst = np.where(g > 0, g, units_of(measurements[:, 1:]))
        return self.with_stated(np.concatenate([measurements[:, :1].min(axis=0), worst]))

    def with_stated(self, values: Array) -> Array:
        """Return values (..., 1 + m) with those that are stated in their place."""
        result = values.copy()
        if self.f is not None:
            result[..., 0] = self.f
        if self.g is not None:
            result[..., 1:] = self.g
        return result


def _is_finite(value: Any) -> bool:
    return (
        isinstance(value, int | float) and not isinstance(value, bool) and bool(np.isfinite(value))
    )
