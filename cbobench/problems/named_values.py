"""What a simulator's class calls its objective and constraints, in the words of tables, and runs
that return values by these names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cbobench.errors import CellFailure, Misuse, show
from cbobench.gp.kernels import Array
from cbobench.problems.configurations import Rule, constraints_of, objective_of
from cbobench.problems.simulation_values import NoResult, describe_result, read_number
from cbobench.words import count_noun

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


def read_named_runs(results: Any, count: int, rules: Sequence[Rule], call: str) -> list[Array]:
    """The values that rules name, of each of some runs in the user's units, (1 + m,); NaN for one
    that is none.

    Args:
        results: a sequence of mappings of names to values (or of what has names, such as series),
            or a mapping of names to values (count,).
        count: number of runs.
        call: what was called, for the error.

    Raises:
        CellFailure: another form, a name that no rule has or that is missing, or text. NoResult:
            a run gave None.
    """
    columns = _find_names(results)
    if columns is not None and all(len(np.atleast_1d(c)) == count for c in columns.values()):
        rows = zip(*(np.atleast_1d(column) for column in columns.values()), strict=True)
        results = [dict(zip(columns, row, strict=True)) for row in rows]
    if _find_names(results) is not None or len(results) != count:
        raise CellFailure(
            f"{call} gives {describe_result(results)} for {count_noun(count, 'point')}; it must "
            "give a list of as many mappings"
        )
    return [_read_run(result, rules, call) for result in results]


def _read_run(result: Any, rules: Sequence[Rule], call: str) -> Array:
    names = dict.fromkeys(rule.column for rule in rules)
    form = f"return {{{', '.join(f'{show(name)}: ...' for name in names)}}}"
    if result is None:
        raise NoResult(f"it returned None; {form}")
    named = _find_names(result)
    if named is None or named.keys() != names.keys():
        given = describe_result(result if named is None else named)
        raise CellFailure(f"{call} gives {given}; as the class names its values, {form}")
    # True and False are values here: a bound says which of them is wanted.
    values = {
        name: float(value) if isinstance(value, bool | np.bool_) else read_number(value, name, call)
        for name, value in named.items()
    }
    return np.array([values[rule.column] for rule in rules])


def _find_names(result: Any) -> dict[Any, Any] | None:
    """Values by name, of a mapping, a series or a named tuple; None of all else."""
    if isinstance(result, Mapping):
        return dict(result)
    to_mapping = getattr(result, "_asdict", getattr(result, "to_dict", None))
    return None if to_mapping is None else dict(to_mapping())
