"""Proof Key for Code Exchange (RFC 7636): a secret that never travels, and its digest that does. S256 is the only method."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from secrets import token_urlsafe

CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}")
VERIFIER = re.compile(r"[A-Za-z0-9._~-]{43,128}")


def new_verifier() -> str:
    """Return a fresh secret of 256 random bits."""
    return token_urlsafe(32)


def challenge_of(verifier: str) -> str:
    """Return what may be shown of a verifier: its SHA-256, as 43 characters."""
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()


def proves(verifier: str, challenge: str) -> bool:
    """Whether a verifier is the one that a challenge was made of."""
    return VERIFIER.fullmatch(verifier) is not None and hmac.compare_digest(challenge_of(verifier), challenge)
