"""Tasks as processes of another Unix user: for a server that runs as root, and people who must not read each other's files.

The records of a job stay ours. The user may pass through the folders that lead to the task's own, which are handed over.
"""

from __future__ import annotations

import os
import pwd

from ..base import EngineError
from .machine import which

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..base import Attempt


class Owner:
    """A Unix user who is to have the tasks of an attempt."""

    def __init__(self, name: str) -> None:
        if os.geteuid() != 0:
            raise EngineError(f"tasks can run as Unix user {name} only if Pailot runs as root")
        try:
            found = pwd.getpwnam(name)
        except KeyError:
            raise EngineError(f"this machine has no Unix user {name}") from None
        program = which("setpriv")
        if program is None:
            raise EngineError(f"to run tasks as Unix user {name}, install setpriv: sudo apt-get install util-linux")
        self.name = name
        self.ids = (found.pw_uid, found.pw_gid)
        self.wrapper = (
            program,
            f"--reuid={found.pw_uid}",
            f"--regid={found.pw_gid}",
            "--init-groups",
            "--inh-caps=-all",
            "--no-new-privs",
            "--",
        )
        """Words before `bash` that make the process theirs, for good."""

    def give(self, folder: str) -> None:
        """Make a folder, in one that is ours, that is theirs alone."""
        parent = os.path.dirname(folder)
        if not os.path.isdir(parent):
            os.makedirs(parent)
            _let_pass(parent)
        try:
            os.mkdir(folder, 0o700)
        except FileExistsError:
            pass
        held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            os.fchown(held, *self.ids)
            os.fchmod(held, 0o700)
        finally:
            os.close(held)

    def hand_over(self, attempt: Attempt, works: Sequence[str]) -> None:
        """The working directories with all that is in them; and a way to these."""
        for work in dict.fromkeys(works):
            for parent, folders, files in os.walk(work):
                for name in (*folders, *files):
                    os.chown(os.path.join(parent, name), *self.ids, follow_symlinks=False)
            os.chown(work, *self.ids)
            os.chmod(work, 0o700)
        job = os.path.dirname(os.path.dirname(attempt.folder))
        for folder in (attempt.home, os.path.dirname(job), job, os.path.dirname(attempt.folder), attempt.checkpoints):
            _let_pass(folder)
        os.chown(attempt.folder, 0, self.ids[1])  # nobody but this user's group gets further
        os.chmod(attempt.folder, 0o710)  # noqa: S103  # to pass through, not to look around


def _let_pass(folder: str) -> None:
    """Whoever knows what is below may go there; nobody can look around."""
    if folder and os.path.isdir(folder):
        os.chmod(folder, 0o711)  # noqa: S103  # as above
