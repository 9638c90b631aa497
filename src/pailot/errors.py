"""The base of every error that Pailot raises on purpose, and the hint that a message ends with."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


class PailotError(Exception):
    """Base of every error that Pailot raises on purpose. Its text is one line for the user."""


def suggestion(word: str, known: Iterable[str]) -> str:
    """Return '; did you mean …?' for the nearest known word, or nothing."""
    from difflib import get_close_matches

    lowered = {name.lower(): name for name in known}
    close = get_close_matches(word.lower(), list(lowered), n=1, cutoff=0.6)
    return f"; did you mean '{lowered[close[0]]}'?" if close else ""
