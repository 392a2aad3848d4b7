"""Tests the papers' claims on the bundles of their suites, and writes reproduction.json and
docs/reproduction.md.

python -m analysis.papers.reproduction [--render]

`--render` writes the page from the stored findings and the prose of website/prose/reproduction.md.
There `[[claim | problem | reading | part]]` stands for a part's value and `[[claim | problem |
reading]]` for its verdict. `[[whole | claim | words of settings]]` stands for the number of
settings of maps.csv in which all its parts hold, `[[parts | ...]]` for the share of parts, and
`[[bound | NAME]]` for a number of cbobench/papers/rules.py. The prose has no numbers of its own.
"""

from __future__ import annotations

import argparse
import json
import math
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from analysis.bundles import bundle_of, digest_of, list_played, read_shards, tabulate_bundles
from analysis.folders import DOCS, PROSE, PUBLISHED
from analysis.markdown import tabulate
from analysis.papers import maps
from cbobench.papers import rules
from cbobench.papers.claim_tables import as_record, claims_of, count_verdicts, evaluate
from cbobench.report.tables.table import format_number

STORED, PAGE = PUBLISHED / "reproduction.json", DOCS / "reproduction.md"
TEXT = PROSE / "reproduction.md"
DRAWS = 100  # simulated replications per finding
# readings: the paper's words as they stand, and the nearest that is known
LETTER, BEST = "letter", "best"
READINGS = {LETTER: "by the letter", BEST: "as best known"}
# by the claims' ids
PAPERS = {"ZJ": "Zhou & Ji (2022)", "SE": "Shi & Eryilmaz (2022)", "GZL": "Guo, Zhu & Liu (2022)"}
Row = dict[str, Any]
Stored = dict[str, Any]
LINKED = "../published"  # from the page


def reading_of(row: Row) -> str | None:
    """Which reading a finding is of; None where it holds one method's letter against another's best
    known setting.
    """
    readings = {BEST if "-fit" in place else LETTER for place in row["where"].split("; ")}
    return readings.pop() if len(readings) == 1 else None


def problem_of(row: Row) -> str:
    """The problem of a finding in a word: its label, of several the first."""
    return str(re.findall(r"\((.*?)\)(?:; |$)", row["where"])[0])


def primary(rows: Iterable[Row]) -> dict[tuple[str, str], dict[str, Row]]:
    """By claim and problem, the finding of each reading: the first of its suite, as variants come
    after.
    """
    found: dict[tuple[str, str], dict[str, Row]] = {}
    for row in rows:
        reading = reading_of(row)
        if reading and row["parts"] and ("-slack" not in row["where"] or row["id"] == "ZJ8"):
            found.setdefault((row["id"], problem_of(row)), {}).setdefault(reading, row)
    return found


def paper_of(id: str) -> str:
    """The key of a claim's paper."""
    return re.sub(r"\d.*", "", id)


def order_of(id: str) -> tuple[int, str]:
    """Sort key: ZJ3, ZJ3N, ZJ10."""
    number = re.findall(r"\d+", id)[0]
    return int(number), id


def say_verdict(row: Row | None) -> str:
    """A verdict with its parts: "reproduced in part, 3 of 6"."""
    if row is None:
        return "–"
    parts = f", {row['held']} of {len(row['parts'])}" if len(row["parts"]) > 1 else ""
    return f"{row['verdict']}{parts}"


def link_verdict(row: Row | None) -> str:
    """A verdict as a link to the bundle of its places ("map-x (problem); ..."); of several, the
    others follow.
    """
    verdict = say_verdict(row)
    places = row["where"].split("; ") if row else []
    suites = dict.fromkeys(place.split(" (")[0].replace("-", "_") for place in places)
    links = [
        f"[{number if number > 1 else verdict}]({LINKED}/{bundle.name})"
        for number, bundle in enumerate(list_played(suites), 1)
    ]
    return " ".join(links) or verdict


def say_part(row: Row) -> str:
    """The part that decides, its value beside the paper's."""
    order = ("contradicted", "cannot tell", "stronger than claimed", "reproduced")
    part = min(row["parts"], key=lambda part: order.index(part["verdict"]))
    value = format_number(math.nan if part["value"] is None else float(part["value"]))
    needed = part["needed"]
    more = (
        f"; some {float(needed):,.0f} seeds would tell"
        if needed and math.isfinite(float(needed))
        else ""
    )
    return f"{part['what']}: {value} ({part['paper']}){more}"


def say_rates(row: Row | None) -> str:
    """The self-replication rate."""
    return (
        "–"
        if row is None or not row["rates"]
        else f"{row['rates']['holds']:.0%} / {row['rates']['contradicted']:.0%}"
    )


