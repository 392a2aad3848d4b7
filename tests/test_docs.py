"""The pages: their code runs as it stands, what it prints is what they say, links lead somewhere,
tables are current.

What plays the pages is `website/printed.py`, which says what the kinds of blocks mean.
"""

from __future__ import annotations

import re
import shlex
import subprocess
from io import BytesIO
from pathlib import Path

import pytest
from matplotlib.image import imread

import cbobench
from analysis import pictures
from analysis.bundles import read_shards
from analysis.field.groups import group_of
from analysis.field.numbers import open_fields
from analysis.papers import gallery
from cbobench import params, resources
from cbobench.algorithms import ALGORITHMS
from cbobench.cli import make_parser
from cbobench.errors import Misuse
from cbobench.opponents.library import LibraryMethod
from cbobench.problems import PROBLEMS
from tests.conftest import ROOT
from website import measurements, pages, printed, tables

PAGES = ["README.md"]
PAGES += [
    f"docs/{name}.md"
    for name in (
        *(
            "beside_the_field",
            "bundles",
            "gallery",
            "tutorial",
            "report",
            "reading",
            "suites",
            "own_method",
            "own_problem",
            "sending_results",
        ),
    )
]
TEXTS = sorted(
    path.relative_to(ROOT).as_posix()
    for path in [
        *ROOT.glob("*.md"),
        *(ROOT / "docs").glob("*.md"),
        *(ROOT / "docs/field").glob("*.md"),
    ]
)
BLOCK = printed.BLOCK


@pytest.mark.long  # `.ci/run` plays them at every push
@pytest.mark.parametrize("page", PAGES)
def test_the_code_of_a_page_runs_and_prints_what_the_page_shows(page, tmp_path):
    text = (ROOT / page).read_text(encoding="utf-8")
    for block, output in printed.play(printed.playable(text), tmp_path):
        assert not printed.mismatches(block, output), f"{page} is stale: make printed ARGS={page}"
    if missing := [
        extra
        for section in printed.split_sections(text)
        if (extra := printed.missing_extra(section))
    ]:
        pytest.skip(
            f"all of {page} was played but for what needs {', '.join(missing)} (pip install "
            "cbobench[…])"
        )


def names_in(folder: Path) -> set[str]:
    """What lies in a folder, without what Python and the desktop leave there."""
    return {path.name for path in folder.iterdir() if not path.name.startswith((".", "__"))}


def test_pages_and_measurements_lie_where_one_looks_for_them():
    """Pages beside each other, all else of docs/ in its folder; a folder of benchmarks/ has a
    target of its name.
    """
    beside_pages = {name for name in names_in(ROOT / "docs") if not name.endswith(".md")}
    assert beside_pages == {"_static", "field"}
    folders = names_in(ROOT / "benchmarks") - {"commands.py", "machine.py"}
    assert folders == {"speed", "scale", "quality", "chaos"}
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), flags=re.M)
    assert folders <= {*targets}


def test_no_page_with_code_is_left_out():
    assert {path.relative_to(ROOT).as_posix() for path in printed.pages_with_code()} == {*PAGES}


