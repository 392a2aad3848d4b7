"""A small suite, played again and again while faults are injected, and held against an undisturbed
run.

    python -m benchmarks.chaos [--faults 60] [--seconds 290] [--seed N] [--only storm ...] [--keep
    FOLDER]

- `storm`: workers on this machine are killed and paused, the driver is killed (and resumed at once)
  and signalled, a second one is started beside it, and the run is read all the while;
- `poison`: cells that raise, exit, abort, crash, hang, eat memory, print, change directory, start
  threads;
- `disk`: a small file system fills up, and becomes read-only (needs the right to mount; else it is
  left out, and said);
- `nodes`: a Ray cluster of three nodes that loses them, with killed workers and drivers;
- `hosts`, where it is asked for: two hosts in network namespaces, the link between them cut for 5,
  30 and 120 seconds.

After each, every cell must be there once, equal to the last bit; each poisoned cell a failed row
with its reason and no other; nothing may hang, be left over, or dump a stack. Exit code 1 if
anything is otherwise. It ends only processes that it has started, by their ids. Trials are drawn
from --seed, but what a fault meets is a matter of time.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np

from benchmarks.chaos import check
from benchmarks.chaos import sweep as faults
from benchmarks.chaos.cells import ENDS
from benchmarks.chaos.hosts import Hosts, NoRight
from benchmarks.chaos.nodes import Nodes
from benchmarks.chaos.sweep import Hung, Sweep
from benchmarks.commands import make_parser

ROOT = Path(__file__).resolve().parents[2]
TRIAL = 300.0  # seconds that a trial may take before it hangs: it takes 10 to 30 on two quiet cores
# Storms and poison more often than the others, which take longer for fewer faults.
ORDER = ("poison", "storm", "nodes", "disk", "poison", "storm", "storm", "hosts")
FAULTS = {"storm": 12, "nodes": 5}  # per trial, at most
LOCAL = [*[faults.kill_worker] * 4, faults.pause_worker, faults.kill_driver, faults.interrupt]
CUTS = (5, 30, 120)  # seconds
LINK = 600.0  # seconds that the trial with these may take
CELL = 5.0  # seconds that a poisoned suite gives a cell
POISON = "benchmarks.chaos.cells:Poison"
HEALTHY = {"horizon": 1500, "seeds": 12, "algorithms": ["ckb-ucb", "ckb-ts", "stageopt"]}


SUITES = {
    "storm": HEALTHY | {"horizon": 2000, "seeds": 20},
    "poison": {
        "horizon": 300,
        "seeds": 3,
        "timeout": CELL,
        "algorithms": ["ckb-ts", {POISON: {"how": {"sweep": [*ENDS]}}}],
    },
    "disk": HEALTHY,
    "nodes": HEALTHY
    | {"algorithms": ["ckb-ucb", "ckb-ts", {POISON: {"how": {"sweep": ["raise", "os-exit"]}}}]},
    "hosts": HEALTHY | {"horizon": 6000, "seeds": 16},
}


class Chaos:
    """All trials, in one folder of their own."""

    def __init__(self, folder: Path, seed: int, wanted: int) -> None:
        self.folder, self.seed, self.wanted = folder, seed, wanted
        path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
        self.environment = os.environ | {
            "PYTHONPATH": path,
            "OMP_NUM_THREADS": "1",
            "COLUMNS": "200",
        }
        self.environment.pop("CHAOS_WELL", None)
        self.faults: Counter[str] = Counter()
        self.wrong: list[str] = []

    def well(self, kind: str) -> Path:
        """The undisturbed run of a kind's suite, played once, in one process and in other
        blocks.
        """
        suite = self.folder / f"{kind}.yaml"
        if not suite.exists():
            suite.write_text(
                json.dumps(
                    {"suite": "chaos", "problems": ["rkhs-1d"], "record": {"rounds": 50}}
                    | SUITES[kind]
                )
            )
            command = [sys.executable, "-m", "cbobench", "run", str(suite), "--cpus", "0"]
            subprocess.run(
                [*command, "--out", str(self.folder / f"{kind}-well")],
                env=self.environment | {"CHAOS_WELL": "1"},
                check=True,
                capture_output=True,
            )
        return self.folder / f"{kind}-well"

    def trial(self, number: int, kind: str) -> None:
        """One trial; its account is added."""
        well, began = self.well(kind), time.monotonic()
        generator = np.random.default_rng([self.seed, number])
        out = self.folder / f"{number:03d}-{kind}"
        words = [
            str(self.folder / f"{kind}.yaml"),
            "--cpus",
            "2",
            "--block",
            str(generator.integers(1, 4)),
        ]
        sweep = Sweep(
            f"{number:03d}-{kind}", words, out, self.environment, generator, began + TRIAL
        )
        try:
            getattr(self, kind)(sweep)
            sweep.wrong += check.differences(well, sweep.out)
        except Hung:
            sweep.wrong.append(f"hangs: {sweep.published()} files of cells after {TRIAL:.0f} s")
            sweep.kill()
        finally:
            sweep.close()
        self.faults += sweep.faults
        self.wrong += [f"{sweep.name}: {line}" for line in sweep.wrong]
        met = ", ".join(f"{count} {name}" for name, count in sorted(sweep.faults.items()))
        seconds = time.monotonic() - began
        account = f"{sweep.name}: {met}; {sweep.starts} starts, {seconds:.0f} s"
        print("\n  ".join([account, *sweep.wrong]), flush=True)
        if not sweep.wrong:
            shutil.rmtree(out, ignore_errors=True)

    def storm(self, sweep: Sweep) -> None:
        sweep.start()
        if sweep.moment() and sweep.generator.random() < 0.5:
            sweep.start_second()
        while sweep.faults.total() < min(FAULTS["storm"], self.wanted) and sweep.moment():
            LOCAL[sweep.generator.integers(len(LOCAL))](sweep)
            sweep.read_beside()
        sweep.finish(0)

    def poison(self, sweep: Sweep) -> None:
        sweep.start()
        if sweep.moment() and sweep.generator.random() < 0.5:
            faults.kill_driver(sweep)
        sweep.finish(1)
        sweep.faults.update(f"cell: {how}" for how in ENDS)

    def disk(self, sweep: Sweep) -> None:
        """A file system of a few megabytes, which someone else fills and empties, or makes
        read-only.
        """
        place = self.folder / f"{sweep.name}-disk"
        place.mkdir()
        mounted = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(place)],
            capture_output=True,
            check=False,
        )
        if mounted.returncode:
            print(f"{sweep.name}: left out, no right to mount: {mounted.stderr.decode().strip()}")
            sweep.out = self.well("disk")
            return
        sweep.log, sweep.out = sweep.out.with_suffix(".log"), place / "run"
        try:
            for fault in sweep.generator.permutation(["disk full", "read-only"]):
                sweep.start()
                if sweep.moment():
                    self._without_disk(sweep, str(fault), place)
            sweep.finish(0)
            shutil.copytree(sweep.out, self.folder / sweep.name)
        finally:
            sweep.kill()
            subprocess.run(["umount", "-l", str(place)], check=True)
        sweep.out = self.folder / sweep.name

    @staticmethod
    def _without_disk(sweep: Sweep, fault: str, place: Path) -> None:
        filler = place / "filler"
        if fault == "disk full":
            with filler.open("wb", buffering=0) as stream:
                try:
                    while stream.write(bytes(4096)):
                        pass
                except OSError:
                    pass
        else:
            _read_only(place)
        was_there = sweep.alive
        code, last = (
            sweep.end(),
            (sweep.log.read_text(errors="replace").splitlines() or ["no line"])[-1],
        )
        if was_there and (code or not sweep.log.with_suffix(".out").read_text()):
            if code not in (1, 2) or "cbobench: " not in last:
                sweep.wrong.append(f"{fault}: exit code {code}: {last[:200]}")
            sweep.faults[fault] += 1
        sweep.read_beside()
        if fault == "disk full":
            filler.unlink()
        else:
            subprocess.run(["umount", "-l", str(place)], check=True)

    def nodes(self, sweep: Sweep) -> None:
        cluster = Nodes(self.environment, self.folder / f"{sweep.name}.cluster")
        sweep.words[1:3] = ["--address", cluster.address]
        sweep.environment = cluster.environment
        sweep.workers = cluster.workers  # type: ignore[method-assign]

        def lose(sweep: Sweep) -> None:
            cluster.lose_one(sweep.generator)
            sweep.faults["node lost"] += 1

        try:
            sweep.start()
            kinds = [lose, lose, *[faults.kill_worker] * 3, faults.kill_driver, faults.interrupt]
            while sweep.faults.total() < FAULTS["nodes"] and sweep.moment():
                kinds[sweep.generator.integers(len(kinds))](sweep)
                sweep.read_beside()
            sweep.finish(1)
            sweep.faults.update(["cell: raise", "cell: os-exit"])
        finally:
            sweep.kill()
            cluster.close()

    def hosts(self, sweep: Sweep) -> None:
        """A driver and a worker on two hosts, and the link between them cut."""
        try:
            pair = Hosts(self.environment, self.folder / f"{sweep.name}.cluster")
        except NoRight as error:
            print(f"{sweep.name}: left out, no network namespaces: {str(error).strip()}")
            sweep.out = self.well("hosts")
            return
        sweep.words[1:3] = ["--address", pair.address]
        sweep.environment, sweep.host = pair.environment, pair.there(0)
        sweep.deadline = time.monotonic() + LINK
        try:
            for seconds in CUTS:
                if not sweep.alive:
                    sweep.start()
                if sweep.moment():
                    pair.cut(seconds)
                    sweep.read_beside()
                    sweep.faults[f"link cut for {seconds} s"] += 1
            sweep.finish(0)
        finally:
            sweep.kill()
            pair.close()


def _read_only(place: Path) -> None:
    """Mount a folder read-only above itself: below, it is busy while a file is open for writing.

    So is the mount above it where a file is opened before it has become read-only: then once more.
    """
    for _ in range(50):
        subprocess.run(["mount", "--bind", str(place), str(place)], check=True)
        done = subprocess.run(
            ["mount", "-o", "remount,ro,bind", str(place)], capture_output=True, check=False
        )
        if not done.returncode:
            return
        subprocess.run(["umount", "-l", str(place)], check=True)
        time.sleep(0.02)
    raise RuntimeError(f"{place} cannot be made read-only: {done.stderr.decode().strip()}")


def main() -> int:
    parser = make_parser(__doc__)
    parser.add_argument(
        "--faults", type=int, default=60, help="trials go on until so many have been injected"
    )
    parser.add_argument(
        "--seconds", type=float, default=290.0, help="no trial begins after so long"
    )
    parser.add_argument(
        "--seed",
        type=int,
        default=int(np.random.SeedSequence().generate_state(1)[0]),
        help="of the trials (drawn, and printed, by default)",
    )
    parser.add_argument("--only", nargs="+", choices=SUITES, default=[*SUITES][:-1])
    parser.add_argument(
        "--keep", type=Path, help="a folder that is kept (what went wrong is in it)"
    )
    options = parser.parse_args()
    print(f"seed {options.seed}")
    with tempfile.TemporaryDirectory(prefix="chaos-") as temporary:
        folder = options.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        chaos, began = Chaos(folder.resolve(), options.seed, options.faults), time.monotonic()
        order = [kind for kind in ORDER if kind in options.only]
        for number, kind in enumerate(itertools.cycle(order)):
            if chaos.faults.total() >= options.faults or time.monotonic() - began > options.seconds:
                break
            chaos.trial(number, kind)
        short = chaos.faults.total() < options.faults
        counts = ", ".join(f"{count} {name}" for name, count in sorted(chaos.faults.items()))
        print(f"{chaos.faults.total()} faults in {time.monotonic() - began:.0f} s: {counts}")
        print("\n".join(chaos.wrong) or "nothing lost, doubled, changed or left over; nothing hung")
        if short:
            print(
                f"only {chaos.faults.total()} of {options.faults} faults in {options.seconds:.0f} s"
            )
    return 1 if chaos.wrong or short else 0


if __name__ == "__main__":
    sys.exit(main())
