"""What shims report to the process that started them, as lines through one pipe: a begin, a log that has grown, a retry.

The folders of the tasks hold the truth, so what finds no room may be dropped; but for the claim, which the driver waits for.
Lines are short: the kernel never mixes them, and a pipe holds those of thousands of tasks.
"""

from __future__ import annotations

import json
import os
import select

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_ATOMIC = 4096
"""What the kernel writes into a pipe as one (PIPE_BUF)."""
_LONGEST_REASON = 500


class Channel:
    """The reading side, and the descriptor that the shims write to."""

    def __init__(self) -> None:
        self.reader, self.writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._rest = b""

    def fileno(self) -> int:
        """The descriptor that is readable when a shim has told something."""
        return self.reader

    def take(self) -> list[dict[str, Any]]:
        """What was told since the last call; a log that has grown several times has grown once."""
        found: list[dict[str, object]] = []
        grown: dict[tuple[str, int], int] = {}
        for line in self._lines():
            kind = line[:1]
            if kind == b"{":
                found += _parsed(line)
                continue
            index, number, role = line[1:].split(b" ", 2)
            task: dict[str, Any] = {"role": role.decode(), "index": int(index)}
            if kind == b"L":
                grown[task["role"], task["index"]] = int(number)
                continue
            if kind == b"C":
                found.append({"event": "claimed", **task})
            found.append({"event": "running", **task, "attempt": int(number)})
        found += [{"event": "grown", "role": role, "index": index, "attempt": number} for (role, index), number in grown.items()]
        return found

    def close(self) -> None:
        """Close both ends."""
        os.close(self.reader)
        os.close(self.writer)

    def _lines(self) -> list[bytes]:
        data = self._rest
        while True:
            try:
                piece = os.read(self.reader, 1 << 16)
            except BlockingIOError:
                break
            data += piece
            if len(piece) < 1 << 16:
                break
        *lines, self._rest = data.split(b"\n")
        return lines


class Teller:
    """The side of one shim."""

    def __init__(self, descriptor: int, role: str, index: int, poller: select.poll) -> None:
        self.descriptor, self.poller = descriptor, poller
        self.role, self.index = role, index
        self._claim = b""
        """What the driver waits for and there was no room for yet."""
        self._grown = b""

    def running(self, attempt: int) -> None:
        """An attempt has begun and its logs are there; the first one says that the task is claimed as well."""
        if attempt:
            self._write(self._line(b"R", attempt))
            return
        self._claim = self._line(b"C", attempt)
        if not self._say_claim():
            self.poller.register(self.descriptor, select.POLLOUT)

    def serve(self) -> None:
        """There may be room now."""
        if self._say_claim():
            self.poller.unregister(self.descriptor)

    def grown(self, attempt: int) -> None:
        self._grown = self._line(b"L", attempt)
        self.flush()

    def flush(self) -> None:
        """Tell, if there was no room before, that a log has grown."""
        if self._grown and self._write(self._grown):
            self._grown = b""

    def event(self, event: str, **details: Any) -> None:
        """Whatever is told seldom."""
        message = {"event": event, "role": self.role, "index": self.index, **details}
        line = json.dumps(message).encode("ascii") + b"\n"
        if len(line) > _ATOMIC and "reason" in message:
            message["reason"] = message["reason"][:_LONGEST_REASON]
            line = json.dumps(message).encode("ascii") + b"\n"
        self._write(line)

    def _line(self, kind: bytes, attempt: int) -> bytes:
        return b"%s%d %d %s\n" % (kind, self.index, attempt, self.role.encode())

    def _say_claim(self) -> bool:
        if self._claim and not self._write(self._claim):
            return False
        self._claim = b""
        return True

    def _write(self, line: bytes) -> bool:
        """Whether it need not be tried again."""
        try:
            os.write(self.descriptor, line)
        except BlockingIOError:
            return False  # a reader that is behind
        except OSError:
            pass  # the reader is gone
        return True


def _parsed(line: bytes) -> list[dict[str, Any]]:
    try:
        return [json.loads(line)]
    except ValueError:
        return []  # cut off; the folder holds the truth
