"""The program that shows a page in tests, and what they ask of it."""

from __future__ import annotations

import os
import shutil
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest

LACKS = [name for name in ("playwright", "plotly") if find_spec(name) is None]
CHROMIUM = (
    os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
)
BROWSER = [
    pytest.mark.slow,
    pytest.mark.skipif(
        bool(LACKS), reason=f"needs {' and '.join(LACKS)}: pip install 'cbobench[browsertest]'"
    ),
    pytest.mark.skipif(
        CHROMIUM is None, reason="needs Chromium on the path, or CHROMIUM with its place"
    ),
]
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
RESULTS = "#tables figure.table >> nth=0"


@contextmanager
def chromium():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        program = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield program
        program.close()


@contextmanager
def opened(browser, address, width=1300):
    """A page, opened; whatever it logs, raises or asks for elsewhere fails the test."""
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme="light")
    page, wrong = context.new_page(), []
    page.on("console", lambda message: wrong.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on(
        "request",
        lambda r: (
            None
            if r.url.startswith((address.split("#")[0], "data:", "blob:"))
            else wrong.append(r.url)
        ),
    )
    page.wrong = wrong
    page.goto(address)
    page.wait_for_selector("html[data-ready]", timeout=120_000)
    settle(page)
    yield page
    assert not wrong
    assert page.evaluate("window.hurt") is None, "a label was obeyed"
    context.close()


def settle(page):
    """Wait until everything is drawn that is chosen."""
    page.wait_for_selector("#main[aria-busy=false]")


def column(page, position):
    return page.locator(f"{RESULTS} >> tbody tr > :nth-child({position})").all_inner_texts()


def downloaded(page, act):
    with page.expect_download() as waiting:
        act()
    return waiting.value.suggested_filename, Path(waiting.value.path()).read_bytes()
