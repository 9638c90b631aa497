"""What stands in for a genuine OpenPAI: a real Pailot server behind a filter that lets through only what OpenPAI has.

`version=2` is OpenPAI 1.8 as a portal shows it: its routes below /rest-server, logs at addresses of a log service, answers
without what we add. `version=1` is OpenPAI 0.8: version 1 of the API alone, no prefix, no token needed to read.
"""

from __future__ import annotations

import http.client
import json
import re
from typing import Any

from ..support.servers import Server
from ..support.stand_in_server import Answer, Request, StandIn

NAME = r"[^/]+"
V2 = tuple(
    re.compile(pattern + r"\Z")
    for pattern in (
        r"GET /info",
        r"POST /(authn/basic/login|tokens|tokens/application)",
        r"GET /tokens(/check)?",
        r"(GET|POST) /jobs",
        rf"GET /jobs/{NAME}",
        rf"GET /jobs/{NAME}/(config|events|ssh)",
        rf"PUT /jobs/{NAME}/(executionType|tag)",
        rf"DELETE /jobs/{NAME}/tag",
        rf"GET /jobs/{NAME}/attempts/\d+",
        rf"GET /jobs/{NAME}/attempts/\d+/taskRoles/{NAME}/taskIndex/\d+/attempts",
        rf"GET /jobs/{NAME}/attempts/\d+/taskRoles/{NAME}/taskIndex/\d+/attempts/\d+/logs",
        r"GET /virtual-clusters",
    )
)
V1 = tuple(
    re.compile(pattern + r"\Z")
    for pattern in (
        r"POST /token",
        rf"(GET|POST) (/user/{NAME})?/jobs",
        rf"(GET|PUT|DELETE) (/user/{NAME})?/jobs/{NAME}",
        rf"(GET|PUT) (/user/{NAME})?/jobs/{NAME}/(executionType|config)",
    )
)
LOGS = "/log-manager/10.0.0.7:9103/api/v1/logs"


class Genuine:
    """`refused` counts what a genuine OpenPAI would not know; `expire()` makes every token given out so far invalid."""

    def __init__(self, server: Server, version: int = 2) -> None:
        self.server, self.version = server, version
        self.refused: list[str] = []
        self.asked: list[str] = []
        self.leaked: list[str] = []
        self.posted: list[bytes] = []
        self.logins = 0
        self._expired: set[str] = set()
        self._given: set[str] = set()
        self.stand_in = StandIn(self.answer)
        self.url = self.stand_in.url

    def close(self) -> None:
        self.stand_in.close()

    def __enter__(self) -> Genuine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def expire(self) -> None:
        self._expired |= self._given

    def answer(self, request: Request) -> Answer | None:
        path, _, query = request.path.partition("?")
        if path.startswith(LOGS):
            return self._log(request, path, query)
        base = "/rest-server/api/v2" if self.version == 2 else "/api/v1"
        if not path.startswith(base):
            return (404, "<html>no such page</html>") if self.version == 2 else self._unknown(path)
        asked = f"{request.command} {path.removeprefix(base).rstrip('/')}"
        self.asked.append(asked)
        if request.command == "POST":
            self.posted.append(request.body)
        if not any(known.match(asked) for known in (V2 if self.version == 2 else V1)):
            return self._unknown(asked)
        if request.headers.get("Authorization", "").removeprefix("Bearer ") in self._expired:
            return 401, {"code": "UnauthorizedUserError", "message": "Your token is invalid."}
        if asked.endswith("/executionType") and request.command == "PUT" and set(json.loads(request.body)) != {"value"}:
            return 400, {"code": "InvalidParametersError", "message": "Could not parse request body."}
        status, body, _ = self._forward(request, request.path)
        return self._plain(asked, status, body)

    def _unknown(self, asked: str) -> Answer:
        self.refused.append(asked)
        return 404, {"code": "NoApiError", "message": f"API {asked} is not found."}

    def _plain(self, asked: str, status: int, body: bytes) -> Answer:
        """The server's answer, without what OpenPAI does not say."""
        said: Any = json.loads(body) if body.startswith((b"{", b"[")) else None
        if asked in ("POST /jobs", "POST /token", "POST /authn/basic/login") and isinstance(said, dict) and status < 300:
            said.pop("name", None)
            if "token" in said:
                self.logins += 1
                self._given.add(said["token"])
            return status, said
        if asked.endswith("/logs") and said and "locations" in said:
            for each in said["locations"]:
                where, _, query = each["uri"].partition("?")
                each["uri"] = f"{LOGS}/{each['name']}?job={where.removeprefix('/rest-server')}&{query}"
            return status, said
        return (status, said) if said is not None else (status, body)

    def _log(self, request: Request, path: str, query: str) -> Answer | None:
        """The log service: it knows keys, no tokens."""
        if request.headers.get("Authorization"):
            self.leaked.append(request.path)
        where, _, rest = query.removeprefix("job=").partition("&")
        status, body, headers = self._forward(request, f"{where}?{rest}")
        more = {name.replace("-", "_"): value for name, value in headers.items() if name.lower() == "content-range"}
        request.answer(status, body, **more)
        return None

    def _forward(self, request: Request, path: str) -> tuple[int, bytes, dict[str, str]]:
        wanted = ("authorization", "content-type", "accept", "range")
        headers = {name: value for name, value in request.headers.items() if name.lower() in wanted}
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=60)
        try:
            connection.request(request.command, path, request.body or None, headers)
            reply = connection.getresponse()
            return reply.status, reply.read(), dict(reply.getheaders())
        except OSError:
            return 502, b"", {}
        finally:
            connection.close()
