"""A run beside the published field: the bundles of a group, known by the digests that come with
cbobench. Nothing is downloaded, and nothing played.
"""

from __future__ import annotations

import hashlib
from collections.abc import Container, Iterable
from dataclasses import replace
from pathlib import Path

from cbobench import resources
from cbobench.errors import DamagedRun, Misuse, show, unknown
from cbobench.report.load import Run, RunLike, open_run
from cbobench.results.folder import as_run_folder
from cbobench.suite import yamlio
from cbobench.suite.values import is_whole
from cbobench.words import count_noun, list_names

GROUPS = {
    "held_out": "held",
    "low": "low",
    "low_theory": "low-theory",
    "noisy": "noisy",
    "measured": "measured",
    "mixed": "mixed",
    "batches": "batches",
    "ten": "ten",
    "many": "many",
    "coco_2": "coco-2",
    "coco_10": "coco-10",
}
"""How the names of a group's shards begin, by the name of the group."""
LISTED = resources.folder("published") / "shards.yaml"
COUNTED = ("held_out",)  # groups of which a folder remembers how often it asked
ASKED = "asked.json"


def group_of(shard: str) -> str:
    """The group of a shard: the one whose beginning is the longest."""
    begun = [g for g, begin in GROUPS.items() if f"{shard}-".startswith(f"{begin}-")]
    return max(begun, key=lambda group: len(GROUPS[group]))


def find_bundles(group: str, folder: str | Path | None = None) -> list[Path]:
    """The bundles of a group that are published, each as this cbobench knows it.

    Args:
        folder: where they lie; by default `published` of the clone that this is.

    Raises:
        Misuse: no such group, none of it is published, or one is missing or another one.
    """
    if group not in GROUPS:
        raise unknown("group", group, GROUPS)
    digests = {
        name: shard["sha256"]
        for name, shard in yamlio.read(LISTED)["field"].items()
        if "sha256" in shard and group_of(name) == group
    }
    if not digests:
        raise Misuse(f"nothing of {group} is published yet; see docs/field.md")
    bundles = [Path(folder or LISTED.parent) / f"{name}.zip" for name in digests]
    for bundle, digest in zip(bundles, digests.values(), strict=True):
        if not bundle.is_file():
            raise Misuse(
                f"{bundle} is missing: bundles come with a clone, not with the package; say where "
                "they lie: --published CLONE/published"
            )
        if hashlib.sha256(bundle.read_bytes()).hexdigest() != digest:
            raise Misuse(
                f"{bundle} is not the bundle that this cbobench knows; give --published of a clone "
                "of its version"
            )
    return bundles


def keep_played(run: Run, problems: Container[str] | None = None) -> Run | None:
    """A run without the pairs that it has no cells of, and without methods that occur in no other;
    None where nothing is left. The record of a shard lists its whole suite, whose methods may have
    other settings in another one.

    Args:
        problems: by their keys, those that are kept; all by default.
    """
    played = {*zip(run.cells["problem"], run.cells["algorithm"], strict=True)}
    absent = {
        pair.key
        for pair in (part.pair for part in run.record.cells.by_pair)
        if (pair.problem.title, pair.algorithm.title) not in played
        or (problems is not None and pair.problem.key not in problems)
    }
    record = run.record.without(absent)
    if record is None:
        return None
    grids = tuple(replace(grid, unplayable=()) for grid in record.grids)
    return Run(run.folders, replace(record, grids=grids).without(set()), run.parts)


def open_played(bundles: Iterable[Path]) -> Run:
    """Some bundles read as one, of each only the pairs that it has cells of."""
    return Run.union([*filter(None, (keep_played(Run(bundle)) for bundle in bundles))])


def label_problems(runs: Iterable[Run]) -> dict[str, str]:
    """The labels of the problems of some runs, by their keys."""
    variants = [problem for run in runs for problem in run.record.variants("problems").values()]
    return {problem.key: problem.label for problem in variants}


def open_beside(run: RunLike, group: str, folder: str | Path | None = None) -> Run:
    """A run and a group of the field read as one, on the problems that both have, with the floor of
    the run's suite.

    Args:
        folder: as of `find_bundles`.

    Raises:
        Misuse: as of `find_bundles`, or there is no such problem.
    """
    user_run, field = open_run(run), [*map(Run, find_bundles(group, folder))]
    labels = label_problems(field)
    shared = label_problems([user_run]).keys() & labels.keys()
    parts = [keep_played(part, shared) for part in (user_run, *field)]
    if parts[0] is None or not any(parts[1:]):
        raise Misuse(
            f"{user_run} has no cell of a problem that is set up as in {group}, which has "
            f"{list_names(labels.values())}; docs/beside_the_field.md has a suite"
        )
    joined = Run.union([*filter(None, parts)])
    record = replace(joined.record, floor=user_run.record.floor)
    return Run(joined.folders, record, joined.parts)


def find_own(run: RunLike, name: str | None) -> str:
    """The method of a run that is held beside the field: the one that is named, or its only one.

    Raises:
        Misuse: it has several.
    """
    opened = open_run(run)
    labels = opened.record.labels("algorithms")
    played = [labels[title] for title in opened.cells["algorithm"].unique()]
    if name is None and len(played) != 1:
        listed = ", ".join(played) or "none that was played"
        raise Misuse(f"{run} has several methods; name yours with --against: {listed}")
    return name or played[0]


def count_asked(run: RunLike, group: str) -> str:
    """Count in the run's folder that it asked for a group, and say how often that was; "" where it
    is not counted.

    Raises:
        Misuse: the run is a bundle, which cannot count.
        DamagedRun: what is counted is no number.
    """
    if group not in COUNTED:
        return ""
    then = f"{group} counts how often it is asked for: give the run folder"
    sentences = []
    for place in open_run(run).folders:
        folder = as_run_folder(place, then)
        counts = folder.read_json(ASKED) if folder.exists(ASKED) else {group: 0}
        if not is_whole(counts.get(group)):
            raise DamagedRun(f"{folder}: {ASKED} holds {show(counts)}, no count; restore it")
        times = counts[group] + 1
        folder.write_json(ASKED, {group: times})
        sentences.append(f"{folder} has asked for {group} {count_noun(times, 'time')}")
    return "; ".join(sentences)
