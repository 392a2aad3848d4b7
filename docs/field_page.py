"""docs/field.md: what the shards of docs/results show, group by group, from the bundles alone."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
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
from cbobench.words import count_noun

CONFIRMED = "confirmed.json"  # beside the bundles
PAGE = Path(__file__).with_name("field.md")
OURS = ("cei", "scbo", "furbo")  # the methods whose standing the page is about
REFERENCE = "cei"  # whose runs those of every method are held against, seed by seed
PLAIN = ("random", "sobol")  # no rivals
FEWEST = 3  # rivals, below which a table says who they are in place of who is best

INTRODUCTION = """\
# The methods against the field, shard by shard

Each table is computed from bundles in `docs/results`, which hold every seed's curve. A shard is short enough to be
played in one go: `make literature` plays the next one that is missing. `cei`, `scbo` and `furbo` are this project's
implementations of constrained expected improvement, SCBO and FuRBO.

Regret is in units of the spread of f over the box. A seed that finds nothing feasible counts as worse than any number
(∞). A median is over the seeds that all methods of a table have; few seeds make it uncertain. On a problem a method's
rank is by its median; the column `rank` is the mean of these over the problems. *Beats cei* counts the runs, of all
with the same problem and seed, that end better than that of `cei`. A shard is *confirmed by* a commit whose code
replayed some randomly drawn cells and got the same bits.

`cbobench compare docs/results/low-ours.zip --metric simple_regret` prints any of these results with intervals and
tests, over all of a method's seeds; [your method beside them](beside_the_field.md) is a page of its own.
"""


@dataclass(frozen=True)
class Section:
    """A group of shards on the page.

    Attributes:
        title, words: its heading, and what was played.
        tables: each by a metric, with words on what counts there.
        also: shards of other groups that its tables show, too.
    """

    title: str
    words: str
    tables: tuple[tuple[str, str], ...] = (("simple_regret", "The best feasible point that was evaluated counts."),)
    also: tuple[str, ...] = ()


GROUPS = {
    "low": Section(
        "Two to seven dimensions, without noise",
        "60 evaluations, the first 10 a Sobol design. Of BoTorch's constrained expected improvement, "
        "`botorch-cei-stock` is the library as it comes. `botorch-cei-bilog` models constraints through SCBO's bilog "
        "transform, as `cei` may. Two more could give it more digits: `botorch-cei-tiny-noise` fits no noise, and "
        "`botorch-cei-turbo` has the models of BoTorch's SCBO tutorial.",
    ),
    "low-theory": Section(
        "The same, for methods with theorems",
        "By the letter, with the kernel of the problem, and with models fitted to what they observe (`kernel=fit`). "
        "Most are told a bound or a noise level, and aim at regret over all rounds.",
        also=("low-ours",),
    ),
    "noisy": Section(
        "Noise of 1 % and 10 %",
        "60 evaluations, the first 10 a Sobol design; noise in units of each function's spread.",
        (
            (
                "recommended_regret",
                "By the noise-free value of the recommendation after the last evaluation; an infeasible one counts as "
                "∞. `cei`, `ckb-ucb` and `penalty-noisy` recommend by their models. The others, also BoTorch's and "
                "`scbo`, recommend the best observed point, which noise favours. So this table compares rules of "
                "recommendation as much as searches.",
            ),
            (
                "simple_regret",
                "The same runs by the best feasible point that was evaluated, without noise, whether or not the method "
                "knows which one it is.",
            ),
        ),
    ),
    "batches": Section(
        "Batches of four",
        "80 evaluations in batches of four: all four are chosen before any of their results is known.",
    ),
    "ten": Section("Ten and twenty dimensions", "150 evaluations, the first 20 a Sobol design."),
    "many": Section("Fifty to 124 dimensions", "300 evaluations, the first 50 a Sobol design."),
    "coco-2": Section(
        "COCO's bbob-constrained in two dimensions", "60 evaluations, the first 10 a Sobol design; COCO's own units."
    ),
    "coco-10": Section(
        "COCO's bbob-constrained in ten dimensions", "300 evaluations, the first 30 a Sobol design; COCO's own units."
    ),
}


@dataclass
class Method:
    """A method's values of one quantity by problem and seed, the time of its rounds, its runs and its failed fits."""

    values: dict[str, dict[int, float]] = field(default_factory=dict)
    milliseconds: list[float] = field(default_factory=list)
    runs: int = 0
    expected: int = 0
    failed_fits: int = 0


def plain(label: str) -> str:
    """A label without what it says in brackets, such as that there is no noise."""
    return label.partition(" (")[0].partition("[noise_f=0.0")[0]


def read_methods(bundles: Sequence[Path], metric: str) -> dict[str, Method]:
    """What the bundles of a group hold, by method."""
    quantity, methods = quantities()[metric], dict[str, Method]()
    for bundle in bundles:
        for group in find_groups(Run(bundle)):
            method = methods.setdefault(plain(group.algorithm_label), Method())
            values = fill_unreached(group.values(quantity), quantity)
            by_seed = zip(group.seeds.tolist(), values.tolist(), strict=True)
            method.values.setdefault(plain(group.problem_label), {}).update(by_seed)
            method.milliseconds += (1e3 * group.good["seconds_per_round"]).tolist()
            method.runs += len(group.good)
            method.expected += group.expected
            method.failed_fits += int(group.good["failed_fits"].fillna(0).sum())
    return {name: method for name, method in methods.items() if method.runs}


