"""All tests: those of units side by side, then the others one after the other, since they share real daemons.

    python -m tests.all [pytest's arguments]

With arguments that select tests both parts are asked; it is no fault when one of them has none.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

PARTS = (
    ("tests/unit", "--numprocesses", "auto"),
    ("tests", "--ignore", "tests/unit"),
)
DONE = (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)


def main(arguments: list[str]) -> int:
    """Run both parts, and return the worse of their results."""
    ended = [subprocess.call([sys.executable, "-m", "pytest", *part, *arguments]) for part in PARTS]
    if all(status == pytest.ExitCode.NO_TESTS_COLLECTED for status in ended):
        return int(pytest.ExitCode.NO_TESTS_COLLECTED)
    return next((status for status in ended if status not in DONE), 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
