"""Problems given by a simulator: f and g observed at a point, with or without noise, and no known
optimum.

Metrics are of what the simulator says where it has no noise. Of a noisy one they are means of
`repeats` simulations at
each point, with streams of their own: replicate s meets the same scenarios at every point, so that
points are compared under equal luck (common random numbers). With `repeats: 0` they are the
observed values themselves, noise and all.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from functools import cached_property
from time import monotonic
from typing import Any, ClassVar, Literal, cast

import numpy as np

from cbobench.errors import CbobenchError, CellFailure, Misuse, one_line, reraise_stop, show
from cbobench.gp.actions import LARGEST, Finite
from cbobench.gp.box_actions import Box
from cbobench.gp.kernels import Array, StationaryName, stationary
from cbobench.gp.mixed_actions import Mixed
from cbobench.params import param
from cbobench.problems.base import Ability, Channel, Drawn, Fact, Inputs, Objective, Problem
from cbobench.problems.channels import DELAY, add_delays, lengthscale_of
from cbobench.problems.instances import Generators
from cbobench.problems.known import Known, describe_known, limit_box, make_known
from cbobench.problems.simulators.kept import (
    SimulatedFeedback,
    SimulatedInstances,
    SimulationResult,
    Store,
    succeeded,
)
from cbobench.problems.tables.columns import is_finite
from cbobench.problems.tables.configurations import (
    ABOUT,
    BOUNDS,
    FailureRule,
    Rule,
    constraints_of,
    describe_rules,
    objective_of,
    orient,
    plain_rules,
    refuse_known,
    state_known,
)
from cbobench.problems.tables.inputs import (
    InputSpace,
    InputType,
    check_configuration,
    count_configurations,
    read_types,
)
from cbobench.problems.user_classes import read_runs, refuse_no_constraint
from cbobench.rng import Streams
from cbobench.words import count_noun, list_names

SLOW = 0.2  # seconds from which on the result of a simulation is kept
RETRIES = 2**31  # spawn keys of retries begin here, beyond those of scenarios
LIMIT = '{"late": {"at_most": 0.1}}'


def name_values(cls: Any) -> list[Rule]:
    """What a simulator's class says in `objective` and `constraints`.

    Returns:
        The objective, then the constraints; none where the class has neither word.

    Raises:
        Misuse: one word without the other, a wrong one, or m beside them.
    """
    objective = cls.aim
    limits = cls.limits
    if objective is None and limits is None:
        return []
    if objective is None or limits is None:
        lacking = f"constraints = {LIMIT}"
        if objective is None:
            lacking = 'objective = {"minimise": "cost"}'
        raise Misuse(f"{cls.__name__} names one of objective and constraints; add {lacking}")
    if not isinstance(limits, Mapping):
        raise Misuse(f"constraints is {show(limits)}; allowed: bounds by name, such as {LIMIT}")
    inputs = cls.input_names()
    rules = [objective_of(objective), *constraints_of(state_known(limits, inputs), "unit")]
    refuse_known(rules, inputs)
    if cls.m != len(rules) - 1:
        raise Misuse(f"{cls.__name__} says m beside its constraints; leave m out")
    return rules


@dataclass(kw_only=True)
class Simulator(Problem):
    """Base of simulators. Subclasses give `low` and `high`, or `inputs`; `objective` and
    `constraints`, or `m`; and `simulate` (or `simulate_many`).

    Regret is against `target` (a reward that would do), or against the value at `best_known` (a
    feasible point), never against the best of a run; with neither there is no regret, and tables
    show the best feasible value instead.

    No learner is told anything of its functions but whether they have noise: models scale
    themselves by what they observe, and a method that reads B, G, R or delta must be given it.
    f is played in its own unit, g_j in multiples of its constraint's (see `units`).

    Class attributes:
        low, high: corners of the box.
        inputs: in their place, types by name: {"width": {"int": [32, 512], "log": True}, "act":
            {"choice": ["relu", "tanh"]}, "rate": {"float": [1e-4, 0.1]}}. `simulate` then gets a
            mapping of names to values. With a float among them, or more than 10,000 configurations,
            methods play all values (see `gp.mixed_actions`); else a finite set.
        objective: {"minimise": "cost"} or {"maximise": "gain"}: what `simulate` returns is then a
            mapping of names to values, and tables speak in these words and units.
        constraints: beside it, bounds by name: {"late": {"at_most": 0.1}, "yield": {"at_least":
            60, "unit": 5}}; without `unit` a constraint's unit is its bound.
        known: comparisons of inputs, such as ["speed * feed <= 90"], with x_1, x_2, ... on a box:
            what they forbid is not played. So is a constraint on an input, unless it says {"known":
            False}.
        m: in their place how many constraints there are; `simulate` then returns f and g.
        noisy: whether two generators may give different values.
        target: the value that regret is against, in the simulator's units, or None.
        best_known: the best feasible point that is known, or None.
    """

    low: ClassVar[tuple[float, ...]]
    high: ClassVar[tuple[float, ...]]
    inputs: ClassVar[Mapping[str, Any] | None] = None
    objective: ClassVar[str | Mapping[str, str] | None] = None
    # what a class states in `objective` and `constraints`, words that `BoxProblem` does not read
    aim: ClassVar[Any] = None
    limits: ClassVar[Any] = None
    known: ClassVar[Sequence[str]] = ()
    m: ClassVar[int] = 1
    noisy: ClassVar[bool] = True
    target: ClassVar[float | None] = None
    best_known: ClassVar[tuple[float, ...] | Mapping[str, Any] | None] = None
    seed_independent = True
    simulates = True

    repeats: int = param(
        10, "simulations per point whose mean metrics use; 0: the observed values", at_least=0
    )
    measure: Literal["always", "end"] = param(
        "always",
        "which points are simulated for metrics alone (`repeats` times, or once without noise): "
        "all that are played "
        "and, where there is a regret, recommended; or (end) those recommended in the end; other "
        "metrics are then of "
        "the observed values",
        quiet=True,
    )
    kernel: StationaryName = param(
        "matern52", "kernel of the learners' models, on the box scaled to the unit cube"
    )
    lengthscale: float = lengthscale_of(0.3)
    candidates: int = param(
        1024,
        "points at which acquisition functions are first evaluated",
        at_least=16,
        at_most=65536,
    )
    configurations: int | None = param(
        None,
        "of typed `inputs`, the most that are played, a fixed sample (of a Sobol sequence) where "
        "there are more, as methods with the problem's kernel need; null: all, floats at any value",
        at_least=2,
        at_most=LARGEST,
        quiet=True,
    )
    delay: float | None = param(None, DELAY, above=0, at_most=1e9, quiet=True)
    on_failure: Literal["infeasible", "skip", "fail"] | dict[str, Any] = param(
        "infeasible", ABOUT, quiet=True
    )

    simulated_seconds: float = field(default=0.0, init=False, repr=False, compare=False)
    _store: Store | None = field(default=None, init=False, repr=False, compare=False)

    def __init_subclass__(cls, **options: Any) -> None:
        """Takes the class's words for its values: elsewhere `constraints` is how many there are."""
        super().__init_subclass__(**options)
        # Only what a class itself states: an inherited word has been taken already.
        for word, place in (("objective", "aim"), ("constraints", "limits")):
            if isinstance(stated := vars(cls).get(word), str | dict | list):
                setattr(cls, place, stated)
                delattr(cls, word)
        if "limits" in vars(cls):
            bounds = cls.limits.values() if isinstance(cls.limits, dict) else ()
            words = [word for limits in bounds if isinstance(limits, dict) for word in limits]
            # 0 stands for a class that says how many, too, which is refused.
            cls.m = 0 if "m" in vars(cls) else sum(word in BOUNDS for word in words)

    @classmethod
    def input_names(cls) -> list[str]:
        """The names of its inputs, on a box x_1, x_2, ..."""
        if cls.inputs is not None:
            return [*cls.inputs]
        return [f"x_{i}" for i in range(1, 1 + len(getattr(cls, "low", ())))]

    @classmethod
    def check_class(cls) -> None:
        name_values(cls)
        super().check_class()

    @cached_property
    def rules(self) -> list[Rule]:
        """What the class calls its objective and constraints; empty where it returns f and g."""
        return name_values(type(self))

    @classmethod
    def facts(cls) -> dict[str, str]:
        if cls.inputs is None:
            actions = f"box, d = {len(cls.low)}"
        else:
            is_mixed = count_configurations(read_types(cls.inputs)) > LARGEST
            actions = f"{'mixed' if is_mixed else 'finite'}, of {', '.join(cls.inputs)}"
        return {
            "actions": actions,
            "constraints": str(cls.m),
            "feasible": "not known",
            "best": "not known",
        }

    def simulate(self, x: Any, gen: np.random.Generator) -> Any:
        """One run: observed values by name, {"cost": 3.1, "late": 0.02}, of a class that names its
        objective and constraints; else (f, g_1, ..., g_m): maximise f, feasible where every g_j <=
        0. All randomness is of `gen`.

        x is a point (d,), or where the class has `inputs` a mapping of their names to values.
        Without names return a list or an array of 1 + m numbers.
        """
        raise NotImplementedError

    def simulate_many(self, x: Any, gens: Sequence[np.random.Generator]) -> Any:
        """Runs at points (k, d), or at a list of mappings, one generator each: (k, 1 + m), or what
        `simulate` gives for each of them in a list.

        A row must not depend on the others.
        """
        return [self.simulate(point, gen) for point, gen in zip(x, gens, strict=True)]

    def validate(self) -> None:
        refuse_no_constraint(self)
        if self.inputs is None:
            self.check_corners()
        elif hasattr(self, "low") or hasattr(self, "high"):
            raise Misuse(f"{type(self).__name__} has inputs and corners; say one of them")
        else:
            self.actions  # noqa: B018 - refuses wrong types and known constraints

        # A class that runs many at once needs no method for one.
        if type(self).simulate is Simulator.simulate and not self.runs_together:
            raise self.lacks(
                "simulate(self, x, gen)",
                "return [f, g_1, ..., g_m] observed at x (d,), noise drawn from gen",
            )
        # Delays read the f and g of a round, which `skip_failed` leaves empty.
        if self.failure.then == "skip" and self.delay is not None:
            raise Misuse("on_failure is skip, and feedback has a delay; leave one of them out")
        if self.target is not None and self.best_known is not None:
            raise Misuse(
                f"{type(self).__name__} has a target and a best_known; regret is against one of "
                "them"
            )
        if self.target is not None and not is_finite(self.target):
            raise Misuse(
                f"target is {self.target!r}; it must be a finite number, or None for no regret"
            )
        if self.best_known is not None:
            x = self.best_point
            if self.inputs is None and (
                x.shape != (len(self.low),) or (x < self.low).any() or (x > self.high).any()
            ):
                raise Misuse(
                    f"best_known is {self.best_known}, which is no point of the box from "
                    f"{self.low} to {self.high}"
                )
            if not self.samples and self.box.forbids(x):
                raise Misuse(f"best_known is {self.best_known}, which is beyond what is known")

    @cached_property
    def failure(self) -> FailureRule:
        """What becomes of a simulation that fails."""
        return FailureRule.of(self.on_failure, self.m)

    def observe(self, x: Array, gens: Generators) -> tuple[Array, str]:
        """Checked runs at points (k, d), in the simulator's units, (k, 1 + m), NaN where one
        failed, retries spent; and why the first of those did, "" if none did.

        Raises:
            CellFailure: a result of another shape; a failed run where `on_failure` is fail.
        """
        values, reason = self._attempt(x, gens)
        for retry in range(self.failure.retries):
            left = np.flatnonzero(~succeeded(values)).tolist()
            if not left:
                break
            # The same random numbers might fail again.
            other_gens = [_other_numbers(gens[i], retry) for i in left]
            values[left], reason = self._attempt(x[left], other_gens)
        if reason and self.failure.then == "fail":
            raise CellFailure(f"{reason}; on_failure: infeasible goes on after a run that fails")
        return values, reason

    @contextmanager
    def kept_in(self, store: Store) -> Iterator[None]:
        """Within the block, results that a store has are not simulated again, and others that took
        long are kept there.
        """
        self._store = store
        try:
            yield
        finally:
            self._store = None

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_store": None}  # which is of this process

    def _attempt(self, x: Array, gens: Generators) -> tuple[Array, str]:
        """One run per point, unless its result is kept: values, NaN where it failed, and the first
        reason.
        """
        # One after the other: what is kept of a point answers the next one that is equal. A class
        # that runs many at once gets all of them.
        step = len(x) if self.runs_together else 1
        results: list[SimulationResult] = []
        for first in range(0, len(x), step):
            chunk = slice(first, first + step)
            results += self._look_up_or_run(x[chunk], gens[chunk])
        self.simulated_seconds += sum(result.seconds for result in results)
        reason = next((result.reason for result in results if result.reason), "")
        return np.array([result.values for result in results]), reason

    def _look_up_or_run(self, x: Array, gens: Generators) -> list[SimulationResult]:
        """The results at points (k, d): kept ones, and those of runs at all others at once, of
        which what took long is kept.
        """
        store = self._store
        if store is None:
            return self.run_points(x, gens)
        keys = [self._key(point, gen) for point, gen in zip(x, gens, strict=True)]
        results = [store.get(key) for key in keys]
        left = [i for i, result in enumerate(results) if result is None]
        # All at once, as a class may run many together.
        run = self.run_points(x[left], [gens[i] for i in left]) if left else []
        for i, result in zip(left, run, strict=True):
            results[i] = result
            if result.seconds >= SLOW:
                store.put(keys[i], result)
        return [result for result in results if result is not None]

    @property
    def runs_together(self) -> bool:
        """Whether the class runs many points at once (`simulate_many`)."""
        return type(self).simulate_many is not Simulator.simulate_many

    @cached_property
    def _own_parameters(self) -> list[tuple[str, Any]]:
        """Parameters that the class adds to those of every simulator."""
        return sorted(
            (f.name, getattr(self, f.name))
            for f in fields(self)
            if f.init and f.name not in _SHARED
        )

    def _key(self, x: Array, gen: np.random.Generator) -> str:
        """What fixes the result of a run beside the class's code: own parameters, point and random
        numbers.

        Where there is no noise, other random numbers give the same, but in a retry.
        """
        seed: np.random.SeedSequence = gen.bit_generator.seed_seq  # type: ignore[attr-defined, assignment]
        numbers: tuple[Any, ...] = seed.entropy, seed.spawn_key
        if not self.noisy:
            numbers = tuple(key for key in seed.spawn_key if key >= RETRIES)
        return repr((type(self).__qualname__, self._own_parameters, self.as_written(x), *numbers))

    def run_points(self, x: Array, gens: Generators) -> list[SimulationResult]:
        """One run per point (k, d), simulated.

        Raises:
            CellFailure: a result of another shape.
        """
        began = monotonic()
        call = f"{type(self).__name__}: simulate"
        rules = self.rules or plain_rules(self.m)

        # Copies for a batch: if it fails, its points are run one by one from the same random
        # numbers.
        generators = gens if len(x) == 1 else copy.deepcopy(gens)
        try:
            with np.errstate():
                inputs = x if self.inputs is None else [self.as_written(point) for point in x]
                results = self.simulate_many(inputs, generators)
                results = self._add_inputs(results, x)
                names = [rule.column for rule in rules]
                rows = read_runs(results, len(x), names, call, bool(self.rules))
        except CbobenchError:
            raise
        except BaseException as error:  # a user's simulator may raise anything
            reraise_stop(error)
            if len(x) > 1:  # one takes no others with it
                return [self.run_points(x[i : i + 1], gens[i : i + 1])[0] for i in range(len(x))]
            reason = f"{call} fails at x = {self.as_written(x[0])}: {one_line(error)}"
            return [SimulationResult(np.full(1 + self.m, np.nan), reason, monotonic() - began)]

        # Nobody knows how long each run of a batch took: all are told the mean.
        seconds = (monotonic() - began) / len(x)
        runs = []
        for point, values in zip(x, rows, strict=True):
            reason = ""
            if np.isfinite(values).all():
                values = orient(values, rules)
            else:
                reason = f"{call} gives {values.tolist()} at x = {self.as_written(point)}"
                values = np.full(1 + self.m, np.nan)
            runs.append(SimulationResult(values, reason, seconds))
        return runs

    def _add_inputs(self, results: Any, x: Array) -> Any:
        """Add inputs with known constraints to what runs at points (k, d) give by name."""
        bounded = {rule.column for rule in self.rules if rule.known}
        if not bounded:
            return results
        added = []
        for result, point in zip(results, x, strict=True):
            written = self.as_written(point)
            if self.inputs is None:
                written = dict(zip(self.input_names(), written, strict=True))
            values = {name: written[name] for name in bounded}
            added.append({**result, **values} if isinstance(result, Mapping) else result)
        return added

    @property
    def measures_ends_only(self) -> bool:
        """Whether of the points recommended only those in the end are simulated.

        What is recommended before is of use to the regret of the recommended action, and else to no
        table: it is not simulated where there is no regret, nor with `measure: end`.
        """
        return self.measure == "end" or (self.target is None and self.best_known is None)

    def note(self) -> str:
        if not self.samples:
            parts = describe_known(self.box)
        else:
            space, parts = self._space
            if self.plays_some:
                count = len(space.configurations)
                parts = [f"{count:,} of the configurations of its inputs are played", *parts]
        if self.rules:
            parts.append(describe_rules(self.rules, [1.0, *self.units]))
        if self.target is not None:
            parts.append(
                f"regret is against the target {self.target:g}, simple regret 0 once it is reached"
            )
        elif self.best_known is not None:
            parts.append(
                "regret is against the best known point, simple regret 0 once it is reached"
            )
        else:
            parts.append("no optimum is known, so there is no regret")
        if self.noisy:
            kinds = []
            if not self.repeats or self.measure == "end":
                kinds.append("observed values, with their noise")
            if self.repeats:
                kinds.append(
                    f"means of {count_noun(self.repeats, 'simulation')} at each point, of streams "
                    "of their own"
                )
            between = "; those of the recommended point in the end of "
            parts.append(f"metrics are of {between.join(kinds)}")
        return "; ".join(parts)

    def offers(self) -> frozenset[Ability]:
        lacking: set[Ability] = {"a safe seed set"}
        if self.best_known is None or self.is_best_left_out:
            lacking.add("a known optimum")
        # Nothing is told of a failed run that is skipped, as if it never arrived.
        if self.delay is not None or self.failure.then == "skip":
            lacking.add("feedback at once")
        return super().offers() - lacking

    @property
    def unknown(self) -> frozenset[Fact]:  # type: ignore[override]
        return frozenset({"B", "G", "delta", "R"} if self.noisy else {"B", "G", "delta"})

    @cached_property
    def units(self) -> list[float | None]:
        """The unit of every constraint, m of them: what is stated, else |bound|; None where that is
        0; 1 where the class returns g itself.
        """
        if not self.rules:
            return [1.0] * self.m
        return [rule.unit or abs(rule.bound) or None for rule in self.rules[1:]]

    @cached_property
    def divisor(self) -> Array:
        """Units played are those of the simulator, over these, (1 + m,): f keeps its own."""
        return np.array([1.0, *(unit or 1.0 for unit in self.units)])

    @cached_property
    def box(self) -> Box:
        if self.inputs is not None:
            box: Box = Mixed.of(self.types, self.kernel, self.lengthscale, self.candidates)
        else:
            low, high = (np.array(side, dtype=float) for side in (self.low, self.high))
            box = Box(low, high, self.kernel, self.lengthscale, self.candidates)
        return limit_box(box, self._known)

    @property
    def _bounds(self) -> list[tuple[str, float, float]]:
        """The known constraints on one input, as of `Known`."""
        return [(rule.column, rule.sign, rule.bound) for rule in self.rules if rule.known]

    @property
    def known_constraints(self) -> Sequence[int]:  # type: ignore[override]
        return [j for j, rule in enumerate(self.rules) if rule.known]

    @property
    def _known(self) -> Known | None:
        names = self.input_names()
        if self.inputs is not None:
            names = [t.name for t in self.types if not t.choices]
        return make_known(self.known, names, self._bounds)

    @cached_property
    def types(self) -> tuple[InputType, ...]:
        """The types of its `inputs`."""
        return read_types(self.inputs)

    @cached_property
    def samples(self) -> bool:
        """Whether a finite set of configurations is played: all, or a sample."""
        if self.inputs is None:
            return False
        return self.configurations is not None or count_configurations(self.types) <= LARGEST

    @property
    def plays_some(self) -> bool:
        """Whether these are a sample."""
        count = count_configurations(self.types) if self.samples else 0
        return count > (self.configurations or LARGEST)

    @property
    def is_best_left_out(self) -> bool:
        """Whether a sample is played that `best_known` is none of."""
        return self.plays_some and self.best_known not in self.space.configurations

    @property
    def space(self) -> InputSpace:
        """The configurations of typed inputs that may be played."""
        space, _ = self._space
        return space

    @cached_property
    def _space(self) -> tuple[InputSpace, list[str]]:
        """These, and in words what is left out."""
        space = InputSpace.of(self.types, self.configurations or LARGEST)
        known = self._known
        if known is None:
            return space, []
        rows = [
            [configuration[name] for name in known.inputs] for configuration in space.configurations
        ]
        keep = known.keep(np.array(rows, dtype=float))
        beyond = f"{(~keep).sum():,} of {len(keep):,} configurations"
        note = f"{beyond} lie beyond {list_names(known.requirements)}: known, not played"
        return space.take(np.flatnonzero(keep)), [note]

    def identity(self) -> dict[str, Any]:
        known = [*self.known, *(rule.requirement for rule in self.rules if rule.known)]
        identity: dict[str, Any] = {"known": known} if known else {}
        # A sample of 2,048 configurations was once the default, and had no word of its own.
        if isinstance(self.actions, Mixed):
            identity["actions"] = "mixed"
        return identity

    @cached_property
    def actions(self) -> Finite | Box:
        if not self.samples:
            return self.box
        finite = Finite.at(
            self.space.points, stationary(self.kernel, self.lengthscale), self.kernel
        )
        finite.space = self.space
        finite.firsts = self.space.firsts
        return finite

    def describe_objective(self) -> Objective:
        if self.rules:
            return (self.rules[0].column, 0.0, self.sign)
        return ("f", 0.0, 1.0)

    def measured_in(self) -> tuple[Sequence[Rule], Array, Array]:
        return self.rules or plain_rules(self.m), np.zeros(1 + self.m), self.divisor

    @property
    def sign(self) -> float:
        """-1 where the class minimises: f is minus its objective."""
        if self.rules:
            return self.rules[0].sign
        return 1.0

    def describe_inputs(self) -> Inputs | None:
        if self.inputs is None:
            return super().describe_inputs()
        if not self.samples:
            return {t.name: t.declaration for t in self.types}
        return self.space.columns()

    @property
    def best_point(self) -> Array:
        """`best_known` as a point, (d,), or as (1,) its index, the one after the last where a
        sample leaves it out.
        """
        if self.inputs is None:
            return np.array(self.best_known, dtype=float)
        check_configuration(self.types, self.best_known, "best_known")
        if isinstance(self.actions, Mixed):
            return self.actions.read(cast("Mapping[str, Any]", self.best_known))
        if self.is_best_left_out:
            return np.array([len(self.space.configurations)], dtype=float)
        return np.array([self.space.find(self.best_known, "best_known")], dtype=float)

    def as_written(self, x: Array) -> Any:
        """A point as users write it: coordinates, or input values by name."""
        if self.inputs is None:
            return x.tolist()
        if isinstance(self.actions, Mixed):
            return self.actions.write(x)
        index = int(x[0])
        if index == len(self.space.configurations):
            return self.best_known
        return dict(self.space.configurations[index])

    def draw(self, generators: Generators) -> Drawn:
        count = max(1, self.repeats) if self.noisy else 1
        scenarios = [gen.bit_generator.seed_seq.spawn(count) for gen in generators]  # type: ignore[attr-defined]
        return SimulatedInstances(self, scenarios)

    def feedback(self, instances: Drawn, streams: Streams) -> Channel:
        assert isinstance(instances, SimulatedInstances)
        feedback = SimulatedFeedback(instances, streams, self.failure.then == "skip")
        return add_delays(feedback, self.delay, streams, 1 + self.m)


# parameters of every simulator, which no run of it depends on
_SHARED = {f.name for f in fields(Simulator)}


def _other_numbers(gen: np.random.Generator, retry: int) -> np.random.Generator:
    """A generator for a retry, fixed by the first one's seed and not by what was drawn from it."""
    seed: np.random.SeedSequence = gen.bit_generator.seed_seq  # type: ignore[attr-defined, assignment]
    return np.random.default_rng(
        np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, RETRIES + retry))
    )
