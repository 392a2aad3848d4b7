"""The documentation site: a page for all there is, kept pictures, a strict build."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass
from importlib.util import find_spec

import pytest

from cbobench.algorithms import ALGORITHMS
from cbobench.algorithms.base import Algorithm
from cbobench.params import param
from tests.conftest import ROOT
from website import draw, gallery, methods, pages, words
from website.__main__ import forget
from website.pictures import NOT_NOW, Pictures
from website.printed import environment


@pytest.mark.long  # `make site`, which every push runs, makes a page of every class
def test_a_new_class_has_a_page_without_a_list(tmp_path, monkeypatch):
    monkeypatch.setattr(ALGORITHMS, "_classes", {**ALGORITHMS._classes})

    @ALGORITHMS.register("mine-too")
    @dataclass(kw_only=True)
    class Mine(Algorithm):
        """Plays x_t = argmax |f_t| <= 1 | T^(2/3)."""

        source, about, knows, cost = "ours", "a <b> method", ("B",), "O(1)"
        width: float = param(1.0, "a | b")

    assert "mine-too" in ALGORITHMS.names(), "of which every one has a page"
    text = methods.page("mine-too", Pictures(tmp_path, only=()))
    assert "x<sub>t</sub> = argmax |f<sub>t</sub>| ≤ 1 | T<sup>(2/3)</sup>" in text
    assert "A \\<b\\> method." in text
    assert "a \\| b" in text
    assert "There is no picture: Mine does not define" in text


def test_symbols_are_set_and_code_is_not():
    assert words.signs(
        "g_j, `g_j`, x_1², stopped_at, n_ei_trials, |f|_k, Q_{t+1}, 1_000, c >= 0"
    ) == (
        "g<sub>j</sub>, `g_j`, x<sub>1</sub>², stopped_at, n_ei_trials, |f|<sub>k</sub>, "
        "Q<sub>t+1</sub>, 1_000, c ≥ 0"
    )
    assert words.signs("    x <- x_1") == "    x ← x_1"


@pytest.mark.slow
def test_pictures_are_kept_until_what_they_show_changes(tmp_path, monkeypatch):
    first = Pictures(tmp_path, only=["random", "gramacy"])
    drawn = first.of_method("random"), first.of_problem("gramacy")
    assert first.made == 2
    assert first.of_method("cei").text == NOT_NOW
    unchanged = Pictures(tmp_path, only=["random", "gramacy"])
    assert (unchanged.of_method("random"), unchanged.of_problem("gramacy")) == drawn
    assert unchanged.made == 0
    assert (
        set(unchanged.used)
        == {path.name for path in tmp_path.glob("*.png")}
        == {picture.file for picture in drawn}
    )
    monkeypatch.setattr("website.pictures.code_hash", lambda path: "other")
    changed = Pictures(tmp_path, only=["gramacy"])
    assert changed.of_problem("gramacy").file not in unchanged.used
    assert len(list(tmp_path.glob("problem-*.png"))) == 1
    monkeypatch.setattr("website.plays.settings_for", lambda cls: {"grid": 9})
    assert Pictures(tmp_path, only=["random"]).of_method("random").file not in unchanged.used


def test_pictures_that_are_left_out_are_said_once(tmp_path):
    text = (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8")
    page = gallery.with_figures(text, Pictures(tmp_path, only=()))
    assert page.count(NOT_NOW) == text.count("```python") > 5
    assert pages.said_once(page).splitlines()[:3] == ["# Gallery", "", f"*{NOT_NOW}*"]
    assert pages.said_once(page).count(NOT_NOW) == 1
    assert pages.said_once(text) == text


@pytest.mark.slow
def test_a_figure_of_the_gallery_stands_below_its_code(tmp_path):
    code = 'import cbobench\n\nfigure = cbobench.plot("runs/first", "N", highlight="cei")\n'
    pictures = Pictures(tmp_path, only=["gallery"])
    text = gallery.with_figures(f"# A\n\n## B\n\n```python\n{code}```\n\n## C\n", pictures)
    assert pictures.made == 1
    (name,) = pictures.used
    block, _, below = text.partition("```\n\n![B.](../pictures/")
    assert block.endswith(code)
    assert below.startswith(name)
    assert below.rstrip().endswith("## C")


def test_the_menu_has_every_page_in_its_part():
    captions = re.findall(r":caption: (.+)", "\n".join(pages.menus([*pages.sources()])))
    assert captions == [*pages.ORDER]
    assert captions[:5] == ["Start", "How to", "Reference", "Gallery", "Results"]
    assert pages.ORDER["Start"] == ("install", "tutorial", "notebooks")


def test_a_notebook_is_a_page_with_what_it_shows():
    for place, path in pages.notebooks().items():
        page = pages.notebook(path)
        assert page.startswith("# ")
        assert page.count("```python") == page.count("```{raw} html") + page.count("%%writefile")
        links = re.findall(r"\]\((\.\./[^)]+)\)", page)
        assert f"../website/notebooks/{path.name}" in links
        known = {f"../{name}.md" for name in pages.sources()}
        assert {link for link in links if link.endswith(".md")} <= known, place
        assert "<table" in page


def test_what_was_made_of_a_page_that_is_gone_goes(tmp_path):
    by_user = tmp_path / "out" / "mine.html"
    for name in ("methods/old", "methods/new"):
        for file in (f"out/{name}.html", f"out/.doctrees/{name}.doctree", f"pages/{name}.md"):
            (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / file).touch()
    by_user.touch()
    (tmp_path / "pages" / "methods" / "old.md").unlink()
    forget(tmp_path / "pages", tmp_path / "out")
    left = sorted(path.name for path in (tmp_path / "out").rglob("*.*") if path.is_file())
    assert left == ["mine.html", "new.doctree", "new.html"]


@pytest.mark.parametrize(
    "name", ["feasible-pocket-drift", "hartmann-4", "rkhs-1d", "expert-guidance", "stocks"]
)
@pytest.mark.slow
def test_a_problem_of_each_form_is_drawn(name):
    task, settings, _ = words.prepared(name)
    image, caption = draw.problem(task, name, settings)
    assert len(image.axes) == {
        "feasible-pocket-drift": 3,
        "hartmann-4": 4,
        "rkhs-1d": 2,
        "stocks": 1,
    }.get(name, 2)
    assert ("look-alike" in caption["text"]) == (name == "stocks")


@pytest.mark.long
def test_the_site_is_built_without_a_warning(tmp_path):
    if missing := [name for name in ("sphinx", "myst_parser", "furo") if find_spec(name) is None]:
        pytest.skip(
            f"{', '.join(missing)} not installed (pip install -e '.[docs]'); `make site` builds "
            "it all"
        )
    folders = ["--out", tmp_path / "site", "--work", tmp_path / "work"]
    call = [sys.executable, "-m", "website", *folders, "--pictures", "cei"]
    done = subprocess.run(call, cwd=ROOT, env=environment(), capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "method-cei" in (tmp_path / "site" / "methods" / "cei.html").read_text()
    used = re.findall(
        r'(?:src|href)="(https?://[^"]*)"', (tmp_path / "site" / "index.html").read_text()
    )
    assert not [url for url in used if re.search(r"\.(js|css|woff2?)", url)], (
        "the site opens offline"
    )
