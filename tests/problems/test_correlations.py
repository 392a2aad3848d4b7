"""Correlations of the look-alikes against SciPy's, whose bits they have and whose import they
save.
"""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from scipy.stats import random_correlation as scipys

from cbobench.problems.tables.recorded import random_correlation
from cbobench.rng import generator


@pytest.mark.parametrize(
    "eigenvalues", [(0.5, 1.5), (0.5, 0.8, 1.2, 1.5), (0.0, 0.1, 2.9), (1.0, 1.0, 1.0), range(9)]
)
def test_a_random_correlation_has_the_bits_of_scipys(eigenvalues):
    eigenvalues = np.asarray(eigenvalues, dtype=float)
    eigenvalues *= len(eigenvalues) / eigenvalues.sum()
    for seed in range(20):
        ours = random_correlation(eigenvalues, generator("correlation", seed))
        theirs = scipys.rvs(eigenvalues, random_state=generator("correlation", seed), tol=1e-8)
        assert ours.tobytes() == theirs.tobytes()


def test_a_look_alike_loads_neither_statistics_nor_solvers():
    code = (
        "import sys; from cbobench.problems.tables.recorded import stocks_look_alike as alike; "
        "alike(); "
        "print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    loaded = {*done.stdout.split()}
    assert "scipy.linalg" in loaded
    assert not {"scipy.stats", "scipy.optimize"} & loaded
