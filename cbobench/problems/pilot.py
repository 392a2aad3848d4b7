"""How far the pilot of a simulator is, on how many workers it runs, and whether its runs drew
random numbers.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from time import monotonic
from typing import Any, Protocol

import numpy as np

from cbobench.errors import CbobenchError, Misuse
from cbobench.gp.kernels import RIDGE, Array, stationary
from cbobench.problems.base import PILOT as PILOT
from cbobench.problems.columns import units_of
from cbobench.problems.data import Site
from cbobench.problems.simulated import PilotFacts, SimulationResult, succeeded
from cbobench.watcher import SILENT, Watcher
from cbobench.words import count_noun, duration

LONG_PILOT = 5.0  # seconds from which on a pilot is announced, and runs on all workers
# seconds after which the others of a pilot begin beside its first simulation, how long that may
# take
GRACE = 0.25
REPORT_SECONDS = 30.0  # between two lines on how far a pilot is
ASKED = 180.0  # seconds of a pilot from which on a person is asked


class Pool(Protocol):
    """Runs simulations on several workers.

    Attributes:
        workers: how many.
        is_quick: whether a worker is there at once, so that a pilot may begin on one before
            anything is known of it.
    """

    workers: int

    @property
    def is_quick(self) -> bool: ...
    def run(
        self,
        simulator: Any,
        x: Array,
        gens: Sequence[np.random.Generator],
        at_once: Callable[[], int],
    ) -> Generator[tuple[int, SimulationResult] | None]:
        """Yield the number of each point (k, d) and its simulation, as they come; None now and then
        where none does.

        Args:
            at_once: how many workers may run simulations now; asked before each `None` and each
                result is waited for.

        Raises:
            CbobenchError: a simulation whose result is of no use.
        """


class Declined(CbobenchError):
    """A person does not want the simulations of a pilot."""

    exit_code = 130


class Meter:
    """Announces a pilot once it is known to be long, and says from time to time how long the rest
    takes.

    How long a simulation takes is known from what the class says, from kept ones, or from the first
    that ends. Until then one worker of the pool runs it, and the others join after `GRACE` seconds.

    Args:
        name: of the simulator.
        total: simulations of the pilot.
        each: seconds that one takes, None if that is not known.
        watcher: told how long the pilot takes, and asked whether to go on.
        pool: where they run, None for this process.

    Attributes:
        count: how many have been made.
        drew: whether a simulation drew random numbers (see `drawn_from`).
    """

    def __init__(
        self,
        name: str,
        total: int,
        each: float | None = None,
        watcher: Watcher = SILENT,
        pool: Pool | None = None,
    ) -> None:
        self.name, self.total, self.each, self.watcher, self.pool = name, total, each, watcher, pool
        self.count, self.made, self.seconds = 0, 0, 0.0  # made now, and the seconds that these took
        self.began: float | None = None
        self.last_report, self.drew = 0.0, False
        self.wide = self.known = self.described = False  # all workers run; what was said of it
        self.asked = False

    @property
    def workers(self) -> int:
        """How many run what is left."""
        return 1 if self.pool is None else max(1, min(self.pool.workers, self.total - self.count))

    @property
    def left(self) -> float | None:
        """Seconds that the rest takes on all workers, None if that is not known."""
        return (
            None
            if self.each is None
            else self.each * max(0, self.total - self.count) / self.workers
        )

    def begin(self, timestamp: float, stored: Sequence[SimulationResult] = ()) -> None:
        """Some simulations are to be made; others, `stored` ones, need not. `timestamp` is
        monotonic time.
        """
        if self.began is None:
            self.began = self.last_report = timestamp
        self.count += len(stored)
        if self.each is None and stored:
            self.each = sum(result.seconds for result in stored) / len(stored)
        self._announce(timestamp)

    def add(self, result: SimulationResult, timestamp: float) -> None:
        """Count a simulation."""
        self.count, self.drew = self.count + 1, self.drew or result.drew
        if result.seconds:  # one that ended its worker says nothing
            self.made, self.seconds = self.made + 1, self.seconds + result.seconds
            self.each = self.seconds / self.made
        if (
            not self._announce(timestamp)
            and timestamp - self.last_report >= REPORT_SECONDS
            and self.left
        ):
            self.last_report = timestamp
            made = f"{self.count} of {self.total} pilot simulations made"
            self.watcher.note(f"{self.name}: {made}, about {duration(self.left)} left")

    def look(self, timestamp: float) -> None:
        """Nothing has ended for a moment: the first simulation may be a long one."""
        if self.each is None and self.began is not None:
            passed = timestamp - self.began
            self.wide = self.wide or passed >= GRACE
            if passed >= LONG_PILOT and not self.described:
                self.described = True
                self.watcher.note(
                    f"{self._describe()}; how long it takes is known once one has ended"
                )
            # So much it takes at least.
            self._ask_person("more than", passed * -(-self.total // self.workers))

    def run_on_workers(
        self, simulator: Any, x: Array, gens: Sequence[np.random.Generator]
    ) -> Iterator[tuple[int, SimulationResult]]:
        """Yield the number of each point (k, d) and its simulation; none where a worker takes
        longer to begin.
        """
        if self.pool is None or not (self.pool.is_quick or (self.wide and len(x) > 1)):
            return
        with closing(
            self.pool.run(simulator, x, gens, lambda: self.workers if self.wide else 1)
        ) as answers:
            for answer in answers:
                if answer is None:
                    self.look(monotonic())
                    continue
                yield answer

    def _announce(self, timestamp: float) -> bool:
        """Say how long the rest takes, as soon as that is known; whether something was said now."""
        if self.each is None or self.known or self.count >= self.total:
            return False
        self.known = True
        if self.each * (self.total - self.count) <= LONG_PILOT:
            return False
        self.wide, self.described, self.last_report = True, True, timestamp
        assert self.left is not None
        self.watcher.note(f"{self._describe()}, about {duration(self.left)}")
        self._ask_person("about", self.left)
        return True

    def _describe(self) -> str:
        on_workers = "" if self.workers == 1 else f" on {count_noun(self.workers, 'worker')}"
        return f"{self.name}: a pilot of {count_noun(self.total, 'simulation')}{on_workers}"

    def _ask_person(self, about: str, seconds: float) -> None:
        """Ask once, where it takes long.

        Raises:
            Declined: it is not to go on.
        """
        if self.asked or seconds < ASKED:
            return
        self.asked = True
        if not self.watcher.ask(f"{self._describe()} takes {about} {duration(seconds)}"):
            fewer = "a smaller `pilot`, at least 8, takes less; more workers (--cpus) do, too"
            raise Declined(
                f"{self.name}: the pilot was declined, and what it has simulated is kept; {fewer}"
            )


def run_on_workers(
    simulator: Any, x: Array, gens: Sequence[np.random.Generator], site: Site, meter: Meter | None
) -> Iterator[tuple[int, SimulationResult]]:
    """Yield the number of each point (k, d) and its simulation, of those that other processes run
    while problems are prepared.

    Args:
        meter: of the pilot that runs now, if one does.
    """
    pool: Pool | None = site.pool
    if meter is not None:
        yield from meter.run_on_workers(simulator, x, gens)
    elif pool is not None and pool.is_quick and site.deadline == np.inf:
        workers = 1 if simulator.simulation_seconds * len(x) < LONG_PILOT else pool.workers
        yield from (
            answer for answer in pool.run(simulator, x, gens, lambda: workers) if answer is not None
        )


def drawn_from(gens: Sequence[np.random.Generator]) -> tuple[Any, ...]:
    """Return the states of some generators and of the global ones; equal states mean that none of
    them was used.
    """
    name, keys, place, *gauss_state = np.random.get_state()  # noqa: NPY002 - it is looked at
    states = [str(gen.bit_generator.state) for gen in gens]
    return states, random.getstate(), np.asarray(keys).tobytes(), name, place, gauss_state


def estimate_facts(
    runs: Sequence[Array],
    kernel: Array,
    is_scaled: bool,
    counts_as: Array,
    *,
    points: int,
    seconds: float,
    failures: str,
) -> PilotFacts:
    """What a pilot says of a simulator.

    Args:
        runs: two runs at each of its n points that succeeded, (n, 1 + m) each; without noise twice
            the same.
        kernel: of these points, (n, n).
        is_scaled: whether the units played are those of `Simulator.scaled`.
        counts_as: what a failed simulation counts as, in the simulator's units, (1 + m,).
        points, seconds, failures: as of `PilotFacts`.
    """
    # Two runs per point tell spread and noise apart.
    mean, apart = (runs[0] + runs[1]) / 2, runs[1] - runs[0]
    shift, divisor = np.zeros(mean.shape[1]), np.ones(mean.shape[1])
    if is_scaled:
        shift[0], divisor = mean[:, 0].mean(), units_of(mean)
    noise = np.sqrt((apart**2).mean(axis=0) / 2) / divisor
    played = (mean - shift) / divisor
    # The norm of the smoothest function through the means, up to their noise:
    # a function through all of it would have the norm of the noise.
    ridge = np.maximum(RIDGE, noise**2 / 2)
    norm = np.empty(mean.shape[1])
    for j, (values, least) in enumerate(zip(played.T, ridge, strict=True)):
        weights = np.linalg.solve(kernel + least * np.eye(len(kernel)), values)
        norm[j] = np.sqrt(max(0.0, float(weights @ kernel @ weights)))
    worst = played[:, 1:].max(axis=1, initial=-np.inf)
    slater = min(1.0, -float(worst.min()))
    units_and_bounds = shift, divisor, norm, noise, np.abs(played).max(axis=0)
    return PilotFacts(
        *units_and_bounds,
        slater=slater if slater > 0 else np.nan,
        share=float((worst <= 0).mean()),
        points=points,
        seconds=seconds,
        failed=(counts_as - shift) / divisor,
        failures=failures,
    )


def run_pilot(simulator: Any, site: Site) -> PilotFacts:
    """Simulate a noisy simulator twice at each point of its pilot, and once more at the first;
    another one once.

    Args:
        site: where that is, and whom to tell and ask where it takes long.

    Raises:
        Misuse: most simulations fail; or `simulate` is random beside its generator, or where it
            should not be.
        Declined: a person does not want to wait for it.
    """
    points, unit = simulator.pilot_design()
    name, noisy, strict = (
        type(simulator).__name__,
        simulator.noisy,
        simulator.failure.then == "fail",
    )
    times, simulator.clock = 1 + noisy, 0.0
    is_dry = site.deadline < np.inf  # it says nothing, and starts no workers
    heard, pool = (SILENT, None) if is_dry else (site.watcher, site.pool)
    meter = Meter(name, times * len(points), simulator.takes, heard, pool)
    meter.count = -noisy  # the one that is made again is none of them
    if not noisy and meter.pool is not None:
        # The first one with the others: on many workers, one alone would take as long as all of
        # them.
        head, why = np.empty((0, 1 + simulator.m)), ""
    elif noisy:
        head, why = simulator.attempt(points[:1], simulator.pilot_gens(0, 1), True, meter)
    else:
        head, why = simulator.observe_or_fail(points[:1], simulator.pilot_gens(0, 1), meter)
    # How long it took is the first that is known: a dry run makes as many as fit,
    # and reports begin.
    first_seconds = simulator.clock
    # only as many as fit
    if (left := site.deadline - monotonic()) < times * len(points) * first_seconds:
        points = points[: max(2, int(left / (times * first_seconds)))]
    total = meter.total = times * len(points)
    meter.count = max(0, meter.count)
    runs, reasons = _run_points(simulator, points, head, why, meter)
    head = head if len(head) else runs[0][:1]
    seconds = (simulator.clock - first_seconds * noisy) / total
    # Failures come before what is said of noise: values that are not there contradict nothing.
    good = succeeded(runs[0]) & succeeded(runs[1])
    failed = sum(int((~succeeded(run)).sum()) for run in runs[:times])
    if failed and (strict or 2 * good.sum() < len(points)):
        first_reason = next(reason for reason in reasons if reason)
        fix = (
            "on_failure: infeasible goes on after some that fail"
            if strict
            else (
                "allowed: at up to half of the points; mend simulate, or retry: on_failure: "
                "{retry: 3}"
            )
        )
        raise Misuse(
            f"{failed} of {total} pilot simulations fail; the first: {first_reason}; {fix}"
        )
    # Equal generators must give equal values, else no play could be repeated; without noise,
    # other ones, too.
    if not noisy and meter.drew:
        head, _ = simulator.attempt(points[:1], simulator.pilot_gens(0, 1), True)
    if succeeded(head)[0] and good[0] and not np.array_equal(head[0], runs[0][0]):
        fix = (
            "draw from the generator it is given, and from nothing else (np.random is shared by "
            "all)"
        )
        raise Misuse(f"{name}: simulate gives other values for an equal generator; {fix}")
    if not noisy and meter.drew:
        other_head, _ = simulator.attempt(points[:1], simulator.pilot_gens(1, 1), True)
        if not np.array_equal(other_head[0], runs[0][0], equal_nan=True):
            raise Misuse(
                f"{name}: noisy is False, but simulate depends on its generator; say noisy = True"
            )
    # Estimates are of the points that succeeded.
    runs = [run[good] for run in runs]
    unit = unit[: len(points)][good]
    return estimate_facts(
        runs,
        stationary(simulator.kernel, simulator.lengthscale)(unit, unit),
        simulator.scaled,
        simulator.failure.values_of(np.concatenate(runs)),
        points=len(points),
        seconds=seconds,
        failures=f"{failed} of {total} pilot simulations failed" if failed else "",
    )


def check_best_known(simulator: Any, point: Array) -> None:
    """Simulate the best known point (d,) of a simulator, as often as metrics do.

    Raises:
        Misuse: it is not feasible, or most simulations there fail.
    """
    x = np.tile(point, (max(1, simulator.repeats) if simulator.noisy else 1, 1))
    values = simulator.observe(x, [simulator._generator("best", i) for i in range(len(x))])
    values = values[succeeded(values)]
    if 2 * len(values) < len(x):
        raise Misuse(
            f"best_known: {len(x) - len(values)} of {count_noun(len(x), 'simulation')} there fail"
        )
    g = values.mean(axis=0)[1:]
    if (g > 0).any():
        j = int(g.argmax())
        rule = simulator.rules[1 + j] if simulator.rules else None
        value = (
            f"g_{j + 1} = {g[j]:.6g}"
            if rule is None
            else f"{rule.column} = {rule.bound + rule.sign * g[j]:.6g} ({rule.requirement})"
        )
        violation = f"the mean of {count_noun(len(x), 'simulation')} there has {value}"
        raise Misuse(
            f"best_known is not feasible: {violation}; give a point where every g_j <= 0, or a "
            "target"
        )


def _run_points(
    simulator: Any, points: Array, head: Array, why: str, meter: Meter
) -> tuple[list[Array], list[str]]:
    """The two runs at each point, which are one without noise, and the first reason of each why
    simulations fail.

    Args:
        head: without noise, the runs at the first points, (k, 1 + m), and `why` one failed.
    """
    n = len(points)
    if not simulator.noisy:
        done = len(head)
        tail, reason = simulator.observe_or_fail(
            points[done:], simulator.pilot_gens(0, n)[done:], meter
        )
        return 2 * [np.concatenate([head, tail])], [why, reason]
    if simulator.runs_together:  # whose bits may depend on how many points it is given
        attempts = [
            simulator.observe_or_fail(points, simulator.pilot_gens(k, n), meter) for k in range(2)
        ]
        return [run for run, _ in attempts], [reason for _, reason in attempts]
    # Both at once: no worker waits for the end of the first.
    gens = simulator.pilot_gens(0, n) + simulator.pilot_gens(1, n)
    two_runs, reason = simulator.observe_or_fail(np.concatenate([points, points]), gens, meter)
    return [two_runs[:n], two_runs[n:]], [reason]
