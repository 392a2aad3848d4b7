"""Algorithms: one family per file.

Each is readable beside its paper's pseudo-code, and found by its location.
"""

from cbobench.registry import Registry

ALGORITHMS = Registry("algorithm", ("cbobench.algorithms", "cbobench.opponents"), "cbobench.algorithms.base:Algorithm")
