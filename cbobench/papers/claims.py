"""Claims of papers as small functions over runs, each with a verdict and the rate at which it
replicates itself.

A recipe (a Python file) with a list `claims` of `Claim` is found as one with a function
`figures(run)` is; `cbobench claims RUN...` tests those of every shipped recipe. A claim is tested
once per setting: where a suite holds several variants of a method or of a problem, once for each
choice of them, never on a mixture.
"""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import pandas as pd

from cbobench.errors import show
from cbobench.papers.evidence import HOLDS, Part, Play, Verdict, judge, verdict_of
from cbobench.report.load import Run
from cbobench.results.manifest import Variant
from cbobench.rng import generator
from cbobench.stats.paired_tests import SIGNIFICANT

# fmt: off
DECISIVE = (
    "data", "normalise", "unit_variance", "h_of", "supports", "scaled", "instance",  # problems
    "kernel", "lengthscale", "lam", "beta", "beta_scale", "R", "B", "G",  # models
    "keep", "S", "mu",  # epochs
    "expand_rounds", "seed_rounds", "L", "eps", "metric",  # safe methods
    "window", "variation", "restart",  # change
    "pending", "cutoff", "lag", "inclusive", "stop_when_infeasible",  # delay
)
# fmt: on
"""Parameters that papers leave open and that decide verdicts; what a run has of them is shown with
each finding.
"""


@dataclass(frozen=True)
class Case:
    """The plays that one test of a claim compares: one variant per algorithm and problem, several
    if `within` asks.
    """

    plays: Sequence[Play]

    @property
    def problems(self) -> list[Variant]:
        """The problems, in the suite's order."""
        return list({play.problem.title: play.problem for play in self.plays}.values())

    @property
    def algorithms(self) -> list[Variant]:
        """The algorithms, in the suite's order."""
        return list({play.algorithm.title: play.algorithm for play in self.plays}.values())

    @property
    def places(self) -> str:
        """The suites, with the problems' labels."""
        places_by_suite: dict[str, dict[str, None]] = {}
        for play in self.plays:
            places_by_suite.setdefault(play.run.record.suite, {})[play.place] = None
        texts = []
        for suite, places in places_by_suite.items():
            text = ", ".join(places)
            if len(places) > 2:
                text = f"{len(places)} problems"
            texts.append(f"{suite} ({text})")
        return "; ".join(texts)

    def of(self, algorithm: str, problem: Variant | None = None) -> list[Play]:
        """The plays of an algorithm (its registered name), in the suite's order."""
        return [
            play
            for play in self.plays
            if play.algorithm.name == algorithm and problem in (None, play.problem)
        ]

    def play_of(self, algorithm: str, problem: Variant) -> Play:
        """The play of an algorithm on a problem."""
        return self.of(algorithm, problem)[0]

    def draw(self, index: int, trials: int) -> Case:
        """A simulated replication: seeds drawn for us, as many as there are, and others for the
        paper's trials.
        """
        seeds = sorted({int(seed) for play in self.plays for seed in play.final("seconds").index})
        rng = generator("papers", "replication", index)
        ours = rng.choice(seeds, len(seeds)).tolist()
        theirs = rng.choice(seeds, trials).tolist()
        return Case(
            [replace(play, seeds=ours, paper=replace(play, seeds=theirs)) for play in self.plays]
        )


@dataclass(frozen=True)
class Claim:
    """A sentence that a paper says of its results, and how it is tested.

    Attributes:
        id: short and unique, such as "ZJ1".
        statement: what is tested, in one sentence.
        source: paper and section.
        figure: the figure or table that shows it, "" for none.
        problems: registered names; any of them will do.
        algorithms: registered names; all are needed.
        optional: further ones, taken along where a run has them.
        test: gives the parts of the verdict (`papers.rules`); none where the case says nothing.
        quote: the paper's own sentence.
        trials: how many trials the paper's means are of.
        among: selects variants of the problems.
        within: parameters whose values one test compares; all others are settings.
        kind: of which kind those problems are, in words, such as "with noise on g".
        across: whether one test takes the algorithms from different runs. They go together if all
            their common parameters agree, `within` aside.
    """

    id: str
    statement: str
    source: str
    figure: str
    problems: Sequence[str]
    algorithms: Sequence[str]
    test: Callable[[Case], Iterable[Part]]
    among: Callable[[Variant], bool] = lambda problem: True
    within: Sequence[str] = ()
    optional: Sequence[str] = ()
    across: bool = False
    kind: str = "of another kind"
    quote: str = ""
    trials: int = 50


