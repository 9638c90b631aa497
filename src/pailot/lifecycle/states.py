"""The states of jobs and tasks, and why something is stopped: the words that all rooms share."""

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

TASK_ABSENT = "absent"
"""Nothing of this attempt has been started."""
TASK_STARTING = "starting"
TASK_RUNNING = "running"
TASK_RETRYING = "retrying"
"""An attempt has ended and the next one waits for its time."""
TASK_HOLDING = "holding"
"""The commands have failed, and the task is kept for someone to look at (`holdOnFailureMinutes`)."""
TASK_ENDED = "ended"
TASK_LOST = "lost"
"""It ran, and is gone without a record of its end."""

TASK_STATES = (TASK_ABSENT, TASK_STARTING, TASK_RUNNING, TASK_RETRYING, TASK_HOLDING, TASK_ENDED, TASK_LOST)
FINAL_TASK_STATES = frozenset((TASK_ENDED, TASK_LOST))

# Why something is stopped; the first cause wins.
USER = "user"
COMPLETED = "completed"
"""The job was decided while this task still ran."""
PREEMPTED = "preempted"
TIMEOUT = "timeout"
"""The attempt ran for `maxRunSeconds`."""
LAUNCHER_LOST = "launcher-lost"
DISK_FULL = "disk-full"

STOP_CAUSES = (USER, COMPLETED, PREEMPTED, TIMEOUT, LAUNCHER_LOST, DISK_FULL)
