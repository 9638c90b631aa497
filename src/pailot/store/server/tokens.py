"""Tokens: JSON Web Tokens signed with HMAC-SHA256, as OpenPAI's are, and the file with the keys that sign them.

PyJWT writes and reads them. Only one algorithm is spoken. The same claims and key always make the same text, so that the
server keeps no token: it knows one again by its SHA-256, and can write it once more from its claims.
"""

from __future__ import annotations

import hashlib
import os

import jwt

from ...errors import PailotError
from ..secrets import KeyFile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from jwt.types import Options

LONGEST = 4096
KEY_BYTES = 32
ALGORITHM = "HS256"
LATEST_SECOND = 1e11
"""No token says a later moment (the year 5138): what is larger, infinite or no number was not written by us."""
CLOCK_STEP_SECONDS = 60.0
"""So far the clock may be set back without making new tokens worthless."""


class BadToken(PailotError):
    """Not a token of ours, or one that has expired; the message never holds any of it."""


class TokenKeys(KeyFile):
    """The keys in `<home>/keys/token.key`: the first one signs, a token signed with any of them is good."""

    def __init__(self, home: str) -> None:
        super().__init__(os.path.join(home, "keys", "token.key"), "tokens")

    def keys(self) -> list[bytes]:
        """All of them; the first call makes one."""
        if not os.path.exists(self.file):
            self._make_key()
        return [line for _, line in self._lines()]

    def _new_key(self) -> bytes:
        return os.urandom(KEY_BYTES).hex().encode()


def sign(claims: Mapping[str, Any], key: bytes) -> str:
    """The token that says this."""
    return jwt.encode(dict(claims), key, ALGORITHM)


def verify(token: str, keys: Sequence[bytes], now: float) -> dict[str, object]:
    """What a token says, if one of the keys signed it and its time is now; else BadToken."""
    if len(token) > LONGEST or not token.isascii() or "=" in token:  # padded, it would be a second text for the same token
        raise BadToken("this is not a token")
    said = _signed(token, keys)
    if said["header"].get("typ", "JWT") != "JWT":
        raise BadToken("the token is of a kind that is not used here")
    claims: dict[str, object] = said["payload"]
    if now >= _second(claims, "exp", LATEST_SECOND):
        raise BadToken("the token has expired")
    if max(_second(claims, "nbf", 0), _second(claims, "iat", 0)) > now + CLOCK_STEP_SECONDS:
        raise BadToken("the token is not good yet")
    return claims


_OPTIONS: Options = {"verify_exp": False, "verify_nbf": False, "verify_iat": False}
"""`verify` looks at the moments by itself: PyJWT takes texts for numbers there, and knows no clock but its own."""


def _signed(token: str, keys: Sequence[bytes]) -> dict[str, Any]:
    """The parts of a token that one of the keys signed."""
    for key in keys:
        try:
            return jwt.decode_complete(token, key, [ALGORITHM], options=_OPTIONS)
        except jwt.InvalidSignatureError:
            continue
        except (jwt.PyJWTError, ValueError):
            raise BadToken("this is not a token of ours") from None
    raise BadToken("the token was not signed here")


_MEANINGS = {"exp": "expires", "nbf": "begins", "iat": "was made"}


def _second(claims: Mapping[str, Any], name: str, default: float) -> float:
    """The moment that a claim names."""
    value = claims.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= LATEST_SECOND:  # NaN is not, either
        raise BadToken(f"the token does not say when it {_MEANINGS[name]}")
    return value


def digest(token: str) -> str:
    """By this a token is known again, without being kept."""
    return hashlib.sha256(token.encode()).hexdigest()