def medians_of(methods: dict[str, Method], problems: Sequence[str]) -> tuple[NDArray[Any], list[int]]:
    """Medians (methods, problems) over the seeds that all methods have, and how many these are by problem."""
    medians, counts = np.full((len(methods), len(problems)), np.nan), []
    for j, problem in enumerate(problems):
        held = [set(method.values.get(problem, {})) for method in methods.values()]
        seeds = sorted(set.intersection(*held)) if held else []
        counts.append(len(seeds))
        for i, method in enumerate(methods.values()):
            middle = np.median([method.values[problem][seed] for seed in seeds]) if seeds else np.nan
            medians[i, j] = restore_infinite(float(middle))
    return medians, counts


def show_median(value: float) -> str:
    """A median as a cell of a table."""
    return "–" if np.isnan(value) else "∞" if not np.isfinite(value) else format_number(value)


def lowest_of(medians: NDArray[Any]) -> NDArray[Any]:
    """The best median of each problem, of medians (methods, problems); ∞ where no method has one."""
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
    """A row per method over many problems: how much it reached of COCO's targets, and where it is the best."""
    medians, counts = medians_of(dict(methods), problems)
    names, mean_ranks, lowest = list(methods), mean_ranks_of(medians), lowest_of(medians)
    lines = [
        "| method | rank | targets reached | best on | never feasible | runs | ms a round |",
        "| :-- | --: | --: | --: | --: | --: | --: |",
    ]
    for i in np.argsort(mean_ranks, kind="stable"):
        method = methods[names[i]]
        values = np.array([value for seeds in method.values.values() for value in seeds.values()])
        reached = (values[:, None] <= np.array(COCO_TARGETS)).mean()
        best = int((np.isfinite(medians[i]) & (medians[i] == lowest)).sum())
        time = format_number(float(np.median(method.milliseconds)))
        lines.append(
            f"| `{names[i]}` | {mean_ranks[i]:.2f} | {100 * reached:.1f} % | {best}/{len(problems)} | "
            f"{100 * (~is_reached(values)).mean():.1f} % | {method.runs}/{method.expected} | {time} |"
        )
    few, most = format_number(COCO_TARGETS[-1]), format_number(COCO_TARGETS[0])
    about = f"{len(problems)} problems, {count_seeds(counts)} each. "
    about += f"Targets are COCO's {len(COCO_TARGETS)}, from {most} to {few}. Ranks are means."
    own = [is_ours(name) for name in names]
    if any(own) and not all(own):
        worse = int((lowest_of(medians[own]) > lowest).sum())
        about += f" On {worse} of them an opponent is better than all of ours."
    return f"{about}\n\n" + "\n".join(lines) + "\n"


def count_wins(method: Method, reference: Method) -> str:
    """In how many runs a method ends better than the reference, of those with the same problem and seed."""
    pairs = [
        (value, reference.values[problem][seed])
        for problem, by_seed in method.values.items()
        for seed, value in by_seed.items()
        if seed in reference.values.get(problem, {})
    ]
    return f"{sum(value < other for value, other in pairs)}/{len(pairs)}"


def table_of(methods: Mapping[str, Method], problems: Sequence[str]) -> tuple[str, str]:
    """A row per method with its medians, and a sentence on seeds and on who is best."""
    medians, counts = medians_of(dict(methods), problems)
    mean_ranks, lowest = mean_ranks_of(medians), lowest_of(medians)
    names, reference = list(methods), methods.get(REFERENCE)
    heads = ["method", "rank", *problems, *([f"beats {REFERENCE}"] if reference else []), "runs", "ms a round"]
    lines = [f"| {' | '.join(heads)} |", "| :-- |" + " --: |" * (len(heads) - 1)]
    for i in np.argsort(mean_ranks, kind="stable"):
        name, method = names[i], methods[names[i]]
        best = np.isfinite(medians[i]) & (medians[i] == lowest)
        cells = [f"**{show_median(v)}**" if b else show_median(v) for v, b in zip(medians[i], best, strict=True)]
        if reference:
            cells.append("–" if name == REFERENCE else count_wins(method, reference))
        cells += [f"{method.runs}/{method.expected}", format_number(float(np.median(method.milliseconds)))]
        lines.append(f"| `{name}` | {mean_ranks[i]:.2f} | {' | '.join(cells)} |")
    said = f"Medians over {count_seeds(counts)}. {describe_standing(medians, names, problems)}"
    return "\n".join(lines), said


