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
from functools import partial
from typing import Any, NamedTuple

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

    plays: tuple[Play, ...]

    @property
    def problems(self) -> list[Variant]:
        """The problems, in the suite's order."""
        return list({play.problem.title: play.problem for play in self.plays}.values())

    @property
    def places(self) -> str:
        """The suites, with the problems' labels."""
        problems_by_suite: dict[str, dict[str, None]] = {}
        for play in self.plays:
            problems_by_suite.setdefault(play.run.record.suite, {})[play.place] = None
        texts = {
            suite: ", ".join(places) if len(places) < 3 else f"{len(places)} problems"
            for suite, places in problems_by_suite.items()
        }
        return "; ".join(f"{suite} ({text})" for suite, text in texts.items())

    def of(self, algorithm: str, problem: Variant | None = None) -> list[Play]:
        """The plays of an algorithm (its registered name), in the suite's order."""
        named = [play for play in self.plays if play.algorithm.name == algorithm]
        return [play for play in named if problem is None or play.problem is problem]

    def play_of(self, algorithm: str, problem: Variant) -> Play:
        """The play of an algorithm on a problem."""
        return self.of(algorithm, problem)[0]

    @property
    def seeds(self) -> list[int]:
        """All seeds that some play has."""
        return sorted({int(seed) for play in self.plays for seed in play.final("seconds").index})

    def draw(self, index: int, trials: int) -> Case:
        """A simulated replication: seeds drawn for us, as many as there are, and others for the
        paper's trials.
        """
        seeds = self.seeds
        rng = generator("papers", "replication", index)
        ours, theirs = (tuple(rng.choice(seeds, size).tolist()) for size in (len(seeds), trials))
        plays = [
            replace(play, seeds=ours, paper=replace(play, seeds=theirs)) for play in self.plays
        ]
        return Case(tuple(plays))


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
    kind: str = ""
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
    problems: tuple[str, ...] = ()
    parts: tuple[Part, ...] = ()
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
        else the first.
        """
        for verdict in ("contradicted", "cannot tell", "stronger than claimed"):
            for part in self.parts:
                if part.verdict == verdict:
                    return part
        return self.parts[0]

    @property
    def n(self) -> int:
        """Complete seeds of the part that decides."""
        return self.deciding.n if self.parts else 0

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
        parts = judge(claim.test(case.draw(index, claim.trials)))
        holds += verdict_of(parts) in HOLDS
        contradicted += any(part.verdict == "contradicted" for part in parts)
    return Rates(holds / draws, contradicted / draws, draws)


def findings(runs: Sequence[Run], claims: Iterable[Claim], draws: int = 0) -> Iterator[Finding]:
    """Test every claim in every setting of the runs; a claim without a setting is "not in these
    runs".

    Args:
        draws: simulated replications per finding, for `Finding.rates`. A rule that contradicts more
            than 5 % of them contradicts nothing.
    """
    for claim in claims:
        is_tested = False
        for case in _pool_runs(runs, claim) if claim.across else _cases(runs, claim):
            # A case that says nothing, such as one without a complete seed, is no finding.
            if parts := judge(claim.test(case)):
                is_tested = True
                yield _conclude(claim, case, parts, draws)
        if not is_tested:
            near = any(_list_problems(run, claim) for run in runs)
            yield Finding(claim, "not in these runs", "", note=_missing(runs, claim), near=near)


def _conclude(claim: Claim, case: Case, parts: list[Part], draws: int) -> Finding:
    """The finding of a claim's parts in one setting."""
    rates = replicate(claim, case, draws) if draws else None
    if rates and rates.contradicted > SIGNIFICANT:
        # A rule that contradicts so many replications of our own result says nothing against the
        # paper's.
        parts = [
            replace(p, verdict="cannot tell") if p.verdict == "contradicted" else p for p in parts
        ]
    return Finding(
        claim,
        verdict_of(parts),
        case.places,
        problems=tuple(dict.fromkeys(play.problem.name for play in case.plays)),
        parts=tuple(parts),
        settings=describe_settings(case, claim.within),
        rates=rates,
    )


