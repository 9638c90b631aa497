"""What a killed shim may have left behind, as its task's folder tells."""

from __future__ import annotations

import os

from . import cgroups


def clean_up(folder: str, *, wait: bool = True) -> None:
    """End and remove the control groups and the container of a task whose shim is gone; `wait` until that is done."""
    cgroups.clean_up(folder)
    if os.path.exists(os.path.join(folder, "container.json")):
        from . import container_shim

        container_shim.clean_up(folder, wait=wait)
