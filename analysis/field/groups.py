"""The groups of docs/field.md and of the pages below it: what is in each, and which methods are
ours.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cbobench.report.field import group_of
from cbobench.report.figures.profiles import COCO_PRECISIONS

OURS = ("cei", "cei-exact", "scbo", "furbo", "nei")  # whose standing the pages are about
EXACT = "cei-exact"  # the one of ours that is told where there is no noise
PLAIN = ("random", "sobol")  # no rivals
TARGETS = (0.1, 0.01, 0.001, 1e-5)  # of regret, in spreads of f
SIMPLE, RECOMMENDED = "simple_regret", "recommended_regret"


@dataclass(frozen=True)
class Section:
    """A group of shards and its page.

    Attributes:
        title, words: its heading, and what the bundles do not say of it.
        tables: each by a metric, with words on what counts there; the first one ranks the methods.
        also: shards of other groups that its tables show, too.
        heads: the methods of ours that are held one against one.
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
    heads: tuple[str, ...] = ("cei",)
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
        "The same runs by the best feasible point that was evaluated, without noise, whether or "
        "not the method knows which one it is.",
    ),
)
COCO = (
    "Regret and targets are in COCO's own units. `cei` is told here that there is no noise, and "
    "steps to the boundary: it is what other pages call `cei-exact`."
)
EXACTLY = (
    "A point is feasible if no constraint is violated at all. SciPy's solvers and `egobox` allow "
    "themselves a small violation, and such points count as infeasible."
)
GROUPS = {
    "held_out": Section(
        "Held out",
        "No setting of ours was chosen on these problems, but for those named in [what was "
        f"chosen](../field.md#what-was-chosen-on-what). {EXACTLY}",
        heads=(EXACT, "cei"),
    ),
    "low": Section(
        "Two to seven dimensions, without noise",
        "Of BoTorch's constrained expected improvement, `botorch-cei-stock` is the library as it "
        "comes. `botorch-cei-bilog` models constraints through SCBO's bilog transform, as `cei` "
        "may. Two more could give it more digits: `botorch-cei-tiny-noise` fits no noise, and "
        "`botorch-cei-turbo` has the models of BoTorch's SCBO tutorial. The steps to the boundary "
        f"that `cei-exact` makes were made for some of these problems. {EXACTLY}",
        heads=(EXACT, "cei"),
    ),
    "low_theory": Section(
        "The same, for methods with theorems",
        "With the kernel of the problem, and with models fitted to what they observe "
        "(`kernel=fit`). Theorems are of regret over all rounds; [methods](../methods.md) says "
        "what each is told.",
        also=("low-ours",),
    ),
    "noisy": Section(
        "Under noise",
        "Problems are named with their noise, in units of each function's spread. Methods with "
        "models recommend by them; `optuna-tpe`, `cma-es` and `cobyqa`, which have none, recommend "
        "the best observed point. That `botorch-cei` and `botorch-nei` model constraints through "
        "the bilog transform is our choice.",
        UNDER_NOISE,
        heads=("nei", "cei"),
    ),
    "measured": Section(
        "Tables of real experiments",
        "Points are the rows of a table; repeated rows are the noise, and their mean is the truth. "
        "`egobox` has models that know no noise.",
        UNDER_NOISE,
        heads=("nei", "cei"),
    ),
    "batches": Section(
        "Batches of four",
        "A rival of another page is not here if its library takes no batches, or its shard is "
        "missing.",
    ),
    "ten": Section("Ten and twenty dimensions"),
    "many": Section("Fifty dimensions and more", heads=("scbo",)),
    "coco_2": Section(
        "COCO's bbob-constrained in two dimensions",
        f"{COCO} {EXACTLY}",
        targets=COCO_PRECISIONS,
        absolute=True,
    ),
    "coco_10": Section(
        "COCO's bbob-constrained in ten dimensions", COCO, targets=COCO_PRECISIONS, absolute=True
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


def is_rival(name: str) -> bool:
    """Whether a method is one that ours are held against."""
    return not is_ours(name) and name.partition("[")[0] not in PLAIN


def plain(label: str) -> str:
    """A label without what it says in brackets, such as that there is no noise."""
    return re.split(r" \(|\[noise_f=0\.0", label)[0]
