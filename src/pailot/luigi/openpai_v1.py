"""An OpenPAI with version 1 of the API only, as it was up to 0.13: it has no live events, so it is asked again and again."""

from __future__ import annotations

import json
import time

from ..client.errors import NotFound, Refused, Unreachable
from ..client.http import Http
from ..client.sse import PATIENCE
from ..errors import PailotError
from ..runfolder import journal
from ..sdk.run import Run
from ..views.base import View
from .started import ENDED, Started, last_of, numbered

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from ..sdk.job import Job
    from ..views.base import Which
    from ..views.cancellation import Quit
    from ..views.log_pieces import Piece
    from .auth import Tokens

POLL_SECONDS = 2.0


class OldThere:
    """Such a server."""

    def __init__(self, url: str, tokens: Tokens) -> None:
        self.url, self._tokens = url, tokens
        tokens.version = 1
        self._http = Http(url)
        self._http.renew = tokens.renewed

    def __del__(self) -> None:
        self._http.close()

    def latest(self, name: str) -> Started | None:
        found = last_of(name, self._get)
        return found[1] if found else None

    def _get(self, name: str) -> Started | None:
        try:
            self.describe(name)
        except NotFound:
            return None
        return self._started(name)

    def start(self, name: str, job: Job, v1: Mapping[str, object] | None) -> Started:
        if v1 is None:
            raise PailotError(f"{self.url} has version 1 of the API only, which takes no protocol files")
        last = last_of(name, self._get)
        number = last[0] + 1 if last else 1
        while True:
            wanted = numbered(name, number)
            try:
                self.ask("POST", "/api/v1/jobs", json.dumps({**v1, "jobName": wanted}).encode())
                return self._started(wanted)
            except Refused as error:
                if error.status != 409:
                    raise
                taken = self._get(wanted)
                if taken is not None and taken.is_good():
                    return taken
                number += 1

    def sees(self, path: str) -> bool:
        return False  # it has a $PAI_DEFAULT_FS_URI of its own

    def _started(self, name: str) -> Started:
        return Started(Run(OldView(self, name)), f"{self.url}/api/v1/jobs/{name}")

    def describe(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = self.ask("GET", f"/api/v1/jobs/{name}").json()
        return found

    def ask(self, method: str, path: str, body: bytes | None = None) -> Any:
        self._http.token = self._tokens.now()
        try:
            return self._http.request(method, path, body, {"Content-Type": "application/json"} if body else None)
        except Refused as error:
            if error.status == 404 or "NotFound" in error.code or error.code == "NoJobError":
                raise NotFound(str(error), 404, error.code) from None
            raise


class OldView(View):
    """A job of such a server. Its output is in pages for people only."""

    def __init__(self, place: OldThere, name: str) -> None:
        self.place, self.name, self.id = place, name, name

    def record(self, attempt: int | None = None) -> dict[str, Any]:
        status = self.place.describe(self.name)["jobStatus"]
        return {
            "name": self.name,
            "state": status["state"],
            "exitCode": status.get("appExitCode"),
            "reason": status.get("appExitDiagnostics") or f"it ended as {status['state']}",
            "taskRoles": {},
        }

    def events(self, quit: Quit) -> Iterator[Mapping[str, Any]]:
        """Its state, at each look."""
        heard = time.monotonic()
        while not quit.is_set:
            try:
                state = self.record()["state"]
                if state in ENDED:
                    return
                heard = time.monotonic()
                yield {"event": journal.STATE, "at": time.time(), "state": state}
            except Unreachable:
                if time.monotonic() - heard > PATIENCE:
                    raise
            except Refused as error:
                if error.status < 500 or time.monotonic() - heard > PATIENCE:
                    raise
            quit.wait(POLL_SECONDS)

    def pieces(self, which: Which, follow: bool, quit: Quit, record: Mapping[str, Any] | None = None) -> Iterator[Piece]:
        return iter(())

    def stop(self, now: bool) -> None:
        self.place.ask("PUT", f"/api/v1/jobs/{self.name}/executionType", b'{"value": "STOP"}')
