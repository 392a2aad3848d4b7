"""The site's open table in a browser: choices above it leave the rows that fit; without a script
all of them are there.
"""

import re

import pytest

from analysis.field import open_table
from tests.page.browsing import BROWSER, chromium
from website.__main__ import build, find_missing

pytestmark = [
    *BROWSER,
    pytest.mark.skipif(
        bool(find_missing()),
        reason="needs the site's libraries: pip install 'cbobench[docs]'",
    ),
]


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """The page as the site has it, alone."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "pages").mkdir()
    text = open_table.render_page()
    (folder / "pages" / "index.md").write_text(re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", text))
    assert build(folder / "pages", folder / "out") == 0
    return (folder / "out" / "index.html").as_uri()


@pytest.fixture(scope="module")
def browser():
    with chromium() as program:
        yield program


def list_rows(page, selector="tr:not([hidden])"):
    rows = page.locator(f"#the-open-table tbody {selector}").all_inner_texts()
    return [[*map(str.strip, row.split("\t"))] for row in rows]


def test_rows_are_chosen(browser, address):
    page, wrong = browser.new_page(), []
    page.on("console", lambda message: wrong.append(message.text))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.goto(address)
    every = list_rows(page)
    assert len(every) > 100
    said = page.locator(".filters output")
    assert said.inner_text() == f"{len(every)} of {len(every)} rows"
    for name in ("group", "dimension", "noise", "method"):
        place = open_table.HEAD.index(name)
        select = page.locator(f".filters select[name={name}]")
        value = every[-1][place]
        select.select_option(value)
        kept = [row for row in every if row[place] == value]
        assert list_rows(page) == kept
        assert said.inner_text() == f"{len(kept)} of {len(every)} rows"
        assert 0 < len(kept) < len(every)
        select.select_option(label="all")
    page.select_option(".filters select[name=group]", "low")
    page.select_option(".filters select[name=method]", "cei")
    assert {(row[0], row[6]) for row in list_rows(page)} == {("low", "cei")}
    assert not wrong


def test_without_a_script_the_table_is_whole(browser, address):
    page = browser.new_context(java_script_enabled=False).new_page()
    page.goto(address)
    page_rows = open_table.render_page().count("\n| ") - 2
    assert len(list_rows(page, "tr")) == page_rows
    assert page.locator(".filters").count() == 0
