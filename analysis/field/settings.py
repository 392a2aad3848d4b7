"""What pages of the field say of how their shards were played: to which horizon, and where settings
are not those of papers and theorems.
"""

from __future__ import annotations

from analysis.field.groups import plain
from cbobench.report.load import Run
from cbobench.suite.variants import Variant


def played_variants(run: Run) -> dict[str, Variant]:
    """The methods that have cells in a run, by label."""
    labels, played = run.record.labels("algorithms"), {*run.cells["algorithm"]}
    variants = run.record.variants("algorithms").items()
    return {plain(labels[title]): variant for title, variant in variants if title in played}


def describe_play(run: Run) -> str:
    """How many evaluations there are, which are the first ones, and how many are chosen at once."""
    horizons = sorted({grid.horizon for grid in run.record.grids})
    values = [variant.values for variant in played_variants(run).values()]
    designs = {item for one in values for item in (one.get("initial design") or {}).items()}
    under_way = [one["evaluations under way"] for one in values if "evaluations under way" in one]
    said = f"{' or '.join(map(str, horizons))} evaluations"
    for kind, count in sorted(designs):
        said += f", the first {count} a {kind.capitalize()} design"
    for points in sorted({one["points"] for one in under_way}):
        said += f", in batches of {points}: a batch is chosen before any of its results is known"
    return f"{said}."


def describe_settings(run: Run) -> str:
    """Where methods do not play what their papers and theorems say; empty where they do."""
    settings = {name: variant.settings for name, variant in played_variants(run).items()}
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
