"""What became of drawn cells, in lines and as plain values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence, Set
from typing import Any

from cbobench.arithmetic import arithmetic_kind
from cbobench.errors import printable
from cbobench.replay.replay import NOT_TRUSTED, Replay
from cbobench.replay.sources import (
    Candidate,
    Draw,
    Outcome,
    Recommendation,
    Rounds,
    State,
    is_of_other_cpu,
)
from cbobench.results.provenance import cpu_kind
from cbobench.results.source import libraries, other_versions
from cbobench.words import count_noun

SHOWN, LONGEST = 4, 200  # how many texts of a stranger's run a line names, and characters of one


def describe_draw(drawn: Draw) -> list[str]:
    """Return the lines that say how the drawn cells are replayed, which are known before."""
    lines = [_describe_surroundings(drawn)]
    if count := sum(is_of_other_cpu(candidate.origin) for candidate in drawn.candidates):
        cells = count_noun(count, "drawn cell")
        lines.append(
            f"  PyTorch gives other bits on another kind of CPU: {cells} can only be asked by round"
        )
    return [printable(line) for line in lines]


def describe_replay(replay: Replay) -> list[str]:
    """Return all lines: those of `describe_draw`, then what became of the cells."""
    return [*describe_draw(replay.drawn), *describe_outcomes(replay)]


def describe_outcomes(replay: Replay) -> list[str]:
    """Return the lines that say what became of the drawn cells; the last one says how many were
    compared.
    """
    drawn = replay.drawn
    lines = _describe_bits(_of(replay, "bits"), drawn) + _describe_rounds(
        _of(replay, "rounds"), drawn
    )
    lines += _describe_recommendations(replay.outcomes) + _describe_unstored(replay.outcomes)
    lines += _describe_unplayable(replay.outcomes)
    if replay.is_empty:
        lines.append(_describe_nothing(replay.outcomes))
    lines += [f"  cannot be read: {line}" for line in replay.unread]
    if drawn.failed:
        lines.append(
            "  not drawn, because nothing can be compared: "
            f"{count_noun(drawn.failed, 'failed cell')}"
        )
    lines.append(f"  drawn with --seed {drawn.seed}: {', '.join(_name_drawn(replay.outcomes))}")
    lines.append(_describe_checked(replay))
    return [printable(line) for line in lines]


def _of(replay: Replay, way: str) -> list[Outcome]:
    return [outcome for outcome in replay.outcomes if outcome.candidate.way == way]


def _describe_surroundings(drawn: Draw) -> str:
    """Say in a line whether libraries, arithmetic and CPU are those of the plays."""
    origins = [candidate.origin for candidate in drawn.candidates]
    recorded = {origin.libraries for origin in origins if other_versions(origin.libraries)}
    kinds = {o.arithmetic for o in origins if o.arithmetic not in (None, arithmetic_kind())}
    cpus = {origin.cpu for origin in origins if origin.cpu not in (None, cpu_kind())}
    parts = [
        f"other libraries ({_name_few(recorded)}; here {libraries()})"
        if recorded
        else f"the same {libraries()}",
        f"other arithmetic ({_name_few(kinds)}; here {arithmetic_kind()})"
        if kinds
        else f"the same arithmetic ({arithmetic_kind()})",
        f"another CPU ({_name_few(cpus)}; here {cpu_kind()})" if cpus else "the same kind of CPU",
    ]
    ways = {candidate.way for candidate in drawn.candidates}
    how = "to the last bit" if ways == {"bits"} else "round by round on the published history"
    if "bits" in ways and ways != {"bits"}:
        how = (
            "to the last bit where libraries and arithmetic are the same, else round by round on "
            "the history"
        )
    elif ways != {"bits"} and drawn.unlike:
        how += ", as libraries or arithmetic are others"
    return f"{how}: {', '.join(parts)}"


def _name_few(texts: Set[Any]) -> str:
    """Return some texts of a stranger's run in a line, cut where there are many or they are
    long.
    """
    names = [
        text if len(text) <= LONGEST else f"{text[: LONGEST - 4]} ..." for text in sorted(texts)
    ]
    remaining = [f"{len(names) - SHOWN} more"] if len(names) > SHOWN else []
    return "; ".join([*names[:SHOWN], *remaining])


def _describe_recommendations(outcomes: Sequence[Outcome]) -> list[str]:
    """Return a line each on recommendations that were not confirmed, which is no difference."""
    reasons: dict[Recommendation, str] = {
        "older": "not checked, because they are of an older rule and others today",
        "other": "not confirmed by round, where the arithmetic decides",
    }
    counts = Counter(outcome.recommendation for outcome in outcomes)
    return [
        f"  recommendations {why}: {count_noun(counts[kind], 'cell')}"
        for kind, why in reasons.items()
        if counts[kind]
    ]


def _describe_unstored(outcomes: Sequence[Outcome]) -> list[str]:
    names = sorted({name for outcome in outcomes for name in outcome.unstored})
    return (
        [f"  not compared, because nothing is stored of them: {', '.join(names)}"] if names else []
    )


def _describe_checked(replay: Replay) -> str:
    """Say in the last line how many of the drawn cells were compared, and why others were not."""
    unplayable, unchecked = _count_states(replay.outcomes, ["unplayable"]), replay.drawn.unchecked
    total = count_noun(len(replay.outcomes) + unchecked, "drawn cell")
    reasons = {
        "not checked for lack of a history": unchecked,
        "not to be replayed here": unplayable,
    }
    parts = [f"checked: {len(replay.outcomes) - unplayable:,} of {total}"]
    return "; ".join([*parts, *(f"{why}: {count:,}" for why, count in reasons.items() if count)])


def _count_states(outcomes: Sequence[Outcome], states: Sequence[State]) -> int:
    return sum(outcome.state in states for outcome in outcomes)


def _describe_bits(outcomes: list[Outcome], drawn: Draw) -> list[str]:
    if not outcomes:
        return []
    replayed = [outcome for outcome in outcomes if outcome.state != "unplayable"]
    equal, apart = _count_states(outcomes, ["equal"]), _count_states(outcomes, ["differs"])
    verdict = f"{equal:,} equal" + (f", {apart:,} not" if apart else "")
    lines = [
        f"{len(replayed):,} of {count_noun(drawn.drawable['bits'], 'cell')} replayed: {verdict}"
    ]
    lines += _describe_differences(outcomes)
    if undigested := sum(not outcome.digest for outcome in replayed):
        cells = count_noun(undigested, "cell")
        lines.append(
            f"  {cells} without a digest, from an older export: stored curves and final values "
            "were compared"
        )
    return lines


def _describe_rounds(outcomes: list[Outcome], drawn: Draw) -> list[str]:
    replayed = [outcome for outcome in outcomes if outcome.rounds.total]
    ours = sum_rounds(outcome for outcome in replayed if outcome.is_ours)
    cells = f"{len(replayed):,} of {count_noun(drawn.drawable['rounds'], 'cell')} with a history"
    lines = []
    if ours.total:
        lines.append(
            f"{cells} asked again, {count_noun(ours.total, 'round')}: {describe_rounds(ours)}"
        )
    elif replayed:
        lines.append(f"{cells} asked again")
    by_method: dict[str, list[Outcome]] = {}
    for outcome in replayed:
        by_method.setdefault(outcome.candidate.cell.pair.algorithm.brief, []).append(outcome)
    for method, parts in sorted(by_method.items()):
        total = sum_rounds(parts)
        # Of a method of ours, another action is a difference unless its score ties.
        text = describe_rounds(total)
        if not parts[0].is_ours:
            text = (
                f"{100 * total.same / total.total:.0f} % the same action (of another library: it "
                "has no score)"
            )
        lines.append(f"  {printable(method)}: {count_noun(total.total, 'round')}: {text}")
    return lines + _describe_differences(outcomes)


def sum_rounds(outcomes: Iterable[Outcome]) -> Rounds:
    """Return the sum of the rounds of some cells."""
    return Rounds(*map(sum, zip(Rounds(), *(outcome.rounds for outcome in outcomes), strict=True)))


def describe_rounds(rounds: Rounds) -> str:
    """Return "1,462 the same action, 38 ties, 0 others"."""
    return (
        f"{rounds.same:,} the same action, {count_noun(rounds.ties, 'tie')}, "
        f"{count_noun(rounds.others, 'other')}"
    )


def _describe_differences(outcomes: list[Outcome]) -> list[str]:
    return [f"  {name_cell(o.candidate)}: {o.text}" for o in outcomes if o.state == "differs"]


def _describe_unplayable(outcomes: Sequence[Outcome]) -> list[str]:
    reasons = Counter(outcome.text for outcome in outcomes if outcome.state == "unplayable")
    return [
        f"  {count_noun(n, 'cell')} cannot be replayed here: {reason}"
        for reason, n in reasons.items()
    ]


def _describe_nothing(outcomes: Sequence[Outcome]) -> str:
    """Say that nothing was confirmed, and what to do."""
    if any(outcome.text.endswith(NOT_TRUSTED) for outcome in outcomes):
        remedy = "go where the methods' files are, and add --imports, which runs their code"
    else:
        remedy = "set up what the lines above name, or draw more cells"
    return f"  nothing is confirmed, as none of the drawn cells can be replayed: {remedy}"


def name_cell(candidate: Candidate) -> str:
    """Return a cell's name for messages: pair, seed and the run that holds it."""
    return printable(f"{candidate.cell} ({candidate.source.name})")


