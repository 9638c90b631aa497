"""The log of a pod that is over, as its node still has it: the attempts of the task one after another, in one stream."""

from __future__ import annotations

import os

from ...runfolder import layout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def complete(folder: str, data: bytes, printed: Sequence[int]) -> int:
    """Add to the logs in a task's folder what is missing there; returns how many bytes are missing for good.

    `printed` are the sizes of the logs of all attempts. `data` is the end of what they have in all: a node keeps a part only.
    Where the sizes are not known, `data` is taken for all of it.
    """
    if not printed:
        sizes = [_size(folder, number) for number in range(max(1, layout.begun_attempts(folder)))]
        printed = [*sizes[:-1], max(sizes[-1], len(data) - sum(sizes[:-1]))]
    first, missing, begin = sum(printed) - len(data), 0, 0
    for number, size in enumerate(printed):
        have = min(_size(folder, number), size)
        wanted, end = begin + have, begin + size
        start = max(wanted, first)
        if wanted < end:
            missing += min(start, end) - wanted
            piece = data[max(0, start - first) : max(0, end - first)]
            _append(folder, number, piece, min(start, end) - wanted)
        begin = end
    return missing


def _size(folder: str, number: int) -> int:
    try:
        return os.path.getsize(os.path.join(layout.task_attempt_folder(folder, number), layout.ALL))
    except OSError:
        return 0


def _append(folder: str, number: int, piece: bytes, gap: int) -> None:
    """The node does not know which of it was standard error."""
    attempt = layout.task_attempt_folder(folder, number)
    os.makedirs(attempt, mode=0o700, exist_ok=True)
    words = f"\npailot: {gap} bytes of this log are missing: its node did not keep them\n".encode() if gap else b""
    for stream in (layout.ALL, layout.STDOUT):
        descriptor = os.open(
            os.path.join(attempt, stream), os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600
        )
        with os.fdopen(descriptor, "ab") as log:
            log.write(words + piece)
