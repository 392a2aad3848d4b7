"""What a simulator's class calls its objective and constraints, in the words of tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cbobench.errors import Misuse, show
from cbobench.gp.kernels import Array
from cbobench.problems.tables.configurations import Rule, constraints_of, objective_of

LIMIT = '{"late": {"at_most": 0.1}}'


def name_values(cls: Any) -> list[Rule]:
    """What a simulator's class says in `objective` and `constraints`.

    Returns:
        The objective, then the constraints; none where the class has neither word.

    Raises:
        Misuse: one word without the other, a wrong one, or m beside them.
    """
    objective, limits = cls.aim, cls.limits
    if objective is None and limits is None:
        return []
    if objective is None or limits is None:
        raise Misuse(
            f"{cls.__name__} names one of objective and constraints; add "
            + (
                'objective = {"minimise": "cost"}'
                if objective is None
                else f"constraints = {LIMIT}"
            )
        )
    if not isinstance(limits, Mapping):
        raise Misuse(f"constraints is {show(limits)}; allowed: bounds by name, such as {LIMIT}")
    rules = [objective_of(objective), *constraints_of(limits, "unit")]
    if cls.m != len(rules) - 1:
        raise Misuse(f"{cls.__name__} says m beside its constraints; leave m out")
    return rules


def orient(values: Array, rules: Sequence[Rule]) -> Array:
    """(f, g_1, ..., g_m) of the values that rules name, (1 + m,); without rules these are f and g
    themselves.
    """
    if not rules:
        return values
    signs, bounds = np.array([[rule.sign, rule.bound] for rule in rules]).T
    return np.asarray(signs * (values - bounds))
