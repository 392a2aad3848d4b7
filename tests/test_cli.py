"""The command line as a user meets it: answers, one-line errors, exit codes, and nothing left
behind.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys

import pytest

from cbobench import cli, resources
from cbobench.algorithms import ALGORITHMS
from cbobench.problems import PROBLEMS
from cbobench.report.load import Run
from cbobench.results.store import StoreFailure
from tests.conftest import ROOT, cbobench_words
from tests.helpers import long


@pytest.fixture
def run(capsys):
    """Call `cbobench` in this process: (exit code, output, errors)."""

    def call(*arguments):
        code = cli.main([str(word) for word in arguments])
        out, err = capsys.readouterr()
        return code, out, err

    return call


WRONG = [
    (("rnu", "x"), "did you mean 'run'?"),
    (("run", "quickstrat"), "unknown suite 'quickstrat'; did you mean 'quickstart'?"),
    (("run", "quickstart", "--seeds", "three"), "argument --seeds: 'three' is not a whole number"),
    (
        ("run", "quickstart", "--ship"),
        "--ship sends this machine's code to a cluster; give its --address, too",
    ),
    (("run", "quickstart", "--address", "127.0.0.1:1"), "no Ray cluster answers at 127.0.0.1:1"),
    (("run", "quickstart", "--seeds", "0"), "seeds is 0; allowed: a whole number from 1"),
    (
        ("run", "quickstart", "--only", "nothing"),
        "--only 'nothing' matches nothing; pairs are rkhs-1d",
    ),
    (("run", "zhou_ji_2022_light", "--data", "."), "iw_data_all.mat"),
    (("run", "quickstart", "--out", "sftp://host/x"), "cannot use 'sftp://host/x' as a run folder"),
    (("run", "quickstart", "--cpus", "0", "--address", "x:1"), "give one of them"),
    (("show", "nowhere:Thing"), "cannot import 'nowhere'"),
    (("status", "nowhere"), "nowhere is not a run folder"),
    (("compare", "nowhere", "--format", "htlm"), "unknown --format 'htlm'; allowed: csv, json"),
    (("show", "ckb-usb"), "did you mean 'ckb-ucb'?"),
    (("data", "fetch", "stock"), "unknown data set 'stock'; did you mean 'stocks'?"),
    (("--verson",), "unrecognized arguments: --verson; did you mean --version?"),
    (("--seeds", "3", "run", "quickstart"), "unrecognized arguments: --seeds; see cbobench --help"),
    (
        ("run", "quickstart", "--sedes", "3"),
        "unrecognized arguments: --sedes 3; did you mean --seeds?",
    ),
    (
        ("compare", "r", "--target=3", "--metrics=x"),
        "unrecognized arguments: --metrics=x; did you mean --metric?",
    ),
    # the nearest of its command, by words: dashes alone make options alike
    (("compare", "r", "--out", "x"), "arguments: --out x; see cbobench compare --help"),
    (("compare", "r", "--zzzz"), "unrecognized arguments: --zzzz; see cbobench compare --help"),
]


@pytest.mark.parametrize(("arguments", "message"), WRONG)
def test_misuse_is_one_line_exit_2_and_leaves_nothing(run, clean_tree, arguments, message):
    before = clean_tree()
    code, out, err = run(*arguments)
    assert code == 2
    assert message in err
    assert err.startswith("cbobench: ")
    assert err.count("\n") == 1
    assert out == ""
    assert clean_tree() == before


@pytest.mark.slow
def test_run_compare_status_figures(run, small_suite, tmp_path):
    suite = small_suite()
    code, out, err = run("run", suite, "--out", tmp_path / "r", "--cpus", 0)
    assert code == 0
    assert "ckb-ts" in out
    assert "4/4" in out
    assert f"results: {tmp_path / 'r'}" in out
    assert "small: 12 cells in 3 tasks" in err
    assert run("status", tmp_path / "r")[:2] == (
        0,
        "small: 12 of 12 cells done, 0 failed, 0 missing, 0 stale\n",
    )
    code, repeated, err = run("run", suite, "--out", tmp_path / "r", "--cpus", 0)
    assert (code, repeated) == (0, out)
    assert "(12 done before)" in err
    assert run("compare", tmp_path / "r")[1] in out
    code, drawn, _ = run("figures", tmp_path / "r")
    assert code == 0
    assert (tmp_path / "r" / "figures" / "small_regret_rkhs_1d_h_0.25.png").is_file()
    assert "small_regret_rkhs_1d_h_0.25: " in drawn


def test_what_ends_a_sweep_is_made_safe(run, small_suite, monkeypatch):
    def fails(*args, **options):
        raise StoreFailure("s3://KEY:SECRET@bucket\x1b[31m is away")

    monkeypatch.setattr("cbobench.sweep.run.execute", fails)
    code, _, err = run("run", small_suite(), "--cpus", 0)
    assert code == 1
    assert (
        "cbobench: s3://***@bucket\\x1b[31m is away; what is published stays, to go on: cbobench "
        "run " in err
    )


def test_code_that_ends_python_ends_no_command_in_silence(run, monkeypatch):
    """Wherever it is called from."""
    monkeypatch.setattr("cbobench.cli.catalogue.do_list", lambda *arguments: sys.exit(0))
    code, out, err = run("list", "problems")
    assert (code, out) == (1, "")
    assert err == "cbobench: SystemExit: 0 ended the command; raise an error in its place\n"


def test_failed_cells_give_exit_code_1(run, write_suite, tmp_path, monkeypatch):
    (tmp_path / "mine_failing.py").write_text(
        "from cbobench.algorithms.references import Random\n\n\nclass Failing(Random):\n"
        "    def ask(self, t):\n        raise RuntimeError('no idea')\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    suite = write_suite(
        "suite: f\nhorizon: 5\nseeds: 3\nproblems: [rkhs-1d]\nalgorithms: [random, "
        "{mine_failing:Failing: {label: mine}}]\n"
    )
    code, out, err = run("run", suite, "--out", tmp_path / "r", "--cpus", 0)
    assert code == 1
    assert "0/3 (3 failed)" in out
    assert err.count("3 failed: 3 x RuntimeError: no idea (mine_failing.py:6)\n") == 1
    failed = "failed: rkhs-1d / mine seed 0: round 1: RuntimeError: no idea"
    assert failed in err
    code, out, _ = run("status", tmp_path / "r")
    assert code == 1
    assert failed in out
    assert "--again failed" in out
    code, _, err = run("run", suite, "--out", tmp_path / "fast", "--cpus", 0, "--fail-fast")
    assert code == 1
    assert "stopped: " in err


@pytest.mark.slow
def test_dry_run_writes_nothing(run, small_suite, clean_tree):
    suite = small_suite()
    before = clean_tree()
    code, out, _ = run("run", suite, "--dry-run")
    assert code == 0
    assert "12 of 12 cells to play, in 3 tasks" in out
    assert "time: not known of " in out
    assert "disk: about" in out
    assert clean_tree() == before


def test_the_estimate_of_disk_is_near_the_truth(run, small_suite, tmp_path):
    suite = small_suite(horizon=400, seeds=6)
    estimate = run("run", suite, "--out", tmp_path / "r", "--dry-run")[1]
    run("run", suite, "--out", tmp_path / "r", "--cpus", 0)
    truth = sum(p.stat().st_size for p in (tmp_path / "r" / "rounds").iterdir()) / 1e6
    expected = float(estimate.split("disk: about ")[1].split(" MB")[0])
    assert expected == pytest.approx(truth, abs=0.5 + 0.5 * truth)


@pytest.mark.parametrize("kind", ["problems", "algorithms", "suites"])
def test_list(run, kind):
    names = {
        "problems": PROBLEMS.names(),
        "algorithms": ALGORITHMS.names(),
        "suites": list(resources.suites()),
    }[kind]
    code, out, _ = run("list", kind)
    assert code == 0
    assert all(name in out for name in names)
    assert [row["name"] for row in json.loads(run("list", kind, "--format", "json")[1])] == names


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("ckb-ucb", "algorithm"),
        ("gramacy", "problem"),
        ("cbobench.problems.rkhs.functions:RKHS1D", "problem"),
    ],
)
def test_show(run, name, kind):
    code, out, _ = run("show", name)
    assert code == 0
    content = json.loads(run("show", name, "--format", "json")[1])
    assert content["kind"] == kind
    assert all(p["name"] in out for p in content["parameters"])


def test_show_imports_nothing_that_a_suite_names(run, tmp_path, monkeypatch):
    """It is how to look at somebody else's, before it may run code."""
    (tmp_path / "loaded.py").write_text("raise SystemExit(3)")
    monkeypatch.syspath_prepend(tmp_path)
    path = tmp_path / "theirs.yaml"
    path.write_text("suite: theirs\nhorizon: 3\nproblems: [loaded:Evil]\nalgorithms: [random]\n")
    code, out, _ = run("show", path)
    assert code == 0
    assert "loaded:Evil" in out


