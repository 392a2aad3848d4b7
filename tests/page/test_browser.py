"""The page in a browser: it opens offline without an error, at the width of a phone and of a desk;
a click in the legend hides a curve; hostile labels stay text.
"""

from __future__ import annotations

import pytest

from cbobench import cli
from tests.page.browsing import BROWSER, opened
from tests.page.conftest import IMAGE, PLAIN, SCRIPT

pytestmark = BROWSER
FIGURES = 4  # curves of two problems, and two profiles
VISIBLE = """() => document.querySelector('.plotly-graph-div').data
    .filter((trace) => trace.visible !== 'legendonly').map((trace) => trace.name)"""


@pytest.fixture(scope="module")
def address(run, tmp_path_factory):
    out = tmp_path_factory.mktemp("page") / "page.html"
    assert cli.main(["report", str(run), "--out", str(out)]) == 0
    return out.as_uri()


@pytest.mark.parametrize("width", [390, 1280])
def test_it_opens_offline_without_an_error(browser, address, width):
    with opened(browser, address, width) as page:
        assert page.locator(".plotly-graph-div").count() == FIGURES
        assert page.locator(".js-line").count() >= 3 * FIGURES
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        box = page.locator("div:has(> table) >> nth=0")
        is_wide = box.evaluate("(box) => box.scrollWidth > box.clientWidth")
        assert is_wide or width > 390, "a wide table scrolls in its own box"


def test_a_click_in_the_legend_hides_a_curve(browser, address):
    with opened(browser, address, 1280) as page:
        before = page.evaluate(VISIBLE)
        assert set(before) == {"&lt;img src=x onerror=window.hurt=2&gt;", "plain &amp; simple (5 of 6)", "third"}  # fmt: skip # noqa: E501
        page.locator(".plotly-graph-div >> nth=0 >> .legendtoggle >> nth=2").click()
        # It waits for a second click, and makes the entry pale then.
        page.locator(".legend .traces[style*='opacity: 0.5'] >> nth=0").wait_for(state="attached")
        assert page.evaluate(VISIBLE) == [name for name in before if name != "third"]


def test_an_axis_becomes_logarithmic(browser, address):
    with opened(browser, address, 1280) as page:
        page.get_by_text("log t").first.click()
        kind = "document.querySelector('.plotly-graph-div').layout.xaxis.type"
        page.wait_for_function(f"{kind} === 'log'")


def test_hostile_labels_stay_text(browser, address):
    with opened(browser, address, 1280) as page:
        assert SCRIPT in page.locator("h3").all_inner_texts()
        assert IMAGE in page.locator("td").all_inner_texts()
        legend = page.locator(".plotly-graph-div >> nth=0 >> .legendtext").all_text_contents()
        assert legend == [IMAGE, f"{PLAIN} (5 of 6)", "third"]
        assert page.locator("img").count() == 0
