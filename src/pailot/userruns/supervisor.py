"""A run driven by a small process of its own, for callers that can neither fork nor handle signals.

A notebook or a program with threads and gigabytes of data starts a fresh interpreter, tells it the run over a pipe, and
may end before the run does. `launch.drive_detached` is the quicker way for a small process with one thread.
"""

from __future__ import annotations

import json
import os
import sys

from ..engines import context_codec
from ..errors import PailotError
from ..runfolder import layout, plan_codec
from ..runtime.daemon import daemonize
from ..store.index import Index
from ..store.network_filesystems import index_path
from .launch import Run, drive_and_tell
from .run_folder import JobFolder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..runfolder.records import VerdictRecord

_START = "import sys; sys.path[:] = sys.argv[1:]; from pailot.userruns.supervisor import main; main()"


def supervise(run: Run) -> VerdictRecord | None:
    """Leave the run to a new process; returns once it has started, or with the verdict if it never did."""
    import subprocess

    package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    run.index.close()
    head = json.dumps([run.folder.path, run.id, run.engine, run.lock, context_codec.document(run.context)])
    said = f"{head}\n{plan_codec.encode(run.plan)}".encode()
    complaints = open(run.folder.file(layout.SUPERVISOR_LOG), "wb")  # noqa: SIM115  # closed below
    supervisor = subprocess.Popen(
        # Without `site`, which takes as long as all of ours: it is told where to find things.
        [sys.executable or "python3", "-S", "-P", "-c", _START, package, *filter(os.path.isabs, sys.path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=complaints,
        cwd="/",
        env={name: value for name, value in os.environ.items() if not name.startswith("PYTHON") or name == "PYTHONPATH"},
        start_new_session=True,
        pass_fds=() if run.lock is None else (run.lock,),
    )
    run.leave()
    assert supervisor.stdin
    assert supervisor.stdout
    with supervisor.stdin, supervisor.stdout, complaints:
        try:
            supervisor.stdin.write(said)
            supervisor.stdin.close()
        except BrokenPipeError:
            pass  # it is gone, which the next line hears
        told = os.read(supervisor.stdout.fileno(), 64)  # not to the end: shims inherit the other side
    supervisor.wait()  # it has forked the driver and ended
    if told:
        return None
    verdict = run.folder.verdict()
    if verdict is None:
        raise PailotError(f"the supervisor of '{run.plan.name}' ended before the job had started: {_last_words(run)}")
    return verdict


def _last_words(run: Run) -> str:
    with open(run.folder.file(layout.SUPERVISOR_LOG), encoding="utf-8", errors="replace") as stream:
        lines = stream.read().strip().splitlines()
    return lines[-1] if lines else f"see pailot why {run.id}"


def main() -> None:
    """The new process: read what is to be driven, step out of the family, drive it."""
    head, plan = sys.stdin.buffer.read().decode().split("\n")
    path, run_id, engine, lock, found = json.loads(head)
    context = context_codec.context_of(found)
    told = os.dup(1)
    os.set_inheritable(told, False)
    daemonize(streams=(0, 1))

    if lock is not None:
        os.set_inheritable(lock, False)
    index = Index(index_path(context.home))
    drive_and_tell(Run(JobFolder(path), plan_codec.decode(plan), index, run_id, context, engine, lock), told)
    os._exit(0)
