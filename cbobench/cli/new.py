"""`cbobench new` and `check`: a file with a class of the user's, a suite that plays it, and the
laws it must obey.
"""

from __future__ import annotations

import argparse
import keyword
import re
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from cbobench.errors import Misuse, printable, show

ALGORITHM = '''\
"""A method of mine.

To look for mistakes: cbobench check {module}:{name}
To play it: cbobench run {module}.yaml
"""

from dataclasses import dataclass

import numpy as np

from cbobench import AskTell, Given, param


class Search:
    """One run: steps from the best feasible point so far, which shrink as rounds go by."""

    def __init__(self, given: Given, step: float):
        self.given, self.step = given, step
        self.x, self.f, self.t = given.generator.uniform(given.low, given.high), -np.inf, 0

    def ask(self):
        """The point to play next, (d,), inside given.low and given.high."""
        self.t += 1
        length = self.step * (self.given.high - self.given.low) / np.sqrt(self.t)
        there = self.x + length * self.given.generator.standard_normal(self.given.d)
        return np.clip(there, self.given.low, self.given.high)

    def tell(self, x, f, g):
        """Observed at x: f, to be maximised, and the constraint values g (m,), feasible where all are <= 0."""
        if (g <= 0).all() and f > self.f:
            self.x, self.f = x, f


@dataclass(kw_only=True)
class {name}(AskTell):
    """Random steps from the best feasible point so far."""

    source = "mine"
    about = "random local search"

    step: float = param(0.5, "length of the first step, in units of the sides", above=0.0)

    def optimiser(self, given: Given) -> Search:
        return Search(given, self.step)
'''  # noqa: E501

PROBLEM = '''\
"""A problem of mine.

To look for mistakes: cbobench check {module}:{name}
To play it: cbobench run {module}.yaml
"""

from dataclasses import dataclass

import numpy as np

from cbobench import BoxProblem, Reference, param


@dataclass(kw_only=True)
class {name}(BoxProblem):
    """Maximise f = -(x_1 - 1)² - (x_2 - 1)² subject to g = x_1 + x_2 - 1 <= 0."""

    source = "mine"
    about = "a bowl whose bottom is cut off by a line"

    low = (0.0, 0.0)  # corners of the box
    high = (2.0, 2.0)
    m = 1  # constraints
    # the best feasible x, its f, -min max_j g_j, feasible share of the box, accuracy, how it was found, if g matters
    reference = Reference((0.5, 0.5), -0.5, 1.0, 0.125, 1e-9, "closed form: projection onto the line", binds=True)

    noise_f: float = param(0.05, "standard deviation of the noise on f", at_least=0.0)

    def formula(self, x):
        """(f, g_1, ..., g_m) at points (..., d): (..., 1 + m)."""
        f = -((x[..., 0] - 1) ** 2) - (x[..., 1] - 1) ** 2
        g = x[..., 0] + x[..., 1] - 1
        return np.stack([f, g], axis=-1)
'''  # noqa: E501

SIMULATOR = '''\
"""A simulator of mine.

To look for mistakes: cbobench check {module}:{name}
To play it: cbobench run {module}.yaml
"""

from dataclasses import dataclass

from cbobench import Simulator, param


@dataclass(kw_only=True)
class {name}(Simulator):
    """Least cost of the speeds of two machines, while at most a tenth of the jobs are late."""

    source = "mine"
    about = "speeds of two machines, share of late jobs, simulated"

    low = (0.5, 0.5)  # corners of the box; for whole numbers and categories: inputs = {{...}}
    high = (3.0, 3.0)
    objective = {{"minimise": "cost"}}  # or {{"maximise": "gain"}}
    constraints = {{"late": {{"at_most": 0.1}}}}  # or {{"yield": {{"at_least": 60}}}}
    noisy = True  # False where gen is unused: then each point is simulated once, and never for its mean

    jobs: int = param(100, "jobs of one run", at_least=1)

    def simulate(self, x, gen):
        """One run at x (d,): the observed values by name. Draw from gen only."""
        times = gen.exponential(1 / x[0], self.jobs) + gen.exponential(1 / x[1], self.jobs)
        return {{"cost": x[0] + 2 * x[1], "late": (times > 3.0).mean()}}
'''  # noqa: E501

SUITE = """\
suite: {module}
about: {about}
horizon: 40
seeds: 10
problems: [{problems}]
algorithms: [{algorithms}]
"""
WORD = re.compile(r"[A-Za-z]\w*", re.ASCII)
CLEARED = "\r" + 79 * " " + "\r"  # a line of a terminal as if nothing had been there


