"""Pailot: one job file, run anywhere.

    import pailot

    job = pailot.load("job.yaml")      # or raises pailot.InvalidJob with every problem
    plan = pailot.plan(job)            # exactly what each task would run
    print(plan.roles["worker"].scripts.main)

Names are loaded when first used: `import pailot` costs nothing.
"""

from __future__ import annotations

__version__ = "0.1.0"

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .api import load, loads, plan
    from .planning import Plan
    from .protocol import InvalidJob, Job, PailotError, Problem

_HOMES = {
    "load": "api",
    "loads": "api",
    "plan": "api",
    "Plan": "planning",
    "InvalidJob": "protocol",
    "Job": "protocol",
    "PailotError": "protocol",
    "Problem": "protocol",
}

__all__ = ["InvalidJob", "Job", "PailotError", "Plan", "Problem", "__version__", "load", "loads", "plan"]


def __getattr__(name: str) -> object:
    if name in _HOMES:
        from importlib import import_module

        value = getattr(import_module(f".{_HOMES[name]}", __name__), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'pailot' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
