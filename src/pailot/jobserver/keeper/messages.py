"""Messages over a stream: four bytes of length, then the content.

To the keeper they are pickled, since they carry plans; only our own user can reach its socket. What the keeper tells is JSON.
"""

from __future__ import annotations

import io
import json
import os
import pickle
import struct

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
VERSION = 3
"""Of the messages and of the pickled plans: a keeper with another one finishes its jobs and gets no more."""


def pack_order(message: Mapping[str, Any]) -> bytes:
    """A message for the keeper; the job that it is about comes first, and can be read whatever the rest is."""
    content = pickle.dumps(message.get("id", ""), protocol=5) + pickle.dumps(message, protocol=5)
    return HEADER.pack(len(content)) + content


def pack_news(message: Mapping[str, Any]) -> bytes:
    """A message of the keeper."""
    content = json.dumps(message, separators=(",", ":")).encode()
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
        self._stream = io.BytesIO(content)
        self.job = str(pickle.load(self._stream))  # noqa: S301  # from our own user's server, over a private socket

    def read(self) -> dict[str, Any]:
        """All of it, once."""
        message: dict[str, Any] = pickle.load(self._stream)  # noqa: S301  # as above
        return message


def socket_address(path: str) -> str:
    """The address of a socket file; a path that is too long for one is reached through its folder."""
    if len(os.fsencode(path)) < 100:
        return path
    folder = os.open(os.path.dirname(path), os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)  # kept for as long as we live
    return f"/proc/self/fd/{folder}/{os.path.basename(path)}"
