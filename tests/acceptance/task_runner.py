"""Runs the planned scripts of one task the way the contract says: three bash processes, one exports file."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from pailot.planning import RolePlan


class TaskResult:
    """What became of a task: the status of each phase and what it printed."""

    def __init__(self) -> None:
        self.status: dict[str, int] = {}
        self.output = ""

    @property
    def lines(self) -> list[str]:
        return self.output.splitlines()


def run_task(role: RolePlan, folder: Path, index: int = 0, more: Mapping[str, str] | None = None) -> TaskResult:
    """Start callbacks, commands if those went well, exit callbacks in any case."""
    result = TaskResult()
    folder.mkdir(parents=True, exist_ok=True)
    variables = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        **role.environment,
        **role.task_environment(index),
        "PAI_WORK_DIR": str(folder),
        "PAI_EXPORTS_FILE": str(folder / ".exports"),
        **(more or {}),
    }

    def phase(name: str, script: str) -> int:
        if not script:
            return 0
        file = folder / f".{name}.sh"
        file.write_text(script)
        done = subprocess.run(
            ["bash", str(file)],
            cwd=folder,
            env=variables,
            text=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        result.status[name] = done.returncode
        result.output += done.stdout
        return done.returncode

    failed = phase("start", role.scripts.start) or phase("main", role.scripts.main)
    variables["PAI_TASK_EXIT_CODE"] = str(failed)
    variables["PAI_TASK_OUTCOME"] = "failed" if failed else "succeeded"
    phase("exit", role.scripts.exit)
    return result
