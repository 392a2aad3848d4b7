"""docs/architecture.md stays true: its picture shows the imports, and it names every room and only files that exist."""

from __future__ import annotations

import importlib.util
import re

import pytest

from tests.conftest import ROOT

TEXT = (ROOT / "docs" / "architecture.md").read_text()
spec = importlib.util.spec_from_file_location("architecture", ROOT / "docs" / "architecture.py")
architecture = importlib.util.module_from_spec(spec)
spec.loader.exec_module(architecture)


def test_the_picture_shows_the_imports_of_today():
    drawn = architecture.draw(architecture.read_rooms())
    assert architecture.PICTURE.read_text() == drawn, "run `make pages`"


def test_a_circle_of_rooms_cannot_be_drawn():
    with pytest.raises(ValueError, match="a circle of imports among a, b"):
        architecture.draw({"a": {"b"}, "b": {"a"}, "c": {"a"}})


def test_arrows_that_follow_from_others_are_left_out():
    graph = {"top": {"middle", "low"}, "middle": {"low"}, "low": set()}
    layers = architecture.find_layers(graph)
    assert architecture.direct(graph, layers) == [("middle", "low"), ("top", "middle")]


def test_every_room_is_named_and_every_named_file_exists():
    for room in architecture.read_rooms():
        assert f"cbobench/{room}/" in TEXT, f"docs/architecture.md does not name {room}"
        about = (architecture.PACKAGE / room / "__init__.py").read_text()
        assert about.startswith('"""'), f"{room}/__init__.py does not say what lives there"
    for name in re.findall(r"`((?:cbobench|analysis|suites)/[\w/.]*)`", TEXT):
        assert (ROOT / name).exists() or (architecture.PACKAGE.parent / name).exists(), name
