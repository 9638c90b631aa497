"""Tasks as processes of another Unix user: for a server that runs as root, and people who must not read each other's files.

The records of a job stay ours. The user may pass through the folders that lead to the task's own, which are handed over.
"""

from __future__ import annotations

import os
import pwd
from contextlib import contextmanager

from ..base import EngineError
from .machine import which

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ...data.ml_mounts import View
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

    def may_read(self, paths: Iterable[str]) -> None:
        """Refuse what the user could not read without our help; only for a process that may change its user for a moment."""
        with acting(self.name):
            for path in paths:
                try:
                    os.stat(path)
                except PermissionError:
                    raise EngineError(f"Unix user {self.name} may not read {path}") from None
                except OSError:
                    pass  # it is not there, which others say better

    def take(self, views: Iterable[View]) -> None:
        """What an instance has of its own, and the outputs. Of the inputs only folders: their files may be others', too."""
        for folder in dict.fromkeys(folder for view in views for folder in (view.own, view.shared)):
            for parent, folders, files in os.walk(folder):
                of_inputs = f"{parent}/".startswith(os.path.join(folder, "input/data/"))
                for name in (*folders, *(() if of_inputs else files)):
                    os.chown(os.path.join(parent, name), *self.ids, follow_symlinks=False)
            os.chown(folder, *self.ids)

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


@contextmanager
def acting(user: str) -> Iterator[None]:
    """Do something with the rights of a Unix user; with our own if there is none. The whole process changes."""
    if not user:
        yield
        return
    found = pwd.getpwnam(user)
    groups = os.getgroups()
    os.setgroups(os.getgrouplist(user, found.pw_gid))
    os.setegid(found.pw_gid)
    os.seteuid(found.pw_uid)
    try:
        yield
    finally:
        os.seteuid(os.getuid())
        os.setegid(os.getgid())
        os.setgroups(groups)


def _let_pass(folder: str) -> None:
    """Whoever knows what is below may go there; nobody can look around."""
    if folder and os.path.isdir(folder):
        os.chmod(folder, 0o711)  # noqa: S103  # as above
