"""Beside a task in its pod, started by a process that looks: shows the task's folder, to its end or once as it is now."""

from __future__ import annotations

import os

from ...runfolder import layout
from ...runfolder.atomic_json import read_lines
from ..folder_copy.sender import Sender
from . import pod_layout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def main(words: list[str]) -> int:
    """The whole showing, as a program: ROLE INDEX, and `once`."""
    role, index, *more = words
    folder = layout.task_folder(pod_layout.ATTEMPT, role, int(index))
    events = os.path.join(folder, layout.DRIVER_EVENTS)
    seen_final = False

    def is_over() -> bool:
        nonlocal seen_final
        seen_final = any(each["event"] == "final" for each in read_lines(events))
        return seen_final or bool(more)

    def take_order(_: dict[str, Any]) -> None:
        pass  # orders come by annotations, which any number of drivers may give

    try:
        arrived = Sender(folder, is_over, take_order).run()
    except BrokenPipeError:
        return 1
    if arrived and seen_final:
        os.close(os.open(pod_layout.FETCHED, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
    return 0 if arrived else 1
