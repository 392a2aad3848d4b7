"""Figures from results only: curves, boxes and trade-offs, as PDF and PNG with the CSV behind them.

A recipe is a Python file with a function `figures(run) -> list[Figure]`; `cbobench figures` runs
every shipped recipe and draws what the run's problems allow. A recipe with options takes `metrics`,
`kind` or both. The files hold no time stamp, so that the same results give the same bytes. Of many
methods the best, or those asked for, are in colour.
"""

from __future__ import annotations

import inspect
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd

from cbobench import resources
from cbobench.errors import (
    CbobenchError,
    Misuse,
    one_line,
    reraise_stop,
    show,
    unknown,
)
from cbobench.metrics import METRICS
from cbobench.report.figures.captions import UNKNOWN, FigureContents, caption, identity
from cbobench.report.figures.curves import BANDS, Boxes, Panel, Statistic
from cbobench.report.figures.planes import AnyPanel, Plane, speak
from cbobench.report.figures.profiles import Profile
from cbobench.report.figures.style import REST, Size, looks, plain, size_of
from cbobench.report.load import Run
from cbobench.report.quantities import SIMPLE_REGRET, SIMPLE_VALUE, UNREACHED, select_metrics
from cbobench.report.tables.formats import escape_formula
from cbobench.words import count_noun

__all__ = [
    "AnyPanel",
    "Boxes",
    "DrawOptions",
    "Figure",
    "Panel",
    "Plane",
    "Profile",
    "compose",
    "draw",
    "draw_all",
    "metrics_of",
]

FEW = 6  # curves that a single column has room for
# of a recipe, and how they are asked for
OPTIONS = {"metrics": "--metric", "kind": "--kind"}


@dataclass(frozen=True)
class Figure:
    """A named figure of one or more panels, in rows of `columns` where the page is wide enough.

    Its caption says what is shown; of how many seeds, with which settings and from which run is
    added to it.
    """

    name: str
    caption: str
    panels: Sequence[AnyPanel] = field(default_factory=list)
    columns: int = 4


KINDS = {
    "curves": (SIMPLE_REGRET, "regret", "violation_hard", "violations"),
    "plane": ("regret", "violation_hard"),
    "profile": (SIMPLE_REGRET,),
}
"""What a figure may be of, and the metrics that it shows by default."""


def scale_of(metric: str) -> str:
    """Which axes of a metric's curves are logarithmic unless a reader says so: regrets that fall
    towards 0 need it.
    """
    if METRICS[metric].relative and not METRICS[metric].cumulative:
        return "y"
    return ""


def scale_named(log: str | bool) -> str:
    """The logarithmic axes that a reader asks for: "x", "y" or "xy"; True is "y", False is none.

    Raises:
        Misuse: none of these.
    """
    axes = {True: "y", False: "", "": "", "x": "x", "y": "y", "xy": "xy"}
    if log not in axes:
        raise Misuse(f"log is {show(log)}; allowed: True, False, '', 'x', 'y', 'xy'")
    return axes[log]


def metrics_of(kind: str, metrics: str | Iterable[str] | None = None) -> list[str]:
    """The names of the metrics that a figure of some kind shows.

    Args:
        metrics: names, symbols or labels, the kind's own by default.

    Raises:
        Misuse: an unknown kind or metric, or metrics that the kind cannot show.
    """
    if kind not in KINDS:
        raise unknown("kind", kind, KINDS)
    if metrics:
        names = [quantity.name for quantity in select_metrics(metrics)]
    else:
        names = list(KINDS[kind])
    if cell_only := [name for name in names if name not in METRICS]:
        raise unknown("metric of rounds", cell_only[0], METRICS)
    if kind == "plane" and len(names) != 2:
        raise Misuse(
            f"a plane is of two metrics, not of {', '.join(names)}; give the horizontal and the "
            "vertical one, such as "
            f"{' '.join(KINDS[kind])}"
        )
    if kind == "profile" and names != [SIMPLE_REGRET]:
        raise Misuse(
            f"profiles are of {SIMPLE_REGRET}, which has targets, not of {', '.join(names)}; "
            "leave the metric out"
        )
    return names


