"""What a killed shim may have left behind, as its task's folder tells."""

from __future__ import annotations

import os

from ..runfolder import layout
from ..runfolder.engine_records import ContainerRecord
from ..runfolder.records import CgroupRecord
from . import cgroups, processes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from .strays import FoundStrays


def clean_up(folder: str, *, wait: bool = True) -> None:
    """End and remove the control groups and the container of a task whose shim is gone; `wait` until that is done."""
    if not _is_original(folder):
        return
    group = CgroupRecord.read(os.path.join(folder, layout.CGROUP))
    if group is not None:
        cgroups.clean_up(group.folders)
    if os.path.exists(os.path.join(folder, layout.CONTAINER)):
        from . import container_shim

        container_shim.clean_up(folder, wait=wait)


def _is_original(folder: str) -> bool:
    """Whether this is the folder that the shim worked in: a copy of it names what may still be in use."""
    group, container = CgroupRecord.read(os.path.join(folder, layout.CGROUP)), ContainerRecord.of(folder)
    marks = {each.mark for each in (group, container) if each is not None and each.mark}
    try:
        return marks <= {processes.mark(os.path.join(folder, layout.CLAIM))}
    except OSError:
        return True  # never claimed


def clean_up_all(folders: Sequence[str]) -> FoundStrays:
    """`clean_up` of tasks whose driver is gone, too: their processes have no owner and are searched for."""
    from . import strays

    for folder in folders:
        clean_up(folder)
    return strays.end(os.path.join(folder, layout.CLAIM) for folder in folders)


def is_closed(folder: str) -> bool:
    """Whether the processes of a task cannot have left where `clean_up` ends them: a control group, or a container."""
    return any(os.path.exists(os.path.join(folder, name)) for name in (layout.CGROUP, layout.CONTAINER))
