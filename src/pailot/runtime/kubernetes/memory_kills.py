"""The shim of a task in a pod: whether the kernel killed something of it for memory is counted in the container's own group."""

from __future__ import annotations

from ..shim import Shim

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

COUNTERS = ("/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control")
"""Of the newer and of the older kind of control groups."""


class PodShim(Shim):
    """The limits of a task are those of its container, which the cluster has set."""

    kills_before = 0

    def _run_phases(self, environment: dict[str, str], group: Any) -> Any:
        self.kills_before = kills()
        return super()._run_phases(environment, group)

    def _out_of_memory(self, _group: Any) -> bool:
        return kills() > self.kills_before


def kills() -> int:
    """How often the kernel has killed a process of this container for want of memory; 0 where that is not told."""
    for path in COUNTERS:
        try:
            with open(path) as stream:
                counted = dict(line.split() for line in stream if len(line.split()) == 2)
        except OSError:
            continue
        return int(counted.get("oom_kill", 0))
    return 0
