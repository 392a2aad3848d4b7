"""What a reader must know of the cells behind a table or a figure: the one place where such notes are made."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from cbobench.errors import Misuse
from cbobench.report.best import describe_best
from cbobench.report.groups import (
    Group,
    count_binding,
    count_crossed_seeds,
    describe_apart,
    describe_binding,
    describe_failures,
    describe_horizons,
    describe_problems,
    describe_variants,
    find_arithmetic,
)
from cbobench.report.load import Run
from cbobench.report.quantities import describe_lacks
from cbobench.report.selection import Selection
from cbobench.results.provenance import mixed_note
from cbobench.words import count_noun


def collect_notes(selection: Selection, compared: Iterable[Group], of: str = "results") -> list[str]:
    """What to know of the cells of a table, a sentence each.

    Args:
        compared: the groups that are compared with another one.
        of: the kind of table; profiles say by themselves what has no value, and only results say where constraints
            bind.
    """
    groups = selection.groups
    others = selection.every_group if selection.horizon is None else groups
    notes = describe_apart(others, compared)
    if selection.horizon is None and len(groups) < len(selection.every_group):
        notes.append(describe_horizons(selection.part, dict.fromkeys(group.problem for group in groups)))
    notes += selection.setups
    if of != "profile":
        notes += describe_lacks(selection.lacks, groups, selection.shown)
    if of == "results" and selection.by != "binds":
        notes += describe_binding(groups)
    return [
        *notes,
        *describe_failures(groups),
        *_describe_shared(selection.run),
        *describe_variants(selection.run, groups),
        *describe_arithmetic(groups),
        *(f"not played: {line}" for line in selection.unplayable),
    ]


def collect_fair_notes(selection: Selection, compared: list[Group], of: str) -> list[str]:
    """The notes of a table that tests methods against one another.

    Raises:
        Misuse: methods that were set up unlike, or that have no T in common.
    """
    notes = collect_notes(selection, compared, of)
    others = selection.every_group if selection.horizon is None else selection.groups
    apart = describe_apart(others, compared)
    if apart and of != "profile" and len({group.algorithm for group in compared}) < 2:
        raise Misuse(apart[0])
    if selection.setups and selection.is_union:
        remedy = "play all runs with the same, or list them without a test: --union"
        raise Misuse(f"{'; '.join(selection.setups)}; {remedy}")
    return notes


def refuse_lacks(selection: Selection) -> None:
    """Raise `Misuse` where none of the quantities can have a value, so that there is nothing to pair or to rank."""
    if len(selection.lacks) == len(selection.arenas) * len(selection.shown):
        raise Misuse("; ".join(describe_lacks(selection.lacks, selection.groups, selection.shown)))


def collect_caption_notes(run: Run, groups: Sequence[Group], pairs: Collection[tuple[str, str]]) -> list[str]:
    """What to know of the cells of a figure, whole sentences.

    Args:
        groups: those of the problems that are drawn.
        pairs: titles of the problems and algorithms that are drawn.
    """
    labels, binding_counts = run.record.labels("problems"), count_binding([*groups])
    problems = dict.fromkeys(problem for problem, _ in pairs)
    notes = [f"{line}." for line in describe_problems(run, problems)]
    for problem in problems:
        if (arena := (problem, run.horizon_of(problem), None)) in binding_counts:
            count, known_count = binding_counts[arena]
            notes.append(f"The constraint binds in {count:,} of {count_noun(known_count, 'seed')} ({labels[problem]}).")
    drawn = [group for group in groups if (group.problem, group.algorithm) in pairs]
    if stale_count := sum(len(group.outdated & {*group.good.index}) for group in drawn):
        cells = count_noun(sum(len(group.good) for group in drawn), "cell")
        notes.append(f"Stale: {stale_count:,} of {cells}, played by code that has changed since.")
    notes += [f"{line[0].upper()}{line[1:]}." for line in (*describe_failures(drawn), *describe_best(run, drawn))]
    if mixed := mixed_note(find_arithmetic(drawn)):
        notes.append(f"The cells were {mixed}.")
    return notes


def describe_arithmetic(groups: Iterable[Group]) -> list[str]:
    """A line where cells were played in several kinds of arithmetic, and in how many seeds these are compared."""
    groups = list(groups)
    if not (mixed := mixed_note(find_arithmetic(groups))):
        return []
    crossed, compared = count_crossed_seeds(groups)
    return [f"{mixed}; {crossed:,} of {count_noun(compared, 'compared seed')} cross kinds" if crossed else mixed]


def _describe_shared(run: Run) -> list[str]:
    """A line where several of the runs that are read as one hold the same cells."""
    shared, apart = run.folder.count_shared()
    differing = f", though the results of {apart:,} differ" if apart else ""
    return [f"{count_noun(shared, 'cell')} of several runs: the first named counts{differing}"] if shared else []
