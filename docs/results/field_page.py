"""docs/field.md: what the shards of docs/results show, group by group, from the bundles alone."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from cbobench.report.groups import find_groups
from cbobench.report.load import Run
from cbobench.report.numbers import format_number
from cbobench.report.profiles import COCO_TARGETS
from cbobench.report.quantities import fill_unreached, is_reached, quantities, restore_infinite
from cbobench.results.bundle import Bundle
from cbobench.suite.variants import Variant
from cbobench.words import count_noun
from docs.results.markdown import tabulate, wrap
from docs.results.paper_figures import name_commit

CONFIRMED = "confirmed.json"  # beside the bundles
PAGE = Path(__file__).parents[1] / "field.md"
PROSE = PAGE.parent / "website" / "prose" / "field.md"  # what the page begins with
OURS = ("cei", "scbo", "furbo")  # the methods whose standing the page is about
REFERENCE = "cei"  # whose runs those of every method are held against, seed by seed
PLAIN = ("random", "sobol")  # no rivals
MOST_COLUMNS = 6  # of a table beside the methods' names
FEWEST = 3  # rivals, below which the page says who they are


@dataclass(frozen=True)
class Section:
    """A group of shards on the page.

    Attributes:
        title, words: its heading, and what the bundles do not say of it.
        tables: each by a metric, with words on what counts there.
        also: shards of other groups that its tables show, too.
    """

    title: str
    words: str = ""
    tables: tuple[tuple[str, str], ...] = (
        ("simple_regret", "The best feasible point that was evaluated counts."),
    )
    also: tuple[str, ...] = ()


COCO = "Regret is in COCO's own units."
GROUPS = {
    "low": Section(
        "Two to seven dimensions, without noise",
        "Of BoTorch's constrained expected improvement, `botorch-cei-stock` is the library as it "
        "comes. `botorch-cei-bilog` models constraints through SCBO's bilog transform, as `cei` "
        "may. Two more could give it more digits: `botorch-cei-tiny-noise` fits no noise, and "
        "`botorch-cei-turbo` has the models of BoTorch's SCBO tutorial.",
    ),
    "low-theory": Section(
        "The same, for methods with theorems",
        "With the kernel of the problem, and with models fitted to what they observe "
        "(`kernel=fit`). Most are told a bound or a noise level, and aim at regret over all "
        "rounds.",
        also=("low-ours",),
    ),
    "noisy": Section(
        "Under noise",
        "Problems are named with their noise, in units of each function's spread.",
        (
            (
                "recommended_regret",
                "By the noise-free value of the recommendation after the last evaluation; an "
                "infeasible one counts as ∞. `cei`, `ckb-ucb` and `penalty-noisy` recommend by "
                "their models. In these cells the others, also BoTorch's and `scbo`, recommend "
                "the best observed point, which noise favours. So these tables compare rules of "
                "recommendation as much as searches. Since then BoTorch's and `scbo` recommend by "
                "their models, too.",
            ),
            (
                "simple_regret",
                "The same runs by the best feasible point that was evaluated, without noise, "
                "whether or not the method knows which one it is.",
            ),
        ),
    ),
    "batches": Section("Batches of four"),
    "ten": Section("Ten and twenty dimensions"),
    "many": Section("Fifty dimensions and more"),
    "coco-2": Section("COCO's bbob-constrained in two dimensions", COCO),
    "coco-10": Section("COCO's bbob-constrained in ten dimensions", COCO),
}


@dataclass
class Method:
    """A method's values of one quantity by problem and seed, the time of its rounds, its runs and
    its failed fits.
    """

    values: dict[str, dict[int, float]] = field(default_factory=dict)
    milliseconds: list[float] = field(default_factory=list)
    runs: int = 0
    expected: int = 0
    failed_fits: int = 0

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds of its runs, of all problems together."""
        return tuple(sorted({seed for by_seed in self.values.values() for seed in by_seed}))

    def only(self, seeds: Collection[int]) -> Method:
        """The method with its values of some seeds alone."""
        values = {
            problem: {seed: value for seed, value in by_seed.items() if seed in seeds}
            for problem, by_seed in self.values.items()
        }
        return replace(self, values=values)


def plain(label: str) -> str:
    """A label without what it says in brackets, such as that there is no noise."""
    return label.partition(" (")[0].partition("[noise_f=0.0")[0]