def slug(text: str) -> str:
    """A file name from a label: "h = B/2" becomes "h_B_2"."""
    return re.sub(r"[^A-Za-z0-9.]+", "_", text).strip("_")[:80]


def problems_played(run: Run) -> set[str]:
    """Titles of the problems with at least one good cell."""
    return set(run.cells.loc[run.cells["status"] == "ok", "problem"])


def problems_named(run: Run, name: str) -> list[tuple[str, str]]:
    """(title, label) of the run's problems with a registered name that have at least one good
    cell.
    """
    good = problems_played(run)
    labels = run.record.labels("problems")
    return [(title, labels[title]) for title in run.named("problem", [name]) if title in good]


MOST = 8  # methods in colour: more cannot be told apart


@dataclass(frozen=True)
class Lead:
    """The methods of a figure by title.

    Attributes:
        coloured: those in colour, the best first.
        grey: the others, the best first; none where all have a colour.
    """

    coloured: tuple[str, ...]
    grey: tuple[str, ...] = ()


def choose_lead(run: Run, titles: Iterable[str], highlight: Sequence[str] = ()) -> Lead:
    """Tell the methods in colour from those in grey.

    Args:
        run: whose problems, all of them, rank the methods.
        titles: of the methods that are drawn.
        highlight: titles, labels or registered names of the methods in colour. By default all are
            where there are at most `MOST`, else the best: those of the lowest mean rank over
            problems (see `rank_titles`).

    Raises:
        Misuse: a name of no method of the run, or more than `MOST` methods to highlight.
    """
    drawn = list(dict.fromkeys(titles))
    chosen = set(run.titles("algorithm", highlight)) if highlight else set()
    if len(chosen) > MOST:
        count = count_noun(len(chosen), "method")
        raise Misuse(f"highlight names {count}; allowed: {MOST}, so many colours there are")
    if not chosen and len(drawn) <= MOST:
        return Lead(tuple(drawn))
    ranked = rank_titles(run, drawn)
    chosen = chosen or {*ranked[:MOST]}
    coloured = tuple(title for title in ranked if title in chosen)
    return Lead(coloured, tuple(title for title in ranked if title not in chosen))


def rank_titles(run: Run, titles: Sequence[str]) -> list[str]:
    """The methods by their mean rank over problems, the best first; of equal ones the suite's order
    counts.

    On each problem they rank by the median over seeds of simple regret in the end, or of the best
    feasible value where no optimum is known. A seed that failed or found nothing feasible is worse
    than any value; a method without a cell is last.
    """
    good = run.cells[run.cells["algorithm"].isin(titles)]
    ranks: list[Any] = [np.zeros(len(titles))]
    for problem, part in good.groupby("problem", sort=False):
        cells = part[part["horizon"] == run.horizon_of(str(problem))]
        name = SIMPLE_VALUE if cells[SIMPLE_REGRET].isna().all() else SIMPLE_REGRET
        values = -METRICS[name].sign * cells[name].where(cells["status"] == "ok")
        medians = values.fillna(UNREACHED).groupby(cells["algorithm"]).median()
        ranks.append(medians.reindex([*titles]).fillna(2 * UNREACHED).rank().to_numpy())
    return [titles[i] for i in np.argsort(np.sum(ranks, axis=0), kind="stable")]


def compose(
    run: Run, figure: Figure, size: Size, highlight: Sequence[str] = ()
) -> tuple[Any, FigureContents]:
    """A figure as a matplotlib image, and what it shows; to be called in the context of the size.

    Panels without a known value are left out. The image is None where none is left.

    Args:
        highlight: the methods in colour, by default the best (see `choose_lead`).
    """
    from cbobench.report.figures.layout import finish, grid

    contents = FigureContents()
    frames = []
    for panel in figure.panels:
        panel = speak(run, panel)
        frame = panel.data(run)
        contents.describe(run, panel, frame)
        if len(frame) and frame[[*panel.centres]].notna().to_numpy().any():
            contents.panels.append(panel)
            frames.append(frame)
        else:
            name = f" of {panel.title}" * bool(panel.title)
            contents.found.append((UNKNOWN, f"{panel.about[0].lower()}{panel.about[1:]}{name}"))
    if not frames:
        return None, contents
    image, axes = grid(contents.panels, size, figure.columns)
    paint(run, axes, contents, frames, highlight)
    finish(image, axes, contents.panels, size)
    return image, contents


