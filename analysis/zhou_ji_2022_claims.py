"""Claims of Zhou & Ji (2022), "On Kernelized Multi-Armed Bandits with Constraints", and of its preprint (CBO).

cbobench claims RUN... --recipe zhou_ji_2022_claims
"""

from collections.abc import Iterator

from cbobench.papers.claims import Case, Claim
from cbobench.papers.evidence import Part, Play, below, mean_never, near, never, power, similar, sublinear
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


def plain(case: Case) -> Iterator[Play]:
    """The three CKB algorithms on every problem, without slack; else none."""
    plays = [case.one(name, problem) for problem in case.problems for name in CKB]
    return iter(() if any(play.algorithm.values["slack"] for play in plays) else plays)


def no_soft_violation(case: Case) -> Iterator[Part]:
    """V(T) = 0: the share of trials with it, and the mean.

    The paper (Section 5.1): "we have V(T) = 0 under all the algorithms"; its preprint (F.1): "The cumulative constraint
    violations (i.e., V(T)) of our three algorithms are zero". Neither says a mean, as both do of N ("an average
    N = 38"), and neither need: V(T) = [Σ g(x_t)]⁺ (Section 2) is one trial's and never negative, so its mean over
    trials is 0 exactly where it is 0 in every trial, and one trial with more contradicts either sentence. (A third
    reading, in which trials make up for one another, is of the mean of Σ g(x_t), which the paper does not define.)
    """
    return (part("violation", play) for play in plain(case) for part in (never, mean_never))


def synthetic_regret(case: Case) -> Iterator[Part]:
    """Thompson sampling and RandGP-UCB below both safe methods; UCB within a factor of two of them."""
    for problem in case.problems:
        safe = [case.one(name, problem) for name in SAFE]
        for name in ("ckb-ts", "ckb-rand"):
            yield from (below("regret", case.one(name, problem), other) for other in safe)
        yield from (similar("regret", case.one("ckb-ucb", problem), other) for other in safe)


def synthetic_violations(case: Case) -> Iterator[Part]:
    """The table of F.1."""
    for problem in case.problems:
        for name, number in NUMBERS[problem.values["h"]].items():
            yield near("violations", case.one(name, problem), number)


def light(case: Case) -> Iterator[Part]:
    """Rand and StageOpt below the other three, UCB below Thompson sampling; N of UCB and Rand."""
    for problem in case.problems:
        ucb, ts, rand, stage, sgp = (case.one(name, problem) for name in (*CKB, *SAFE))
        yield from (below("regret", best, other) for best in (rand, stage) for other in (ucb, ts, sgp))
        yield below("regret", ucb, ts)
        yield near("violations", ucb, 0)
        yield near("violations", rand, 38)


def stocks(case: Case) -> Iterator[Part]:
    """All three CKB below both safe methods; N of Rand and UCB."""
    for problem in case.problems:
        plays = {name: case.one(name, problem) for name in (*CKB, *SAFE)}
        yield from (below("regret", plays[name], plays[other]) for name in CKB for other in SAFE)
        yield near("violations", plays["ckb-rand"], 21)
        yield near("violations", plays["ckb-ucb"], 47)


def hard_violation_sublinear(case: Case) -> Iterator[Part]:
    """The growth exponent of V⁺ is below 1."""
    return (sublinear("violation_hard", play) for play in plain(case))


def cost(case: Case) -> Iterator[Part]:
    """Seconds per round against the number of actions: nearer to linear than to quadratic, and the other way round."""
    for name in (*CKB, "stageopt"):
        points = [(float(play.problem.values["n"]), play) for play in case.of(name)]
        yield power("seconds_per_round", points, **({"at_least": 1.5} if name == "stageopt" else {"at_most": 1.5}))


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
    return (never("violation", play) for problem in case.problems for play in case.of("scgp-ucb", problem))


SYNTHETIC = ("rkhs-1d", "rkhs")
claims = [
    Claim("ZJ1", "CKB has no cumulative violation, V(T) = 0, on synthetic data and light sensors",
          "Zhou & Ji (2022) Section 5.1", "", ("rkhs-1d", "light-sensors"), CKB, no_soft_violation),
    Claim("ZJ2", "synthetic: CKB-TS and CKB-Rand have clearly less regret than StageOpt, SGP-UCB; CKB-UCB is similar",
          "CBO preprint F.1", "Figure 1a", ("rkhs-1d",), (*CKB, *SAFE), synthetic_regret, among=threshold),
    Claim("ZJ3", "synthetic: rounds in violation are at most 5 for CKB, and below 1 for the safe methods",
          "CBO preprint F.1", "N in the text of F.1", ("rkhs-1d",), (*CKB, *SAFE), synthetic_violations,
          among=threshold),
    Claim("ZJ4", "light sensors: CKB-Rand and StageOpt are best, CKB-TS is worse than CKB-UCB; N: UCB 0, Rand 38",
          "CBO preprint F.1", "Figure 1b", ("light-sensors",), (*CKB, *SAFE), light),
    Claim("ZJ5", "stocks: all three CKB have clearly less regret than StageOpt and SGP-UCB; N: Rand 21, UCB 47",
          "CBO preprint F.2", "Figures 2a, 2b", ("stocks",), (*CKB, *SAFE), stocks),
    Claim("ZJ6", "V⁺ grows sublinearly for every CKB algorithm", "Zhou & Ji (2022) Section 5", "Figures 1c, 2c",
          ("rkhs-1d", "light-sensors", "stocks"), CKB, hard_violation_sublinear),
    Claim("ZJ7", "time per round: CKB is linear in the number of actions, StageOpt quadratic",
          "CBO preprint Section 5", "", ("rkhs",), (*CKB, "stageopt"), cost, within=("n",)),
    Claim("ZJ8", "slack in the dual step trades regret for bounded or zero violation", "Zhou & Ji (2022) Section 4", "",
          ("rkhs-1d",), CKB, slack, within=("slack",)),
    Claim("ZJ9", "SCGP-UCB: the expected violation is zero after a time of order 1/δ⁴", "CBO preprint Theorem 3", "",
          ("queue-stability", "expert-guidance"), ("scgp-ucb",), full_information),
]  # fmt: skip
