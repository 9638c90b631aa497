"""GPUs of this machine, each given to one run at a time."""

from __future__ import annotations

import os

from ...values import Value
from ..base import EngineError
from .machine import locks_folder, open_shared
from .ports import lock_byte, unlock_byte

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


class Gpu(Value):
    index: int
    uuid: str
    name: str = ""
    memory_mb: int = 0


class GpusBusy(EngineError):
    """Others hold the GPUs; `holders` names them."""

    def __init__(self, holders: str) -> None:
        super().__init__(holders)
        self.holders = holders


def discover(setting: str) -> tuple[Gpu, ...]:
    """The GPUs jobs may use: found with nvidia-smi, or declared as a number or a list of indexes."""
    if setting.isdecimal():
        return tuple(Gpu(index, f"GPU-declared-{index}") for index in range(int(setting)))
    if setting not in ("", "auto"):
        return tuple(Gpu(int(word), f"GPU-declared-{word.strip()}") for word in setting.split(",") if word.strip().isdecimal())
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    found = _ask_nvidia_smi()
    if visible is None:
        return found
    by_name = {str(gpu.index): gpu for gpu in found} | {gpu.uuid: gpu for gpu in found}
    chosen = []
    for word in visible.split(","):
        if word.strip() not in by_name:
            break  # CUDA stops at the first that is not there, too
        chosen.append(by_name[word.strip()])
    return tuple(chosen)


class Gpus:
    """The GPUs of one run."""

    def __init__(self, found: Sequence[Gpu], holder: str) -> None:
        self.found, self.holder = tuple(found), holder
        self.descriptor = open_shared("gpus")

    def take(self, count: int) -> tuple[Gpu, ...]:
        """So many GPUs, or none of them."""
        taken: list[Gpu] = []
        for gpu in self.found:
            if len(taken) < count and lock_byte(self.descriptor, gpu.index):
                taken.append(gpu)
        if len(taken) < count:
            for gpu in taken:
                unlock_byte(self.descriptor, gpu.index)
            raise GpusBusy(", ".join(sorted({_holder(gpu.index) for gpu in self.found if gpu not in taken})))
        for gpu in taken:
            with open(_holder_file(gpu.index), "w", opener=lambda path, flags: os.open(path, flags, 0o666)) as stream:
                stream.write(self.holder)
        return tuple(taken)

    def wait_for_one(self) -> None:
        """Until a busy GPU is given back."""
        busy = next((gpu for gpu in self.found if not lock_byte(self.descriptor, gpu.index)), None)
        for gpu in self.found:
            if gpu is not busy:
                unlock_byte(self.descriptor, gpu.index)
        if busy is not None:
            lock_byte(self.descriptor, busy.index, wait=True)
            unlock_byte(self.descriptor, busy.index)

    def close(self) -> None:
        os.close(self.descriptor)


def variables(gpus: Sequence[Gpu]) -> dict[str, str]:
    """Always set: an unset variable would mean all GPUs."""
    return {
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "CUDA_VISIBLE_DEVICES": ",".join(str(gpu.index) for gpu in gpus),
        "NVIDIA_VISIBLE_DEVICES": ",".join(gpu.uuid for gpu in gpus) or "void",
    }


def _ask_nvidia_smi() -> tuple[Gpu, ...]:
    from shutil import which

    program = which("nvidia-smi")
    if program is None:
        return ()
    import subprocess

    query = [program, "--query-gpu=index,uuid,name,memory.total", "--format=csv,noheader,nounits"]
    try:
        text = subprocess.run(query, capture_output=True, text=True, timeout=10, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return ()
    gpus = []
    for line in text.splitlines():
        parts = [part.strip() for part in line.split(",")]
        if len(parts) == 4 and parts[0].isdecimal():
            gpus.append(Gpu(int(parts[0]), parts[1], parts[2], int(parts[3]) if parts[3].isdecimal() else 0))
    return tuple(gpus)


def _holder_file(index: int) -> str:
    return os.path.join(locks_folder(), f"gpu-{index}.holder")


def _holder(index: int) -> str:
    try:
        with open(_holder_file(index)) as stream:
            return f"GPU {index} is held by {stream.read().strip()}"
    except OSError:
        return f"GPU {index} is held by another run"
