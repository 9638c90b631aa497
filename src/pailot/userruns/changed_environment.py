"""What a run that is repeated finds otherwise around it: its tasks have the environment of the shell that repeats it."""

from __future__ import annotations

import os

from ..runfolder import layout
from ..runtime.shim import read_environment

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from .run_folder import JobFolder

DECIDING = ("PATH", "VIRTUAL_ENV", "CONDA_PREFIX", "PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH", "LD_PRELOAD", "LOADEDMODULES")
"""Variables that decide which programs and libraries a command finds."""


def changed_since(folder: JobFolder, environment: Mapping[str, str]) -> list[str]:
    """Those of the deciding variables that the first task of a run was given with another value, or not at all."""
    roles = folder.plan().get("taskRoles") or {}
    for name, role in roles.items():
        kept = os.path.join(layout.task_attempt_folder(folder.task(0, name, 0), 0), layout.ENVIRONMENT)
        try:
            before = read_environment(kept)
        except OSError:
            continue  # it never started
        own = role.get("environment") or {}
        return [each for each in DECIDING if each not in own and before.get(each) != environment.get(each)]
    return []
