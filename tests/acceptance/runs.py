"""What tests of runs share; its home is `pailot.testing.runs`, where authors of engines find it, too."""

from __future__ import annotations

from pailot.testing.runs import (
    JOB,
    PATIENCE,
    ROLE,
    Home,
    Result,
    job,
    kill_all_with,
    no_process_left,
    processes_with,
    role,
    wait_for,
)

__all__ = [
    "JOB",
    "PATIENCE",
    "ROLE",
    "Home",
    "Result",
    "job",
    "kill_all_with",
    "no_process_left",
    "processes_with",
    "role",
    "wait_for",
]
