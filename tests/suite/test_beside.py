"""A user's module beside the suite, or in the current folder, is found, by workers too; of two none
is guessed.
"""

from __future__ import annotations

import sys

import pytest

import cbobench
from cbobench.cli import main
from cbobench.errors import Misuse
from tests.helpers import load

MINE = (
    "import {helper}\nfrom cbobench.algorithms.references import Random\n\n\nclass "
    "Mine(Random):\n    pass\n"
)
SUITE = "suite: m\nhorizon: 5\nseeds: 2\nproblems: [rkhs-1d]\nalgorithms: [{name}:Mine, random]\n"


@pytest.fixture
def beside(tmp_path):
    """Write a module, what it imports and a suite that names it into a folder."""

    def write(name, folder="suites"):
        place = tmp_path / folder
        place.mkdir(exist_ok=True)
        (place / f"{name}.py").write_text(MINE.format(helper=f"{name}_help"))
        (place / f"{name}_help.py").write_text("")
        (place / "suite.yaml").write_text(SUITE.format(name=name))
        return place / "suite.yaml"

    return write


def forget():
    """As if nothing of these tests had been imported."""
    for module in [name for name in sys.modules if name.startswith("beside_")]:
        del sys.modules[module]


def test_reading_a_run_imports_nothing_and_imports_look_in_the_current_folder(
    beside, tmp_path, monkeypatch, capsys
):
    suite = beside("beside_r")
    path = [*sys.path]
    cbobench.run(suite, out=tmp_path / "run", cpus=0)
    run = str(tmp_path / "run")

    def output_of(*arguments):
        forget()
        sys.path[:] = path
        assert main([arguments[0], run, *arguments[1:]]) == 0
        return capsys.readouterr().out

    monkeypatch.chdir(suite.parent)
    assert "beside_r:Mine is not imported to read a run, unless with --imports" in output_of(
        "status"
    )
    output_of("compare", run)
    output_of("claims")
    assert "beside_r" not in sys.modules
    assert "could not be checked" not in output_of("status", "--imports")
    monkeypatch.chdir(tmp_path)
    assert (
        "beside_r:Mine cannot be imported (from the path of Python, or this folder)"
        in output_of("status", "--imports")
    )


def test_a_missing_module_is_said_with_where_it_was_looked_for(beside, tmp_path):
    suite = beside("beside_here")
    suite.write_text(SUITE.format(name="beside_hero"))
    with pytest.raises(Misuse) as caught:
        load(suite)
    text = str(caught.value)
    assert text.startswith(
        f"{suite}:5: cannot import 'beside_hero': there is no such module; looked in "
        f"{suite.parent}, {tmp_path}, the path of Python; put its file beside the suite"
    )
    (suite.parent / "beside_hero.py").write_text("import beside_nowhere")
    with pytest.raises(Misuse) as caught:
        load(suite)
    assert str(caught.value) == (
        f"{suite}:5: cannot import 'beside_hero': ModuleNotFoundError: No module named "
        "'beside_nowhere' "
        f"(line 1 of {suite.parent / 'beside_hero.py'}); install it, or put its folder on "
        "PYTHONPATH"
    )


SCRIPT = """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--config", required=True)
parser.parse_args([])
"""


@pytest.mark.parametrize("end", [SCRIPT, "import sys\nsys.exit(0)\n", "raise GeneratorExit\n"])
@pytest.mark.parametrize("arguments", [["run"], ["check"], ["show"]])
def test_a_module_that_ends_python_is_one_line(beside, monkeypatch, capsys, end, arguments):
    suite = beside("beside_script")
    module = suite.parent / "beside_script.py"
    module.write_text(end)
    monkeypatch.chdir(suite.parent)
    assert main([*arguments, "suite.yaml" if arguments == ["run"] else "beside_script:Mine"]) == 2
    *usage, err = capsys.readouterr().err.splitlines()
    assert bool(usage) == ("argparse" in end), "what the module itself prints"
    place = f"(line {len(end.splitlines())} of {module})" if "argparse" in end else ""
    assert "cannot import 'beside_script': " in err
    assert place in err
    assert ("put what a script does under if __name__ == '__main__'" in err) == (
        "Generator" not in end
    )


def test_a_class_that_ends_python_is_one_line(beside):
    suite = beside("beside_made")
    (suite.parent / "beside_made.py").write_text(ENDING)
    with pytest.raises(Misuse, match=r"Mine: SystemExit: 3$"):
        load(suite)


ENDING = """
import sys
from cbobench.algorithms.references import Random


class Mine(Random):
    def validate(self):
        sys.exit(3)
"""


def test_two_modules_of_one_name_are_refused(beside, monkeypatch, tmp_path):
    suite, namesake = beside("beside_two"), beside("beside_two", "other")
    monkeypatch.chdir(namesake.parent)
    with pytest.raises(
        Misuse,
        match=r"the module 'beside_two' is .*suites/beside_two.py and .*other/beside_two.py; give",
    ):
        load(suite)
    assert "beside_two" not in sys.modules, "neither was run"
    monkeypatch.chdir(tmp_path)
    load(suite)
    with pytest.raises(
        Misuse,
        match=r"is .*other/beside_two.py and .*suites/beside_two.py; give yours another name",
    ):
        load(namesake)
    with pytest.raises(
        Misuse, match=r"the module 'random' is .*third/random.py and .*random.py; give"
    ):
        load(beside("random", "third"))
    assert load(suite), "the same one again is no second one"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["check", "halving.py"], "or your own as module:Class"),
        (
            ["run", "plant"],
            "unknown suite 'plant'; did you mean 'plant.yaml'?",
        ),
        (
            ["compare", "plant"],
            "plant is not a run folder: it does not exist; did you mean {here}/runs/plant?",
        ),
        (
            ["compare", "cities"],
            "cities is not a run folder: it does not exist; give the folder of a run: runs/plant",
        ),
        (
            ["compare", "runs"],
            "runs is not a run folder: it has no run.json; give the folder of a run: runs/plant",
        ),
        (
            ["show", "turbo"],
            "unknown name 'turbo'; did you mean 'furbo'?",
        ),
    ],
)
def test_what_lies_beside_is_offered_for_its_bare_name(
    tmp_path, monkeypatch, capsys, arguments, message
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plant.yaml").write_text("suite: plant\n")
    (tmp_path / "runs" / "plant").mkdir(parents=True)
    (tmp_path / "runs" / "plant" / "run.json").write_text("{}")
    assert main(arguments) == 2
    assert message.format(here=tmp_path) in capsys.readouterr().err
