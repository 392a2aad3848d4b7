"""What the commands of benchmarks share: a parser of options, and variables of a Ray cluster."""

from __future__ import annotations

import argparse
import secrets


def make_parser(text: str | None) -> argparse.ArgumentParser:
    """Return a parser of options whose help begins with a module's docstring as it stands."""
    return argparse.ArgumentParser(
        description=text, formatter_class=argparse.RawDescriptionHelpFormatter
    )


def secure_ray() -> dict[str, str]:
    """Return variables of a Ray cluster with a token of its own: Ray listens on the machine's
    address, even where all nodes are on it.
    """
    return {
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": secrets.token_hex(16),
    }
