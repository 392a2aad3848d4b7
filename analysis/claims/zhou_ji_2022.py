"""Claims of Zhou & Ji (2022), "On Kernelized Multi-Armed Bandits with Constraints", and of its
preprint (CBO).

cbobench claims RUN... --recipe zhou_ji_2022
"""

from collections.abc import Iterator

from cbobench.papers.claims import Case, Claim
from cbobench.papers.evidence import Part, Play
from cbobench.papers.rules import below, never, number, power, similar, vanishes
from cbobench.results.manifest import Variant

CKB = ("ckb-ucb", "ckb-ts", "ckb-rand")
SAFE = ("stageopt", "sgp-ucb")
NUMBERS = {  # mean rounds in violation at T = 10,000, by h / B (CBO F.1)
    0.25: {"ckb-ucb": 1.1, "ckb-ts": 0.7, "ckb-rand": 1.1, "stageopt": 0.22, "sgp-ucb": 0.0},
    0.5: {"ckb-ucb": 3.25, "ckb-ts": 2.9, "ckb-rand": 5.0, "stageopt": 0.3, "sgp-ucb": 0.0},
}


def threshold(problem: Variant) -> bool:
    """The preprint's synthetic problems: g = -f + h."""
    return problem.values.get("constraint") == "threshold" and problem.values.get("h") in NUMBERS


def independent(problem: Variant) -> bool:
    """The conference version's synthetic problem: g is drawn like f."""
    return problem.values.get("constraint") == "independent"


def published(problem: Variant) -> bool:
    """A problem of either version."""
    return problem.name != "rkhs-1d" or threshold(problem) or independent(problem)


def without_slack(case: Case) -> Iterator[Play]:
    """The three CKB algorithms on every problem, without slack; else none."""
    plays = [case.play_of(name, problem) for problem in case.problems for name in CKB]
    return iter(() if any(play.algorithm.values["slack"] for play in plays) else plays)


def no_soft_violation(case: Case) -> Iterator[Part]:
    """V(T) = [Σ g(x_t)]⁺ is 0 in every trial. V is one trial's and never negative, so that its mean
    says the same.
    """
    return (never("violation", play) for play in without_slack(case))


def synthetic_regret(case: Case) -> Iterator[Part]:
    """Thompson sampling and RandGP-UCB below both safe methods; UCB within a factor of two of
    them.
    """
    for problem in case.problems:
        safe = [case.play_of(name, problem) for name in SAFE]
        for name in ("ckb-ts", "ckb-rand"):
            yield from (
                below("regret", case.play_of(name, problem), safe_play) for safe_play in safe
            )
        yield from (
            similar("regret", case.play_of("ckb-ucb", problem), safe_play) for safe_play in safe
        )


def better_or_similar(case: Case) -> Iterator[Part]:
    """The regret of each CKB algorithm is less than twice that of each safe method; R₊ where g may
    bind.
    """
    for problem in case.problems:
        metric = "regret_plus" if independent(problem) else "regret"
        for name in CKB:
            yield from (
                similar(
                    metric,
                    case.play_of(name, problem),
                    case.play_of(safe_name, problem),
                    or_better=True,
                )
                for safe_name in SAFE
            )


def few_violations(case: Case) -> Iterator[Part]:
    """N at most 5 for CKB, and in the preprint's forms at most 1 for the safe methods, as means."""
    for problem in case.problems:
        bounds = dict.fromkeys(CKB, 5)
        if threshold(problem):
            bounds |= dict.fromkeys(SAFE, 1)
        for name, bound in bounds.items():
            yield number("violations", case.play_of(name, problem), bound, at_most=True)


def synthetic_numbers(case: Case) -> Iterator[Part]:
    """The five mean numbers of F.1 at this h."""
    for problem in case.problems:
        for name, mean in NUMBERS[problem.values["h"]].items():
            yield number("violations", case.play_of(name, problem), mean)


