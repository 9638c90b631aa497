"""The logs of a run as one ZIP file, made while it is read: however large they are, it needs little memory."""

from __future__ import annotations

import os
import re
import time
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from . import layout, logs
from .log_search import Wanted, places

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

PIECE_BYTES = 1 << 18
_FIRST_YEAR = 1980
"""The first that a ZIP file can name."""


class _Sink:
    """What `ZipFile` writes to. It cannot go back, so the sizes of each file stand behind it."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def write(self, data: bytes) -> int:
        self._pieces.append(bytes(data))
        return len(data)

    def flush(self) -> None:
        pass

    def taken(self) -> bytes:
        data = b"".join(self._pieces)
        self._pieces.clear()
        return data


def archive(run: str, roles: Mapping[str, int], title: str, wanted: Wanted) -> Iterator[bytes]:
    """Pieces of the file. A log is in it as `TITLE/attempt-N/ROLE-INDEX/try-K.log`, up to where it ended when its turn came."""
    sink: Any = _Sink()
    with ZipFile(sink, "w", ZIP_DEFLATED, compresslevel=1) as file:
        for place in places(run, roles, wanted):
            end = logs.size(place.folder, wanted.stream)
            if not end and not os.path.exists(os.path.join(place.folder, wanted.stream)):
                continue
            name = f"{safe(title)}/attempt-{place.attempt}/{safe(place.role)}-{place.index}/try-{place.task_attempt}.log"
            info = ZipInfo(name, _moment(os.path.join(place.folder, wanted.stream)))
            info.compress_type, info.external_attr = ZIP_DEFLATED, 0o644 << 16
            with file.open(info, "w", force_zip64=True) as entry:
                offset = 0
                while offset < end:
                    data, offset = logs.read(place.folder, wanted.stream, offset, min(PIECE_BYTES, end - offset))
                    if not data:
                        break
                    entry.write(data)
                    yield sink.taken()
            yield sink.taken()
    yield sink.taken()


def safe(name: str) -> str:
    """A name that is one part of a path on every system.

    >>> safe("../ann~train")
    '.._ann~train'
    """
    return re.sub(r"[^A-Za-z0-9._~-]", "_", name)[:200] or "_"


def _moment(path: str) -> tuple[int, int, int, int, int, int]:
    try:
        told = time.localtime(os.lstat(path).st_mtime)
    except OSError:
        told = time.localtime()
    return (max(_FIRST_YEAR, told.tm_year), told.tm_mon, told.tm_mday, told.tm_hour, told.tm_min, told.tm_sec)


def whole(stream: str = layout.ALL, role: str | None = None) -> Wanted:
    """All attempts of all tasks, or of those of a role."""
    return Wanted("", role=role, stream=stream)
