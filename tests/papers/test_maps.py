"""docs/maps.md is what its stored findings say, and they are of the claims and suites as they are."""

from __future__ import annotations

import json

import pytest

from cbobench import resources
from cbobench.papers.claim_tables import claims_of
from docs.results import maps as script

WANTED = {"ZJ1", "ZJ2", "ZJ3", "ZJ4", "ZJ5", "SE1", "SE3", "SE4", "GZL1", "GZL2", "GZL3"}  # those with a map


@pytest.fixture(scope="module")
def stored():
    return json.loads(script.STORED.read_text())


def test_the_page_is_current(stored):
    text = script.PAGE.read_text()
    assert script.page(stored) == text, "docs/maps.md is stale: python -m docs.results.maps --render"
    assert script.page(stored | {"maps": stored["maps"][1:]}) != text, "negative control"


def test_the_map_is_of_these_claims_and_suites(stored):
    claims = {claim.id: claim.statement for claim in claims_of()}
    assert {map["id"]: map["statement"] for map in stored["maps"]}.items() <= claims.items(), "stale: make maps"
    assert {map["id"] for map in stored["maps"]} >= WANTED
    assert {name.replace("-", "_") for name in stored["suites"]} <= set(script.suites()) <= set(resources.suites())
    assert all(map["cpu_minutes"] > 0 for map in stored["maps"])
    assert all(setting["n"] == setting["expected"] for map in stored["maps"] for setting in map["settings"])


def test_maps_are_restored_from_what_is_stored(stored):
    maps = list(script.restore(stored))
    assert len(maps) == len(stored["maps"])
    for map, stored_map in zip(maps, stored["maps"], strict=True):
        assert [f.verdict for f in map.findings] == [setting["verdict"] for setting in stored_map["settings"]]
        assert len(map.cells) == len(stored_map["settings"]), "no two settings share a cell"