def light(case: Case) -> Iterator[Part]:
    """Rand and StageOpt below the other three, UCB below Thompson sampling."""
    for problem in case.problems:
        ucb, ts, rand, stage, sgp = (case.play_of(name, problem) for name in (*CKB, *SAFE))
        yield from (
            below("regret", best, worse) for best in (rand, stage) for worse in (ucb, ts, sgp)
        )
        yield below("regret", ucb, ts)


def stocks(case: Case) -> Iterator[Part]:
    """All three CKB below both safe methods."""
    for problem in case.problems:
        plays = {name: case.play_of(name, problem) for name in (*CKB, *SAFE)}
        yield from (
            below("regret", plays[name], plays[safe_name]) for name in CKB for safe_name in SAFE
        )


def light_numbers(case: Case) -> Iterator[Part]:
    """N of UCB is 0 in every trial, that of Rand 38 in the mean."""
    for problem in case.problems:
        yield never("violations", case.play_of("ckb-ucb", problem))
        yield number("violations", case.play_of("ckb-rand", problem), 38)


def stock_numbers(case: Case) -> Iterator[Part]:
    """Mean N of Rand and UCB."""
    for problem in case.problems:
        yield number("violations", case.play_of("ckb-rand", problem), 21)
        yield number("violations", case.play_of("ckb-ucb", problem), 47)


def hard_violation_sublinear(case: Case) -> Iterator[Part]:
    """V⁺/t tends to 0."""
    return (vanishes("violation_hard", play) for play in without_slack(case))


def cost(case: Case) -> Iterator[Part]:
    """Seconds per round against the number of actions: nearer to linear than to quadratic, and the
    other way round.
    """
    for name in (*CKB, "stageopt"):
        points = [(float(play.problem.values["n"]), play) for play in case.of(name)]
        yield power("seconds_per_round", points, above=name == "stageopt")


def slack(case: Case) -> Iterator[Part]:
    """The largest slack: less V and V = 0 at T, for more R₊, than without slack."""
    for problem in case.problems:
        for name in CKB:
            plays = sorted(case.of(name, problem), key=lambda play: play.algorithm.values["slack"])
            if len(plays) == 1:
                return
            yield below("violation", plays[-1], plays[0])
            yield never("violation", plays[-1])
            yield below("regret_plus", plays[-1], plays[0], higher=True)


def full_information(case: Case) -> Iterator[Part]:
    """E V(T) is 0, with T beyond 1/δ⁴: V, of the noise-free g, is 0 in all seeds."""
    return (
        never("violation", play)
        for problem in case.problems
        for play in case.of("scgp-ucb", problem)
    )


