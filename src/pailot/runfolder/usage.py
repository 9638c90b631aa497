"""What a task used over time: samples of processor, memory, processes and GPUs, in one file in the folder of the task.

A sample has a fixed size and is added at the end of the file. All attempts of the task share the file, so that its size has one
bound. A full file is written anew: the newest samples stay, and of the older ones neighbours become one, the finest first.
So the resolution of what is old is halved again and again.
"""

from __future__ import annotations

import os
from struct import Struct

from ..values import Value
from . import careful_files, layout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

MAX_BYTES = 200_000
_RECORD = Struct("<QQIIIHHHHIII")
MAX_SAMPLES = MAX_BYTES // _RECORD.size
_NO_GPU = 0xFFFF
_WORD, _HALF = 0xFFFFFFFF, 0xFFFF


class Peak(Value):
    """The most that a task used at one time, in all its attempts."""

    cpus: float = 0.0
    memory_kb: int = 0
    gpu_memory_mb: int = 0


class Sample(Value):
    """What a task used since the sample before. The first one of an attempt says when that began, and is zero."""

    at: float
    """Seconds since 1970; the end of the time that the sample is about."""
    attempt: int
    """The attempt of the task."""
    cpu_seconds: float
    """Since the attempt began."""
    memory_kb: int
    """The mean."""
    memory_max_kb: int
    processes: int
    gpu_percent: float | None = None
    """All GPUs of the task together: two busy ones are 200. None where the task has none that can be measured."""
    gpu_memory_mb: int = 0
    peak: Peak = Peak()
    """The peaks of the task up to here."""


def pack(sample: Sample) -> bytes:
    """The bytes of a sample; what is too large for its place counts as the largest that fits."""
    percent = _NO_GPU if sample.gpu_percent is None else min(round(sample.gpu_percent), _HALF - 1)
    peak = sample.peak
    return _RECORD.pack(
        round(sample.at * 1000),
        round(sample.cpu_seconds * 1000),
        min(sample.memory_kb, _WORD),
        min(sample.memory_max_kb, _WORD),
        min(sample.gpu_memory_mb, _WORD),
        min(sample.processes, _HALF),
        min(sample.attempt, _HALF),
        percent,
        0,
        min(round(peak.cpus * 100), _WORD),
        min(peak.memory_kb, _WORD),
        min(peak.gpu_memory_mb, _WORD),
    )


def unpack(data: bytes) -> list[Sample]:
    """The samples in the bytes of a file; half a sample at its end, of a writer that was killed, is left out."""
    whole = len(data) - len(data) % _RECORD.size
    return [
        Sample(
            at / 1000,
            attempt,
            cpu / 1000,
            memory,
            most,
            processes,
            None if percent == _NO_GPU else float(percent),
            gpu_memory,
            Peak(peak_cpus / 100, peak_memory, peak_gpu),
        )
        for at, cpu, memory, most, gpu_memory, processes, attempt, percent, _, peak_cpus, peak_memory, peak_gpu in (
            _RECORD.iter_unpack(memoryview(data)[:whole])
        )
    ]


def append(task: str, samples: Iterable[Sample]) -> None:
    """Add samples to the file in a task's folder. Raises OSError; what a full disk leaves of a sample is cut by the next call."""
    path = os.path.join(task, layout.USAGE)
    data = b"".join(map(pack, samples))
    descriptor = careful_files.open_own(path, os.O_RDWR | os.O_APPEND)
    try:
        size = os.fstat(descriptor).st_size
        if size % _RECORD.size:
            size -= size % _RECORD.size
            os.ftruncate(descriptor, size)
        if size + len(data) <= MAX_BYTES:
            os.write(descriptor, data)
            return
        kept = unpack(os.pread(descriptor, size, 0) + data)
    finally:
        os.close(descriptor)
    folder = careful_files.open_folder(task)
    try:
        temporary = f".{layout.USAGE}.{os.getpid()}"
        careful_files.write_new(folder, temporary, b"".join(map(pack, coarser(kept, MAX_SAMPLES))))
        os.rename(temporary, layout.USAGE, src_dir_fd=folder, dst_dir_fd=folder)
    finally:
        os.close(folder)


