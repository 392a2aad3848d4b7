"""The page in a browser draws and hands out the numbers of `curves` and planes, and says what a
figure lacks.
"""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pytest

from cbobench import cli
from cbobench.report.curves import curves
from cbobench.report.load import Run
from cbobench.report.planes import Plane
from tests.page.browsing import BROWSER, RESULTS, column, downloaded, opened, settle
from tests.page.conftest import MANY, crowd, odd
from tests.report.made import make

pytestmark = BROWSER


@pytest.fixture(scope="module")
def lacking(tmp_path_factory):
    """A run with whatever a figure may lack."""
    return Run(odd(tmp_path_factory.mktemp("lacking") / "run"))


@pytest.fixture(scope="module")
def address(lacking, tmp_path_factory):
    out = tmp_path_factory.mktemp("page") / "page.html"
    assert cli.main(["report", str(lacking.folder), "--out", str(out)]) == 0
    return out.as_uri()


@pytest.fixture
def lacks(browser, address):
    with opened(browser, address) as page:
        yield page


TRACES = """section => document.querySelector(`${section} .plot`).data.filter((trace) => !trace.band).map(
    ({name, x, y, error_x, error_y}) => ({name, x, y, error_x, error_y}))"""  # noqa: E501


def panel(page, section):
    """By name what the first figure of a section draws, its note, and the rows of its CSV."""
    page.locator(f"{section} .panel >> nth=0").scroll_into_view_if_needed()
    settle(page)
    traces = {trace["name"]: trace for trace in page.evaluate(TRACES, section)}
    button = page.locator(f"{section} .panel >> nth=0").get_by_role(
        "button", name="download the numbers"
    )
    rows = pd.read_csv(io.BytesIO(downloaded(page, button.click)[1]), dtype={"algorithm": str})
    return traces, page.locator(f"{section} .panel >> nth=0 >> .note").inner_text(), rows


def numbers(values):
    return np.array([np.nan if value is None else value for value in values], dtype=float)


def test_curves_are_drawn_as_figures_have_them(lacks, lacking):
    problem = next(iter(lacking.record.labels("problems")))
    lacks.locator("#curves").get_by_role("button", name="all").first.click()
    for metric in ("regret", "simple_regret"):
        lacks.get_by_label("Metric").select_option(metric)
        for statistic in ("median", "mean"):
            lacks.get_by_label("Statistic").first.select_option(statistic)
            traces, note, rows = panel(lacks, "#curves")
            expected = curves(lacking, metric, problem, statistic=statistic).set_index(
                ["label", "t"]
            )
            noted_labels = (
                {"late": "late (r in 1 of 6)", "half": "half (r in 4 of 6)"}
                if metric == "simple_regret"
                else {}
            )
            names = {label: noted_labels.get(label, label) for label in MANY if label != "lost"}
            assert {*traces} == {*names.values(), "lost (0 of 6)"}
            assert traces["lost (0 of 6)"]["y"] == [None]
            for label, name in names.items():
                of = expected.loc[label].loc[traces[name]["x"]]
                np.testing.assert_allclose(numbers(traces[name]["y"]), of[statistic], rtol=2e-6)
                own_rows = rows[rows["algorithm"] == label]
                np.testing.assert_allclose(
                    own_rows[[statistic, "low", "high"]], of[[statistic, "low", "high"]], rtol=2e-6
                )
                assert (own_rows[["n", "expected"]] == 6).all().all()
            assert (
                "T = 120 (no cell of T = 240 is good), n = 6 of 6, 0 of 6; no good cell: lost"
                in note
            )
            gone = f"{statistic} undefined in the end: late (no value in 5 of 6 seeds)"
            assert (gone in note) == (metric == "simple_regret")
            assert ("half (no value in 2 of 6 seeds)" in note) == (metric == "simple_regret")
    assert "chosen" not in note
    lacks.get_by_label("Metric").select_option("regret")
    lacks.get_by_label("log values").check()
    assert panel(lacks, "#curves")[1].endswith(
        "1 curve with values ≤ 0, which are not on this scale: good"
    )
    image = lacks.locator("#curves .panel >> nth=0").get_by_role("button", name="download as SVG")
    assert b"not on this scale: good" in downloaded(lacks, image.click)[1].replace(
        b"\xc2\xa0", b" "
    )


