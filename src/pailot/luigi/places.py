"""Where a task's job runs: this machine, a Pailot server or an OpenPAI cluster (v2), or an old OpenPAI (v1 only).

A job is known by its name. When it has failed, the next run of the pipeline starts it again: here under the same name, on a
server as `name-r2`, `name-r3`, …, since a server keeps a name for ever.
"""

from __future__ import annotations

import time

from ..protocol.problems import PailotError
from ..sdk.errors import RunError
from ..sdk.places import OVER
from ..wire.errors import Denied, NotFound, Refused, Unreachable, WireError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, Protocol

    from ..sdk.job import Job
    from ..sdk.run import Run

    class Place(Protocol):
        """Finds and starts jobs."""

        def latest(self, name: str) -> Started | None:
            """The job of a name that was started last, if its record is left."""

        def start(self, name: str, job: Job, v1: dict[str, Any] | None) -> Started:
            """Start a job, whatever became of those before it."""


SUCCEEDED = ("SUCCEEDED", "SUCCEED")
LOCAL = "local"
POLL_SECONDS = 2.0
_TOKENS: dict[tuple[str, str], tuple[str, float]] = {}


class PaiJobFailed(RunError, RuntimeError):
    """The job of a task did not succeed; `.reason`, `.exit_code`, `.task`, `.last_lines` say why."""


class Started:
    """A job that was started: its Run, or what an old server tells of it."""

    def __init__(self, run: Run, url: str = "") -> None:
        self.run, self.url = run, url

    def state(self) -> str:
        return self.run.state

    def record(self) -> dict[str, Any]:
        return self.run.describe()

    def session(self) -> str:
        """The luigi process that started it."""
        try:
            noted = self.run.job.extras.raw.get("luigi") or {}
        except PailotError:
            return ""  # its file is not told, or is not one of ours
        return str(noted.get("session") or "")

    def changes(self) -> Iterator[None]:
        """Each time something may have changed, until it is over."""
        for _ in self.run:
            yield None

    def lines(self) -> Iterator[str]:
        return iter(self.run.logs(follow=True))

    def stop(self) -> None:
        self.run.stop(wait=False)


class Here:
    """This machine, without a server."""

    def latest(self, name: str) -> Started | None:
        from ..sdk.start import get
        from ..service.runs import NoSuchRun

        try:
            found = get(name)
        except NoSuchRun:
            return None
        return Started(found, f"file://{found.describe()['folder']}") if found.name == name else None

    def start(self, name: str, job: Job, v1: dict[str, Any] | None) -> Started:
        from ..sdk.start import run

        started = run(job)
        return Started(started, f"file://{started.describe()['folder']}")


class There:
    """A server with version 2 of the API."""

    def __init__(self, url: str, token: Callable[[bool], str]) -> None:
        self.url, self._token = url, token

    def latest(self, name: str) -> Started | None:
        found: Started | None = self._asked(lambda client: self._last(client, name))
        return found

    def _last(self, client: Any, name: str) -> Started | None:
        from ..service.runs import NoSuchRun

        last, number = None, 1
        while True:
            try:
                last = client.get(_numbered(name, number))
            except NoSuchRun:
                return self._started(last) if last else None
            number += 1

    def start(self, name: str, job: Job, v1: dict[str, Any] | None) -> Started:
        from ..service.launch import Conflict

        last = self.latest(name)
        number = 1 if last is None else int(last.run.name[len(name) :].removeprefix("-r") or 1) + 1
        while True:
            named = job.replace(name=_numbered(name, number))
            try:
                return self._started(self._asked(lambda client: client.run(named)))  # noqa: B023  # called at once
            except Conflict:
                number += 1  # somebody else's, which we may not see, or one of this moment

    def _started(self, run: Run) -> Started:
        if self.url.endswith("/rest-server"):  # the portal of an OpenPAI cluster is above it
            portal = self.url.removesuffix("/rest-server")
            return Started(run, f"{portal}/job-detail.html?username={run.id.partition('~')[0]}&jobName={run.name}")
        return Started(run, f"{self.url}/api/v2/jobs/{run.id}")

    def _asked(self, work: Callable[[Any], Any]) -> Any:
        """With a token, and once more with a new one if that has expired."""
        from ..sdk.client import Client

        try:
            return work(Client(self.url, self._token(False)))
        except Denied:
            return work(Client(self.url, self._token(True)))


