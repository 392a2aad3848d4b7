"""Small makers that tests share: settings without a problem, short plays and small runs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from copy import copy
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import cbobench
from cbobench import params
from cbobench.algorithms import ALGORITHMS
from cbobench.algorithms.base import Algorithm, Setting
from cbobench.errors import Misuse
from cbobench.gp.actions import Finite
from cbobench.gp.fit import Fitted, fit_all
from cbobench.play.play import Chunk, Play, PlayOptions
from cbobench.problems import PROBLEMS
from cbobench.problems.base import Arrivals, Problem
from cbobench.problems.data import DataFolder, Site
from cbobench.problems.formulas.box import BoxProblem
from cbobench.results.manifest import FILE
from cbobench.rng import Streams
from cbobench.suite import prepare as preparation
from cbobench.suite.call import Call
from cbobench.suite.cells import Suite
from cbobench.suite.text import read_suite
from cbobench.suite.variants import DIGEST, content_digest
from cbobench.sweep.outcome import Outcome
from cbobench.watcher import Watcher


def setting(
    covariance: np.ndarray,
    *,
    replicates: int = 1,
    constraints: int = 1,
    horizon: int = 100,
    **facts: Any,
) -> Setting:
    """A learner's setting over a covariance matrix; facts override the defaults of 1."""
    p, n = 1 + constraints, len(covariance)
    values: dict[str, Any] = {
        "norm": np.ones((replicates, p)),
        "sup": np.ones((replicates, p)),
        "noise": np.ones((replicates, p)),
        "slater": np.ones(replicates),
        "seed_set": np.eye(n, dtype=bool)[:1].repeat(replicates, axis=0),
        "kernel_is_known": True,
    }
    values |= facts
    points = values.pop("points", None)
    streams = Streams([("test", s) for s in range(replicates)])
    return Setting(Finite(covariance, points), constraints, horizon, **values, streams=streams)


def load(suite: Any, **choices: Any) -> Suite:
    """A suite, read and prepared as a call with these choices does."""
    return preparation.prepare(read_suite(Call(suite, **choices)), Site())


class Listener(Watcher):
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.counters: list[Any] = []
        self.receipts: list[Any] = []

    def note(self, text: str) -> None:
        self.notes.append(text)

    def began(self, counter: Any) -> None:
        self.counters.append(counter)

    def played(self, receipt: Any) -> None:
        self.receipts.append(receipt)


def make(name: str, **settings: Any) -> Any:
    """An algorithm by name."""
    return params.build(ALGORITHMS.get(name), settings)


def entry(name: str, *values: Any, long: bool = False) -> Any:
    """Arguments of a test that plays an algorithm, which is skipped where the algorithm's library
    is not installed.

    The light ones come with the extra `test`; PyTorch is none of them.
    """
    cls = ALGORITHMS.get(name)
    missing = getattr(cls, "missing", str)()
    marks = [pytest.mark.skip(reason=f"{name}: {missing}")] if missing else []
    marks += [pytest.mark.opponent] if hasattr(cls, "extra") else []
    return pytest.param(name, *values, marks=[*marks, *([pytest.mark.long] if long else [])])


def long(*names: Any) -> list[Any]:
    """Arguments of a test that are left to `make test-long`, as the ones beside them are alike."""
    return long_cases(*((name,) for name in names))


def long_cases(*cases: tuple[Any, ...]) -> list[Any]:
    """The same of tests with several arguments."""
    return [pytest.param(*case, marks=pytest.mark.long) for case in cases]


LEARNERS = [name for name in ALGORITHMS.names() if not ALGORITHMS.get(name).reference]
"""All methods that know no reference."""


def on_boxes(*but: type) -> list[Any]:
    """The problems on boxes but some classes, arguments of a test; COCO's is skipped where its
    package is missing.
    """
    classes = {name: PROBLEMS.get(name) for name in PROBLEMS.names()}
    names = [
        name
        for name, cls in classes.items()
        if issubclass(cls, BoxProblem) and not issubclass(cls, but)
    ]
    missing = (
        pytest.mark.skip(reason="pip install 'cbobench[coco]'")
        if find_spec("cocoex") is None
        else ()
    )
    return [pytest.param(name, marks=missing if name == "coco" else ()) for name in names]


def problem(name: str, **settings: Any) -> Problem:
    """A prepared problem by name. It is prepared once for all tests of a process; each gets a copy
    of its own.
    """
    key = (PROBLEMS.get(name), repr(sorted(settings.items())))
    if key not in _PREPARED:
        _PREPARED[key] = prepare(name, **settings)
    return copy(_PREPARED[key])


def build_task(name: str) -> Any:
    """A problem by name as it is made, not prepared."""
    return params.build(PROBLEMS.get(name), {})


def prepare(name: str, **settings: Any) -> Problem:
    """The same, prepared now: for a test that changes what decides how it is prepared."""
    return prepare_class(PROBLEMS.get(name), **settings)


