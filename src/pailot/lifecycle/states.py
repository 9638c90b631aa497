"""The states of jobs, and why something is stopped: the words that all rooms share."""

from __future__ import annotations

WAITING = "WAITING"
RUNNING = "RUNNING"
STOPPING = "STOPPING"
STOPPED = "STOPPED"
SUCCEEDED = "SUCCEEDED"
FAILED = "FAILED"
UNKNOWN = "UNKNOWN"
"""The engine cannot be reached; the job may be in any state."""

JOB_STATES = (WAITING, RUNNING, STOPPING, STOPPED, SUCCEEDED, FAILED, UNKNOWN)
FINAL_JOB_STATES = frozenset((STOPPED, SUCCEEDED, FAILED))

# Why something is stopped; the first cause wins.
USER = "user"
COMPLETED = "completed"
"""The job was decided while this task still ran."""
PREEMPTED = "preempted"
TIMEOUT = "timeout"
"""The attempt ran for `maxRunSeconds`."""
LAUNCHER_LOST = "launcher-lost"
DISK_FULL = "disk-full"
