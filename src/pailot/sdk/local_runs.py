"""`pailot.run`, `pailot.get`, `pailot.runs`: runs without a server."""

from __future__ import annotations

import os
from threading import Semaphore

from .. import loading
from ..engines.registry import check
from ..loading.shell_syntax import checked
from ..userruns.launch import prepare
from ..userruns.supervisor import supervise
from ..views.local import LocalRuns, LocalView
from .job import prepared
from .run import Run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from ..protocol import model

STARTED_AT_ONCE = 4
"""Runs share an index, which one of them at a time can write: with more at once some would lose patience."""
_turns = Semaphore(STARTED_AT_ONCE)


def _forked() -> None:
    global _turns  # noqa: PLW0603  # a thread that is not here any more may hold it
    _turns = Semaphore(STARTED_AT_ONCE)


os.register_at_fork(after_in_child=_forked)


def run(
    job: model.Job | str | os.PathLike[str],
    *,
    engine: str | None = None,
    server: str | None = None,
    token: str | None = None,
    name: str | None = None,
    unique: bool = False,
    secrets: Mapping[str, Any] | None = None,
    overrides: Mapping[str, Any] | None = None,
    labels: Mapping[str, str] | None = None,
    code: str | os.PathLike[str] | None = None,
    cwd: str | os.PathLike[str] | None = None,
    work_dir: str | os.PathLike[str] = "",
    sandbox: bool = False,
) -> Run:
    """Run a job: a `pailot.Job`, or the path of a job file. Returns once it has started; `.wait()` or `.result()` waits.

    Without `server` it runs on this machine, driven by a small process of its own: from any thread, from a notebook, and it
    goes on when this program ends. `unique` appends a suffix to the name, for a job that may run twice at once. With a
    server, tasks start in a copy of the folder `code`.

    Raises InvalidJob with every problem of the job, Conflict if a run of this name is still active, EngineError if the engine
    cannot be used, WireError if the server cannot, and TypeError for options that do not go together.

    >>> run = pailot.run("job.yaml", engine="local", unique=True)
    >>> run.result().state
    'SUCCEEDED'
    """
    if server is not None:
        from .client import Client

        if engine is not None or sandbox or work_dir or cwd is not None:
            raise TypeError("with a server, the engine, cwd, work_dir and sandbox are the server's to choose; code is sent along")
        return Client(server, token).run(
            job, name=name, unique=unique, secrets=secrets, overrides=overrides, labels=labels, code=code
        )
    if token is not None or code is not None:
        raise TypeError("token and code are for a server; which one? Without one, tasks start in the folder cwd")
    read = prepared(job, name=name, unique=unique, secrets=secrets, overrides=overrides)

    chosen = engine or os.environ.get("PAILOT_ENGINE") or "local"
    check(chosen)
    plan = checked(read, loading.plan(read), runs_here=chosen == "local")
    with _turns:
        made = prepare(
            read,
            plan,
            read.to_yaml(),
            cwd=os.path.abspath(os.fspath(cwd) if cwd is not None else os.getcwd()),
            work_dir=os.fspath(work_dir),
            sandbox=sandbox,
            detached=True,
            engine=chosen,
            labels=labels,
        )
        supervise(made)
    return Run(LocalView(made.id, made.plan.name, made.folder.path))


async def run_async(job: model.Job | str | os.PathLike[str], **options: Any) -> Run:
    """As `run`, without blocking the event loop while the job starts. Returns the run, and raises what `run` raises.

    ::

        run = await pailot.run_async("job.yaml")
        result = await run
    """
    from .async_bridge import in_thread

    return await in_thread(lambda _: run(job, **options))


def get(name: str) -> Run:
    """A run of this machine by id, `user~name` or name (then the latest); raises NoSuchRun.

    >>> started = pailot.run("job.yaml", unique=True)
    >>> pailot.get(started.name) == started
    True
    """
    return Run(LocalRuns().find(name))


def runs(
    *, states: Sequence[str] = (), keyword: str = "", labels: Mapping[str, str] | None = None, limit: int | None = None
) -> Iterator[Run]:
    """The runs of this machine, newest first: in one of these states, with this text in the name, with these labels.

    >>> pailot.run("job.yaml", unique=True, labels={"team": "vision"}).wait()
    'SUCCEEDED'
    >>> [run.state for run in pailot.runs(labels={"team": "vision"}, limit=5)]
    ['SUCCEEDED']
    """
    return map(Run, LocalRuns().search(states, keyword, labels, limit))
