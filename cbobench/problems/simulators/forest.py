"""Tuning a random forest of scikit-learn on its digits, under limits of memory and prediction
time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from typing import Any, ClassVar, Literal

import numpy as np

from cbobench.errors import Misuse
from cbobench.params import param
from cbobench.problems import PROBLEMS
from cbobench.problems.simulators.simulator import Simulator
from cbobench.registry import tell_install

FOLDS = 3
NODE_BYTES = 144  # of a node in memory: 64, and a count of each of ten classes


@PROBLEMS.register("forest")
@dataclass(kw_only=True)
class Forest(Simulator):
    """Cross-validated accuracy of a random forest on the digits, by four inputs of three types.

    g_1 is the size of the forest over `megabytes`, less 1; g_2 the nodes that a prediction visits
    over `visits`, less 1. Both are counted, not timed: a run is fixed by its generator, which draws
    the folds and the forest's seed. A run takes about a second.
    """

    source = "ours, after scikit-learn (Pedregosa et al. 2011)"
    about = (
        "a random forest on scikit-learn's digits: trees, depth, share of features, criterion; "
        "memory and visits"
    )
    inputs: ClassVar[Mapping[str, Any]] = {
        "trees": {"int": [5, 150], "log": True},
        "depth": {"int": [2, 20]},
        "features": {"float": [0.02, 0.5], "log": True},
        "criterion": {"choice": ["gini", "entropy"]},
    }
    m = 2

    measure: Literal["always", "end"] = param(
        "end",
        "which points are simulated `repeats` times: all, or those recommended in the end",
        quiet=True,
    )
    megabytes: float = param(1.0, "most megabytes that the trees' nodes may take", above=0)
    visits: float = param(400.0, "most nodes that a prediction may visit, in the mean", above=0)

    def prepare(self, data: Any) -> None:
        if find_spec("sklearn") is None:
            raise Misuse(
                f"the forest needs scikit-learn, which is not installed; {tell_install('sklearn')}"
            )

    def simulate(self, x: Any, gen: np.random.Generator) -> Any:
        from sklearn.ensemble import RandomForestClassifier

        images, digits = _digits()
        # Folds and forests come from one generator, so that a run can be repeated.
        fold = gen.permutation(len(images)) % FOLDS
        right = 0
        nodes = 0
        visited = 0.0
        for k in range(FOLDS):
            forest = RandomForestClassifier(
                n_estimators=x["trees"],
                max_depth=x["depth"],
                max_features=x["features"],
                criterion=x["criterion"],
                random_state=int(gen.integers(2**31)),
                n_jobs=1,
            )
            forest.fit(images[fold != k], digits[fold != k])
            right += int((forest.predict(images[fold == k]) == digits[fold == k]).sum())
            nodes += sum(tree.tree_.node_count for tree in forest.estimators_)
            visited += forest.decision_path(images[fold == k])[0].sum() / (fold == k).sum()
        size = nodes / FOLDS * NODE_BYTES / 1e6
        return [right / len(images), size / self.megabytes - 1, visited / FOLDS / self.visits - 1]


@lru_cache
def _digits() -> tuple[Any, Any]:
    from sklearn.datasets import load_digits

    return load_digits(return_X_y=True)