class Rates(NamedTuple):
    """How often a claim's rule would decide about an exact replication of our own result.

    Attributes:
        holds: share of draws in which it is reproduced, or stronger than claimed.
        contradicted: share of draws in which a part of it is contradicted.
        draws: their number.
    """

    holds: float
    contradicted: float
    draws: int


@dataclass(frozen=True)
class Finding:
    """A claim tested in one setting.

    Attributes:
        places: the suites, with the problems' labels.
        problems: registered names.
        settings: the decisive settings in words.
        note: what the runs lack, if they hold nothing of the claim.
        near: whether they have the claim's problem.
        rates: of its self-replication; None if that was not simulated.
    """

    claim: Claim
    verdict: Verdict
    places: str
    problems: Sequence[str] = ()
    parts: Sequence[Part] = ()
    settings: str = ""
    note: str = ""
    near: bool = False
    rates: Rates | None = None

    @property
    def held(self) -> int:
        """Parts that hold."""
        return sum(part.holds for part in self.parts)

    @property
    def deciding(self) -> Part:
        """The part that decides the verdict: the first contradicted one, else one that cannot tell,
        else one that is stronger than claimed, else the first.
        """
        order = ("contradicted", "cannot tell", "stronger than claimed", "reproduced")
        return min(self.parts, key=lambda part: order.index(part.verdict))

    @property
    def n(self) -> int:
        """Complete seeds of the part that decides."""
        if not self.parts:
            return 0
        return self.deciding.n

    @property
    def expected(self) -> int:
        """Seeds that were asked for."""
        return max((part.expected for part in self.parts), default=0)


def replicate(claim: Claim, case: Case, draws: int) -> Rates:
    """Simulate how a claim's rule decides if the paper's trials and ours are drawn from the same
    cells.
    """
    holds = contradicted = 0
    for index in range(draws):
        parts = judge([*claim.test(case.draw(index, claim.trials))])
        holds += verdict_of(parts) in HOLDS
        contradicted += any(part.verdict == "contradicted" for part in parts)
    return Rates(holds / draws, contradicted / draws, draws)


def check_claim(runs: Sequence[Run], claim: Claim, draws: int = 0) -> list[Finding]:
    """Test a claim in every setting of the runs; without a setting it is "not in these runs".

    Args:
        draws: simulated replications per finding, for `Finding.rates`. A rule that contradicts more
            than 5 % of them contradicts nothing.
    """
    find_cases = _list_cases
    if claim.across:
        find_cases = _pool_runs
    # A case that says nothing, such as one without a complete seed, is no finding.
    tested = [
        _conclude(claim, case, parts, draws)
        for case in find_cases(runs, claim)
        if (parts := list(claim.test(case)))
    ]
    if tested:
        return tested
    near = any(run.named("problem", claim.problems) for run in runs)
    return [
        Finding(
            claim,
            "not in these runs",
            places="",
            note=f"needs {_find_lack(runs, claim)}",
            near=near,
        )
    ]


def _conclude(claim: Claim, case: Case, measured: Sequence[Part], draws: int) -> Finding:
    """The finding of a claim's parts, as its test gives them, in one setting."""
    rates = None
    trusted = True
    if draws:
        rates = replicate(claim, case, draws)
        # A rule that contradicts so many replications of our own result says nothing against the
        # paper's.
        trusted = rates.contradicted <= SIGNIFICANT
    parts = judge(measured, trusted)
    return Finding(
        claim,
        verdict_of(parts),
        case.places,
        problems=list(dict.fromkeys(problem.name for problem in case.problems)),
        parts=parts,
        settings=describe_settings(case, claim.within),
        rates=rates,
    )