def test_a_page_that_is_wrong_is_found_out(tmp_path):
    table = "cei  0.3 [0.1, 0.5]* 7.4\nscbo 2\nrandom 1.2"
    for block, expected in (
        ("cei 0.3 [0.1, 0.5]* 7.4\n…\nrandom 1.2", []),
        ("cei 0.3 [0.1, 0.5]*\nscbo\nrandom", []),  # beginnings, and words alone
        (
            "cei 0.3 [0.1, 0.5]* 7.5\nrandom 1.2",
            [("cei 0.3 [0.1, 0.5]* 7.5", "cei  0.3 [0.1, 0.5]* 7.4")],
        ),
        # a mark is missing
        ("cei 0.3 [0.1, 0.5] 7.4", [("cei 0.3 [0.1, 0.5] 7.4", "cei  0.3 [0.1, 0.5]* 7.4")]),
        ("random 1.2*", [("random 1.2*", "random 1.2")]),  # and one too many
        # of another number
        ("cei 0.3 [0.1, 0.5] *7.4", [("cei 0.3 [0.1, 0.5] *7.4", "cei  0.3 [0.1, 0.5]* 7.4")]),
        ("cei 0.3\nckb", [("ckb", None)]),
        ("scbo\ncei", [("cei", None)]),  # in another order
    ):
        assert printed.mismatches(block, table) == expected
    assert printed.mismatches("3 of 4 cells, 0.3 s", "3 of 4 cells, 1.7 s") == [], "times differ"
    assert printed.mismatches("3 of 4 cells, 0.3 s", "3 of 5 cells, 0.3 s"), "counts do not"
    assert (
        printed.refresh("cei 0.4\n…\nrandom 1.3", table)
        == "cei  0.3 [0.1, 0.5]* 7.4\n…\nrandom 1.2"
    )
    printed.play("```python\n# a.py\nx = 1\n```\n```bash\nls a.py\n```", tmp_path)
    for wrong in ("```bash\nls nothing\n```", "```python\n1 / 0\n```", "```yaml\na: 1\n```"):
        with pytest.raises(AssertionError):
            printed.play(wrong, tmp_path)


def draw_group(fields, name):
    path = pictures.GROUPS_FOLDER / f"{name}.png"
    return pictures.draw_group(fields[name]), path, pictures.DPI


def test_the_pictures_are_those_of_what_is_stored():
    """One of each kind."""
    figure = next(
        candidate for candidate in gallery.read_figures() if candidate.key == "zhou_ji_fig1c"
    )
    low = [name for name in read_shards("field") if group_of(name) == "low"]
    compare_pictures(
        draw_group(open_fields(low), "low"),
        (pictures.draw_speed(), pictures.SPEED, pictures.SPEED_DPI),
        (
            gallery.draw_pair(figure),
            pictures.FOLDER / f"{figure.key}.png",
            pictures.DPI,
        ),
    )


@pytest.mark.long
def test_the_pictures_of_all_groups_are_those_of_what_is_stored():
    fields = open_fields(read_shards("field"))
    compare_pictures(
        (pictures.draw_field(fields), pictures.FIELD, 200),
        *(draw_group(fields, name) for name in fields),
    )


def compare_pictures(*pairs):
    """Hold images against the stored pictures, up to the rendering of another version of
    Matplotlib: a mean difference of 2 of 255 grey levels. Older ones lay a figure out otherwise.
    """
    pytest.importorskip("matplotlib", minversion="3.11")
    for image, path, dpi in pairs:
        sink = BytesIO()
        image.savefig(sink, format="png", dpi=dpi)
        sink.seek(0)
        picture, drawn = (imread(source)[..., :3] for source in (path, sink))
        assert picture.shape == drawn.shape
        assert abs(picture - drawn).mean() < 2 / 255, f"{path.name} is stale: analysis.pictures"
        assert abs(picture - drawn[:, ::-1]).mean() > 2 / 255, "negative control"


def test_every_figure_of_the_papers_is_to_be_seen():
    text = pictures.PAPERS.read_text(encoding="utf-8")
    assert pictures.in_page(text) == text, "docs/papers.md is stale: analysis.pictures"
    paths = sorted(pictures.FOLDER.glob("*.png"))
    assert [path.stem for path in paths] == sorted(figure.key for figure in gallery.read_figures())
    assert len(paths) == 21
    assert sum(path.stat().st_size for path in paths) < 4e6