@contextmanager
def refused(message: str) -> Iterator[Any]:
    """The block ends in a `Misuse` of one line that holds a text that `message`, a pattern,
    matches.
    """
    with pytest.raises(Misuse, match=message) as caught:
        yield caught
    assert "\n" not in str(caught.value)


def prepare_class(cls: type[Any], base: Path = Path(), /, **settings: Any) -> Any:
    """A prepared problem of a class; paths in its settings start from `base`."""
    prepared = params.build(cls, settings)
    prepared.prepare(DataFolder(base=base))
    return prepared


_PREPARED: dict[tuple[type, str], Problem] = {}


def make_arrivals(rows: Iterable[tuple[int, int, int, float]]) -> Arrivals:
    """What arrives in a round, from (replicate, round, function, value) in any order."""
    columns = list(zip(*sorted(rows), strict=True)) or [(), (), (), ()]
    return Arrivals(
        *(np.array(c, dtype=np.intp) for c in columns[:3]), np.array(columns[3], dtype=float)
    )


def play(
    task: Problem,
    algorithm: Algorithm,
    seeds: int | list[int] = 3,
    horizon: int = 50,
    key: str = "test",
    asked: Iterable[int] = (),
    parallel: Mapping[str, Any] | None = None,
) -> tuple[Play, list[Chunk]]:
    """A finished play and its chunks."""
    seeds = list(range(seeds)) if isinstance(seeds, int) else seeds
    cells = Play(
        task, key, algorithm, algorithm.name, seeds, horizon, PlayOptions(asked, parallel=parallel)
    )
    return cells, list(cells)


def actions(chunks: list[Chunk]) -> np.ndarray:
    """Played actions (T, S)."""
    return np.concatenate([chunk.actions for chunk in chunks])


def watch_asks(algorithm: Any, look: Callable[[int, np.ndarray], None]) -> Any:
    """An algorithm with a look at it after each `ask`: its round and what was chosen."""
    ask = algorithm.ask

    def spy(t: int) -> np.ndarray:
        chosen = ask(t)
        look(t, chosen)
        return chosen

    algorithm.ask = spy
    return algorithm


def play_here(suite: Any, out: Any, **options: Any) -> Outcome:
    """The outcome of a sweep that this process plays."""
    return cbobench.run(suite, out=out, cpus=0, **options)


def swept(folder: Path, suite: str) -> Path:
    """The run folder of a suite's text, played in this process."""
    (folder / "suite.yaml").write_text(suite)
    play_here(folder / "suite.yaml", folder / "run")
    return folder / "run"


VOLATILE = {
    "seconds",
    "seconds_per_round",
    "peak_memory_mb",
    "host",
    "cpu",
    "arithmetic",
    "attempt",
}


def cells(run):
    """The cells of a run, without what differs from play to play."""
    return cbobench.load_cells(run).drop(columns=list(VOLATILE))


def assert_same_rows(first, second):
    """Rounds and cells of two runs are equal to the last bit; no cell is missing or double."""
    for read in (cbobench.load_rounds, cells):
        rows, other_rows = (
            frame.sort_values([c for c in ("cell", "t") if c in frame], ignore_index=True).map(
                lambda value: value.tobytes() if isinstance(value, np.ndarray) else value
            )
            for frame in (read(first), read(second))
        )
        assert len(rows) > 0
        pd.testing.assert_frame_equal(rows, other_rows, check_exact=True)
    assert cbobench.load_cells(first)["cell"].is_unique


def fit(
    points: np.ndarray, values: np.ndarray, before: Fitted | None, noise: float | None = None
) -> Fitted:
    """The fit of one function with values (c,)."""
    return fit_all(points, values[None], [before], None if noise is None else np.array([noise]))[0]


def write_manifest(run: Path, content: dict[str, Any]) -> None:
    """Write a run's `run.json`, signed."""
    # content that nobody could sign
    with suppress(ValueError, RecursionError, TypeError, AttributeError):
        content = content | {DIGEST: content_digest(content)}
    (run / FILE).write_text(json.dumps(content))


WRONG = [  # for a value of JSON in a file of a run
    None,
    True,
    -1,
    0,
    2**63,
    10**400,
    1.5,
    -1e308,
    float("nan"),
    float("inf"),
    "",
    "\x1b[2J\u202e",
    "x" * 10**5,
    [],
    {},
    [[]],
    [[1, 2]],
    [None, None, None],
    {"a": {"a": []}},
    {"a": [[5, 1]]},
    {"a": [["0", "1", "2"]]},
]
UNREADABLE = {  # in place of such a file
    "empty": b"",
    "half": b'{"pid": 1, "host": ',
    "no text": b'{"host": "\xff\xfe"}',
    "deep": 10**5 * b"[" + 10**5 * b"]",
    "deep within": b'{"news": ' + 10**5 * b'{"a":' + b"1" + 10**5 * b"}" + b"}",
    "digits": b'{"pid": ' + 10**5 * b"9" + b"}",
    "a list": b"[1, 2, 3]",
    "a number": b"NaN",
    "zeros": bytes(4096),
    "twice": b'{"pid": 1}{"pid": 2}',
    "a mark": b"\xef\xbb\xbf{}",
}
