"""What a plug-in needs is public: classes that import from cbobench alone are played, checked and
hashed.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import cbobench
from cbobench.cli import new
from cbobench.results import source
from cbobench.surface import HOMES
from tests.conftest import ROOT

PLUG_IN = '''
from dataclasses import dataclass

import numpy as np

from cbobench import (
    AskTell, Belief, BoxProblem, CellFailure, Given, OneRun, Optimistic, Parts, Reference, Simulator, param, pointwise,
    state,
)


@dataclass(kw_only=True)
class Queue(Simulator):
    """Least cost of two speeds while few jobs are late."""

    source = "a plug-in"
    about = "speeds of two machines"
    low, high, m = (0.5, 0.5), (3.0, 3.0), 1
    repeats: int = 2

    def simulate(self, x, gen):
        times = gen.exponential(1 / x[0], 20) + gen.exponential(1 / x[1], 20)
        return [-x[0] - 2 * x[1], (times > 3.0).mean() - 0.1]


@dataclass(kw_only=True)
class Bowl(BoxProblem):
    """A bowl whose bottom is cut off by a line."""

    source = "a plug-in"
    about = "a bowl and a line"
    low, high, m = (0.0, 0.0), (2.0, 2.0), 1
    reference = Reference((0.5, 0.5), -0.5, 1.0, 0.125, 1e-9, "closed form", binds=True)

    @pointwise
    def formula(self, x):
        return [-((x[0] - 1) ** 2) - (x[1] - 1) ** 2, x[0] + x[1] - 1]


@dataclass(kw_only=True)
class Penalty(Optimistic):
    """A penalty whose price follows the violation."""

    source = "a plug-in"
    about = "optimistic penalty"
    knows = ("kernel", "λ", "B", "G", "R", "T (through λ)")
    needs = frozenset({"feedback at once"})

    first: float = param(1.0, "price in round 1", at_least=0.0)
    price: np.ndarray = state()

    def prepare(self):
        self.price = np.full((self.setting.replicates, self.setting.constraints), self.first)

    def parts(self, belief: Belief) -> Parts:
        return Parts(self.explore_f(belief.f), self.explore_g(belief.constraint), self.price)

    def learn(self, t, chosen, feedback):
        self.price = self.price + np.maximum(feedback.g, 0.0)


class Draws:
    def __init__(self, given: Given):
        self.given = given

    def ask(self):
        return self.given.generator.uniform(self.given.low, self.given.high)

    def tell(self, x, f, g):
        if len(g) != self.given.m:
            raise CellFailure("g has another length")


@dataclass(kw_only=True)
class Uniform(AskTell):
    """Uniform draws."""

    source = "a plug-in"
    about = "uniform draws"

    def optimiser(self, given: Given) -> Draws:
        return Draws(given)


@dataclass(kw_only=True)
class Centre(OneRun):
    """Plays the centre of the box."""

    source = "a plug-in"
    about = "the centre"

    def start_one(self, setting):
        self.box = setting.actions

    def ask_one(self, t):
        return (self.box.low + self.box.high) / 2
'''  # noqa: E501
SUITE = """
suite: plug-in
horizon: 4
seeds: 2
problems: [{module}:Queue, {module}:Bowl]
algorithms: [{module}:Penalty: {{B: 5, G: 2, R: 1}}, {module}:Uniform, {module}:Centre]
"""


@pytest.fixture
def plug_in(tmp_path, monkeypatch):
    """Write the plug-in as a module, with other texts in place of some of its own."""
    monkeypatch.syspath_prepend(tmp_path)

    def write(module: str, *replacements: tuple[str, str]) -> Path:
        text = PLUG_IN
        for old, new_text in replacements:
            assert old in text
            text = text.replace(old, new_text)
        (tmp_path / f"{module}.py").write_text(text)
        suite = tmp_path / f"{module}.yaml"
        suite.write_text(SUITE.format(module=module))
        return suite

    return write


def test_a_plug_in_that_imports_from_cbobench_alone_is_played(plug_in, tmp_path):
    done = cbobench.run(plug_in("plug_in_one"), out=tmp_path / "run", cpus=0)
    assert (done.failed, done.played) == (0, 2 * 2 * 3)


def test_a_public_name_counts_as_the_code_that_it_names(plug_in):
    """Of a method that imports from deep modules the same files count as of one that imports from
    cbobench.
    """
    plug_in("plug_in_three")
    short = source.closure("plug_in_three:Bowl", "plug_in_three:Penalty")
    assert {"cbobench.params", "cbobench.gp.beliefs", "plug_in_three"} <= short.keys()
    deep = "from cbobench.params import param, state\nfrom cbobench.gp.beliefs import Parts\n"
    shorter = [(name, " ") for name in (" Parts, ", " param, ", "\n    state,\n")]
    shorter.append(("from cbobench import (\n", f"{deep}from cbobench import (\n"))
    plug_in("plug_in_three", *shorter)
    source.look_again()
    assert source.closure("plug_in_three:Bowl", "plug_in_three:Penalty") == short


def test_checkers_and_users_see_the_same_names():
    """What is imported for type checkers is what is given on first use."""
    tree = ast.parse(Path(cbobench.__file__).read_text(encoding="utf-8"))
    (block,) = [node for node in tree.body if isinstance(node, ast.If)]
    typed = {alias.asname: node.module for node in block.body for alias in node.names}
    assert typed == HOMES


def test_pages_and_templates_import_from_cbobench_alone():
    templates = [path.read_text(encoding="utf-8") for path in new.TEMPLATES.glob("*.py.txt")]
    pages = [
        (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")
        for name in ("own_method", "own_problem", "api")
    ]
    imports = [
        line
        for text in [*templates, *pages]
        for line in re.findall(r"from (cbobench[\w.]*) import", text)
    ]
    assert len(imports) > 5
    assert {*imports} == {"cbobench"}
