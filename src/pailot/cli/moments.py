"""Times that a user types: a while ago, or a date."""

from __future__ import annotations

import re
import time

from ..errors import PailotError
from ..printable import printable

_AGO = re.compile(r"([0-9]{1,6})([smhd])")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_FORMATS = ("%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M", "%Y-%m-%d")


def seconds_ago(text: str, option: str) -> float:
    """`30m`, `12h` or `7d` in seconds. Raises PailotError."""
    found = _AGO.fullmatch(text)
    if found is None:
        raise PailotError(f"{option} {printable(text)}: should be a time such as 30m, 12h or 7d")
    return float(int(found[1]) * _SECONDS[found[2]])


def moment(text: str, option: str) -> float:
    """The same, or a date in local time such as `2026-11-18T10:22`, as seconds since 1970. Raises PailotError."""
    if _AGO.fullmatch(text):
        return time.time() - seconds_ago(text, option)
    for form in _FORMATS:
        try:
            return time.mktime(time.strptime(text, form))
        except (ValueError, OverflowError):
            continue
    raise PailotError(f"{option} {printable(text)}: should be a time such as 30m or 12h, or 2026-11-18T10:22 in local time")