def test_help_has_every_command_in_one_group_and_five_to_begin_with():
    top = cli.make_parser()
    commands = next(action for action in top._actions if action.dest == "command")
    headings = ["to begin with", "play", "look", "check", "publish"]
    shown = re.findall(r"^(?:([a-z ]+):|  (\w+) .*)$", top.format_help(), flags=re.M)
    order = [heading or command for heading, command in shown]
    order = order[order.index(headings[0]) :]
    assert sorted(order) == sorted([*headings, *commands.choices]), "check is a heading, too"
    assert order[:7] == [headings[0], "new", "run", "compare", "figures", "list", "play"]


def test_without_a_command_there_is_help(run):
    assert run() == (0, cli.make_parser().format_help(), "")


def test_data_path(run, monkeypatch, tmp_path):
    monkeypatch.setenv("CBOBENCH_DATA", str(tmp_path))
    assert run("data", "path") == (0, f"{tmp_path}\n", "")
    assert run("data", "path", "--data", "here")[1] == "here\n"


LIGHT = [
    ["list", "suites"],
    ["list", "algorithms"],
    ["show", "ckb-ucb"],
    ["show", "botorch-scbo"],
]
BACKENDS = ["ray", "matplotlib", "seaborn", "torch", "botorch", "optuna", "pymoo", "cma"]


