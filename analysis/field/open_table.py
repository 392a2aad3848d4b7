"""The open table: every method on every problem in one table, of ours and of what others sent, from
the bundles alone. It is a page of the site, where website/filter.js lets a reader choose rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from analysis.bundles import find_sent, list_played, played_by, read_about, read_shards
from analysis.markdown import tabulate, wrap
from cbobench.errors import printable
from cbobench.report.groups import Group, find_groups
from cbobench.report.load import Run
from cbobench.report.quantities import find_first_rounds, find_spread
from cbobench.report.tables.formats import escape_markdown
from cbobench.report.tables.table import format_number
from cbobench.results.manifest import Variant
from cbobench.words import count_noun

PAGE = "docs/field/open_table.md"  # of the site alone
TARGET = 0.01
NOISE = ("noise_f", "noise_g")
# what other columns say, or what takes the place of seeds
SAID = re.compile(r"\b(?:noise_f|noise_g|dimension|instance)=[^,\]]*,?|, [\d.]+ %$| \(.*")
HEAD = (
    *("group", "problem", "dimension", "constraints", "noise", "evaluations"),
    *("method", "seeds", "final regret", f"to {TARGET:g}"),
)
ABOUT = f"""# The open table

Every method on every problem of [the field](../field.md), and what others sent. You
choose rows by group, dimension, noise and method. [Send your results](../sending_results.md): they
stand here beside the others.

- `noise`: standard deviation on f and on every g, in spreads of f and g; `rows` where a table's
  repeated rows are the noise
- `seeds`: runs; of COCO one seed for each instance
- `final regret`: median over the seeds of f* minus the best feasible value that was evaluated,
  without noise, in spreads of f; COCO's and tables' in their own units; ∞ where half of the runs
  have no feasible point
- `to {TARGET:g}`: median of the evaluations until it is at most {TARGET:g} spreads of f (COCO:
  {TARGET:g}); ∞ where half of the runs do not get there
"""


class Row(NamedTuple):
    """What a row is about, in the order of the table's columns."""

    group: str
    problem: str
    dimension: str
    constraints: str
    noise: str
    evaluations: str
    method: str


Cells = dict[str, tuple[float, float]]
"""By cell: final regret and the evaluation that reached the target, ∞ where there is none."""


def name_problem(label: str) -> str:
    """A problem's label without what other columns say."""
    return SAID.sub("", label).replace(",]", "]").replace("[]", "")


def name_section(shard: str) -> str:
    """The group of a shard: the first word of its name, of COCO with the dimension."""
    return re.findall(r"coco-\d+|[^-]+", shard)[0]


def describe_noise(variant: Variant, group: Group) -> str:
    """The deviations of a problem's noise, once where they are the same."""
    deviations = {f"{variant.settings[name]:g}" for name in NOISE if name in variant.settings}
    is_table = any(action is not None for action in group.words("recommended_action"))
    return " / ".join(sorted(deviations)) or ("rows" if is_table else "0")


def find_dimension(variant: Variant, group: Group) -> int:
    """How many inputs a problem has."""
    if variant.inputs is not None:
        return len(variant.inputs)
    points = [x for x in group.words("recommended_x") if x is not None]
    return len(points[0]) if points else 0


def count_constraints(group: Group) -> int:
    """How many constraints a problem has."""
    values = [g for g in group.words("recommended_g") if g is not None]
    return len(values[0]) if values else 0


def read_cells(group: Group, first: dict[str, Any]) -> Cells:
    """What the cells of a group say, by cell; `first` has their evaluations to the target."""
    cells = group.words("cell").tolist()
    finals = np.nan_to_num(group.numbers("simple_regret"), nan=np.inf)
    reached = [float(np.nan_to_num(first[cell][0], nan=np.inf)) for cell in cells]
    return dict(zip(cells, zip(finals.tolist(), reached, strict=True), strict=True))


def read_rows(
    bundle: Path, is_ours: bool, sections: dict[tuple[str, int], str]
) -> Iterator[tuple[Row, Cells]]:
    """The rows of a bundle.

    Args:
        sections: the group of each problem so far, by key and horizon; those of ours are added.
            What others play of these stands in the same group, else in one of the bundle's name.
    """
    run = Run(bundle)
    variants, groups = run.record.variants("problems"), [one for one in find_groups(run) if one.n]
    goals = {
        cell: np.array([TARGET * find_spread(variants[group.problem])])
        for group in groups
        for cell in group.words("cell").tolist()
    }
    first = find_first_rounds(run, goals)
    for group in groups:
        variant = variants[group.problem]
        if is_ours:
            sections.setdefault((variant.key, group.horizon), name_section(bundle.stem))
        row = Row(
            sections.get((variant.key, group.horizon), bundle.stem),
            name_problem(group.problem_label),
            str(find_dimension(variant, group)),
            str(count_constraints(group)),
            describe_noise(variant, group),
            str(group.horizon),
            group.algorithm_label + ("" if is_ours else f" ({bundle.stem})"),
        )
        yield row, read_cells(group, first)


def read_table(bundles: Iterable[Path], sent: Iterable[Path] = ()) -> dict[Row, Cells]:
    """All rows, problems in the order of the bundles and methods by their final regret."""
    values: dict[Row, Cells] = {}
    sections: dict[tuple[str, int], str] = {}
    for bundle in (*bundles, *sent):
        for row, cells in read_rows(bundle, bundle not in sent, sections):
            values.setdefault(row, {}).update(cells)
    places = {row[:6]: place for place, row in reversed([*enumerate(values)])}
    return dict(
        sorted(values.items(), key=lambda item: (places[item[0][:6]], *find_medians(item[1])))
    )


def find_medians(cells: Cells) -> tuple[float, float]:
    """The medians of final regret and of the evaluations to the target."""
    finals, reached = zip(*cells.values(), strict=True)
    return float(np.median(finals)), float(np.median(reached))


def render_table(bundles: Sequence[Path], sent: Sequence[Path]) -> str:
    """The page, of our bundles and of those that were sent."""
    lines = []
    for row, cells in read_table(bundles, sent).items():
        final, reached = find_medians(cells)
        numbers = format_number(final), format_number(reached, is_count=True)
        lines.append(
            [*(escape_markdown(printable(text)) for text in row), str(len(cells)), *numbers]
        )
    # Each cell of an aligned column would say so in the site's HTML, a third of it all.
    table = tabulate(HEAD, lines).replace(":--", "---")
    parts = [ABOUT, f"{table}\n"]
    if sent:
        parts.append("Sent by others, named behind the method:\n")
        parts.append("".join(map(describe_bundle, sent)))
    return "\n".join(parts)


def render_page() -> str:
    """The page of the site, of all bundles that there are."""
    return render_table(list_played(read_shards("field")), find_sent())


def describe_bundle(bundle: Path) -> str:
    """A line on a bundle that was sent."""
    about = read_about(bundle)
    cells = count_noun(about["cells"]["done"], "cell")
    link = f"[{bundle.stem}](../../published/{bundle.name})"
    return wrap(f"- {link}: {cells}, played by {escape_markdown(played_by(about))}")
