"""The keys of a suite, and what `parallel`, `initial` and `resources` mean.

`parallel` is the number of evaluations under way at once. It is part of a cell's identity; 1 equals
no key.

    parallel: 4                        asynchronous, equal durations: feedback of round t - 4 arrives before round t
    parallel: {points: 4, as: batch}   feedback of four rounds arrives together, before the next four

`initial` holds the rounds of an initial design, which every method plays alike before it is asked,
or the file of past measurements that every method is told before round 1.

`resources: {cpus: 2, memory: 8GB}` is what a task of an algorithm needs. It is not part of a cell's
identity, so that a cell played with other resources is not played again.
"""  # noqa: E501

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_args

from cbobench.algorithms import ALGORITHMS
from cbobench.errors import Misuse, wrong_value
from cbobench.gp.box_actions import DesignName
from cbobench.problems.base import Problem
from cbobench.problems.tables.past import FILE, PastRows, read_past, take_past
from cbobench.suite.values import parse_amount, parse_whole
from cbobench.suite.variants import INITIAL, PARALLEL, Variant
from cbobench.suite.yamlio import MAX_CPUS
from cbobench.words import count_noun

KEYS = (
    *(
        "suite",
        "about",
        "horizon",
        "seeds",
        "record",
        "timeout",
        "skip",
        "floor",
        "initial",
        "parallel",
    ),
    *("shared", "problems", "algorithms"),
)
"""Of a suite, at its top level."""
WAYS = ("asynchronous", "batch")
DESIGNS = get_args(DesignName)
# unless a suite says otherwise: methods that ignore what is under way repeat a point
SPREAD = {"pending": "variance"}


def parse_parallel(value: Any, horizon: int, location: str) -> dict[str, Any]:
    """Return the evaluations under way, {"points": q, "as": way}; empty for one at a time.

    Raises:
        Misuse: anything else; `location` (file and line) starts the message.
    """
    stated = value if isinstance(value, Mapping) else {"points": value}
    way = stated.get("as", WAYS[0])
    if not {"points"} <= set(stated) <= {"points", "as"} or way not in WAYS:
        allowed = f"a number, or {{points: number, as: {' or '.join(WAYS)}}}"
        raise wrong_value("parallel", value, allowed, location)
    # Of the last round's points none is under way.
    points = parse_whole("parallel", stated["points"], 1, max(1, horizon - 1), location)
    if points > 1:
        return {"points": points, "as": way}
    return {}


def pending_notes(algorithms: Iterable[Variant]) -> tuple[str, ...]:
    """Return lines about algorithms that ignore pending evaluations."""
    blind = [
        algorithm.label
        for algorithm in algorithms
        if algorithm.points_at_once > 1 and algorithm.settings.get("pending") == "ignore"
    ]
    if not blind:
        return ()
    return (
        f"{', '.join(blind)}: chosen as if nothing were under way (pending: ignore), which may "
        "be the same point "
        "again; pending: variance spreads them",
    )


def describe_parallel(parallel: Mapping[str, Any]) -> str:
    """Return the same in words, for tables; "" for one."""
    if not parallel:
        return ""
    how = "in batches" if parallel["as"] == "batch" else "a new one begins when the oldest ends"
    return f"{parallel['points']} evaluations under way at once ({how})"


def parse_initial(value: Any, horizon: int, location: str, folder: Path) -> dict[str, Any]:
    """Return the initial design, {name: rounds}, or {"file": past measurements} (see `read_past`).

    Args:
        folder: where the path of a file starts from.

    Raises:
        Misuse: anything else; `location` (file and line) starts the message.
    """
    if not isinstance(value, Mapping) or len(value) != 1 or not {*value} <= {FILE, *DESIGNS}:
        allowed = "{sobol: rounds} or {random: rounds}; past measurements {file: past.csv}"
        raise wrong_value("initial", value, allowed, location)
    name, given = next(iter(value.items()))
    if name == FILE:
        return {FILE: read_past(folder / str(given), location)}
    return {name: parse_whole(f"initial: {name}", given, 1, horizon - 1, location)}


def count_past(algorithm: Variant) -> int:
    """Return the number of past measurements that an algorithm is told before round 1."""
    return len(algorithm.values.get(INITIAL, {}).get(FILE, {}).get("rows", ()))


