"""Writes what pages say of methods, problems and suites: python -m website.tables (or: make
pages).

Tables stand between `<!-- NAME -->` and `<!-- end -->`: those of `cbobench list`, what the command
line can do, and in which_method.md what methods need, know and can play, taken from their classes.
Those of clusters.md are computed from cluster.json and speed.json of published/, which
`benchmarks.scale.cluster` and `make speed ARGS="--only dispatch boxes --out ..."` write; those of
speed.md from rounds.json, by `benchmarks.speed.rounds`, and from curves.json, by
`benchmarks.speed.curves`.
"""

from __future__ import annotations

import contextlib
import io
import json
import statistics
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from analysis.folders import DOCS, PUBLISHED
from analysis.markdown import fill_sections, tabulate
from benchmarks.speed.calls import HELD
from cbobench import params
from cbobench.algorithms import ALGORITHMS
from cbobench.algorithms.optimistic import OptimisticReward
from cbobench.algorithms.score import ScoreAlgorithm
from cbobench.cli import main, make_parser
from cbobench.problems import PROBLEMS
from cbobench.problems.base import Problem
from cbobench.problems.data import DataFolder
from cbobench.problems.simulators.simulator import Simulator
from cbobench.sweep.scheduler import TASK_SECONDS
from cbobench.words import count_noun

PAGES = (
    "methods.md",
    "problems.md",
    "suites.md",
    "which_method.md",
    "commands.md",
    "clusters.md",
    "speed.md",
)
CONFIGURATIONS = {
    "layout": "configurations",
    "rows": "c.csv",
    "inputs": ["a"],
    "objective": "f",
    "constraints": {"g": {"at_most": 1}},
}
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "table of configurations": ("table", CONFIGURATIONS),
    "table of readings": ("table", {"layout": "readings", "rows": "r.csv"}),
    "formula on a box": ("gardner-1", {}),
    "the same, `grid: K`": ("gardner-1", {"grid": 10}),
    "the same, `delay: τ`": ("gardner-1", {"delay": 5}),
    "the same, `full_information: true`": ("gardner-1", {"full_information": True}),
    "simulator": ("simulator", {}),
    "simulator with `best_known`": ("simulator", {"best_known": (0.5,)}),
}
MOST = 6  # methods in a cell
# Sweeps of the page on clusters: words, case and figure of benchmarks/speed/cases.py, its µs,
# cells, rounds.
SWEEPS = (
    ("`ckb-ucb`, 100 actions", "dispatch", "S = 50, µs per seed-round", 1.0, 1_000_000, 10_000),
    (
        "`cei` on `speed-reducer`, seed by seed",
        "boxes",
        "cei on speed-reducer, ms per round",
        1e3,
        100_000,
        200,
    ),
)
OPPONENTS = {"cei": "botorch-cei", "scbo": "botorch-scbo"}  # of the page on speed
CPUS, MACHINES = 16, (1, 4, 16)  # of a machine; machines
WHERE = {
    "kernel": (
        "with the problem: functions drawn from it, readings, a table's covariance; elsewhere it "
        "is fitted (`kernel: auto`)"
    ),
    "λ": "`lam` of the method",
    "B": "a bound of f: its norm or supremum with the problem, or `B` of the method",
    "G": "the same of every g_j, `G` of the method",
    "R": "the noise's standard deviation with the problem, or `R` of the method",
    "T": "`horizon` of the suite",
    "δ": "Slater's margin with the problem, or `delta` of the method",
    "ρ": "`rho` of the method",
    "κ": "`kappa` of the method",
    "f and g": "no learner is told: it is a reference",
    "safe seed set": "with the problem: `seed_size` random feasible actions of a finite set",
    "Lipschitz constant": "with the problem, from its slopes",
    "variation P_T": "with a problem whose functions move",
    "delay cut-off m": "`cutoff` of the method",
    "g_t before acting": "with a problem of full information",
}


