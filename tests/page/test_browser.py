"""The page in a browser: what a reader does with mouse and keyboard works, without an error and
without a request.
"""

from __future__ import annotations

import csv
import io

import pytest

from cbobench import cli
from tests.page.browsing import BROWSER, RESULTS, column, downloaded, opened, settle
from tests.page.conftest import IMAGE, PLAIN, ROUNDS, SCRIPT

pytestmark = BROWSER
CURVE = "#curves .panel >> nth=0"


@pytest.fixture(scope="module")
def address(run, tmp_path_factory):
    out = tmp_path_factory.mktemp("page") / "page.html"
    assert cli.main(["report", str(run), "--out", str(out)]) == 0
    return out.as_uri()


@pytest.fixture
def page(browser, address):
    with opened(browser, address) as opened_page:
        yield opened_page


def span(page):
    page.wait_for_selector(f"{CURVE} >> .main-svg")
    low, high = page.evaluate("document.querySelector('#curves .plot')._fullLayout.xaxis.range")
    return high - low


def test_a_heading_sorts_upwards_downwards_and_back(page):
    names = page.locator(f"{RESULTS} >> thead th").all_inner_texts()
    at = names.index("R") + 1
    before = column(page, at)
    heading = page.locator(f"{RESULTS} >> thead th >> nth={at - 1}")
    columns = []
    for state in ("ascending", "descending", "none"):
        heading.get_by_role("button").focus()
        page.keyboard.press("Enter")
        assert heading.get_attribute("aria-sort") == state
        columns.append(column(page, at))
    values = [float(text.split(" [")[0].replace(",", "")) for text in columns[0]]
    assert values == sorted(values)
    assert [text.split(" [")[0] for text in columns[1]] == [
        text.split(" [")[0] for text in columns[0]
    ][::-1]
    assert columns[2] == before


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
    full_span = span(page)
    box = page.locator(f"{CURVE} >> .nsewdrag >> nth=0").bounding_box()
    page.mouse.move(box["x"] + 0.3 * box["width"], box["y"] + 0.3 * box["height"])
    page.mouse.down()
    page.mouse.move(box["x"] + 0.6 * box["width"], box["y"] + 0.7 * box["height"], steps=4)
    page.mouse.up()
    page.wait_for_function(
        "document.querySelector('#curves .plot')._fullLayout.xaxis.autorange === false"
    )
    zoomed = span(page)
    assert zoomed < 0.5 * full_span
    page.locator(f"{CURVE} >> .plot").focus()
    page.keyboard.press("+")
    assert span(page) == pytest.approx(0.6 * zoomed, rel=0.01)
    page.keyboard.press("0")
    assert span(page) == pytest.approx(full_span, rel=0.01)


def test_what_is_chosen_is_drawn(page):
    page.locator("#curves").scroll_into_view_if_needed()
    options = page.get_by_label("Metric").locator("option").all_inner_texts()
    assert {"Cumulative regret R", "Simple regret r"} <= {*options}
    assert page.get_by_label("log values").is_checked(), "it opens on r, in decades"
    page.get_by_label("Statistic").first.select_option("seeds")
    settle(page)
    drawn = (
        "(plot => [plot.layout.yaxis.title.text, plot.layout.yaxis.type, plot.data.length])"
        "(document.querySelector('#curves .plot'))"
    )
    assert page.evaluate(drawn) == ["Simple regret r", "log", 3]
    page.locator("#curves .chip", has_text=PLAIN).locator("input").uncheck()
    settle(page)
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
    assert {(row["n"], row["expected"]) for row in rows if row["algorithm"] == PLAIN} == {
        ("5", "6")
    }
    name, text = downloaded(page, page.locator(RESULTS).get_by_role("button", name="CSV").click)
    assert text.decode().startswith("problem,algorithm,")


def test_a_table_hands_out_the_rows_that_are_shown(page):
    page.locator(f"{RESULTS} >> input").fill("plain")
    page.locator(f"{RESULTS} >> thead th >> nth=0").get_by_role("button").click()
    text = downloaded(page, page.locator(RESULTS).get_by_role("button", name="CSV").click)[
        1
    ].decode()
    rows = list(csv.DictReader(io.StringIO(text)))
    assert (
        [row["problem_label"] for row in rows]
        == column(page, 1)
        == sorted([SCRIPT, "easy {{title}}"])
    )
    assert {row["algorithm_label"] for row in rows} == {PLAIN}
    assert len(rows[0]["regret_median"]) > 10, "all digits"


