"""Pailot: one job file, run anywhere.

    import pailot

    job = pailot.load("job.yaml")      # or raises pailot.InvalidJob with every problem
    plan = pailot.plan(job)            # exactly what each task would run
    run = pailot.run(job)              # really runs it; run.logs(follow=True), run.stop(), ...
    run.result()                       # waits for success, or raises pailot.JobFailed

Names are loaded when first used: `import pailot` costs nothing.
"""

from __future__ import annotations

__version__ = "0.2.0"

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .client.errors import Denied, NotFound, Refused, Unreachable, WireError
    from .data.errors import DataError
    from .engines.contract import EngineError
    from .errors import NoSuchRun, PailotError
    from .loading import plan
    from .planning import Plan
    from .protocol import InvalidJob, Problem
    from .sdk.builders import Auth, Callback, Data, Deployment, DockerImage, Output, Prerequisite, Script, TaskRole
    from .sdk.client import Client
    from .sdk.errors import JobFailed, JobStopped, RunError, WaitTimeout
    from .sdk.job import Job, load, loads
    from .sdk.local_runs import get, run, run_async, runs
    from .sdk.run import Event, Logs, Result, Run
    from .settings import BadSetting
    from .store import StoreError
    from .userruns.launch import Conflict

_HOMES = {
    "plan": "loading",
    "Plan": "planning",
    "InvalidJob": "protocol",
    "PailotError": "errors",
    "Problem": "protocol",
    "DataError": "data.errors",
    "EngineError": "engines.contract",
    "Conflict": "userruns.launch",
    "NoSuchRun": "errors",
    "BadSetting": "settings",
    "StoreError": "store",
    "Denied": "client.errors",
    "NotFound": "client.errors",
    "Refused": "client.errors",
    "Unreachable": "client.errors",
    "WireError": "client.errors",
    "Auth": "sdk.builders",
    "Callback": "sdk.builders",
    "Data": "sdk.builders",
    "Deployment": "sdk.builders",
    "DockerImage": "sdk.builders",
    "Output": "sdk.builders",
    "Prerequisite": "sdk.builders",
    "Script": "sdk.builders",
    "TaskRole": "sdk.builders",
    "Client": "sdk.client",
    "JobFailed": "sdk.errors",
    "JobStopped": "sdk.errors",
    "RunError": "sdk.errors",
    "WaitTimeout": "sdk.errors",
    "Job": "sdk.job",
    "load": "sdk.job",
    "loads": "sdk.job",
    "Event": "sdk.run",
    "Logs": "sdk.run",
    "Result": "sdk.run",
    "Run": "sdk.run",
    "get": "sdk.local_runs",
    "run": "sdk.local_runs",
    "run_async": "sdk.local_runs",
    "runs": "sdk.local_runs",
}

__all__ = [
    "Auth",
    "BadSetting",
    "Callback",
    "Client",
    "Conflict",
    "Data",
    "DataError",
    "Denied",
    "Deployment",
    "DockerImage",
    "EngineError",
    "Event",
    "InvalidJob",
    "Job",
    "JobFailed",
    "JobStopped",
    "Logs",
    "NoSuchRun",
    "NotFound",
    "Output",
    "PailotError",
    "Plan",
    "Prerequisite",
    "Problem",
    "Refused",
    "Result",
    "Run",
    "RunError",
    "Script",
    "StoreError",
    "TaskRole",
    "Unreachable",
    "WaitTimeout",
    "WireError",
    "__version__",
    "get",
    "load",
    "loads",
    "plan",
    "run",
    "run_async",
    "runs",
]


def __getattr__(name: str) -> object:
    if name in _HOMES:
        from importlib import import_module

        value = getattr(import_module(f".{_HOMES[name]}", __name__), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'pailot' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
