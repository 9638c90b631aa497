"""Where the logs of a job are: a Pailot has them whole at addresses of its own, an OpenPAI tells where each is."""

from __future__ import annotations

from ...runtime.logs import STREAMS
from ...wire.errors import NotFound, Refused
from ...wire.http import Http

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...wire.client import Client
    from .mirror import TaskLogs

PIECE = 4 << 20


class PailotLogs:
    """Logs of a Pailot server: exact offsets, one address for each."""

    def __init__(self, client: Client, job: str) -> None:
        self.client, self.job = client, job

    def fetch(self, role: str, index: int, attempt: int, task_attempt: int, logs: TaskLogs) -> bool:
        """Take what is new; answers whether there was something."""
        grown = False
        for stream in ("all", "stdout", "stderr"):
            while True:
                try:
                    data = self.client.log(
                        self.job,
                        role,
                        index,
                        stream=stream,
                        attempt=attempt,
                        task_attempt=task_attempt,
                        offset=logs.offset(stream),
                        limit=PIECE,
                    )
                except NotFound:
                    return grown  # it has not begun
                grown |= logs.add(stream, data)
                if len(data) < PIECE:
                    break
            if stream == "all" and not grown and logs.offset("all") == logs.offset("stdout") + logs.offset("stderr"):
                return False  # the others have nothing, either
        return grown

    def flush(self, logs: TaskLogs) -> bool:
        return logs.flush()


class OpenpaiLogs:
    """Logs of an OpenPAI cluster: the server answers with addresses, relative to the portal's, that hold a key."""

    def __init__(self, client: Client, job: str) -> None:
        self.client, self.job = client, job
        self._places: dict[tuple[str, int, int, int], dict[str, str]] = {}
        self._http: dict[str, Http] = {}
        self._without_all = False

    def fetch(self, role: str, index: int, attempt: int, task_attempt: int, logs: TaskLogs) -> bool:
        key = (role, index, attempt, task_attempt)
        try:
            places = self._places.get(key) or self._locations(*key)
        except Refused:
            return False  # not started yet; OpenPAI answers 404, or 500 for everything else
        if not places:
            return False
        self._places[key] = places
        self._without_all = "all" not in places
        grown = False
        for stream in STREAMS:
            if stream in places:
                try:
                    grown |= self._take(places[stream], stream, logs)
                except Refused:
                    self._places.pop(key, None)  # the key in the address was good for a while only
        return grown

    def flush(self, logs: TaskLogs) -> bool:
        return logs.flush(also_all=self._without_all)

    def _take(self, address: str, stream: str, logs: TaskLogs) -> bool:
        grown = False
        while True:
            offset = logs.offset(stream)
            http, path = self._open(address)
            try:
                reply = http.request("GET", path, None, {"Accept": "*/*", "Range": f"bytes={offset}-{offset + PIECE - 1}"})
            except Refused as error:
                if error.status == 416:
                    return grown  # nothing beyond that yet
                raise
            data = reply.body if reply.status == 206 else reply.body[offset:]
            grown |= logs.add(stream, data, also_all=self._without_all)
            if reply.status != 206 or len(data) < PIECE:
                return grown

    def _locations(self, role: str, index: int, attempt: int, task_attempt: int) -> dict[str, str]:
        found = self.client.log_locations(self.job, attempt, role, index, task_attempt)
        return {each["name"]: each["uri"] for each in found if each.get("name") in STREAMS}

    def _open(self, address: str) -> tuple[Http, str]:
        """A connection to where a log is, without our token: the address has what it needs, and may be anybody's."""
        from urllib.parse import urljoin, urlsplit

        parts = urlsplit(urljoin(self.client.server, address))
        origin = f"{parts.scheme}://{parts.netloc}"
        if origin not in self._http:
            self._http[origin] = Http(origin)
        return self._http[origin], parts.path + (f"?{parts.query}" if parts.query else "")

    def close(self) -> None:
        for http in self._http.values():
            http.close()
