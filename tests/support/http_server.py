"""A real `pailot serve` for tests: a process with a home of its own, asked over HTTP."""

from __future__ import annotations

import http.client
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from pailot.testing.runs import PATIENCE

PASSWORD = "correct horse"

JOB = """\
protocolVersion: 2
name: {name}
type: job
prerequisites:
  - {{name: image, type: dockerimage, uri: debian}}
{more}
taskRoles:
  main:
    instances: {instances}
    completion: {{minFailedInstances: 1, minSucceededInstances: {instances}}}
    taskRetryCount: {retries}
    dockerImage: image
    resourcePerInstance: {{cpu: 1, memoryMB: 64, gpu: 0}}
    commands:
      - |
        {command}
"""


def job(name: str, command: str = "echo hello", *, instances: int = 1, retries: int = 0, more: str = "") -> str:
    """A small job file."""
    body = command.replace("\n", "\n        ")
    return JOB.format(name=name, command=body, instances=instances, retries=retries, more=more)


class Answer:
    """What the server said."""

    def __init__(self, status: int, headers: http.client.HTTPMessage, body: bytes) -> None:
        self.status, self.headers, self.body = status, headers, body

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> str | None:
        """The code of an error."""
        found: str | None = self.json.get("code")
        return found

    def __repr__(self) -> str:
        return f"{self.status} {self.body[:2000]!r}"


class Server:
    """A running server; its user `admin` has the password PASSWORD."""

    program: tuple[str, ...] = (str(Path(sys.executable).with_name("pailot")),)

    def __init__(self, home: Path | None = None, *arguments: str, **environment: str) -> None:
        self.made = home is None
        self.home = Path(tempfile.mkdtemp(prefix="pailot-server-")) if home is None else home
        self.arguments = arguments
        inherited = {key: value for key, value in os.environ.items() if not key.startswith("PAILOT_")}
        self.environment = {
            **inherited,
            "PAILOT_HOME": str(self.home),
            "PAILOT_ADMIN_PASSWORD": PASSWORD,
            "PAILOT_RATE_LIMITS": "off",
            "PAILOT_CPUS": "16",
            "PAILOT_MEMORY_MB": "16000",
            "PAILOT_GPUS": "0",
            "XDG_CONFIG_HOME": str(self.home / "config"),
            **environment,
        }
        self.port = 0
        self.process: subprocess.Popen[str] | None = None
        self.log = self.home / "serve.log"
        self._token = ""

    def __enter__(self) -> Server:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()
        if self.made:
            shutil.rmtree(self.home, ignore_errors=True)

    def start(self) -> Server:
        """Start it, and wait until it says that it can be called."""
        self.home.mkdir(parents=True, exist_ok=True)
        command = [*self.program, "serve", "--port", str(self.port), "--json", *self.arguments]
        with open(self.log, "a") as log:
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, env=self.environment)
        assert self.process.stdout
        if not select.select([self.process.stdout], [], [], PATIENCE)[0]:
            raise AssertionError("the server did not start in time")
        line = self.process.stdout.readline()
        assert line, f"the server did not start: {self.log.read_text()}"
        self.told = json.loads(line)
        self.url: str = self.told["url"]
        self.port = int(self.url.rpartition(":")[2])
        return self

    def stop(self) -> int:
        """Ask it to end, and wait for that; its exit status."""
        assert self.process
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(PATIENCE)
        if self.process.stdout:
            self.process.stdout.close()
        return status

    def kill(self) -> None:
        """As a crash does."""
        assert self.process
        self.process.kill()
        self.process.wait(PATIENCE)
        if self.process.stdout:
            self.process.stdout.close()

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        token: str | None = "",
        *,
        kind: str = "",
        headers: dict[str, str] | None = None,
    ) -> Answer:
        """One request. A path without `/api` is below `/api/v2`; the token is the admin's, None for none."""
        sent = dict(headers or {})
        if token is not None:
            sent["Authorization"] = f"Bearer {token or self.token}"
        if body is not None and not isinstance(body, str | bytes):
            body, kind = json.dumps(body), kind or "application/json"
        if kind:
            sent["Content-Type"] = kind
        full = path if path.startswith(("/api", "/rest-server", "/API", "/metrics", "/healthz", "/openapi")) else f"/api/v2{path}"
        line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            line.request(method, full, body.encode() if isinstance(body, str) else body, sent)
            answer = line.getresponse()
            return Answer(answer.status, answer.headers, answer.read())
        finally:
            line.close()

    def get(self, path: str, token: str | None = "") -> Answer:
        return self.ask("GET", path, token=token)

    @property
    def token(self) -> str:
        """The admin's."""
        if not self._token:
            self._token = self.login("admin", PASSWORD)
        return self._token

    def login(self, user: str, password: str) -> str:
        answer = self.ask("POST", "/authn/basic/login", {"username": user, "password": password}, None)
        assert answer.status == 200, answer
        return str(answer.json["token"])

    def user(self, name: str, *, clusters: tuple[str, ...] = (), admin: bool = False) -> str:
        """Make a user, and log in as that one."""
        body = {"username": name, "password": PASSWORD, "virtualCluster": list(clusters), "admin": admin}
        answer = self.ask("POST", "/users", body)
        assert answer.status == 201, answer
        return self.login(name, PASSWORD)

    def submit(self, text: str, token: str | None = "", query: str = "") -> Answer:
        return self.ask("POST", f"/jobs{query}", text, token, kind="text/yaml")

    def run(self, text: str, token: str | None = "") -> dict[str, Any]:
        """Submit a job, and wait for its end; its detail."""
        answer = self.submit(text, token)
        assert answer.status == 202, answer
        return self.wait(answer.json["name"], token)

    def wait(self, name: str, token: str | None = "") -> dict[str, Any]:
        """The detail of a job that is over; waits for the event that says so."""
        for kind, _, _ in self.events(f"/jobs/{name}/live", token):
            if kind == "end":
                break
        detail: dict[str, Any] = self.get(f"/jobs/{name}", token).json
        assert detail["jobStatus"]["state"] in ("SUCCEEDED", "FAILED", "STOPPED"), detail
        return detail

    def begun(self, name: str, token: str | None = "") -> None:
        """Wait for the event that says that a job runs."""
        for kind, _, data in self.events(f"/jobs/{name}/live", token):
            if kind == "end" or (kind == "job" and data["state"] == "RUNNING"):
                return

    def events(self, path: str, token: str | None = "", after: str = "") -> Any:
        """Server-sent events, as (name, id, data)."""
        headers = {"Authorization": f"Bearer {token or self.token}"} if token is not None else {}
        if after:
            headers["Last-Event-ID"] = after
        line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            line.request("GET", path if path.startswith("/api") else f"/api/v2{path}", headers=headers)
            answer = line.getresponse()
            assert answer.status == 200, (answer.status, answer.read())
            assert answer.headers["content-type"].startswith("text/event-stream")
            name, mark, data = "message", "", ""
            for raw in answer:
                text = raw.decode().rstrip("\n")
                if text.startswith("event: "):
                    name = text[7:]
                elif text.startswith("id: "):
                    mark = text[4:]
                elif text.startswith("data: "):
                    data = text[6:]
                elif not text and data:
                    yield name, mark, json.loads(data)
                    name, data = "message", ""
        finally:
            line.close()
