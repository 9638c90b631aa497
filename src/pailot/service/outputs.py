"""Bringing the outputs of a run that has succeeded to where the job wants them, by a process of its own."""

from __future__ import annotations

import os
import time

from ..engines.local.children import CHILDREN
from ..protocol.problems import PailotError
from ..runtime.records import read_record, write_record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator

    from ..protocol.model import Channels

LOOK_SECONDS = 0.02


def publish(channels: Channels, attempt: str, cwd: str) -> Generator[float | None, None, str]:
    """Steps of a driver; answers what went wrong, or nothing. Other runs of the same driver go on meanwhile."""
    result = os.path.join(attempt, "outputs.json")
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            CHILDREN.keep_only(())  # locks and pipes of other runs
            write_record(result, {"error": _publish(channels, attempt, cwd)})
            status = 0
        finally:
            os._exit(status)
    pause = LOOK_SECONDS
    while not _ended(pid):
        yield time.monotonic() + pause
        pause = min(1.0, pause * 1.5)
    found = read_record(result)
    return "the process that brings the outputs away was killed" if found is None else str(found["error"])


def _publish(channels: Channels, attempt: str, cwd: str) -> str:
    from ..engines.local.channels import publish

    try:
        publish(channels, os.path.join(attempt, "ml"), cwd)
    except PailotError as error:
        return str(error)
    return ""


def _ended(pid: int) -> bool:
    try:
        return os.waitpid(pid, os.WNOHANG) != (0, 0)
    except ChildProcessError:
        return True  # an engine of this process has seen its end
