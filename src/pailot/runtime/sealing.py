"""Secrets on their way to a task: sealed with a key that is used once and travels another way.

The standard library has no cipher. A key stream from SHAKE-256 and a tag from HMAC-SHA-256, both of a key that seals one
text only, need none.
"""

from __future__ import annotations

import os

TAG_BYTES = 32


def new_key() -> bytes:
    """A key for one text."""
    return os.urandom(32)


def seal(key: bytes, plain: bytes) -> bytes:
    """The text as only the key opens it."""
    hidden = _mix(key, plain)
    return _tag(key, hidden) + hidden


def open_sealed(key: bytes, sealed: bytes) -> bytes:
    """What `seal` was given; raises ValueError for a wrong key or a damaged text."""
    import hmac

    tag, hidden = sealed[:TAG_BYTES], sealed[TAG_BYTES:]
    if not hmac.compare_digest(tag, _tag(key, hidden)):
        raise ValueError("damaged, or sealed with another key")
    return _mix(key, hidden)


def _mix(key: bytes, text: bytes) -> bytes:
    from hashlib import shake_256

    size = len(text)
    stream = shake_256(b"pailot stream" + key).digest(size)
    return (int.from_bytes(text, "big") ^ int.from_bytes(stream, "big")).to_bytes(size, "big")


def _tag(key: bytes, hidden: bytes) -> bytes:
    import hmac

    return hmac.digest(b"pailot tag" + key, hidden, "sha256")