def draw_into(
    run: Run, axes: Sequence[Any], panels: Sequence[AnyPanel], highlight: Sequence[str] = ()
) -> None:
    """Draw panels into axes of the user's, one each, whose size, text and legend are the user's."""
    from cbobench.report.figures.layout import draw_zeros, mark_edge, set_limits

    panels = [speak(run, panel) for panel in panels]
    contents = FigureContents(panels=panels)
    paint(run, axes, contents, [panel.data(run) for panel in panels], highlight)
    for axis, panel in zip(axes, panels, strict=True):
        set_limits([axis], [panel])
        mark_edge(axis)
        draw_zeros(axis)
        axis.set_title(plain(panel.title))


def paint(
    run: Run,
    axes: Sequence[Any],
    contents: FigureContents,
    frames: Sequence[pd.DataFrame],
    highlight: Sequence[str],
) -> None:
    """Draw the panels, and note which methods are grey; the rows go into the contents."""
    titles = [title for panel in contents.panels for _, title in panel.pairs(run)]
    lead = choose_lead(run, titles, highlight)
    algorithm_looks = looks(run.full_record, lead.coloured)
    # A legend names those in colour and counts the others, which the caption names.
    if lead.grey:
        labels = run.record.labels("algorithms")
        listed = ", ".join(labels[title] for title in lead.grey)
        sentence = (
            f"The best {len(lead.coloured)} by mean rank are in colour, in this order; in grey "
            f"follow {listed}."
        )
        contents.notes.append(f"In grey, by mean rank: {listed}." if highlight else sentence)
        # A legend is in the order of drawing.
        ranked = [*lead.coloured, *lead.grey]
        frames = [
            frame.sort_values("algorithm", key=lambda a: a.map(ranked.index), kind="stable")
            for frame in frames
        ]
    # More bands than that would hide what is below.
    has_bands = len(lead.coloured) <= BANDS
    contents.panels = [
        replace(panel, bands=has_bands)
        if isinstance(panel, Panel) and panel.bands is None
        else panel
        for panel in contents.panels
    ]
    for axis, panel, frame in zip(axes, contents.panels, frames, strict=True):
        panel.draw(axis, frame, algorithm_looks)
        grey = [line for line in axis.get_lines() if line.get_color() == REST.colour]
        if grey and not isinstance(panel, Plane):
            for line in grey[1:]:
                line.set_label("_grey")
            grey[0].set_label(f"{len(grey):,} others")
        numbers = frame.copy()
        numbers.insert(0, "problem", panel.problem)
        numbers.insert(1, "metric", panel.quantity)
        contents.frames.append(numbers)


def numbered(
    run: Run,
    paper: str,
    number: str,
    subject: str,
    label: str,
    several: bool = False,
    ending: str = "",
) -> tuple[str, str]:
    """Name and caption of a figure that repeats one of a paper's.

    Only a run of one of the paper's suites gets the number; a suite of another name that holds the
    same problem gets a name of its own.

    Args:
        paper: as cited, such as "Zhou & Ji (2022)"; its suites are called zhou-ji-2022-...
        number: of the paper's figure.
        subject, label: what is shown of which problem.
        several: whether the run has more than one problem for this figure.
        ending: of the name, where the paper's figure is drawn in more than one way.
    """
    suite = run.record.suite
    stem = slug(paper).lower()
    if not slug(suite).lower().startswith(stem):
        return slug(f"{suite} {subject} {label}") + ending, f"{suite}: {subject}, {label}"
    fit = suite.endswith("-fit")
    name = f"{stem}_fig{number}" + f"_{slug(label)}" * several + "_fit" * fit + ending
    title = f"{paper}, Figure {number}" + " (settings that come nearest)" * fit
    return name, f"{title}: {subject}, {label}"


