"""A server's API, a method for each route that we use. JOB is `user~name`; a bare name means a job of the caller."""

from __future__ import annotations

import json
import time
from urllib.parse import quote, urlencode

from ..progress import Meter
from ..values import Value
from . import sse
from .errors import Denied, NotFound, NotTheApi, Redirected, Refused, Unreachable, WireError
from .http import TIMEOUT, Http, NotSent, Reply, refusal, words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from http.client import HTTPResponse
    from typing import IO, Any, Self

    from ..progress import Progress
    from .code_archive import Packed
    from .sockets import WebSocket
    from .sse import Event

FINAL = frozenset(("SUCCEEDED", "FAILED", "STOPPED"))
V2 = "/api/v2"
MOST_FOLLOWED = 200
"""The number of tasks of a job whose logs are followed at once: each needs a connection of its own."""
UPLOAD_TIMEOUT = 3600.0


class LogPiece(Value):
    """A piece of a log: whose it is, the offset after it, and the id to go on from."""

    attempt: int
    task_attempt: int
    offset: int
    text: str
    id: str = ""
    missing: int = 0
    """Bytes before it that the server has rotated away before they could be sent."""


class Client:
    """Talks to one server as one user."""

    def __init__(self, server: str, token: str = "", user: str = "", *, timeout: float = TIMEOUT) -> None:
        self.http = Http(server, token, timeout=timeout)
        self._user = user

    @property
    def server(self) -> str:
        """Its address; a redirect to https changes it."""
        return self.http.server

    @property
    def token(self) -> str:
        return self.http.token

    @property
    def user(self) -> str:
        """Whose token it is; the server is asked where that is not known."""
        if not self._user:
            try:
                self._user = str(self.whoami().get("username") or "")
            except NotFound:
                raise NotTheApi(f"{self.server} answers, but not as OpenPAI's API does") from None
        return self._user

    def close(self) -> None:
        self.http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # The server, and who one is there

    def info(self) -> dict[str, Any]:
        """Name, version and way of logging in; needs no token."""
        return self._get("/info")

    def about(self) -> dict[str, Any]:
        """What a Pailot server tells of itself to who is logged in; `warnings` is what its users should know."""
        return self._get("/server")

    def login(self, username: str, password: str, expiration: float | None = None) -> dict[str, Any]:
        """Exchange a password for a token, which this client uses from now on."""
        body: dict[str, object] = {"username": username, "password": password}
        if expiration is not None:
            body["expiration"] = int(expiration)
        try:
            answer = self._json("POST", "/authn/basic/login", body)
        except Refused as error:  # OpenPAI returns 400 for a wrong password
            if error.code in ("IncorrectPasswordError", "NoUserError"):
                raise Denied(error.message, error.status, error.code) from None
            raise
        self.http.token, self._user = answer["token"], answer["user"]
        return answer

    def authn(self) -> dict[str, Any]:
        """How users log in: `password`, and `signInWith`, the name of an identity provider; OpenPAI tells neither."""
        return self._get("/authn/info")

    def login_by_grant(self, grant: str, verifier: str) -> dict[str, Any]:
        """Exchange the end of a sign-in for a token, which this client uses from now on."""
        answer: dict[str, Any] = self._json("POST", "/authn/oidc/token", {"grant": grant, "verifier": verifier})
        self.http.token, self._user = answer["token"], answer["user"]
        return answer

    def logout(self) -> None:
        """Have the token of this login revoked."""
        self._json("DELETE", "/authn/basic/logout")

    def whoami(self) -> dict[str, Any]:
        """What the token says: `username`, `application`, `admin`."""
        return self._get("/tokens/check")

    def tokens(self) -> list[str]:
        found: list[str] = self._get("/tokens")["tokens"]
        return found

    def create_token(self) -> str:
        """A token for programs, which does not expire."""
        made: str = self._json("POST", "/tokens/application", {})["token"]
        return made

    def page_code(self) -> str:
        """A code that opens a session of the web page once, within a minute."""
        made: str = self._json("POST", "/session/code", {})["code"]
        return made

    def revoke_token(self, token: str) -> None:
        self._json("DELETE", f"/tokens/{_part(token)}")

    def users(self) -> list[dict[str, Any]]:
        return self._list("/users")

    def get_user(self, username: str) -> dict[str, Any]:
        return self._get(f"/users/{_part(username)}")

    def create_user(
        self,
        username: str,
        password: str,
        *,
        email: str = "",
        admin: bool = False,
        virtual_clusters: Sequence[str] = (),
        unix_user: str = "",
    ) -> dict[str, Any]:
        """Answers what the server says to it: `message`, and `warnings` of what follows from it."""
        body: dict[str, object] = {"username": username, "password": password, "admin": admin, "extension": {}}
        if email:
            body["email"] = email
        if virtual_clusters:
            body["virtualCluster"] = list(virtual_clusters)
        if unix_user:
            body["unixUser"] = unix_user
        return self._json("POST", "/users", body)

    def update_user(self, username: str, **data: Any) -> None:
        """Change `email`, `virtualCluster`, `admin`, `password`, `unixUser` or `extension`; for admins."""
        self._json("PUT", "/users", {"patch": True, "data": {"username": username, **data}})

    def change_password(self, username: str, old: str, new: str) -> None:
        self._json("PUT", f"/users/{_part(username)}/password", {"oldPassword": old, "newPassword": new})

    def remove_user(self, username: str) -> None:
        self._json("DELETE", f"/users/{_part(username)}")

    def virtual_clusters(self) -> dict[str, Any]:
        return self._get("/virtual-clusters")

    def put_virtual_cluster(self, name: str, changes: Mapping[str, Any]) -> None:
        """Make one, or change what is named of it: `vcCapacity`, `resourcesGuaranteed`, `userLimits`, …; for admins."""
        self._json("PUT", f"/virtual-clusters/{_part(name)}", dict(changes))

    def remove_virtual_cluster(self, name: str) -> None:
        self._json("DELETE", f"/virtual-clusters/{_part(name)}")

    def storages(self) -> list[dict[str, Any]]:
        return list(self._get("/storages")["storages"])

    # Jobs

    def submit(self, text: str, *, code: str = "") -> str:
        """Submit a job file; `code` is the archive's name that `send_code` returned. Returns the job's full name."""
        return str(self.submit_job(text, code=code).get("name") or "")

    def submit_job(self, text: str, *, code: str = "", after: Sequence[str] = ()) -> dict[str, Any]:
        """The same, after the jobs that `after` names (`JOB[:success|:end]`). Returns the whole response, `warnings` included."""
        query = {"code": code, "after": ",".join(after)}
        path = f"/jobs{_query({key: value for key, value in query.items() if value})}"
        data = self._request("POST", path, text.encode(), {"Content-Type": "text/yaml"}).json()
        return data if isinstance(data, dict) else {}

    def jobs(self, **query: Any) -> list[dict[str, Any]]:
        """Jobs, newest first: `username`, `state`, `vc`, `keyword`, `tagsContain`, `order`, `offset`, `limit`, …"""
        return self._list(f"/jobs{_query(query)}")

    def jobs_and_total(self, **query: Any) -> tuple[list[dict[str, Any]], int]:
        found = self._get(f"/jobs{_query({**query, 'withTotalCount': 'true'})}")
        return found["data"], int(found["totalCount"])

    def job(self, job: str, attempt: int | None = None) -> dict[str, Any]:
        """A job as OpenPAI describes it."""
        return self._get(f"/jobs/{_part(job)}" + ("" if attempt is None else f"/attempts/{attempt}"))

    def record(self, job: str, attempt: int | None = None) -> dict[str, Any]:
        """A job as `pailot show --json` prints it, with its tasks in an attempt, or in the last."""
        return self._get(f"/jobs/{_part(job)}/record{_query({'attempt': attempt})}")

    def journal(self, job: str) -> list[dict[str, Any]]:
        """What happened, as `pailot events --json` prints it."""
        return self._list(f"/jobs/{_part(job)}/journal")

    def audit(self, **query: Any) -> list[dict[str, Any]]:
        """Who did what on the server, the newest first; for administrators."""
        return self._list(f"/audit{_query({key: value for key, value in query.items() if value})}")

    def usage(self, job: str) -> list[dict[str, Any]]:
        """What each task of a job uses now, its peaks, and what it asked for."""
        found: list[dict[str, Any]] = self._get(f"/jobs/{_part(job)}/usage")["tasks"]
        return found

    def library(self, words: str = "", kind: str = "") -> Iterator[dict[str, Any]]:
        """What the server's library holds: of each name the newest version."""
        offset = 0
        while True:
            query = {"q": words, "type": kind, "offset": offset, "limit": 200}
            page = self._get(f"/library{_query({key: value for key, value in query.items() if value})}")
            yield from page["data"]
            offset += len(page["data"])
            if not page["data"] or offset >= page["totalCount"]:
                return

    def library_entry(self, name: str, version: str = "") -> dict[str, Any]:
        """An entry of the library with its `text`, its `versions` and where its `content` lies."""
        return self._get(_entry_path(name, version))

    def put_library_entry(self, name: str, text: str, *, replace: bool = False, owner: str = "") -> dict[str, Any]:
        """Keep a file in the library under its name and version."""
        query = {"replace": "true" if replace else "", "owner": owner}
        path = _entry_path(name) + _query({key: value for key, value in query.items() if value})
        made: dict[str, Any] = self._request("PUT", path, text.encode(), {"Content-Type": "text/yaml"}).json()
        return made

    def remove_library_entry(self, name: str, version: str = "") -> None:
        """Remove one version, or a name with all its versions."""
        self._json("DELETE", _entry_path(name, version))

    def why(self, job: str) -> dict[str, Any]:
        """`lines` that say why a job is in the state it is in."""
        return self._get(f"/jobs/{_part(job)}/why")

    def config(self, job: str) -> str:
        """The job file, secrets masked."""
        return self._request("GET", f"/jobs/{_part(job)}/config", None, {"Accept": "text/yaml"}).text()

    def events(self, job: str) -> list[dict[str, Any]]:
        """What OpenPAI calls events."""
        return list(self._get(f"/jobs/{_part(job)}/events")["data"])

    def task(self, job: str, attempt: int, role: str, index: int) -> dict[str, Any]:
        """A task with all its attempts, the newest first."""
        return self._get(f"/jobs/{_part(job)}/attempts/{attempt}/taskRoles/{_part(role)}/taskIndex/{index}/attempts")

    def stop(self, job: str, *, now: bool = False) -> None:
        """Ask for a job to be stopped; the answer does not wait for it."""
        body = {"value": "STOP", **({"now": True} if now else {})}
        self._json("PUT", f"/jobs/{_part(job)}/executionType", body)

    def rerun(self, job: str, *, name: str | None = None, secrets: Mapping[str, str] | None = None) -> str:
        """Submit the same job again under another name; return that name."""
        body: dict[str, object] = {}
        if name:
            body["name"] = name
        if secrets:
            body["secrets"] = dict(secrets)
        return str(self._json("POST", f"/jobs/{_part(job)}/rerun", body)["name"])

    def delete(self, job: str) -> None:
        """Remove a job that is over."""
        self._json("DELETE", f"/jobs/{_part(job)}")

    def add_tag(self, job: str, tag: str) -> None:
        self._json("PUT", f"/jobs/{_part(job)}/tag", {"value": tag})

    def remove_tag(self, job: str, tag: str) -> None:
        self._json("DELETE", f"/jobs/{_part(job)}/tag", {"value": tag})

    def wait(self, job: str, *, timeout: float | None = None, patience: float = sse.PATIENCE) -> dict[str, Any] | None:
        """Wait until a job is over; return its record, or None when the time is up first.

        It is told by the server; where the line breaks or is silent it looks again, over a restart of the server, too.
        """
        end = None if timeout is None else time.monotonic() + timeout
        record = self.record(job)
        if record["state"] in FINAL:
            return record
        silence = sse.SILENCE if timeout is None else max(0.05, min(sse.SILENCE, timeout))
        for event in self.live(job, patience=patience, silence=silence):
            if event is None or event.event == "end" or _says_final(event):
                try:
                    record = self.record(job)
                except Unreachable:
                    continue  # the stream knows how long to be patient
                if record["state"] in FINAL:
                    return record
            if end is not None and time.monotonic() >= end:
                return None
        return self.record(job)

    def live(self, job: str, last_id: str = "", http: Http | None = None, **options: float) -> Iterator[Event | None]:
        """Events of one job: `job`, `task`, at last `end`; None says that something may have been missed.

        `http` is a connection for it alone, which another thread may interrupt.
        """
        return self._follow(f"/jobs/{_part(job)}/live", last_id, http, **options)

    def live_jobs(self, last_id: str = "", **options: float) -> Iterator[Event | None]:
        """State changes of all jobs that the caller may see."""
        return self._follow("/live/jobs", last_id, None, **options)

    # Logs

    def log(
        self,
        job: str,
        role: str,
        index: int,
        *,
        stream: str = "all",
        attempt: int | None = None,
        task_attempt: int | None = None,
        offset: int = 0,
        limit: int | None = None,
    ) -> bytes:
        """A task's log from an offset to its present end, or at most `size` bytes of it."""
        return self.log_piece(
            job, role, index, stream=stream, attempt=attempt, task_attempt=task_attempt, offset=offset, limit=limit
        )[1]

    def log_piece(
        self,
        job: str,
        role: str,
        index: int,
        *,
        stream: str = "all",
        attempt: int | None = None,
        task_attempt: int | None = None,
        offset: int = 0,
        limit: int | None = None,
    ) -> tuple[int, bytes]:
        """As `log`, and the offset of the first byte: it is beyond the one asked for where that was rotated away."""
        path = self.log_path(job, role, index, stream, attempt, task_attempt)
        headers = {"Accept": "text/plain"}
        if offset or limit is not None:
            headers["Range"] = f"bytes={offset}-" + ("" if limit is None else str(offset + limit - 1))
        try:
            reply = self._request("GET", path, None, headers)
        except Refused as error:
            if error.code == "LogRotatedError" and limit is not None:
                return self.log_piece(job, role, index, stream=stream, attempt=attempt, task_attempt=task_attempt, offset=offset)
            if error.status == 416:
                return offset, b""  # nothing beyond that yet
            raise
        if reply.status != 206:
            return offset, reply.body[offset:]
        start = reply.headers.get("content-range", "").removeprefix("bytes ").partition("-")[0]
        return int(start) if start.isdecimal() else offset, reply.body

    def log_index(self, job: str, role: str, index: int, **query: Any) -> dict[str, Any]:
        """When each part of a log was written: `stream`, `attempt`, `taskAttempt`, `from`, `to`; see the REST API."""
        return self._get(f"/jobs/{_part(job)}/logs/{_part(role)}/{index}/index{_query(query)}")

    def search(self, job: str, q: str, **query: Any) -> Iterator[dict[str, Any]]:
        """Lines of a job's logs: `regex`, `case`, `role`, `index`, …; the last one has `end`, `hits` and `stopped`."""
        return _json_lines(self._open(f"/jobs/{_part(job)}/search{_query({'q': q, **query})}"))

    def logs_archive(self, job: str, **query: Any) -> HTTPResponse:
        """All logs of a job as a ZIP file, which the caller reads to its end: `role`, `stream`."""
        return self._open(f"/jobs/{_part(job)}/logs.zip{_query(query)}")

    def log_locations(
        self, job: str, attempt: int, role: str, index: int, task_attempt: int, *, tail: bool = False
    ) -> list[dict[str, str]]:
        """Where OpenPAI has the logs of a task attempt: `name` and `uri` of each; `tail`: of the last 16 KiB."""
        path = f"/jobs/{_part(job)}/attempts/{attempt}/taskRoles/{_part(role)}/taskIndex/{index}/attempts/{task_attempt}/logs"
        path += "?tail-mode=true" if tail else ""
        found: list[dict[str, str]] = self._get(path)["locations"]
        return found

    def follow_log(
        self,
        job: str,
        role: str,
        index: int,
        *,
        stream: str = "all",
        attempt: int | None = None,
        task_attempt: int | None = None,
        after: str = "",
        http: Http | None = None,
        **options: float,
    ) -> Iterator[LogPiece | None]:
        """Pieces of a task's log as it grows, to the end of the job; None: the line broke.

        `after` is the id of the last piece seen, or ATTEMPT.TASK_ATTEMPT.OFFSET of any place. Without an attempt every retry
        is followed, from the latest on; with one, that alone.
        """
        path = self.log_path(job, role, index, stream, attempt, task_attempt)
        for event in self._follow(f"{path}&follow=true", after, http, **options):
            if event is None:
                yield None
            elif event.event == "end":
                return
            else:
                piece = json.loads(event.data)
                where = (int(piece.get("attempt") or 0), int(piece.get("taskAttempt") or 0))
                missing = int(piece.get("missing") or 0)
                yield LogPiece(*where, int(piece["offset"]), str(piece["text"]), event.id, missing)

    # Code folders

    # Tasks

    def open_shell(self, job: str, role: str, index: int) -> WebSocket:
        """A shell beside a task of one's own; `docs/reference/rest-api.md` says what is sent over it."""
        from .sockets import connect

        return connect(self.http.clone(), f"{self._task(job, role, index)}/shell")

    def open_port(self, job: str, role: str, index: int, port: str) -> WebSocket:
        """A connection to a port of a task of one's own, by its number or its label."""
        from .sockets import connect

        return connect(self.http.clone(), f"{self._task(job, role, index)}/ports/{_part(port)}/connection")

    def task_ports(self, job: str, role: str, index: int) -> dict[str, Any]:
        """The ports of a task: `given` by their labels, and those that it is `listening` on."""
        return self._get(self._task(job, role, index).removeprefix(V2) + "/ports")

    def describe_file(self, job: str, role: str, index: int, path: str, mark: str = "") -> dict[str, Any]:
        """What is at a path below the working directory of a task: `kind`, `size`, `version`; and how much of a copy is there."""
        query = _query({"path": path, "describe": "true", "mark": mark or None})
        return self._get(self._task(job, role, index).removeprefix(V2) + f"/files{query}")

    def read_file(self, job: str, role: str, index: int, path: str, offset: int = 0, *, archive: bool = False) -> HTTPResponse:
        """A file from an offset on, or a folder as a tar archive; the caller reads it to its end."""
        query = _query({"path": path, "offset": offset, "archive": "true" if archive else None})
        return self._open(f"{self._task(job, role, index).removeprefix(V2)}/files{query}")

    def _open(self, path: str) -> HTTPResponse:
        """A response that is read as it comes, on a connection of its own."""
        from http.client import HTTPException

        http = self.http.clone()
        try:
            response = http.send("GET", V2 + path)
        except (OSError, HTTPException) as error:
            raise Unreachable(f"{http.server} cannot be reached: {words(error)}") from None
        except NotSent as error:
            raise Unreachable(f"{http.server} cannot be reached: {words(error.cause)}") from None
        if response.status >= 400:
            headers = {name.lower(): value for name, value in response.getheaders()}
            raise refusal(Reply(response.status, headers, response.read()), http.server)
        return response

    def write_file(self, job: str, role: str, index: int, path: str, body: IO[bytes], **about: Any) -> dict[str, Any]:
        """Write a file from an offset on, or with `archive` a folder from a tar archive."""
        http = self.http.clone()
        http.retries = 0  # what was read of the body is gone
        path = f"{self._task(job, role, index)}/files{_query({'path': path, **about})}"
        try:
            reply = http.request("PUT", path, body, {"Content-Type": "application/octet-stream"}, timeout=UPLOAD_TIMEOUT)
        finally:
            http.close()
        found: dict[str, Any] = reply.json()
        return found

    def _task(self, job: str, role: str, index: int) -> str:
        return f"{V2}/jobs/{_part(job)}/tasks/{_part(role)}/{index}"

    def has_code(self, sha256: str) -> bool:
        try:
            self._request("HEAD", f"/code/{sha256}")
        except NotFound:
            return False
        return True

    def send_code(self, packed: Packed, tell: Callable[[Progress], None] = lambda _: None) -> str:
        """Send an archive unless the server has it; return its name."""
        if not self.has_code(packed.sha256):
            from .code_archive import Counted

            meter = Meter("sending code", packed.size, tell)
            headers = {"Content-Type": "application/gzip", "Content-Length": str(packed.size)}
            counted = Counted(packed.stream, meter)
            self.http.request("PUT", f"{V2}/code/{packed.sha256}", counted, headers, timeout=UPLOAD_TIMEOUT)  # type: ignore[arg-type]  # all that is used of a file
            meter.end()
        return packed.sha256

    # Inside

    def log_path(self, job: str, role: str, index: int, stream: str, attempt: int | None, task_attempt: int | None) -> str:
        """Where a log is below the API."""
        query = {"stream": stream, "attempt": attempt, "taskAttempt": task_attempt}
        return f"/jobs/{_part(job)}/logs/{_part(role)}/{index}{_query(query)}"

    def _get(self, path: str) -> dict[str, Any]:
        found: dict[str, Any] = self._request("GET", path).json()
        return found

    def _list(self, path: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._request("GET", path).json()
        return found

    def _json(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        data = None if body is None else json.dumps(body).encode()
        reply = self._request(method, path, data, {"Content-Type": "application/json"} if data is not None else None)
        found: dict[str, Any] = reply.json() if reply.body else {}
        return found

    def _request(self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None) -> Reply:
        return self.http.request(method, V2 + path, body, headers)

    def _follow(self, path: str, last_id: str = "", http: Http | None = None, **options: float) -> Iterator[Event | None]:
        return sse.follow(http or self.http.clone(), V2 + path, last_id, **options)


def find(server: str, token: str = "", user: str = "") -> Client:
    """A client of the API at or below an address: an OpenPAI cluster has it below `/rest-server`."""
    problem: WireError | None = None
    for place in (server, f"{server.rstrip('/')}/rest-server"):
        client = Client(place, token, user)
        try:
            if "name" in client.info():
                return client
        except WireError as error:
            client.close()
            problem = problem or error
            if isinstance(error, Unreachable) and not isinstance(error, NotTheApi):
                break
    if isinstance(problem, Redirected) or (isinstance(problem, Unreachable) and not isinstance(problem, NotTheApi)):
        raise problem
    raise NotTheApi(f"{server} does not answer as OpenPAI's API does, here or below /rest-server")


def _says_final(event: Event) -> bool:
    try:
        return json.loads(event.data).get("state") in FINAL
    except (ValueError, AttributeError):
        return False


def _entry_path(name: str, version: str = "") -> str:
    return f"/library/{_part(name)}" + (f"/{_part(version)}" if version else "")


def _part(text: str) -> str:
    """A name as a part of a path."""
    return quote(text, safe="~")


def _query(values: Mapping[str, Any]) -> str:
    given = {
        name: ",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
        for name, value in values.items()
        if value is not None and value != ""
    }
    return f"?{urlencode(given)}" if given else ""


def _json_lines(response: HTTPResponse) -> Iterator[dict[str, Any]]:
    with response:
        for line in response:
            yield json.loads(line)
