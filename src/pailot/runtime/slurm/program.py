"""The program that travels: `python3 FOLDER driver ATTEMPT`, `step WANTED`; `fetch` and `mirror` where no home is shared."""

from __future__ import annotations

import sys


def main() -> int:
    """Be the driver, a step, or one side of what brings their files back."""
    kind, *words = sys.argv[1:]
    if kind == "driver":
        from .driver import main as run
    elif kind == "fetch":
        from .unshared.fetch import main as run
    elif kind == "mirror":
        from .unshared.mirror import main as run
    else:
        from .step import main as run
    return run(words)
