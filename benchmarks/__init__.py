"""Measurements that no test holds: speed, scale, quality of what is computed, and chaos. Each has a
make target.

A script is a module and runs from the root of the checkout: `python -m benchmarks.speed.bench`.
"""

import cbobench as cbobench  # before NumPy, because it chooses the arithmetic
