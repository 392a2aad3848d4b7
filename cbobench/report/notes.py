"""What a reader must know of the cells behind a table or a figure: the one place where such notes
are made.
"""

from __future__ import annotations

from collections.abc import Container

import numpy as np

from cbobench.report.groups import Group, gather
from cbobench.report.quantities import LACKS, describe_unlike
from cbobench.report.selection import Selection
from cbobench.report.setups import describe_apart, describe_arithmetic, describe_horizons
from cbobench.results.manifest import VARIANT_KINDS, short
from cbobench.words import count_noun


def collect_notes(selection: Selection, compared: list[Group]) -> list[str]:
    """What to know of a table, a sentence each.

    Args:
        compared: the groups that are compared with another one.
    """
    record = selection.run.record
    notes = describe_apart(selection.every_shown, compared)
    if selection.horizon is None and len(selection.groups) < len(selection.every_group):
        titles = dict.fromkeys(group.problem for group in selection.groups)
        notes.append(describe_horizons(selection.part, titles))
    notes += selection.setups
    notes += describe_lacks(selection)
    # What labels leave out as all problems, or all methods, share it.
    for kind in VARIANT_KINDS:
        if shared := record.shared(kind):
            settings = [f"{name} = {short(value)}" for name, value in shared.items()]
            notes.append(f"all {kind}: {', '.join(settings)}")
    if selection.metric:
        problems = [group.problem for group in selection.groups]
        shown = [quantity.name for quantity in selection.shown]
        notes += describe_unlike(selection.run, problems, shown)
    return notes + describe_cells(selection, selection.groups)


def describe_cells(selection: Selection, groups: list[Group]) -> list[str]:
    """What to know of some cells, whatever is shown of them: failures, overlaps, arithmetic, and
    what a suite says of its methods and cannot play.
    """
    run = selection.run
    notes = describe_failures(groups)
    shared, apart = run.shared
    if shared:
        notes.append(f"{count_noun(shared, 'cell')} of several runs: the first named counts")
    if apart:
        notes[-1] += f", though the results of {apart:,} differ"
    variants = run.record.variants("algorithms")
    said = dict.fromkeys(variants[group.algorithm].note for group in groups)
    notes += filter(None, said)
    notes += describe_arithmetic(groups)
    notes += [f"not played: {line}" for line in selection.unplayable]
    return [*notes, *run.record.leftovers]


def describe_failures(groups: list[Group]) -> list[str]:
    """How many evaluations, and how many fits of models, failed in the good cells of some groups,
    where any did.
    """
    several = len({group.problem for group in groups}) > 1
    notes = []
    for noun, among in (("evaluations", "of {:,}"), ("fits", "in {:,} rounds")):
        texts = []
        for group in groups:
            failed = int(np.nansum(group.numbers(f"failed_{noun}")))
            place = f" on {group.problem_label}" if several else ""
            rounds = among.format(group.horizon * group.n)
            if failed:
                texts.append(f"{group.algorithm_label}{place} {failed:,} {rounds}")
        if texts:
            notes.append(f"failed {noun}: {', '.join(texts)}")
    return notes


def describe_lacks(selection: Selection, among: Container[str] | None = None) -> list[str]:
    """A line for each reason why some of the quantities have no value on some of the problems,
    all or those `among` some titles.
    """
    symbols = {quantity.name: quantity.symbol for quantity in selection.shown}
    labels = {group.arena: group.problem_label for group in selection.groups}
    problems = gather(
        ((lack, name), labels[arena])
        for (arena, name), lack in selection.lacks.items()
        if among is None or arena[0] in among
    )
    by_reason = gather(
        ((lack, ", ".join(dict.fromkeys(on))), symbols[name])
        for (lack, name), on in problems.items()
    )
    lines = []
    for (lack, on), names in by_reason.items():
        sentence, remedy = LACKS[lack]
        line = f"{', '.join(names)}: {sentence.format(on)}"
        if remedy and remedy not in symbols:
            line += f"; use {selection.metrics[remedy].symbol}"
        lines.append(line)
    return lines
