"""What the round loop checks, and what a play leaves behind in its process."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading

import numpy as np
import pytest

from cbobench.algorithms.ckb import CKBUCB
from cbobench.algorithms.references import Random
from cbobench.errors import CellFailure
from cbobench.play.block import summaries
from cbobench.play.isolation import isolate_play
from cbobench.play.play import Play
from cbobench.threads import THREAD_VARIABLES
from tests.conftest import ROOT
from tests.helpers import problem


@pytest.mark.parametrize(
    ("name", "chosen", "says"),
    [
        (
            "rkhs",
            [0, -1],
            "round 3: action -1 of replicate 1 is no index of the set; it must give 0 to 11",
        ),
        ("rkhs", [12, 0], "round 3: action 12 of replicate 0 is no index"),
        ("rkhs", [0.0, 1.0], "round 3: ask gave float64 of shape"),
        (
            "gramacy",
            [[0.5, 0.5], [0.5, np.nan]],
            "round 3: action .* of replicate 1 is not in the box",
        ),
    ],
)
def test_an_action_outside_the_set_is_refused_before_anybody_uses_it(name, chosen, says):
    task = problem(name, n=12) if name == "rkhs" else problem(name)
    events = []

    class Wrong(Random):
        def ask(self, t):
            return np.array(chosen) if t == 3 else super().ask(t)

        def tell(self, t, actions, feedback):
            events.append(t)

    play = Play(task, "p", Wrong(), "a", [0, 1], 5)
    channel = play.channel.at
    play.channel.at = lambda t, actions: (events.append(-t), channel(t, actions))[1]
    with pytest.raises(CellFailure, match=says):
        list(play)
    assert events == [-1, 1, -2, 2]


class Keeper(CKBUCB):
    """Keeps all that it is handed, each array beside a copy made at once."""

    def keep(self, *arrays):
        self.kept += [(array, array.copy()) for array in arrays]

    def ask(self, t):
        actions = super().ask(t)
        self.keep(*self.posterior.at(actions[:, None]), self.explore_f(self.belief.f))
        return actions

    def tell(self, t, actions, feedback):
        self.keep(actions, feedback.f, feedback.g)
        super().tell(t, actions, feedback)


def test_nothing_that_a_method_was_handed_is_written_again():
    algorithm = Keeper()
    algorithm.kept = []
    list(Play(problem("rkhs", n=12), "p", algorithm, "a", [0, 1], 5))
    assert len(algorithm.kept) == 5 * 6
    for handed, copied in algorithm.kept:
        np.testing.assert_array_equal(handed, copied)


BURNT = 0.05  # CPU seconds of a round
BURN = f"import time\nend = time.thread_time() + {BURNT}\nwhile time.thread_time() < end: pass\n"


class Thinking(Random):
    """Chooses at random, after a thread or a program of its own has computed for a stated CPU
    time.
    """

    def ask(self, t):
        if self.place == "a thread":
            (thread := threading.Thread(target=exec, args=(BURN, {}))).start()
            thread.join()
        else:
            subprocess.run([sys.executable, "-c", BURN], check=True)
        return super().ask(t)


@pytest.mark.parametrize("place", ["a thread", "a program"])
def test_what_a_method_computes_elsewhere_is_not_free(place):
    """Counted are all threads and programs of a method; the shares of a block's seeds add up to
    it.
    """
    (algorithm := Thinking()).place = place
    play = Play(problem("rkhs", n=12), "p", algorithm, "a", [0, 1], 4)
    list(play)
    assert play.seconds > 4 * BURNT
    assert sum(row["seconds"] for row in summaries(play)) == play.seconds


def test_a_program_that_nobody_waits_for_takes_no_time_back(monkeypatch):
    clock = iter([5.0, 3.0])
    monkeypatch.setattr("cbobench.play.play.read_cpu_seconds", lambda: next(clock))
    play = Play(problem("rkhs", n=12), "p", Random(), "a", [0, 1], 4)
    list(play)
    assert play.seconds == 0


def test_a_dual_variable_that_is_not_finite_ends_the_cell():
    class Diverging(Random):
        def tell(self, t, actions, feedback):
            self.heard = t

        @property
        def duals(self):
            return np.array([[1.0], [np.inf if self.heard == 3 else 1.0]])

    with pytest.raises(
        CellFailure, match=r"^round 3: the dual variable of replicate 1 is not finite$"
    ):
        list(Play(problem("rkhs", n=12), "p", Diverging(), "a", [0, 1], 5))


FILL = """
import sys
import numpy
from threadpoolctl import threadpool_info
from cbobench.threads import single_thread
def threads():
    return {pool["num_threads"] for pool in threadpool_info()}
before = threads()
with single_thread():
    import scipy.linalg
    assert threads() == {1}, "loaded inside"
assert threads() == before
from tests.helpers import make, play, prepare
for name, method in (("feasible-pocket", "ckb-ucb"), ("structure-124", "random")):
    task = prepare(name)
    if "fill" in sys.argv:
        play(task, make(method), 2, 10)
    with single_thread():
        cells, chunks = play(task, make(method), 2, 10)
    print(cells.instances.norm.tobytes(), *(chunk.actions.tobytes() for chunk in chunks))
"""


def test_what_a_process_keeps_has_the_bits_of_one_thread():
    """Two threads fill every cache that a play reads, as a look at a problem in a notebook does."""

    def look(threads, *words):
        variables = os.environ | dict.fromkeys(THREAD_VARIABLES, threads)
        script = [sys.executable, "-c", FILL, *words]
        return subprocess.run(script, env=variables, cwd=ROOT, check=True, stdout=-1).stdout

    assert look("1") == look("2", "fill")


def test_global_generators_begin_from_a_stream_of_the_cells_and_are_put_back():
    def drawn(*name):
        with isolate_play(*name):
            return random.random(), np.random.rand()  # noqa: NPY002

    def state():
        return random.getstate(), np.random.get_state()[1].tolist()  # noqa: NPY002

    before = state()
    assert drawn("p", "a", 0) == drawn("p", "a", 0)
    assert not {*drawn("p", "a", 0)} & {*drawn("p", "a", 1)}
    assert state() == before
