"""Writes docs/api.md from the docstrings of the public names: python -m website.names (or:
make pages).
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Any

import cbobench
from cbobench.algorithms.base import Algorithm
from cbobench.problems.base import Problem

PAGE = Path(__file__).parents[1] / "docs" / "api.md"
EXAMPLES = Path(__file__).parent / "prose" / "api_examples.py"
SELF = "itself"  # a name without members
ROOMS: dict[str, tuple[str, dict[str, str]]] = {
    "Run and read": (
        "",
        dict.fromkeys(
            ("best", "compare", "export", "load_cells", "load_rounds", "plot", "run", "summary"),
            SELF,
        )
        | {"Outcome": SELF, "Comparison": "render"},
    ),
    "A method with ask and tell": (
        "See [own_method.md](own_method.md).",
        {
            "AskTell": "optimiser",
            "Given": "m T d low high points n generator seed",
            "Optimiser": "ask tell",
        },
    ),
    "A method that is a score": (
        "Shapes: S replicates (seeds in lock step), m constraints, p = 1 + m functions, k "
        "candidates.",
        {
            "Optimistic": "strategies",
            "OptimisticReward": "strategies",
            "SafeSet": SELF,
            "ScoreAlgorithm": "lam_for prepare begin parts score learn keeps goal",
            "Belief": "constraint",
            "FunctionBelief": SELF,
            "Parts": "of",
            "Truncated": "minus",
        },
    ),
    "Any method": (
        "",
        {
            "OneRun": "start_one ask_one tell_one observe_one recommend_one dual_one",
            "Algorithm": "check start see ask tell observe recommend duals",
            "Setting": "finite safe_seed margin only",
        },
    ),
    "A problem": (
        "See [own_problem.md](own_problem.md).",
        {
            "BoxProblem": "formula optimum stated",
            "Reference": SELF,
            "pointwise": SELF,
            "Simulator": "simulate simulate_many",
            "Problem": "prepare actions constraints draw feedback offers identity note",
            "Instances": SELF,
            "Feedback": SELF,
            "Arrivals": SELF,
            "Box": SELF,
            "Finite": SELF,
        },
    ),
    "Parameters, registered names and errors": (
        "",
        dict.fromkeys(("param", "state"), SELF)
        | {"ALGORITHMS": "register names get", "PROBLEMS": SELF}
        | dict.fromkeys(("CbobenchError", "Misuse", "CellFailure"), SELF),
    ),
}
HEADS = ("Args", "Returns", "Raises", "Attributes", "Class attributes", "Example")


def prose(text: str) -> str:
    """A docstring as Markdown: sections with bold heads, their entries as lists, examples as
    code.
    """
    lines: list[str] = []
    head = ""
    for line in text.splitlines():
        if line.rstrip().removesuffix(":") in HEADS and line.rstrip().endswith(":"):
            head = line.rstrip().removesuffix(":")
            lines += ["", f"**{head}**", ""]
        elif head and line.startswith("    "):
            lines += _entry(head, line[4:])
        else:
            head = head if not line.strip() else ""
            lines.append(line)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


def _entry(head: str, line: str) -> Iterator[str]:
    """A line of a section."""
    if head == "Example":
        yield "    " + re.sub(r"^(>>>|\.\.\.) ?", "", line).replace("  # doctest: +SKIP", "")
    elif head != "Returns" and (found := re.match(r"([\w*, ]+): (.*)", line)):
        yield f"- `{found[1]}`: {found[2]}"
    else:
        yield line.replace("    ", "  ", 1) if line.startswith("    ") else line


def signature(thing: Any, name: str) -> str:
    """A call's form, without quotes around annotations, and with `...` for a default that is a
    function.
    """
    plain = re.sub(r"""(: |-> )(['"])(.*?)\2""", r"\1\3", str(inspect.signature(thing)))
    plain = re.sub(r"<function .*? at 0x\w+>", "...", plain)
    return name + plain.replace("(self, ", "(").replace("(self)", "()").replace("(cls, ", "(")


def parameters(cls: type[Any]) -> str:
    """The parameters that a class adds, as a list."""
    if not (issubclass(cls, Algorithm | Problem) and is_dataclass(cls)):
        return ""
    own = [
        f for f in fields(cls) if f.metadata.get("about") and f.name in inspect.get_annotations(cls)
    ]
    values = [f.default if f.default_factory is MISSING else f.default_factory() for f in own]
    return "\n".join(
        f"- `{f.name}` ({value!r}): {f.metadata['about']}"
        for f, value in zip(own, values, strict=True)
    )


def members(cls: type[Any], names: str) -> Iterator[str]:
    """What is said of some members of a class."""
    for name in names.split() if names != SELF else ():
        member = inspect.getattr_static(cls, name)
        call = getattr(member, "__func__", getattr(member, "func", member))
        called = inspect.isfunction(call) and not hasattr(member, "func")  # and no cached property
        shown = signature(call, name) if called else name
        text = prose(inspect.getdoc(call) or "")
        yield f"**`{shown}`**" + ("\n\n" if "\n" in text else ": " if text else "") + text


def entry(name: str, names: str) -> str:
    """What the page says of a name."""
    thing = getattr(cbobench, name)
    text = prose(inspect.getdoc(thing) or "")
    if inspect.isfunction(thing):
        return f"### {name}\n\n```\ncbobench.{signature(thing, name)}\n```\n\n{text}"
    cls = thing if inspect.isclass(thing) else type(thing)
    own = parameters(cls)
    bases = [b.__name__ for b in cls.__bases__ if b.__module__.startswith("cbobench")]
    derives = f" (derives `{bases[0]}`)" if bases else ""
    top = f"### {name}\n\n`from cbobench import {name}`{derives}"
    return "\n\n".join(
        filter(None, [top, text, own and f"**Parameters**\n\n{own}", *members(cls, names)])
    )


def read_examples() -> dict[str, str]:
    """The examples of names whose docstrings have none."""
    _, *parts = re.split(r"^# --- (\w+)$", EXAMPLES.read_text(encoding="utf-8"), flags=re.M)
    return dict(zip(parts[::2], map(str.strip, parts[1::2]), strict=True))


def page() -> str:
    """The whole page."""
    examples = read_examples()
    head = (
        "# Python API\n\nWritten by `make pages` from docstrings. What is not here may "
        "change without notice.\n"
    )
    head += (
        "Import these names from `cbobench` itself, because the modules in which they lie may be "
        "renamed."
    )
    parts = [head]
    for title, (about, entries) in ROOMS.items():
        parts.append(f"## {title}" + (f"\n\n{about}" if about else ""))
        for name, names in entries.items():
            parts.append(entry(name, names))
            if name in examples:
                parts.append(f"**Example**\n\n```\n{examples[name]}\n```")
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
