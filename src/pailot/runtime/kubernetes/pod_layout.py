"""Names that both sides of a pod know: where things are in it, and by which annotations it is told something."""

from __future__ import annotations

ROOT = "/pailot"
GIVEN = f"{ROOT}/given"
"""What came along, read-only: our code, the payload, the job's files."""
CODE, PAYLOAD, FILES = "code.zip", "payload", "files.tgz"
TOLD = f"{ROOT}/told"
"""The annotations of the pod, each as a file that follows it."""
RUN = f"{ROOT}/run"
"""What the task and its shim write; it ends with the pod."""
ATTEMPT = f"{RUN}/attempt"
CHECKPOINTS = f"{ROOT}/checkpoints"
READY = f"{RUN}/python"
"""The Python that runs the task's shim; it is there as soon as that runs."""
FETCHED = f"{RUN}/fetched"
"""It is there as soon as every byte of an ended task was brought to the run's folder."""
TERMINATION = "/dev/termination-log"
MOST_SAID = 4096
"""Of what stands in that file kubelet keeps the last bytes, so many."""

PREFIX = "pailot.dev/"
ORDER, NOW, PEERS = "order", "now", "peers"
"""Annotations of a pod, empty at first: to stop and why, without grace, where all tasks are."""
TOLD_NAMES = (ORDER, NOW, PEERS)

ROLE_VARIABLE, INDEX_VARIABLE, ADDRESS_VARIABLE = "PAILOT_ROLE", "JOB_COMPLETION_INDEX", "PAILOT_ADDRESS"
NO_PYTHON, BAD_PAYLOAD, TWICE = 97, 96, 95
"""Exit codes of a pod whose task never began: no Python, nothing to run, another process had begun it."""
LOST_CODE, STOPPED_CODE = 125, 143
