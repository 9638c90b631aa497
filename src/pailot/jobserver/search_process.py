"""The process that tries a stranger's regular expression on logs: it may take for ever, and is ended when its time is up."""

from __future__ import annotations

import json
import os
import resource
import signal
import time

from ..runfolder.log_search import BadPattern, Hit, Wanted, search
from ..runtime.processes import end_with_parent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

MODULE = "pailot.jobserver.search_process"
_MEMORY_BYTES = 1 << 30


def main(descriptor: int) -> None:
    """Read the order, then write a line of JSON for each hit, or one with an `error`; at last one with `stopped`."""
    with open(descriptor, encoding="utf-8") as stream:
        order: dict[str, Any] = json.load(stream)
    end_with_parent(signal.SIGKILL, order["parent"])
    os.nice(10)
    seconds = int(order["seconds"]) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        _search(order)
    except (BadPattern, MemoryError) as error:
        _say(error=str(error) or "the regular expression needs too much memory")
    except BrokenPipeError:
        pass  # the caller does not wait any more


def _search(order: Mapping[str, Any]) -> None:
    until = time.monotonic() + order["seconds"]
    count = looked_at = 0
    found = search(order["folder"], order["roles"], Wanted.from_json(order["wanted"]))
    _say(begun=True)
    stopped = ""
    for step in found:
        if isinstance(step, Hit):
            if count == order["limit"]:
                stopped = "limit"
                break
            count += 1
            _say(**step.to_json())
        else:
            looked_at += step
            if time.monotonic() > until:
                stopped = "time"
                break
    _say(stopped=stopped, bytes=looked_at)


def _say(**words: Any) -> None:
    data = json.dumps(words).encode() + b"\n"
    while data:
        data = data[os.write(1, data) :]
