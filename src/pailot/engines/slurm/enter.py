"""A shell beside a task that is still there: another step of its job, on its node, that takes nothing from the others."""

from __future__ import annotations

import os

from ...runfolder import layout
from ...runfolder.records import Placement


def words(task_folder: str, *, terminal: bool) -> list[str]:
    """What comes before the shell; nothing where the task is not placed yet."""
    attempt = os.path.dirname(os.path.dirname(task_folder))
    placed = Placement.of(attempt)
    task = ":".join(layout.task_of(task_folder))
    node = placed.hosts.get(task)
    if not node:
        return []
    component = (placed.components or {}).get(task)
    of = [] if component is None else [f"--het-group={component}"]
    step = ["srun", f"--jobid={placed.slurm_job}", *of, "--overlap", "--nodes=1", "--ntasks=1", f"--nodelist={node}"]
    return [*step, "--quiet", "--mem=0", "--gres=none", "--chdir=/", *(["--pty"] if terminal else [])]
