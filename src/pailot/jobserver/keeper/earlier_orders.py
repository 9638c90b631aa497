"""Orders for keepers of an earlier Pailot, up to version 3 of the messages, which go on with their jobs after an update.

They read two values of Python's serialisation, the job and the order. To write one takes a few letters for each kind of value;
to read one would be to trust it, and nothing here does.
"""

from __future__ import annotations

import struct

from .messages import HEADER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

LAST_VERSION = 3
_LENGTH = struct.Struct("<I")
_NUMBER = struct.Struct(">d")


def pack_order(message: Mapping[str, str | float | bool | None]) -> bytes:
    """A message for such a keeper; `start` is never among them, since it gets no more jobs."""
    content = _whole(_text(str(message.get("id", "")))) + _whole(_mapping(message))
    return HEADER.pack(len(content)) + content


def _whole(value: bytes) -> bytes:
    return b"\x80\x02" + value + b"."


def _mapping(message: Mapping[str, str | float | bool | None]) -> bytes:
    return b"}(" + b"".join(_text(key) + _value(value) for key, value in message.items()) + b"u"


def _value(value: str | float | bool | None) -> bytes:
    if value is None:
        return b"N"
    if isinstance(value, bool):
        return b"\x88" if value else b"\x89"
    return b"G" + _NUMBER.pack(value) if isinstance(value, (int, float)) else _text(value)


def _text(text: str) -> bytes:
    encoded = text.encode()
    return b"X" + _LENGTH.pack(len(encoded)) + encoded