claims = [
    Claim(
        "ZJ1",
        "CKB has no cumulative violation: V(T) = 0 in every trial",
        "Zhou & Ji (2022) Section 5.1; preprint F.1",
        "",
        ("rkhs-1d", "light-sensors"),
        CKB,
        no_soft_violation,
        quote="Since we have V(T) = 0 under all the algorithms, ...",
    ),
    Claim(
        "ZJ2",
        "synthetic: CKB-TS and CKB-Rand have less regret than both safe methods, CKB-UCB has "
        "similar regret",
        "preprint F.1",
        "Figure 1a",
        ("rkhs-1d",),
        (*CKB, *SAFE),
        synthetic_regret,
        among=threshold,
        kind="with constraint threshold and h 0.25 or 0.5",
        quote="CBO-UCB has similar performance ... to existing ones while both CBO-TS and CBO-Rand "
        "have a "
        "significant gain compared to existing algorithms",
    ),
    Claim(
        "ZJ10",
        "the regret of every CKB algorithm is better than that of both safe methods, or similar",
        "Zhou & Ji (2022) Section 5.1",
        "Figures 1a, 1b",
        ("rkhs-1d", "light-sensors"),
        (*CKB, *SAFE),
        better_or_similar,
        among=published,
        kind="with constraint independent, or threshold and h 0.25 or 0.5",
        quote="Our three CKB algorithms achieve a better (or similar) regret performance compared "
        "to the existing "
        "safe BO algorithms",
    ),
    Claim(
        "ZJ3",
        "synthetic: mean N is at most 5 for CKB, and below 1 for the safe methods",
        "Zhou & Ji (2022) Section 5.1; preprint F.1",
        "N in the text",
        ("rkhs-1d",),
        (*CKB, *SAFE),
        few_violations,
        among=published,
        kind="with constraint independent, or threshold and h 0.25 or 0.5",
        quote="our proposed CKB algorithms have N ≤ 5 over T = 10,000 rounds",
    ),
    Claim(
        "ZJ3N",
        "synthetic: the ten mean numbers N",
        "preprint F.1",
        "N in the text",
        ("rkhs-1d",),
        (*CKB, *SAFE),
        synthetic_numbers,
        among=threshold,
        kind="with constraint threshold and h 0.25 or 0.5",
        quote="N = 3.25, N = 2.9 and N = 5 under CBO-UCB, CBO-TS and CBO-Rand respectively "
        "compared to N = 0.3 for "
        "StageOpt and N = 0 for SGP-UCB",
    ),
    Claim(
        "ZJ4",
        "light sensors: CKB-Rand and StageOpt have the least regret, CKB-TS more than CKB-UCB",
        "preprint F.1",
        "Figure 1b",
        ("light-sensors",),
        (*CKB, *SAFE),
        light,
        quote=(
            "CBO-Rand and StageOpt has the best performance, while CBO-TS is worse than CBO-UCB "
            "in this case"
        ),
    ),
    Claim(
        "ZJ4N",
        "light sensors: N of CKB-UCB is 0, that of CKB-Rand 38",
        "preprint F.1",
        "N in the text",
        ("light-sensors",),
        ("ckb-ucb", "ckb-rand"),
        light_numbers,
        quote="CBO-UCB does not make any decisions that violate the constraint while CBO-Rand has "
        "an average of 38 "
        "rounds where the constraint is violated",
    ),
    Claim(
        "ZJ5",
        "stocks: all three CKB algorithms have less regret than both safe methods",
        "preprint F.2",
        "Figures 2a, 2b",
        ("stocks",),
        (*CKB, *SAFE),
        stocks,
        quote=(
            "our three CBO algorithms have significant performance gain over existing safe BO "
            "algorithms"
        ),
    ),
    Claim(
        "ZJ5N",
        "stocks: N of CKB-Rand is 21, that of CKB-UCB 47",
        "preprint F.2",
        "N in the text",
        ("stocks",),
        ("ckb-ucb", "ckb-rand"),
        stock_numbers,
        quote="CBO-Rand enjoys an average N = 21 and CBO-UCB has an average N = 47",
    ),
    Claim(
        "ZJ6",
        "V⁺ grows sublinearly for every CKB algorithm",
        "Zhou & Ji (2022) Section 5",
        "Figures 1c, 2c",
        ("light-sensors", "stocks"),
        CKB,
        hard_violation_sublinear,
        quote=(
            "all CKB algorithms achieve sublinear performance even with respect to this stronger "
            "metric"
        ),
    ),
    Claim(
        "ZJ7",
        "time per round: CKB is linear in the number of actions, StageOpt quadratic",
        "preprint Section 5",
        "",
        ("rkhs",),
        (*CKB, "stageopt"),
        cost,
        within=("n",),
        quote="they scale linearly with the number of actions ... StageOpt scales quadratically",
    ),
    Claim(
        "ZJ8",
        "slack in the dual step trades regret for bounded or zero violation",
        "Zhou & Ji (2022) Section 4",
        "",
        ("rkhs-1d",),
        CKB,
        slack,
        within=("slack",),
        quote="by introducing slackness in the dual update, one can trade regret to achieve "
        "bounded or even zero "
        "constraint violation",
    ),
    Claim(
        "ZJ9",
        "SCGP-UCB: the expected violation is zero after a time of order 1/δ⁴",
        "preprint Theorem 3",
        "",
        ("queue-stability", "expert-guidance"),
        ("scgp-ucb",),
        full_information,
        trials=20,
    ),
]
