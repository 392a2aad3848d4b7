"""docs/field.md and a page for each group below it: what the shards of published show, from the
bundles alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from analysis.bundles import Shard, list_missing, read_shards, tabulate_bundles
from analysis.field import tables
from analysis.field.groups import GROUPS
from analysis.field.numbers import Field, open_fields
from analysis.field.settings import describe_play, describe_settings
from analysis.folders import DOCS, PROSE, ROOT
from analysis.markdown import fill_sections, tabulate, wrap
from cbobench.report.field import GROUPS as BEGINNINGS
from cbobench.report.field import group_of
from cbobench.report.load import Run
from cbobench.report.quantities import quantities
from cbobench.report.tables.duels import FLOORS
from cbobench.words import count_noun

PAGE = DOCS / "field.md"
FOLDER = PAGE.with_suffix("")  # with a page and a picture for each group
README = ROOT / "README.md"
ANSWERS = DOCS / "which_method.md"
CHOSEN = "../field.md#what-was-chosen-on-what"
FRONT = PROSE / "field.md"  # what the front page says beside tables


def command(words: str) -> str:
    """The call of `cbobench compare` that prints what is above it."""
    return f"`cbobench compare $SHARDS {words}`"


def describe_standing(field: Field) -> str:
    """How ours stand one against one, a sentence each."""
    return " ".join(tables.describe_standing(field, name) for name in field.heads)


def write_duels(field: Field) -> str:
    """The section on ours one against one."""
    metric, _ = field.section.tables[0]
    floors = [Run(bundle).record.floor for bundle in field.bundles]
    stated = f"stated before {floors.count(tables.HEADLINE)} of {len(floors)} bundles were played"
    said = f"By a floor of {tables.HEADLINE:g} spreads of f, {stated}: {describe_standing(field)}"
    first = field.heads[0]
    listed = " ".join(f"{floor:g}" for floor in FLOORS)
    printed = command(f"--metric {metric} --against {first} --floor {listed}")
    said += (
        f" A cell has the problems that `{first}` wins/ties/loses, by the median difference over "
        "shared seeds, and p (Wilcoxon, problems as strata, Holm); + it is significantly better, "
        f"- worse. Infeasible or failed is worst. Printed, with ranks, by {printed}; the columns "
        "of earlier rounds t with `--rounds`."
    )
    return f"## One against one\n\n{wrap(said)}\n{tables.tabulate_duels(field, first)}"


def describe_evaluations(field: Field) -> str:
    """What a user pays, and how to print it."""
    unit = "in units of f" if field.section.absolute else "in spreads of f"
    target = field.section.targets[1]
    example, spread = next(iter(field.spreads.items()))
    only = "" if field.is_alike else f" --only '{example}/*'"
    printed = command(f"--union --metric rounds_to_target --target {target * spread:g}{only}")
    return (
        f"*to {target:g}*: evaluations until the best feasible point so far, judged without noise, "
        f"is so near the optimum ({unit}). It is the median over problems of medians over a "
        "method's own seeds, ∞ where half of them never get there; in brackets, on how many "
        f"problems the target is reached. Printed by {printed}."
    )


def write_methods(field: Field) -> str:
    """The section on every method: where it ends, what a user pays, what it costs."""
    said = []
    for metric, words in field.section.tables:
        ranks = field.rank(metric)
        said.append(f"{quantities()[metric].label}: {words}")
        missing = [f"`{name}`" for name in field.methods if name not in ranks.index]
        if len(ranks) and missing:
            said.append(f"Without a rank, as not played everywhere: {', '.join(missing)}.")
    if len(ranks):
        said.append(
            "A rank is the mean over problems of ranks by the median, on the "
            f"{count_noun(ranks['seeds'].iloc[0], 'seed')} that all ranked methods share. A solver "
            "is ranked once, by its best variant in these very plays. Its other variants stand "
            "below; in brackets is the rank that one would have in place of the best."
        )
    costs = (
        "*ms a round* is CPU time of the process, in bundles of commits before 9aa339b of its "
        "thread, on the CPUs below, which differ. We repeat the run of SciPy's solvers at every "
        "round, so theirs is not what they cost by themselves."
    )
    paragraphs = [" ".join(filter(None, said)), describe_evaluations(field), costs]
    parts = ["## Method by method\n", *map(wrap, paragraphs), tables.tabulate_methods(field)]
    return "\n".join(parts)


def describe_picture(field: Field) -> str:
    """What the picture of a group shows."""
    unit = "units" if field.section.absolute else "spreads"
    targets = f"from 100 to 1e-6 {unit} of f" if field.is_alike else "from 1 to 0.001 times |f*|"
    return (
        f"The share of pairs of a run and a target ({targets}) that the best feasible point so far "
        "reaches, over evaluations, on the seeds that all methods share. In colour are ours and "
        "the rivals that come first in the table of methods; grey are the others."
    )


def render_group(field: Field, shards: Mapping[str, Shard]) -> str:
    """The page of one group."""
    section, name = field.section, field.name
    suites = sorted({f"`{shards[bundle.stem]['suite']}`" for bundle in field.bundles})
    said = (
        f"The suite {' and '.join(suites)}: {describe_play(field.run)}",
        section.words,
        describe_settings(field.run),
    )
    files = " ".join(bundle.name for bundle in field.bundles)
    listed = {one: shard for one, shard in shards.items() if group_of(one) == name}
    return "\n".join(
        [
            f"# {section.title}\n",
            wrap(f"{' '.join(filter(None, said))} [All groups](../field.md)."),
            f"![Share of targets reached over evaluations]({name}.png)\n",
            wrap(describe_picture(field)),
            write_duels(field),
            wrap(f"Of this group: {list_missing(listed)}"),
            write_methods(field),
            "## What was looked at before\n",
            wrap(f"{section.seen[0].upper()}{section.seen[1:]} ([all of it]({CHOSEN}))."),
            "## The bundles\n",
            tabulate_bundles([bundle.stem for bundle in field.bundles], "../../published"),
            "Commands of this page, from a clone:\n",
            f'```bash\ncd published\nSHARDS="{files}"\n```\n',
        ]
    )


def tabulate_groups(fields: Mapping[str, Field]) -> str:
    """A row per group: what is played, and how ours stand one against one."""
    lines = []
    for name, section in GROUPS.items():
        if name not in fields:
            lines.append([section.title, "–", "–", "not played yet"])
            continue
        field = fields[name]
        counts = (len(field.problems), len(field.methods))
        link = f"[{section.title}](field/{name}.md)"
        lines.append([link, *map(str, counts), describe_standing(field)])
    return tabulate(("group", "problems", "methods", "one against one"), lines, "lrrl")


def list_standings(fields: Mapping[str, Field]) -> str:
    """README's list: for each group a sentence, and the command that prints the test. The held-out
    one is the headline, and those without noise in few dimensions are on pages alone.
    """
    lines = [
        f"- [{field.section.title}](docs/field/{name}.md): {describe_standing(field)} `cbobench "
        f"compare $CLONE/published/{BEGINNINGS[name]}*.zip --metric {field.section.tables[0][0]} "
        f"--against {field.heads[0]} --floor {tables.HEADLINE:g}`"
        for name, field in fields.items()
        if not name.startswith(("held", "low"))
    ]
    return "\n".join(wrap(line).rstrip().replace("\n", "\n  ") for line in lines)


def describe_method(field: Field, name: str) -> str:
    """A method, what its rounds take, and on how many seeds that rests."""
    groups = field.methods[name]
    seeds = count_noun(min(group.n for group in groups), "seed")
    return f"`{name}` ({tables.sum_up_costs(groups)[1]} ms, {seeds})"


def tabulate_answers(fields: Mapping[str, Field]) -> str:
    """A row per group: the solver of the first rank, those that are not significantly worse, and
    what their rounds take.
    """
    lines = []
    for name, field in fields.items():
        first = tables.list_solvers(field).index[0]
        named = (first, *tables.find_equals(field, first))
        best, *others = (describe_method(field, one) for one in named)
        lines.append(
            [f"[{field.section.title}](field/{name}.md)", best, ", ".join(others) or "none"]
        )
    return tabulate(("problems", "first by rank", "not significantly worse"), lines)


def render_pages(shards: Mapping[str, Shard], fields: Mapping[str, Field]) -> dict[Path, str]:
    """Every page with what the bundles say, by its file."""
    front = {"groups": tabulate_groups(fields), "missing": wrap(list_missing(shards)).rstrip()}
    pages = {PAGE: fill_sections(FRONT.read_text(encoding="utf-8"), front.get)}
    pages |= {FOLDER / f"{name}.md": render_group(field, shards) for name, field in fields.items()}
    standings = {
        "headline": wrap(describe_standing(fields["held_out"])).rstrip(),
        "standings": list_standings(fields),
    }
    answers = {"answers": tabulate_answers(fields)}
    pages[ANSWERS] = fill_sections(ANSWERS.read_text(encoding="utf-8"), answers.get)
    pages[README] = fill_sections(README.read_text(encoding="utf-8"), standings.get)
    return pages


def write_pages() -> None:
    """Write all pages from the bundles."""
    shards = read_shards("field")
    for path, text in render_pages(shards, open_fields(shards)).items():
        path.write_text(text, encoding="utf-8")