def group_section(name: str, bundles: Sequence[Path]) -> str:
    """The section of one group; it says so where nothing is played."""
    section, parts = GROUPS[name], []
    for metric, words in section.tables if any(group_of(bundle.stem) == name for bundle in bundles) else ():
        methods = read_methods(bundles, metric)
        problems = list(dict.fromkeys(problem for method in methods.values() for problem in method.values))
        if name.startswith("coco"):  # too many problems for columns
            parts.append(f"{words} {sum_up(methods, problems)}")
            continue
        table, said = table_of(methods, problems)
        parts.append(f"{words} {said}\n\n{table}\n")
    if not parts:
        return f"## {section.title}\n\nNot played yet.\n"
    fits = [f"`{method}` {found.failed_fits:,}" for method, found in methods.items() if found.failed_fits]
    if fits:
        parts.append(f"Fits that failed, so that a method went on with the model it had: {', '.join(fits)}.\n")
    return f"## {section.title}\n\n{section.words}\n\n" + "\n".join(parts)


def count_seeds(counts: Sequence[int]) -> str:
    """How many seeds the medians of a table are over."""
    least, most = min(counts), max(counts)
    return count_noun(most, "seed") if least == most else f"{least} to {most} seeds"


def describe_standing(medians: NDArray[Any], names: Sequence[str], problems: Sequence[str]) -> str:
    """On which problems a method of the field is strictly better than all of ours, by medians (methods, problems)."""
    own = [is_ours(name) for name in names]
    rivals = [name for name in names if not is_ours(name) and name not in PLAIN]
    if not any(own):
        return "None of ours is played yet."
    played = [f"`{name}`" for name in names if is_ours(name)]
    if len(rivals) < FEWEST:
        listed = " and ".join(f"`{name}`" for name in rivals)
        verb = "are" if len(rivals) > 1 else "is"
        return f"Beside {', '.join(played)}, only {listed} {verb} played yet." if rivals else "No rival is played yet."
    beaten = []
    for problem, lowest, ours, column in zip(
        problems, lowest_of(medians), lowest_of(medians[own]), medians.T, strict=True
    ):
        if lowest < ours:
            best = names[int((column == lowest).argmax())]
            beaten.append(f"{problem} (`{best}` {show_median(lowest)} against {show_median(ours)})")
    share = f"On {len(beaten)} of {count_noun(len(problems), 'problem')}"
    count = f"{share} another method beats the best of {', '.join(played)}"
    return f"{count}: {', '.join(beaten)}." if beaten else f"{count}."


def played_by(about: Mapping[str, Any]) -> str:
    """The commits whose code played a bundle, of what it says of itself."""
    return ", ".join(sorted({str(call.get("commit"))[:7] for call in about["calls"]}))


def confirmed_by(bundle: Path, confirmed: Mapping[str, Any]) -> str:
    """The commit whose code played drawn cells of a bundle again, all to the same bits; a dash without one."""
    said = confirmed.get(bundle.stem)
    if said is None or said["bundle"] != digest_of(bundle):
        return "–"
    return f"{said['commit'][:7]} ({count_noun(said['cells'], 'cell')})"


def shards_section(bundles: Sequence[Path], shards: Mapping[str, Mapping[str, Any]]) -> str:
    """Which shards there are, of which suite, who played them, and what that cost."""
    lines = [
        "| shard | suite | cells | failed | played by | confirmed by | CPU | CPU-hours | kB |",
        "| :-- | :-- | --: | --: | :-- | :-- | :-- | --: | --: |",
    ]
    path = bundles[0].with_name(CONFIRMED) if bundles else Path(CONFIRMED)
    confirmed = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    suites = {name: shard["suite"] for name, shard in shards.items()}
    for bundle in bundles:
        about = Bundle(str(bundle)).about
        cells = about["cells"]
        kinds = ", ".join(str(kind).partition(",")[0] for kind in about["cpus"])
        lines.append(
            f"| [`{bundle.stem}`](results/{bundle.name}) | `{suites[bundle.stem]}` | "
            f"{cells['done']}/{cells['expected']} | {cells['failed']} | "
            f"{played_by(about)} | {confirmed_by(bundle, confirmed)} | {kinds} | "
            f"{about['cost']['cpu_hours']:.2f} | {bundle.stat().st_size / 1e3:.0f} |"
        )
    missing = [name for name in shards if name not in {bundle.stem for bundle in bundles}]
    said = f"\nNot played yet: {', '.join(f'`{name}`' for name in missing)}.\n" if missing else ""
    return "## The shards\n\n" + "\n".join(lines) + "\n" + said


def render_page(folder: Path, shards: Mapping[str, Mapping[str, Any]]) -> str:
    """The page, from the bundles of a folder in the order of the shards."""
    bundles = [folder / f"{name}.zip" for name in shards if (folder / f"{name}.zip").exists()]
    sections = [group_section(name, bundles_of(name, bundles)) for name in GROUPS]
    return "\n".join([INTRODUCTION, *sections, shards_section(bundles, shards)])


def bundles_of(name: str, bundles: Sequence[Path]) -> list[Path]:
    """The bundles that a group's tables show."""
    return [bundle for bundle in bundles if group_of(bundle.stem) == name or bundle.stem in GROUPS[name].also]
