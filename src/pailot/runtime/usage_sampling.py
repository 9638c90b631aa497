"""What a task uses, measured every few seconds by its shim: from its control group where it has one, else from /proc.

The shim loads this module when the task has run for some seconds; a short task pays nothing.
"""

from __future__ import annotations

import os
import resource

from ..runfolder.usage import Peak, Sample, append, cpus
from ..values import Value
from . import processes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE_KB = os.sysconf("SC_PAGE_SIZE") // 1024
_KB = 1024


class Measured(Value):
    """What the processes of a task use at one moment."""

    cpu_seconds: float
    """Since they began; of those that have ended, too."""
    memory_kb: int
    processes: int


class ControlGroup:
    """A control group: the files of either version that tell what is used in it."""

    def __init__(self, folders: Iterable[str]) -> None:
        folders = tuple(folders)
        self._cpu = _first(folders, "cpuacct.usage") or _first(folders, "cpu.stat")
        self._memory = _first(folders, "memory.current") or _first(folders, "memory.usage_in_bytes")
        self._members = _first(folders, "pids.current") or _first(folders, "cgroup.procs")

    def cpu_seconds(self) -> float | None:
        """Processor time of all processes that are or were in it; None where the kernel does not count it here."""
        text = _read(self._cpu)
        if self._cpu.endswith("cpuacct.usage"):
            return int(text) / 1e9 if text.strip().isdecimal() else None
        used = _entry(text, "usage_usec")  # the file of version 1 has none
        return None if used is None else used / 1e6

    def memory_kb(self) -> int | None:
        """Memory without the part of the file cache that the kernel would drop first; None where it is not counted here."""
        text = _read(self._memory)
        if not text.strip().isdecimal():
            return None
        stat = _read(os.path.join(os.path.dirname(self._memory), "memory.stat"))
        cache = _entry(stat, "total_inactive_file")
        if cache is None:
            cache = _entry(stat, "inactive_file") or 0
        return max(0, int(text) - cache) // _KB

    def processes(self) -> int | None:
        if not self._members:
            return None
        words = _read(self._members).split()
        return int(words[0]) if self._members.endswith("pids.current") and words else len(words)


def measure(pids: Callable[[], Sequence[int]], group: ControlGroup | None, ended_cpu_seconds: float) -> Measured:
    """What a task uses now. `pids` lists its processes, and is asked only for what its control group does not tell.

    `ended_cpu_seconds` is the processor time of those that were collected by this process.
    """
    cpu = group.cpu_seconds() if group else None
    memory = group.memory_kb() if group else None
    members = group.processes() if group else None
    if cpu is not None and memory is not None and members is not None:
        return Measured(cpu, memory, members)
    found = pids()
    if cpu is None:
        cpu = ended_cpu_seconds + sum(map(_cpu_seconds, found))
    return Measured(cpu, _memory_kb(found) if memory is None else memory, len(found))


class Sampler:
    """Takes samples of one task and keeps them in its folder, over all its attempts."""

    def __init__(self, folder: str, environment: Mapping[str, str]) -> None:
        self._folder = folder
        self._last: Sample | None = None
        self.peak = Peak()
        self._gpus = None
        if os.path.exists("/dev/nvidiactl"):
            from . import nvidia

            self._gpus = nvidia.opened(environment)

    def take(self, attempt: int, began: float, now: float, measured: Measured) -> None:
        """Keep what was measured in an attempt that began at some time. A disk that is full costs the sample, not the task."""
        new: list[Sample] = []
        if self._last is None or self._last.attempt != attempt:
            self._last = Sample(began, attempt, 0.0, 0, 0, 0, peak=self.peak)
            new.append(self._last)
        percent, gpu_memory = self._gpus.measure() if self._gpus else (None, 0)
        before = self._last
        used = max(before.cpu_seconds, measured.cpu_seconds)  # the time of a process is lost if its parent ignores SIGCHLD
        sample = Sample(now, attempt, used, measured.memory_kb, measured.memory_kb, measured.processes, percent, gpu_memory)
        self.peak = Peak(
            max(self.peak.cpus, cpus(before, sample)),
            max(self.peak.memory_kb, measured.memory_kb),
            max(self.peak.gpu_memory_mb, gpu_memory),
        )
        self._last = sample.replace(peak=self.peak)
        self._keep([*new, self._last])

    def finish(self, attempt: int, now: float, cpu_seconds: float | None, largest_kb: int) -> float | None:
        """The end of an attempt: a last sample, if there was one before. Returns the processor time of the attempt.

        `largest_kb` is the memory of the largest process that was collected: a peak between two samples.
        """
        last = self._last
        if last is None or last.attempt != attempt:
            return cpu_seconds
        used = max(last.cpu_seconds, cpu_seconds or 0.0)
        # Linux has a process begin with the maximum of the one that started it: up to ours it says nothing of the task.
        inherited = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        most = largest_kb if largest_kb > max(self.peak.memory_kb, inherited) else last.memory_kb
        end = last.replace(at=max(now, last.at), cpu_seconds=used, memory_max_kb=most, processes=0)
        self.peak = Peak(max(self.peak.cpus, cpus(last, end)), max(self.peak.memory_kb, most), self.peak.gpu_memory_mb)
        self._keep([end.replace(peak=self.peak)])
        return used

    def _keep(self, samples: Sequence[Sample]) -> None:
        try:
            append(self._folder, samples)
        except OSError:
            pass  # the next one may find room


def _first(folders: Iterable[str], name: str) -> str:
    paths = (os.path.join(folder, name) for folder in folders)
    return next((path for path in paths if os.path.exists(path)), "")


def _read(path: str) -> str:
    """A small file of the kernel; empty where it is gone."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        return os.read(descriptor, 1 << 18).decode("ascii", "replace")
    except OSError:
        return ""
    finally:
        os.close(descriptor)


def _entry(text: str, key: str) -> int | None:
    """The number after a word at the begin of a line."""
    at = 0 if text.startswith(key + " ") else text.find(f"\n{key} ") + 1
    if at == 0 and not text.startswith(key + " "):
        return None
    value = text[at + len(key) + 1 :].partition("\n")[0]
    return int(value) if value.isdecimal() else None


def _cpu_seconds(pid: int) -> float:
    """Processor time of a process and of those children that it has waited for."""
    fields = _read(f"/proc/{pid}/stat").rpartition(") ")[2].split()
    return sum(map(int, fields[11:15])) / _TICKS if len(fields) > 15 else 0.0


def _memory_kb(pids: Sequence[int]) -> int:
    """Own memory of each process, and once what the largest shares: libraries and shared memory are mapped by several."""
    own = shared = 0
    for pid in pids:
        fields = _read(f"/proc/{pid}/statm").split()
        if len(fields) > 2:
            own += int(fields[1]) - int(fields[2])
            shared = max(shared, int(fields[2]))
    return (own + shared) * _PAGE_KB


def pids_below(pid: int) -> list[int]:
    """The processes of a task whose first one is known, with that one."""
    return [pid, *processes.descendants(pid)]