def import_nothing(commands, heavy, first=""):
    """What some commands print in a process of their own, in which none may import what is heavy.

    Args:
        first: a statement before all of them.
    """
    code = (
        f"import json, sys\n{first}\n"
        "for words in [[], *json.loads(sys.argv[1])]:\n"
        "    if words:\n        from cbobench.cli import main\n"
        "    try:\n        words and main(words)\n    except SystemExit:\n        pass\n"
        "    heavy = set(json.loads(sys.argv[2])) & set(sys.modules)\n"
        "    if heavy:\n        sys.exit(f'{words} imported {heavy}')\n"
    )
    command_line = [sys.executable, "-c", code, json.dumps(commands), json.dumps(heavy)]
    done = subprocess.run(command_line, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_light_commands_import_neither_ray_nor_pandas():
    import_nothing(LIGHT, [*BACKENDS, "pandas", "scipy"])


@pytest.mark.parametrize("closed", ["<&- >&- 2>&-", *long("<&-", ">&-", "2>&-")])
def test_a_run_plays_where_standard_streams_are_closed(tmp_path, closed):
    (tmp_path / "s.yaml").write_text(
        "{suite: s, horizon: 2, seeds: 1, problems: [rkhs-1d], algorithms: [random]}"
    )
    command_line = [
        sys.executable,
        "-m",
        "cbobench",
        "run",
        "s.yaml",
        "--cpus",
        "1",
        "--out",
        "run",
    ]
    shell = ["sh", "-c", f'"$@" {closed}', "sh", *command_line]
    done = subprocess.run(shell, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert Run(tmp_path / "run").cells["status"].tolist() == ["ok"]


HELP = [
    ["--help"],
    ["--version"],
    ["run", "--help"],
    ["compare", "--help"],
    ["check", "--help"],
    ["list", "--help"],
]
SCIENCE = ["numpy", "scipy", "pandas", "pyarrow"]


def test_help_imports_nothing_that_computes_and_is_plain_text():
    """It is there in a tenth of a second."""
    output = import_nothing(HELP, [*BACKENDS, *SCIENCE, "rich", "yaml"])
    assert "\ncbobench 0." in output
    assert "95 % intervals, tests" in output
    assert "%%" not in output


@pytest.mark.slow
def test_reading_commands_import_neither_ray_nor_what_draws(small_suite, tmp_path, run):
    run("run", small_suite(), "--out", tmp_path / "r", "--cpus", 0)
    folder = str(tmp_path / "r")
    claims = ["claims", folder, "--recipe", "zhou_ji_2022"]
    commands = [
        ["status", folder],
        ["compare", folder],
        ["compare", folder, "--against", "random"],
        ["compare", folder, folder],
        claims,
    ]
    import_nothing(commands, [*BACKENDS, "scipy.stats", "scipy.optimize"])


def test_places_that_cannot_be_written(run, small_suite, tmp_path):
    (tmp_path / "file").write_text("")
    for out in (tmp_path / "file" / "run", "/proc/nowhere/run"):
        code, _, err = run("run", small_suite(), "--out", out, "--cpus", 0)
        assert code == 2
        assert f"cbobench: cannot lock {out}: " in err
    run("run", small_suite(), "--out", tmp_path / "r", "--cpus", 0)
    code, _, err = run("figures", tmp_path / "r", "--out", tmp_path / "file")
    assert code == 2
    assert err == f"cbobench: {tmp_path / 'file'} is a file; give a folder\n"


def test_the_second_run_may_stand_after_an_option(run, small_suite, tmp_path):
    run("run", small_suite(seeds=3), "--out", tmp_path / "r", "--cpus", 0)
    code, out, _ = run("compare", tmp_path / "r", "--only-changed", tmp_path / "r")
    assert (code, out.count("nothing changed")) == (0, 1)
    code, _, err = run("compare", tmp_path / "r", tmp_path / "r", "--only-changed", tmp_path / "r")
    assert (code, "3 runs are given; allowed: two" in err) == (2, True)


def test_the_hint_finishes_what_another_call_left(run, small_suite, tmp_path):
    suite = small_suite()
    run(
        "run",
        suite,
        "--fail-fast",
        "--seeds",
        3,
        "--again=stale",
        "--out",
        tmp_path / "r",
        "--cpus",
        0,
    )
    for file in (tmp_path / "r").rglob("*stageopt*"):
        file.unlink()
    run(
        "run",
        suite,
        "--out",
        tmp_path / "r",
        "--cpus",
        0,
        "--seeds",
        3,
        "--again",
        "failed",
        "--only",
        "ckb-ucb",
    )
    code, out, _ = run("status", tmp_path / "r")
    assert code == 1
    assert "6 of 9 cells done, 0 failed, 3 missing" in out
    content = json.loads(run("status", tmp_path / "r", "--format", "json")[1])
    assert {k: content[k] for k in ("expected", "done", "missing", "failed", "stale")} == {
        "expected": 9, "done": 6, "missing": 3, "failed": 0, "stale": 0,
    }  # fmt: skip
    hint = shlex.join(
        ["cbobench", "run", str(suite), "--seeds", "3", "--cpus", "0", "--out", str(tmp_path / "r")]
    )
    assert f"to go on: {hint}\n" in out


@pytest.mark.slow
@pytest.mark.parametrize("is_whole", [False, *long(True)])
def test_a_limit_of_address_space_is_enough_or_one_line(tmp_path, small_suite, is_whole):
    """What loads late and does not fit has tried for ever, or was a traceback."""

    def limited(space, *words):
        script = f'ulimit -v {space}; exec "$@"'
        command = ["sh", "-c", script, "sh", *cbobench_words(), *words]
        return subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)

    play = ("run", str(small_suite(horizon=9)), "--out", "r", "--cpus", "0")
    (refusal,) = limited(200_000, *play).stderr.splitlines()
    least = int(re.search(r"raise the limit \(ulimit -v (\d+)\)", refusal)[1])
    security = (ROOT / "SECURITY.md").read_text()
    assert f"at least {least:,} kB" in security
    for words in (play, ("compare", "r"), ("figures", "r")):
        refused, done = limited(least - 1, *words), limited(least, *words)
        assert (refused.returncode, refused.stderr.count("\n")) == (1, 1)
        assert done.returncode == 0, done.stderr
        if not is_whole:
            return
    on_ray = limited(least, *play, "--horizon", "12", "--cpus", "1", "--engine", "ray")
    assert (on_ray.returncode, on_ray.stderr.count("\n")) == (1, 1)
    of_ray = re.search("Ray needs ([0-9,]+) kB of address space", on_ray.stderr)[1]
    assert f"and {of_ray} kB for Ray" in security
