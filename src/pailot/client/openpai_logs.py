"""Logs of an OpenPAI cluster: the server returns addresses relative to the portal's, each with its own key."""

from __future__ import annotations

from urllib.parse import urljoin, urlsplit

from .errors import Denied, Refused
from .http import Http

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TypeAlias

    from .api import Client

    Where: TypeAlias = tuple[str, int, int, int]
    """Role as the server spells it, index, attempt of the job, attempt of the task."""

PIECE = 4 << 20
STREAMS = ("stdout", "stderr", "all")


class LogPlaces:
    """The logs of one job. Not for several threads at once."""

    def __init__(self, client: Client, job: str) -> None:
        self.client, self.job = client, job
        self._places: dict[Where, dict[str, str]] = {}
        self._http: dict[str, Http] = {}

    def names(self, where: Where) -> frozenset[str]:
        """Which streams there are; none before the task has begun."""
        if where not in self._places:
            try:
                found = self._ask(where)
            except Denied:
                raise
            except Refused:
                return frozenset()  # not started yet; OpenPAI returns 404, or 500 for everything else
            if found:
                self._places[where] = found
        return frozenset(self._places.get(where, ()))

    def read(self, where: Where, stream: str, offset: int) -> bytes:
        """What is there from an offset on, at most PIECE bytes."""
        headers = {"Accept": "*/*", "Range": f"bytes={offset}-{offset + PIECE - 1}"}
        for turn in range(2):
            if stream not in self.names(where):
                return b""
            http, path = self._open(self._places[where][stream])
            try:
                reply = http.request("GET", path, None, headers)
            except Refused as error:
                if error.status == 416:
                    return b""  # nothing beyond that yet
                self._places.pop(where, None)  # the key in the address was good for a while only
                if turn:
                    raise
            else:
                return reply.body if reply.status == 206 else reply.body[offset : offset + PIECE]
        return b""

    def new(self, where: Where, stream: str, offset: int) -> Iterator[bytes]:
        """All that is there from an offset on, piece by piece."""
        while stream in self.names(where):
            data = self.read(where, stream, offset)
            if data:
                yield data
            if len(data) < PIECE:
                return
            offset += len(data)

    def tail(self, where: Where) -> bytes:
        """The last 16 KiB of what a task printed."""
        found = self._ask(where, tail=True)
        data = b""
        for stream in ("all",) if "all" in found else ("stdout", "stderr"):
            if stream in found:
                http, path = self._open(found[stream])
                data += http.request("GET", path, None, {"Accept": "*/*"}).body
        return data

    def close(self) -> None:
        for http in self._http.values():
            http.close()

    def _ask(self, where: Where, *, tail: bool = False) -> dict[str, str]:
        role, index, attempt, task_attempt = where
        found = self.client.log_locations(self.job, attempt, role, index, task_attempt, tail=tail)
        return {each["name"]: each["uri"] for each in found if each.get("name") in STREAMS}

    def _open(self, address: str) -> tuple[Http, str]:
        """A connection to where a log is, without our token: the address has what it needs, and may be anybody's."""
        parts = urlsplit(urljoin(self.client.server, address))
        origin = f"{parts.scheme}://{parts.netloc}"
        if origin not in self._http:
            self._http[origin] = Http(origin)
        return self._http[origin], parts.path + (f"?{parts.query}" if parts.query else "")
