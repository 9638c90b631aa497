"""Why an attempt stops: a file in its folder that is written before anybody is told, and never again."""

from __future__ import annotations

import os
import time

from . import layout
from .atomic_json import free_reserve, is_full, read_record, write_record


def claim_stop(folder: str, why: str, grace: float, *, from_reserve: bool = True) -> str:
    """Write down why an attempt stops; the first one wins. Returns the reason that stands.

    On a full disk the reserve of that folder is given up for it, if it may be.
    """
    path = os.path.join(folder, layout.STOP)
    temporary = f"{path}.{os.getpid()}.{os.urandom(4).hex()}"  # another node may have a process of our number
    record = {"why": why, "grace": grace, "at": time.time()}
    try:
        write_record(temporary, record)
    except OSError as error:
        if not is_full(error) or not from_reserve:
            raise
        free_reserve(folder)
        write_record(temporary, record)
    try:
        os.link(temporary, path)
    except FileExistsError:
        pass  # another process was quicker
    os.unlink(temporary)
    standing = read_record(path)
    return str(standing["why"]) if standing else why
