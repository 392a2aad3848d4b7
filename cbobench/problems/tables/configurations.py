"""Tables of configurations: one row per measured configuration, columns by role (inputs, objective,
constraints).

Rows with equal inputs are repetitions of one configuration: f and g are their means, and a round's
noise is one of them drawn at random, as tabular benchmarks do (NAS-Bench-101: Ying et al. 2019).
One draw serves f and every g_j, so that what one measurement ties together stays together.

Objective, constraints (`Rule`) and what becomes of an evaluation that fails (`FailureRule`) are
stated in the same words by simulators. As in Optuna and Ax, a trial that fails does not end a
study.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np

from cbobench.errors import Misuse, show, unknown
from cbobench.gp.actions import LARGEST, Finite
from cbobench.gp.kernels import Array, Indices, Mask, StationaryName, smooth_norm, stationary
from cbobench.problems.base import Channel, Drawn, Feedback, Instances, Objective, Problem
from cbobench.problems.channels import AdditiveNoise
from cbobench.problems.instances import Generators
from cbobench.problems.tables.columns import is_finite, spreads, units_of, write_number
from cbobench.problems.tables.inputs import InputSpace
from cbobench.problems.user_classes import name_functions
from cbobench.rng import Draws, Streams, standard_normal, uniform
from cbobench.words import count_noun, list_names

DIRECTIONS = {"maximise": 1.0, "minimise": -1.0, "maximize": 1.0, "minimize": -1.0}
BOUNDS = {"at_most": 1.0, "at_least": -1.0}
KNOWN = "known"
LEAST_UNIT = 1e-100  # what is divided by less may overflow
UNITLESS = "without a unit"
"""In a problem's note, of a constraint whose bound is 0: how much it is violated has no measure."""


@dataclass(frozen=True)
class Rule:
    """One function of the problem, read off a column: sign · (value - bound).

    Attributes:
        column: its name.
        sign: 1, or -1 where the column is minimised or has to be at least the bound.
        bound: in the column's units; 0 for the objective.
        noise: stated standard deviation of an observation in the column's units, None where none is
            stated.
        unit: the stated unit of a simulator's constraint, None where none is stated.
        known: whether it is known before anything is played, because it is on an input.
    """

    column: str
    sign: float
    bound: float = 0.0
    noise: float | None = None
    unit: float | None = None
    known: bool = False

    @property
    def requirement(self) -> str:
        """What it asks for."""
        side = "at most" if self.sign > 0 else "at least"
        return f"{self.column} {side} {write_number(self.bound)}"


def objective_of(declaration: str | Mapping[str, Any]) -> Rule:
    """The objective: a column's name (maximised), or {maximise: name}, {minimise: name}.

    Raises:
        Misuse: anything else.
    """
    if isinstance(declaration, str):
        return Rule(declaration, 1.0)
    if (
        not isinstance(declaration, Mapping)
        or len(declaration) != 1
        or not all(isinstance(name, str) for name in declaration.values())
    ):
        raise Misuse(
            f"objective is {show(declaration)}; allowed: a column's name (maximised), or "
            "{minimise: NAME}"
        )
    ((direction, name),) = declaration.items()
    if direction not in DIRECTIONS:
        raise unknown("direction", direction, ("maximise", "minimise"), location="objective: ")
    return Rule(name, DIRECTIONS[direction])


def constraints_of(
    declarations: Mapping[str, Any], further: Literal["noise", "unit"] = "noise"
) -> list[Rule]:
    """The constraints, by column: {at_most: number}, {at_least: number} or both, each with its
    `noise`, or of a simulator its `unit`, if that is stated, and whether it is `known`.

    Raises:
        Misuse: anything else, or none.
    """
    rules = []
    for column, bounds in declarations.items():
        label = f"constraints: {show(column)}"
        if not isinstance(bounds, Mapping) or not bounds.keys() & BOUNDS:
            stated = bounds
            if isinstance(bounds, Mapping):
                stated = {key: value for key, value in bounds.items() if key != KNOWN}
            raise Misuse(
                f"{label} is {show(stated)}; allowed: {{at_most: NUMBER}}, {{at_least: NUMBER}} "
                "or both"
            )
        for key, value in bounds.items():
            if key not in (*BOUNDS, further, KNOWN):
                raise unknown("key", key, [*BOUNDS, further, KNOWN], location=f"{label}: ")
            if key == KNOWN:
                if not isinstance(value, bool):
                    raise Misuse(f"{label}: known is {show(value)}; allowed: true, false")
                continue
            # A bound may be any number; noise and units are sizes.
            least = -np.inf if key in BOUNDS else 0.0
            deviation(value, f"{label}: {key}", least)
        if (unit := bounds.get("unit", 1.0)) <= LEAST_UNIT:
            raise Misuse(f"{label}: unit is {unit}; it must be above {LEAST_UNIT}")
        stated = {further: bounds.get(further), KNOWN: bounds.get(KNOWN, False)}
        rules += [
            Rule(column, BOUNDS[key], float(bounds[key]), **stated)
            for key in BOUNDS
            if key in bounds
        ]
    if not rules:
        raise Misuse(
            "constraints is empty; name at least one column, such as {latency_ms: {at_most: 60}}"
        )
    return rules


