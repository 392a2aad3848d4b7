"""docs/architecture.md and the way of a run stay true: rooms import downwards, and all that is
named exists.
"""

from __future__ import annotations

import ast
import graphlib
import re

import pytest

from tests.conftest import ROOT
from website import rooms

GUIDE = (ROOT / "CONTRIBUTING.md").read_text()
STEP = re.compile(r"`([\w/]+\.py):([\w.]+)`")
TEXT = (ROOT / "docs" / "architecture.md").read_text()
ROOMS = rooms.read_rooms()


def test_rooms_stand_above_what_they_import():
    """The table of docs/architecture.md, which a test of pages holds current."""
    order = rooms.order_rooms(ROOMS)
    assert all(order.index(name) > order.index(room) for room in order for name in ROOMS[room])
    with pytest.raises(graphlib.CycleError):
        rooms.order_rooms({"a": {"b"}, "b": {"a"}, "c": {"a"}})


def test_every_room_is_named_and_every_named_file_exists():
    for room in ROOMS:
        assert f"cbobench/{room}/" in TEXT, f"docs/architecture.md does not name {room}"
        about = (rooms.PACKAGE / room / "__init__.py").read_text()
        assert about.startswith('"""'), f"{room}/__init__.py does not say what lives there"
    for name in re.findall(r"`((?:cbobench|analysis|suites)/[\w/.]*)`", TEXT):
        assert (ROOT / name).exists() or (rooms.PACKAGE.parent / name).exists(), name


def names_defined(body, prefix=""):
    """Functions and classes of some statements, methods as `Holder.name`."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield prefix + node.name
            if isinstance(node, ast.ClassDef):
                yield from names_defined(node.body, f"{prefix}{node.name}.")


def absent_steps(text):
    """Steps `file:function` of a text that no file of the package defines."""
    for file, function in STEP.findall(text):
        path = rooms.PACKAGE / file
        if not path.is_file() or function not in names_defined(ast.parse(path.read_text()).body):
            yield f"{file}:{function}"


def test_every_step_of_the_way_is_a_function():
    assert list(absent_steps(GUIDE)) == []
    assert list(absent_steps((ROOT / "analysis" / "README.md").read_text())) == []
    wrong = "`sweep/run.py:run`, `sweep/run.py:Plan.gone`, `sweep/run.py:gone`, `gone/run.py:run`"
    assert list(absent_steps(wrong)) == [
        "sweep/run.py:Plan.gone",
        "sweep/run.py:gone",
        "gone/run.py:run",
    ]


def test_a_step_is_in_its_room():
    rows = re.findall(r"^\| `(\w+)` \|.*\| `([\w/]+\.py:[\w.]+)` \|$", GUIDE, re.M)
    assert rows
    assert [step for room, step in rows if not step.startswith(f"{room}/")] == []
    assert len(rows) == len(STEP.findall(GUIDE[GUIDE.index("| room |") :].partition("\n\n")[0])), (
        "one function a step"
    )


def test_the_guide_is_one_page():
    assert len(GUIDE.splitlines()) <= 101
