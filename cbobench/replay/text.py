"""What became of drawn cells, in lines and as plain values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from cbobench.arithmetic import arithmetic_kind
from cbobench.errors import printable
from cbobench.replay.draw import PublishedCell
from cbobench.replay.replay import Replay
from cbobench.results.provenance import cpu_kind
from cbobench.results.source import libraries
from cbobench.words import count_noun


def describe_draw(drawn: Sequence[PublishedCell]) -> str:
    """Return the line that names the drawn cells, by pair with their seeds, before they are
    played.
    """
    seeds: dict[str, list[int]] = {}
    for published in drawn:
        seeds.setdefault(printable(published.cell.pair.label), []).append(published.cell.seed)
    names = [
        f"{label} seed{'s' if len(numbers) > 1 else ''} {' '.join(map(str, sorted(numbers)))}"
        for label, numbers in sorted(seeds.items())
    ]
    return f"{count_noun(len(drawn), 'cell')} to play again: {', '.join(names)}"


def describe_replay(replay: Replay) -> list[str]:
    """Return the lines that say what became of the drawn cells."""
    drawn = f"{len(replay.outcomes):,} of {count_noun(replay.cells, 'cell')} drawn"
    counts = {
        "equal": replay.count("equal"),
        "different": replay.count("differs"),
        "not checked": replay.count("not checked"),
    }
    parts = [f"{count:,} {state}" for state, count in counts.items() if count or state == "equal"]
    lines = [f"{drawn} with --seed {replay.seed}: {', '.join(parts)}"]
    lines += [
        f"  {outcome.published}: {outcome.text}"
        for outcome in replay.outcomes
        if outcome.state == "differs"
    ]
    lines += [f"  cannot be read: {line}" for line in replay.unread]
    reasons = Counter(outcome.text for outcome in replay.outcomes if outcome.state == "not checked")
    lines += [
        f"  not checked: {count_noun(count, 'cell')}: {reason}" for reason, count in reasons.items()
    ]
    if others := sum(outcome.other_rule for outcome in replay.outcomes):
        cells = count_noun(others, "cell")
        lines.append(f"  recommendations not compared, as another rule made them: {cells}")
    return lines


def replay_as_json(replay: Replay) -> dict[str, Any]:
    """Return the same as plain values."""
    cells = [
        {
            "run": str(outcome.published.source.folder),
            "cell": outcome.published.cell.id,
            "problem": outcome.published.cell.pair.problem.title,
            "algorithm": outcome.published.cell.pair.algorithm.title,
            "seed": outcome.published.cell.seed,
            "state": outcome.state,
            "text": outcome.text,
        }
        for outcome in replay.outcomes
    ]
    return {
        "seed": replay.seed,
        "cells": replay.cells,
        "verdict": replay.verdict,
        "here": {"libraries": libraries(), "arithmetic": arithmetic_kind(), "cpu": cpu_kind()},
        "unread": list(replay.unread),
        "drawn": cells,
    }
