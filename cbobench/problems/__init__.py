"""Problems: action set, reward, constraints, noise and reference optimum. One family per file, found by location."""

from cbobench.registry import Registry

PROBLEMS = Registry("problem", "cbobench.problems", "cbobench.problems.base:Problem")