def test_the_demo_is_what_readme_shows():
    """README's first code, its suite and the commands below it are what `make demo` plays; a test
    of the page holds the table, the next one the picture.
    """
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    blocks = [code for _, code in BLOCK.findall(readme)]
    assert re.findall(r"^make (\w+) +# \w", blocks[0], flags=re.M) == ["demo", "test"]
    suite = blocks.index((ROOT / "suites" / "first.yaml").read_text(encoding="utf-8"))
    commands = blocks[suite + 1]
    make = ["make", "--no-print-directory", "-n", "-C", ROOT, "demo", "BIN=bin"]
    played = subprocess.run(make, capture_output=True, text=True, check=True).stdout.splitlines()
    demo = [line.removeprefix("bin/") for line in played if line.startswith("bin/cbobench")]
    assert [line.replace(" --out runs/first", "") for line in demo] == commands.splitlines()
    assert [line.split()[0] for line in played[-3:]] == ["echo"] * 3


@pytest.mark.long  # `.ci/run` plays it at every push
def test_readmes_first_picture_is_what_the_demo_draws(tmp_path):
    compare_pictures((pictures.draw_first(tmp_path), pictures.FIRST, 200))
    cells = cbobench.load_cells(tmp_path).pivot(index="seed", columns="algorithm")
    violation, ends = cells["violation_hard"], cells["simple_regret"].median()
    assert (violation["ckb-ucb"] > violation["random"]).all(), "why README's table has no star"
    assert (75 * ends[["cei", "scbo"]] < ends["random"]).all(), "what README says of its picture"


def test_every_figure_leads_to_suites_that_there_are_and_to_claims():
    from cbobench.papers.claim_tables import claims_of

    table = measurements.tabulate_map()
    ids = {claim.id for claim in claims_of()}
    for figure in gallery.read_figures():
        suites = figure.suite, f"{figure.suite}_fit"
        assert {*suites} <= resources.suites().keys()
        (row,) = [r for r in table.splitlines() if f" {figure.number} | `{suites[0]}` | " in r]
        assert f"`{suites[1]}`" in row
        assert {claim for claim, _ in figure.claims} <= ids & {*re.findall(r"\w+", row)}


def find_wrong_commands(text: str) -> list[str]:
    """Commands in running text that the parser does not take, or that name a file that there is
    not. `compare --ranks` is an option alone, and words in capitals stand for others.
    """
    commands = next(a for a in make_parser()._actions if a.dest == "command").choices
    wrong = []
    for span in re.findall(r"`(\w(?:[^`\n]|\n(?!\n))*)`", BLOCK.sub("", text)):
        name, *words = span.removeprefix("cbobench").split() or [""]
        if name not in commands:
            wrong += [span] if re.match("cbobench [a-z]", span) else []
            continue
        words = shlex.split(" ".join(words).replace("$CLONE/", ""))
        options = {word for word in words if word.startswith("--")}
        is_wrong = not options <= {*commands[name]._option_string_actions}
        is_wrong |= any(word.startswith("published/") and not [*ROOT.glob(word)] for word in words)
        if words and words[0] not in options:
            try:
                make_parser().parse([name, *("5" if word == "K" else word for word in words)])
            except Misuse:
                is_wrong = True
        wrong += [span] if is_wrong else []
    return wrong


@pytest.mark.parametrize("page", TEXTS)
def test_commands_that_a_page_only_names_exist(page):
    """Blocks in no language are forms of a command; so is what stands in backticks."""
    text = (ROOT / page).read_text(encoding="utf-8")
    lines = [
        line for language, code in BLOCK.findall(text) if not language for line in code.splitlines()
    ]
    for line in lines:
        if line.startswith("cbobench ") and "SUITE" not in line:
            make_parser().parse(shlex.split(line.split("  #")[0])[1:])
    assert find_wrong_commands(text) == []
    for target in re.findall(r"`make ([a-z-]+)", text):
        assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), flags=re.M), target


