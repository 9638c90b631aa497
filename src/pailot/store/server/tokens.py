"""Tokens: JSON Web Tokens signed with HMAC-SHA256, as OpenPAI's are, and the file with the keys that sign them.

Only one algorithm is spoken. The same claims and key always make the same text, so that the server keeps no token: it knows
one again by its SHA-256, and can write it once more from its claims.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os

from ...errors import PailotError
from ..secrets import KeyFile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

LONGEST = 4096
KEY_BYTES = 32
HEADER = {"alg": "HS256", "typ": "JWT"}


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
    text = f"{_encoded(_json(HEADER))}.{_encoded(_json(claims))}"
    return f"{text}.{_encoded(_signature(text, key))}"


def verify(token: str, keys: Sequence[bytes], now: float) -> dict[str, Any]:
    """What a token says, if one of the keys signed it and it has not expired; else BadToken."""
    if len(token) > LONGEST or not token.isascii():
        raise BadToken("this is not a token")
    text, dot, signature = token.rpartition(".")
    header, second, payload = text.partition(".")
    if not dot or not second or "." in payload:
        raise BadToken("this is not a token")
    given = _decoded(signature)
    matches = [hmac.compare_digest(_signature(text, key), given) for key in keys]  # always all of them
    if not any(matches):
        raise BadToken("the token was not signed here")
    said = _object(header)
    if said.get("alg") != "HS256" or said.get("typ", "JWT") != "JWT" or "crit" in said:
        raise BadToken("the token is of a kind that is not used here")
    claims = _object(payload)
    if "exp" in claims:
        expires = claims["exp"]
        if isinstance(expires, bool) or not isinstance(expires, int | float):
            raise BadToken("the token does not say when it expires")
        if now >= expires:
            raise BadToken("the token has expired")
    return claims


def digest(token: str) -> str:
    """By this a token is known again, without being kept."""
    return hashlib.sha256(token.encode()).hexdigest()


def _signature(text: str, key: bytes) -> bytes:
    return hmac.digest(key, text.encode("ascii"), "sha256")


def _json(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _decoded(text: str) -> bytes:
    """Bytes of the one text that stands for them: no padding, no characters of another alphabet, no bits left over."""
    try:
        data = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except ValueError:
        raise BadToken("this is not a token") from None
    if _encoded(data) != text:
        raise BadToken("this is not a token")
    return data


def _object(part: str) -> dict[str, Any]:
    try:
        value = json.loads(_decoded(part))
    except (ValueError, RecursionError):
        raise BadToken("this is not a token") from None
    if not isinstance(value, dict):
        raise BadToken("this is not a token")
    return value
