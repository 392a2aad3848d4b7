"""`--budget`: how much time on CPUs the cells of a call may take."""

from __future__ import annotations

import math
import re

from cbobench.errors import Misuse
from cbobench.play.task import Receipt

UNITS = {"cpus": 1.0, "cpumin": 60.0, "cpuh": 3600.0}
_BUDGET = re.compile(r"(\d+(?:\.\d+)?)(cpus|cpumin|cpuh)")


class Budget:
    """What may be spent, and what was: seconds that tasks took on their CPUs, as their receipts say.

    Args:
        text: such as "2cpuh"; None for no limit.

    Raises:
        Misuse: something else.
    """

    def __init__(self, text: str | None) -> None:
        match = _BUDGET.fullmatch(text) if isinstance(text, str) else None
        if text is not None and (match is None or float(match[1]) == 0):
            raise Misuse(f"budget is {text!r}; give a number above 0 with its unit: {', '.join(UNITS)} (as in 2cpuh)")
        self.limit = math.inf if match is None else float(match[1]) * UNITS[match[2]]
        self.spent = 0.0

    def over(self, receipt: Receipt) -> bool:
        """Account for a task; whether no further one may begin."""
        self.spent += receipt.seconds or 0.0
        return self.spent >= self.limit
