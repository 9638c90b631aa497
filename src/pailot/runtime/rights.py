"""All that Pailot does with the rights of root for tasks of another Unix user; control groups (`cgroups`) are the rest of it.

Nothing else in the house changes the user of a process or the owner of a file. Folders and files are given away by descriptor,
without following links, from the innermost outwards: a folder changes its owner only after all that is in it.
"""

from __future__ import annotations

import os
import pwd
import stat

from ..values import Value
from . import processes

_PR_SET_NO_NEW_PRIVS = 38
_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL = 47, 4
PRIVATE_MODE = 0o700
WAY_MODE = 0o711
"""Of a folder on the way to a user's own: others may enter what they know the name of, and cannot list it."""
OWN_WAY_MODE = 0o710
"""The same for the user's group alone."""


class UnixUser(Value):
    """A user of this machine, by numbers: looking names up takes files and services that a child may no longer have."""

    name: str
    uid: int
    gid: int
    groups: tuple[int, ...]


def unix_user(name: str) -> UnixUser:
    """The user of that name; KeyError where there is none."""
    found = pwd.getpwnam(name)
    return UnixUser(name, found.pw_uid, found.pw_gid, tuple(os.getgrouplist(name, found.pw_gid)))


def become(user: UnixUser) -> None:
    """Make this process, which must be root's and have one thread, the user's for good."""
    processes.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL)  # as root: the user may not be able to read our Python
    alone = processes.prctl(_PR_SET_NO_NEW_PRIVS, 1) == 0
    os.setgroups(user.groups)
    os.setresgid(user.gid, user.gid, user.gid)
    os.setresuid(user.uid, user.uid, user.uid)
    if not alone or os.getresuid() != (user.uid,) * 3 or os.getresgid() != (user.gid,) * 3:
        raise PermissionError(f"this process cannot become Unix user {user.name}")


def give(path: str, user: UnixUser, mode: int) -> None:
    """Give one file or folder to the user; it must lie in a folder of ours and be no link."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISDIR(os.fstat(descriptor).st_mode) and os.fstat(descriptor).st_nlink > 1:
            raise PermissionError(f"{path} has another name, so it is not given away")
        os.fchmod(descriptor, mode)
        os.fchown(descriptor, user.uid, user.gid)
    finally:
        os.close(descriptor)


def give_open(descriptor: int, user: UnixUser) -> None:
    """Give away what we have made and hold open."""
    os.fchown(descriptor, user.uid, user.gid)


def give_tree(folder: str, user: UnixUser) -> None:
    """Give a folder to the user with all that is in it."""
    for _, folders, files, descriptor in os.fwalk(folder, topdown=False, follow_symlinks=False):
        for name in (*folders, *files):
            os.chown(name, user.uid, user.gid, dir_fd=descriptor, follow_symlinks=False)
    give(folder, user, PRIVATE_MODE)


def let_pass(folder: str, user: UnixUser | None = None) -> None:
    """Open the way through a folder of ours: for everybody, or for the group of one user."""
    descriptor = os.open(os.path.realpath(folder), os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if user is not None:
            os.fchown(descriptor, -1, user.gid)
        os.fchmod(descriptor, WAY_MODE if user is None else OWN_WAY_MODE)
    finally:
        os.close(descriptor)
