"""The base of every error that Pailot raises on purpose, one that many rooms raise, and the hint that a message ends with."""

from __future__ import annotations

from itertools import islice

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


LONGEST_WORD = 64
"""Nobody mistypes what is longer."""
MOST_KNOWN = 1_000


class PailotError(Exception):
    """Base of every error that Pailot raises on purpose. Its text is one line for the user."""


class NoSuchRun(PailotError):
    """There is no run of that name or id."""

    def __init__(self, message: str, code: str = "") -> None:
        super().__init__(message)
        self.code = code
        """What the server calls it, where one was asked."""


def suggestion(word: str, known: Iterable[str]) -> str:
    """Return '; did you mean …?' for the nearest known word, or nothing."""
    return did_you_mean(nearest(word, known))


def did_you_mean(word: str) -> str:
    """Return the end of a message that names the word; nothing for none."""
    return f"; did you mean '{word}'?" if word else ""


def nearest(word: str, known: Iterable[str]) -> str:
    """Return the known word that is most like another, or nothing.

    Looking for it costs about 10 µs a known word; only the first `MOST_KNOWN` of them are looked at.
    """
    if len(word) > LONGEST_WORD:
        return ""
    from difflib import get_close_matches

    lowered = {name.lower(): name for name in islice(known, MOST_KNOWN) if len(name) <= 2 * LONGEST_WORD}
    close = get_close_matches(word.lower(), list(lowered), n=1, cutoff=0.6)
    return lowered[close[0]] if close else ""
