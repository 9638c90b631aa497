"""GPUs of this machine, each given to one run at a time.

That a task uses only its own is a convention (CUDA_VISIBLE_DEVICES): a process could change the variable.
"""

from __future__ import annotations

import os
import select

from ...settings import BadSetting, Settings
from ...values import Value
from ..contract import EngineError
from .machine import MachineError, MachineLocks, open_shared, which

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

QUERY = ("--query-gpu=index,uuid,name,memory.total", "--format=csv,noheader,nounits")
TIMEOUT_SECONDS = 10
_GUARD = 1 << 30  # locked while GPUs are handed out, so that two runs do not each take half
_LONGEST_NAME = 200


class Gpu(Value):
    """One GPU; `index` is its place on the PCI bus, as nvidia-smi counts."""

    index: int
    uuid: str = ""
    name: str = ""
    memory_mb: int = 0


class GpusBusy(EngineError):
    """Too many GPUs are held by other runs; `holders` names them."""

    def __init__(self, holders: str) -> None:
        super().__init__(holders)
        self.holders = holders


class TooFewGpus(EngineError):
    """This machine will never have that many GPUs."""


def discover(setting: str = "") -> tuple[Gpu, ...]:
    """The GPUs that jobs may use, as the setting `gpus` says.

    `auto` asks nvidia-smi and heeds our own CUDA_VISIBLE_DEVICES; `none` and 0 mean none; a number declares that many
    without looking; a list of indexes or UUIDs (one alone ends with a comma) chooses among those that are there, or
    declares them where nvidia-smi is not. INDEX:NAME declares one of a type.
    """
    setting = setting.strip() or str(Settings()["gpus"])
    if setting == "auto":
        found = _ask()
        visible = os.environ.get("CUDA_VISIBLE_DEVICES")
        return found if visible is None else _visible(found, visible)
    if setting == "none":
        return ()
    if setting.isascii() and setting.isdecimal():
        return tuple(Gpu(index) for index in range(int(setting)))
    words = [word.strip() for word in setting.split(",") if word.strip()]
    found = () if ":" in setting else _ask()
    chosen = []
    for word in words:
        index, colon, name = word.partition(":")
        if colon and index.isascii() and index.isdecimal() and name:
            chosen.append(Gpu(int(index), name=name))
            continue
        gpu = _named(found, word) or (Gpu(int(word)) if not found and word.isascii() and word.isdecimal() else None)
        if gpu is None:
            here = ", ".join(f"{gpu.index} ({gpu.uuid})" for gpu in found) or "none"
            raise BadSetting(f"gpus: should be auto, none, a number or a list; there is no GPU {word!r} here, but: {here}")
        chosen.append(gpu)
    return tuple(dict.fromkeys(chosen))


def of_type(found: Sequence[Gpu], wanted: str) -> tuple[Gpu, ...]:
    """Those whose name holds a type, in whole words: 'A10' is in 'NVIDIA A10' and not in 'A100', 'RTX3090' in 'RTX 3090'."""
    text = "".join(_words(wanted))
    chosen = []
    for gpu in found:
        words = _words(gpu.name)
        if any(text == "".join(words[start:end]) for start in range(len(words)) for end in range(start + 1, len(words) + 1)):
            chosen.append(gpu)
    return tuple(chosen)


def _words(text: str) -> list[str]:
    return "".join(c if c.isalnum() else " " for c in text.lower()).split()


