"""What is seen of an attempt and its tasks; by default in its folder, by records and by the locks that living shims hold."""

from __future__ import annotations

import fcntl
import os

from ..lifecycle.states import LAUNCHER_LOST, WAITING
from ..lifecycle.states import RUNNING as JOB_RUNNING
from ..runfolder import careful_files, layout
from ..runfolder.records import TaskRecord
from ..values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..lifecycle.completion import Outcome

ABSENT, STARTING, RUNNING, ENDED, LOST = "absent", "starting", "running", "ended", "lost"

LOST_WORDS = "its shim was killed; up to 256 KiB of its last output a stream may be missing"


class Observed(Value):
    """What was seen of a task: its state and, once it has ended, its final record."""

    role: str
    index: int
    state: str
    final: TaskRecord | None = None


class Observation(Value):
    """What any process sees of an attempt, at any time, after any crash."""

    state: str
    """WAITING, RUNNING, or UNKNOWN where nothing can be learned now."""
    tasks: tuple[Observed, ...] = ()
    outcome: Outcome | None = None
    """How the attempt ended, where a driver beside the tasks decides that, and it has ended."""


def observe_folder(folder: str) -> Observation:
    """Every task that has a folder, and whether any of them was begun."""
    found = []
    for task in layout.begun_tasks(folder):
        role, index = layout.task_of(task)
        found.append(observe_task(task, role, int(index), alive=not is_free(os.path.join(task, layout.CLAIM))))
    begun = any(each.state not in (ABSENT, STARTING) for each in found)
    return Observation(JOB_RUNNING if begun else WAITING, tuple(found))


def observe_task(folder: str, role: str, index: int, *, alive: bool) -> Observed:
    """What has become of one task, as its folder tells; `alive` while the shim that stands for it is."""
    final = TaskRecord.final(folder)
    if final is not None:
        return Observed(role, index, LOST if final.outcome == LOST else ENDED, final)
    if not os.path.exists(os.path.join(folder, layout.CLAIM)):
        return Observed(role, index, STARTING if alive else ABSENT)
    if alive:
        return Observed(role, index, RUNNING)
    return Observed(role, index, LOST, TaskRecord(LOST, reason=LOST_WORDS, stop=LAUNCHER_LOST))


def is_free(claim: str, *, wait: bool = False) -> bool:
    """Whether the shim that holds a claim is gone, or never was."""
    try:
        descriptor = careful_files.open_regular(claim, os.O_RDWR)
    except OSError:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH if wait else fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True
