"""Going on with a run whose launcher is gone, but whose job is not: it runs on a server that needs nobody here.

Whoever looks at such a run starts a small process that drives it from where the folder says it was. That process ends with the
job, or when the server cannot be reached for a while; then the next look starts another one.
"""

from __future__ import annotations

import os

from .driver import Watcher

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..planning import Plan
    from ..planning.plan import RolePlan
    from .folder import JobFolder

PATIENCE = 600.0
FIRST_LOOK = 10.0
"""So long whoever looks at a run waits for what the server says."""


def attach(folder: JobFolder) -> None:
    """Have the run driven again; returns when the server has said something, or cannot be asked."""
    import select
    import sys

    reader, writer = os.pipe2(os.O_CLOEXEC)
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.close(reader)
            os.setsid()
            if os.fork() == 0:
                null = os.open(os.devnull, os.O_RDWR)
                for descriptor in (0, 1, 2):
                    os.dup2(null, descriptor)
                _drive(folder, writer)
            status = 0
        finally:
            os._exit(status)
    os.close(writer)
    os.waitpid(pid, 0)
    select.select([reader], [], [], FIRST_LOOK)
    os.close(reader)


def _drive(folder: JobFolder, told: int) -> None:
    from ..engines.registry import create
    from ..settings import Settings
    from ..store.index import Index
    from ..store.network import index_path
    from .alone import drive
    from .driver import Driver, Surroundings
    from .launch import record_end

    lock = folder.lock()
    if lock is None:
        return  # somebody was quicker
    job, home = folder.job(), Settings().home
    state = folder.record("state.json") or {}
    engine = create(job["engine"])
    if hasattr(engine, "give_up"):
        engine.patience, engine.give_up = PATIENCE, lambda: os._exit(0)  # type: ignore[attr-defined]  # options of such an engine
    hidden = _hidden(folder, job, home)
    surroundings = Surroundings("", "", {}, {}, hidden, Settings().cache, home)
    driver = Driver(folder, plan_of(folder), engine, surroundings, _FirstLook(told))
    driver.resumes, driver.began = True, state.get("started")
    verdict = drive(driver)
    record_end(Index(index_path(home)), job["id"], verdict)
    os.close(lock)


def plan_of(folder: JobFolder) -> Plan:
    """As much of the plan as a driver needs that starts no task."""
    from ..planning.plan import Plan
    from ..protocol.model import Options, Secrets

    kept = folder.plan()
    options = kept.get("options") or {}
    return Plan(
        name=kept["name"],
        user=folder.job()["user"],
        roles={name: _role(name, role) for name, role in kept["taskRoles"].items()},
        job_retry_count=0,  # the server retries, and counts the time
        virtual_cluster="",
        priority="",
        gang=True,
        options=Options(grace_seconds=float(options.get("graceSeconds") or 30)),
        secrets=Secrets({}),
    )


def _role(name: str, kept: dict[str, Any]) -> RolePlan:
    from ..planning.plan import Image, RolePlan, Scripts
    from ..protocol.model import Completion, Resources

    return RolePlan(
        name=name,
        instances=kept["instances"],
        image=Image(""),
        entrypoint="",
        scripts=Scripts(""),
        environment={},
        resources=Resources(0, 0, 0),
        task_retry_count=0,
        completion=Completion(None, None),
    )


def _hidden(folder: JobFolder, job: dict[str, Any], home: str) -> tuple[str, ...]:
    """What no log may show."""
    from ..store.secrets import SecretBox
    from .launch import leaves

    try:
        with open(folder.file("secrets.sealed"), "rb") as stream:
            return tuple(leaves(SecretBox(home).open(job["id"], stream.read())))
    except FileNotFoundError:
        return ()


class _FirstLook(Watcher):
    """Tells whoever waits that something is known now."""

    def __init__(self, told: int) -> None:
        self._told: int | None = told

    def happened(self, event: Any) -> None:
        if event["event"] != "resumed":
            self._tell()

    def finished(self, verdict: Any) -> None:
        self._tell()

    def _tell(self) -> None:
        told, self._told = self._told, None
        if told is not None:
            os.close(told)