class Released:
    """Says that a GPU was given back: `fileno` is readable from then on. Closed at the end of a `with`."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._watched: list[int] = []
        self._set = False

    def watch(self, sign: int) -> None:
        """Look at the writing end of a pipe whose readers are the holders of a GPU."""
        self._watched.append(sign)
        self._epoll.register(sign, 0)  # an error comes when the last reader is gone

    def set(self) -> None:
        self._set = True

    def is_set(self) -> bool:
        return self._set or bool(self._epoll.poll(0))

    def fileno(self) -> int:
        return self._epoll.fileno()

    def __enter__(self) -> Released:
        return self

    def __exit__(self, *_: object) -> None:
        for descriptor in self._watched:
            os.close(descriptor)
        self._epoll.close()


class Gpus:
    """The GPUs of one run, its own until this object and its copies in forked children are gone.

    Take GPUs before forking, since a child shares the locks of its parent.
    """

    def __init__(self, found: Sequence[Gpu], holder: str) -> None:
        self.found, self.holder = tuple(found), holder
        self.held: tuple[Gpu, ...] = ()
        self._busy: tuple[Gpu, ...] = ()
        self._opened: MachineLocks | None = None
        self._signs: list[int] = []

    @property
    def descriptors(self) -> tuple[int, ...]:
        """What a forked child must keep open for the GPUs to stay its own."""
        return ((self._opened.descriptor,) if self._opened else ()) + tuple(self._signs)

    def take(self, count: int) -> tuple[Gpu, ...]:
        """As many GPUs, or GpusBusy and none."""
        if count <= 0:
            return ()
        self._busy = ()
        free = [gpu for gpu in self.found if gpu not in self.held]
        if count > len(free):
            raise TooFewGpus(f"{'1 GPU is' if count == 1 else f'{count} GPUs are'} needed, but there are only {len(free)}")
        locks = self._locks()
        locks.wait(_GUARD)
        try:
            taken: list[Gpu] = []
            for gpu in free:
                if len(taken) < count and locks.take(gpu.index):
                    taken.append(gpu)
            if len(taken) < count:
                for gpu in taken:
                    locks.give_back(gpu.index)
                self._busy = tuple(gpu for gpu in free if gpu not in taken)
                raise GpusBusy(_holders(self._busy))
            for gpu in taken:
                self._sign(gpu)
        finally:
            locks.give_back(_GUARD)
        self.held += tuple(taken)
        return tuple(taken)

    def released(self) -> Released:
        """A sign that is set once one of the GPUs that were busy is given back."""
        locks = self._locks()
        busy = self._busy or tuple(gpu for gpu in self.found if gpu not in self.held and locks.is_taken(gpu.index))
        sign = Released()
        for gpu in busy:
            if not locks.is_taken(gpu.index):
                sign.set()
                break
            try:
                sign.watch(open_shared(_sign_name(gpu), os.O_WRONLY, fifo=True))
            except OSError:  # no reader: its holder is just ending
                locks.wait(gpu.index)
                locks.give_back(gpu.index)
                sign.set()
                break
        if not busy:
            sign.set()
        return sign

    def close(self) -> None:
        """Let the GPUs go, unless a forked child still has them."""
        if self._opened is not None:
            self._opened.close()
            self._opened = None
        for descriptor in self._signs:
            os.close(descriptor)
        self._signs.clear()
        self.held = ()

    def _locks(self) -> MachineLocks:
        if self._opened is None:
            self._opened = MachineLocks("gpus")
        return self._opened

    def _sign(self, gpu: Gpu) -> None:
        """Say who has it, and hold the FIFO whose writers learn when we are gone."""
        descriptor = open_shared(f"gpu-{gpu.index}.holder", os.O_WRONLY)
        try:
            os.ftruncate(descriptor, 0)
            os.write(descriptor, self.holder.encode()[:_LONGEST_NAME])
        finally:
            os.close(descriptor)
        self._signs.append(open_shared(_sign_name(gpu), os.O_RDONLY, fifo=True))


def variables(gpus: Iterable[Gpu]) -> dict[str, str]:
    """What a task with these GPUs is told. Always set it: without the variable, CUDA uses all."""
    given = tuple(gpus)
    return {
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "CUDA_VISIBLE_DEVICES": ",".join(str(gpu.index) for gpu in given),
        "NVIDIA_VISIBLE_DEVICES": ",".join(gpu.uuid or str(gpu.index) for gpu in given) or "void",
    }


def _sign_name(gpu: Gpu) -> str:
    return f"gpu-{gpu.index}.fifo"


def _holders(busy: Sequence[Gpu]) -> str:
    """'GPU 0 and 1 are held by ann~train, GPU 2 is held by bob~test'."""
    by_holder: dict[str, list[str]] = {}
    for gpu in busy:
        by_holder.setdefault(_holder(gpu), []).append(str(gpu.index))
    parts = [
        f"GPU {indexes[0]} is held by {holder}"
        if len(indexes) == 1
        else f"GPU {', '.join(indexes[:-1])} and {indexes[-1]} are held by {holder}"
        for holder, indexes in by_holder.items()
    ]
    return ", ".join(parts)


def _holder(gpu: Gpu) -> str:
    try:
        descriptor = open_shared(f"gpu-{gpu.index}.holder", os.O_RDONLY)
    except MachineError:
        return "another run"
    try:
        text = os.read(descriptor, _LONGEST_NAME).decode("utf-8", "replace")
    finally:
        os.close(descriptor)
    return "".join(c for c in text if c.isprintable()) or "another run"  # anybody may have written it


def _visible(found: Sequence[Gpu], setting: str) -> tuple[Gpu, ...]:
    """As CUDA reads the variable: in its order, up to the first that is not there."""
    chosen: dict[Gpu, None] = {}
    for word in setting.split(","):
        gpu = _named(found, word.strip())
        if gpu is None:
            break
        chosen[gpu] = None
    return tuple(chosen)


def _named(found: Sequence[Gpu], word: str) -> Gpu | None:
    """The GPU with this index or UUID; the start of a UUID is enough if no other starts so."""
    if word.isascii() and word.isdecimal():
        return next((gpu for gpu in found if gpu.index == int(word)), None)
    matching = [gpu for gpu in found if word.startswith("GPU-") and gpu.uuid.startswith(word)]
    return matching[0] if len(matching) == 1 else None


def _ask() -> tuple[Gpu, ...]:
    program = which("nvidia-smi")
    if program is None:
        return ()
    import subprocess

    asked = subprocess.Popen([program, *QUERY], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        answer, _ = asked.communicate(timeout=TIMEOUT_SECONDS)
    except subprocess.TimeoutExpired:
        asked.kill()
        assert asked.stdout is not None
        asked.stdout.close()
        try:
            asked.wait(1)
        except subprocess.TimeoutExpired:
            pass  # stuck in its driver; it cannot be ended
        words = f"{program} does not answer within {TIMEOUT_SECONDS} seconds"
        raise MachineError(f"{words}; is the driver well? PAILOT_GPUS=none runs without GPUs") from None
    if asked.returncode != 0:
        return ()  # no driver, or no device
    gpus = []
    for line in answer.decode("utf-8", "replace").splitlines():
        index, _, rest = line.partition(",")
        uuid, _, rest = rest.partition(",")
        name, _, memory = rest.rpartition(",")
        if index.strip().isdecimal():
            size = memory.strip()  # '[N/A]' where GPU and CPU share it
            gpus.append(Gpu(int(index), uuid.strip(), name.strip(), int(size) if size.isdecimal() else 0))
    return tuple(gpus)
