"""A forked process that becomes the shim of a task: which kind, and what is left of it when it fails."""

from __future__ import annotations

import errno
import os
import resource
import signal
import time

from ..runfolder import layout
from ..runfolder.atomic_json import DISK_FULL_STATUS, is_full, write_record
from ..runfolder.records import TaskRecord
from . import processes
from .shim import FAILED, Shim

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from .task_spec import Task


def prepare_forks() -> None:
    """Load once what every shim of a job with secrets would else load after its fork; a millisecond for each of them."""
    import binascii  # noqa: F401  # masking needs both
    import bisect  # noqa: F401


def fork_shim() -> int:
    """Fork a process that becomes a shim. A SIGTERM waits until the shim listens: before that it would kill it."""
    pid = -1
    signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGTERM,))
    try:
        pid = os.fork()
    finally:
        if pid:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGTERM,))
    return pid


def run_and_exit(task: Task, channel: int, liveness: int, kind: type[Shim] | None = None) -> NoReturn:
    """Be the shim of a task in this (forked) process, of this kind or as the task needs it; never returns."""
    status = 1
    try:
        (kind or shim_for(task))(task, channel, liveness).run()
        status = 0
    except BaseException as error:  # the last line of defence: say it in the task's folder, then end
        if is_full(error):
            status = DISK_FULL_STATUS
            processes.kill_all(os.getpid())
        else:
            _write_crash(task, error)
    finally:
        os._exit(status)


def shim_for(task: Task) -> type[Shim]:
    """The kind of shim a task needs."""
    if task.container is None:
        return Shim
    from .container_shim import ContainerShim  # few tasks need it, and each shim would load it by itself

    return ContainerShim


def _write_crash(task: Task, error: BaseException) -> None:
    """The end of a task whose shim has failed, in the words that its user sees; it would only fail again."""
    processes.kill_all(os.getpid())
    if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
        os.closerange(3, 1 << 10)  # with none free we could not even say so
        reason = f"Pailot's own process for it could open no more files: {_limit_on_files()}"
    else:
        from . import defects

        reason = defects.note(
            error, f"{task.role}:{task.index}", hidden=task.hidden, log=os.path.join(task.folder, layout.SHIM_ERROR)
        )
    end = TaskRecord(FAILED, phase="main", reason=reason, give_up=True, attempt=0, ended=time.time())
    try:
        write_record(os.path.join(task.folder, layout.FINAL), end.to_json(), durable=task.outlives_power)
    except OSError:
        pass  # nothing is left to write to


def _limit_on_files() -> str:
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return f"the limit on them (ulimit -n) is {limit}; {processes.ENOUGH_FILES} are enough"
