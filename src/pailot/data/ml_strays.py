"""What a job has left below /ml where nothing is kept: it is named, or its author would miss it only later."""

from __future__ import annotations

import os

from ..printable import printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ..job_values import Channels

WORDS = "left below /ml and not kept: "
MOST_NAMED = 5
MOST_ENTRIES = 10_000
"""More are not looked at: a task can make any number."""


def left_behind(channels: Channels, folders: Iterable[str]) -> list[str]:
    """A sentence on the files that tasks left in these folders, each of them a /ml; none where nothing was lost.

    The code's folder is where a task works, inputs are not its own, and the folders of output channels are kept.
    """
    kept = {"usercode", "input", *(f"output/{name}" for name in channels.outputs)}
    found = list(dict.fromkeys(path for folder in folders for path in _files(folder, kept)))
    if not found:
        return []
    named = ", ".join(f"/ml/{printable(path)}" for path in found[:MOST_NAMED])
    more = f" and {len(found) - MOST_NAMED} more" if len(found) > MOST_NAMED else ""
    known = ", ".join(f"/ml/output/{name}" for name in channels.outputs) or "none, since the job names no outputs"
    return [f"{WORDS}{named}{more}; what is kept: {known}"]


def _files(folder: str, kept: set[str]) -> Iterator[str]:
    """Files below a folder, by their paths in it; no link is followed."""
    waiting, seen = [""], 0
    while waiting:
        below = waiting.pop()
        try:
            with os.scandir(os.path.join(folder, below)) as entries:
                for entry in entries:
                    seen += 1
                    if seen > MOST_ENTRIES:
                        return
                    path = os.path.join(below, entry.name)
                    if path in kept:
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(path)
                    elif not entry.is_symlink():
                        yield path
        except OSError:
            continue  # the task has closed it, or it is gone
