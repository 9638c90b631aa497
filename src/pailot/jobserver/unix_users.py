"""Whose processes the tasks of a user are: the server's own, or, if that is root, those of a Unix user."""

from __future__ import annotations

import os
import pwd
import sys

from .errors import Invalid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

SAME = "same"


class UnixUsers:
    """The setting `unix_users`: empty for none, `same`, or a list of `user=unixuser`; an account's own entry wins."""

    def __init__(self, setting: str, of_account: Callable[[str], str | None]) -> None:
        self.same = setting.strip() == SAME
        pairs = [] if self.same else [part.partition("=") for part in setting.split(",") if part.strip()]
        self.table = {name.strip(): unix.strip() for name, _, unix in pairs}
        self.active = self.same or bool(self.table)
        self._of_account = of_account

    def of(self, user: str) -> str:
        """The Unix user, or nothing for the server's own."""
        if not self.active:
            return ""
        return self._of_account(user) or self.table.get(user) or (user if self.same else "")

    def owner(self, user: str) -> str | None:
        """The same for who wants to know who shares one: None for a user who has none, and so no tasks."""
        name = self.of(user)
        if not self.active or not name:
            return None if self.active else ""

        try:
            return "" if pwd.getpwnam(name).pw_uid == os.geteuid() else name
        except KeyError:
            return None

    def check(self, user: str) -> None:
        """Refuse a job that could not be started as its Unix user."""
        if not self.active:
            return
        name = self.of(user)
        if not name:
            raise Invalid(f"user {user} has no Unix user on this machine (setting unix_users): an administrator can give one")

        try:
            found = pwd.getpwnam(name)
        except KeyError:
            raise Invalid(f"the tasks of {user} are to run as Unix user {name}, whom this machine does not know") from None
        if found.pw_uid == 0 and self.table.get(user) != name:  # the settings may name it; an account may not
            raise Invalid(f"the tasks of {user} are to run as Unix user {name}, which only the setting unix_users itself can say")
        if os.geteuid() != 0 and found.pw_uid != os.geteuid():
            raise Invalid(f"the tasks of {user} are to run as Unix user {name}, but the server does not run as root")

    def environment(self, name: str, base: Mapping[str, str]) -> dict[str, str]:
        """The variables of a task before its job adds to them."""
        if not name:
            return dict(base)

        found = pwd.getpwnam(name)
        return {**base, "HOME": found.pw_dir, "USER": name, "LOGNAME": name, "SHELL": "/bin/bash"}


def task_environment() -> dict[str, str]:
    """What every task of a server begins with: nothing of the server's own but the way to programs and its language."""
    try:
        me = pwd.getpwuid(os.geteuid())
        home, name = me.pw_dir, me.pw_name
    except KeyError:
        home, name = "/", f"uid{os.geteuid()}"
    kept = {key: os.environ[key] for key in ("PATH", "LANG", "LC_ALL", "TZ", "LD_LIBRARY_PATH", "CUDA_HOME") if key in os.environ}
    return {"PATH": os.defpath, "LANG": "C.UTF-8", **kept, "HOME": home, "USER": name, "LOGNAME": name, "SHELL": "/bin/bash"}


def closed_python(users: UnixUsers) -> str:
    """What to tell an administrator whose Python other users cannot read; nothing where all is well.

    Tasks need none of it. A child that fetches or publishes as another user has loaded what it needs before, but a driver
    for S3 or another store may load more of itself later.
    """
    if not users.active or os.geteuid() != 0:
        return ""
    for place in (sys.prefix, sys.base_prefix, os.path.dirname(__file__)):
        folder = os.path.realpath(place)
        while folder != "/":
            if not os.stat(folder).st_mode & 0o001:
                return (
                    f"other users cannot read this server's Python below {folder} (unix_users is set): tasks run, but data that "
                    f"needs a driver may not be fetched as their user; install Pailot elsewhere, or: chmod o+x {folder}"
                )
            folder = os.path.dirname(folder)
    return ""