def read_methods(runs: Iterable[Run], metric: str) -> dict[str, Method]:
    """What the runs of a group hold, by method."""
    quantity, methods = quantities()[metric], dict[str, Method]()
    for run in runs:
        for group in find_groups(run):
            method = methods.setdefault(plain(group.algorithm_label), Method())
            values = fill_unreached(group.values(quantity), quantity)
            by_seed = zip(group.seeds.tolist(), values.tolist(), strict=True)
            method.values.setdefault(plain(group.problem_label), {}).update(by_seed)
            method.milliseconds += (1e3 * group.good["seconds_per_round"]).tolist()
            method.runs += len(group.good)
            method.expected += group.expected
            method.failed_fits += int(group.good["failed_fits"].fillna(0).sum())
    return {name: method for name, method in methods.items() if method.runs}


def medians_of(
    methods: Mapping[str, Method], problems: Sequence[str]
) -> tuple[NDArray[Any], list[int]]:
    """Medians (methods, problems) over the seeds that all methods have, and how many these are by
    problem.
    """
    medians, counts = np.full((len(methods), len(problems)), np.nan), []
    for j, problem in enumerate(problems):
        held = [set(method.values.get(problem, {})) for method in methods.values()]
        seeds = sorted(set.intersection(*held)) if held else []
        counts.append(len(seeds))
        for i, method in enumerate(methods.values()):
            middle = (
                np.median([method.values[problem][seed] for seed in seeds]) if seeds else np.nan
            )
            medians[i, j] = restore_infinite(middle)
    return medians, counts


def show_median(value: float) -> str:
    """A median as a cell of a table."""
    return "–" if np.isnan(value) else "∞" if not np.isfinite(value) else format_number(value)


def lowest_of(medians: NDArray[Any]) -> NDArray[Any]:
    """The best median of each problem, of medians (methods, problems); ∞ where no method has
    one.
    """
    return np.asarray(np.where(np.isnan(medians), np.inf, medians).min(axis=0))


def mean_ranks_of(medians: NDArray[Any]) -> NDArray[Any]:
    """The mean rank of each method over the problems, of medians (methods, problems)."""
    return np.asarray(rankdata(np.where(np.isnan(medians), np.inf, medians), axis=0).mean(axis=1))


def is_ours(name: str) -> bool:
    """Whether a method, whatever its parameters, is one whose standing the page is about."""
    return name.partition("[")[0] in OURS


def digest_of(bundle: Path) -> str:
    """The digest of a bundle's bytes, by which it is confirmed."""
    return hashlib.sha256(bundle.read_bytes()).hexdigest()


def group_of(shard: str) -> str:
    """The group of a shard: the longest one that its name begins with."""
    return max((name for name in GROUPS if shard == name or shard.startswith(f"{name}-")), key=len)


def sum_up(methods: Mapping[str, Method], problems: Sequence[str]) -> str:
    """A row per method over many problems: how much it reached of COCO's targets, and where it is
    the best.
    """
    medians, counts = medians_of(methods, problems)
    names, mean_ranks, lowest = list(methods), mean_ranks_of(medians), lowest_of(medians)
    lines = []
    for i in np.argsort(mean_ranks, kind="stable"):
        values = np.array(
            [value for seeds in methods[names[i]].values.values() for value in seeds.values()]
        )
        reached = (values[:, None] <= np.array(COCO_TARGETS)).mean()
        best = int((np.isfinite(medians[i]) & (medians[i] == lowest)).sum())
        never = 100 * (~is_reached(values)).mean()
        shown = (
            f"{mean_ranks[i]:.2f}",
            f"{100 * reached:.1f} %",
            f"{best}/{len(problems)}",
            f"{never:.1f} %",
        )
        lines.append((f"`{names[i]}`", *shown))
    few, most = format_number(COCO_TARGETS[-1]), format_number(COCO_TARGETS[0])
    about = f"{count_noun(len(problems), 'problem')}, {count_seeds(counts)} each. "
    about += f"Targets are COCO's {len(COCO_TARGETS)}, from {most} to {few}. Ranks are means."
    head = ("method", "rank", "targets reached", "best on", "never feasible")
    return f"{about}\n\n{tabulate(head, lines, 'lrrrr')}\n"