class StatedSimulator(Simulator):
    low, high, m = (0.0,), (1.0,), 1

    def simulate(self, x: Any, gen: np.random.Generator) -> Any:
        return [gen.normal(x[0]), x[0] - 0.9]


def made(name: str, settings: dict[str, Any]) -> Problem:
    """A prepared problem; the files of tables are written for it."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "c.csv").write_text("a,f,g\n0.5,1,0\n1.5,2,1\n2.5,3,2\n")
        (Path(folder) / "r.csv").write_text("a,b,c\n1,2,4\n2,2,3\n1,3,5\n")
        given = {k: str(Path(folder) / v) if k == "rows" else v for k, v in settings.items()}
        if name == "simulator":
            problem: Problem = type("StatedSimulator", (StatedSimulator,), given)()
        else:
            problem = params.build(PROBLEMS.get(name), given)
        problem.prepare(DataFolder())
    return problem


@cache
def offers() -> dict[str, frozenset[str]]:
    """What a problem of each kind offers."""
    return {kind: made(*how).offers() for kind, how in KINDS.items()}


def listed(what: str) -> str:
    """`cbobench list WHAT --format markdown`."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        main(["list", what, "--format", "markdown"])
    return printed.getvalue().strip()


def commands() -> str:
    """What the command line can do."""
    every: Any = next(action for action in make_parser()._actions if action.dest == "command")
    about = {one.dest: (one.help or "").replace("%%", "%") for one in every._choices_actions}
    return tabulate(
        ["command", "about"], [[f"`cbobench {name}`", what] for name, what in about.items()]
    )


def offered() -> str:
    """Kinds of problems and what they offer."""
    every = sorted(frozenset().union(*offers().values()))
    return tabulate(
        ["a problem that is a", *every],
        [[kind, *("yes" if a in has else "" for a in every)] for kind, has in offers().items()],
    )


def playable() -> str:
    """Methods and the kinds that they can play."""
    body = []
    for name in ALGORITHMS.names():
        needs = ALGORITHMS.get(name).needs
        body.append(
            [
                f"`{name}`",
                *("yes" if needs <= has else "" for has in offers().values()),
                ", ".join(sorted(needs)),
            ]
        )
    return tabulate(["method", *offers(), "needs"], body)


def told() -> str:
    """What methods must be told, and by whom it is said."""
    body = []
    for fact, where in WHERE.items():
        users = [
            name
            for name in ALGORITHMS.names()
            if fact in {k.split(" (")[0] for k in ALGORITHMS.get(name).knows}
        ]
        listed = ", ".join(f"`{name}`" for name in users)
        many = f"{len(users)} of {len(ALGORITHMS.names())}: see [methods](methods.md)"
        body.append([fact, where, listed if len(users) <= MOST else many])
    return tabulate(["fact", "where it is said", "methods that must be told"], body)


def kernels() -> str:
    """Which methods fit kernels where none is known, and whether a theorem is then lost."""
    rows: dict[str, list[str]] = {
        "fitted where none is known, and then without the method's theorem": [],
        "fitted where none is known": [],
        "fitted, always": [],
        "the problem's, always": [],
    }
    lost, kept, always, never = rows.values()
    for name in ALGORITHMS.names():
        cls = ALGORITHMS.get(name)
        if any(parameter.name == "kernel" for parameter in params.params_of(cls)):
            (lost if issubclass(cls, OptimisticReward) else kept).append(f"`{name}`")
        elif issubclass(cls, ScoreAlgorithm):
            (always if cls.kernel == "fit" else never).append(f"`{name}`")
    return tabulate(
        ["kernel", "methods"], [[kind, ", ".join(names)] for kind, names in rows.items()]
    )


def driver(row: dict[str, float]) -> float:
    """CPUs that the driver takes while tasks are played."""
    return row["cpus"] * row["cpu"] / (1e3 * row["sleep"] + row["lost"])