def do_check(options: argparse.Namespace, arguments: list[str]) -> int:
    """`cbobench check`."""
    from cbobench.check.report import (
        Verdict,
        format_verdict,
        kind_of,
        laws_on,
        summarise,
        verdicts_as_json,
    )
    from cbobench.problems.data import DataFolder
    from cbobench.threads import pin_threads
    from cbobench.watcher import Watcher

    pin_threads()
    plain = options.format != "json"
    on_terminal = plain and sys.stdout.isatty()

    class Notes(Watcher):
        def note(self, text: str) -> None:
            print(CLEARED * on_terminal, end="", flush=True)
            print(printable(f"  {text}"), file=sys.stderr, flush=True)

    settings = _settings(options.set)
    kind = kind_of(options.name)
    verdicts: list[Verdict] = []
    for law, judge in laws_on(options.name, settings, DataFolder(options.data, watcher=Notes())):
        if plain and not verdicts:  # now the settings are valid
            print(f"{options.name} ({kind})", flush=True)
        # A law may take a second: a terminal shows which one is tested, until its verdict is there.
        if on_terminal:
            print(f"  ...   {law}", end="", flush=True)
        verdicts.append(judge())
        if on_terminal:
            print(CLEARED, end="")
        if plain and not verdicts[-1].skipped:
            print(printable(format_verdict(verdicts[-1])), flush=True)
    print(summarise(verdicts) if plain else verdicts_as_json(options.name, kind, verdicts))
    return int(any(verdict.finding is not None for verdict in verdicts))


def _settings(assignments: list[str]) -> dict[str, Any]:
    """Parse parameters of the form NAME=VALUE, with values as in a suite."""
    import yaml

    settings = {}
    for assignment in assignments:
        name, equals, value = assignment.partition("=")
        if not equals or not name:
            raise Misuse(
                f"--set {show(assignment)} is no parameter; write --set NAME=VALUE, such as "
                "--set noise_f=0.1"
            )
        try:
            settings[name] = yaml.safe_load(value)
        except yaml.YAMLError:
            raise Misuse(
                f"--set {show(assignment)} has a value that cannot be read; write it as in a suite"
            ) from None
    return settings


def do_new(options: argparse.Namespace, command_line: list[str]) -> int:
    """`cbobench new`."""
    if options.simulator and options.kind != "problem":
        raise Misuse("--simulator is about problems; write: cbobench new problem NAME --simulator")
    files = new("simulator" if options.simulator else options.kind, options.name, Path())
    for path in files:
        print(path)
    module, name = _module_and_class(options.name)
    print(
        f"to look for mistakes: cbobench check {module}:{name}; to play it: cbobench run "
        f"{files[1]}",
        file=sys.stderr,
    )
    return 0


def new(kind: str, name: str, folder: Path) -> tuple[Path, Path]:
    """Write NAME.py and NAME.yaml into a folder; both or none.

    Args:
        kind: "algorithm", "problem" or "simulator".
        name: of the module, such as mine or my-method; its class is Mine or MyMethod.

    Raises:
        Misuse: the name is no name, is a module's that Python knows, or a file is there already.
    """
    module, cls = _module_and_class(name)
    code = folder / f"{module}.py"
    suite = folder / f"{module}.yaml"
    existing = [str(path) for path in (code, suite) if path.exists()]
    if existing:
        raise Misuse(
            f"{' and '.join(existing)} would be overwritten; choose another name, or move the "
            "file away"
        )
    if find_spec(module) is not None:
        raise Misuse(
            f"{show(module)} is a module that Python has; choose another name, such as my_{module}"
        )
    path = f"{module}:{cls}"
    text, about, problems, algorithms = {
        "algorithm": (
            ALGORITHM,
            "a method of mine beside others",
            "gardner-1, gramacy",
            f"{path}, cei, random",
        ),
        "simulator": (SIMULATOR, "a simulator of mine", path, "cei, scbo, random"),
        "problem": (PROBLEM, "a problem of mine", path, "cei, epbo, random"),
    }[kind]
    code.write_text(text.format(module=module, name=cls), encoding="utf-8")
    lines = SUITE.format(module=module, about=about, problems=problems, algorithms=algorithms)
    try:
        suite.write_text(lines, encoding="utf-8")
    except OSError:
        # Half of the two files would make the next call refuse to write.
        code.unlink()
        raise
    return code, suite


def _module_and_class(name: str) -> tuple[str, str]:
    """Module and class of a name."""
    module = name.replace("-", "_").lower()
    if keyword.iskeyword(module):
        raise Misuse(
            f"{show(name)} is a word of Python's grammar; choose another name, such as my_{module}"
        )
    if not WORD.fullmatch(module):
        raise Misuse(
            f"{show(name)} is no name for a module; allowed: letters, digits and - or _, a "
            "letter first"
        )
    return module, "".join(part.capitalize() for part in module.split("_")) or module
