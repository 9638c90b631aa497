"""How long anything waits at most, in one go.

The kernel takes waits of up to 2^31 milliseconds, 24 days, and raises above that. A time limit may be a year: code that waits
for it wakes once an hour, looks, and waits again.
"""

from __future__ import annotations

LONGEST_WAIT_SECONDS = 3600.0


def capped(seconds: float) -> float:
    """Seconds as any system call takes them: never negative, never long.

    >>> capped(-1), capped(2.5), capped(1e400), capped(float("nan"))
    (0.0, 2.5, 3600.0, 0.0)
    """
    return min(seconds, LONGEST_WAIT_SECONDS) if seconds > 0 else 0.0


def milliseconds(seconds: float | None) -> float | None:
    """The same for `poll`, None for no limit; a millisecond more, so that the moment has come when it returns.

    >>> milliseconds(0.5), milliseconds(1e15), milliseconds(None)
    (501.0, 3600001.0, None)
    """
    return None if seconds is None else capped(seconds) * 1000 + 1