def efficiency() -> str:
    """Measured: how busy nodes are kept, what a task loses, and what the driver takes."""
    found = json.loads((PUBLISHED / "cluster.json").read_text(encoding="utf-8"))
    head = [
        "nodes",
        "task",
        "tasks",
        "start",
        "efficiency",
        "lost per task",
        "driver",
        "its memory",
    ]
    columns: list[Callable[[dict[str, float]], str]] = [
        lambda row: str(row["cpus"]),
        lambda row: f"{row['sleep']:g} s",
        lambda row: str(row["tasks"]),
        lambda row: f"{row['start']:.0f} s",
        lambda row: f"{row['busy']:.2f}",
        lambda row: f"{row['lost']:.0f} ms",
        lambda row: f"{100 * driver(row):.1f} %",
        lambda row: f"{row['memory']:.0f} MB",
    ]
    body = [[column(row) for column in columns] for row in found["rows"]]
    return (
        f"{tabulate(head, body)}\n\nMeasured {origin(found)}; {found['cpus']} CPUs, {found['cpu']}."
    )


def origin(found: dict[str, Any]) -> str:
    """When a measurement was made, and by which commit."""
    return f"on {found['at'][:10]} by commit {found['commit']}"


def beside() -> str:
    """How long a round of ours takes on a box, and how many times as long one of BoTorch's."""
    found = json.loads((PUBLISHED / "rounds.json").read_text(encoding="utf-8"))
    ms = {(row["method"], row["m"], row["d"], row["n"]): row["ms"] for row in found["rows"]}
    counts = sorted({row["n"] for row in found["rows"]})
    body = []
    for ours, theirs in OPPONENTS.items():
        for m, d in sorted(
            {(row["m"], row["d"]) for row in found["rows"] if row["method"] == ours}
        ):
            pairs = [(ms.get((ours, m, d, n)), ms.get((theirs, m, d, n))) for n in counts]
            cells = [
                "–" if a is None else f"{a:,.0f}" + (f" ({b / a:,.0f} ×)" if b else "")
                for a, b in pairs
            ]
            body.append([f"`{ours}`", str(m), str(d), *cells])
    head = ["method", "constraints", "inputs", *(f"n = {n}" for n in counts)]
    ratios = {
        ours: [
            ms[key] / ms[(ours, *key[1:])]
            for key in ms
            if key[0] == theirs and (ours, *key[1:]) in ms
        ]
        for ours, theirs in OPPONENTS.items()
    }
    said = "; ".join(
        f"`{ours}` against `{OPPONENTS[ours]}`: {statistics.median(each):.0f} times faster in "
        "the median, "
        f"at least {min(each):.0f}, 20 or more in {sum(ratio >= 20 for ratio in each)} of "
        f"{len(each)}"
        for ours, each in ratios.items()
    )
    machine = f"{found['cpus']} CPUs, {found['cpu']}, NumPy {found['numpy']}"
    return f"{tabulate(head, body)}\n\n{said}. Measured {origin(found)}; {machine}."


VARIED = {
    "seeds": "seeds S",
    "actions": "actions n",
    "constraints": "constraints m",
    "rounds": "rounds T",
    "inputs": "inputs d",
    "observations": "observations n",
}


def finite_curves() -> str:
    """What a round on a finite set costs over what is varied, beside bare NumPy."""
    found = json.loads((PUBLISHED / "curves.json").read_text(encoding="utf-8"))
    body = []
    for row in found["finite"]:
        bare = (
            [f"{row['bare']:,.1f}", f"{row['us'] / row['bare']:.2f}"]
            if "bare" in row
            else ["–", "–"]
        )
        value = f"{row[row['curve']]:,}" + (
            f", d = {row['inputs']}" if row["curve"] == "actions" else ""
        )
        body.append(
            [VARIED[row["curve"]], value, f"{row['features']:,}", f"{row['us']:,.1f}", *bare]
        )
    head = ["varied", "value", "features r", "µs per seed and round", "bare NumPy", "ratio"]
    return f"{tabulate(head, body)}\n\n{measured(found)}"


