"""The folders that tasks of a job share, laid out as /ml is in Alibaba's PAI.

Inside a sandbox they really are /ml; without one the same layout stands in the attempt's folder. The variables tell.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...protocol.model import Channels

INSIDE = "/ml"


def make(channels: Channels, folder: str) -> None:
    """The layout: code, configuration, a folder for each channel."""
    for part in (
        "usercode",
        "input/config",
        *(f"input/data/{each}" for each in channels.inputs),
        *(f"output/{each}" for each in channels.outputs),
    ):
        os.makedirs(os.path.join(folder, part), exist_ok=True)


def variables(channels: Channels, base: str) -> dict[str, str]:
    """Where a task finds them; `base` is /ml or the folder that stands for it."""
    found = {"PAI_WORKING_DIR": f"{base}/usercode/", "PAI_CONFIG_DIR": f"{base}/input/config/"}
    for kind, names, place in (("INPUT", channels.inputs, "input/data"), ("OUTPUT", channels.outputs, "output")):
        for name in names:
            spelled = "".join(c if c.isascii() and c.isalnum() else "_" for c in name).upper()
            found[f"PAI_{kind}_{spelled}"] = f"{base}/{place}/{name}/"
    return found
