"""docs/reproduction.md is what its stored findings say, and they are of the claims and suites as they are."""

from __future__ import annotations

import json
import re

import pytest

from cbobench import resources
from cbobench.arithmetic import PORTABLE, arithmetic_kind
from cbobench.papers.claim_tables import claims_of
from cbobench.papers.rules import RULES
from cbobench.results.source import source_hash
from docs.results import maps
from docs.results import reproduction as script
from docs.results.paper_figures import is_outdated, play

OWN_NUMBERS = (  # names and the papers' own words, which are no measurements of ours
    r"\[\[.*?\]\]", r"“[^”]*”", r"`[^`]*`", r"\b(ZJ|SE|GZL)\d+[NB]?", r"(Theorem|Algorithm|Figure|Proposition) \d",
    r"h = B/[24]", r"1 \+ 2/T", r"W = 100", r"95 %", r"26 % of the box", r"(=|>|to) 0\b",
)  # fmt: skip


@pytest.fixture(scope="module")
def stored():
    return json.loads(script.STORED.read_text())


def test_the_page_is_current(stored):
    text = script.PAGE.read_text()
    assert script.page(stored) == text, "docs/reproduction.md is stale: python -m docs.results.reproduction --render"
    changed = [row | {"verdict": "contradicted"} for row in stored["rows"]]
    assert script.page(stored | {"rows": changed}) != text, "negative control"


def test_a_page_says_at_its_top_that_its_plays_are_older_than_the_code(stored):
    """While code or arithmetic are others than today's, and no longer; by what is stored, not by a date."""
    pair = "feasible-pocket/ckb-ucb"
    todays = {"arithmetic": [PORTABLE], "sources": {pair: [source_hash(*pair.split("/"))]}}
    maps_stored = json.loads(maps.STORED.read_text())
    for page, stored_results in ((script.page, stored), (maps.page, maps_stored)):
        for played in (
            {"arithmetic": None, "sources": None},  # as files of before say it
            todays | {"sources": None},
            todays | {"arithmetic": ["native: SkylakeX, AVX512_SPR"]},
            todays | {"arithmetic": ["native: SkylakeX, AVX512_SPR", PORTABLE]},
            todays | {"sources": {pair: [*todays["sources"][pair], "0" * 16]}},
        ):
            title, warning, *_ = page(stored_results | played).split("\n\n")
            assert title.startswith("# ")
            assert warning.startswith("**Older than the code.**"), played
            assert stored_results["commit"] in warning
            assert stored_results["date"] in warning
            assert ("native" in warning) == (played["arithmetic"] != [PORTABLE])
        assert "Older than the code" not in page(stored_results | todays)
    assert ("Older than the code" in script.PAGE.read_text()) == is_outdated(stored)
    assert ("Older than the code" in maps.PAGE.read_text()) == is_outdated(maps_stored)


def test_the_findings_are_of_these_claims_and_suites(stored):
    claims = {claim.id: claim for claim in claims_of()}
    assert {row["id"] for row in stored["rows"] if row["parts"]} == set(claims), "stale: make claims"
    for row in stored["rows"]:
        claim = claims[row["id"]]
        statement = (claim.statement, claim.source, claim.figure, claim.quote)
        assert (row["statement"], row["source"], row["figure"], row["quote"]) == statement, "stale: make claims"
        assert all(part["rule"] in RULES for part in row["parts"])
        assert not row["parts"] or row["rates"]["draws"] == script.DRAWS
    assert {script.paper_of(id) for id in claims} == set(script.PAPERS)
    assert set(script.suites()) <= set(resources.suites())
    assert stored["commit"]
    assert stored["cpu_minutes"] > 1


def test_prose_has_no_numbers_of_its_own():
    text = script.PROSE.read_text()
    for pattern in OWN_NUMBERS:
        text = re.sub(pattern, "", text)
    assert re.findall(r".*\d.*", text) == []


def test_an_unknown_value_is_refused(stored):
    assert script.fill("[[ZJ3 | h = B/2 | best]]", stored["rows"]).startswith("reproduced")
    for wrong in ("[[ZJ3 | h = B/9 | best]]", "[[ZJ3N | h = B/2 | best | CKB]]", "[[ZJ33 | h = B/2 | best]]"):
        with pytest.raises(KeyError):
            script.fill(wrong, stored["rows"])


def test_a_paper_is_read_in_a_sitting():
    """At most 1,500 words per paper, and 8,000 with the maps."""
    page = script.PAGE.read_text()
    sections = re.split(r"^## ", page, flags=re.M)
    for paper in script.PAPERS.values():
        (paper_section,) = [section for section in sections if section.startswith(paper)]
        assert len([word for word in paper_section.split() if word != "|"]) <= 1500
    assert len(page.split()) + len(maps.PAGE.read_text().split()) <= 8000


def test_a_short_run_of_it(tmp_path, monkeypatch):
    """A suite played short gives findings of its claims, all others are not in these runs."""
    monkeypatch.setattr(script, "DRAWS", 5)
    assert play("zhou_ji_2022_slack", tmp_path, seeds=2, horizon=20, cpus=0)
    assert not play("zhou_ji_2022_slack", tmp_path, seeds=0), "refused"
    measured = script.measured([tmp_path / "zhou_ji_2022_slack"])
    rows = measured["rows"]
    assert {pair.partition("/")[0] for pair in measured["sources"]} == {"rkhs-1d"}
    assert not is_outdated(measured | {"arithmetic": [PORTABLE]})
    assert measured["arithmetic"] == [arithmetic_kind()]
    assert measured["cpus"]
    assert {row["id"] for row in rows if row["parts"]} == {"ZJ1", "ZJ8"}
    assert [id for id, _ in script.primary(rows)] == ["ZJ8"]
