"""benchmarks/scale.py in small: the real plan and scheduler in virtual time, with machines lost and workers crashed."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "scale.py"


@pytest.fixture
def scale():
    spec = importlib.util.spec_from_file_location("scale", BENCHMARK)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("cpus", [1, 100])
def test_cells_are_all_accounted_for_and_machines_are_busy(scale, cpus):
    words = scale.measure(20_000, cpus, 10.0, 500.0, 1e-3).replace(",", "").split()
    given, block, tasks, again, planned, driver, _, rate, with_ray, efficiency, _ = map(float, [*words[:-1], "0"])
    assert (given, tasks) == (cpus, 20_000 / block)
    assert again > 20, "machines were lost, workers crashed"
    assert planned < 30
    assert rate > with_ray > 500
    assert efficiency > (80 if cpus > 1 else 60), "of a hundred, the last tasks leave some idle"
