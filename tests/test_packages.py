"""Methods and problems of other packages: found by entry points, loaded when they are asked for,
and never before.
"""

from __future__ import annotations

import json
import sys

import pytest

import cbobench
from cbobench.algorithms import ALGORITHMS
from cbobench.cli import main
from cbobench.errors import Misuse
from cbobench.problems import PROBLEMS
from cbobench.results import source

CODE = '''
from dataclasses import dataclass
from pathlib import Path

from cbobench import AskTell, BoxProblem, Reference

with Path(__file__).with_name("loaded").open("a") as log:
    log.write("loaded\\n")


class Still:
    def __init__(self, point):
        self.point = point

    def ask(self):
        return self.point

    def tell(self, x, f, g):
        pass


@dataclass(kw_only=True)
class Corner(AskTell):
    """Plays a corner of the box."""

    source = "a package"
    about = "a corner"

    def optimiser(self, given):
        return Still(given.low)


@dataclass(kw_only=True)
class Slope(BoxProblem):
    """A slope that a line cuts off."""

    source = "a package"
    about = "a slope"
    low, high, m = (0.0,), (1.0,), 1
    reference = Reference((0.5,), 0.5, 0.5, 0.5, 1e-9, "closed form", binds=True)

    def formula(self, x):
        import numpy as np

        return np.stack([x[..., 0], x[..., 0] - 0.5], axis=-1)
'''
SUITE = "suite: packaged\nhorizon: 3\nseeds: 1\nproblems: [{}]\nalgorithms: [{}]\n"


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Lay out a package as an installer does; the names that it gives begin with its own."""
    site = tmp_path / "site-packages"
    site.mkdir()
    monkeypatch.syspath_prepend(site)

    def lay_out(package, methods=None, problems=None, code=CODE):
        home, info = site / package, site / f"{package}-1.2.dist-info"
        home.mkdir()
        info.mkdir()
        (home / "__init__.py").write_text("")
        if code is not None:
            (home / "parts.py").write_text(code)
        methods = {f"{package}-corner": f"{package}.parts:Corner"} if methods is None else methods
        problems = {f"{package}-slope": f"{package}.parts:Slope"} if problems is None else problems
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.2\n")
        groups = {"cbobench.algorithms": methods, "cbobench.problems": problems}
        lines = [
            f"[{group}]\n" + "".join(f"{n} = {v}\n" for n, v in names.items())
            for group, names in groups.items()
        ]
        (info / "entry_points.txt").write_text("\n".join(lines))
        return home

    return lay_out


def test_a_package_is_played_by_its_names_like_ours(install, tmp_path, write_suite):
    home = install("packaged_a")
    suite = write_suite(SUITE.format("packaged_a-slope, gardner-1", "packaged_a-corner, random"))
    done = cbobench.run(suite, out=tmp_path / "run", cpus=0)
    assert (done.failed, done.played) == (0, 4)
    cells = cbobench.load_cells(tmp_path / "run")
    libraries = {name: {*rows} for name, rows in cells.groupby("algorithm")["libraries"]}
    assert {text.endswith(", packaged_a 1.2") for text in libraries["packaged_a-corner"]} == {True}
    assert {"packaged_a" in text for text in libraries["random"]} == {False}
    assert (home / "loaded").read_text() == "loaded\n"


def test_its_code_counts_as_that_at_an_import_path(install):
    home = install("packaged_b")
    names, paths = (
        ("packaged_b-slope", "packaged_b-corner"),
        ("packaged_b.parts:Slope", "packaged_b.parts:Corner"),
    )
    before = source.source_hash(*names)
    assert before == source.source_hash(*paths)
    assert source.source_hash(names[0]) == source.source_hash(paths[0])
    (home / "parts.py").write_text(CODE.replace("given.low", "given.high"))
    source.look_again()
    assert source.source_hash(*names) != before


def test_what_is_only_listed_is_not_loaded(install, tmp_path, write_suite, capsys):
    corner = "packaged_c.parts:Corner"
    home = install("packaged_c", methods={"packaged_c-corner": corner, "random": corner})
    assert "packaged_c-corner" not in ALGORITHMS.names()
    assert (
        ALGORITHMS.others()["packaged_c-corner"]
        == PROBLEMS.others()["packaged_c-slope"]
        == "packaged_c"
    )
    assert ALGORITHMS.get("random").__module__ == "cbobench.algorithms.references", (
        "ours are found by location"
    )
    for kind, name in (("algorithms", "corner"), ("problems", "slope")):
        assert main(["list", kind]) == 0
        assert f"or shown: packaged_c-{name} (packaged_c)\n" in capsys.readouterr().err
    assert (
        cbobench.run(
            write_suite(SUITE.format("gardner-1", "random")), out=tmp_path / "run", cpus=0
        ).played
        == 1
    )
    with pytest.raises(
        Misuse, match="unknown algorithm 'packaged_c-korner'; did you mean 'packaged_c-corner'"
    ):
        ALGORITHMS.get("packaged_c-korner")
    assert not (home / "loaded").exists()
    assert main(["show", "packaged_c-corner"]) == 0
    assert "packaged_c-corner (algorithm; a package)" in capsys.readouterr().out


BROKEN = {
    "raises": (
        "parts:Corner",
        "1 / 0\n",
        "cannot import 'PACKAGE.parts': ZeroDivisionError: division by zero",
    ),
    "lacks_a_library": ("parts:Corner", "import no_library\n", "No module named 'no_library'"),
    "no_module": ("parts:Corner", None, "cannot import 'PACKAGE.parts': there is no such module"),
    "no_class": (
        "parts:Korner",
        CODE,
        "unknown algorithm in PACKAGE.parts 'Korner'; did you mean 'Corner'",
    ),
    "another_kind": ("parts:Slope", CODE, "is not a subclass of cbobench.Algorithm; derive it"),
    "a_module": ("parts", CODE, "is not an import path; write package.module:Class"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_one_that_fails_is_one_line_that_names_the_package(
    install, write_suite, tmp_path, capsys, case
):
    value, code, reason = BROKEN[case]
    package = f"packaged_{case}"
    install(package, methods={f"{package}-corner": f"{package}.{value}"}, problems={}, code=code)
    suite = write_suite(SUITE.format("gardner-1", f"{package}-corner"))
    assert main(["run", str(suite), "--out", str(tmp_path / "r")]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert f"'{package}-corner' of {package}: " in error
    assert reason.replace("PACKAGE", package) in error
    assert "beside the suite" not in error
    assert not (tmp_path / "r").exists()


def test_a_name_of_two_packages_is_refused(install):
    install("packaged_e", methods={"packaged-twice": "packaged_e.parts:Corner"})
    install("packaged_f", methods={"packaged-twice": "packaged_f.parts:Corner"})
    with pytest.raises(
        Misuse,
        match="the algorithm 'packaged-twice' is of packaged_e and packaged_f; remove one of",
    ):
        ALGORITHMS.get("packaged-twice")
    assert "packaged_e.parts" not in sys.modules


@pytest.mark.parametrize(
    "names", [("packaged_g-slope", "random"), ("gardner-1", "packaged_g-corner")]
)
def test_no_imports_refuses_it_even_when_it_is_loaded(
    install, write_suite, tmp_path, capsys, names
):
    home = install("packaged_g")
    arguments = [
        "run",
        str(write_suite(SUITE.format(*names))),
        "--out",
        str(tmp_path / "run"),
        "--cpus",
        "0",
    ]
    refusal = "--no-imports refuses it; allowed: registered names\n"
    assert main([*arguments, "--no-imports"]) == 2
    assert refusal in capsys.readouterr().err
    assert not (home / "loaded").exists()
    assert main(arguments) == 0
    assert main([*arguments, "--no-imports"]) == 2
    assert refusal in capsys.readouterr().err


def test_reading_a_run_loads_nothing_unless_it_is_asked_to(
    install, write_suite, tmp_path, capsys, monkeypatch
):
    home, run = install("packaged_h"), str(tmp_path / "run")
    assert (
        main(
            [
                "run",
                str(write_suite(SUITE.format("packaged_h-slope", "packaged_h-corner"))),
                "--out",
                run,
            ]
        )
        == 0
    )
    for module in ("packaged_h", "packaged_h.parts"):
        monkeypatch.delitem(sys.modules, module)
    (home / "loaded").unlink()
    capsys.readouterr()
    assert main(["status", run]) == 0
    text = capsys.readouterr().out
    assert (
        "packaged_h-corner, packaged_h-slope is not imported to read a run, unless with --imports"
        in text
    )
    assert main(["compare", run]) == 0
    assert main(["verify", run, "--replay", "1"]) == 3
    assert "add --imports" in capsys.readouterr().out
    assert not (home / "loaded").exists()
    assert main(["status", run, "--imports", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["unchecked"] == 0
    assert (home / "loaded").exists()
