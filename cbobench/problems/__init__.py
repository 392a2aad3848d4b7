"""Problems: action set, reward, constraints, noise and reference optimum.

`base` is the contract, `instances` are what a seed draws, `channels` are what learners are told,
and `reference` derives optima. The folders hold the families: `rkhs` the random functions, pockets,
queues and guidance of the papers, `formulas` functions on a box, `tables` what was measured, and
`simulators` what is run at each action.

One family per file, found by location: add a file to add a family. Numbers of a published problem
stay as they are, for they are what a cell's id names.
"""

from cbobench.registry import Registry

PROBLEMS = Registry("problem", ("cbobench.problems",), "cbobench:Problem")