def count_wins(method: Method, reference: Method) -> str:
    """In how many runs a method ends better than the reference, of those with the same problem and
    seed.
    """
    pairs = [
        (value, reference.values[problem][seed])
        for problem, by_seed in method.values.items()
        for seed, value in by_seed.items()
        if seed in reference.values.get(problem, {})
    ]
    return f"{sum(value < other for value, other in pairs)}/{len(pairs)}"


def table_of(methods: Mapping[str, Method], problems: Sequence[str]) -> str:
    """A row per method with its medians over the seeds that all have, below how many these are.

    Columns that a page has no room for side by side stand in a table of their own below.
    """
    medians, counts = medians_of(methods, problems)
    mean_ranks, lowest = mean_ranks_of(medians), lowest_of(medians)
    order, reference = np.argsort(mean_ranks, kind="stable"), methods.get(REFERENCE)
    names = [list(methods)[i] for i in order]
    columns = {"rank": [f"{mean_ranks[i]:.2f}" for i in order]}
    for problem, column, least in zip(problems, medians[order].T, lowest, strict=True):
        columns[problem] = [
            f"**{show_median(median)}**" if median == least < np.inf else show_median(median)
            for median in column
        ]
    if reference:
        wins = {name: count_wins(method, reference) for name, method in methods.items()}
        columns[f"beats {REFERENCE}"] = [wins[name] if name != REFERENCE else "–" for name in names]
    parts = [f"Medians over {count_seeds(counts)}:\n"]
    for heads in np.array_split(list(columns), math.ceil(len(columns) / MOST_COLUMNS)):
        lines = [
            [f"`{name}`", *(columns[head][i] for head in heads)] for i, name in enumerate(names)
        ]
        parts.append(tabulate(["method", *heads], lines, "l" + "r" * len(heads)) + "\n")
    return "\n".join(parts)


def group_section(name: str, bundles: Sequence[Path]) -> str:
    """The section of one group; it says so where nothing is played."""
    section = GROUPS[name]
    if not any(group_of(bundle.stem) == name for bundle in bundles):
        return f"## {section.title}\n\nNot played yet.\n"
    runs = [Run(bundle) for bundle in bundles]
    sentences = describe_play(runs), section.words, describe_settings(runs)
    said = " ".join(filter(None, sentences))
    parts = [f"## {section.title}\n", wrap(said)]
    is_coco = name.startswith("coco")  # too many problems for columns, and for a list of defeats
    for metric, words in section.tables:
        methods = read_methods(runs, metric)
        problems = list(
            dict.fromkeys(name for method in methods.values() for name in method.values)
        )
        parts.append(wrap(f"{words} {describe_standing(methods, problems)}"))
        show = sum_up if is_coco else table_of
        parts += [show(table, problems) for table in split_tables(methods)]
        if not is_coco and (defeats := find_defeats(methods, problems)):
            parts.append(list_defeats(defeats))
    return "\n".join([*parts, list_costs(methods)])


def split_tables(methods: Mapping[str, Method]) -> list[dict[str, Method]]:
    """The methods of every table, most seeds first: ours, and all rivals that have the same seeds.

    In one table, all would be cut to the seeds of the rival that has fewest.
    """
    own = {name: method for name, method in methods.items() if is_ours(name)}
    by_seeds: dict[tuple[int, ...], dict[str, Method]] = {}
    for name, method in methods.items():
        if name not in own:
            by_seeds.setdefault(method.seeds, {})[name] = method
    if not by_seeds:
        return [own]
    ordered = sorted(by_seeds, key=lambda seeds: (-len(seeds), seeds))
    return [
        {name: method.only(seeds) for name, method in own.items()} | by_seeds[seeds]
        for seeds in ordered
    ]


@dataclass(frozen=True)
class Defeat:
    """A rival with a better median than all of ours on a problem, over the seeds that it shares.

    Attributes:
        best: ours with the best median there.
        wins: in how many of the seeds the rival ends better than that.
    """

    problem: str
    rival: str
    seeds: int
    median: float
    best: str
    own_median: float
    wins: int


def find_defeats(methods: Mapping[str, Method], problems: Sequence[str]) -> list[Defeat]:
    """Where a rival has a strictly better median than all of ours, each over the seeds it
    shares.
    """
    rivals = [name for name in methods if not is_ours(name) and name not in PLAIN]
    defeats = []
    for problem in problems:
        own = [name for name in methods if is_ours(name) and problem in methods[name].values]
        for rival in rivals if own else ():
            defeat = judge(methods, own, rival, problem)
            defeats += [defeat] if defeat else []
    return defeats


