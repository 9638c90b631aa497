"""Tasks as processes of another Unix user: for a server that runs as root, and people who must not read each other's files.

The records of a job stay ours. The user may pass through the folders that lead to the task's own, which are handed over.
What that needs of root is in `runtime.rights`.
"""

from __future__ import annotations

import os

from ...runfolder import layout
from ...runfolder.careful_files import make_folders
from ...runtime import rights
from ..contract import EngineError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..contract import Attempt


class Owner:
    """A Unix user who is to have the tasks of an attempt."""

    def __init__(self, name: str) -> None:
        if os.geteuid() != 0:
            raise EngineError(f"tasks can run as Unix user {name} only if Pailot runs as root")
        try:
            self.user = rights.unix_user(name)
        except KeyError:
            raise EngineError(f"this machine has no Unix user {name}") from None
        self.name = name
        self.ids = (self.user.uid, self.user.gid)

    def give(self, folder: str) -> None:
        """Make a folder, in one that is ours, that is theirs alone."""
        parent = os.path.dirname(folder)
        if not os.path.isdir(parent):
            make_folders(parent)
            rights.let_pass(parent)
        try:
            os.mkdir(folder, rights.PRIVATE_MODE)
        except FileExistsError:
            pass
        rights.give(folder, self.user, rights.PRIVATE_MODE)

    def give_file(self, path: str) -> None:
        """A file in a folder of ours, for them to read and for no one else."""
        rights.give(path, self.user, 0o400)

    def hand_over(self, attempt: Attempt, works: Sequence[str]) -> None:
        """The working directories with all that is in them; then a way to these."""
        for work in dict.fromkeys(works):
            rights.give_tree(work, self.user)
        tasks = os.path.join(attempt.folder, layout.TASKS)
        for folder in (tasks, *(os.path.join(tasks, name) for name in os.listdir(tasks))):
            rights.let_pass(folder)
        attempts = os.path.dirname(attempt.folder)
        job = os.path.dirname(attempts)
        for folder in (attempt.context.home, os.path.dirname(job), job, attempts, attempt.checkpoints):
            rights.let_pass(folder)
        rights.let_pass(attempt.folder, self.user)  # last: only this user's group gets further
