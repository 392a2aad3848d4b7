"""Algorithms: one family per file, readable beside its paper's pseudo-code, found by location."""

from cbobench.registry import Registry

ALGORITHMS = Registry(
    "algorithm", ("cbobench.algorithms", "cbobench.opponents"), "cbobench:Algorithm"
)
