"""The code of a job as one folder, for engines that take it along to where the tasks are."""

from __future__ import annotations

import os

from ...data import provisions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..contract import Attempt


def bring_files(attempt: Attempt, folder: str) -> None:
    """Make the folder whose content every task finds in its working directory, the job's code; none if there is no code."""
    import shutil

    plan = attempt.plan
    if attempt.context.code:
        shutil.copytree(attempt.context.code, folder, symlinks=True, dirs_exist_ok=True)
    if plan.options.code:
        os.makedirs(folder, exist_ok=True)
        places = {(role.name, index): folder for role in plan.roles.values() for index in range(role.instances)}
        provisions.bring_code(
            plan,
            places,
            attempt.context.cache,
            secrets=attempt.context.secrets,
            cwd=attempt.context.cwd,
            leave_out=[attempt.context.home],
            rules=attempt.context.rules,
        )
