"""Every file name of a run's folder, and where each file stands. No other module spells one.

    RUN/                        one run: `jobs/ID` below PAILOT_HOME
    RUN/attempts/N/             an attempt of the job, from 0
    …/tasks/ROLE-INDEX/         a task of that attempt
    …/attempts/K/               an attempt of that task, from 0

docs/reference/job-folder.md says what each file holds.
"""

from __future__ import annotations

import os

ATTEMPTS = "attempts"
"""In the folder of a run: its attempts. In the folder of a task: the attempts of the task."""

# The folder of a run.
JOB = "job.json"
JOB_FILE = "job.yaml"
PLAN = "plan.json"
SEALED_SECRETS = "secrets.sealed"
JOURNAL = "journal"
STATE = "state.json"
VERDICT = "verdict.json"
HANDED_ON = "again.json"
"""That another process starts the run again (under a server), how that is counted, and with which attempt."""
LOCK = "lock"
CONTROL = "control"
DISK_FULL_MARK = "disk-full"
SUPERVISOR_LOG = "supervisor.log"
KEEPER_ERROR = "keeper-error.json"
CHECKPOINTS = "checkpoints"

# The folder of a run and that of an attempt.
STOP = "stop.json"
KILL = "kill"
RESERVE = "reserve"

# The folder of an attempt.
PLACEMENT = "attempt.json"
PEERS = "peers.json"
STARTED = "started"
TASKS = "tasks"
ML = "ml"
"""The channels of the job; of several tasks each has its own one in its folder."""
SSH = "ssh"
REMOTE = "remote.json"
"""Engine openpai. Beside the logs of a task: how much of each was taken from the server."""
KUBERNETES = "kubernetes.json"
SLURM_JOB = "slurm.json"
PAYLOAD = "payload.json"
SECRETS_ONCE = "secrets.once"
DRIVER_EVENTS = "events"
DRIVER_ORDERS = "orders"
DRIVER_LOCK = "driver.lock"
DRIVER_LOG = "driver.log"
FOLLOWED = "followed.json"
MIRROR_LOCK = "mirror.lock"
MIRROR_LOG = "mirror.log"
UNSHARED = "unshared"

# The folder of a task.
CLAIM = "claim"
FINAL = "final.json"
HELD = "held.json"
CGROUP = "cgroup.json"
CONTAINER = "container.json"
CONTAINER_HOME = "home"
SHIM_ERROR = "shim-error"
SRUN_LOG = "srun.log"
USAGE = "usage"
"""What the task used over time. Written anew when it is full; until then it only grows."""
WORK = "work"

# The folder of an attempt of a task.
STDOUT = "stdout"
STDERR = "stderr"
ALL = "all"
STREAMS = (STDOUT, STDERR, ALL)
LOG_INDEX = "log-index"
"""When each part of the logs was written, and on which stream. Written anew when it is full; until then it only grows."""
ENVIRONMENT = "environment"
EXPORTS = "exports"
EXIT = "exit.json"
SCRIPTS_IN_MEMORY = "script"
"""While a task runs: where bash finds a script that lies on no disk."""
INSIDE = "inside"
"""All of this folder that a container can change; `container_init` is the shell program that knows the names in it."""


def attempt_folder(run: str, number: int) -> str:
    return f"{run}/{ATTEMPTS}/{number}"


def outputs_ledger(attempt: str) -> str:
    """What an attempt has begun to publish; in the folder of the run, because tasks can write to that of the attempt, and would
    have things removed for them.
    """
    attempts, number = os.path.split(attempt)
    return f"{os.path.dirname(attempts)}/outputs-{number}.ledger"


def task_folder(attempt: str, role: str, index: int) -> str:
    """The folder of a task in that of an attempt."""
    return f"{attempt}/{TASKS}/{role}-{index}"


def task_of(folder: str) -> tuple[str, str]:
    """The role and the index in the name of a task's folder.

    >>> task_of("/run/attempts/0/tasks/ps_server-3")
    ('ps_server', '3')
    """
    role, _, index = os.path.basename(folder).rpartition("-")
    return role, index


def task_attempt_folder(task: str, number: int) -> str:
    return f"{task}/{ATTEMPTS}/{number}"


def begun_attempts(folder: str) -> int:
    """How many attempts a run, or a task, has begun."""
    try:
        return len(os.listdir(f"{folder}/{ATTEMPTS}"))
    except OSError:
        return 0


def begun_tasks(attempt: str) -> list[str]:
    """The folders of the tasks of an attempt."""
    tasks = f"{attempt}/{TASKS}"
    try:
        return [f"{tasks}/{name}" for name in os.listdir(tasks)]
    except OSError:
        return []


def script(name: str) -> str:
    """The file of a script: start, main, exit or hold."""
    return f"{name}.sh"