def state_known(declarations: Mapping[str, Any], inputs: Collection[str]) -> dict[str, Any]:
    """The constraints by column; those on inputs are known, unless they say that they are not."""
    return {
        column: {KNOWN: True, **bounds}
        if column in inputs and isinstance(bounds, Mapping)
        else bounds
        for column, bounds in declarations.items()
    }


def refuse_known(rules: Sequence[Rule], inputs: Collection[str]) -> None:
    """Raises `Misuse` for a constraint that is said to be known and is on no input."""
    for rule in rules:
        if rule.known and rule.column not in inputs:
            raise Misuse(
                f"constraints: {show(rule.column)}: known is true, but it is no input and must be "
                f"measured; inputs: {list_names(inputs)}; leave known out"
            )


def keep_known(measured: Measured, rules: Sequence[Rule], source: str) -> tuple[Mask, list[str]]:
    """Which configurations keep the known constraints, (n,), and in words how many each takes out.

    Raises:
        Misuse: none keeps one.
    """
    values = orient(measured.rows[measured.first], rules)
    within = np.ones(len(values), dtype=bool)
    beyond = []
    for rule, g in zip(rules, values.T, strict=True):
        if rule.known:
            within &= g <= 0
            count = f"{(g > 0).sum():,} of {count_noun(len(g), 'configuration')}"
            beyond.append(f"{count} lie beyond {rule.requirement}: known, not played")
    if not within.any():
        raise Misuse(f"{source}: no configuration is left ({'; '.join(beyond)}); move a bound")
    return within, beyond


def plain_rules(m: int) -> list[Rule]:
    """The columns f, g_1, ..., g_m."""
    return [Rule(name, 1.0) for name in name_functions(m)]


def orient(values: Array, rules: Sequence[Rule]) -> Array:
    """(f, g_1, ..., g_m) of values (..., 1 + m) in the columns of rules."""
    signs, bounds = np.array([[rule.sign, rule.bound] for rule in rules]).T
    return signs * (values - bounds)


def describe_rules(rules: Sequence[Rule], units: Sequence[float | None]) -> str:
    """What f and g are in the user's words, in units of the columns', 1 + m of them (None: it has
    none).
    """
    objective, *limits = rules
    f = objective.column if objective.sign > 0 else f"minus {objective.column}"
    requirements = []
    for rule, unit in zip(limits, units[1:], strict=True):
        measure = UNITLESS if unit is None else f"in units of {unit:.4g}"
        requirements.append(f"{rule.requirement} {measure}")
    return f"f = {f}; g: {list_names(requirements)}"


def deviation(value: Any, label: str, least: float = 0.0) -> float:
    """A finite number of at least `least`. Raises `Misuse` for anything else."""
    if not is_finite(value) or value < least:
        above = "" if least == -np.inf else f" of at least {least:g}"
        raise Misuse(f"{label} is {show(value)}; it must be a finite number{above}")
    return float(value)


Outcome = Literal["infeasible", "skip", "fail"]
OUTCOMES = get_args(Outcome)
FAILURE_KEYS = ("retry", "then", "f", "g")
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
        # A word alone is short for {then: word}.
        if isinstance(declaration, str):
            declaration = {"then": declaration}
        for key in declaration:
            if key not in FAILURE_KEYS:
                raise unknown("key", key, FAILURE_KEYS, location="on_failure: ")
        retries, then, f, g = (declaration.get(key) for key in FAILURE_KEYS)

        # True is a whole number to Python, hence the exact type.
        if retries is not None and not (type(retries) is int and 1 <= retries <= MOST_RETRIES):
            raise Misuse(
                f"on_failure: retry is {show(retries)}; it must be a whole number from 1 to "
                f"{MOST_RETRIES}"
            )
        if then not in (None, *OUTCOMES):
            raise unknown("outcome", then, OUTCOMES, location="on_failure: ")
        # What is skipped, or ends the cell, counts as nothing.
        if then not in (None, "infeasible") and not (f is None and g is None):
            raise Misuse(f"on_failure: f or g is stated, but then is {then}; leave one of them out")
        if f is not None:
            deviation(f, "on_failure: f", least=-np.inf)
        if g is not None:
            g = read_failed_g(g, m)
        return cls(then=then or "infeasible", retries=retries or 0, f=f, g=g)

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


