"""What published/ stores: pages are current, findings are of claims and suites as they are,
figures can be drawn.
"""

from __future__ import annotations

import json
import re

import matplotlib as mpl
import pytest

from analysis import bundles
from analysis.papers import gallery, maps, reproduction
from analysis.papers.figures import play
from cbobench.papers.claim_tables import as_record, claims_of, evaluate
from cbobench.replay.replay import replay
from cbobench.results.export import export
from tests.helpers import long

mpl.use("Agg")
OWN_NUMBERS = (  # names and the papers' own words, which are no measurements of ours
    r"\[\[.*?\]\]",
    r"“[^”]*”",
    r"`[^`]*`",
    r"\b(ZJ|SE|GZL)\d+[NB]?",
    r"(Theorem|Algorithm|Figure|Proposition) \d",
    r"h = B/[24]",
    r"1 \+ 2/T",
    r"W = 100",
    r"95 %",
    r"26 % of the box",
    r"(=|>|to) 0\b",
    r"\n\|.*",  # the table of rules, whose bounds are filled in
)


@pytest.fixture(scope="module")
def stored():
    return json.loads(reproduction.STORED.read_text())


def test_the_page_is_current(stored):
    changed_rows = [row | {"verdict": "contradicted"} for row in stored["rows"]]
    text = reproduction.PAGE.read_text()
    is_current = reproduction.page(stored) == text
    assert is_current, "stale: make claims ARGS=--render"
    assert reproduction.page(stored | {"rows": changed_rows}) != text, "negative control"


def test_the_findings_are_of_these_claims_and_suites(stored):
    page = reproduction.PAGE.read_text()
    claims = {claim.id: claim for claim in claims_of()}
    assert {row["id"] for row in stored["rows"] if row["parts"]} == set(claims), (
        "stale: make claims"
    )
    for row in stored["rows"]:
        claim = claims[row["id"]]
        statement = (claim.statement, claim.source, claim.figure, claim.quote)
        assert (row["statement"], row["source"], row["figure"], row["quote"]) == statement, (
            "stale: make claims"
        )
        assert all(f"\n| {part['rule']} |" in page for part in row["parts"])
        assert not row["parts"] or row["rates"]["draws"] == reproduction.DRAWS
    assert {reproduction.paper_of(id) for id in claims} == set(reproduction.PAPERS)


def test_no_reading_holds_a_letter_against_a_best_known_setting(stored):
    letter, best = "shi-a (pocket, noiseless g)", "shi-b-fit (pocket, noisy g)"
    assert reproduction.reading_of({"where": letter}) == reproduction.LETTER
    assert reproduction.reading_of({"where": f"{best}; {best}"}) == reproduction.BEST
    assert reproduction.reading_of({"where": f"{letter}; {best}"}) is None
    mixed = [row for row in stored["rows"] if row["parts"] and not reproduction.reading_of(row)]
    assert {row["id"] for row in mixed} == {"SE3"}, "the claim across two suites"
    shown = [row for key in reproduction.primary(stored["rows"]).values() for row in key.values()]
    assert not any(row is other for row in mixed for other in shown)


def test_prose_has_no_numbers_of_its_own():
    text = reproduction.TEXT.read_text()
    for pattern in OWN_NUMBERS:
        text = re.sub(pattern, "", text)
    assert re.findall(r".*\d.*", text) == []


def test_an_unknown_value_is_refused(stored):
    assert reproduction.fill("[[ZJ3 | h = B/2 | best]]", stored["rows"]).startswith("reproduced")
    for wrong in (
        "[[ZJ3 | h = B/9 | best]]",
        "[[ZJ3N | h = B/2 | best | CKB]]",
        "[[ZJ33 | h = B/2 | best]]",
    ):
        with pytest.raises(KeyError):
            reproduction.fill(wrong, stored["rows"])


def test_a_paper_is_read_in_a_sitting():
    """At most 1,500 words per paper."""
    page = reproduction.PAGE.read_text()
    sections = re.split(r"^## ", page, flags=re.M)
    for paper in reproduction.PAPERS.values():
        (paper_section,) = [section for section in sections if section.startswith(paper)]
        assert len([word for word in paper_section.split() if word != "|"]) <= 1500


