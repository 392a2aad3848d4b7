"""Problems and algorithms with their parameters resolved, and the suite made of them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from cbobench.problems.base import Problem


@dataclass(frozen=True)
class Variant:
    """A problem or an algorithm with all its parameters resolved.

    Attributes:
        name: registered name or import path.
        given: the parameters that the suite's entry names; they name the variant.
        values: every parameter that fixes the result (paths replaced by content hashes); canonical.
        label: what a reader sees.
        settings: the parameters to build it with.
    """

    name: str
    given: dict[str, Any]
    values: dict[str, Any]
    label: str
    settings: dict[str, Any]

    @property
    def title(self) -> str:
        """The name with the entry's parameters, such as `ckb-rand[beta_scale=0.2]`; unique within a suite."""
        if not self.given:
            return self.name
        return f"{self.name}[{','.join(f'{k}={short(v)}' for k, v in sorted(self.given.items()))}]"

    @property
    def key(self) -> str:
        """Canonical JSON of name and values: the same for the same thing, whatever it is called."""
        return canonical({"name": self.name, "values": self.values})


@dataclass(frozen=True)
class Suite:
    """A validated suite.

    Attributes:
        name, about: for readers.
        horizon: T.
        seeds: the seeds, in order.
        record: how many rounds are kept (spread evenly), or None for all.
        problems: variants with their prepared problems.
        algorithms: variants.
    """

    name: str
    about: str
    horizon: int
    seeds: tuple[int, ...]
    record: int | None
    problems: tuple[tuple[Variant, Problem], ...]
    algorithms: tuple[Variant, ...]


def canonical(value: Any) -> str:
    """JSON with sorted keys and no spaces: the same text for the same content."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def short(value: Any) -> str:
    return value if isinstance(value, str) else canonical(value)
