"""Following an attempt in its folder: what its driver says, which logs grow. Nothing here asks Slurm."""

from __future__ import annotations

import os

from ...runfolder import layout
from ...runfolder.atomic_json import append_line


class GrowingLogs:
    """The logs of the tasks that are running, and how far they were seen."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.sizes: dict[tuple[str, int, int], int] = {}

    def path(self, role: str, index: int, number: int) -> str:
        return layout.task_attempt_folder(layout.task_folder(self.folder, role, index), number)

    def grown(self, only: set[str] | None = None) -> list[tuple[str, int, int]]:
        """Those that are longer than when last seen; `only` names the folders to look at."""
        found = []
        for key, before in self.sizes.items():
            path = self.path(*key)
            if only is not None and path not in only:
                continue
            size = _size(os.path.join(path, layout.ALL))
            if size != before:
                self.sizes[key] = size
                found.append(key)
        return found


def order_stop(folder: str, why: str, grace: float, *, now: bool) -> None:
    """Leave word for the travelling driver; a signal has to tell it to look."""
    append_line(
        os.path.join(folder, layout.DRIVER_ORDERS), {"order": "stop", "why": why, "grace": grace, "now": now}, durable=True
    )


def _size(path: str) -> int:
    """Opened for it: of a file that another machine writes, only opening asks the server."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return 0
    try:
        return os.fstat(descriptor).st_size
    finally:
        os.close(descriptor)