def _missing(runs: Sequence[Run], claim: Claim) -> str:
    """Name what the runs lack: the problem, its kind, some of the algorithms, or values of
    parameters.
    """
    runs_with_problem = [run for run in runs if _select_problems(run, claim)]
    if not runs_with_problem:
        labels = dict.fromkeys(label for run in runs for label in _list_problems(run, claim))
        instead = f", and not {', '.join(map(show, labels))}" if labels else ""
        return f"needs {' or '.join(claim.problems)}" + (
            f" {claim.kind or 'of another kind'}{instead}" if labels else ""
        )
    lacks = [
        [name for name in claim.algorithms if not run.named("algorithm", [name])]
        for run in runs_with_problem
    ]
    fewest = min(lacks, key=lambda names: len(names))
    several = f"several {' and '.join(claim.within)}" if claim.within else "other parameters"
    return f"needs {', '.join(fewest) or several}"


def _list_problems(run: Run, claim: Claim) -> list[str]:
    """Labels of a run's problems of the claim's names, whatever their kind."""
    labels = run.record.labels("problems")
    return [
        labels[title]
        for title, v in run.record.variants("problems").items()
        if v.name in claim.problems
    ]


def _select_problems(run: Run, claim: Claim) -> list[Variant]:
    return [
        v
        for v in run.record.variants("problems").values()
        if v.name in claim.problems and claim.among(v)
    ]


def _cases(runs: Sequence[Run], claim: Claim) -> Iterator[Case]:
    """One case per choice of variants in a run."""
    names = {*claim.algorithms, *claim.optional}
    for run in runs:
        problems = _select_problems(run, claim)
        algorithms = [v for v in run.record.variants("algorithms").values() if v.name in names]
        choices_of = (choices(variants, claim.within) for variants in (problems, algorithms))
        for chosen_problems, chosen_algorithms in itertools.product(*choices_of):
            pairs = itertools.product(
                itertools.chain(*chosen_problems.values()),
                itertools.chain(*chosen_algorithms.values()),
            )
            plays = tuple(play for pair in pairs if (play := Play(run, *pair)).expected)
            if plays and {play.algorithm.name for play in plays} >= set(claim.algorithms):
                yield Case(plays)


def _pool_runs(runs: Sequence[Run], claim: Claim) -> Iterator[Case]:
    """One case per choice of plays from different runs whose common parameters agree."""
    # Of runs that hold the same play, the one with the most seeds counts.
    largest: dict[tuple[str, str, int], Play] = {}
    for run in runs:
        algorithms = [
            v for v in run.record.variants("algorithms").values() if v.name in claim.algorithms
        ]
        for play in (
            Play(run, *pair) for pair in itertools.product(_select_problems(run, claim), algorithms)
        ):
            key = play.problem.key, play.algorithm.key, play.horizon
            if play.expected > (largest[key].expected if key in largest else 0):
                largest[key] = play
    plays = [*largest.values()]
    options = [[play for play in plays if play.algorithm.name == name] for name in claim.algorithms]
    for combination in itertools.product(*options):
        if all(
            _share_settings(a, b, claim.within) for a, b in itertools.combinations(combination, 2)
        ):
            yield Case(combination)


def _share_settings(a: Play, b: Play, within: Sequence[str]) -> bool:
    def same(left: Variant, right: Variant) -> bool:
        common = (left.values.keys() & right.values.keys()) - set(within)
        return all(format_value(left.values[p]) == format_value(right.values[p]) for p in common)

    return (
        a.problem.name == b.problem.name
        and same(a.problem, b.problem)
        and same(a.algorithm, b.algorithm)
    )


def describe_settings(case: Case, within: Sequence[str] = ()) -> str:
    """Describe the decisive settings of a case: first those that all methods share, then each
    method's own.
    """
    problems = {(play.problem.title, play.problem.name): play.problem for play in case.plays}
    algorithms = {
        (play.algorithm.title, play.algorithm.name): play.algorithm for play in case.plays
    }
    settings = []
    for variants in (problems, algorithms):
        for name in DECISIVE:
            values = {
                v.name: format_value(v.values[name]) for v in variants.values() if name in v.values
            }
            # What says that nothing was chosen; data that are not kept are a choice.
            off = ("null", "none") if name == "keep" else ("null", "none", "false")
            if name in within or {*values.values()} <= {*off}:
                continue
            if name == "data" and not any(
                value.startswith("look-alike") for value in values.values()
            ):
                continue  # the paper's own
            # A method's value of what problems have as well says whose it is.
            is_ambiguous = variants is algorithms and any(
                name in v.values for v in problems.values()
            )
            if len(set(values.values())) == 1 and not is_ambiguous:
                settings.append(f"{name} {next(iter(values.values()))}")
            else:
                settings += [f"{method}: {name} {value}" for method, value in values.items()]
    horizon = ", ".join(dict.fromkeys(f"{play.horizon:,}" for play in case.plays))
    return ", ".join([f"T {horizon}", *settings])