def _find_lack(runs: Sequence[Run], claim: Claim) -> str:
    """What the runs lack: the problem, its kind, some of the algorithms, or values of
    parameters.
    """
    lacks = [
        [name for name in claim.algorithms if not run.named("algorithm", [name])]
        for run in runs
        if _select_problems(run, claim)
    ]
    if lacks:
        if fewest := min(lacks, key=len):
            return ", ".join(fewest)
        if claim.within:
            return f"several {' and '.join(claim.within)}"
        return "other parameters"
    needed = " or ".join(claim.problems)
    labels = dict.fromkeys(
        run.record.labels("problems")[title]
        for run in runs
        for title in run.named("problem", claim.problems)
    )
    if not labels:
        return needed
    return f"{needed} {claim.kind}, and not {', '.join(map(show, labels))}"


def _select_problems(run: Run, claim: Claim) -> list[Variant]:
    variants = run.record.variants("problems").values()
    return [v for v in variants if v.name in claim.problems and claim.among(v)]


def _select_plays(run: Run, claim: Claim) -> Iterator[Play]:
    """A claim's plays in a run, in the suite's order, where a cell was asked for."""
    names = (*claim.algorithms, *claim.optional)
    labels = run.record.labels("algorithms")
    places = run.record.labels("problems")
    for problem in _select_problems(run, claim):
        expected = run.expected_of(problem.title)
        for algorithm in run.record.variants("algorithms").values():
            if algorithm.name in names and algorithm.title in expected:
                yield Play(
                    run=run,
                    problem=problem,
                    algorithm=algorithm,
                    label=labels[algorithm.title],
                    place=places[problem.title],
                    horizon=run.horizon_of(problem.title),
                    expected=expected[algorithm.title],
                )


def _list_cases(runs: Sequence[Run], claim: Claim) -> Iterator[Case]:
    """One case per choice of variants in a run."""
    for run in runs:
        every = Case([*_select_plays(run, claim)])
        for problems, algorithms in itertools.product(
            choices(every.problems, claim.within), choices(every.algorithms, claim.within)
        ):
            plays = [
                play
                for problem, algorithm in itertools.product(problems, algorithms)
                for play in every.plays
                if play.problem is problem and play.algorithm is algorithm
            ]
            if plays and {play.algorithm.name for play in plays} >= set(claim.algorithms):
                yield Case(plays)


def _pool_runs(runs: Sequence[Run], claim: Claim) -> Iterator[Case]:
    """One case per choice of plays from different runs whose common parameters agree."""
    # Of runs that hold the same play, the one with the most seeds counts.
    largest: dict[tuple[str, str, int], Play] = {}
    for run in runs:
        for play in _select_plays(run, claim):
            key = play.problem.key, play.algorithm.key, play.horizon
            largest[key] = max(largest.get(key, play), play, key=lambda one: one.expected)
    every = Case([*largest.values()])
    for combination in itertools.product(*map(every.of, claim.algorithms)):
        settings = [_list_settings(play, claim.within) for play in combination]
        if not any(count_differences(a, b) for a, b in itertools.combinations(settings, 2)):
            yield Case(combination)


def _list_settings(play: Play, within: Sequence[str]) -> dict[str, str]:
    """The problem's name, and the parameters of problem and algorithm with their owners."""
    settings = {"problem": play.problem.name}
    for owner, variant in (("problem", play.problem), ("algorithm", play.algorithm)):
        for name, value in variant.values.items():
            if name not in within:
                settings[f"{owner}: {name}"] = format_value(value)
    return settings


def describe_settings(case: Case, within: Sequence[str]) -> str:
    """Describe the decisive settings of a case: first those that all methods share, then each
    method's own.
    """
    horizons = dict.fromkeys(f"{play.horizon:,}" for play in case.plays)
    settings = [f"T {', '.join(horizons)}"]
    for variants, common in ((case.problems, ()), (case.algorithms, case.problems)):
        for name in DECISIVE:
            values = {v.name: format_value(v.values[name]) for v in variants if name in v.values}
            if name in within or all(is_off(name, value) for value in values.values()):
                continue
            # A method's value of what problems have as well says whose it is.
            is_ambiguous = any(name in v.values for v in common)
            first, *others = {*values.values()}
            if others or is_ambiguous:
                settings += [f"{method}: {name} {value}" for method, value in values.items()]
            else:
                settings.append(f"{name} {first}")
    return ", ".join(settings)