def test_a_choice_is_in_the_address(browser, page):
    assert "#" not in page.url
    page.get_by_label("Metric").select_option("regret")
    page.locator("#curves .chip", has_text=IMAGE).locator("input").uncheck()
    page.get_by_role("link", name="Curves").click()
    settle(page)
    assert page.url.endswith(
        "#curves&metric=regret&ylog=false&algorithms=plain%20%26%20simple,third"
    )
    page.reload()
    settle(page)
    for tab in (page, page.context.new_page()):
        tab.goto(page.url)
        settle(tab)
        assert tab.get_by_label("Metric").input_value() == "regret"
        assert not tab.get_by_label("log values").is_checked(), "a regret may be negative"
        names = (
            "document.querySelector('#curves .plot').data.filter((trace) => "
            "!trace.band).map((trace) => trace.meta)"
        )
        assert tab.evaluate(names) == [PLAIN, "third"]
        assert abs(tab.locator("#curves").bounding_box()["y"]) < 200, "the section is shown"


def test_an_address_may_ask_for_what_is_not_there(browser, address):
    with opened(browser, f"{address}#algorithms=gone,third&metric=height&%&view=mean") as page:
        warning = page.locator(".warning").first.inner_text()
        assert warning == "The address asks for what is not on this page: gone, metric=height"
        assert page.locator("#curves summary").first.inner_text() == "Algorithms (1 of 3 drawn)"
        assert page.get_by_label("Statistic").first.input_value() == "mean"


def test_seconds_are_an_axis(page):
    page.get_by_label("x axis").select_option("seconds")
    settle(page)
    x = page.evaluate("document.querySelector('#curves .plot').data.at(-1).x")
    assert x[-1] == pytest.approx(ROUNDS * 1e-6), "a round takes a microsecond in this run"
    assert "t times what a round took" in page.locator(f"{CURVE} >> .note").inner_text()
    button = page.locator(CURVE).get_by_role("button", name="download the numbers")
    rows = list(csv.DictReader(io.StringIO(downloaded(page, button.click)[1].decode())))
    assert float(rows[0]["seconds"]) == pytest.approx(int(rows[0]["t"]) * 1e-6)


def test_a_problem_has_its_own_data_profile(page):
    assert page.locator("#many .panel").count() == 3
    page.get_by_label("data profile of each").check()
    settle(page)
    titles = page.locator("#many figcaption").all_inner_texts()
    assert titles[3:] == [f"Data profile · {SCRIPT}", "Data profile · easy {{title}}"]


def test_it_fits_a_phone(browser, address):
    with opened(browser, address, width=390) as page:
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        place = page.locator(f"{RESULTS} >> .scroll")
        name = place.locator("tbody tr:not(.group) >> nth=0 >> td >> nth=0")
        before = name.bounding_box()["x"]
        place.evaluate("(box) => { box.scrollLeft = 200; }")
        assert name.inner_text() == IMAGE
        assert name.bounding_box()["x"] == pytest.approx(before, abs=1), "the algorithm stays"
        assert place.locator("tr.group").all_inner_texts() == [SCRIPT, "easy {{title}}"]
        small = page.evaluate(SMALL)
        assert not small, "too small to touch"


SMALL = """() => [...document.querySelectorAll('button, select, input, summary, nav a')].filter((one) => {
    const {width, height} = one.getBoundingClientRect(); return width && (width < 24 || height < 24);
}).map((one) => one.outerHTML)"""  # noqa: E501


def test_paper_has_all_that_is_closed_and_what_fits(page):
    closed = page.locator("details:not([open])").count()
    assert closed
    page.add_style_tag(content="#tables details[open] td { min-width: 16rem; }")
    page.emulate_media(media="print")
    page.wait_for_selector("html[data-paper]")
    assert page.locator("details:not([open])").count() == 0
    assert page.locator(".controls").first.is_hidden()
    width = page.evaluate("document.getElementById('main').clientWidth")
    for place in page.locator("figure.table .scroll").all():
        assert place.evaluate("(box) => box.scrollWidth") <= width
    assert (
        page.evaluate("getComputedStyle(document.querySelector('td')).fontSize") == "10.6667px"
    ), "8 pt"
    assert page.locator("#curves .main-svg").count() >= 2, "drawn, though nobody has looked there"
    left_out = page.locator(f"{RESULTS} >> .left-out").inner_text()
    assert left_out.startswith("not on paper: ")
    page.emulate_media(media="screen")
    page.wait_for_selector("html:not([data-paper])")
    assert page.locator("details:not([open])").count() == closed
    assert page.locator(f"{RESULTS} >> th[hidden]").count() == 0
    settle(page)


def test_a_request_would_be_seen(page):
    page.evaluate("fetch('http://127.0.0.1:9/').catch(() => 0)")
    page.wait_for_timeout(100)
    assert any("Content Security Policy" in line for line in page.wrong), "negative control"
    page.wrong.clear()