def judge(
    methods: Mapping[str, Method], own: Sequence[str], rival: str, problem: str
) -> Defeat | None:
    """A rival held against some of ours on a problem, over the seeds that it shares with them."""
    by_seed = {name: methods[name].values.get(problem, {}) for name in (*own, rival)}
    shared = set.intersection(*map(set, by_seed.values()))
    medians, _ = medians_of({name: methods[name] for name in by_seed}, [problem])
    *own_medians, median = medians[:, 0].tolist()
    # Without a seed in common all medians are NaN, which nothing is below.
    if not median < min(own_medians):
        return None
    best = own[int(np.argmin(own_medians))]
    wins = sum(by_seed[rival][seed] < by_seed[best][seed] for seed in shared)
    return Defeat(problem, rival, len(shared), median, best, min(own_medians), wins)


def list_defeats(defeats: Sequence[Defeat]) -> str:
    """A row per rival and problem."""
    head = ("problem", "rival", "median", "best of ours", "median", "better in")
    lines = [
        (
            *(one.problem, f"`{one.rival}`", show_median(one.median)),
            *(
                f"`{one.best}`",
                show_median(one.own_median),
                f"{one.wins} of {count_noun(one.seeds, 'seed')}",
            ),
        )
        for one in defeats
    ]
    return tabulate(head, lines, "llrlrr") + "\n"


def list_costs(methods: Mapping[str, Method]) -> str:
    """A row per method of a group: how many runs it has, their rounds' time, the failed fits."""
    lines = []
    for name, method in methods.items():
        time = format_number(float(np.median(method.milliseconds)))
        fits = f"{method.failed_fits:,}" if method.failed_fits else "–"
        lines.append((f"`{name}`", f"{method.runs}/{method.expected}", time, fits))
    return tabulate(("method", "runs", "ms a round", "failed fits"), lines, "lrrr") + "\n"


def played_variants(runs: Iterable[Run]) -> dict[str, Variant]:
    """The methods that have cells in some runs, by label."""
    variants: dict[str, Variant] = {}
    for run in runs:
        labels, played = run.record.labels("algorithms"), {*run.cells["algorithm"]}
        variants |= {
            plain(labels[title]): variant
            for title, variant in run.record.variants("algorithms").items()
            if title in played
        }
    return variants


def describe_play(runs: Sequence[Run]) -> str:
    """How many evaluations there are, which are the first ones, and how many are chosen at once."""
    horizons = sorted({grid.horizon for run in runs for grid in run.record.grids})
    values = [variant.values for variant in played_variants(runs).values()]
    designs = {item for one in values for item in (one.get("initial design") or {}).items()}
    under_way = [one["evaluations under way"] for one in values if "evaluations under way" in one]
    said = f"{' or '.join(map(str, horizons))} evaluations"
    for kind, count in sorted(designs):
        said += f", the first {count} a {kind.capitalize()} design"
    for points in sorted({one["points"] for one in under_way}):
        said += f", in batches of {points}: a batch is chosen before any of its results is known"
    return f"{said}."


def describe_settings(runs: Sequence[Run]) -> str:
    """Where methods do not play what their papers and theorems say; empty where they do."""
    settings = {name: variant.settings for name, variant in played_variants(runs).items()}
    scales = sorted({one["beta_scale"] for one in settings.values() if "beta_scale" in one})
    departures = []
    if scales and scales != [1.0]:
        listed = " or ".join(f"{scale:g}" for scale in scales)
        departures.append(f"every width β is multiplied by {listed} (`beta_scale`)")
    if any("sup" in (one.get("B"), one.get("G")) for one in settings.values()):
        departures.append(
            "B and G are the suprema of |f| and |g| over the box (`sup`), where theorems ask for "
            "norms"
        )
    said = [f"Not by the letter of the papers: {'; '.join(departures)}."] if departures else []
    by_noise: dict[float, dict[str, None]] = {}
    for name, one in settings.items():
        if isinstance(one.get("lam"), int | float):
            by_noise.setdefault(float(one["lam"]), {})[name.partition("[")[0]] = None
    for noise, names in sorted(by_noise.items()):
        listed = ", ".join(f"`{name}`" for name in names)
        said.append(f"The noise variance λ of the models is set to {noise:g} in {listed}.")
    return " ".join(said)


