"""`teamwise_storage`: deprecated in OpenPAI; the planner turns it into the job's storages."""

from __future__ import annotations

from .plugin_api import Steps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def plugin(*, callbacks: Any = (), **_: Any) -> Steps:
    """Nothing runs in the task: storages are mounts."""
    return Steps(tuple(callbacks), notes=("in a prerequisite it has no effect; name storages in extras.storages",))