def is_off(name: str, value: str) -> bool:
    """Whether a parameter's value (in a word) says that nothing was chosen; data that are not kept
    are a choice, the paper's own data are none.
    """
    if name == "data":
        return not value.startswith("look-alike")
    return value in ("null", "none") or (value == "false" and name != "keep")


def format_value(value: Any) -> str:
    """A parameter's value in a word."""
    if isinstance(value, str):
        return value
    return json.dumps(value, sort_keys=True)


def count_differences(a: Mapping[Any, str], b: Mapping[Any, str]) -> int:
    """The number of parameters that both have and differ in."""
    return sum(a[p] != b[p] for p in a.keys() & b.keys())


@dataclass(frozen=True, eq=False)
class _Kind:
    """Variants of one name that differ `within` only.

    Attributes:
        shared: their values of what other names vary, too.
        departs: whether it is not the first kind of its name with these values.
    """

    shared: Mapping[Any, str]
    departs: bool
    variants: list[Variant]


def choices(variants: Sequence[Variant], within: Sequence[str] = ()) -> Iterator[list[Variant]]:
    """Ways to choose one variant per name, or several that differ in `within` only. Every variant
    is in one choice.

    If several names vary a parameter, a choice has the same value of it for all of them. If one
    name alone varies a parameter, a choice leaves its first value for at most one name. A value
    that only one name has goes with the variants of the others that agree with it in most
    parameters.
    """
    named: dict[str, list[Variant]] = {}
    for variant in variants:
        named.setdefault(variant.name, []).append(variant)
    tables = {name: _tabulate_varying(same, within) for name, same in named.items()}
    counts = Counter(itertools.chain(*tables.values()))

    # A choice is made among kinds, as what differs `within` alone is compared in one test.
    kinds: dict[str, dict[str, _Kind]] = {}
    for name, table in tables.items():
        known = kinds.setdefault(name, {})
        for variant, values in zip(named[name], table.to_dict("records"), strict=True):
            shared = {p: value for p, value in values.items() if counts[p] > 1}
            departs = any(kind.shared == shared for kind in known.values())
            kind = _Kind(shared, departs, [])
            known.setdefault(format_value(values), kind).variants.append(variant)

    # A kind whose shared value no other name has would be in no choice, and its plays would be
    # tested by nothing.
    combinations = _combine(kinds.values())
    for name, same in kinds.items():
        for kind in same.values():
            if not any(kind in chosen for chosen in combinations):
                nearest = {
                    other: min(
                        others.values(), key=lambda one: count_differences(kind.shared, one.shared)
                    )
                    for other, others in kinds.items()
                }
                combinations.append([*(nearest | {name: kind}).values()])
    for chosen in combinations:
        yield [variant for kind in chosen for variant in kind.variants]


def _combine(kinds: Iterable[Mapping[str, _Kind]]) -> list[list[_Kind]]:
    """One kind of each name, all of which agree.

    A parameter that one name alone varies is changed for one name at a time: all combinations of
    all names would be a product of settings that no paper has.
    """
    combinations: list[list[_Kind]] = [[]]
    for same in kinds:  # one name after the other: the product of all would be long
        extended = []
        for chosen, kind in itertools.product(combinations, same.values()):
            departures = sum(one.departs for one in (*chosen, kind))
            agrees = not any(count_differences(one.shared, kind.shared) for one in chosen)
            if agrees and departures <= 1:
                extended.append([*chosen, kind])
        combinations = extended
    return combinations


def _tabulate_varying(variants: Sequence[Variant], within: Sequence[str]) -> pd.DataFrame:
    """The parameters in which variants of one name differ, in words: a row for each variant."""
    table = pd.DataFrame([variant.values for variant in variants], dtype=object)
    table = table.drop(columns=[*within], errors="ignore").map(format_value)
    return table.loc[:, table.nunique() > 1]