def count_seeds(counts: Sequence[int]) -> str:
    """How many seeds the medians of a table are over."""
    least, most = min(counts), max(counts)
    return count_noun(most, "seed") if least == most else f"{least} to {most} seeds"


def describe_standing(methods: Mapping[str, Method], problems: Sequence[str]) -> str:
    """On how many problems a rival is better than all of ours; who the rivals are, if few."""
    own = [f"`{name}`" for name in methods if is_ours(name)]
    rivals = [f"`{name}`" for name in methods if not is_ours(name) and name not in PLAIN]
    if not own:
        return "None of ours is played yet."
    if not rivals:
        return "No rival is played yet."
    beaten = {defeat.problem for defeat in find_defeats(methods, problems)}
    ours = own[0] if len(own) == 1 else f"all of {', '.join(own)}"
    share = f"{len(beaten)} of {count_noun(len(problems), 'problem')}"
    said = f"On {share} a rival has a better median than {ours}."
    if len(rivals) >= FEWEST:
        return said
    verb = "are" if len(rivals) > 1 else "is"
    return f"{said} Only {' and '.join(rivals)} {verb} played beside ours yet."


def played_by(about: Mapping[str, Any]) -> str:
    """The commits whose code played a bundle, of what it says of itself."""
    return ", ".join(sorted({name_commit(call) for call in about["calls"]}))


def confirmed_by(bundle: Path, confirmed: Mapping[str, Any]) -> str:
    """The commit whose code played drawn cells of a bundle again, all to the same bits; a dash
    without one.
    """
    said = confirmed.get(bundle.stem)
    if said is None or said["bundle"] != digest_of(bundle):
        return "–"
    return f"{said['commit'][:7]} ({count_noun(said['cells'], 'cell')})"


def shards_section(bundles: Sequence[Path], shards: Mapping[str, Mapping[str, Any]]) -> str:
    """Which shards there are, of which suite, who played them, and what that cost."""
    columns = (
        "shard",
        "suite",
        "cells",
        "failed",
        "played by",
        "confirmed by",
        "CPU",
        "CPU-hours",
        "kB",
    )
    lines = []
    path = bundles[0].with_name(CONFIRMED) if bundles else Path(CONFIRMED)
    confirmed = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    suites, changed = {name: shard["suite"] for name, shard in shards.items()}, 0
    for bundle in bundles:
        about = Bundle(str(bundle)).about
        changed += any(call.get("dirty") for call in about["calls"])
        cells = about["cells"]
        kinds = ", ".join(str(kind).partition(",")[0] for kind in about["cpus"])
        lines.append(
            (
                *(f"[`{bundle.stem}`](results/{bundle.name})", f"`{suites[bundle.stem]}`"),
                *(f"{cells['done']}/{cells['expected']}", f"{cells['failed']}"),
                *(played_by(about), confirmed_by(bundle, confirmed), kinds),
                *(f"{about['cost']['cpu_hours']:.2f}", f"{bundle.stat().st_size / 1e3:.0f}"),
            )
        )
    missing = [name for name in shards if name not in {bundle.stem for bundle in bundles}]
    names = ", ".join(f"`{name}`" for name in missing)
    said = "\n" + wrap(f"Not played yet: {names}.") if missing else ""
    note = wrap(
        f"{changed} of {count_noun(len(bundles), 'shard')} were played *with changes*: in a work "
        "tree that differed from its commit. How it differed is not recorded. What confirms a "
        "shard is the code of a commit as it is."
    )
    head = f"{note}\n" if changed else ""
    return f"## The shards\n\n{head}{tabulate(columns, lines, 'llrrlllrr')}\n{said}"


def render_page(folder: Path, shards: Mapping[str, Mapping[str, Any]]) -> str:
    """The page, from the bundles of a folder in the order of the shards."""
    bundles = [folder / f"{name}.zip" for name in shards if (folder / f"{name}.zip").exists()]
    sections = [group_section(name, bundles_of(name, bundles)) for name in GROUPS]
    return "\n".join(
        [PROSE.read_text(encoding="utf-8"), *sections, shards_section(bundles, shards)]
    )


def bundles_of(name: str, bundles: Sequence[Path]) -> list[Path]:
    """The bundles that a group's tables show."""
    return [
        bundle
        for bundle in bundles
        if group_of(bundle.stem) == name or bundle.stem in GROUPS[name].also
    ]