def _name_drawn(outcomes: Sequence[Outcome]) -> list[str]:
    """Return the drawn cells, by pair, with their seeds."""
    seeds: dict[str, list[int]] = {}
    for outcome in outcomes:
        cell = outcome.candidate.cell
        seeds.setdefault(printable(cell.pair.label), []).append(cell.seed)
    return [
        f"{label} seed{'s' * (len(n) > 1)} {' '.join(map(str, sorted(n)))}"
        for label, n in sorted(seeds.items())
    ]


def replay_as_json(replay: Replay) -> dict[str, Any]:
    """Return the same as plain values."""
    drawn = replay.drawn
    cells = [
        {
            "run": str(outcome.candidate.source.folder),
            "cell": outcome.candidate.cell.id,
            "problem": outcome.candidate.cell.pair.problem.title,
            "algorithm": outcome.candidate.cell.pair.algorithm.title,
            "seed": outcome.candidate.cell.seed,
            "way": outcome.candidate.way,
            "state": outcome.state,
            "text": printable(outcome.text),
            "recommendation": outcome.recommendation,
        }
        | ({"rounds": outcome.rounds._asdict()} if outcome.candidate.way == "rounds" else {})
        for outcome in replay.outcomes
    ]
    return {
        "seed": drawn.seed,
        "cells": drawn.cells,
        "drawable": drawn.drawable,
        "unchecked": drawn.unchecked,
        "checked": sum(outcome.is_checked for outcome in replay.outcomes),
        "failed": drawn.failed,
        "here": {"libraries": libraries(), "arithmetic": arithmetic_kind(), "cpu": cpu_kind()},
        "unread": list(replay.unread),
        "replayed": cells,
    }
