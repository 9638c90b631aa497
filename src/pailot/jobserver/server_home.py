"""The folder of a server: its lock, and where its store is."""

from __future__ import annotations

import fcntl
import os

from .errors import Conflict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..settings import Settings

LOCK = "server.lock"
DATABASE = "server.db"


def take_lock(home: str) -> int:
    """The lock of a home: one server at a time."""
    descriptor = os.open(os.path.join(home, LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        pid = os.read(descriptor, 32).decode("ascii", "replace").strip()
        os.close(descriptor)
        raise Conflict(f"another server (process {pid}) has {home} already; stop it, or choose another PAILOT_HOME") from None
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, str(os.getpid()).encode(), 0)
    return descriptor


def database(settings: Settings) -> str:
    """Where the store is: the setting `database`, or a file in the home."""
    return str(settings["database"] or os.path.join(settings.home, DATABASE))


def data_folder(settings: Settings) -> str:
    """Where data sets lie that all jobs share; empty where tasks are Unix users' and no user fetches for all of them.

    What a job's own Unix user has fetched is never shown to others, nor what a user's own runs have, nor, once the server's
    credentials are used no more, what was fetched with them.
    """
    kind = "server-credentials" if settings["storage_credentials"] else "server"
    if not settings["unix_users"]:
        return os.path.join(settings.data_folder, kind)
    if not settings["data_cache_user"]:
        return ""
    return os.path.join(settings.data_folder if settings["data_cache"] else os.path.join(settings.home, "cache", "data"), kind)
