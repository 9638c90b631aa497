"""The program that travels into pods: `python3 code.zip task`, or `show ROLE INDEX`."""

from __future__ import annotations

import sys


def main() -> int:
    """Be the first process of a task, or show its folder."""
    kind, *words = sys.argv[1:]
    if kind == "show":
        from .show import main as run
    else:
        from .pod import main as run
    return run(words)
