"""How often a client may ask: OpenPAI's limits, counted in whole windows as its server does."""

from __future__ import annotations

import time

from ...values import Value
from .errors import HttpError
from .http import Response

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .http import Headers

_TEXT = b"Too many requests, please try again later."


class TooMany(HttpError):
    """429, whose body is plain text, as OpenPAI's is."""

    def __init__(self, headers: Headers) -> None:
        super().__init__(429, "", _TEXT.decode(), headers)

    def response(self) -> Response:
        return Response(_TEXT, 429, headers=self.headers)


_LONGEST_SECONDS = 86_400 * 365


class Window(Value):
    """A number of requests in a number of seconds."""

    requests: int
    seconds: float


def parse_limits(text: str) -> dict[str, Window]:
    """`all=600/60, submit=3600/3600` as windows by name; `off` for none. Raises ValueError."""
    if text.strip().lower() in ("off", "none", "0"):
        return {}
    limits = {}
    for part in text.split(","):
        name, equals, rate = part.strip().partition("=")
        requests, slash, seconds = rate.partition("/")
        if not (equals and slash) or name not in ("all", "list", "submit", "check"):
            raise ValueError(f"'{part.strip()}' is not like all=600/60, list=120/60, submit=3600/3600 or check=600/60")
        limits[name] = Window(int(requests), float(seconds))
        if not 0 < limits[name].seconds <= _LONGEST_SECONDS:
            raise ValueError(f"'{part.strip()}': the seconds should be above 0 and up to {_LONGEST_SECONDS}")
        if limits[name].requests < 1:
            raise ValueError(f"'{part.strip()}' allows nothing; use 'off' for no limits")
    return limits


class Limiter:
    """Counts requests by key; all counts begin anew with each window, so that memory is bounded by it."""

    def __init__(self, limits: dict[str, Window], clock: Callable[[], float] = time.time) -> None:
        self._limits = limits
        self._clock = clock
        self._counts: dict[str, dict[str, int]] = {name: {} for name in limits}
        self._ends: dict[str, float] = dict.fromkeys(limits, 0.0)

    def __bool__(self) -> bool:
        return bool(self._limits)

    def take(self, name: str, key: str) -> Headers:
        """Count one request; return the headers with the number left. Raises TooMany when none are left."""
        window = self._limits.get(name)
        if window is None:
            return []
        now = self._clock()
        counts = self._counts[name]
        if now >= self._ends[name]:
            counts.clear()
            self._ends[name] = now + window.seconds
        used = counts[key] = counts.get(key, 0) + 1
        left = max(0, window.requests - used)
        headers = [
            (b"x-ratelimit-limit", b"%d" % window.requests),
            (b"x-ratelimit-remaining", b"%d" % left),
            (b"x-ratelimit-reset", b"%d" % (self._ends[name] + 0.999)),
        ]
        if used > window.requests:
            raise TooMany([*headers, (b"retry-after", b"%d" % max(1, self._ends[name] - now + 0.999))])
        return headers