def test_what_is_stored_is_of_the_bundles_that_are_there(stored):
    digests = {name: shard["sha256"] for name, shard in bundles.read_shards("papers").items()}
    assert stored["bundles"] == digests, "stale: make claims ARGS=--render"


def test_the_page_names_the_commit_whose_replay_confirmed_each_bundle():
    page = reproduction.PAGE.read_text()
    for suite in bundles.read_shards("papers"):
        assert bundles.is_confirmed(suite), f"make claims ARGS='{suite} --confirm'"
        assert f"| {bundles.read_confirmed()[suite]['commit'][:7]} (10 cells) |" in page


def parts_of(record):
    """What is measured of a claim in a setting; a verdict depends on simulated replications,
    too.
    """
    numbers = ("what", "value", "low", "high", "n", "expected")
    return [{name: part[name] for name in numbers} for part in record["parts"]]


CHEAPEST = [  # of each paper, of those that need no recorded data
    "zhou_ji_2022_slack",
    "shi_eryilmaz_2022_tradeoff",
    "guo_zhu_liu_2022_classical",
]


@pytest.mark.slow
@pytest.mark.parametrize("suite", [CHEAPEST[0], *long(*CHEAPEST[1:])])
def test_a_suite_that_is_played_today_gives_the_numbers_of_the_page(suite, stored):
    """Drawn cells of its bundle are those of a play, and its claims those of the page."""
    bundle = bundles.bundle_of(suite)
    if not bundle.exists():
        pytest.skip(f"{suite} is not played yet: make claims")
    replayed = replay([str(bundle)], 3, seed=1)
    assert replayed.verdict != "differs", [outcome.text for outcome in replayed.outcomes]
    key = "id", "where", "settings"
    of_page = {tuple(row[name] for name in key): parts_of(row) for row in stored["rows"]}
    found = [as_record(one) for one in evaluate([str(bundle)], claims_of())[0] if one.parts]
    assert found
    for record in found:
        assert parts_of(record) == of_page[tuple(record[name] for name in key)]


def test_a_short_run_of_it(tmp_path, monkeypatch):
    """A suite played short gives findings of its claims, all others are not in these runs."""
    monkeypatch.setattr(bundles, "PUBLISHED", tmp_path)
    assert play("zhou_ji_2022_slack", tmp_path, seeds=2, horizon=20, cpus=0)
    assert not play("zhou_ji_2022_slack", tmp_path, seeds=0), "refused"
    export(tmp_path / "zhou_ji_2022_slack", tmp_path / "zhou_ji_2022_slack.zip")
    measured = reproduction.measured(["zhou_ji_2022_slack"], draws=5)
    rows = measured["rows"]
    assert [*measured["bundles"]] == ["zhou_ji_2022_slack"]
    assert {row["id"] for row in rows if row["parts"]} == {"ZJ1", "ZJ8"}
    assert [id for id, _ in reproduction.primary(rows)] == ["ZJ8"]


def test_sentences_on_the_map_are_counted_in_its_table():
    """By hand, from the lines of maps.csv."""
    settings = maps.read_settings()
    assert maps.count_whole("SE1", "keep: true") == "6 of 7"
    assert maps.count_whole("SE1", "keep: false; first: null") == "0 of 7"
    assert maps.share_of_parts("SE1B", "c: 3.0") == "50%"
    assert maps.share_of_parts("SE1B", "c: 3.0") != maps.share_of_parts("SE1B"), "negative control"
    with pytest.raises(KeyError, match="no setting with c: 7"):
        maps.select_settings("SE1B", "c: 7")
    assert (settings["holds"] <= settings["of"]).all()
    assert "commit " in maps.STORED.read_text().partition("\n")[0]


def test_every_figure_has_claims_with_verdicts(stored):
    primary_claims = reproduction.primary(stored["rows"])
    for figure in gallery.read_figures():
        assert figure.says
        assert figure.decides
        assert all(claim in primary_claims for claim in figure.claims), figure
