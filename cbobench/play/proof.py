"""That a worker has the driver's code: what it would play is hashed there, and compared."""

from __future__ import annotations

import platform

from cbobench.errors import CbobenchError, Misuse
from cbobench.results.source import libraries, source_hash

INSTALL = "install the same on every machine"
SHIP = f"{INSTALL}, or send this machine's with --ship"


class OtherCode(CbobenchError):
    """A worker has other code or libraries than the driver that planned the sweep."""


def prove(problem: str, algorithm: str, label: str, source: str, wanted: str) -> None:
    """Show that this process would play a pair with the driver's code.

    Args:
        problem, algorithm: registered names or import paths.
        label: of the pair, for the message.
        source, wanted: the driver's code and libraries (see `cbobench.results.source`).

    Raises:
        OtherCode: another cbobench, another module of the user's or none, other libraries.
    """
    here = f"worker {platform.node()}"
    try:
        found = source_hash(problem, algorithm)
    except Misuse as error:
        raise OtherCode(f"{here} cannot play {label}: {error}; {SHIP}, then run again") from error
    for what, mine, drivers, then in (
        ("code", found, source, SHIP),
        ("libraries", libraries(algorithm), wanted, INSTALL),
    ):
        if mine != drivers:
            raise OtherCode(
                f"{here} has other {what} for {label}: {mine}, the driver has {drivers}; {then}, then run again"
            )