def read(task: str) -> list[Sample]:
    """All samples of the task in a folder, oldest first; none where there is no file that can be believed."""
    return unpack(_bytes(task))


def latest(task: str) -> tuple[Sample, Sample] | None:
    """The last two samples of a task, of one attempt; None before there are two."""
    found = unpack(_bytes(task, 2 * _RECORD.size))
    return (found[0], found[1]) if len(found) == 2 and found[0].attempt == found[1].attempt else None


def _bytes(task: str, last: int = 0) -> bytes:
    try:
        descriptor = careful_files.open_regular(os.path.join(task, layout.USAGE))
    except OSError:
        return b""
    try:
        size = min(os.fstat(descriptor).st_size, MAX_BYTES)
        size -= size % _RECORD.size
        begin = max(0, size - last) if last else 0
        return os.pread(descriptor, size - begin, begin)
    finally:
        os.close(descriptor)


def cpus(before: Sample, sample: Sample) -> float:
    """How many processors were busy between two samples of one attempt."""
    seconds = sample.at - before.at
    return max(0.0, sample.cpu_seconds - before.cpu_seconds) / seconds if seconds > 0 else 0.0


def coarser(samples: Sequence[Sample], limit: int) -> list[Sample]:
    """Fewer samples than the limit, so that there is room: the newest quarter stays as it is, older neighbours become one.

    Where nothing is left to join, since each attempt is one sample, the oldest ones go.
    """
    fine = limit // 4
    old, new = list(samples[:-fine]), list(samples[-fine:])
    most = limit * 5 // 8
    while len(old) > most:
        spans = _spans(old)
        pairs = [span + other for span, other in zip(spans, spans[1:]) if span > 0 < other]  # noqa: B905, RUF007  # as below
        old = _joined(old, 1.25 * min(pairs)) if pairs else old[-most:]
    return old + new


def thinned(samples: Sequence[Sample], points: int) -> list[Sample]:
    """At most about `points` samples, evenly over time; attempts are never mixed."""
    if len(samples) <= points:
        return list(samples)
    begin = samples[0].at
    width = (samples[-1].at - begin) / max(1, points) or 1.0
    kept: list[Sample] = []
    bucket, span = -1, 0.0
    for sample, own in zip(samples, _spans(samples)):  # noqa: B905  # Python 3.9 has no `strict`
        number = int((sample.at - begin) / width)
        if own > 0 and number == bucket and span > 0:
            kept[-1] = _join(kept[-1], span, sample, own)
            span += own
        else:
            kept.append(sample)
            bucket, span = number, own
    return kept


def _spans(samples: Sequence[Sample]) -> list[float]:
    """How many seconds each sample is about; 0 for the first of an attempt, which says only when that began."""
    spans = [0.0] if samples else []
    for before, sample in zip(samples, samples[1:]):  # noqa: B905, RUF007  # Python 3.9 has neither `strict` nor `pairwise`
        spans.append(max(sample.at - before.at, 0.001) if sample.attempt == before.attempt else 0.0)
    return spans


def _joined(samples: Sequence[Sample], widest: float) -> list[Sample]:
    """Neighbours that are together about no more than `widest` seconds as one."""
    spans = _spans(samples)
    joined: list[Sample] = []
    at = 0
    while at < len(samples):
        if at + 1 < len(samples) and spans[at] > 0 and spans[at + 1] > 0 and spans[at] + spans[at + 1] <= widest:
            joined.append(_join(samples[at], spans[at], samples[at + 1], spans[at + 1]))
            at += 2
        else:
            joined.append(samples[at])
            at += 1
    return joined


def _join(first: Sample, span: float, second: Sample, other: float) -> Sample:
    whole = span + other
    percent = None
    if first.gpu_percent is not None and second.gpu_percent is not None:
        percent = (first.gpu_percent * span + second.gpu_percent * other) / whole
    return second.replace(
        memory_kb=round((first.memory_kb * span + second.memory_kb * other) / whole),
        memory_max_kb=max(first.memory_max_kb, second.memory_max_kb),
        processes=max(first.processes, second.processes),
        gpu_percent=percent,
        gpu_memory_mb=max(first.gpu_memory_mb, second.gpu_memory_mb),
    )
