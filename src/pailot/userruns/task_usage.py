"""What the tasks of a run use and used, beside what they asked for: curves, peaks, and how it is now."""

from __future__ import annotations

from itertools import pairwise

from ..runfolder import usage
from ..runfolder.records import TaskRecord

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from ..runfolder.usage import Peak, Sample
    from .run_folder import JobFolder

POINTS = 400
MAX_POINTS = 5_000
_KB_IN_MB = 1024


def asked(plan: Mapping[str, Any], role: str) -> dict[str, object]:
    """What a task of a role asks for."""
    resources = plan.get("taskRoles", {}).get(role, {}).get("resources") or {}
    return {"cpus": resources.get("cpu"), "memoryMB": resources.get("memoryMB"), "gpus": resources.get("gpu")}


def peaks(task: str, end: TaskRecord | None) -> dict[str, object] | None:
    """The peaks of the task in a folder, and its processor time; None where nothing is known yet.

    Of a task that has ended its record knows its memory, also if it was over before its first sample.
    """
    found = usage.latest(task)
    peak = found[1].peak if found else usage.Peak()
    memory = max(peak.memory_kb, end.peak_memory_kb, end.max_rss_kb) if end else peak.memory_kb
    seconds = end.cpu_seconds if end and end.cpu_seconds is not None else found[1].cpu_seconds if found else None
    if not memory and seconds is None:
        return None
    return {
        "cpuSeconds": None if seconds is None else round(seconds, 3),
        "peakCpus": round(peak.cpus, 2) if found else None,
        "peakMemoryMB": _mb(memory),
        "peakGpuMemoryMB": peak.gpu_memory_mb if found and peak.gpu_memory_mb else None,
    }


def now(task: str) -> dict[str, object] | None:
    """What the task in a folder uses, as its last sample tells; None before there is one."""
    found = usage.latest(task)
    if found is None:
        return None
    before, last = found
    return {
        "at": round(last.at * 1000),
        "cpus": round(usage.cpus(before, last), 2),
        "memoryMB": _mb(last.memory_kb),
        "processes": last.processes,
        "gpuPercent": last.gpu_percent,
        "gpuMemoryMB": None if last.gpu_percent is None else last.gpu_memory_mb,
    }


def of_task(
    folder: JobFolder, plan: Mapping[str, Any], attempt: int, role: str, index: int, points: int = POINTS
) -> dict[str, object]:
    """What a task used over time, each attempt of it apart; about `points` points in all."""
    task = folder.task(attempt, role, index)
    samples = usage.read(task)
    shown = usage.thinned(samples, points)
    numbers = sorted({each.attempt for each in samples})
    return {
        "role": role,
        "index": index,
        "attempt": attempt,
        "asked": asked(plan, role),
        "now": now(task) if TaskRecord.final(task) is None else None,
        "peak": peaks(task, TaskRecord.final(task)),
        "attempts": [
            _attempt(number, [each for each in samples if each.attempt == number], [x for x in shown if x.attempt == number])
            for number in numbers
        ],
    }


def of_tasks(folder: JobFolder, plan: Mapping[str, Any], attempt: int) -> list[dict[str, object]]:
    """What each task of an attempt of the job uses now, and its peaks."""
    found = []
    for role, node in plan.get("taskRoles", {}).items():
        wanted = asked(plan, role)
        for index in range(node["instances"]):
            task = folder.task(attempt, role, index)
            final = TaskRecord.final(task)
            found.append(
                {
                    "role": role,
                    "index": index,
                    "asked": wanted,
                    "now": now(task) if final is None else None,
                    "peak": peaks(task, final),
                }
            )
    return found


def words(peak: Mapping[str, Any] | None, wanted: Mapping[str, Any]) -> str:
    """The peaks of a task in a sentence.

    >>> words({"peakMemoryMB": 9216, "peakCpus": 3.5}, {"memoryMB": 65536, "cpus": 4})
    'asked 64 GB, never above 9 GB; asked 4 CPUs, never above 3.5'
    """
    if not peak:
        return ""
    parts = []
    if peak.get("peakMemoryMB"):
        parts.append(_beside(wanted.get("memoryMB"), peak["peakMemoryMB"], size))
    if peak.get("peakCpus"):
        parts.append(_beside(wanted.get("cpus"), peak["peakCpus"], lambda each: f"{each:g}", " CPUs"))
    if peak.get("peakGpuMemoryMB"):
        parts.append(f"never above {size(peak['peakGpuMemoryMB'])} of GPU memory")
    return "; ".join(parts)


def size(megabytes: float) -> str:
    """An amount of memory for people.

    >>> size(9216), size(512), size(1536), size(3.4)
    ('9 GB', '512 MB', '1.5 GB', '3.4 MB')
    """
    if megabytes >= _KB_IN_MB:
        return f"{megabytes / _KB_IN_MB:.3g} GB"
    return f"{megabytes:.3g} MB" if megabytes < 1000 else f"{megabytes:.0f} MB"


def _beside(wanted: float | None, most: float, shown: Any, unit: str = "") -> str:
    if not wanted:
        return f"never above {shown(most)}{unit}"
    return f"asked {shown(wanted)}{unit}, never above {shown(most)}"


def _attempt(number: int, samples: Sequence[Sample], shown: Sequence[Sample]) -> dict[str, object]:
    """The curve of one attempt: columns of equal length, which plots take as they are. The first point is its beginning."""
    rates = [0.0, *(usage.cpus(before, each) for before, each in pairwise(shown))]
    has_gpus = any(each.gpu_percent is not None for each in shown)
    peak = usage.Peak(
        max((usage.cpus(before, each) for before, each in pairwise(samples)), default=0.0),
        max((each.memory_max_kb for each in samples), default=0),
        max((each.gpu_memory_mb for each in samples), default=0),
    )
    return {
        "taskAttempt": number,
        "peak": _peak_json(peak),
        "mean": {"cpus": _mean_cpus(samples), "memoryMB": _mean_memory(samples)},
        "series": {
            "at": [round(each.at * 1000) for each in shown],
            "cpus": [round(each, 3) for each in rates],
            "memoryMB": [_mb(each.memory_kb) for each in shown],
            "maxMemoryMB": [_mb(each.memory_max_kb) for each in shown],
            "processes": [each.processes for each in shown],
            "gpuPercent": [each.gpu_percent for each in shown] if has_gpus else None,
            "gpuMemoryMB": [each.gpu_memory_mb for each in shown] if has_gpus else None,
        },
    }


def _peak_json(peak: Peak) -> dict[str, object]:
    return {"cpus": round(peak.cpus, 2), "memoryMB": _mb(peak.memory_kb), "gpuMemoryMB": peak.gpu_memory_mb or None}


def _mean_cpus(samples: Sequence[Sample]) -> float:
    return round(usage.cpus(samples[0], samples[-1]), 3) if len(samples) > 1 else 0.0


def _mean_memory(samples: Sequence[Sample]) -> float:
    """Weighted by time: of a long attempt the older samples are about more of it."""
    pairs = list(pairwise(samples))
    whole = _sum(each.at - before.at for before, each in pairs)
    return _mb(_sum(each.memory_kb * (each.at - before.at) for before, each in pairs) / whole) if whole > 0 else 0.0


def _sum(numbers: Iterable[float]) -> float:
    return sum(numbers, 0.0)


def _mb(kilobytes: float) -> float:
    return round(kilobytes / _KB_IN_MB, 1)