Choice = dict[str, list[Variant]]


def format_value(value: Any) -> str:
    """A parameter's value in a word."""
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)


def varying_parameters(variants: Sequence[Variant], within: Sequence[str] = ()) -> list[str]:
    """Names of the parameters in which some variants of one name differ."""
    names = dict.fromkeys(name for variant in variants for name in variant.values)
    return [
        name
        for name in names
        if name not in within
        and len({format_value(variant.values.get(name)) for variant in variants}) > 1
    ]


@dataclass(frozen=True)
class _Kind:
    """Variants of one name that differ `within` only; `shared`: their values of what other names
    vary, too.
    """

    name: str
    shared: Mapping[str, str]
    variants: list[Variant]


def choices(variants: Sequence[Variant], within: Sequence[str] = ()) -> Iterator[Choice]:
    """Ways to choose one variant per name, or several that differ in `within` only. Every variant
    is in one choice.

    If several names vary a parameter, a choice has the same value of it for all of them. If one
    name alone varies a parameter, a choice leaves its first value for at most one name. A value
    that only one name has goes with the variants of the others that agree with it in most
    parameters.
    """
    names = list(dict.fromkeys(variant.name for variant in variants))
    vary = {
        name: varying_parameters([v for v in variants if v.name == name], within) for name in names
    }
    counts = Counter(itertools.chain(*vary.values()))

    # A choice is made among kinds, as what differs `within` alone is compared in one test.
    kinds: dict[str, dict[str, _Kind]] = {name: {} for name in names}
    for variant in variants:
        values = {p: format_value(variant.values.get(p)) for p in vary[variant.name]}
        shared = {p: value for p, value in values.items() if counts[p] > 1}
        kind = kinds[variant.name].setdefault(format_value(values), _Kind(variant.name, shared, []))
        kind.variants.append(variant)

    # A parameter that one name alone varies is changed for one name at a time: all combinations of
    # all names would be a product of settings that no paper has. Reversed, so that of kinds with
    # equal shared values the first remains.
    first = {
        (name, format_value(kind.shared)): kind
        for name in names
        for kind in reversed(kinds[name].values())
    }
    combinations: list[tuple[_Kind, ...]] = [()]
    for name in names:  # one name after the other: the product of all would be long
        combinations = [
            (*chosen, kind)
            for chosen in combinations
            for kind in kinds[name].values()
            if _go_together((*chosen, kind), first)
        ]

    # A kind whose shared value no other name has would be in no choice, and its plays would be
    # tested by nothing.
    for kind in itertools.chain(*(kinds_of_name.values() for kinds_of_name in kinds.values())):
        if not any(kind in chosen for chosen in combinations):
            nearest_kinds = (
                kind if name == kind.name else max(kinds[name].values(), key=partial(_agree, kind))
                for name in names
            )
            combinations.append(tuple(nearest_kinds))
    yield from ({k.name: k.variants for k in chosen} for chosen in combinations)


def _go_together(chosen: Sequence[_Kind], first: Mapping[tuple[str, str], _Kind]) -> bool:
    """Whether the last agrees with all before, and at most one is not the first of its name."""
    *before, last = chosen
    departures = sum(kind is not first[kind.name, format_value(kind.shared)] for kind in chosen)
    return departures <= 1 and all(
        _agree(kind, last) == len(kind.shared.keys() & last.shared) for kind in before
    )


def _agree(a: _Kind, b: _Kind) -> int:
    """The number of parameters that both vary and agree in."""
    return sum(a.shared[p] == b.shared[p] for p in a.shared.keys() & b.shared)
