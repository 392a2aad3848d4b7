"""What a reader must know of the cells behind a table or a figure: the one place where such notes
are made.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set

import numpy as np

from cbobench.errors import Misuse
from cbobench.metrics import METRICS
from cbobench.report.groups import Arena, Group, gather, group_by
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
    compared, run, groups = [*compared], selection.run, selection.groups
    if of == "figure":
        groups = compared
        notes = [*_describe_stale(groups), *describe_facts(run, groups)]
    else:
        problems = dict.fromkeys(group.problem for group in groups)
        notes = _describe_apart(selection, compared)
        if selection.horizon is None and len(groups) < len(selection.every_group):
            notes.append(describe_horizons(selection.part, problems))
        notes += selection.setups
        if of != "profile":
            notes += describe_lacks(selection)
        # What labels leave out as all problems, or all methods, share it.
        for kind in VARIANT_KINDS:
            if shared := run.record.shared(kind):
                settings = (f"{name} = {short(value)}" for name, value in shared.items())
                notes.append(f"all {kind}: {', '.join(settings)}")
        if selection.metric:
            notes += describe_unlike(run, problems, [q.name for q in selection.shown])
    algorithms = run.record.variants("algorithms")
    # What a suite says of its methods: evaluations under way, past measurements.
    said = dict.fromkeys(algorithms[group.algorithm].note for group in groups)
    return [
        *notes,
        *describe_failures(groups),
        *_describe_shared(run),
        *filter(None, said),
        *describe_arithmetic(groups),
        *(f"not played: {line}" for line in selection.unplayable),
        *run.record.leftovers,
    ]


def describe_facts(run: Run, groups: Sequence[Group]) -> list[str]:
    """What is so of problems and models whatever a table shows: where constraints bind, whose
    models were fitted, and what problems say of their numbers.
    """
    problems, labels = run.record.variants("problems"), run.record.labels("problems")
    titles = dict.fromkeys(group.problem for group in groups)
    said = gather((problems[title].note, labels[title]) for title in titles)
    return [
        *describe_binding(groups),
        *describe_kernels(run, groups),
        *(f"{', '.join(names)}: {note}" for note, names in said.items() if note),
    ]


def _describe_apart(selection: Selection, compared: list[Group]) -> list[str]:
    return describe_apart(
        selection.every_group if selection.horizon is None else selection.groups, compared
    )


def _describe_stale(groups: list[Group]) -> list[str]:
    """How many good cells are stale; a table counts them beside n."""
    stale_count = sum(len(group.outdated & {*group.good.index}) for group in groups)
    cells = count_noun(sum(group.n for group in groups), "cell")
    note = f"stale: {stale_count:,} of {cells}, played by code that has changed since"
    return [note] if stale_count > 0 else []


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
    kinds = {kind for group in groups for kind in group.words("arithmetic")} - {None}
    mixed = mixed_note(kinds)
    crossed, compared = count_crossed_seeds(groups)
    if mixed and crossed:
        mixed += f"; {crossed:,} of {count_noun(compared, 'compared seed')} cross kinds"
    return [mixed] if mixed else []


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
        {pair for pair in zip(frame["problem"], frame["horizon"], strict=True) if pair[0] in titles}
        for frame in (good, run.expected)
    )
    several = len({t for _, t in latest}) > 1

    def list_horizons(pairs: Set[tuple[str, int]]) -> str:
        texts = []
        for t in sorted({t for _, t in pairs}):
            on = ", ".join(label for title, label in labels.items() if (title, t) in pairs)
            texts.append(f"{t:,}" + f" ({on})" * several)
        return ", ".join(texts)

    others = {
        "the run also holds T = {}, not shown": held - latest,
        "no cell of T = {} is good": expected - held - latest,
    }
    also = "; ".join(text.format(list_horizons(pairs)) for text, pairs in others.items() if pairs)
    return f"T = {list_horizons(latest)}" + f" ({also})" * bool(also)


def describe_apart(groups: Iterable[Group], compared: Iterable[Group]) -> list[str]:
    """Methods that a comparison leaves out because of their T, where others play the same problem
    to another one.

    Args:
        groups: those that were asked for.
        compared: those of them that take part.

    Returns:
        A line for all that have one T, while the others have one.
    """
    taking_part = {*compared}
    apart = []
    by_problem = group_by((group for group in groups if group.n), "problem_label")
    for label, problem_groups in by_problem.items():
        for name, own in group_by(problem_groups, "algorithm_label").items():
            horizons = {group.horizon for group in own}
            rivals = [group for group in problem_groups if group.horizon not in horizons]
            rivals = [group for group in rivals if group in taking_part] or rivals
            if rivals and taking_part.isdisjoint(own):
                others = {group.horizon for group in rivals}
                apart.append(((_list_horizons(horizons), _list_horizons(others)), (name, label)))
    lines = []
    for (own_horizons, other_horizons), pairs in gather(apart).items():
        names, labels = (list(dict.fromkeys(column)) for column in zip(*pairs, strict=True))
        suffix = "" if len(labels) == len(by_problem) else f" on {list_names(labels)}"
        verbs = ("has", "it is") if len(names) == 1 else ("have", "they are")
        lines.append(
            f"{list_names(names)} {verbs[0]} T = {own_horizons}{suffix}, the others T = "
            f"{other_horizons}: "
            f"{verbs[1]} not compared with them; play all to one horizon"
        )
    return lines


def _list_horizons(horizons: Iterable[int]) -> str:
    return ", ".join(f"{t:,}" for t in sorted(horizons))


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


def describe_failures(groups: Iterable[Group]) -> list[str]:
    """How many evaluations, and how many fits of models, failed in the good cells of some groups,
    where any did.
    """
    groups, notes = list(groups), []
    several = len({group.problem for group in groups}) > 1
    for noun, among in (("evaluations", "of {:,}"), ("fits", "in {:,} rounds")):
        descriptions = ", ".join(
            f"{group.algorithm_label}{f' on {group.problem_label}' * several} "
            f"{int(failed):,} " + among.format(group.horizon * group.n)
            for group in groups
            if (failed := np.nansum(group.numbers(f"failed_{noun}"))) > 0
        )
        if descriptions:
            notes.append(f"failed {noun}: {descriptions}")
    return notes


def describe_kernels(run: Run, groups: Iterable[Group]) -> list[str]:
    """Whose models were fitted in the good cells of some groups, and who took the problem's kernel
    although the suite left it open.
    """
    algorithms = run.record.variants("algorithms")
    # of each method with models, by problem: whether they were fitted
    fitted: dict[str, dict[str, bool]] = {}
    is_open = set()
    for group in groups:
        words = group.numbers(FITTED)
        if not np.isnan(words).all():
            fitted.setdefault(group.algorithm_label, {})[group.problem_label] = 1.0 in words
            if algorithms[group.algorithm].settings.get("kernel") == "auto":
                is_open.add(group.algorithm_label)
    notes = []
    for was_fitted, among, sentence in (
        (True, fitted.keys(), "kernels fitted to the observations, which no theorem covers"),
        (False, is_open, "kernel: auto is the problem's"),
    ):
        names = []
        for name, places in fitted.items():
            problems = [problem for problem, word in places.items() if word == was_fitted]
            if problems and name in among:
                names.append(name + f" ({', '.join(problems)})" * (len(problems) < len(places)))
        every = len(names) > 1 and names == [*fitted]
        if names:
            notes.append(f"{sentence}: {'all models' if every else ', '.join(names)}")
    return notes


def count_crossed_seeds(groups: Iterable[Group]) -> tuple[int, int]:
    """In how many seeds of the problems several kinds of arithmetic meet, and of how many seeds
    that are compared.
    """
    kinds = gather(
        ((group.arena, seed), kind)
        for group in groups
        for seed, kind in zip(group.seeds.tolist(), group.words("arithmetic"), strict=True)
        if kind is not None
    )
    compared = [met for met in kinds.values() if len(met) > 1]
    return sum(len({*met}) > 1 for met in compared), len(compared)


def describe_binding(groups: Iterable[Group]) -> list[str]:
    """A line that says in how many seeds the constraint binds, and on which problems, as far as any
    algorithm's cells tell.
    """
    labels: dict[Arena, str] = {}
    binding: dict[Arena, dict[int, bool]] = {}
    for group in groups:
        labels[group.arena] = group.problem_label
        seeds = binding.setdefault(group.arena, {})
        for seed, binds in zip(group.seeds.tolist(), group.numbers("binds"), strict=True):
            if not np.isnan(binds):
                seeds[seed] = binds > 0
    problems = gather(
        (f"{sum(seeds.values())}/{len(seeds)} seeds", labels[arena])
        for arena, seeds in binding.items()
        if seeds
    )
    everywhere = [len(names) for names in problems.values()] == [len(labels)]
    parts = [
        count + ("" if everywhere else f" ({list_names(dict.fromkeys(names))})")
        for count, names in problems.items()
    ]
    note = f"the constraint binds (the highest f is infeasible) in {', '.join(parts)}"
    return [note] if parts else []


def describe_lacks(selection: Selection) -> list[str]:
    """A line for each reason why some of the quantities have no value on some of the problems."""
    problems = gather(
        ((lack, quantity.symbol), groups[0].problem_label)
        for quantity in selection.shown
        for groups in selection.arenas
        if (lack := selection.lacks.get((groups[0].arena, quantity.name)))
    )
    symbols = gather(
        ((lack, ", ".join(dict.fromkeys(labels))), symbol)
        for (lack, symbol), labels in problems.items()
    )
    names_shown = {"", *(quantity.name for quantity in selection.shown)}
    lines = []
    for (lack, labels), names in symbols.items():
        sentence, remedy = LACKS[lack]
        line = f"{', '.join(names)}: {sentence.format(labels)}"
        if remedy not in names_shown:
            line += f"; use {selection.metrics[remedy].symbol}"
        lines.append(line)
    return lines