def test_wrong_commands_in_running_text_are_found():
    wrong = [
        "cbobench rank RUN",
        "cbobench compare RUN --rank",
        "compare --rank",
        "compare RUN --horizon ten",
        "run first --seeds",
        "verify published/no-*.zip",
    ]
    right = ["compare runs/mine published/low-*.zip --ranks", "verify RUN --replay K", "run"]
    text = "".join(f"`{span}`, " for span in [*wrong, *right])
    assert find_wrong_commands(text) == wrong


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as the usual renderers make them."""
    titles = re.findall(r"^#+ (.+)$", BLOCK.sub("", page.read_text(encoding="utf-8")), flags=re.M)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", TEXTS)
def test_links_lead_somewhere(page):
    source = ROOT / page
    for link in re.findall(r"\]\(([^)]+)\)", BLOCK.sub("", source.read_text(encoding="utf-8"))):
        if not link.startswith(("http:", "https:", "mailto:")):
            file, _, anchor = link.partition("#")
            target = (source.parent / file) if file else source
            assert target.exists(), link
            inside = {*target.resolve().relative_to(ROOT.resolve()).parts}
            assert not {"build", ".make", "runs"} & inside, f"{link}: not in a clone"
            assert not anchor or anchor in anchors(target), link


def test_the_links_of_a_page_can_fail(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# A title: with `code`, (R₊)\n```\n# no title\n```\n")
    assert anchors(page) == {"a-title-with-code-r"}


@pytest.mark.parametrize("page", tables.PAGES)
def test_tables_are_those_of_the_code(page):
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    assert tables.refresh(text) == text, (
        f"the tables of docs/{page} are not those of the code; run: make pages"
    )


def test_every_fact_that_a_method_is_told_is_explained():
    assert tables.find_unexplained() == set()


def test_the_names_are_those_of_the_code():
    """Every public name has a row in docs/api.md; members in it are those of the class."""
    names = pages.find_names((ROOT / "docs" / "api.md").read_text(encoding="utf-8"))
    assert {*names} == {*cbobench.__all__} - {"__version__"}
    for name, members in names.items():
        thing = getattr(cbobench, name)
        fields = getattr(thing, "__dataclass_fields__", {})
        assert [m for m in members if m not in fields and not hasattr(thing, m)] == [], name
    assert pages.find_names("| `A` | `b`, `c` | d `e` |\n") == {"A": ["b", "c"]}


@pytest.mark.parametrize("kind", tables.KINDS)
def test_what_can_be_played_is_not_refused(kind):
    problem = tables.make_problem(*tables.KINDS[kind])
    for name in ALGORITHMS.names():
        cls = ALGORITHMS.get(name)
        parameters = {parameter.name for parameter in params.params_of(cls)}
        method = params.build(cls, dict.fromkeys(problem.unknown & parameters, 0.5))
        if method.needs <= tables.find_offers()[kind] and not (
            isinstance(method, LibraryMethod) and method.missing()
        ):
            method.check(problem)


COUNTED = re.compile(
    r"(?:^(?:[-*] )?|[.:;] )(\d+) (?:[a-z]+ )?(algorithms|methods|problems|suites)\b", re.M
)


def miscounted(text: str) -> list[str]:
    """Statements, with which a sentence or an item of a list begins, of how many there are, that
    are not so.
    """
    methods = len(ALGORITHMS.names())
    counts = {
        "algorithms": methods,
        "methods": methods,
        "problems": len(PROBLEMS.names()),
        "suites": len(resources.suites()),
    }
    return [
        f"{number} {noun}" for number, noun in COUNTED.findall(text) if int(number) != counts[noun]
    ]


@pytest.mark.parametrize("page", [*TEXTS, "pyproject.toml"])
def test_pages_state_as_many_methods_and_problems_as_there_are(page):
    assert miscounted((ROOT / page).read_text(encoding="utf-8")) == []


def test_a_wrong_count_is_found():
    count = len(ALGORITHMS.names())
    assert miscounted(
        f"- {count} algorithms: and so on. {count + 1} methods.\n7 shipped problems; over 3 suites"
    ) == [
        f"{count + 1} methods",
        "7 problems",
    ]
