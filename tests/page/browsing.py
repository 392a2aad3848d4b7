"""The program that shows a page in tests, and what they ask of it."""

from __future__ import annotations

import os
import shutil
from contextlib import contextmanager
from importlib.util import find_spec

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


@contextmanager
def chromium():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        program = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield program
        program.close()


@contextmanager
def opened(browser, address, width):
    """A page, opened without a network; whatever it logs, raises or asks for fails the test."""
    context = browser.new_context(viewport={"width": width, "height": 900}, offline=True)
    page, wrong = context.new_page(), []
    page.on("console", lambda message: wrong.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: wrong.append(str(error)))

    def note_request(request):
        if not request.url.startswith((address, "data:", "blob:")):
            wrong.append(request.url)

    page.on("request", note_request)
    page.wrong = wrong
    page.goto(address)
    for figure in page.locator(".plotly-graph-div").all():
        figure.locator(".legendtext").first.wait_for(timeout=60_000)
    yield page
    assert not wrong
    assert page.evaluate("window.hurt") is None, "a label was obeyed"
    context.close()
