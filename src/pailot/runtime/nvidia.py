"""What the GPUs of a task do, told by NVIDIA's management library (NVML), which comes with the driver.

The library is called as it is: `nvidia-ml-py` wraps the same functions, but is missing on a node to which only our code travels.
"""

from __future__ import annotations

import ctypes
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

LIBRARY = "libnvidia-ml.so.1"
MAX_DEVICES = 64
_MIB = 1 << 20


class _Utilization(ctypes.Structure):
    _fields_ = [("gpu", ctypes.c_uint), ("memory", ctypes.c_uint)]


class _Memory(ctypes.Structure):
    _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]


class Devices:
    """Some GPUs of this machine."""

    def __init__(self, library: Any, handles: Sequence[ctypes.c_void_p]) -> None:
        self._library, self._handles = library, tuple(handles)

    def measure(self) -> tuple[float | None, int]:
        """How busy they are, in percent of one GPU, and how many MiB of their memory are used; None where that is not told."""
        percent, used, told = 0, 0, False
        for handle in self._handles:
            busy, memory = _Utilization(), _Memory()
            if self._library.nvmlDeviceGetUtilizationRates(handle, ctypes.byref(busy)) == 0:
                percent, told = percent + busy.gpu, True
            if self._library.nvmlDeviceGetMemoryInfo(handle, ctypes.byref(memory)) == 0:
                used += memory.used // _MIB
        return (float(percent) if told else None), used


def opened(environment: Mapping[str, str], library: str = LIBRARY) -> Devices | None:
    """The GPUs that a task was given, by its variables; None where it has none or the driver does not tell about them."""
    names = given(environment)
    if not names:
        return None
    try:
        loaded = ctypes.CDLL(library)
        if loaded.nvmlInit_v2() != 0:
            return None
        handles = [handle for handle in (_handle(loaded, name) for name in names) if handle is not None]
    except (OSError, AttributeError):  # no driver, or one from before 2014
        return None
    return Devices(loaded, handles) if handles else None


def given(environment: Mapping[str, str]) -> list[str]:
    """Numbers or ids of the GPUs that a task may use.

    >>> given({"NVIDIA_VISIBLE_DEVICES": "GPU-ab,GPU-cd", "CUDA_VISIBLE_DEVICES": "0,1"})
    ['GPU-ab', 'GPU-cd']
    >>> given({"NVIDIA_VISIBLE_DEVICES": "void"}), given({"CUDA_VISIBLE_DEVICES": "2"})
    ([], ['2'])
    """
    named = environment.get("NVIDIA_VISIBLE_DEVICES", "")
    if named in ("void", "none"):
        return []
    if named in ("", "all"):
        named = environment.get("CUDA_VISIBLE_DEVICES", "")
    names = [name.strip() for name in named.split(",")][:MAX_DEVICES]
    return [name for name in names if re.fullmatch(r"[0-9]{1,4}|(GPU|MIG)-[-0-9A-Za-z/]{1,80}", name)]


def _handle(library: Any, name: str) -> ctypes.c_void_p | None:
    handle = ctypes.c_void_p()
    if name.isdecimal():
        found = library.nvmlDeviceGetHandleByIndex_v2(ctypes.c_uint(int(name)), ctypes.byref(handle))
    else:
        found = library.nvmlDeviceGetHandleByUUID(name.encode(), ctypes.byref(handle))
    return handle if found == 0 else None
