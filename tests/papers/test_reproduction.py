"""docs/reproduction.md is what its stored findings say, and they are of the claims as they are."""

from __future__ import annotations

import json

import reproduction as script
from paper_figures import play

from cbobench import resources
from cbobench.papers.claim_tables import claims_of


def test_the_page_is_current():
    rows = json.loads(script.STORED.read_text())
    text = script.PAGE.read_text()
    assert script.page(rows) == text, "docs/reproduction.md is stale: python docs/reproduction.py --render"
    changed = [row | {"verdict": "holds" if row["verdict"] != "holds" else "undecided"} for row in rows]
    assert script.page(changed) != text, "negative control"


def test_the_findings_are_of_these_claims_and_suites():
    rows = json.loads(script.STORED.read_text())
    claims = {claim.id: claim for claim in claims_of()}
    assert {row["id"] for row in rows} == set(claims)
    for row in rows:
        claim = claims[row["id"]]
        said = (claim.statement, claim.source, claim.figure)
        assert (row["statement"], row["source"], row["figure"]) == said, "stale: make claims"
    named = {id for paper in script.PAPERS for _, ids, _ in paper.figures.values() for id in ids}
    assert named == set(claims), "every claim belongs to a figure or to none"
    assert set(script.suites()) <= set(resources.suites())


def test_a_short_run_of_it(tmp_path):
    """A suite played short gives findings of its claims, all others are not in these runs."""
    assert play("zhou_ji_2022_slack", tmp_path, seeds=2, horizon=20, cpus=0)
    assert not play("zhou_ji_2022_slack", tmp_path, seeds=0), "refused"
    rows = script.measured([tmp_path / "zhou_ji_2022_slack"])
    assert {row["id"] for row in rows if row["parts"]} == {"ZJ1", "ZJ6", "ZJ8"}
    assert "GZL1: not in these runs" in script.page(rows)
    assert "### ZJ8: slack" in script.page(rows)
