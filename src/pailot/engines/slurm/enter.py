"""A shell beside a task that is still there: another step of its job, on its node, that takes nothing from the others."""

from __future__ import annotations

import os

from ...runfolder import layout
from ...runfolder.atomic_json import read_record


def words(task_folder: str, *, terminal: bool) -> list[str]:
    """What comes before the shell; nothing where the task is not placed yet."""
    attempt = os.path.dirname(os.path.dirname(task_folder))
    placed = read_record(os.path.join(attempt, layout.PLACEMENT)) or {}
    role, _, index = os.path.basename(task_folder).rpartition("-")
    node = placed.get("hosts", {}).get(f"{role}:{index}")
    if not node:
        return []
    component = placed.get("components", {}).get(f"{role}:{index}")
    of = [] if component is None else [f"--het-group={component}"]
    step = ["srun", f"--jobid={placed['slurmJob']}", *of, "--overlap", "--nodes=1", "--ntasks=1", f"--nodelist={node}"]
    return [*step, "--quiet", "--mem=0", "--gres=none", "--chdir=/", *(["--pty"] if terminal else [])]
