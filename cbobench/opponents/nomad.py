"""An opponent from NOMAD 4 (Audet et al. 2022; LGPL-3): `pip install 'cbobench[nomad]'`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cbobench.algorithms import ALGORITHMS
from cbobench.gp.kernels import Array
from cbobench.opponents.library import LibraryMethod
from cbobench.opponents.scipy_local import Restarts, Unknown

SEEDS = 100_000  # a seed costs NOMAD as many draws as it says


class MeshRuns(Restarts):
    """NOMAD's `optimize`, repeated from its start: its state is the process's, so none is kept."""

    def _run(self, start: Array) -> None:
        import PyNomad

        unknown: list[Array] = []

        # No exception passes through NOMAD: the one evaluation too many fails, and it stops.
        def evaluate(evaluation: Any) -> int:
            point = np.array([evaluation.get_coord(i) for i in range(self.cube.d)])
            if point.tobytes() not in self.values:
                unknown.append(point)
                return 0
            f, g = self.values[point.tobytes()]
            evaluation.setBBO(" ".join(str(float(value)) for value in (-f, *g)).encode())
            return 1

        # The generator's state outlives a run, and a run's parameter SEED does not set it back.
        seed = self.cube.run.seed % SEEDS
        PyNomad.setSeed(seed)
        PyNomad.resetRandomNumberGenerator()
        settings = [
            f"BB_OUTPUT_TYPE OBJ {'PB ' * self.cube.run.m}",
            f"MAX_BB_EVAL {len(self.values) + 1}",
            f"SEED {seed}",
            "DISPLAY_DEGREE 0",
            "NB_THREADS_PARALLEL_EVAL 1",
        ]
        side = [1.0] * self.cube.d
        PyNomad.optimize(evaluate, start.tolist(), [0.0] * self.cube.d, side, settings)
        if unknown:
            raise Unknown(unknown[0])


@ALGORITHMS.register("nomad")
@dataclass(kw_only=True)
class Nomad(LibraryMethod):
    """NOMAD 4: mesh adaptive direct search, which polls around the best points on a mesh that gets
    finer, with quadratic models to search and to order the polls.

    Constraints are met by the progressive barrier: beside the best feasible point it keeps the best
    infeasible one below a bound on the violation, which falls. Settings are the library's. The
    first run starts at the best point of a suite's initial design, if there is one; whenever a run
    ends, the next one starts at a new point of a scrambled Sobol sequence. On a finite set the
    nearest action is played, and the point as it was asked keeps what was observed there: an action
    may be played many times, as its other points are new to NOMAD.
    """

    source = "Audet, Le Digabel, Rochon Montplaisir and Tribes (2022)"
    about = "mesh adaptive direct search with quadratic models (the NOMAD library), with restarts"
    cost = "a run is repeated every round: about a second at t = 60"
    extra = "nomad"
    libraries = ("PyNomad",)
    optimiser_class = MeshRuns