def claim_table(paper: str, rows: Sequence[Row]) -> str:
    """A row per claim and problem."""
    found = primary(rows)
    head = (
        "claim",
        "problem",
        "letter",
        "best known",
        "(map)",
        "the part that decides (paper)",
        "replicates itself / fails",
    )
    lines = []
    keys = [key for key in found if paper_of(key[0]) == paper]
    for id, problem in sorted(keys, key=lambda key: order_of(key[0])):
        letter, best = (found[id, problem].get(reading) for reading in (LETTER, BEST))
        last = best or found[id, problem][LETTER]
        verdicts = link_verdict(letter), link_verdict(best)
        whole = maps.count_whole(id).replace(" of ", "/") if maps.is_mapped(id) else "–"
        lines.append((id, problem, *verdicts, whole, say_part(last), say_rates(last)))
    return tabulate(head, lines, "llllllr") + "\n"


def statements(paper: str, rows: Sequence[Row]) -> str:
    """The claims of a paper, each with its quotation."""
    claims = {row["id"]: row for row in rows if paper_of(row["id"]) == paper}
    lines = []
    for id in sorted(claims, key=order_of):
        row = claims[id]
        quote = f": “{row['quote']}”" if row["quote"] else ""
        lines.append(f"- **{id}** {row['statement']}. {row['source']}{quote}")
    return "\n".join(lines) + "\n"


def write_bound(name: str) -> str:
    """A number that rules decide by, such as "SIMILAR"."""
    return f"{vars(rules)[name]:g}"


COMPUTED: dict[str, Callable[..., str]] = {
    "whole": maps.count_whole,
    "parts": maps.share_of_parts,
    "bound": write_bound,
}


def fill(text: str, rows: Sequence[Row]) -> str:
    """The prose with numbers and verdicts in place of what stands for them.

    Raises:
        KeyError: a claim, problem, reading or part that is not stored.
    """
    found = primary(rows)

    def value(match: re.Match[str]) -> str:
        words = [word.strip() for word in match[1].split("|")]
        if words[0] in COMPUTED:
            return COMPUTED[words[0]](*words[1:])
        id, problem, reading, *part = words
        row = found[id, problem][reading]
        if not part:
            return say_verdict(row)
        some = [one for one in row["parts"] if part[0] in one["what"]]
        if len(some) != 1:
            raise KeyError(
                f"{match[0]}: {len(some)} parts of {[one['what'] for one in row['parts']]}"
            )
        return format_number(float(some[0]["value"]))

    return re.sub(r"\[\[(.*?)\]\]", value, text)


def tally(rows: Sequence[Row]) -> str:
    """How many claims have which verdict on how many problems, by the letter and as best known."""
    found = primary(rows)
    lines = []
    for reading, words in (
        (LETTER, "By the letter"),
        (BEST, "As best known, the letter where no other is known"),
    ):
        some = [
            one.get(reading) or one[LETTER if reading == BEST else BEST] for one in found.values()
        ]
        lines.append(f"{words}: {count_verdicts([row['verdict'] for row in some])}.")
    claims = len({id for id, _ in found})
    return f"{claims} claims, {len(found)} claims × problems. {' '.join(lines)}\n"


def page(stored: Stored) -> str:
    """The page as Markdown."""
    rows = stored["rows"]
    head, *parts = re.split(r"^<!-- (\w+) -->\n", TEXT.read_text(encoding="utf-8"), flags=re.M)
    prose = dict(zip(parts[::2], parts[1::2], strict=True))
    title, about = fill(head, rows).split("\n", 1)
    text = ["\n\n".join([title, about.strip(), tally(rows).rstrip()])]
    for paper, name in PAPERS.items():
        text += [f"## {name}\n", fill(prose[paper], rows).strip() + "\n", claim_table(paper, rows)]
    text += ["## Claims in the papers' words\n", *(statements(paper, rows) for paper in PAPERS)]
    text += [
        "## Rules\n",
        fill(prose["rules"], rows).strip() + "\n",
        "## Bundles\n",
        fill(prose["bundles"], rows).strip() + "\n",
        tabulate_bundles(read_shards("papers"), LINKED),
    ]
    return "\n".join(text).rstrip() + "\n"


def measured(names: Sequence[str], draws: int = DRAWS) -> Stored:
    """The findings in the bundles of some suites, with their digests, as they are stored.

    Args:
        draws: simulated replications per finding.
    """
    bundles = {name: bundle_of(name) for name in names}
    found, left_out = evaluate([*map(str, bundles.values())], claims_of(), draws)
    if left_out:
        print(f"left out, without a good cell: {left_out}")
    return {
        "bundles": {name: digest_of(bundle) for name, bundle in bundles.items()},
        "rows": [as_record(one) for one in found],
    }


def main(given: Sequence[str] | None = None) -> None:
    """Write findings and page, or the page alone."""
    parser = argparse.ArgumentParser(description="The papers' claims, tested.")
    parser.add_argument("--render", action="store_true")
    if parser.parse_args(given).render:
        stored = json.loads(STORED.read_text(encoding="utf-8"))
    else:
        stored = measured([*read_shards("papers")])
        text = json.dumps(stored, indent=1, ensure_ascii=False)
        STORED.write_text(f"{text}\n", encoding="utf-8")
    PAGE.write_text(page(stored), encoding="utf-8")
    print(f"{PAGE}: {tally(stored['rows']).strip()}")


if __name__ == "__main__":
    main()
