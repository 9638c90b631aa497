"""What was begun at a target and is not complete, written down before it is done, so that it can be undone after a crash."""

from __future__ import annotations

import os

from ..runfolder.atomic_json import append_line, read_lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class UploadJournal:
    """A file of lines, in the folder of a run."""

    def __init__(self, path: str) -> None:
        self.path = path

    def note(self, kind: str, **details: Any) -> None:
        append_line(self.path, {"kind": kind, **details})

    def settled(self) -> None:
        """All is complete, or all is undone."""
        self.note("settled")

    def open(self) -> list[dict[str, Any]]:
        """What has to be undone, the latest first."""
        if not os.path.exists(self.path):
            return []
        found = list(read_lines(self.path))
        last = max((number for number, each in enumerate(found) if each["kind"] == "settled"), default=-1)
        return found[last + 1 :][::-1]
