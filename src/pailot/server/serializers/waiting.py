"""Why a job waits, with what the queue knows: what is missing, which jobs hold it, the place in line."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ...jobserver.models import Holder
    from ...scheduling.queue import Reason

SHOWN_HOLDERS = 100


def waiting(reason: Reason, holder: Callable[[str], Holder | None]) -> dict[str, Any]:
    """The reason as JSON; `holder` finds the job of a name."""
    found = [holder(name) for name in reason.holders[:SHOWN_HOLDERS]]
    return {
        "kind": reason.kind,
        "text": reason.text,
        "missing": {_KEYS[name]: amount for name, amount in reason.missing.items()},
        "holders": [
            {
                "job": each.job,
                "user": each.user,
                "virtualCluster": each.virtual_cluster,
                "cpus": each.cpus,
                "memoryMB": each.memory_mb,
                "gpus": each.gpus,
                "since": None if each.since is None else int(each.since * 1000),
            }
            for each in found
            if each is not None
        ],
        "position": reason.position,
        "length": reason.length,
    }


_KEYS = {"cpu": "cpus", "memory_mb": "memoryMB", "gpu": "gpus"}
