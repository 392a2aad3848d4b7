"""docs/field.md and a page for each group below it: what the shards of published show, from the
bundles alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from analysis.bundles import (
    describe_play,
    describe_rest,
    describe_settings,
    tabulate_shards,
)
from analysis.field import tables as tables
from analysis.field.groups import GROUPS, RECOMMENDED, REFERENCE, page_of
from analysis.field.numbers import Field, find_noise, open_fields
from analysis.folders import DOCS, PROSE, ROOT
from analysis.markdown import fill_sections, tabulate, wrap
from cbobench.report.quantities import quantities
from cbobench.report.tables.paired import differences
from cbobench.stats.paired_tests import decidable
from cbobench.words import count_noun

PAGE = DOCS / "field.md"
FOLDER = PAGE.with_suffix("")  # with a page and a picture for each group
README = ROOT / "README.md"
FRONT = PROSE / "field.md"  # what the front page says beside tables


def command(words: str) -> str:
    """The call of `cbobench compare` that prints what is above it."""
    return f"`cbobench compare $SHARDS {words}`"


def against(titles: Sequence[str]) -> str:
    """The options that compare with some methods."""
    return " ".join(
        f"--against '{title}'" if "[" in title else f"--against {title}" for title in titles
    )


def name_own(field: Field) -> list[str]:
    """Ours as `--against` takes them."""
    labels = field.run.record.labels("algorithms")
    return [labels[title] for title in field.own]


def write_defeats(field: Field) -> str:
    """The section on where ours lose."""
    if not field.own or not field.rivals:
        metric, _ = field.section.tables[0]
        return f"## Where ours lose\n\n{tables.describe_defeats(field, metric)}\n"
    parts = ["## Where ours lose\n"]
    for metric, _ in field.section.tables:
        label = quantities()[metric].label
        best = [pair for pair in field.pair_best(metric) if pair.is_defeat]
        listed = {(pair.problem, pair.rival) for pair in best}
        beside = [
            pair
            for pair in field.pair_reference(metric)
            if pair.is_defeat and (pair.problem, pair.rival) not in listed
        ]
        said = f"{label}. {tables.describe_defeats(field, metric)}"
        parts += [wrap(said), tables.tabulate_rivals(field, metric)]
        if best and not field.section.absolute:
            parts += ["Beside the best of ours:\n", tables.list_defeats(best)]
        if beside and not field.section.absolute:
            words = f"Beside `{REFERENCE}` alone, where another of ours is better than the rival:\n"
            parts += [words, tables.list_defeats(beside)]
        parts.append(wrap(describe_tests(field, metric)))
    return "\n".join(parts)


def describe_tests(field: Field, metric: str) -> str:
    """What the columns of a table of rivals mean, and what prints them."""
    pairs = field.pair_best(metric)
    tests = len(differences(field.select(metric), field.own))
    most = max(pair.seeds for pair in pairs)
    words = (
        "The best of ours is that with the best median on a problem over the seeds that the rival "
        "has, too, by these very runs, which flatters ours. Medians are over the seeds that both "
        "have; *w/t/l* counts seeds in which "
        "the rival is better, equal, worse. *p* is "
        "of Wilcoxon's signed-rank test; of a rival over all problems, which are strata, with "
        "Holm's adjustment over the rivals. "
    )
    if not field.section.absolute:
        words += f"Of one problem it is adjusted over all {tests} comparisons of methods"
        words += (
            f", of which none can come out with {count_noun(most, 'seed')}. "
            if not decidable(most, tests)
            else ". "
        )
    options = f"--metric {metric} {against(name_own(field))}"
    return f"{words}Problem by problem printed by {command(options)}."


def write_evaluations(field: Field) -> str:
    """The section on what a user pays."""
    unit = "in units of f" if field.section.absolute else "in spreads of f"
    words = (
        "Evaluations until the best feasible point that was evaluated, judged without noise, is "
        f"so near the optimum ({unit}): the median over a method's own seeds, ∞ where half of them "
        "never get there. Each cell has the median over the problems, and on how many of them "
        "the target is reached."
    )
    parts = ["## Evaluations to reach\n", wrap(words), tables.tabulate_targets(field)]
    if not field.section.absolute:
        listed = " / ".join(f"{target:g}" for target in field.section.targets)
        parts += [f"Problem by problem, to {listed}:\n", tables.tabulate_evaluations(field)]
    target = field.section.targets[1]
    example, spread = next(iter(field.spreads.items()))
    only = "" if field.is_alike else f" --only '{example}/*'"
    words = command(f"--union --metric rounds_to_target --target {target * spread:g}{only}")
    said = f"For the target {target:g}{f' of {example}' if only else ''} printed by {words}."
    if only:
        listed = ", ".join(f"{value:g} on {problem}" for problem, value in field.spreads.items())
        said += f" Spreads of f over the configurations of each table: {listed}."
    return "\n".join([*parts, wrap(said)])


def describe_floor(field: Field) -> str:
    """How fine noise lets a value be known; empty where there is no noise, or where it is not
    known.
    """
    horizon = max(group.horizon for group in field.groups)
    said = [
        f"{level / horizon**0.5:.2g} at noise of {100 * level:g} %" for level in find_noise(field)
    ]
    return (
        f"The floor: even all {horizon} evaluations of one point tell its value only up to a "
        f"deviation of {' and '.join(said)}; smaller differences are beyond what values can tell."
        if said
        else ""
    )


def write_final(field: Field) -> str:
    """The section on where methods end, and their ranks."""
    parts = ["## Where they end\n"]
    for metric, words in field.section.tables:
        ranks, seeds = field.rank(metric)
        said = [f"{quantities()[metric].label}. {words}"]
        if metric == RECOMMENDED:
            said.append(describe_floor(field))
        if ranks:
            said.append(
                f"Ranks are means over problems of a method's rank by its median over the "
                f"{count_noun(seeds, 'seed')} that all ranked methods share."
            )
        missing = [f"`{name}`" for name in field.methods if name not in ranks] if ranks else []
        if missing:
            said.append(f"Without a rank, as some problem was not played: {', '.join(missing)}.")
        if not field.section.absolute:
            said.append(
                "The other columns are medians over a method's own seeds with their interval. "
                "\\* no method is significantly better (Wilcoxon, Holm); a method with too few "
                "seeds for any test has no mark. Bold is the best of the marked ones over the "
                "seeds that all methods share."
            )
        show = tables.sum_up if field.section.absolute else tables.tabulate_final
        printed = f"{command(f'--union --metric {metric}')}; ranks: "
        printed += command(f"--ranks --metric {metric}")
        parts += [
            wrap(" ".join(filter(None, said))),
            show(field, metric),
            wrap(f"Printed by {printed}."),
        ]
    return "\n".join(parts)


def describe_picture(field: Field) -> str:
    """What the picture of a group shows."""
    unit = "units" if field.section.absolute else "spreads"
    targets = f"from 100 to 1e-6 {unit} of f" if field.is_alike else "from 1 to 0.001 times |f*|"
    said = (
        f"Share of pairs of a run and a target, {targets}, that are reached over evaluations, by "
        "the best feasible point and on the seeds that all methods share. Grey are those that are "
        "neither ours nor among the best."
    )
    has_command = field.section.absolute or not field.is_alike
    return (
        f"{said} Over all seeds it is printed by {command('--profile')}." if has_command else said
    )


def render_group(field: Field, shards: Mapping[str, Mapping[str, Any]]) -> str:
    """The page of one group."""
    section, name = field.section, page_of(field.name)
    runs = [field.run]
    said = describe_play(runs), section.words, describe_settings(runs)
    files = " ".join(bundle.name for bundle in field.bundles)
    return "\n".join(
        [
            f"# {section.title}\n",
            wrap(f"{' '.join(filter(None, said))} [All groups](../field.md)."),
            f"![Share of targets reached over evaluations]({name}.png)\n",
            wrap(describe_picture(field)),
            write_defeats(field),
            write_evaluations(field),
            write_final(field),
            "## What it costs\n",
            wrap(
                "*ms a round* is CPU time of the thread that plays. After a *failed fit* ours went "
                "on with the model that they had before, and BoTorch's with the parameters that "
                "its fit begins with."
            ),
            tables.list_costs(field),
            "## The shards\n",
            tabulate_shards(field.bundles, shards),
            "Commands of this page, from a clone:\n",
            f'```bash\ncd published\nSHARDS="{files}"\n```\n',
        ]
    )


def tabulate_groups(fields: Mapping[str, Field]) -> str:
    """A row per group: what is played, who is first, and where ours lose."""
    lines = []
    for name, section in GROUPS.items():
        if name not in fields:
            lines.append((section.title, *4 * ("–",), "not played yet"))
            continue
        field = fields[name]
        metric, _ = section.tables[0]
        ranks, seeds = field.rank(metric)
        cells = sum(group.n for group in field.groups)
        first = f"`{next(iter(ranks))}` ({count_noun(seeds, 'seed')})" if ranks else "–"
        lines.append(
            (
                f"[{section.title}](field/{page_of(name)}.md)",
                *(f"{len(field.problems)}", f"{len(field.methods)}", f"{cells:,}", first),
                tables.describe_defeats(field, metric),
            )
        )
    head = ("group", "problems", "methods", "runs", "first by rank", "where ours lose")
    return tabulate(head, lines, "lrrrll")


def list_losses(fields: Mapping[str, Field]) -> str:
    """README's list: a sentence for each group in which ours lose somewhere, and one on the
    others.
    """
    lines, unbeaten = [], []
    for name, field in fields.items():
        if not field.rivals or not field.own:
            continue
        metric, _ = field.section.tables[0]
        link = f"[{field.section.title}](docs/field/{page_of(name)}.md)"
        if any(pair.is_defeat for pair in field.pair_best(metric)):
            lines.append(f"- {link}: {tables.describe_defeats(field, metric)}")
        else:
            unbeaten.append(link)
    if unbeaten:
        lines.append(f"- {'; '.join(unbeaten)}: No rival has a better median on any problem.")
    return "\n".join(wrap(line).rstrip().replace("\n", "\n  ") for line in lines)


def list_missing(folder: Path, shards: Mapping[str, Mapping[str, Any]]) -> str:
    """Which shards are not played yet, and what is missing of those that were begun."""
    bundles = {name: folder / f"{name}.zip" for name in shards}
    unplayed = [f"`{name}`" for name, bundle in bundles.items() if not bundle.exists()]
    rests = [
        describe_rest(bundle, shards[name]) for name, bundle in bundles.items() if bundle.exists()
    ]
    said = []
    if any(rests):
        said.append(f"Missing of shards that were begun: {', '.join(filter(None, rests))}.")
    if unplayed:
        said.append(f"Not played yet: {', '.join(unplayed)}.")
    return wrap(" ".join(said) or "All are played.").rstrip()


def render_pages(
    folder: Path, shards: Mapping[str, Mapping[str, Any]], fields: Mapping[str, Field]
) -> dict[Path, str]:
    """Every page with what the bundles of a folder say, by its file."""
    front = {"groups": tabulate_groups(fields), "missing": list_missing(folder, shards)}
    pages = {PAGE: fill_sections(FRONT.read_text(encoding="utf-8"), front.get)}
    pages |= {
        FOLDER / f"{page_of(name)}.md": render_group(field, shards)
        for name, field in fields.items()
    }
    losses = {"losses": list_losses(fields)}
    pages[README] = fill_sections(README.read_text(encoding="utf-8"), losses.get)
    return pages


def write_pages(folder: Path, shards: Mapping[str, Mapping[str, Any]]) -> None:
    """Write all pages from the bundles of a folder."""
    FOLDER.mkdir(exist_ok=True)
    for path, text in render_pages(folder, shards, open_fields(folder, shards)).items():
        path.write_text(text, encoding="utf-8")
