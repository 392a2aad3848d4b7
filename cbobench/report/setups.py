"""What suites set for their methods alike, and where methods that are compared differ in it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cbobench.results.manifest import Manifest
from cbobench.suite.settings import describe_setup, ignores_setup
from cbobench.suite.variants import Variant
from cbobench.words import list_names


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
        described = {algorithm.key: describe_setup(algorithm) for algorithm in grid.algorithms}
        shared = {
            key: word
            for setup in described.values()
            for key, word in setup.items()
            if word != bare[key]
        }
        for algorithm in grid.algorithms:
            if algorithm.key in titles and not ignores_setup(algorithm):
                setup = described[algorithm.key]
                setups[titles[algorithm.key]] = shared | {
                    k: word for k, word in setup.items() if word != bare[k]
                }
    return {title: bare | setup for title, setup in setups.items()}


def compare_setups(before: Variant, after: Variant) -> str:
    """Return in what the set-up of an algorithm differs between two runs; "" if it does not."""
    setups = describe_setup(before), describe_setup(after)
    return ", ".join(
        f"{key} {word} and {setups[1][key]}"
        for key, word in setups[0].items()
        if word != setups[1][key]
    )


def describe_setups(manifest: Manifest, arenas: Iterable[Sequence[str]]) -> list[str]:
    """Return a line for each part of the set-up in which methods differ that are compared.

    Args:
        arenas: titles of the algorithms that play the same problem to the same horizon, for each
            such problem.
    """
    setups, labels = find_setups(manifest), manifest.labels("algorithms")
    methods: dict[str, dict[str, dict[str, None]]] = {}
    for titles in arenas:
        compared = [title for title in titles if title in setups]
        for key in setups[compared[0]] if compared else ():
            if len({setups[title][key] for title in compared}) > 1:
                for title in compared:
                    methods.setdefault(key, {}).setdefault(setups[title][key], {})[
                        labels[title]
                    ] = None
    return [
        f"{key} differs: "
        f"{', '.join(f'{word} for {list_names(names)}' for word, names in by_word.items())}"
        for key, by_word in methods.items()
    ]
