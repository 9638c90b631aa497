"""The audit log of a server: who did what, in one file that is only ever appended to.

One JSON object a line. The file is the server's own (0600). When it is full it is renamed, and the oldest one is dropped.
An entry holds names, never a password, a token, a secret or the text of a job.
"""

from __future__ import annotations

import json
import logging
import os
import threading

from ..printable import cut
from ..values import Value
from . import server_log
from .json_lines import to_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

FILE = "audit.log"
KEPT_FILES = 10
"""Old files beside the one in use."""
MAX_LINE_BYTES = 4096
MAX_TEXT = 200
READ_BYTES = 1 << 16


class AuditEntry(Value):
    """One action: when, in which request, by which user from which address, what, on what, and how it went."""

    at: float
    request: str
    user: str
    address: str
    action: str
    target: str
    status: int

    def to_json(self) -> dict[str, object]:
        return {
            "at": round(self.at, 3),
            "request": self.request,
            "user": cut(self.user, MAX_TEXT),
            "address": self.address,
            "action": self.action,
            "target": cut(self.target, MAX_TEXT),
            "status": self.status,
        }

    @classmethod
    def from_json(cls, found: Any) -> AuditEntry | None:
        """The entry, or None for a line that is none: after a power cut the last one may be cut off."""
        if not isinstance(found, dict) or not isinstance(found.get("at"), int | float):
            return None
        request, user, address, action, target = (
            str(found.get(key, "")) for key in ("request", "user", "address", "action", "target")
        )
        status = found.get("status")
        return cls(float(found["at"]), request, user, address, action, target, status if isinstance(status, int) else 0)


class AuditQuery(Value):
    """Which entries are wanted; an empty text is any."""

    user: str = ""
    action: str = ""
    target: str = ""
    since: float = 0.0
    limit: int = 100

    def fits(self, entry: AuditEntry) -> bool:
        return (
            (not self.user or entry.user == self.user)
            and (not self.action or entry.action == self.action)
            and (not self.target or self.target in entry.target)
        )


class AuditLog:
    """Appends entries to the file in a server's home, and reads them back."""

    def __init__(self, home: str, file_mb: float) -> None:
        self._path = os.path.join(home, FILE)
        self._limit_bytes = int(file_mb * 1_000_000)
        self._lock = threading.Lock()
        self._descriptor = self._open()
        self._size = os.fstat(self._descriptor).st_size
        if self._size and os.pread(self._descriptor, 1, self._size - 1) != b"\n":
            self._size += os.write(self._descriptor, b"\n")  # a power cut may have left half a line

    def note(self, entry: AuditEntry) -> None:
        """Append an entry. Never raises: on a full disk jobs must still be stopped, and the server's log then has the entry."""
        line = to_line(entry.to_json()).encode()[:MAX_LINE_BYTES] + b"\n"
        with self._lock:
            try:
                if self._limit_bytes and self._size + len(line) > self._limit_bytes and self._size:
                    self._rotate()
                self._size += os.write(self._descriptor, line)
            except OSError as error:
                text = line.decode().rstrip("\n")
                server_log.note(
                    server_log.SERVER, logging.ERROR, "the audit log cannot be written", error=error.strerror, entry=text
                )

    def entries(self, query: AuditQuery) -> list[AuditEntry]:
        """Return the newest entries that fit, the newest first."""
        found: list[AuditEntry] = []
        for line in self._lines():
            try:
                entry = AuditEntry.from_json(json.loads(line))
            except ValueError:
                continue
            if entry is None:
                continue
            if entry.at < query.since or len(found) >= query.limit:
                break
            if query.fits(entry):
                found.append(entry)
        return found

    def close(self) -> None:
        os.close(self._descriptor)

    def _open(self) -> int:
        return os.open(self._path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)

    def _rotate(self) -> None:
        for number in range(KEPT_FILES - 1, 0, -1):
            if os.path.exists(f"{self._path}.{number}"):
                os.replace(f"{self._path}.{number}", f"{self._path}.{number + 1}")
        os.replace(self._path, f"{self._path}.1")
        before, self._descriptor = self._descriptor, self._open()
        os.close(before)
        self._size = 0

    def _lines(self) -> Iterator[bytes]:
        for path in (self._path, *(f"{self._path}.{number}" for number in range(1, KEPT_FILES + 1))):
            try:
                with open(path, "rb") as stream:
                    yield from _backwards(stream.fileno())
            except FileNotFoundError:
                return


def _backwards(descriptor: int) -> Iterator[bytes]:
    """The lines of a file, the last one first, in pieces of bounded size."""
    end, rest = os.fstat(descriptor).st_size, b""
    while end > 0:
        begin = max(0, end - READ_BYTES)
        piece = os.pread(descriptor, end - begin, begin) + rest
        first, *lines = piece.split(b"\n")
        yield from (line for line in reversed(lines) if line)
        end, rest = begin, first
    if rest:
        yield rest