def read_failed_g(g: Any, m: int) -> tuple[float, ...]:
    """The stated g of a failed evaluation, a number for all or a list. Raises `Misuse`."""
    values = g if isinstance(g, list) else [g] * m
    if len(values) != m or not all(map(is_finite, values)):
        raise Misuse(f"on_failure: g is {show(g)}; it must be a finite number, or a list of {m}")
    if max(values, default=1.0) <= 0:
        raise Misuse(
            f"on_failure: g is {show(g)}; a failed evaluation is infeasible only if some g_j is "
            "above 0"
        )
    return tuple(map(float, values))


@dataclass(frozen=True)
class Measured:
    """Rows of a table by configuration.

    Attributes:
        rows: the columns of the rules as they were read, (rows, 1 + m), those of a configuration
            one after the other.
        counts: how many rows each configuration has, (n,).
        points: coordinates in the unit cube, (n, d).
        names: a name per configuration.
        origin: of each configuration, its first row in the table, (n,).
        firsts: of every input the first of its coordinates.
    """

    rows: Array
    counts: Indices
    points: Array
    names: tuple[str, ...]
    origin: Indices
    firsts: Indices

    @cached_property
    def failed(self) -> Mask:
        """Which rows lack a value, (rows,)."""
        return np.asarray(np.isnan(self.rows).any(axis=1))

    @cached_property
    def first(self) -> Indices:
        """The first row of each configuration, (n,)."""
        return self.counts.cumsum() - self.counts

    @property
    def repeated(self) -> bool:
        """Whether any configuration has two rows."""
        return bool((self.counts > 1).any())

    @property
    def scattered(self) -> Mask:
        """Of which columns any configuration has two rows that differ, (1 + m,); two that failed do
        not.
        """
        firsts = np.repeat(self.rows[self.first], self.counts, axis=0)
        alike = (self.rows == firsts) | (np.isnan(self.rows) & np.isnan(firsts))
        return np.asarray(~alike.all(axis=0))

    def means(self, values: Array) -> Array:
        """Means (n, p) of values of the rows (rows, p)."""
        return np.add.reduceat(values, self.first, axis=0) / self.counts[:, None]

    @property
    def varying(self) -> Mask:
        """Of which columns any configuration has two values that differ, (1 + m,)."""
        least = np.fmin.reduceat(self.rows, self.first)
        most = np.fmax.reduceat(self.rows, self.first)
        return np.asarray((most > least).any(axis=0))

    def keep(self, mask: Mask) -> Measured:
        """Some of the configurations, those of a mask (n,)."""
        return replace(
            self,
            rows=self.rows[np.repeat(mask, self.counts)],
            counts=self.counts[mask],
            points=self.points[mask],
            names=tuple(np.array(self.names, dtype=object)[mask]),
            origin=self.origin[mask],
        )

    @staticmethod
    def of(rows: Array, points: Array, names: Sequence[str], firsts: Indices) -> Measured:
        """Rows grouped by equal points, configurations in the order in which they first appear.

        Args:
            rows: (rows, 1 + m).
            points: of every row, (rows, d).
            names: of every row's configuration.
            firsts: of the coordinates.
        """
        _, first, which = np.unique(points, axis=0, return_index=True, return_inverse=True)
        # np.unique sorts the points: ranks bring back the order of the file.
        rank = np.empty(len(first), dtype=np.intp)
        rank[np.argsort(first, kind="stable")] = np.arange(len(first))
        which = rank[which.reshape(-1)]
        # Stable, so that the rows of a configuration keep their order, too.
        order = np.argsort(which, kind="stable")
        first = np.sort(first)
        return Measured(
            rows=rows[order],
            counts=np.bincount(which),
            points=points[first],
            names=tuple(names[i] for i in first),
            origin=first,
            firsts=firsts,
        )


class MeasuredRows(Channel):
    """Feedback from one of the rows of the configuration that is played, drawn at random each
    round.

    One uniform number per round and replicate, whatever is played.

    Attributes:
        failed: rows without a value that were drawn so far, (S,).
    """

    def __init__(self, measured: Measured, values: Array, streams: Streams) -> None:
        self.measured = measured
        self.values = values
        self.draws = Draws(streams.role("rows"), uniform)
        self.failed: Indices = np.zeros(len(streams.scopes), dtype=np.intp)

    def at(self, t: int, actions: Indices) -> Feedback:
        counts = self.measured.counts[actions]
        row = self.measured.first[actions] + (self.draws.at(t) * counts).astype(np.intp)
        self.failed += self.measured.failed[row]
        observed = self.values[row]
        return Feedback(observed[:, 0], observed[:, 1:])


