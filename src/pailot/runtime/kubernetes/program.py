"""The program that travels into pods: `python3 code.zip task`, `show ROLE INDEX`, `dial PORT`."""

from __future__ import annotations

import sys


def main() -> int:
    """Be the first process of a task, show its folder, or reach its ports."""
    kind, *words = sys.argv[1:]
    if kind == "show":
        from .show import main as run
    elif kind == "dial":
        from .dial import main as run
    else:
        from .pod import main as run
    return run(words)
