"""What became of the drawn cells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

from cbobench.replay.sources import Candidate

State = Literal["equal", "differs", "unplayable"]
Recommendation = Literal["same", "older", "other", "unknown"]


class Rounds(NamedTuple):
    """How many rounds of a history a method answers with the recorded action, with a tie, or otherwise."""

    same: int = 0
    ties: int = 0
    others: int = 0

    @property
    def total(self) -> int:
        """All rounds."""
        return self.same + self.ties + self.others

    def plus(self, other: Rounds) -> Rounds:
        """Return the sum of two."""
        return Rounds(*map(sum, zip(self, other, strict=True)))


@dataclass(frozen=True)
class Outcome:
    """What became of a drawn cell.

    Attributes:
        candidate: the cell.
        state: "unplayable" where it cannot be replayed here, which is no difference.
        text: the first difference, or why it cannot be replayed.
        digest: whether a digest of it is published.
        rounds: of a cell that was asked round by round.
        is_ours: whether its method needs no other library, so that another action is a difference.
        recommendation: whether it is the one made here: "older" if an older rule made it, and it is another one;
            "other" where it depends on the method's arithmetic, so that it is no difference; "unknown" where the method
            was not asked for one.
        unstored: columns of which nothing is stored, and the play gives something.
    """

    candidate: Candidate
    state: State
    text: str = ""
    digest: bool = True
    rounds: Rounds = Rounds()
    is_ours: bool = True
    recommendation: Recommendation = "unknown"
    unstored: frozenset[str] = frozenset()

    @property
    def is_checked(self) -> bool:
        """Whether it was compared."""
        return self.state != "unplayable"
