"""Reading a run: its state, tables, figures, pages and claims.

pandas is imported only by commands that need it.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from cbobench.cli.arguments import tell
from cbobench.cli.maintenance import import_if_asked
from cbobench.cli.parser import UNDECIDED
from cbobench.errors import Misuse
from cbobench.words import count_noun

if TYPE_CHECKING:
    from cbobench.report.load import Run

# Words of the command line, not of a comparison.
OWN = ["command", "handler", "format", "size", "intervals", "run", "other", "union", "imports"]


def do_compare(options: argparse.Namespace, command_line: list[str]) -> int:
    """`cbobench compare`."""
    from cbobench.report.compare import compare
    from cbobench.report.load import open_readable
    from cbobench.report.selection import Selection

    import_if_asked(options, options.run, *options.other)
    settings = {k: v for k, v in vars(options).items() if k not in OWN}
    # Tables of their own are never of what changed, so that several runs can only be meant as one.
    is_union = any(getattr(options, word) for word in ("union", "ranks", "against"))
    runs = [options.run, *options.other]
    left_out = list[str]()
    if len(runs) > 2 and not is_union:
        raise Misuse(
            f"{len(runs)} runs are given; allowed: two, for what changed from the "
            "first to the second, or "
            "--union for one table of all"
        )
    if options.format == "latex" and not (options.metric or options.all):
        # A column of a page has room for one.
        settings["metric"] = Selection.of(options.run, options.only).shown[0].name
    compared = runs
    if is_union and options.other:
        run, left_out = open_readable(runs)
        compared = [run]
    comparison = compare(*compared, **settings)
    print(comparison.render(options.format, None, options.size, options.intervals))
    lines = [f"left out: {line}" for line in left_out]
    if options.format in ("csv", "json"):  # a table says it below
        lines = [f"not played: {line}" for line in comparison.unplayable] + lines
    if comparison.nothing:
        lines.append(f"nothing of {' and '.join(runs)} can be compared: {comparison.nothing}")
    for line in filter(None, [*lines, comparison.undecided]):
        tell(line)
    if comparison.worse or comparison.nothing or left_out:
        return 1
    if comparison.undecided:
        return UNDECIDED
    return 0


def do_best(options: argparse.Namespace, command_line: list[str]) -> int:
    """`cbobench best`."""
    from cbobench.report.tables.best import best

    print(best(options.run, top=options.top, only=options.only).render(options.format))
    return 0


def join_field(run: Run, group: str, published: Path | None) -> tuple[Run, list[str]]:
    """A run beside a group of the field, and whose curves are in colour: its own methods and the
    best of the others, by title.
    """
    from cbobench.report.field import count_asked, open_beside
    from cbobench.report.figures.figures import MOST, rank_titles

    joined = open_beside(run, group, published)
    # Beside the field are those of the run alone that played one of its problems.
    keys = {variant.key for variant in run.record.variants("algorithms").values()}
    variants = joined.record.variants("algorithms")
    own_titles = [title for title, variant in variants.items() if variant.key in keys]
    rivals = [title for title in variants if title not in own_titles]
    if count := count_asked(run, group):
        tell(count)
    return joined, [*own_titles, *rank_titles(joined, rivals)][:MOST]


def do_figures(options: argparse.Namespace, command_line: list[str]) -> int:
    """`cbobench figures`."""
    from cbobench.report.figures.figures import (
        DrawOptions,
        describe_files,
        draw_all,
        problems_played,
    )
    from cbobench.report.figures.style import size_of
    from cbobench.report.load import Run
    from cbobench.results.folder import as_run_folder

    size_of(options.width, 1, options.font)  # refused before anything is read
    import_if_asked(options, options.run)
    folder = as_run_folder(
        options.run,
        "recipes draw rounds that no bundle holds; give the run folder, or use cbobench.plot",
    )
    finished = Run(folder)
    place = Path(folder.uri if folder.local else "", "figures")
    part = finished if options.only is None else finished.only(options.only)
    look = DrawOptions(
        options.width or options.size,
        options.statistic,
        options.font,
        options.svg,
        log="" if options.log == "none" else options.log,
        highlight=options.highlight,
        bands=options.bands,
    )
    metrics = options.metric
    if options.field is not None:
        metrics = metrics or ["simple_regret"]
        part, best = join_field(part, options.field, options.published)
        look = replace(look, highlight=options.highlight or best)
    found = []
    for figure, paths in draw_all(
        part,
        options.out or place,
        options.recipe,
        kind=options.kind,
        metrics=metrics,
        options=look,
    ):
        found.append(bool(paths))
        print(describe_files(figure, paths), file=sys.stdout if paths else sys.stderr)
    good = problems_played(part)
    labels = part.record.labels("problems")
    if absent := ", ".join(label for title, label in labels.items() if title not in good):
        tell(f"not drawn, without a good cell of T = {part.horizon:,}: {absent}")
    # A figure without files says why it is not drawn; where there is none, no recipe is about these
    # problems.
    if not found:
        none = f"{options.recipe} has no" if options.recipe else "no recipe has a"
        tell(f"nothing drawn: {none} figure of {', '.join(labels.values())}")
    if any(found):
        return 0
    return 1


def do_claims(options: argparse.Namespace, command_line: list[str]) -> int:
    """`cbobench claims`."""
    from cbobench.papers.claim_tables import claims_of, evaluate, render_findings

    import_if_asked(options, *options.runs)
    claims = claims_of(options.recipe, options.only)
    findings, left_out = evaluate(options.runs, claims, options.replicate)
    brief = not (options.long or options.parts or options.replicate)
    print(render_findings(findings, options.format, options.parts, brief=brief))
    if left_out:
        tell(f"left out, without a good cell yet: {left_out}")
    if not options.strict:
        return 0
    # A claim that was asked for and is not tested is no success, nor is a test of none.
    untested = [finding for finding in findings if not finding.parts]
    needs = count_noun(len(findings), "claim") if len(untested) == len(findings) else ""
    if options.only and untested:
        needs = "; ".join(f"{finding.claim.id} {finding.note}" for finding in untested)
    if needs:
        tell(f"not tested, as these runs hold nothing of it: {needs}")
        return 1
    verdicts = {part.verdict for finding in findings for part in finding.parts}
    return int(bool(left_out) or "contradicted" in verdicts)


def do_report(options: argparse.Namespace, command_line: list[str]) -> int:
    """`cbobench report`."""
    from cbobench.page.command import do_report as write

    import_if_asked(options, *options.runs)
    return write(options)
