"""Claims of Shi & Eryilmaz (2022), "A Bayesian Approach for Stochastic Continuum-armed Bandit with
... Constraints".

cbobench claims RUN... --recipe shi_eryilmaz_2022
"""

import itertools
from collections.abc import Iterator

from cbobench.papers.claims import Case, Claim
from cbobench.papers.evidence import Part, Play
from cbobench.papers.rules import any_of, below, vanishes
from cbobench.results.manifest import Variant

# the last round of ADMMBO that the figures show
LAST = {"feasible-pocket": 90, "rate-allocation": 50}
BASELINES = ("bandit-oco", "admmbo")


def noisy(problem: Variant) -> bool:
    """Whether g is observed with noise."""
    return bool(problem.values["noise_g"])


def pocket(case: Case) -> Iterator[Part]:
    """R/t and V/t of Algorithm 2 tend to 0."""
    for problem in case.problems:
        yield from (
            vanishes(metric, case.play_of("penalty-noiseless", problem))
            for metric in ("regret", "violation")
        )


def pocket_baselines(case: Case) -> Iterator[Part]:
    """R/t and V/t of OCO, and of ADMMBO to the last round shown, do not."""
    for problem in case.problems:
        for name in BASELINES:
            t = LAST["feasible-pocket"] if name == "admmbo" else None
            yield from (
                vanishes(m, case.play_of(name, problem), t, stays=True)
                for m in ("regret", "violation")
            )


def trade_off(case: Case) -> Iterator[Part]:
    """Some three consecutive S: fewer rounds per epoch give less V and more R, in both steps."""
    for problem in case.problems:
        plays = sorted(
            case.of("penalty-noiseless", problem), key=lambda play: play.algorithm.values["S"]
        )
        triples = [plays[i : i + 3] for i in range(len(plays) - 2)]
        if triples:
            steps = [
                [
                    part
                    for shorter, longer in itertools.pairwise(three)
                    for part in _step(shorter, longer)
                ]
                for three in triples
            ]
            yield any_of("three consecutive S", steps)


def _step(often: Play, rarely: Play) -> Iterator[Part]:
    yield below("violation", often, rarely)
    yield below("regret", often, rarely, higher=True)


def slower(case: Case) -> Iterator[Part]:
    """V/t of Algorithm 3 with noise on g tends to 0, and is above that of Algorithm 2 without at T,
    paired by seed.
    """
    (noiseless,), (with_noise,) = case.of("penalty-noiseless"), case.of("penalty-noisy")
    if noisy(noiseless.problem) or not noisy(with_noise.problem):
        return
    yield vanishes("violation", with_noise)
    yield below("violation", noiseless, with_noise, t=noiseless.horizon)


def best(case: Case) -> Iterator[Part]:
    """R and V of Algorithm 3 are below those of OCO at T, and below those of ADMMBO where its
    figure ends.
    """
    for problem in case.problems:
        for name in BASELINES:
            ours, baseline = case.play_of("penalty-noisy", problem), case.play_of(name, problem)
            t = LAST["feasible-pocket"] if name == "admmbo" else ours.horizon
            yield from (below(metric, ours, baseline, t=t) for metric in ("regret", "violation"))


def penalty_plays(case: Case, problem: Variant) -> list[Play]:
    """Algorithm 2, or 3 where g is observed with noise; none where the case has the other."""
    return case.of("penalty-noisy" if noisy(problem) else "penalty-noiseless", problem)


def rates(case: Case) -> Iterator[Part]:
    """V/t of Algorithm 2 (3 with noise on g) tends to 0."""
    return (
        vanishes("violation", play)
        for problem in case.problems
        for play in penalty_plays(case, problem)[:1]
    )


def rate_baselines(case: Case) -> Iterator[Part]:
    """V/t of the baselines does not tend to 0, and their utility is above ours at the end.

    The end is where the figure ends: round 50 for ADMMBO.
    """
    for problem in case.problems:
        for play in penalty_plays(case, problem)[:1]:
            for name in BASELINES:
                baseline, t = (
                    case.play_of(name, problem),
                    LAST["rate-allocation"] if name == "admmbo" else play.horizon,
                )
                yield vanishes("violation", baseline, t, stays=True)
                yield below("reward", baseline, play, t=t, higher=True)


