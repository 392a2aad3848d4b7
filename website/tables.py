"""Writes what pages take from the code: python -m website.tables (or: make pages).

Tables stand between `<!-- NAME -->` and `<!-- end -->`: those of `cbobench list`, what the command
line can do, what methods need, know and can play, which rooms import which, and what was measured.
"""

from __future__ import annotations

import contextlib
import io
import tempfile
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from analysis.folders import DOCS
from analysis.markdown import fill_sections, tabulate
from cbobench import params
from cbobench.algorithms import ALGORITHMS
from cbobench.cli import main, make_parser
from cbobench.problems import PROBLEMS
from cbobench.problems.base import Problem
from cbobench.problems.data import DataFolder
from cbobench.problems.simulators.simulator import Simulator
from website import measurements, rooms

PAGES = (
    "methods.md",
    "problems.md",
    "suites.md",
    "which_method.md",
    "commands.md",
    "clusters.md",
    "speed.md",
    "papers.md",
    "architecture.md",
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
    "Lipschitz constant": "from the norm of g, or `L` of the method",
    "variation P_T": "with a problem whose functions move",
    "delay cut-off m": "`cutoff` of the method",
    "g_t before acting": "with a problem of full information",
}


class StatedSimulator(Simulator):
    """A simulator that knows its bounds."""

    low, high, m = (0.0,), (1.0,), 1

    def simulate(self, x: Any, gen: np.random.Generator) -> Any:
        return [gen.normal(x[0]), x[0] - 0.9]


def make_problem(name: str, settings: dict[str, Any]) -> Problem:
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
def find_offers() -> dict[str, frozenset[str]]:
    """What a problem of each kind offers."""
    return {kind: make_problem(*how).offers() for kind, how in KINDS.items()}


def print_list(what: str) -> str:
    """`cbobench list WHAT --format markdown`."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        main(["list", what, "--format", "markdown"])
    return printed.getvalue().strip()


def tabulate_commands() -> str:
    """What the command line can do."""
    every: Any = next(action for action in make_parser()._actions if action.dest == "command")
    about = {one.dest: (one.help or "").replace("%%", "%") for one in every._choices_actions}
    return tabulate(
        ["command", "about"], [[f"`cbobench {name}`", what] for name, what in about.items()]
    )


def tabulate_offers() -> str:
    """Kinds of problems and what they offer."""
    every = sorted(frozenset().union(*find_offers().values()))
    return tabulate(
        ["a problem that is a", *every],
        [
            [kind, *("yes" if a in has else "" for a in every)]
            for kind, has in find_offers().items()
        ],
    )


def tabulate_playable() -> str:
    """Methods and the kinds that they can play."""
    body = []
    for name in ALGORITHMS.names():
        needs = ALGORITHMS.get(name).needs
        body.append(
            [
                f"`{name}`",
                *("yes" if needs <= has else "" for has in find_offers().values()),
                ", ".join(sorted(needs)),
            ]
        )
    return tabulate(["method", *find_offers(), "needs"], body)


def tabulate_told() -> str:
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


def find_unexplained() -> set[str]:
    """Facts that a method must be told and of which the page says nothing, or the reverse."""
    return {
        k.split(" (")[0] for name in ALGORITHMS.names() for k in ALGORITHMS.get(name).knows
    } ^ set(WHERE)


TABLES: dict[str, Callable[[], str]] = {
    "algorithms": partial(print_list, "algorithms"),
    "problems": partial(print_list, "problems"),
    "suites": partial(print_list, "suites"),
    "offers": tabulate_offers,
    "playable": tabulate_playable,
    "told": tabulate_told,
    "commands": tabulate_commands,
    "efficiency": measurements.tabulate_efficiency,
    "beside": measurements.tabulate_opponents,
    "finite": measurements.tabulate_finite,
    "box": measurements.tabulate_box,
    "rooms": rooms.tabulate_rooms,
    "map": measurements.tabulate_map,
}


def refresh(text: str) -> str:
    """A page's text with its tables as they should be."""
    return fill_sections(text, lambda name: TABLES[name]() if name in TABLES else None)


if __name__ == "__main__":
    for page in (DOCS / name for name in PAGES):
        page.write_text(refresh(page.read_text(encoding="utf-8")), encoding="utf-8")
