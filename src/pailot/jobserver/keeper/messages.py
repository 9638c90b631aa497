"""Messages over a stream: four bytes of length, then the content, which is JSON.

An order to the keeper is several texts of JSON, a line each: the job that it is about, the order itself, and documents that
go with it, such as the plan. Only our own user can reach the keeper's socket; secrets go over it.
"""

from __future__ import annotations

import json
import os
import struct

from ..json_lines import to_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

HEADER = struct.Struct(">I")
SOCKET = "keeper.sock"
LOCK = "keeper.lock"
LOG = "keeper.log"
TAKEN = 3
"""The exit status of a keeper that found another one."""
VERSION = 4
"""Of the messages and what they hold: a keeper with another one finishes its jobs and gets no more."""


def pack_order(message: Mapping[str, Any], *documents: str) -> bytes:
    """A message for the keeper; the job that it is about comes first, and can be read whatever the rest is.

    Each document is one line of JSON.
    """
    lines = (to_line(message.get("id", "")), to_line(message), *documents)
    content = "\n".join(lines).encode()
    return HEADER.pack(len(content)) + content


def pack_news(message: Mapping[str, Any]) -> bytes:
    """A message of the keeper."""
    content = to_line(message).encode()
    return HEADER.pack(len(content)) + content


class Inbox:
    """Puts the pieces of a stream together."""

    def __init__(self) -> None:
        self._data = bytearray()

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """The messages that are whole now."""
        self._data += piece
        while len(self._data) >= HEADER.size:
            (size,) = HEADER.unpack_from(self._data)
            end = HEADER.size + size
            if len(self._data) < end:
                return
            content = bytes(self._data[HEADER.size : end])
            del self._data[:end]
            yield content


class Order:
    """A message that `pack_order` made."""

    def __init__(self, content: bytes) -> None:
        job, _, self._rest = content.partition(b"\n")
        self.job = str(json.loads(job))

    def read(self) -> tuple[dict[str, object], list[str]]:
        """The order, and the documents that go with it."""
        message, *documents = self._rest.decode().split("\n")
        return json.loads(message), documents


def socket_address(path: str) -> str:
    """The address of a socket file; a path that is too long for one is reached through its folder."""
    if len(os.fsencode(path)) < 100:
        return path
    folder = os.open(os.path.dirname(path), os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)  # kept for as long as we live
    return f"/proc/self/fd/{folder}/{os.path.basename(path)}"
