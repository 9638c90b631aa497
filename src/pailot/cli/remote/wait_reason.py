"""What a job on a server waits for, told to the one who waits for it."""

from __future__ import annotations

import json
import sys
from contextlib import contextmanager

from ...client.errors import WireError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from threading import Event as Flag

    from ...client.api import Client
    from ...client.sse import Event

WORTH_A_LINE = 1.0
"""Seconds: most jobs start sooner, and need no word."""


@contextmanager
def telling_why(client: Client, job: str, *, quiet: bool = False) -> Iterator[None]:
    """While the caller waits, a line on standard error whenever the job waits for something new.

    >>> with telling_why(client, "me~train"):
    ...     client.wait("me~train")
    """
    if quiet:
        yield
        return
    from threading import Event, Thread

    over = Event()
    Thread(target=_tell, args=(client, job, over), daemon=True).start()
    try:
        yield
    finally:
        over.set()


def _tell(client: Client, job: str, over: Flag) -> None:
    told: list[str] = []
    try:
        if over.wait(WORTH_A_LINE):
            return
        told = _look(client, job, over, told)
        for event in client.live(job):
            if over.is_set() or (event is not None and event.event == "end"):
                return
            if event is None or _says_waiting(event):
                told = _look(client, job, over, told)
    except WireError:
        return  # whoever waits for the job hears of it, too


def _says_waiting(event: Event) -> bool:
    return event.event == "job" and json.loads(event.data).get("state") == "WAITING"


def _look(client: Client, job: str, over: Flag, told: list[str]) -> list[str]:
    found = client.why(job)
    if found["state"] != "WAITING" or found["lines"] == told or over.is_set():
        return told
    for line in found["lines"]:
        print(f"pailot: {line}", file=sys.stderr, flush=True)
    return list(found["lines"])