@dataclass(frozen=True)
class DrawOptions:
    """How figures are drawn, whatever they show.

    Attributes:
        size, font: as for `style.size_of`; by default a single column for one panel with a few
            curves, else a double.
        statistic: "mean" or "median" in place of the panels' own.
        svg: write it as SVG, too.
        log: logarithmic axes of curves, "x", "y", "xy" or "" for none, in place of the panels' own.
        highlight: the methods in colour, the others are grey; by default the best eight.
        bands: a band of quartiles to every median, however many there are.
    """

    size: str | None = None
    statistic: Statistic | None = None
    font: str | None = None
    svg: bool = False
    log: str | None = None
    highlight: Sequence[str] = ()
    bands: bool = False


DEFAULT_OPTIONS = DrawOptions()


def draw(
    run: Run, figure: Figure, folder: Path, options: DrawOptions = DEFAULT_OPTIONS
) -> list[Path]:
    """Write one figure into `folder` as PDF, PNG, CSV with the numbers, and TXT with the caption.

    Returns:
        The paths written; none where the run has no cell of what the figure shows.
    """
    from cbobench.report.figures.layout import save

    figure = replace(figure, panels=[_change(panel, options) for panel in figure.panels])
    crowded = any(len({title for _, title in panel.pairs(run)}) > FEW for panel in figure.panels)
    size = options.size or ("double" if crowded else None)
    look = size_of(size, len(figure.panels), options.font)
    folder.mkdir(parents=True, exist_ok=True)
    with look.context():
        image, contents = compose(run, figure, look, options.highlight)
        if image is None or not contents.pairs:
            return []
        text = caption(run, figure.caption, contents)
        kinds = ["pdf", "png", "svg"] if options.svg else ["pdf", "png"]
        paths = [folder / f"{figure.name}.{kind}" for kind in (*kinds, "csv", "txt")]
        facts = {"Title": figure.caption, "Keywords": identity(run)}
        *pictures, numbers, words = paths
        save(image, pictures, look.dpi, text, facts)
        write_numbers(pd.concat(contents.frames), numbers)
        words.write_text(text, encoding="utf-8")
    return paths


def _change(panel: AnyPanel, options: DrawOptions) -> AnyPanel:
    """A panel as the options have it, as far as they are about such a one."""
    names = ["statistic"] if isinstance(panel, Plane) else []
    if isinstance(panel, Panel):
        names = ["statistic", "log", "bands"]
    asked: dict[str, Any] = {name: getattr(options, name) for name in names}
    # No logarithmic axis is something to ask for, too.
    return replace(panel, **{name: word for name, word in asked.items() if word or word == ""})


def write_numbers(frame: pd.DataFrame, path: Path) -> None:
    """Write the rows behind a figure as CSV, in which no text is a formula."""
    texts = frame.select_dtypes(exclude="number").map(escape_formula)
    frame.assign(**texts).to_csv(path, index=False)


def load_recipe(path: Path) -> ModuleType:
    """A recipe file as a module."""
    if path.suffix != ".py":
        raise Misuse(f"{path} is not a Python file")
    module = ModuleType(f"cbobench_recipe_{path.stem}")
    module.__file__ = str(path)
    try:
        # Not imported: Python's cache knows an edit by second and size, and would miss a quick one.
        exec(compile(path.read_bytes(), path, "exec", dont_inherit=True), vars(module))
    except BaseException as error:  # a recipe of the user's may fail in any way
        reraise_stop(error)
        raise Misuse(f"{path} cannot be run: {one_line(error)}") from error
    if not (hasattr(module, "figures") or hasattr(module, "claims")):
        raise Misuse(f"{path} is not a recipe: it has no function figures(run) and no list claims")
    return module


