"""Where what is compared was not played alike: set-ups, horizons and arithmetic."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cbobench.report.groups import Group, gather, group_by, list_horizons
from cbobench.report.load import Run
from cbobench.results.manifest import Manifest
from cbobench.results.provenance import mixed_note
from cbobench.suite.settings import describe_setup, ignores_setup
from cbobench.suite.variants import Variant
from cbobench.words import count_noun, list_names


def find_setups(manifest: Manifest) -> dict[str, dict[str, str]]:
    """Return what suites set for their methods alike (see `describe_setup`), by title of the
    algorithm.

    Reference methods, which ignore it, are left out. One of the user's own is not known as such
    without its code: it has the set-up of the methods that were asked for with it.
    """
    titles = {variant.key: title for title, variant in manifest.variants("algorithms").items()}
    bare = describe_setup(Variant("", {}, {}, "", {}))
    setups: dict[str, dict[str, str]] = {}
    for grid in manifest.grids:
        # What a method says itself counts before what the others of its grid say.
        own = {
            algorithm.key: dict(describe_setup(algorithm).items() - bare.items())
            for algorithm in grid.algorithms
        }
        shared = {key: word for setup in own.values() for key, word in setup.items()}
        for algorithm in grid.algorithms:
            if algorithm.key in titles and not ignores_setup(algorithm):
                setups[titles[algorithm.key]] = bare | shared | own[algorithm.key]
    return setups


def compare_setups(before: Variant, after: Variant) -> str:
    """Return in what the set-up of an algorithm differs between two runs; "" if it does not."""
    old = describe_setup(before)
    new = describe_setup(after)
    return ", ".join(f"{key} {old[key]} and {new[key]}" for key in old if old[key] != new[key])


def describe_setups(manifest: Manifest, arenas: Iterable[Sequence[str]]) -> list[str]:
    """Return a line for each part of the set-up in which methods differ that are compared.

    Args:
        arenas: titles of the algorithms that play the same problem to the same horizon, for each
            such problem.
    """
    setups = find_setups(manifest)
    labels = manifest.labels("algorithms")
    found = []
    for titles in arenas:
        compared = {labels[title]: setups[title] for title in titles if title in setups}
        for key in next(iter(compared.values()), ()):
            words = {setup[key] for setup in compared.values()}
            if len(words) > 1:
                found += [(key, (setup[key], label)) for label, setup in compared.items()]
    lines = []
    for key, pairs in gather(found).items():
        methods = gather(dict.fromkeys(pairs))
        parts = [f"{word} for {list_names(names)}" for word, names in methods.items()]
        lines.append(f"{key} differs: {', '.join(parts)}")
    return lines


def describe_horizons(run: Run, problems: Iterable[str]) -> str:
    """T that figures show of some problems (titles), and which others the run holds or was asked
    for of them.
    """
    latest = {title: run.horizon_of(title) for title in problems}
    labels = {t: label for t, label in run.record.labels("problems").items() if t in latest}
    expected = {(problem, horizon) for problem, horizon, _ in run.expected}

    def name(pairs: Iterable[tuple[str, int]]) -> str:
        places = gather((t, label) for p, label in labels.items() for q, t in pairs if p == q)
        if len({*latest.values()}) == 1:
            return list_horizons(places)
        return ", ".join(f"{t:,} ({', '.join(places[t])})" for t in sorted(places))

    others = []
    if also := name(run.held - latest.items()):
        others.append(f"the run also holds T = {also}, not shown")
    if absent := name(expected - run.held - latest.items()):
        others.append(f"no cell of T = {absent} is good")
    suffix = f" ({'; '.join(others)})" if others else ""
    return f"T = {name(latest.items())}{suffix}"


def describe_apart(groups: Iterable[Group], compared: list[Group]) -> list[str]:
    """Methods that a comparison leaves out because of their T, where others play the same problem
    to another one.

    Args:
        groups: those that were asked for.
        compared: those of them that take part.

    Returns:
        A line for all that have one T, while the others have one.
    """
    by_problem = group_by((group for group in groups if group.n), "problem_label")
    apart = []
    for label, players in by_problem.items():
        for name, own in group_by(players, "algorithm_label").items():
            horizons = {group.horizon for group in own}
            rivals = {group for group in players if group.horizon not in horizons}
            others = {group.horizon for group in rivals & {*compared} or rivals}
            if rivals and not {*own} & {*compared}:
                apart.append(((list_horizons(horizons), list_horizons(others)), (name, label)))
    lines = []
    for (own_horizons, other_horizons), pairs in gather(apart).items():
        names, labels = (list(dict.fromkeys(column)) for column in zip(*pairs, strict=True))
        place = "" if len(labels) == len(by_problem) else f" on {list_names(labels)}"
        has, are = ("has", "it is") if len(names) == 1 else ("have", "they are")
        lines.append(
            f"{list_names(names)} {has} T = {own_horizons}{place}, the others T = "
            f"{other_horizons}: {are} not compared with them; play all to one horizon"
        )
    return lines


def describe_arithmetic(groups: Iterable[Group]) -> list[str]:
    """A line where cells were played in several kinds of arithmetic, and in how many seeds these
    are compared.
    """
    played = [
        ((group.arena, seed), kind)
        for group in groups
        for seed, kind in zip(group.seeds.tolist(), group.words("arithmetic"), strict=True)
        if kind is not None
    ]
    compared = [kinds for kinds in gather(played).values() if len(kinds) > 1]
    crossed = sum(len({*kinds}) > 1 for kinds in compared)
    mixed = mixed_note({kind for _, kind in played})
    if mixed and crossed:
        mixed += f"; {crossed:,} of {count_noun(len(compared), 'compared seed')} cross kinds"
    if mixed:
        return [mixed]
    return []
