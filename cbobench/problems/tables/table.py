"""The problem `table`: a user's file of readings per arm, or of measured configurations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from cbobench.errors import Misuse, show, unknown
from cbobench.gp.actions import Finite
from cbobench.gp.box_actions import Box
from cbobench.gp.kernels import Array, StationaryName, check_covariance
from cbobench.params import param, state
from cbobench.problems import PROBLEMS
from cbobench.problems.base import Channel, Drawn, Inputs, Objective, Problem
from cbobench.problems.channels import lengthscale_of
from cbobench.problems.data import Site, sha256
from cbobench.problems.instances import Generators
from cbobench.problems.tables.columns import (
    category_values,
    compose,
    coordinates,
    numbers,
    numeric,
    refuse_unnamed,
)
from cbobench.problems.tables.configurations import (
    ConfigurationModel,
    Configurations,
    FailureRule,
    Measured,
    Rule,
    constraints_of,
    deviation,
    keep_known,
    objective_of,
    refuse_known,
    state_known,
)
from cbobench.problems.tables.inputs import InputColumns
from cbobench.problems.tables.read import read_frame
from cbobench.problems.tables.readings import Table, TabularProblem, correlation
from cbobench.rng import Streams
from cbobench.words import list_names

if TYPE_CHECKING:
    import pandas as pd

ROLES = {"rows": "rows", "inputs": "inputs", "objective": "objective", "limits": "constraints"}
OF_COLUMNS = ("ignore", "inputs", "objective", "limits", "noise", "log", "one_hot", "amounts")
"""Parameters that name columns of the file."""
OF_READINGS = ("threshold", "mean", "R")
OF_CONFIGURATIONS = (
    "inputs",
    "objective",
    "limits",
    "noise",
    "on_failure",
    "kernel",
    "lengthscale",
    "scaled",
    "log",
    "one_hot",
    "amounts",
)


@dataclass(kw_only=True)
class FromFiles(Problem):
    """Base of a problem that is played as another one.

    Attributes:
        played: that one, which `prepare` makes.
        by_name: see `Problem.describe_inputs`; None: as `played` says.
    """

    seed_independent = True

    played: Problem = state()
    by_name: Inputs | None = state()

    @property
    def actions(self) -> Finite | Box:
        return self.played.actions

    @property
    def constraints(self) -> int:
        return self.played.constraints

    @property
    def kernel_is_known(self) -> bool:  # type: ignore[override]
        return self.played.kernel_is_known

    @property
    def known_constraints(self) -> Sequence[int]:  # type: ignore[override]
        return self.played.known_constraints

    @property
    def middle(self) -> Array | None:  # type: ignore[override]
        return self.played.middle

    def draw(self, generators: Generators) -> Drawn:
        return self.played.draw(generators)

    def feedback(self, instances: Drawn, streams: Streams) -> Channel:
        return self.played.feedback(instances, streams)

    def describe_inputs(self) -> Inputs | None:
        return self.by_name or super().describe_inputs()

    def describe_objective(self) -> Objective:
        return self.played.describe_objective()

    def measured_in(self) -> tuple[Sequence[Any], Any, Any] | None:
        return self.played.measured_in()

    def note(self) -> str:
        return self.played.note()


@PROBLEMS.register("table")
@dataclass(kw_only=True)
class UserTable(FromFiles):
    """A file of yours as a problem, in one of two layouts.

    `layout: readings`: rows x arms (`rows`), or a mean vector with a covariance (`mean` and
    `covariance`); f is the mean of an arm's column, g = -f + h, and the kernel the rows' empirical
    correlation unless a covariance is given.

    `layout: configurations`: one row per configuration, columns by role. `inputs` are the
    coordinates, each scaled to [0, 1] (`log`: its logarithm; `one_hot`: categories), or a mapping
    of names to types, such as `{minutes: {int: [1, 60]}}`, which says the same and which libraries
    that know types are told; `objective` is maximised, `{minimise: loss}` is f = -loss; every
    constraint `{at_most: b}` is g = value - b, `{at_least: b}` is g = b - value. One on an input is
    known, unless it says `known: false`: what lies beyond is not played, and nobody has to learn
    it. Rows with equal inputs are the noise of one configuration: a round reads one of them,
    drawn at random (`noise: gaussian`: normal, with the rows' pooled spread; or stated numbers).
    Without repetitions there is no noise, unless it is stated.

    Every column has a role or stands in `ignore`; a file that could be either is refused without
    `layout`.
    """

    source = "yours"
    about = (
        "your CSV or Parquet: configurations with objective and constraints, or readings (rows × "
        "arms)"
    )
    stated_facts = ("finite", "any", "varies", "varies")

    layout: Literal["readings", "configurations"] | None = param(
        None, "what the rows are; null: as the other parameters say"
    )
    rows: str | None = param(
        None, "the file: one row per reading or per configuration, with a header"
    )
    ignore: list[str] | Literal["rest"] = param(
        [], "columns without a role; rest: all that have none"
    )
    inputs: list[str] | dict[str, Any] = param(
        [],
        "columns that are a configuration's coordinates: names, or names with types, as of a "
        "Simulator's inputs",
    )
    objective: str | dict[str, Any] | None = param(
        None, "the column of f: its name, or {minimise: name}"
    )
    limits: dict[str, Any] = param(
        {},
        "by column {at_most: b}, {at_least: b} or both, and noise if it is stated; of an input, "
        "known: false to learn it",
        called="constraints",
    )
    noise: Literal["rows", "gaussian"] | float | dict[str, Any] | None = param(
        None,
        "rows, gaussian, or standard deviations in the columns' units, by column or for all; "
        "null: rows",
        at_least=0,
    )
    kernel: StationaryName = param(
        "matern52", "kernel of the learners' models on the inputs, unless covariance is given"
    )
    lengthscale: float = lengthscale_of(0.3)
    scaled: bool = param(
        True, "shift f to mean 0, divide f and every g_j by their spread over the configurations"
    )
    log: list[str] = param([], "inputs on a logarithmic axis")
    one_hot: list[str] = param([], "inputs that are categories: text, or numbers that are codes")
    amounts: list[str] = param(
        [], "inputs whose whole numbers 0, 1, 2, ... are amounts and no codes"
    )
    on_failure: Literal["infeasible", "fail"] | dict[str, Any] = param(
        "fail",
        "a row without a finite value: fail (refuses the table), infeasible (a failed "
        "measurement: it counts as the "
        "worst f and g of the table, or as those stated, {f: ..., g: ...})",
        quiet=True,
    )
    threshold: float = param(0.0, "h of g = -f + h, in the table's units (readings)")
    mean: str | None = param(
        None, "file with one numeric column (or row): the mean of every arm (readings)"
    )
    covariance: str | None = param(None, "file with the kernel matrix, diagonal at most 1")
    R: float | None = param(
        None, "noise constant R; null takes the largest residual of the rows (readings)", above=0.0
    )
    seed_size: int = param(
        5, "how many random feasible actions a safe method may start from", at_least=1
    )

    hashes: dict[str, str] = state()

    @classmethod
    def complete(cls, settings: dict[str, Any]) -> dict[str, Any]:
        limits = {compose(column): bounds for column, bounds in settings["constraints"].items()}
        inputs = {*map(compose, settings["inputs"])}
        return settings | {"constraints": state_known(limits, inputs)}

    @property
    def arranged(self) -> str | None:
        """The layout, as far as the parameters say."""
        if self.layout is not None:
            return self.layout
        if self.inputs or self.objective or self.limits:
            return "configurations"
        if self.threshold or self.mean or self.R:
            return "readings"
        return None

    def validate(self) -> None:
        # Names that look alike may be written by other characters, in the file and here.
        for name in OF_COLUMNS:
            setattr(self, name, compose(getattr(self, name)))
        layout = self.arranged
        if layout is None:
            raise Misuse(
                "layout is left out, and rows may be either of two things; write layout: readings "
                "for readings of arms that share a threshold, or layout: configurations with "
                "inputs: [columns], objective: column, constraints: {column: {at_most: number}}"
            )

        # What belongs to the other layout would be read by nothing.
        alien = {"readings": OF_CONFIGURATIONS, "configurations": OF_READINGS}[layout]
        blank = type(self)()
        for name in alien:
            if getattr(self, name) != getattr(blank, name):
                word = ROLES.get(name, name)
                raise Misuse(
                    f"{word} is no parameter of layout: {layout}; leave it out, or write the "
                    "other layout"
                )
        if layout == "configurations":
            lacking = [word for name, word in ROLES.items() if not getattr(self, name)]
            if lacking:
                raise Misuse(
                    f"layout: configurations needs {lacking[0]}; write rows: FILE, inputs: "
                    "[columns], "
                    "objective: column, constraints: {column: {at_most: number}}"
                )
            # Types are refused before the file is read.
            self._input_columns()
            return

        # Every column of readings is an arm: all others have to be named.
        if self.ignore == "rest":
            raise Misuse(
                "ignore: rest is for layout: configurations; name the columns to leave out"
            )
        # Rows give a mean and a covariance themselves.
        if (self.rows is None) == (self.mean is None):
            raise Misuse("table needs either rows: FILE, or mean: FILE with covariance: FILE")
        if self.mean is not None and (self.covariance is None or self.R is None):
            raise Misuse(
                "mean: FILE also needs covariance: FILE and R (the noise standard deviation)"
            )

    def _input_columns(self) -> InputColumns:
        return InputColumns.of(self.inputs, self.log, self.one_hot, self.amounts)

    def identity(self) -> dict[str, Any]:
        return self.hashes

    def prepare(self, data: Site) -> None:
        paths = {name: getattr(self, name) for name in ("rows", "mean", "covariance")}
        files = {name: data.resolve(path) for name, path in paths.items() if path is not None}
        # Categories are read as text, whatever they look like.
        typed = self._input_columns()
        frames = {name: read_frame(file, name, typed.one_hot) for name, file in files.items()}
        self.hashes = {name: sha256(file) for name, file in files.items()}
        sources = {name: f"{name} {file.name!r}" for name, file in files.items()}

        # What is left out may be of any file.
        if self.ignore != "rest":
            columns = {column for frame in frames.values() for column in frame.columns}
            for name in self.ignore:
                if name not in columns:
                    raise unknown("column", name, columns, location="ignore: ")
            frames = {
                name: frame.drop(columns=self.ignore, errors="ignore")
                for name, frame in frames.items()
            }

        # Arms are known by their columns' names, not by inputs.
        if self.arranged == "readings":
            self.by_name = None
            self.played = self._readings(frames, sources)
            return
        self.played = self._configurations(frames, sources, typed)
        for line in self.played.beyond:
            data.watcher.note(f"{sources['rows']}: {line}")
        self._tell_noiseless(self.played, sources["rows"], data)

    def _tell_noiseless(self, played: Configurations, source: str, data: Site) -> None:
        """Tells the reader where nothing says whether measurements scatter."""
        is_stated = self.noise is not None or any(rule.noise is not None for rule in played.rules)
        if is_stated or played.measured.scattered.any():
            return
        why = "no configuration repeats, so it is played without noise"
        if played.measured.repeated:
            why = f"{played.summary}: equal inputs have equal values"
        data.watcher.note(
            f"{source}: {why}; if measurements scatter, state noise: {{column: deviation}}, else "
            "noise: 0"
        )

    def _readings(self, frames: dict[str, pd.DataFrame], sources: dict[str, str]) -> Problem:
        tables = {name: numeric(frame, sources[name]) for name, frame in frames.items()}
        values = {name: table.to_numpy(dtype=float) for name, table in tables.items()}
        rows = values.get("rows")
        covariance = values.get("covariance")
        if rows is None:
            mean = values["mean"].reshape(-1)
            names = tuple(f"arm {i}" for i in range(len(mean)))
        else:
            mean = rows.mean(axis=0)
            names = tuple(tables["rows"].columns)

        # A covariance that is given stands above that of the rows.
        if covariance is not None:
            covariance = check_size(covariance, len(mean), "arms")
        else:
            assert rows is not None  # a mean has a covariance (see `validate`)
            covariance = correlation(rows, "rows")
        problem = TabularProblem()
        problem.R = self.R
        problem.seed_size = self.seed_size
        table = Table(mean=mean, covariance=covariance, rows=rows, names=names)
        problem.take(table, self.threshold)
        return problem

    def _configurations(
        self, frames: dict[str, pd.DataFrame], sources: dict[str, str], typed: InputColumns
    ) -> Configurations:
        import pandas as pd

        # Names before values: a column that is not there would fail in words of pandas.
        assert self.objective is not None
        frame = frames["rows"]
        source = sources["rows"]
        rules = [objective_of(self.objective), *constraints_of(self.limits)]
        self._check_roles(frame, source, rules)
        refuse_known(rules, self.inputs)
        typed = typed.in_order([*frame.columns])
        typed.check_numbers(frame, source)

        # Inputs: coordinates for the kernel, and values for readers and libraries.
        category_columns = {
            name: pd.Series(category_values(frame[name], source), dtype=object)
            for name in typed.one_hot
        }
        inputs = frame[[*typed.names]].assign(**category_columns)
        points, names, firsts = coordinates(inputs, source, typed.log, typed.one_hot, typed.amounts)
        space = typed.space(inputs, points, source)

        # A measurement cannot be tried again, nor left out of what a row tells.
        on_failure = FailureRule.of(self.on_failure, len(rules) - 1)
        if on_failure.retries or on_failure.then == "skip":
            raise Misuse(
                f"on_failure is {show(self.on_failure)}; of a table: fail, infeasible, or {{f: "
                "..., g: ...}"
            )
        values = read_functions(frame, source, rules, on_failure.then == "infeasible")

        # Rows with equal inputs are one configuration;
        # what is known by row is from here on known by configuration.
        measured = Measured.of(values, points, names, firsts)
        within, beyond = keep_known(measured, rules, source)
        measured = measured.keep(within)
        self.by_name = {name: inputs[name].iloc[measured.origin].tolist() for name in typed.names}
        if space is not None:
            space = space.take(measured.origin)
            # A choice may be a number or a truth, where the file has text.
            self.by_name |= {
                t.name: space.columns()[t.name] for t in space.types if t.kind == "choice"
            }

        # A given covariance is by configuration: rows with equal inputs have one line of it.
        matrix = None
        if "covariance" in frames:
            table = numeric(frames["covariance"], sources["covariance"])
            noun = "configurations, in the order of the rows"
            matrix = check_size(table.to_numpy(dtype=float), len(within), noun)
            matrix = matrix[np.ix_(within, within)]
        stated = self._stated(rules, measured)
        model = ConfigurationModel(self.kernel, self.lengthscale, matrix)
        problem = Configurations(
            measured, rules, stated, model, self.scaled, self.seed_size, on_failure
        )
        problem.beyond = beyond
        problem.space = space
        if self.noise == "gaussian" and stated is None:
            problem.noise = problem.pooled()
        return problem

    def _check_roles(self, frame: pd.DataFrame, source: str, rules: Sequence[Rule]) -> None:
        """Raises `Misuse` for a column that does not exist, has two roles, or none."""
        # A column with two roles would be learned from itself.
        inputs = [*self.inputs]
        objective = rules[0].column
        named = {*inputs, objective, *self.limits}
        twice = [name for name in inputs if name == objective or inputs.count(name) > 1]
        if self.ignore != "rest":
            twice += [name for name in self.ignore if name in named]

        # A name that is mistyped comes first, as all else would say something else of it.
        roles = {"inputs": inputs, "objective": [objective], "constraints": self.limits}
        for role, names in roles.items():
            for name in names:
                if name not in frame.columns and name not in twice:
                    raise unknown("column", name, frame.columns, location=f"{source}: {role}: ")
        for option in ("log", "one_hot", "amounts"):
            for name in getattr(self, option):
                if name not in inputs:
                    raise unknown("input", name, inputs, location=f"{option}: ")
        if twice:
            raise Misuse(f"{source}: column {show(twice[0])} has two roles; name it once")

        # What has no role is not dropped unseen: it may be what distinguishes rows.
        left = frame[[name for name in frame.columns if name not in named]]
        if len(left.columns) and self.ignore != "rest":
            refuse_unnamed(left, source)
            raise Misuse(
                f"{source}: no role for column {', '.join(map(show, left.columns[:6]))}; name it "
                "in inputs, constraints or ignore (ignore: rest leaves out all such): rows that "
                "differ there only would count as noise"
            )

    def _stated(self, rules: Sequence[Rule], measured: Measured) -> Array | None:
        """Standard deviations of Gaussian noise, (1 + m,); None where rows are drawn."""
        columns = {rule.column for rule in rules}
        stated = {rule.column: rule.noise for rule in rules if rule.noise is not None}
        # `rows` and `gaussian` measure the noise, so that stated numbers contradict them.
        if isinstance(self.noise, str):
            if not measured.repeated:
                raise Misuse(
                    f"noise: {self.noise} needs rows with equal inputs, and there are none; "
                    "state numbers"
                )
            for name in stated:
                raise Misuse(
                    f"noise of {name} is stated, but noise is {self.noise}; leave one of them out"
                )
        elif isinstance(self.noise, dict):
            for name, value in self.noise.items():
                if name not in columns:
                    raise unknown("column", name, columns, location="noise: ")
                deviation(value, f"noise: {name}")
                if stated.setdefault(name, value) != value:
                    raise Misuse(f"noise of {name} is stated twice: {stated[name]} and {value}")

        # Rows that never differ have no noise to draw.
        if isinstance(self.noise, str) or (self.noise is None and not stated):
            if measured.scattered.any():
                return None
            return np.zeros(len(rules))
        # A number alone is the noise of all columns of which none is stated.
        default_noise = self.noise if isinstance(self.noise, float) else 0.0
        return np.array([stated.get(rule.column, default_noise) for rule in rules], dtype=float)


def check_size(matrix: Array, n: int, noun: str) -> Array:
    """A given covariance, if it is one and has the shape (n, n)."""
    matrix = check_covariance(matrix, "covariance")
    if len(matrix) != n:
        raise Misuse(f"covariance has shape {matrix.shape}, but there are {n} {noun}")
    return matrix


def read_functions(frame: pd.DataFrame, source: str, rules: Sequence[Rule], gaps: bool) -> Array:
    """The columns of the rules, (rows, 1 + m); where `gaps` may be, NaN.

    Raises:
        Misuse: what `numbers` refuses, or no row with a value of every column.
    """
    fix = "fill or drop them, or say on_failure: infeasible if these measurements failed"
    fix_text = (
        "take out the rows that hold text (the first: {place}); if these measurements failed, "
        "leave their values blank and say on_failure: infeasible"
    )
    if gaps:
        fix = "fill or drop them"
        fix_text = "leave blank what failed (the first: {place})"
    # One column may have several bounds, but is read once.
    columns = list(dict.fromkeys(rule.column for rule in rules))
    values = numbers(frame[columns], source, gaps, fix, fix_text)
    if np.isnan(values).any(axis=1).all():
        raise Misuse(
            f"{source}: every row lacks a value of {list_names(map(show, columns))}; nothing was "
            "measured"
        )
    return values[:, [columns.index(rule.column) for rule in rules]]
