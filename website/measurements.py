"""Tables of what was measured: those of clusters.md and speed.md from the JSON files that
`benchmarks.scale.cluster`, `benchmarks.speed.rounds` and `benchmarks.speed.curves` write; that of
papers.md, which leads from a figure to its suites, from the bundles.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from analysis.bundles import bundle_of, read_about
from analysis.folders import PUBLISHED
from analysis.markdown import tabulate
from analysis.papers import gallery
from cbobench import resources
from cbobench.suite import yamlio
from cbobench.words import duration

VARIED = {
    "seeds": "seeds S",
    "actions": "actions n",
    "constraints": "constraints m",
    "rounds": "rounds T",
    "inputs": "inputs d",
    "observations": "observations n",
}
LIBRARIES = ("NumPy", "SciPy")  # which a measurement may name
OPPONENTS = {"cei": "botorch-cei", "scbo": "botorch-scbo"}
RECORDED = {"light-sensors", "stocks"}  # problems on recorded data
NOTE = (
    "*takes*: CPU time of all seeds of the suite, as it was played for "
    "[what is reproduced](reproduction.md#bundles), which says where and by which code. "
    "ᵈ: needs recorded data."
)


def read_measured(file: str) -> dict[str, Any]:
    """What a benchmark has written."""
    found: dict[str, Any] = json.loads((PUBLISHED / file).read_text(encoding="utf-8"))
    return found


def say_origin(found: dict[str, Any]) -> str:
    """When and where a measurement was made, by which commit and which libraries."""
    libraries = [f"{name} {found[name.lower()]}" for name in LIBRARIES if name.lower() in found]
    machine = ", ".join([f"{found['cpus']} CPUs", found["cpu"], *libraries])
    return f"on {found['at'][:10]} by commit {found['commit']}; {machine}."


def tabulate_columns(columns: Mapping[str, Iterable[str]]) -> str:
    """A table of columns of texts."""
    return tabulate([*columns], zip(*columns.values(), strict=True))


def show(values: Iterable[float], template: str) -> list[str]:
    """Return numbers as texts, – where there is none."""
    return ["–" if pd.isna(value) else template.format(value) for value in values]


def tabulate_efficiency() -> str:
    """Measured: how busy nodes are kept, what a task loses, and what the driver takes."""
    found = read_measured("cluster.json")
    rows = pd.DataFrame(found["rows"])
    driver = rows["cpus"] * rows["cpu"] / (1e3 * rows["sleep"] + rows["lost"])
    columns = {
        "nodes": rows["cpus"].map("{}".format),
        "task": rows["sleep"].map("{:g} s".format),
        "tasks": rows["tasks"].map("{}".format),
        "start": rows["start"].map("{:.0f} s".format),
        "efficiency": rows["busy"].map("{:.2f}".format),
        "lost per task": rows["lost"].map("{:.0f} ms".format),
        "driver": driver.map("{:.1%}".format).str.replace("%", " %"),
        "its memory": rows["memory"].map("{:.0f} MB".format),
    }
    return f"{tabulate_columns(columns)}\n\nMeasured {say_origin(found)}"


def tabulate_opponents() -> str:
    """How long a round of ours takes on a box, and how many times as long one of BoTorch's."""
    found = read_measured("rounds.json")
    times = pd.DataFrame(found["rows"]).set_index(["method", "m", "d", "n"])["ms"].unstack("n")
    body, said = [], []
    for ours, theirs in OPPONENTS.items():
        ratio = times.loc[theirs] / times.loc[ours]
        shown = times.loc[ours].map("{:,.0f}".format, na_action="ignore")
        shown += ratio.map(" ({:,.0f} ×)".format, na_action="ignore").fillna("")
        rows = shown.fillna("–").reset_index().itertuples(index=False)
        body += [[f"`{ours}`", *map(str, row)] for row in rows]
        each = ratio.stack().dropna()
        said.append(
            f"`{ours}` against `{theirs}`: {each.median():.0f} times faster in the median, at "
            f"least {each.min():.0f}, 20 or more in {(each >= 20).sum()} of {len(each)}"
        )
    head = ["method", "constraints", "inputs", *(f"n = {n}" for n in times.columns)]
    return f"{tabulate(head, body)}\n\n{'; '.join(said)}. Measured {say_origin(found)}"


def tabulate_finite() -> str:
    """What a round on a finite set costs over what is varied, beside bare NumPy and C."""
    found = read_measured("curves.json")
    # Nothing is compiled where there is no compiler.
    rows = pd.DataFrame([{"compiled": None} | row for row in found["finite"]])
    values = [f"{row[row['curve']]:,}" for row in found["finite"]]
    inputs = rows["inputs"].map(", d = {}".format).where(rows["curve"] == "actions", "")
    columns: dict[str, Iterable[str]] = {
        "varied": rows["curve"].map(VARIED),
        "value": values + inputs,
        "features r": rows["features"].map("{:,}".format),
        "µs per seed and round": rows["us"].map("{:,.1f}".format),
        "bare NumPy": show(rows["bare"], "{:,.1f}"),
        "compiled": show(rows["compiled"], "{:.2f}"),
        "ratio": show(rows["us"] / rows["bare"], "{:.2f}"),
    }
    note = f"The least of {found['repeats']} turns, measured {say_origin(found)}"
    return f"{tabulate_columns(columns)}\n\n{note}"


def tabulate_box() -> str:
    """What a round on a box costs over what is varied."""
    found = read_measured("curves.json")
    body = []
    for row in found["box"]:
        varied = "rounds" if row["curve"] == "observations" else row["curve"]
        body.append([VARIED[row["curve"]], f"{row[varied]:,}", f"{row['ms']:,.0f}"])
    note = f"The least of {found['repeats']} turns, measured {say_origin(found)}"
    return f"{tabulate(['varied', 'value', 'ms a round'], body)}\n\n{note}"


def say_time(suite: str) -> str:
    """What the bundle of a suite cost, and a mark where it needs recorded data."""
    entries = yamlio.read(resources.suites()[suite])["problems"]
    names = {entry if isinstance(entry, str) else next(iter(entry)) for entry in entries}
    mark = " ᵈ" if names & RECORDED else ""
    return duration(read_about(bundle_of(suite))["seconds"]) + mark


def tabulate_map() -> str:
    """From a figure of a paper to its suites, what these took, and its claims."""
    head = ("figure", "by the letter", "takes", "nearest to the paper", "takes", "claims")
    rows, paper = [], ""
    for figure in gallery.read_figures():
        # The paper's name is long, and stands once.
        named = figure.number if figure.paper == paper else f"{figure.paper} {figure.number}"
        paper, fit = figure.paper, f"{figure.suite}_fit"
        claims = ", ".join(dict.fromkeys(claim for claim, _ in figure.claims))
        rows.append(
            [named, f"`{figure.suite}`", say_time(figure.suite), f"`{fit}`", say_time(fit), claims]
        )
    return f"{tabulate(head, rows)}\n\n{NOTE}"
