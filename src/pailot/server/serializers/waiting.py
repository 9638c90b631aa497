"""Why a job waits, with what the queue knows: what is missing, which jobs hold it, the place in line."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ...jobserver.models import Holder
    from ...scheduling.requests import Reason

SHOWN_HOLDERS = 100


def waiting(reason: Reason, holder: Callable[[str], Holder | None]) -> dict[str, object]:
    """The reason as JSON; `holder` finds the job of a name."""
    found = [holder(name) for name in reason.holders[:SHOWN_HOLDERS]]
    return {
        "kind": reason.kind,
        "text": reason.text,
        "missing": {_KEYS[name]: amount for name, amount in reason.missing.items()},
        "holders": [holder_json(each) for each in found if each is not None],
        "position": reason.position,
        "length": reason.length,
    }


def holder_json(holder: Holder) -> dict[str, object]:
    """A job with what it holds or asks for."""
    return {
        "job": holder.job,
        "user": holder.user,
        "virtualCluster": holder.virtual_cluster,
        "cpus": holder.cpus,
        "memoryMB": holder.memory_mb,
        "gpus": holder.gpus,
        "since": None if holder.since is None else int(holder.since * 1000),
    }


_KEYS = {"cpu": "cpus", "memory_mb": "memoryMB", "gpu": "gpus"}
