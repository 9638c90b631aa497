"""Why a file of SQLite cannot be used, in words that say what helps."""

from __future__ import annotations

import errno
import os
import sqlite3

READ_ONLY = "cannot be written: it, or its folder, is read-only"
FULL = "the disk is full"
OF_SYSTEM = {errno.ENOSPC: FULL, errno.EROFS: READ_ONLY, errno.EACCES: READ_ONLY, errno.EPERM: READ_ONLY}
LOCKED = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL)
DAMAGED = (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT)


def reason(error: Exception, path: str, *, busy_seconds: float, damage: str, also_damage: tuple[int, ...] = ()) -> str:
    """What went wrong with the file at this path.

    `damage` is what to say of one that is damaged, with {} for SQLite's own words; `also_damage` are more codes that mean it.
    """
    if isinstance(error, BlockingIOError):
        return f"another process has been opening it for {busy_seconds:.0f} s"
    if isinstance(error, OSError):
        where = f" ({error.filename})" if error.filename not in (None, path) else ""
        return OF_SYSTEM.get(error.errno or 0, f"cannot be opened: {error.strerror}{where}")
    if isinstance(error, sqlite3.ProgrammingError):
        return "the store is closed" if "closed" in str(error) else f"cannot be asked ({error})"
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF
    if code in LOCKED:
        return f"other processes have kept it locked for {busy_seconds:.0f} s"
    if code == sqlite3.SQLITE_FULL:
        return FULL
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM):
        return READ_ONLY
    if code in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN):
        folder = os.path.dirname(path) or "."
        try:
            if os.statvfs(folder).f_bavail == 0:
                return FULL
        except OSError:
            pass  # there is no such folder: it is told below
        if not os.access(folder, os.W_OK) or (os.path.exists(path) and not os.access(path, os.R_OK | os.W_OK)):
            return READ_ONLY
    if code in (*DAMAGED, *also_damage):
        return damage.format(error)
    return f"cannot be read or written ({error})"
