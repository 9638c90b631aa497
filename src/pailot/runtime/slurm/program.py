"""The program that travels: `python3 FOLDER driver ATTEMPT`, `python3 FOLDER step WANTED`."""

from __future__ import annotations

import sys


def main() -> int:
    """Be the driver or a step."""
    kind, *words = sys.argv[1:]
    if kind == "driver":
        from .driver import main as run
    else:
        from .step import main as run
    return run(words)