def test_planes_are_drawn_as_figures_have_them(lacks, lacking):
    problem = next(iter(lacking.record.labels("problems")))
    lacks.locator(f"{RESULTS} >> thead th >> nth=1").get_by_role("button").click()
    assert column(lacks, 2)[:4] == ["0.05", "0.25", "0.5", "good"], (
        "words that are numbers, by value"
    )
    assert lacks.locator("#curves summary").all_inner_texts() == [
        "Algorithms (10 of 12 drawn)",
        "Problems",
    ]
    assert "10 of 12 algorithms are chosen" in panel(lacks, "#plane")[1]
    lacks.locator("#curves").get_by_role("button", name="all").first.click()
    assert lacks.locator("#curves summary").first.inner_text() == "Algorithms"
    lacks.get_by_label("Across").select_option("simple_regret")
    lacks.get_by_label("Upwards").select_option("regret")
    for statistic in ("median", "mean"):
        lacks.get_by_label("Statistic").last.select_option(statistic)
        traces, note, rows = panel(lacks, "#plane")
        expected = Plane("simple_regret", "regret", problem, statistic=statistic).data(lacking)
        columns = [f"{axis}{end}" for axis in "xy" for end in ("", "_low", "_high", "_defined")]
        columns += ["n", "expected", "stale"]
        np.testing.assert_array_equal(
            rows[columns].to_numpy(float), expected[columns].to_numpy(float)
        )
        assert [*rows["algorithm"]] == [*expected["label"]] == [*MANY]
        names = {
            "lost": "lost (0 of 6)",
            "late": "late (r in 1 of 6)",
            "half": "half (r in 4 of 6)",
        }
        for row in expected.to_dict("records"):
            trace = traces[names.get(row["label"], row["label"])]
            if not np.isfinite([row["x"], row["y"]]).all():
                assert trace["x"] == [None]
                continue
            for axis in "xy":
                assert trace[axis] == [row[axis]]
                ends = [row[f"{axis}_high"] - row[axis], row[axis] - row[f"{axis}_low"]]
                bar = [trace[f"error_{axis}"][word][0] for word in ("array", "arrayminus")]
                assert bar == [end if np.isfinite(end) else 0 for end in ends]
        phrases = {
            "median": [
                "beyond any value: late",
                "no upper end: half (r)",
                "worse than any: late (r in 1 of 6), half",
            ],
            "mean": ["seeds without a value are left out: late (r in 1 of 6), half (r in 4 of 6)"],
        }
        assert all(
            phrase in note
            for phrase in [*phrases[statistic], "no good cell: lost", "n = 6 of 6, 0 of 6"]
        ), note
    lacks.get_by_label("log axes").check()
    assert panel(lacks, "#plane")[1].endswith(
        "1 point with values ≤ 0, which are not on this scale: good"
    )


def test_without_an_optimum_the_best_value_is_shown_first(browser, tmp_path):
    values = {
        name: np.ones((2, 5))
        for name in ("recommended_violation", "simple_value", "violation_hard")
    }
    cells = {
        ("P", "A"): {"regret": [np.nan] * 2}
        | {name: steps[:, -1] for name, steps in values.items()}
    }
    rounds = {("P", "A"): {"t": np.arange(1, 6), **values}}
    run = make(tmp_path / "run", cells, seeds=range(2), horizon=5, rounds=rounds)
    assert cli.main(["report", str(run), "--out", str(tmp_path / "page.html")]) == 0
    with opened(browser, (tmp_path / "page.html").as_uri()) as page:
        assert (
            page.get_by_label("Metric").input_value()
            == page.get_by_label("Across").input_value()
            == "simple_value"
        )


COUNT = """() => { const react = Plotly.react; window.draws = 0;
    Plotly.react = (...all) => { window.draws += 1; return react(...all); }; }"""


def test_many_methods_are_found_and_shown_alone(browser, tmp_path):
    out = tmp_path / "page.html"
    assert cli.main(["report", str(crowd(tmp_path / "run")), "--out", str(out)]) == 0
    with opened(browser, out.as_uri()) as page:
        page.locator("#curves summary").first.click()
        assert page.locator("#curves .legendtext").count() == 10
        page.evaluate(COUNT)
        page.locator("#curves").get_by_role("button", name="all").first.click()
        settle(page)
        traces, note, rows = panel(page, "#curves")
        assert len(traces) == rows["algorithm"].nunique() == 60
        assert page.locator("#curves .legendtext").count() == 0, "no legend of sixty"
        assert note.endswith("no legend of more than 12: point at a curve")
        assert "quartiles are in the CSV" in note
        page.get_by_label("Find algorithms").fill("-05")
        assert page.locator("#curves .chip:visible").all_inner_texts()[0].strip() == "method-05"
        focus = "#curves .plot.focused .trace.focus"
        assert page.locator(focus).count() == 1
        page.get_by_label("Find algorithms").fill("")
        assert page.locator("#curves .plot.focused").count() == 0
        page.locator("#curves .chip", has_text="method-07").hover()
        assert page.locator(focus).get_attribute("class").split()[-2:] == ["tracea7", "focus"]
        page.mouse.move(0, 0)
        assert page.locator("#curves .plot.focused").count() == 0
        before = page.evaluate("window.draws")
        page.locator("#curves .chip", has_text="method-07").locator("input").uncheck()
        settle(page)
        on_page = page.locator(".panel").count()
        assert page.evaluate("window.draws") - before == on_page, "a click draws every panel once"
        box = page.locator("#curves .nsewdrag >> nth=0").bounding_box()
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] * 0.55, steps=3)
        page.wait_for_selector("#curves .plot.focused .trace.focus")