def box_curves() -> str:
    """What a round on a box costs over what is varied."""
    found = json.loads((PUBLISHED / "curves.json").read_text(encoding="utf-8"))
    body = [
        [
            VARIED[row["curve"]],
            f"{row['rounds' if row['curve'] == 'observations' else row['curve']]:,}",
            f"{row['ms']:,.0f}",
        ]
        for row in found["box"]
    ]
    return f"{tabulate(['varied', 'value', 'ms a round'], body)}\n\n{measured(found)}"


def measured(found: dict[str, Any]) -> str:
    """How the numbers of curves.json were measured."""
    machine = (
        f"{found['cpus']} CPUs, {found['cpu']}, NumPy {found['numpy']}, SciPy {found['scipy']}"
    )
    return f"The least of {found['repeats']} turns, measured {origin(found)}; {machine}."


def held_calls() -> str:
    """How many calls a round of a method on a finite set makes, which a test holds."""
    body = [[f"`{name}`", str(seeds), f"{count:g}"] for (name, seeds), count in HELD.items()]
    return tabulate(["method", "seeds", "calls a round"], body)


def sweeps() -> str:
    """Extrapolated: how long two sweeps take on how many machines."""
    found = json.loads((PUBLISHED / "speed.json").read_text(encoding="utf-8"))
    measured = json.loads((PUBLISHED / "cluster.json").read_text(encoding="utf-8"))["rows"]
    lost = max(row["lost"] for row in measured) / 1e3
    share = TASK_SECONDS / (TASK_SECONDS + lost)
    body = []
    for words, case, figure, micro, cells, horizon in SWEEPS:
        each = micro * statistics.median(found["cases"][case]["figures"]["here"][figure])
        hours = cells * horizon * each / 3.6e9
        times = [hours / (machines * CPUS * share) for machines in MACHINES]
        body.append(
            [words, f"{cells:,}", f"{horizon:,}", *map(duration, (each / 3.6e9, hours, *times))]
        )
    head = [
        "sweep",
        "cells",
        "rounds",
        "seed-round",
        "one CPU",
        *(count_noun(n, "machine") for n in MACHINES),
    ]
    return (
        f"{tabulate(head, body)}\n\nMachines of {CPUS} CPUs; efficiency {share:.3f} (tasks of "
        f"{TASK_SECONDS:.0f} s "
        f"lose {1e3 * lost:.0f} ms, the most above).\nSeed-rounds measured {origin(found)}; "
        f"{found['cpu']}."
    )


def duration(hours: float) -> str:
    """Hours in the unit that reads best, with two digits or more."""
    units = {"h": 1, "min": 1 / 60, "s": 1 / 3600, "ms": 1 / 3.6e6, "µs": 1 / 3.6e9}
    unit = next(name for name, size in units.items() if hours >= size or name == "µs")
    value = hours / units[unit]
    return f"{value:.1f} {unit}" if value < 10 else f"{value:,.0f} {unit}"


def unexplained() -> set[str]:
    """Facts that a method must be told and of which the page says nothing, or the reverse."""
    return {
        k.split(" (")[0] for name in ALGORITHMS.names() for k in ALGORITHMS.get(name).knows
    } ^ set(WHERE)


TABLES: dict[str, Callable[[], str]] = {
    **{what: (lambda what=what: listed(what)) for what in ("algorithms", "problems", "suites")},  # type: ignore[misc]
    "offers": offered,
    "playable": playable,
    "told": told,
    "kernels": kernels,
    "commands": commands,
    "efficiency": efficiency,
    "beside": beside,
    "calls": held_calls,
    "finite": finite_curves,
    "box": box_curves,
    "sweeps": sweeps,
}


def refreshed(text: str) -> str:
    """A page's text with its tables as they should be."""
    return fill_sections(text, lambda name: TABLES[name]())


if __name__ == "__main__":
    for page in (DOCS / name for name in PAGES):
        page.write_text(refreshed(page.read_text(encoding="utf-8")), encoding="utf-8")