def find_recipes(
    recipe: str | None = None, kind: str = "recipes"
) -> Iterator[tuple[Path, ModuleType]]:
    """Every shipped recipe, or only one (a name or a path), as modules.

    Args:
        kind: "recipes" of figures, or "claims".

    Raises:
        Misuse: no such recipe.
    """
    recipes = resources.recipes(kind)
    chosen = recipes
    if recipe is not None:
        path = Path(recipe)
        if recipe not in recipes and not path.is_file():
            raise unknown("recipe", recipe, recipes, then="or give the path of a Python file")
        chosen = {recipe: recipes.get(recipe, path)}
    for path in chosen.values():
        yield path, load_recipe(path)


def draw_all(
    run: Run,
    folder: Path,
    recipe: str | None = None,
    *,
    kind: str = "curves",
    metrics: Sequence[str] = (),
    options: DrawOptions = DEFAULT_OPTIONS,
) -> Iterator[tuple[Figure, list[Path]]]:
    """Draw every figure that the shipped recipes know for this run.

    Args:
        recipe: only this one (a name or a path).
        kind: of figures, one of `kinds.KINDS`; but for curves only recipes whose `figures` takes
            `kind` are asked.
        metrics: names, symbols or labels of what to draw; only recipes whose `figures` takes
            `metrics` are then asked.
        options: how each figure is drawn.

    Yields:
        Each figure with the paths that were written: none where there are good cells, yet nothing
        to draw of them.

    Raises:
        Misuse: no such recipe, kind, metric, size, font or statistic, or what does not go together.
            CbobenchError: the run has no good cell to draw.
    """
    if not problems_played(run):
        raise CbobenchError(
            f"{run} has no good cell yet, so there is nothing to draw; see cbobench status"
        )
    names = metrics_of(kind, metrics)
    if options.highlight:
        choose_lead(run, (), options.highlight)  # refused before anything is drawn
    if kind == "profile" and options.statistic:
        raise Misuse(
            "profiles are shares of cells, of which there is neither mean nor median; leave "
            "--statistic out"
        )
    choices: dict[str, Any] = {}
    if metrics:
        choices["metrics"] = names
    if kind != "curves":
        choices["kind"] = kind
    counts: Counter[str] = Counter()
    for _, module in find_recipes(recipe):
        for figure in _ask_recipe(run, module, choices, recipe):
            # Two recipes may name a figure alike; neither writes over the files of the other.
            counts[figure.name] += 1
            if counts[figure.name] > 1:
                figure = replace(figure, name=f"{figure.name}_{counts[figure.name]}")
            paths = draw(run, figure, folder, options)
            pairs = (pair for panel in figure.panels for pair in panel.pairs(run))
            if paths or any(len(run.good(*pair)) for pair in pairs):
                yield figure, paths


def _ask_recipe(
    run: Run, module: ModuleType, choices: Mapping[str, Any], recipe: str | None
) -> Iterable[Figure]:
    """The figures of a recipe; none where it cannot choose, which is an error where a user named
    it.
    """
    figures = getattr(module, "figures", None)
    if figures is None:
        alien = "no function figures(run), so that it draws nothing"
    else:
        own = choices.keys() - inspect.signature(figures).parameters.keys()
        if not own:
            return figures(run, **choices)  # type: ignore[no-any-return]
        flags = " and ".join(flag for name, flag in OPTIONS.items() if name in own)
        alien = f"figures of its own; leave {flags} out, or use --recipe summary"
    if recipe is None:
        return []
    raise Misuse(f"the recipe {recipe} has {alien}")


def describe_files(figure: Figure, paths: Sequence[Path]) -> str:
    """A line on the files of a figure, or why there are none."""
    files = (
        "not drawn, no round has a value to draw (a mean needs one in every seed, a median in more "
        "than half)"
    )
    if paths:
        files = " ".join([str(paths[0].with_suffix("")), *(path.suffix for path in paths)])
    return f"{figure.name}: {files}"