def fixed(case: Case) -> Iterator[Part]:
    """For every constant multiplier there is a problem on which regret or violation is almost
    linear.
    """
    for multiplier in {play.algorithm.values["kappa"]: play for play in case.of("fixed-penalty")}:
        plays = [
            play
            for play in case.of("fixed-penalty")
            if play.algorithm.values["kappa"] == multiplier
        ]
        groups = [
            [vanishes(metric, play, stays=True)]
            for play in plays
            for metric in ("violation", "regret")
        ]
        yield any_of(f"κ = {multiplier:g} is linear somewhere", groups)


claims = [
    Claim(
        "SE1",
        "pocket: the average regret and violation of Algorithm 2 tend to 0",
        "Shi & Eryilmaz (2022) E.1.1",
        "Figures 2, 3",
        ("feasible-pocket",),
        ("penalty-noiseless",),
        pocket,
        among=lambda problem: not noisy(problem),
        kind="without noise on g",
        trials=100,
        quote=(
            "the mean regret and CV of Algorithm 2 are both sublinear, and their time-averaged "
            "values tend to 0"
        ),
    ),
    Claim(
        "SE1B",
        "pocket: the average regret and violation of OCO and ADMMBO stay",
        "Shi & Eryilmaz (2022) E.1.1",
        "Figures 2, 3",
        ("feasible-pocket",),
        BASELINES,
        pocket_baselines,
        among=lambda problem: not noisy(problem),
        kind="without noise on g",
        trials=100,
        quote="the regret and CV of the other two methods are almost linear after few iterations",
    ),
    Claim(
        "SE2",
        "pocket: more frequent multiplier updates lower violation and raise regret, for three "
        "choices of L, S",
        "Shi & Eryilmaz (2022) E.1.1",
        "Figure 1",
        ("feasible-pocket",),
        ("penalty-noiseless",),
        trade_off,
        among=lambda problem: not noisy(problem),
        kind="without noise on g",
        within=("S",),
        trials=20,
        quote="regret-CV tradeoff happens for the three choices connected by arrows",
    ),
    Claim(
        "SE3",
        "the average violation of Algorithm 3 tends to 0, more slowly than that of Algorithm 2",
        "Shi & Eryilmaz (2022) E.1.2, E.2.2",
        "Figures 4, 5",
        tuple(LAST),
        ("penalty-noiseless", "penalty-noisy"),
        slower,
        within=("noise_g",),
        across=True,
        trials=100,
        quote="the regret and CV of Algorithm 3 are still sublinear. However, the convergence of "
        "the time-averaged "
        "CV is slower than Algorithm 2",
    ),
    Claim(
        "SE6",
        "pocket with noise on g: Algorithm 3 has less regret and violation than OCO and ADMMBO",
        "Shi & Eryilmaz (2022) E.1.2",
        "Figure 5",
        ("feasible-pocket",),
        ("penalty-noisy", *BASELINES),
        best,
        among=noisy,
        kind="with noise on g",
        trials=100,
        quote="Algorithm 3 has the best performance among these three methods",
    ),
    Claim(
        "SE4",
        "rates: the average violation of Algorithms 2 and 3 tends to 0",
        "Shi & Eryilmaz (2022) E.2",
        "Figures 6, 7, 8, 9",
        ("rate-allocation",),
        (),
        rates,
        optional=("penalty-noiseless", "penalty-noisy"),
        trials=100,
        quote="the CV of Algorithm 2 is sublinear and its time-averaged values approach 0",
    ),
    Claim(
        "SE4B",
        "rates: OCO and ADMMBO get more utility, and their average violation stays",
        "Shi & Eryilmaz (2022) E.2",
        "Figures 6, 7, 8, 9",
        ("rate-allocation",),
        BASELINES,
        rate_baselines,
        optional=("penalty-noiseless", "penalty-noisy"),
        trials=100,
        quote="ADMMBO and OCO have higher utility values, but these values are achieved with a "
        "time-averaged CV away "
        "from 0 with a high probability",
    ),
    Claim(
        "SE5",
        "no constant multiplier gives both sublinear regret and sublinear violation on every "
        "problem",
        "Shi & Eryilmaz (2022) Proposition 1",
        "",
        ("no-fixed-penalty",),
        ("fixed-penalty",),
        fixed,
        within=("kappa",),
        trials=100,
        quote=(
            "will fail to yield a sublinear regret and a sublinear CV for all forms of f(x) and "
            "g(x) in our setup"
        ),
    ),
]
