"""A page per shipped suite: what it is, how to play it, and its YAML."""

from __future__ import annotations

from cbobench import resources
from cbobench.algorithms import ALGORITHMS
from cbobench.problems import PROBLEMS
from cbobench.suite import yamlio
from website.words import facts, joined, links, sentence, suites_of


def page(name: str) -> str:
    """The page of a suite."""
    path = resources.suites()[name]
    content = yamlio.read(path)
    problems, algorithms = suites_of()[name]
    return joined(
        [
            f"# {name}",
            sentence(content.get("about", "")),
            facts(
                {
                    "horizon": f"{content['horizon']} rounds",
                    "seeds": str(content["seeds"]),
                    "problems": links("problems", [p for p in PROBLEMS.names() if p in problems]),
                    "methods": links("methods", [a for a in ALGORITHMS.names() if a in algorithms]),
                    "play it": f"`cbobench run {name}`",
                }
            ),
            "What the keys mean: [suites](../suites.md).",
            f"```yaml\n{path.read_text(encoding='utf-8').rstrip()}\n```",
        ]
    )
