"""The page in a browser: what a reader does with mouse and keyboard works, without an error and without a request."""

from __future__ import annotations

import csv
import io

import pytest

from cbobench import cli
from tests.page.browsing import BROWSER, RESULTS, column, downloaded, opened
from tests.page.conftest import IMAGE, PLAIN, SCRIPT

pytestmark = BROWSER
CURVE = "#curves .panel >> nth=0"


@pytest.fixture(scope="module")
def address(run, tmp_path_factory):
    out = tmp_path_factory.mktemp("page") / "page.html"
    assert cli.main(["report", str(run), "--out", str(out)]) == 0
    return out.as_uri()


@pytest.fixture
def page(browser, address):
    with opened(browser, address) as shown:
        yield shown


def span(page):
    page.wait_for_selector(f"{CURVE} >> .main-svg")
    low, high = page.evaluate("document.querySelector('#curves .plot')._fullLayout.xaxis.range")
    return high - low


def test_a_heading_sorts_upwards_downwards_and_back(page):
    names = page.locator(f"{RESULTS} >> thead th").all_inner_texts()
    at = names.index("R") + 1
    before = column(page, at)
    heading = page.locator(f"{RESULTS} >> thead th >> nth={at - 1}")
    seen = []
    for state in ("ascending", "descending", "none"):
        heading.get_by_role("button").focus()
        page.keyboard.press("Enter")
        assert heading.get_attribute("aria-sort") == state
        seen.append(column(page, at))
    values = [float(text.split(" [")[0].replace(",", "")) for text in seen[0]]
    assert values == sorted(values)
    assert [text.split(" [")[0] for text in seen[1]] == [text.split(" [")[0] for text in seen[0]][::-1]
    assert seen[2] == before


def test_a_filter_leaves_what_holds_its_words(page):
    box = page.locator(f"{RESULTS} >> input")
    box.fill("plain easy")
    assert column(page, 2) == [PLAIN]
    assert page.locator(f"{RESULTS} >> .said").inner_text() == "1 of 6 rows"
    box.fill("no such thing")
    assert column(page, 2) == []
    box.fill("")
    assert len(column(page, 2)) == 6


def test_labels_are_text(page):
    assert SCRIPT in " ".join(column(page, 1))
    assert IMAGE in column(page, 2)
    page.locator("#curves").scroll_into_view_if_needed()
    page.wait_for_selector(f"{CURVE} >> .legendtext")
    assert IMAGE in page.locator(f"{CURVE} >> .legendtext").all_text_contents()
    assert page.locator("img").count() == 0


def test_zoom_with_mouse_and_keyboard(page):
    page.locator(CURVE).scroll_into_view_if_needed()
    whole = span(page)
    box = page.locator(f"{CURVE} >> .nsewdrag >> nth=0").bounding_box()
    page.mouse.move(box["x"] + 0.3 * box["width"], box["y"] + 0.3 * box["height"])
    page.mouse.down()
    page.mouse.move(box["x"] + 0.6 * box["width"], box["y"] + 0.7 * box["height"], steps=4)
    page.mouse.up()
    page.wait_for_function("document.querySelector('#curves .plot')._fullLayout.xaxis.autorange === false")
    zoomed = span(page)
    assert zoomed < 0.5 * whole
    page.locator(f"{CURVE} >> .plot").focus()
    page.keyboard.press("+")
    assert span(page) == pytest.approx(0.6 * zoomed, rel=0.01)
    page.keyboard.press("0")
    assert span(page) == pytest.approx(whole, rel=0.01)


def test_what_is_chosen_is_drawn(page):
    page.locator("#curves").scroll_into_view_if_needed()
    options = page.get_by_label("Metric").locator("option").all_inner_texts()
    assert {"Cumulative regret R", "Simple regret r"} <= {*options}
    page.get_by_label("Metric").select_option("simple_regret")
    page.get_by_label("log values").check()
    page.get_by_label("Statistic").first.select_option("seeds")
    page.wait_for_selector(f"{CURVE} >> .main-svg")
    drawn = (
        "(plot => [plot.layout.yaxis.title.text, plot.layout.yaxis.type, plot.data.length])"
        "(document.querySelector('#curves .plot'))"
    )
    assert page.evaluate(drawn) == ["Simple regret r", "log", 3]
    page.locator("#curves .chip", has_text=PLAIN).locator("input").uncheck()
    page.wait_for_selector(f"{CURVE} >> .main-svg")
    assert page.evaluate(drawn)[2] == 2
    page.locator("#curves .chip", has_text="easy").locator("input").uncheck()
    assert page.locator("#curves .panel").count() == 1


def test_the_theme_follows_the_system_and_the_button(page):
    paper = "getComputedStyle(document.body).backgroundColor"
    white = page.evaluate(paper)
    page.emulate_media(color_scheme="dark")
    page.wait_for_selector("html[data-theme=dark]")
    assert page.evaluate(paper) != white
    page.locator("#theme").focus()
    page.keyboard.press("Space")
    assert page.evaluate(paper) == white
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate(paper) == white, "on paper"


def test_figures_and_tables_can_be_had(page):
    page.locator(CURVE).scroll_into_view_if_needed()
    span(page)
    button = lambda name: page.locator(CURVE).get_by_role("button", name=name).click  # noqa: E731
    name, svg = downloaded(page, button("download as SVG"))
    assert name.endswith(".svg")
    assert svg.startswith(b"<svg")
    name, png = downloaded(page, button("download as PNG"))
    assert png.startswith(b"\x89PNG")
    name, text = downloaded(page, button("download the numbers"))
    rows = list(csv.DictReader(io.StringIO(text.decode())))
    assert {row["algorithm"] for row in rows} == {IMAGE, PLAIN, "third"}
    assert {(row["n"], row["expected"]) for row in rows if row["algorithm"] == PLAIN} == {("5", "6")}
    name, text = downloaded(page, page.locator(RESULTS).get_by_role("button", name="CSV").click)
    assert text.decode().startswith("problem,algorithm,")


def test_it_fits_a_phone(page):
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_a_request_would_be_seen(page):
    page.evaluate("fetch('http://127.0.0.1:9/').catch(() => 0)")
    page.wait_for_timeout(100)
    assert any("Content Security Policy" in line for line in page.wrong), "negative control"
    page.wrong.clear()
