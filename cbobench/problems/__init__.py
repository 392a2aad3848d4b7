"""Problems: one family per file.

Action set, reward, constraints, noise and reference optimum. One family per file, found by
location.

`base` is the contract, `box` and `readings` are what families derive from, `channels` is what
learners are told. Add a file to add a family; numbers of a published problem stay as they are, for
they are what a cell's id names.
"""

from cbobench.registry import Registry

PROBLEMS = Registry("problem", ("cbobench.problems",), "cbobench:Problem")
