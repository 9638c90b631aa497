"""Why an attempt stops: a file in its folder that is written before anybody is told, and never again."""

from __future__ import annotations

import os
import time

from .atomic_json import free_reserve, read_record, write_record


def claim_stop(folder: str, why: str, grace: float) -> str:
    """Write down why an attempt stops; the first one wins. Answers the reason that stands."""
    path = os.path.join(folder, "stop.json")
    temporary = f"{path}.{os.getpid()}.{os.urandom(4).hex()}"  # another node may have a process of our number
    record = {"why": why, "grace": grace, "at": time.time()}
    try:
        write_record(temporary, record)
    except OSError:
        free_reserve(folder)
        write_record(temporary, record)
    try:
        os.link(temporary, path)
    except FileExistsError:
        pass  # somebody was quicker
    os.unlink(temporary)
    standing = read_record(path)
    return str(standing["why"]) if standing else why
