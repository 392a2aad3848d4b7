"""docs/architecture.md stays true: each file that it names exists, and each room of the package is named."""

from __future__ import annotations

from pathlib import Path

import cbobench
from tests.conftest import ROOT

PACKAGE = Path(cbobench.__file__).parent  # installed from a wheel it does not lie beside the docs
TEXT = (ROOT / "docs" / "architecture.md").read_text()


def test_every_room_is_named_and_says_what_lives_there():
    rooms = sorted(p.parent for p in PACKAGE.glob("*/__init__.py"))
    assert len(rooms) >= 8
    for room in rooms:
        assert f"cbobench/{room.name}/" in TEXT, f"docs/architecture.md does not name {room.name}"
        about = (room / "__init__.py").read_text()
        assert about.startswith('"""'), f"{room.name}/__init__.py does not say what lives there"


def test_the_page_is_one_page():
    assert len(TEXT.splitlines()) <= 85
