"""What a page says of a run, in sections: the verdict and the table, curves, ranks and profiles,
failed and stale cells, what ran.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field
from html import escape

from cbobench.errors import CbobenchError, mask_secrets, printable
from cbobench.page.figures import Figure, draw_curves, draw_profile, shorten_paths
from cbobench.report.compare import compare
from cbobench.report.groups import KEY, Group
from cbobench.report.load import Run
from cbobench.report.selection import Selection
from cbobench.report.tables.best import describe_best
from cbobench.report.tables.formats import render_html
from cbobench.report.tables.table import TextTable
from cbobench.words import duration

SCRIPT = re.compile(r"<script[^>]*>(.*?)</script>", re.DOTALL)
ABOUT_CURVES = (
    "Medians over seeds, a step for each stored round and each fall of simple regret; bars from "
    "quartile to quartile. A click in the legend hides a curve. A log scale shows nothing at 0 and "
    "below."
)


@dataclass
class Page:
    """A page that is being written.

    Attributes:
        parts: its HTML.
        scripts: those of plotly in it, which a browser may run.
    """

    parts: list[str] = field(default_factory=list)
    scripts: list[str] = field(default_factory=list)

    def add(self, html: str) -> None:
        """Add HTML in which all texts of a run are escaped."""
        self.parts.append(shorten_paths(html))

    def add_text(self, tag: str, text: str) -> None:
        """Add an element with a text."""
        self.add(f"<{tag}>{escape(printable(mask_secrets(text)))}</{tag}>")

    def add_figure(self, figure: Figure) -> None:
        """Add a figure; the first one brings plotly's library along."""
        from plotly.io import to_html

        html = to_html(
            figure,
            config={"displaylogo": False},
            include_plotlyjs=not self.scripts,
            full_html=False,
            div_id=f"figure-{len(self.parts)}",
        )
        html = html.replace("\r", "")  # as a browser reads it
        self.scripts += SCRIPT.findall(html)
        self.parts.append(f"<figure>{html}</figure>")


def add_run(page: Page, run: Run) -> None:
    """Add all sections of a run.

    Raises:
        DamagedRun: a file is damaged.
    """
    selection = Selection.of(run)
    page.add_text("h1", run.record.suite or "run")
    for line in describe_best(run, selection.groups):
        page.add_text("p", line)
    page.add(compare(run).render("html"))
    _add_curves(page, run)
    if len(run.record.labels("problems")) > 1:
        _add_over_problems(page, run)
    _add_doubts(page, run, selection.every_group)
    page.add_text("h2", "What ran")
    page.add(render_html(tabulate_facts(run, selection.groups)))
    page.add(render_html(tabulate_calls(run)))


def _add_curves(page: Page, run: Run) -> None:
    """Curves of every problem."""
    page.add_text("h2", "Curves")
    page.add_text("p", ABOUT_CURVES)
    for problem, label in run.record.labels("problems").items():
        page.add_text("h3", label)
        if figure := draw_curves(run, problem):
            page.add_figure(figure)
        else:
            page.add_text("p", "No cell is good yet.")


def _add_over_problems(page: Page, run: Run) -> None:
    """Ranks and profiles, or why there are none."""
    page.add_text("h2", "Ranks and profiles over all problems")
    try:
        page.add(compare(run, ranks=True).render("html"))
    except CbobenchError as error:
        page.add_text("p", f"No ranks: {error}")
    try:
        page.add_figure(draw_profile(run, "performance"))
        page.add_figure(draw_profile(run, "data"))
    except CbobenchError as error:
        page.add_text("p", f"No profiles: {error}")


def _add_doubts(page: Page, run: Run, groups: list[Group]) -> None:
    """Failed cells, with the first error of each pair, and stale ones."""
    page.add_text("h2", "Failed and stale cells")
    failed = run.cells[run.cells["status"] == "failed"]
    errors = failed.groupby([*KEY])["error"].first()
    rows = []
    for group in groups:
        if group.failed or group.stale or group.unchecked:
            error = errors.get((group.problem, group.algorithm, group.horizon), "–")
            names = [group.problem_label, group.algorithm_label, f"{group.horizon:,}"]
            rows.append([*names, group.count, mask_secrets(str(error))])
    if rows:
        columns = ["problem", "algorithm", "T", "n", "first error"]
        page.add(render_html(TextTable(columns, rows)))
    else:
        page.add_text("p", "No cell failed, and none is stale.")


def tabulate_facts(run: Run, groups: list[Group]) -> TextTable:
    """What ran; of the machines no more than numbers depend on."""
    good = run.cells[run.cells["status"] == "ok"]
    facts = {
        "suite": f"{run.record.suite}: {run.record.about}",
        "run": str(run).rpartition("/")[2],
        "cost": f"{duration(good['seconds'].sum())} of CPU time",
        "CPU": "; ".join(sorted({kind for g in groups for kind in g.words("cpu")} - {None})),
        "libraries": "; ".join(good["libraries"].dropna().unique()),
    }
    return TextTable(["", ""], [[*fact] for fact in facts.items()])


def tabulate_calls(run: Run) -> TextTable:
    """Every call that played into the run."""
    rows = [
        [
            str(call.get("at")),
            mask_secrets(shlex.join(map(str, call.get("command") or ()))),
            f"{call.get('commit') or 'unknown'}{' with changes' if call.get('dirty') else ''}",
            f"Python {call.get('python')} on {call.get('platform')}",
        ]
        for call in run.record.invocations
    ]
    return TextTable(["begun", "command", "commit", "played by"], rows, left=4)
