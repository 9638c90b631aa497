"""The code that travels to where a task is: three rooms and what they stand on, as paths below the package."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

ROOMS = ("lifecycle", "runfolder", "runtime")
ALONE = ("credentials.py", "errors.py", "job_values.py", "problem.py", "values.py")
PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def sources() -> Iterator[str]:
    """The path of each module that travels."""
    yield from ALONE
    for room in ROOMS:
        for parent, folders, files in os.walk(os.path.join(PACKAGE, room)):
            folders[:] = [each for each in folders if each != "__pycache__"]
            for file in files:
                if file.endswith(".py"):
                    yield os.path.relpath(os.path.join(parent, file), PACKAGE)
