"""How commands print what is no table: lines beside the output, and JSON for programs."""

from __future__ import annotations

import json
import sys
from typing import Any

from cbobench.errors import mask_secrets, printable


def tell(text: str) -> None:
    """Print a line on standard error, where no program takes it for the output."""
    print(printable(mask_secrets(text)), file=sys.stderr, flush=True)


def print_json(content: Any) -> None:
    """Print content for programs."""
    print(json.dumps(content, indent=1, ensure_ascii=False))