def apply_settings(
    algorithm: Variant, initial: dict[str, Any], parallel: dict[str, Any]
) -> Variant:
    """Return an algorithm shaped by a suite's `initial` and `parallel`; reference methods stay
    unchanged, and so do those that learn nothing, of past measurements.
    """
    cls = ALGORITHMS.get(algorithm.name)
    settings = {INITIAL: initial, PARALLEL: parallel}
    past: PastRows | None = initial.get(FILE)
    # What derives from a method that learns nothing may learn, unless it says so itself.
    is_untold = past is not None and vars(cls).get("blind", False)
    if cls.reference or is_untold or not any(settings.values()):
        return algorithm
    values = algorithm.values | {key: value for key, value in settings.items() if value}
    note = describe_parallel(parallel) if past is None else past.describe()
    return replace(algorithm, values=values, note=note)


def describe_setup(algorithm: Variant) -> dict[str, str]:
    """Return what a suite sets for all methods alike, in words, by key: its `initial` and its
    `parallel`.
    """
    initial = algorithm.values.get(INITIAL)
    parallel = algorithm.values.get(PARALLEL)
    return {
        INITIAL: " ".join(describe_initial(*item) for item in initial.items())
        if initial
        else "none",
        PARALLEL: f"{parallel['points']:,} ({parallel['as']})" if parallel else "1",
    }


def describe_initial(name: str, value: Any) -> str:
    """Return one part of an initial design in words: "sobol 10"."""
    rows = "" if name != FILE else count_noun(len(value["rows"]), "past measurement")
    if rows:
        return f"{rows} ({value['sha256'][:8]})"
    return f"{name} {value:,}"


def ignores_setup(algorithm: Variant) -> bool:
    """Return whether `initial` and `parallel` do not shape it: whether it is a reference method of
    this cbobench.
    """
    return algorithm.name in ALGORITHMS.names() and bool(ALGORITHMS.get(algorithm.name).reference)


def check_initial(initial: dict[str, Any], problems: Mapping[str, Problem], location: str) -> None:
    """Raise `Misuse` if a problem, by title, takes no such past measurements."""
    if FILE not in initial:
        return
    for title, problem in problems.items():
        try:
            take_past(problem, initial[FILE])
        except Misuse as error:
            raise Misuse(f"{location}{title}: {error}") from None


UNITS = {"MB": 10**6, "GB": 10**9, "MiB": 2**20, "GiB": 2**30}


@dataclass(frozen=True)
class Demand:
    """What a task needs.

    Attributes:
        cpus: whole CPUs.
        memory: bytes, 0 if unspecified.
    """

    cpus: int = 1
    memory: int = 0

    def __str__(self) -> str:
        memory = f" and {self.memory / 1e9:g} GB" if self.memory else ""
        return f"{self.cpus} CPU{'s' if self.cpus > 1 else ''}{memory}"

    def fits(self, cpus: float, memory: float) -> bool:
        """Return whether the available resources are enough."""
        return self.cpus <= cpus and self.memory <= memory


ONE = Demand()


def parse_resources(value: Any, location: str) -> Demand:
    """Return the resources of a suite's entry; `ONE` if it has none.

    Raises:
        Misuse: anything but `{cpus: 2, memory: 8GB}`.
    """
    if value is None:
        return ONE
    if not isinstance(value, Mapping) or not {*value} <= {"cpus", "memory"}:
        allowed = "{cpus: a whole number, memory: as in 8GB}"
        raise wrong_value("resources", value, allowed, location)
    cpus = parse_whole("cpus", value.get("cpus", 1), 1, MAX_CPUS, location)
    memory = value.get("memory")
    if memory is None:
        return Demand(cpus)
    return Demand(cpus, int(parse_amount("memory", memory, UNITS, "8GB", location)))


def refuse_excess(demands: Mapping[str, Demand], cpus: int, memory: int) -> None:
    """Raise `Misuse` for an algorithm (by its title) that needs more than a machine has."""
    for title, demand in demands.items():
        if not demand.fits(cpus, memory):
            raise Misuse(
                f"{title} wants {demand} per task; this run has {Demand(cpus, memory)}: lower "
                "its resources, raise "
                "--cpus, or play on a larger machine"
            )
