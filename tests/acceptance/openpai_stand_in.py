"""A server that answers as a plain OpenPAI does: no live events, no records, logs behind addresses of a log service.

It runs nothing; a test says what its one job is doing.
"""

from __future__ import annotations

import json
from typing import Any

from ..support.stand_in_server import Answer, Request, StandIn

TOKEN = "t0ken"
PREFIX = "/rest-server/api/v2"
LOGS = "/log-manager/10.0.0.7:9103/api/v1/logs"


class Openpai:
    """One user, `dana`; one job."""

    def __init__(self) -> None:
        self.state = "WAITING"
        self.attempt = 0
        self.task: dict[str, Any] = {}
        self.status: dict[str, Any] = {}
        self.logs: dict[tuple[int, int, str], bytes] = {}
        """By attempt of the job, attempt of the task, and name."""
        self.submitted = ""
        self.name = ""
        self.stopped: list[dict[str, Any]] = []
        self.leaked: list[str] = []
        self.away = False
        self.with_all = True
        self.server = StandIn(self.answer)
        self.url = self.server.url

    def close(self) -> None:
        self.server.close()

    def answer(self, request: Request) -> Answer | None:
        if self.away:
            request.close_connection = True
            return None
        path, _, query = request.path.partition("?")
        if path.startswith(LOGS):
            return self._log(request, path, query)
        if not path.startswith(PREFIX):
            return 200, "<html>The portal</html>"
        path = path.removeprefix(PREFIX)
        if path == "/info":
            return 200, {"name": "PAI RESTful API", "version": "v1.8.0", "launcherType": "k8s", "authnMethod": "basic"}
        if request.headers.get("Authorization") != f"Bearer {TOKEN}":
            return 401, {"code": "UnauthorizedUserError", "message": "Your token is invalid."}
        if path == "/tokens/check":
            return 200, {"username": "dana", "application": True, "admin": False}
        if (request.command, path) == ("POST", "/jobs"):
            return self._submit(request.body.decode())
        if path.startswith(f"/jobs/dana~{self.name}"):
            return self._job(request, path.removeprefix(f"/jobs/dana~{self.name}"))
        return 404, {"code": "NoJobError", "message": "Job is not found."}

    def _submit(self, text: str) -> Answer:
        self.submitted = text
        self.name = next(line.removeprefix("name: ") for line in text.splitlines() if line.startswith("name: "))
        return 202, {"status": 202, "message": f"Update job {self.name} for user dana successfully."}

    def _job(self, request: Request, rest: str) -> Answer:
        if request.command == "PUT" and rest == "/executionType":
            asked = json.loads(request.body)
            if set(asked) != {"value"}:
                return 400, {"code": "InvalidParametersError", "message": "Could not parse request body."}
            self.stopped.append(asked)
            return 202, {"status": 202, "message": "Execute job successfully."}
        if rest == "":
            return 200, self.detail(self.attempt, self.task)
        if rest.startswith("/attempts/") and rest.endswith("/logs"):
            parts = rest.split("/")
            attempt, task_attempt = int(parts[2]), int(parts[8])
            names = [name for a, t, name in self.logs if (a, t) == (attempt, task_attempt)]
            if not names:
                return 404, {"code": "NoTaskLogError", "message": "Log of task is not found."}
            uri = f"{LOGS}/%s?username=dana&attempt={attempt}.{task_attempt}&token=key"
            return 200, {"locations": [{"name": name, "uri": uri % name} for name in names]}
        if rest.startswith("/attempts/"):
            attempt = int(rest.split("/")[2])
            latest = max(t for a, t, _ in self.logs if a == attempt)
            return 200, self.detail(attempt, {"taskState": "FAILED", "attemptId": latest, "containerExitCode": 1})
        return 404, {"code": "NoApiError", "message": "API is not found."}

    def detail(self, attempt: int, task: dict[str, Any]) -> dict[str, Any]:
        status = {"username": "dana", "state": self.state, "attemptId": attempt, "retryDetails": {"user": attempt, "platform": 0}}
        tasks = [{"taskIndex": 0, "containerIp": "10.0.0.7", "containerPorts": {"ssh": "22000"}, **task}] if task else []
        roles = {"main": {"taskRoleStatus": {"name": "main"}, "taskStatuses": tasks}} if tasks else {}
        return {"name": self.name, "tags": [], "jobStatus": status | self.status, "taskRoles": roles}

    def _log(self, request: Request, path: str, query: str) -> Answer | None:
        if request.headers.get("Authorization"):
            self.leaked.append(request.path)
        values = dict(part.split("=") for part in query.split("&"))
        if values.get("token") != "key":
            return 403, {}
        attempt, task_attempt = map(int, values["attempt"].split("."))
        data = self.logs[attempt, task_attempt, path.rpartition("/")[2]]
        first, _, last = (request.headers.get("Range") or "bytes=0-").removeprefix("bytes=").partition("-")
        if int(first) >= len(data):
            return 416, b""
        request.answer(206, data[int(first) : int(last) + 1 if last else None])
        return None

    # What the job does

    def run(self, task_attempt: int = 0) -> None:
        self.state = "RUNNING"
        self.task = {"taskState": "RUNNING", "attemptId": task_attempt}
        for name in ("stdout", "stderr", "all") if self.with_all else ("stdout", "stderr"):
            self.logs.setdefault((self.attempt, task_attempt, name), b"")

    def say(self, text: str, stream: str = "stdout") -> None:
        for name in (stream, "all") if self.with_all else (stream,):
            self.logs[self.attempt, self.task["attemptId"], name] += text.encode()

    def retry(self) -> None:
        self.attempt += 1
        self.run()

    def end(self, state: str = "SUCCEEDED", code: int = 0, **status: Any) -> None:
        self.task |= {"taskState": state, "containerExitCode": code}
        self.status = {"appExitCode": code, **status}
        self.state = state