class OldThere:
    """A server with version 1 of the API only, as OpenPAI had up to 0.13."""

    def __init__(self, url: str, token: Callable[[bool], str]) -> None:
        from ..wire.http import Http

        self.url, self._token = url, token
        self._http = Http(url)

    def __del__(self) -> None:
        self._http.close()

    def latest(self, name: str) -> Started | None:
        number, last = 1, ""
        while True:
            try:
                self.describe(_numbered(name, number))
            except NotFound:
                return OldStarted(self, last) if last else None
            last = _numbered(name, number)
            number += 1

    def start(self, name: str, job: Job, v1: dict[str, Any] | None) -> Started:
        if v1 is None:
            raise PailotError(f"{self.url} has version 1 of the API only, which takes no protocol files")
        import json

        last = self.latest(name)
        number = 1 if last is None else int(last.name[len(name) :].removeprefix("-r") or 1) + 1  # type: ignore[attr-defined]  # an OldStarted
        named = {**v1, "jobName": _numbered(name, number)}
        self.ask("POST", "/api/v1/jobs", json.dumps(named).encode())
        return OldStarted(self, named["jobName"])

    def describe(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = self.ask("GET", f"/api/v1/jobs/{name}").json()
        return found

    def ask(self, method: str, path: str, body: bytes | None = None) -> Any:
        for renew in (False, True):
            self._http.token = self._token(renew)
            try:
                return self._http.request(method, path, body, {"Content-Type": "application/json"} if body else None)
            except Denied:
                if renew:
                    raise
            except Refused as error:
                if error.status == 404 or "NotFound" in error.code:
                    raise NotFound(str(error), 404, error.code) from None
                raise
        raise AssertionError("not reached")


class OldStarted(Started):
    """A job of an old server; it has no live events, so it is asked again and again."""

    def __init__(self, place: OldThere, name: str) -> None:
        self.place, self.name = place, name
        self.url = f"{place.url}/api/v1/jobs/{name}"

    def record(self) -> dict[str, Any]:
        status = self.place.describe(self.name)["jobStatus"]
        return {
            "name": self.name,
            "state": status["state"],
            "exitCode": status.get("appExitCode"),
            "reason": status.get("appExitDiagnostics") or f"it ended as {status['state']}",
            "taskRoles": {},
        }

    def state(self) -> str:
        return str(self.record()["state"])

    def session(self) -> str:
        return ""

    def changes(self) -> Iterator[None]:
        while self.state() not in (*OVER, *SUCCEEDED):
            time.sleep(POLL_SECONDS)
            yield None

    def lines(self) -> Iterator[str]:
        return iter(())

    def stop(self) -> None:
        self.place.ask("PUT", f"/api/v1/jobs/{self.name}/executionType", b'{"value": "STOP"}')


def place_for(url: str, username: str, password: str | None, expiration: int, token: str | None) -> Place:
    """The place that an address means; who answers there is found out now."""
    if url == LOCAL:
        return Here()
    from ..wire.client import find
    from ..wire.errors import NotTheApi

    giver = _Tokens(url, username, password, expiration, token)
    try:
        client = find(url)
    except NotTheApi:
        return OldThere(url, giver.v1)
    except Unreachable as error:
        if "does not answer as" in str(error):
            return OldThere(url, giver.v1)
        raise
    client.close()
    giver.url = client.server
    return There(client.server, giver.v2)


class _Tokens:
    """Gives out the token: as it was configured, or by logging in when it is first needed, and again when it has expired."""

    def __init__(self, url: str, username: str, password: str | None, expiration: int, token: str | None) -> None:
        self.url, self.username, self.password, self.expiration, self.token = url, username, password, expiration, token

    def v2(self, renew: bool) -> str:
        return self._give(renew, self._login)

    def v1(self, renew: bool) -> str:
        return self._give(renew, self._login_v1)

    def _give(self, renew: bool, login: Callable[[], str]) -> str:
        if self.token:
            if renew:
                raise Denied(
                    f"{self.url} does not accept the token; it may have expired (token in [OpenPai])", 401, "Unauthorized"
                )
            return self.token
        key = (self.url, self.username)
        known, until = _TOKENS.get(key, ("", 0.0))
        if renew or not known or time.time() > until:
            if self.password is None:
                raise Denied(
                    f"to log in at {self.url} set password or token in [OpenPai] of luigi's configuration", 401, "NoLogin"
                )
            known = login()
            _TOKENS[key] = known, time.time() + 0.8 * self.expiration
        return known

    def _login(self) -> str:
        from ..wire.client import Client

        with Client(self.url) as client:
            return str(client.login(self.username, self.password or "", self.expiration)["token"])

    def _login_v1(self) -> str:
        import json

        from ..wire.http import Http

        said = {"username": self.username, "password": self.password, "expiration": self.expiration}
        http = Http(self.url)
        try:
            reply = http.request("POST", "/api/v1/token", json.dumps(said).encode(), {"Content-Type": "application/json"})
            return str(reply.json()["token"])
        finally:
            http.close()


def _numbered(name: str, number: int) -> str:
    return name if number == 1 else f"{name}-r{number}"


__all__ = ["LOCAL", "SUCCEEDED", "PaiJobFailed", "Place", "Started", "WireError", "place_for"]
