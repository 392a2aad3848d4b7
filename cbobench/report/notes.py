"""What a reader must know of the cells behind a table or a figure: the one place where such notes
are made.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from typing import Any

import numpy as np

from cbobench.errors import Misuse
from cbobench.metrics import METRICS
from cbobench.report.groups import Arena, Group, group_by
from cbobench.report.load import Run
from cbobench.report.quantities import LACKS, NO_UNIT, OF_VIOLATION, lacks_unit
from cbobench.report.selection import Selection
from cbobench.results.manifest import VARIANT_KINDS, short
from cbobench.results.provenance import mixed_note
from cbobench.results.schema import FITTED
from cbobench.words import count_noun, list_names


def collect_notes(
    selection: Selection, compared: Iterable[Group], of: str = "results"
) -> list[str]:
    """What to know of the cells of a table or of a figure, a sentence each.

    Args:
        compared: the groups that are compared with another one, or that are drawn.
        of: the kind of table, or "figure"; profiles say by themselves what has no value, captions
            which T is drawn, and only figures say what `describe_facts` says.
    """
    compared = [*compared]
    is_figure = of == "figure"
    groups = compared if is_figure else selection.groups
    notes = _describe_stale(groups) if is_figure else _describe_choice(selection, compared)
    if of not in ("profile", "figure"):
        notes += describe_lacks(selection)
    if is_figure:
        notes += describe_facts(selection.run, groups)
    else:
        notes += _describe_settings(selection.run)
        if selection.metric:
            notes += describe_unlike(
                selection.run, [g.problem for g in groups], [q.name for q in selection.shown]
            )
    return [
        *notes,
        *describe_failures(groups),
        *_describe_shared(selection.run),
        *_describe_methods(selection.run, groups),
        *describe_arithmetic(groups),
        *(f"not played: {line}" for line in selection.unplayable),
        *selection.run.record.leftovers,
    ]


def describe_facts(run: Run, groups: Sequence[Group]) -> list[str]:
    """What is so of problems and models whatever a table shows: where constraints bind, whose
    models were fitted, and what problems say of their numbers.
    """
    return [
        *describe_binding(groups),
        *describe_kernels(run, groups),
        *_describe_problems(run, groups),
    ]


def _describe_choice(selection: Selection, compared: list[Group]) -> list[str]:
    """Which methods and which T are left out, and which methods were set up unlike."""
    notes = _describe_apart(selection, compared)
    if selection.horizon is None and len(selection.groups) < len(selection.every_group):
        notes.append(
            describe_horizons(
                selection.part, dict.fromkeys(group.problem for group in selection.groups)
            )
        )
    return notes + selection.setups


def _describe_apart(selection: Selection, compared: list[Group]) -> list[str]:
    return describe_apart(
        selection.every_group if selection.horizon is None else selection.groups, compared
    )


def _describe_stale(groups: list[Group]) -> list[str]:
    """How many good cells are stale; a table counts them beside n."""
    stale_count = sum(len(group.outdated & {*group.good.index}) for group in groups)
    cells = count_noun(sum(group.n for group in groups), "cell")
    return (
        [f"stale: {stale_count:,} of {cells}, played by code that has changed since"]
        if stale_count
        else []
    )


def collect_fair_notes(selection: Selection, compared: list[Group], of: str) -> list[str]:
    """The notes of a table that tests methods against one another.

    Raises:
        Misuse: methods that were set up unlike, or that have no T in common.
    """
    notes = collect_notes(selection, compared, of)
    apart = _describe_apart(selection, compared)
    if apart and of != "profile" and len({group.algorithm for group in compared}) < 2:
        raise Misuse(apart[0])
    if selection.setups and selection.is_union:
        remedy = "play all runs with the same, or list them without a test: --union"
        raise Misuse(f"{'; '.join(selection.setups)}; {remedy}")
    return notes


def refuse_lacks(selection: Selection) -> None:
    """Raise `Misuse` where none of the quantities can have a value, so that there is nothing to
    pair or to rank.
    """
    if len(selection.lacks) == len(selection.arenas) * len(selection.shown):
        raise Misuse("; ".join(describe_lacks(selection)))


def describe_arithmetic(groups: Iterable[Group]) -> list[str]:
    """A line where cells were played in several kinds of arithmetic, and in how many seeds these
    are compared.
    """
    groups = list(groups)
    if not (mixed := mixed_note(find_arithmetic(groups))):
        return []
    crossed, compared = count_crossed_seeds(groups)
    return [
        f"{mixed}; {crossed:,} of {count_noun(compared, 'compared seed')} cross kinds"
        if crossed
        else mixed
    ]


def _describe_shared(run: Run) -> list[str]:
    """A line where several of the runs that are read as one hold the same cells."""
    shared, apart = run.shared
    differing = f", though the results of {apart:,} differ" if apart else ""
    return (
        [f"{count_noun(shared, 'cell')} of several runs: the first named counts{differing}"]
        if shared
        else []
    )


def describe_horizons(run: Run, problems: Iterable[str]) -> str:
    """T that figures show of some problems (titles), and which others the run holds or was asked
    for of them.
    """
    labels = run.record.labels("problems")
    latest = {(title, run.horizon_of(title)) for title in problems}
    titles, good = {title for title, _ in latest}, run.cells[run.cells["status"] == "ok"]
    held, expected = (
        {
            (title, t)
            for title, t in zip(frame["problem"], frame["horizon"], strict=True)
            if title in titles
        }
        for frame in (good, run.expected)
    )
    several = len({t for _, t in latest}) > 1

    def list_horizons(pairs: Set[tuple[str, int]]) -> str:
        labels_by_horizon = {
            t: [label for title, label in labels.items() if (title, t) in pairs]
            for _, t in sorted(pairs)
        }
        return ", ".join(
            f"{t:,} ({', '.join(labels_by_horizon[t])})" if several else f"{t:,}"
            for t in sorted(labels_by_horizon)
        )

    also = [f"the run also holds T = {list_horizons(held - latest)}, not shown"] * bool(
        held - latest
    )
    also += [f"no cell of T = {list_horizons(expected - held - latest)} is good"] * bool(
        expected - held - latest
    )
    return f"T = {list_horizons(latest)}" + (f" ({'; '.join(also)})" if also else "")


def describe_apart(groups: Iterable[Group], compared: Iterable[Group]) -> list[str]:
    """Methods that a comparison leaves out because of their T, where others play the same problem
    to another one.

    Args:
        groups: those that were asked for.
        compared: those of them that take part.

    Returns:
        A line for all that have one T, while the others have one.
    """
    taking_part = {id(group) for group in compared}
    apart: dict[tuple[str, str], dict[str, list[str]]] = {}
    by_problem = group_by((group for group in groups if group.n), "problem_label")
    for label, problem_groups in by_problem.items():
        for name, method_groups in group_by(problem_groups, "algorithm_label").items():
            if taking_part & {id(group) for group in method_groups}:
                continue
            horizons = {group.horizon for group in method_groups}
            rivals = [group for group in problem_groups if group.horizon not in horizons]
            rivals = [group for group in rivals if id(group) in taking_part] or rivals
            if rivals:
                key = _list_horizons(method_groups), _list_horizons(rivals)
                apart.setdefault(key, {}).setdefault(name, []).append(label)
    lines = []
    for (own_horizons, other_horizons), labels_by_name in apart.items():
        labels = list(
            dict.fromkeys(label for labels in labels_by_name.values() for label in labels)
        )
        suffix = "" if len(labels) == len(by_problem) else f" on {list_names(labels)}"
        verbs = ("has", "it is") if len(labels_by_name) == 1 else ("have", "they are")
        lines.append(
            f"{list_names(labels_by_name)} {verbs[0]} T = {own_horizons}{suffix}, the others T = "
            f"{other_horizons}: "
            f"{verbs[1]} not compared with them; play all to one horizon"
        )
    return lines


def _list_horizons(groups: Iterable[Group]) -> str:
    return ", ".join(f"{t:,}" for t in sorted({group.horizon for group in groups}))


def _describe_problems(run: Run, groups: Iterable[Group]) -> list[str]:
    """What the problems of some groups say of their own numbers, a line for all that say the
    same.
    """
    problems, labels = run.record.variants("problems"), run.record.labels("problems")
    labels_by_note: dict[str, list[str]] = {}
    for title in dict.fromkeys(group.problem for group in groups):
        if note := problems[title].note:
            labels_by_note.setdefault(note, []).append(labels[title])
    return [f"{', '.join(note_labels)}: {note}" for note, note_labels in labels_by_note.items()]


def describe_unlike(run: Run, problems: Iterable[str], metrics: Iterable[str]) -> list[str]:
    """A line where metrics that are shown because a reader asks for them add up violations without
    a unit.

    Args:
        problems: titles.
        metrics: names.
    """
    variants, labels = run.record.variants("problems"), run.record.labels("problems")
    lacking = [labels[title] for title in dict.fromkeys(problems) if lacks_unit(variants[title])]
    symbols = [METRICS[name].symbol for name in OF_VIOLATION if name in [*metrics]]
    why = LACKS[NO_UNIT][0].format(", ".join(lacking)).removeprefix("left out, ")
    return [f"{', '.join(symbols)}: a sum of unlike units, {why}"] if lacking and symbols else []


def _describe_settings(run: Run) -> list[str]:
    """What labels leave out as all problems, or all methods, share it."""
    return [
        f"all {kind}: {', '.join(f'{name} = {short(value)}' for name, value in shared.items())}"
        for kind in VARIANT_KINDS
        if (shared := run.record.shared(kind))
    ]


def _describe_methods(run: Run, groups: Iterable[Group]) -> list[str]:
    """What a suite says of its methods: evaluations under way, past measurements."""
    algorithms = run.record.variants("algorithms")
    notes = [algorithms[group.algorithm].note for group in groups]
    return [*dict.fromkeys(filter(None, notes))]


def describe_failures(groups: Iterable[Group]) -> list[str]:
    """How many evaluations, and how many fits of models, failed in the good cells of some groups,
    where any did.
    """
    groups, notes = list(groups), []
    several = len({group.problem for group in groups}) > 1
    for noun, among in (("evaluations", "of {:,}"), ("fits", "in {:,} rounds")):
        descriptions = [
            f"{group.algorithm_label}{f' on {group.problem_label}' if several else ''} "
            f"{int(failed):,} " + among.format(group.horizon * group.n)
            for group in groups
            if (failed := np.nansum(group.numbers(f"failed_{noun}"))) > 0
        ]
        notes += [f"failed {noun}: {', '.join(descriptions)}"] if descriptions else []
    return notes


def describe_kernels(run: Run, groups: Iterable[Group]) -> list[str]:
    """Whose models were fitted in the good cells of some groups, and who took the problem's kernel
    although the suite left it open.
    """
    algorithms = run.record.variants("algorithms")
    # of each method with models, by problem: whether they were fitted
    fitted: dict[str, dict[str, bool]] = {}
    is_open: set[str] = set()
    for group in groups:
        words = group.numbers(FITTED)
        if not np.isnan(words).all():
            fitted.setdefault(group.algorithm_label, {})[group.problem_label] = 1.0 in words
            if algorithms[group.algorithm].settings.get("kernel") == "auto":
                is_open.add(group.algorithm_label)
    notes = []
    for was_fitted, sentence in (
        (True, "kernels fitted to the observations, which no theorem covers"),
        (False, "kernel: auto is the problem's"),
    ):
        places = {
            name: [problem for problem, word in words.items() if word == was_fitted]
            for name, words in fitted.items()
            if was_fitted or name in is_open
        }
        names = [
            name if len(problems) == len(fitted[name]) else f"{name} ({', '.join(problems)})"
            for name, problems in places.items()
            if problems
        ]
        every = len(names) > 1 and names == [*fitted]
        notes += [f"{sentence}: {'all models' if every else ', '.join(names)}"] if names else []
    return notes


def find_arithmetic(groups: Iterable[Group]) -> set[str]:
    """The kinds of arithmetic that played the good cells of some groups, as far as they are
    known.
    """
    return {kind for group in groups for kind in group.words("arithmetic") if kind is not None}


def count_crossed_seeds(groups: Iterable[Group]) -> tuple[int, int]:
    """In how many seeds of the problems several kinds of arithmetic meet, and of how many seeds
    that are compared.
    """
    kinds: dict[tuple[Any, ...], set[str]] = {}
    played: dict[tuple[Any, ...], int] = {}
    for group in groups:
        for seed, kind in zip(group.seeds.tolist(), group.words("arithmetic"), strict=True):
            if kind is not None:
                kinds.setdefault((*group.arena, seed), set()).add(kind)
                played[(*group.arena, seed)] = played.get((*group.arena, seed), 0) + 1
    compared = [seed for seed, count in played.items() if count > 1]
    return sum(len(kinds[seed]) > 1 for seed in compared), len(compared)


def find_cpus(groups: Iterable[Group]) -> set[str]:
    """The kinds of CPU that played the good cells of some groups, as far as they are known."""
    return {kind for group in groups for kind in group.good["cpu"].dropna().unique()}


def describe_binding(groups: Iterable[Group]) -> list[str]:
    """A line that says in how many seeds the constraint binds, and on which problems, as far as any
    algorithm's cells tell.
    """
    labels: dict[Arena, str] = {}
    binding: dict[Arena, dict[int, bool]] = {}
    for group in groups:
        binds = group.numbers("binds")
        is_known = ~np.isnan(binds)
        labels[group.arena] = group.problem_label
        seeds = binding.setdefault(group.arena, {})
        seeds.update(zip(group.seeds[is_known].tolist(), binds[is_known] > 0, strict=True))
    problems: dict[tuple[int, int], list[str]] = {}
    for arena, seeds in binding.items():
        if seeds:
            count = int(sum(seeds.values()))
            problems.setdefault((count, len(seeds)), []).append(labels[arena])
    everywhere = len(problems) == 1 and sum(map(len, problems.values())) == len(labels)
    parts = [
        f"{count}/{known_count} seeds"
        + ("" if everywhere else f" ({list_names(dict.fromkeys(names))})")
        for (count, known_count), names in problems.items()
    ]
    return (
        [f"the constraint binds (the highest f is infeasible) in {', '.join(parts)}"]
        if parts
        else []
    )


def describe_lacks(selection: Selection) -> list[str]:
    """A line for each reason why some of the quantities have no value on some of the problems."""
    problems: dict[tuple[str, str], list[str]] = {}
    for quantity in selection.shown:
        for arena_groups in selection.arenas:
            if lack := selection.lacks.get((arena_groups[0].arena, quantity.name)):
                labels = problems.setdefault((lack, quantity.symbol), [])
                labels += [arena_groups[0].problem_label] * (
                    arena_groups[0].problem_label not in labels
                )
    symbols: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for (lack, symbol), labels in problems.items():
        symbols.setdefault((lack, tuple(labels)), []).append(symbol)
    names_shown = {quantity.name for quantity in selection.shown}
    lines = []
    for (lack, labels_lacking), names in symbols.items():
        sentence, remedy = LACKS[lack]
        is_offered = remedy and remedy not in names_shown
        advice = f"; use {selection.metrics[remedy].symbol}" if is_offered else ""
        lines.append(f"{', '.join(names)}: {sentence.format(', '.join(labels_lacking))}{advice}")
    return lines
