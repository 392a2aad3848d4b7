"""The documentation site: a page for all there is, kept pictures, a strict build."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass

import pytest

from cbobench.algorithms import ALGORITHMS
from cbobench.algorithms.base import Algorithm
from cbobench.params import param
from tests.conftest import ROOT
from website import draw, entries, pages, pictures
from website.__main__ import find_missing
from website.printed import environment


def test_a_new_class_has_a_page_without_a_list(tmp_path, monkeypatch):
    ALGORITHMS.names()  # which finds all others
    monkeypatch.setattr(ALGORITHMS, "_classes", {**ALGORITHMS._classes})

    @ALGORITHMS.register("mine-too")
    @dataclass(kw_only=True)
    class Mine(Algorithm):
        """Plays x_t = argmax f_t."""

        source, about, knows, cost = "ours", "a <b> method", ("B",), "O(1)"
        width: float = param(1.0, "a | b")

    assert "mine-too" in ALGORITHMS.names(), "of which every one has a page"
    monkeypatch.setattr(entries, "prepare", lambda name: (None, "not here"))
    text = entries.describe_method("mine-too", pictures.picture_method(tmp_path, "mine-too"))
    assert "Plays x_t = argmax f_t." in text
    assert "A \\<b\\> method." in text
    assert "a \\| b" in text
    assert "There is no picture: Mine does not define" in text


@pytest.mark.slow
def test_pictures_are_kept_until_what_they_show_changes(tmp_path, monkeypatch):
    def picture(name):
        (text,) = pictures.picture_all(tmp_path, [name]).values()
        kept = {path.name for path in tmp_path.glob(f"{name}.*.png")}
        assert kept == {*re.findall(r"/([^/)]*\.png)", text)}
        return kept

    drawn = {name: picture(name) for name in ("random", "gramacy")}
    times = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*.*")}
    assert {name: picture(name) for name in drawn} == drawn
    assert {path: path.stat().st_mtime_ns for path in tmp_path.glob("*.*")} == times
    monkeypatch.setattr("website.plays.choose_settings", lambda cls: {"grid": 9})
    assert picture("random") != drawn["random"]
    assert picture("gramacy") == drawn["gramacy"]
    monkeypatch.setattr("website.pictures.code_hash", lambda path: "other")
    assert picture("gramacy") != drawn["gramacy"]


def test_the_menu_has_every_page_once():
    text = "".join(pages.complete(name, "") for name in ["README", *pages.BELOW])
    captions = re.findall(r":caption: (.+)", text)
    assert captions[:5] == ["Start", "How to", "Reference", "Gallery", "Results"]
    assert captions[-1] == "For contributors"
    listed = re.findall(r"^/(\S+[^*\s])$", text, re.M)
    every = [*ROOT.glob("docs/*.md"), *ROOT.glob("*.md")]
    names = {path.relative_to(ROOT).with_suffix("").as_posix() for path in every} - {"README"}
    assert sorted(listed) == sorted(names)


def test_pages_lead_to_those_of_methods_and_to_titles():
    page = "| `cei` | a |\n| `mine` | b |\n\n[faq.md](faq.md#a), [two](faq.md), [own.py](own.py)"
    assert pages.complete("docs/x", page) == (
        "| [`cei`](/reference/methods/cei.md) | a |\n| `mine` | b |\n\n"
        "[](faq.md#a), [two](faq.md), [own.py](own.py)"
    )


def test_the_gallery_is_a_notebook_on_the_site():
    page = pages.complete("docs/gallery", "# A\n\n```python\nfigure = cbobench.plot(1)\n```\n")
    assert page.startswith("---\nfile_format: mystnb\n")
    assert "```{code-cell}\ncbobench.plot(1)\n```" in page


@pytest.mark.parametrize(
    ("name", "panels"),
    [
        ("feasible-pocket-drift", 3),
        ("hartmann-4", 1),
        ("rkhs-1d", 2),
        ("expert-guidance", 1),
        ("stocks", 1),
    ],
)
@pytest.mark.slow
def test_a_problem_of_each_form_is_drawn(name, panels):
    task, _ = entries.prepare(name)
    image, caption = draw.draw_problem(task, name)
    assert len(image.axes) == panels
    assert ("look-alike" in caption) == (name == "stocks")
    assert ("every seed draws its own" in caption) == (name in ("rkhs-1d", "expert-guidance"))


def test_a_problem_whose_optimum_nobody_knows_says_so(tmp_path):
    picture = pictures.picture_problem(tmp_path, "forest")
    page = entries.describe_problem("forest", picture)
    assert "There is no picture: to draw it is to simulate it." in page
    assert "## Optimum\n\nNobody knows it." in page
    assert "| x\\* |" in entries.describe_problem("gramacy", "")


@pytest.mark.long
def test_the_site_is_built_without_a_warning(tmp_path):
    if missing := find_missing():
        pytest.skip(
            f"{', '.join(missing)} not installed (pip install -e '.[docs]'); `make site` builds "
            "it all"
        )
    folders = ["--out", tmp_path / "site", "--work", tmp_path / "work"]
    call = [sys.executable, "-m", "website", *folders, "--pictures", "cei"]
    done = subprocess.run(call, cwd=ROOT, env=environment(), capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "cei." in (tmp_path / "site" / "reference" / "methods" / "cei.html").read_text()
    index = (tmp_path / "site" / "index.html").read_text()
    used = re.findall(r'(?:src|href)="(https?://[^"]*)"', index)
    assert not [url for url in used if re.search(r"\.(js|css|woff2?)", url)], (
        "the site opens offline"
    )
