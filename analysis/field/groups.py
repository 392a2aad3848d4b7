"""The groups of docs/field.md and of the pages below it: what is in each, and which methods are
ours.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cbobench.report.field import group_of

OURS = ("cei", "cei-exact", "scbo", "furbo", "nei")  # whose standing the pages are about
EXACT = "cei-exact"  # the one of ours that is told where there is no noise
PLAIN = ("random", "sobol")  # no rivals
COCO_PRECISIONS = (10.0, 0.1, 1e-4, 1e-6)  # of which COCO shows runtimes one by one
TARGETS = (1e-2, 1e-4, 1e-6)  # of regret, in spreads of f
SIMPLE, RECOMMENDED = "simple_regret", "recommended_regret"


@dataclass(frozen=True)
class Section:
    """A group of shards and its page.

    Attributes:
        title, words: its heading, and what the bundles do not say of it.
        tables: each by a metric, with words on what counts there; the first one ranks the methods.
        also: shards of other groups that its tables show, too.
        heads: the methods of ours that are held one against one.
        seen: what was looked at before when a setting was chosen.
        targets: of evaluations to reach, in spreads of f, or, with `absolute`, in units of f. (Of
            |f*| where f is in its own units.)
        absolute: so, and with too many problems for a column each.
    """

    title: str
    words: str = ""
    tables: tuple[tuple[str, str], ...] = (
        (SIMPLE, "The best feasible point that was evaluated counts."),
    )
    also: tuple[str, ...] = ()
    heads: tuple[str, ...] = (EXACT, "cei")
    seen: str = "nothing is recorded as chosen on these problems"
    targets: tuple[float, ...] = TARGETS
    absolute: bool = False


UNDER_NOISE = (
    (
        RECOMMENDED,
        "What counts is the noise-free value of the recommendation after the last evaluation; an "
        "infeasible one counts as ∞.",
    ),
    (
        SIMPLE,
        "The same runs by the best feasible point that was evaluated, judged without noise; the "
        "method need not know which one it is.",
    ),
)
COCO = (
    "Targets are in COCO's own units, floors in spreads of f; *targets reached* is of COCO's, "
    "those of the picture. `cei` is told here that there is no noise: it is what other pages call "
    "`cei-exact`. With a floor of 0 differences below 1e-12 decide, too; these are rounding."
)
FITTED = "`cei`, whose noise is fitted, makes no steps to the boundary."
EXACTLY = (
    "A point is feasible if no constraint is violated at all. Only variants called `-tight`, where "
    "there are any, end [inside the constraints](../methods.md#at-the-last-digits)."
)
GROUPS = {
    "held_out": Section(
        "Held out",
        "The 60 evaluations are for 20 inputs, too, where a gradient by differences takes 21 of "
        f"them. The constraint of `yes-or-no` is -1 or +1 and has no slope. {FITTED} {EXACTLY}",
        seen="`cec-g6`, `cec-g24` and `townsend`, when steps of `cei-exact` were chosen; "
        "`townsend`, when restarts of `scbo` and `furbo` were; all 20, when the settings of "
        "`-tight` were. Results on all 20 were published before `cei` changed last; no change is "
        "recorded as made for them",
    ),
    "low": Section(
        "Two to seven dimensions, without noise",
        "`botorch-cei-stock` is the library as it comes. The others model constraints through "
        "SCBO's bilog transform, as `cei` may: `-bilog` no more than that, `-tiny-noise` without "
        f"fitted noise, `-turbo` with the models of BoTorch's SCBO tutorial. {FITTED} {EXACTLY}",
        seen="all seven, when searches, steps to the boundary and noise of ours were chosen, and "
        "when the settings of `-tight` were",
    ),
    "low_theory": Section(
        "The same, for methods with theorems (older code)",
        "With the kernel of the problem, and with models fitted to what they observe "
        "(`kernel=fit`). Theorems are of regret over all rounds; [methods](../methods.md) says "
        "what each is told.",
        seen="all seven, when settings of `cei`, `scbo` and `furbo` were chosen",
        also=("low-ours",),
    ),
    "noisy": Section(
        "Under noise",
        "Problems are named with their noise, in units of each function's spread. Methods with "
        "Gaussian processes recommend by them, all others the best observed point. That "
        "`botorch-cei` and `botorch-nei` model constraints through the bilog transform is our "
        "choice. `cobyqa` interpolates, and knows no noise.",
        UNDER_NOISE,
        heads=("nei", "cei"),
        seen="all four functions, when samples and confirming rounds of `nei` were chosen",
    ),
    "measured": Section(
        "Tables of real experiments",
        "Points are the rows of a table; repeated rows are the noise, and their mean is the truth. "
        "`egobox` has models that know no noise, and asks for points of a box: the nearest row is "
        "played, or one of Sobol's where that was played before. Fits of `botorch-scbo` often fail "
        "here; it then goes on with the parameters that its fit begins with.",
        UNDER_NOISE,
        heads=("nei", "cei"),
    ),
    "mixed": Section(
        "Whole numbers and choices",
        "Solvers of other libraries play the types by their own means. `cei` is told that there is "
        "no noise: it is what other pages call `cei-exact`.",
        seen="all seven, when searches of mixed spaces were written and checked",
    ),
    "batches": Section(
        "Batches of four",
        "A rival of another page is not here if its library takes no batches, the suite leaves it "
        "out, or its shard is missing. `scbo` and `botorch-scbo` count successes point by point, "
        "where BoTorch's tutorial counts batches.",
        seen="all three, but one evaluation at a time",
    ),
    "ten": Section(
        "Ten and twenty dimensions",
        seen="`ackley-10`, when transforms of constraints were chosen",
    ),
    "many": Section("Fifty dimensions and more", heads=("scbo",)),
    "coco_2": Section(
        "COCO's bbob-constrained in two dimensions (older code)",
        f"{COCO} {EXACTLY}",
        seen="15 functions of instance 1, when it was chosen which rounds are steps; all of "
        "instances 1 to 6, when that was judged",
        targets=COCO_PRECISIONS,
        absolute=True,
    ),
    "coco_10": Section(
        "COCO's bbob-constrained in ten dimensions",
        COCO,
        seen="function 5, when regions of `scbo` were chosen",
        targets=COCO_PRECISIONS,
        absolute=True,
    ),
}


def bundles_of(name: str, bundles: Sequence[Path]) -> list[Path]:
    """The bundles that a group's page shows."""
    return [
        bundle
        for bundle in bundles
        if group_of(bundle.stem) == name or bundle.stem in GROUPS[name].also
    ]


def is_ours(name: str) -> bool:
    """Whether a method, whatever its parameters, is one whose standing the pages are about."""
    return name.partition("[")[0] in OURS


def plain(label: str) -> str:
    """A label without what it says in brackets, such as that there is no noise."""
    return re.split(r" \(|\[noise_f=0\.0", label)[0]
