"""Problems and algorithms with their parameters resolved."""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from cbobench.algorithms import ALGORITHMS
from cbobench.problems import PROBLEMS

INITIAL = "initial design"
"""Key of the suite's `initial` among an algorithm's values; the space keeps it apart from
parameters.
"""
PARALLEL = "evaluations under way"
"""Key of the suite's `parallel`."""

DIGEST = "digest"
"""Key of the digest of what is stored with it."""


@dataclass(frozen=True)
class Variant:
    """A problem or an algorithm with all its parameters resolved.

    Attributes:
        name: registered name or import path.
        given: the parameters in the suite's entry; they name the variant.
        values: the parameters that fix the result (see `params.identity`; paths replaced by content
            hashes); canonical.
        label: its name for readers.
        settings: the parameters to build it with.
        note: a remark that readers of its numbers need; not part of its identity.
        inputs: of a problem, [name, values or type] of what its actions are made of (see
            `Problem.describe_inputs`), None if they have no names; not part of its identity.
        objective: of a problem, [name, zero, unit] of what f is to its user (see
            `Problem.describe_objective`), None where that is not known; not part of its identity.
    """

    name: str
    given: dict[str, Any]
    values: dict[str, Any]
    label: str
    settings: dict[str, Any]
    note: str = field(default="", compare=False)
    inputs: list[list[Any]] | None = field(default=None, compare=False)
    objective: list[Any] | None = field(default=None, compare=False)

    @cached_property
    def title(self) -> str:
        """The name with the entry's parameters, such as `ckb-rand[beta_scale=0.2]`; unique within a
        suite.
        """
        if not self.given:
            return self.name
        return f"{self.name}[{','.join(f'{k}={short(v)}' for k, v in sorted(self.given.items()))}]"

    @property
    def brief(self) -> str:
        """The shorter of title and label, for messages: titles may hold mappings, labels
        sentences.
        """
        return min(self.title, self.label, key=len)

    @cached_property
    def key(self) -> str:
        """Canonical JSON of name and values: equal for equal things, whatever their labels."""
        return canonical({"name": self.name, "values": self.values})

    @property
    def aliases(self) -> tuple[str, str, str]:
        """The names that a reader may use: title, registered name, label."""
        return self.title, self.name, self.label

    @property
    def points_at_once(self) -> int:
        """Of an algorithm, the number of evaluations that it has under way at once."""
        count: int = self.values.get(PARALLEL, {"points": 1})["points"]
        return count

    @property
    def borrows_name(self) -> bool:
        """Whether its label is the registered name of another method or problem."""
        # whatever its letters look like, and what a sweep adds
        plain = unicodedata.normalize("NFKC", self.label).casefold().strip()
        label = re.sub(r"\s*[\[(]\w+ ?=.*", "", plain)
        # most labels are a variant's own name: for these no module is loaded
        if label == self.name.casefold():
            return False
        return any(label in registry.names() for registry in (ALGORITHMS, PROBLEMS))


def canonical(value: Any) -> str:
    """Return JSON with sorted keys and no spaces: equal text for equal content."""
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False
    )


def content_digest(content: dict[str, Any]) -> str:
    """Return the digest of content without its digest field, independent of layout."""
    return hashlib.sha256(
        canonical({k: v for k, v in content.items() if k != DIGEST}).encode()
    ).hexdigest()


def flatten_values(values: Any, name: str = "") -> dict[str, Any]:
    """Return the values in nested mappings, by dotted names."""
    if not isinstance(values, dict) or not values:
        return {name: values}
    inner = (
        flatten_values(value, f"{name}.{key}" if name else key) for key, value in values.items()
    )
    return {key: value for part in inner for key, value in part.items()}


def difference(variants: Sequence[Variant]) -> dict[str, list[Any]]:
    """Return the parameters in which variants differ, with all values; of mappings only the
    differing entries.
    """
    flattened = [flatten_values(variant.values) for variant in variants]
    names = dict.fromkeys(name for values in flattened for name in values if name)
    columns = {name: [values.get(name) for values in flattened] for name in names}
    return {name: column for name, column in columns.items() if len({*map(canonical, column)}) > 1}


def short(value: Any) -> str:
    if isinstance(value, str):
        return value
    return canonical(value)
