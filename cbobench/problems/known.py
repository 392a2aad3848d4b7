"""Known constraints: comparisons of inputs that a class states in words, such as
"speed * feed <= 90", so that nobody has to learn them.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from types import CodeType
from typing import Any, cast

import numpy as np

from cbobench.errors import Misuse, one_line, show, unknown
from cbobench.gp.box_actions import Box, sobol
from cbobench.gp.kernels import Array, Mask
from cbobench.words import list_names

OPERATIONS = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow, ast.UAdd, ast.USub)
ARITHMETIC = (ast.BinOp, ast.UnaryOp, ast.Name, ast.Load, *OPERATIONS)
EXAMPLE = "allowed: + - * / ** of inputs and numbers on both sides of <= or >=, such as 2 * a <= b"


SPREAD = 2**16  # points at which known constraints of a box are looked at
FEWEST = 16  # of these that must be left


@dataclass(frozen=True)
class Known:
    """Known constraints of some inputs.

    Args:
        texts: the comparisons.
        inputs: names of the inputs that are numbers.
        bounds: (input, sign, bound) of constraints on one input, sign · (value - bound) <= 0.
    """

    texts: tuple[str, ...]
    inputs: tuple[str, ...]
    bounds: tuple[tuple[str, float, float], ...] = ()

    @property
    def requirements(self) -> list[str]:
        """What they ask for."""
        sides = {1.0: "at most", -1.0: "at least"}
        of_inputs = (f"{name} {sides[sign]} {bound:g}" for name, sign, bound in self.bounds)
        return [*self.texts, *of_inputs]

    def __call__(self, points: Array) -> Array:
        """Return the left side minus the right side of every comparison, so that at most 0 is
        allowed, (..., k), at points (..., d); not finite where a division is by 0.

        Raises:
            Misuse: a text that is no comparison by <= or >=, holds anything but arithmetic, names
                what is no input, or has no value.
        """
        values = self.values(points)
        return np.stack([np.broadcast_to(v, points.shape[:-1]) for v in values], axis=-1)

    def values(self, points: Any) -> list[Any]:
        """Return them one by one, of arrays or tensors (..., d). Raises `Misuse` as above."""
        columns = {name: points[..., i] for i, name in enumerate(self.inputs)}
        values = []
        for text in self.texts:
            code = _compile(text.strip(), self.inputs)
            try:
                with np.errstate(all="ignore"):
                    values.append(eval(code, {"__builtins__": {}}, columns))
            except ArithmeticError as error:
                raise Misuse(f"known: {show(text)} has no value: {one_line(error)}") from None
        values += [sign * (columns[name] - bound) for name, sign, bound in self.bounds]
        return values

    def keep(self, points: Array) -> Mask:
        """Return which of some points (n, d) keep all of them.

        Raises:
            Misuse: as above; a comparison is no number at one of them, or none keeps all.
        """
        values = self(points)
        for i, j in np.argwhere(~np.isfinite(values)).tolist():
            pairs = zip(self.inputs, points[i].tolist(), strict=True)
            point = ", ".join(f"{name} = {value:.6g}" for name, value in pairs)
            raise Misuse(
                f"known: {show(self.texts[j])} is no number at {point}: it divides by 0, or takes "
                "a root of what is negative; write it otherwise, or take other bounds of the inputs"
            )
        within = np.asarray((values <= 0).all(axis=-1))
        if not within.any():
            raise Misuse(
                f"known: none of {len(within):,} points keeps {list_names(self.requirements)}; "
                "change a number"
            )
        return within


def make_known(
    texts: Any, inputs: Sequence[str], bounds: Sequence[tuple[str, float, float]] = ()
) -> Known | None:
    """Return the known constraints of some inputs that are numbers; None if there are none.

    Raises:
        Misuse: the texts are no list of texts, or a bound is of another input.
    """
    if not isinstance(texts, list | tuple) or not all(isinstance(text, str) for text in texts):
        raise Misuse(
            f"known is {show(texts)}; allowed: a list of comparisons of inputs, such as "
            '["speed * feed <= 90"]'
        )
    for name, _, _ in bounds:
        if name not in inputs:
            raise Misuse(f"constraints: {show(name)} is a choice, which has no bound; leave it out")
    if not texts and not bounds:
        return None
    return Known(tuple(texts), tuple(inputs), tuple(bounds))


def limit_box(box: Box, known: Known | None) -> Box:
    """Return a box with known constraints of its coordinates x_1, ..., x_d.

    Raises:
        Misuse: as `Known.keep`, of points spread over the box and its two corners; or hardly any
            point is left.
    """
    if known is None:
        return box
    spread = box.scale(sobol(box.d, SPREAD))
    spread = np.concatenate([spread, [box.low], [box.high]])
    left = known.keep(box.numbers(spread))[:SPREAD].sum()
    if left < FEWEST:
        raise Misuse(
            f"known: {left} of {SPREAD:,} points keep {list_names(known.requirements)}; it must be "
            f"at least {FEWEST}: take a box that is nearer to what they allow"
        )
    return replace(box, known=known)


def describe_known(box: Box) -> list[str]:
    """Return in words what known constraints of a box forbid; nothing without any."""
    if box.known is None:
        return []
    share = box.beyond(sobol(box.d, SPREAD)).mean()
    wording = list_names(cast("Known", box.known).requirements)
    return [f"{100 * share:.3g} % of the box lies beyond {wording}: known, not played"]


@cache
def _compile(text: str, inputs: tuple[str, ...]) -> CodeType:
    """Return code of the left side minus the right side, or of its opposite for >=."""
    label = f"known: {show(text)}"
    try:
        comparison = ast.parse(text, mode="eval").body
    except (SyntaxError, TypeError, ValueError):
        raise Misuse(f"{label} is no comparison; {EXAMPLE}") from None
    if not isinstance(comparison, ast.Compare) or len(comparison.ops) != 1:
        raise Misuse(f"{label} is not one comparison; {EXAMPLE}")
    left = comparison.left
    right = comparison.comparators[0]
    if not isinstance(comparison.ops[0], ast.LtE | ast.GtE):
        raise Misuse(f"{label} does not compare by <= or >=; {EXAMPLE}")
    for node in [*ast.walk(left), *ast.walk(right)]:
        if isinstance(node, ast.Constant) and type(node.value) in (int, float):
            node.value = float(cast("float", node.value))  # powers of whole numbers take for ever
        elif not isinstance(node, ARITHMETIC):
            raise Misuse(f"{label} holds more than arithmetic; {EXAMPLE}")
        if isinstance(node, ast.Name) and node.id not in inputs:
            raise unknown("input", node.id, inputs, location=f"{label}: ")
    if isinstance(comparison.ops[0], ast.GtE):
        left, right = right, left
    difference = ast.Expression(ast.BinOp(left, ast.Sub(), right))
    return compile(ast.fix_missing_locations(difference), text, "eval")