@dataclass(frozen=True)
class ConfigurationModel:
    """How learners model measured configurations.

    Attributes:
        kernel, lengthscale: on the unit cube.
        covariance: of the configurations, (n, n), in their place.
    """

    kernel: StationaryName
    lengthscale: float
    covariance: Array | None = None


class Configurations(Problem):
    """A finite problem of measured configurations; `table` with `layout: configurations` is the one
    of suites.

    Args:
        measured: the table.
        rules: the objective, then the constraints.
        noise: standard deviations of Gaussian noise in the columns' units, (1 + m,), or None: rows
            are drawn.
        model: of the learners.
        scaled: f shifted to mean 0, f and every g_j divided by their standard deviations over the
            configurations.
        seed_size: how many random feasible configurations a safe method may start from.
        on_failure: what a row without a value counts as; a configuration of which most rows have
            none counts as that.

    Attributes:
        space: the configurations by typed inputs, if the table has types.
        beyond: in words, how many configurations known constraints have taken out.

    Raises:
        Misuse: no feasible configuration, too many of them, or an objective that never changes.
    """

    seed_independent = True
    space: InputSpace | None = None
    beyond: Sequence[str] = ()

    def __init__(
        self,
        measured: Measured,
        rules: Sequence[Rule],
        noise: Array | None,
        model: ConfigurationModel,
        scaled: bool,
        seed_size: int,
        on_failure: FailureRule,
    ) -> None:
        self.measured = measured
        self.known_constraints = [j for j, rule in enumerate(rules) if rule.known]
        self.rules = list(rules)
        self.noise = noise
        self.model = model
        self.seed_size = seed_size
        # (f, g_1, ...) of every row, in the columns' units
        row_values = orient(measured.rows, rules)
        means = measured.means(row_values)

        # A failed row counts as the worst of those that were measured, so these are needed first.
        if measured.failed.any():
            worst = on_failure.values_of(row_values[~measured.failed])
            row_values[measured.failed] = worst
            means = measured.means(np.where(measured.failed[:, None], 0.0, row_values))
            # share of the rows that have values
            good = measured.means((~measured.failed[:, None]).astype(float))
            # The floor only avoids a division by 0: where fewer than half have values, `worst`
            # takes their place.
            means = np.where(2 * good >= 1, means / np.maximum(good, 0.5), worst)
        self.refuse(means)

        # Units are those of the means: noise that is drawn must not change what a unit is.
        self.shift = np.zeros(len(rules))
        self.divisor = np.ones(len(rules))
        if scaled:
            self.shift[0] = means[:, 0].mean()
            self.divisor = units_of(means)
        self.values = (row_values - self.shift) / self.divisor
        # A mean is of the rows that succeeded, not of what failed ones count as.
        self.means = measured.means(self.values)
        if measured.failed.any():
            self.means = (means - self.shift) / self.divisor
        else:
            # The mean of equal numbers may be another one by rounding, beyond a bound that they
            # meet.
            firsts = self.values[measured.first]
            is_moved = ~measured.varying & ((self.means <= 0) != (firsts <= 0))
            self.means = np.where(is_moved, firsts, self.means)

    def refuse(self, means: Array) -> None:
        """Raises `Misuse` for means (n, 1 + m) that make no problem."""
        n = len(means)
        rules = self.rules
        if n > LARGEST:
            raise Misuse(f"{n:,} configurations; allowed: {LARGEST:,}; take some of them")
        if n < 2:
            raise Misuse("all rows are one configuration: nothing to choose; name more inputs")
        if not spreads(means[:, :1])[0]:
            raise Misuse(
                f"objective {rules[0].column!r} is the same in all {n} configurations: nothing "
                "to choose"
            )
        feasible = self.settle(means[:, 1:]) <= 0
        if not feasible.all(axis=1).any():
            least = means[:, 1:].min(axis=0)
            # The constraint that fewest keep comes first: its bound is the one to move.
            hardest = np.argsort(feasible.sum(axis=0), kind="stable")
            summaries = [
                f"{rules[1 + j].requirement}: {int(feasible[:, j].sum()):,} of {n:,}, "
                f"best {rules[1 + j].bound + rules[1 + j].sign * least[j]:.6g}"
                for j in hardest
            ]
            listed = list_names(summaries, between="; ")
            raise Misuse(
                f"no feasible configuration: none keeps all constraints ({listed}); move a bound"
            )

    @cached_property
    def actions(self) -> Finite:
        points = self.measured.points
        names = self.measured.names
        model = self.model
        if model.covariance is not None:
            finite = Finite(model.covariance, points, "given", names)
        else:
            finite = Finite.at(
                points, stationary(model.kernel, model.lengthscale), model.kernel, names
            )
        finite.space = self.space
        finite.firsts = self.measured.firsts
        return finite

    @property
    def constraints(self) -> int:
        return len(self.rules) - 1

    @property
    def kernel_is_known(self) -> bool:  # type: ignore[override]
        return self.model.covariance is not None

    @cached_property
    def _facts(self) -> tuple[Array, Array]:
        """Regularised norms and noise constants, (1 + m,) each; of rows the largest residual (see
        `TabularProblem`).
        """
        # What was measured need not lie in the space of the learners' kernel.
        norm = smooth_norm(self.actions.covariance, self.means.T)
        if self.noise is not None:
            return norm, self.noise / self.divisor
        # A failed row counts as the worst, and its residual is no noise; nor is rounding.
        noise = np.abs(self._residual[~self.measured.failed]).max(axis=0)
        return norm, np.where(self.measured.varying, noise, 0.0)

    @property
    def _residual(self) -> Array:
        """Of every row, (rows, 1 + m): its values minus the means of its configuration."""
        return self.values - np.repeat(self.means, self.measured.counts, axis=0)

    def draw(self, generators: Generators) -> Instances:
        drawn = self.repeat(self.means.T, *self._facts, self.seed_size, generators)
        failed_share = self.measured.means(self.measured.failed[:, None].astype(float))
        # Where only some rows of a configuration failed, another draw may succeed.
        by_chance = self.noise is None and bool(((failed_share > 0) & (failed_share < 1)).any())
        return replace(
            drawn, units=(float(self.shift[0]), float(self.divisor[0])), fails_by_chance=by_chance
        )

    def describe_objective(self) -> Objective:
        return self.rules[0].column, 0.0, self.rules[0].sign

    def measured_in(self) -> tuple[Sequence[Rule], Array, Array]:
        return self.rules, self.shift, self.divisor

    @property
    def summary(self) -> str:
        """How many rows and configurations there are, and whether they have noise."""
        failed = int(self.measured.failed.sum())
        rows = count_noun(len(self.values), "row")
        is_exact = self.noise is not None and not self.noise.any()
        parts = ["noise-free" if is_exact else "noisy"]
        if failed:
            parts.append(f"{failed:,} of {rows} failed")
        parts.append(f"{rows} of {count_noun(len(self.means), 'configuration')}")
        return ", ".join(parts)

    def note(self) -> str:
        rules = describe_rules(self.rules, self.divisor.tolist())
        return "; ".join([rules, self.summary, *self.beyond])

    @cached_property
    def middle(self) -> Array:  # type: ignore[override]
        """Of every g_j the middle between its last allowed and its first forbidden level, (m,); 0
        where it has noise or no levels: whole numbers, or half as many values as configurations.
        """
        _, noise = self._facts
        columns = self.measured.rows[self.measured.first, 1:].T
        middle = np.zeros(self.constraints)
        for j, (column, g) in enumerate(zip(columns, self.means[:, 1:].T, strict=True)):
            is_whole = bool((column == np.round(column)).all())
            has_levels = is_whole or 2 * len(np.unique(column)) <= len(column)
            is_feasible = g <= 0
            if has_levels and not noise[1 + j] and is_feasible.any() and not is_feasible.all():
                middle[j] = (g[is_feasible].max() + g[~is_feasible].min()) / 2
        return middle

    def feedback(self, instances: Drawn, streams: Streams) -> Channel:
        # Rows tell which evaluations failed; where equal rows are alike, that changes no value.
        if self.noise is None or (
            self.measured.failed.any()
            and not self.measured.scattered.any()
            and not self.noise.any()
        ):
            return MeasuredRows(self.measured, self.values, streams)
        draws = Draws(streams.role("noise"), standard_normal, (1 + self.constraints,))
        return AdditiveNoise(instances, instances.noise, draws)

    def pooled(self) -> Array:
        """Standard deviations (1 + m,) of the rows about the means of their configurations, in the
        columns' units.
        """
        good = ~self.measured.failed
        # The mean of each configuration takes one degree of freedom.
        free = int(good.sum()) - len(self.means)
        return np.sqrt((self._residual[good] ** 2).sum(axis=0) / max(1, free)) * self.divisor
