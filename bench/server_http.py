"""How fast the server answers: beside a bare Starlette route, for a job of 4,000 tasks, and to 1,000 followers of a log."""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from running import Figure

HERE = Path(__file__).parent
PAILOT = Path(sys.executable).with_name("pailot")
PASSWORD = "bench-password"

LEAST_RATIO = 0.7
TASKS = 4_000
LONGEST_DETAIL = 0.150
FOLLOWERS = 1_000
LINES = 50
LONGEST_DELAY = 1.0

JOB = """\
protocolVersion: 2
name: {name}
type: job
prerequisites: [{{name: image, type: dockerimage, uri: debian}}]
taskRoles:
  main:
    instances: {tasks}
    completion: {{minFailedInstances: -1, minSucceededInstances: {tasks}}}
    dockerImage: image
    resourcePerInstance: {{cpu: 1, memoryMB: 64, gpu: 0}}
    commands: ["{command}"]
"""


class Server:
    """`pailot serve` in a home of its own."""

    def __init__(self, home: str, **settings: str) -> None:
        inherited = {key: value for key, value in os.environ.items() if not key.startswith(("PAILOT_", "PYTHON"))}
        environment = {
            **inherited,
            "PAILOT_HOME": home,
            "PAILOT_ADMIN_PASSWORD": PASSWORD,
            "PAILOT_RATE_LIMITS": "off",
            "PAILOT_CPUS": "100000",
            "PAILOT_MEMORY_MB": "100000000",
            **settings,
        }
        self.process = subprocess.Popen(
            [PAILOT, "serve", "--port", "0", "--json", "--stop-jobs"], stdout=subprocess.PIPE, text=True, env=environment
        )
        assert self.process.stdout
        self.url: str = json.loads(self.process.stdout.readline())["url"]
        self.port = int(self.url.rpartition(":")[2])
        self.token = ""
        self.token = self.ask("/authn/basic/login", {"username": "admin", "password": PASSWORD})["token"]

    def ask(self, path: str, body: dict[str, Any] | str | None = None) -> Any:
        data = body.encode() if isinstance(body, str) else json.dumps(body).encode() if body is not None else None
        request = urllib.request.Request(f"{self.url}/api/v2{path}", data=data)
        if data is not None:
            request.add_header("Content-Type", "text/yaml" if isinstance(body, str) else "application/json")
        if self.token:
            request.add_header("Authorization", f"Bearer {self.token}")
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)

    def close(self) -> None:
        self.process.terminate()
        self.process.wait()


@contextmanager
def serving(**settings: str) -> Iterator[Server]:
    with tempfile.TemporaryDirectory(prefix="pailot-bench-") as home:
        server = Server(home, **settings)
        try:
            yield server
        finally:
            server.close()


def get_throughput(*, quick: bool) -> list[Figure]:
    """GETs a second over 32 connections, in turns with the peer: the ratio is the median of those within each round."""
    peer = subprocess.Popen([sys.executable, HERE / "starlette_route.py"], stdout=subprocess.PIPE, text=True)
    assert peer.stdout
    port = int(peer.stdout.readline())
    try:
        with serving() as server:
            bearer = f"Authorization: Bearer {server.token}"
            rounds = [
                {
                    "peer": _load(peer.pid, port, "/api/v2/info"),
                    "open": _load(server.process.pid, server.port, "/api/v2/info"),
                    "token": _load(server.process.pid, server.port, "/api/v2/tokens/check", bearer),
                }
                for _ in range(2 if quick else 7)
            ]
    finally:
        peer.terminate()
        peer.wait()

    def middle(name: str) -> tuple[float, float]:
        busy, wall = zip(*(each[name] for each in rounds), strict=True)
        return statistics.median(busy), statistics.median(wall)

    their_busy, theirs = middle("peer")
    figures = []
    for name, text in (("open", "GET without a token"), ("token", "GET with a token")):
        busy, mine = middle(name)
        ratio = statistics.median(each[name][1] / each["peer"][1] for each in rounds)
        measured = f"{mine:,.0f}/s, {ratio:.2f}x ({busy:,.0f} a CPU second)"
        against = f"bare Starlette route {theirs:,.0f}/s ({their_busy:,.0f}), at least {LEAST_RATIO}x"
        figures.append(Figure(text, measured, against, LEAST_RATIO / ratio, 1.0))
    return figures


def _load(pid: int, port: int, path: str, *headers: str) -> tuple[float, float]:
    """GETs a second of the server's CPU, and a second."""
    given = [word for header in headers for word in ("--header", header)]
    command = [sys.executable, HERE / "http_load.py", str(port), path, "--seconds", "2", *given]
    before = _cpu_seconds(pid)
    count, rate = map(float, subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())
    return count / (_cpu_seconds(pid) - before), rate


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def large_detail(*, quick: bool) -> list[Figure]:
    """The detail of a job of 4,000 tasks that have ended, to its last byte: the median. Its folder is written here."""
    with serving(PAILOT_CPUS="1") as server:
        server.ask("/jobs", JOB.format(name="large", tasks=TASKS, command="true"))  # waits for ever
        folder = Path(server.ask("/jobs/large/record")["folder"])
        _write_ends(folder)
        taken, size, rounds = [], 0, 10 if quick else 30
        before = _cpu_seconds(server.process.pid)
        for _ in range(rounds):
            request = urllib.request.Request(f"{server.url}/api/v2/jobs/admin~large")
            request.add_header("Authorization", f"Bearer {server.token}")
            began = time.perf_counter()
            with urllib.request.urlopen(request) as answer:
                told = answer.read()
            taken.append(time.perf_counter() - began)
            size = len(told)
        cpu = (_cpu_seconds(server.process.pid) - before) / rounds
    tasks = json.loads(told)["taskRoles"]["main"]["taskStatuses"]
    if [each["taskState"] for each in tasks] != ["FAILED"] * TASKS:
        raise SystemExit("the detail does not tell the tasks that were written")
    name = f"detail of a job of {TASKS:,} tasks ({size / 1e6:.1f} MB)"
    middle = statistics.median(taken)
    measured = f"{middle * 1e3:.0f} ms ({min(taken) * 1e3:.0f} to {max(taken) * 1e3:.0f}, of CPU {cpu * 1e3:.0f})"
    return [Figure(name, measured, f"{LONGEST_DETAIL * 1e3:.0f} ms", middle, LONGEST_DETAIL)]


def _write_ends(folder: Path) -> None:
    """What a job whose tasks have all failed leaves in its folder, as far as the detail reads it."""
    now = time.time()
    (folder / "attempts" / "0").mkdir(parents=True, exist_ok=True)
    ports = {f"main:{index}": {"ssh": [20000 + index], "http": [30000 + index]} for index in range(TASKS)}
    (folder / "attempts" / "0" / "attempt.json").write_text(json.dumps({"host": "127.0.0.1", "ports": ports}))
    known = {"code": 255, "phrase": "PAIRuntimeUnknownFailed", "type": "UNKNOWN_FAILURE", "reaction": "RETRY_TO_MAX"}
    with open(folder / "journal", "w") as journal:
        journal.write(json.dumps({"at": now, "event": "started", "attempt": 0, "tasks": TASKS}) + "\n")
        for index in range(TASKS):
            end = {
                "outcome": "failed",
                "exitCode": 3,
                "signal": None,
                "reason": "exited with 3",
                "taskAttempt": 0,
                "class": known,
            }
            where = {"at": now, "event": "task-ended", "role": "main", "index": index, "attempt": 0}
            journal.write(json.dumps({**where, **end, "outOfMemory": False, "lastLines": ["one", "two"]}) + "\n")


def followers(*, quick: bool) -> list[Figure]:
    """Followers of one growing log: every one gets every line, and how long after it was printed."""
    count = 100 if quick else FOLLOWERS
    with serving() as server:
        gate = Path(tempfile.mkdtemp(prefix="pailot-gate-")) / "open"
        wait = f"until [ -e {gate} ]; do sleep 0.1; done"
        command = f"{wait}; for i in $(seq {LINES}); do echo $i $EPOCHREALTIME; sleep 0.1; done"
        server.ask("/jobs", JOB.format(name="talks", tasks=1, command=command))
        delays = asyncio.run(_follow_all(server, count, gate))
        state = server.ask("/jobs/talks/record")
        if state["state"] != "SUCCEEDED" or len(delays) != count * LINES:
            raise SystemExit(f"{len(delays)} of {count * LINES} lines were read; the job {state['state']}: {state['reason']}")
        gate.unlink()
        gate.parent.rmdir()
    p99 = statistics.quantiles(delays, n=100)[98]
    name = f"{count:,} followers of a log, {LINES} lines each: from printed to read, p99"
    return [Figure(name, f"{p99 * 1e3:.0f} ms", f"{LONGEST_DELAY:.0f} s", p99, LONGEST_DELAY)]


async def _follow_all(server: Server, count: int, gate: Path) -> list[float]:
    connected = 0
    delays: list[float] = []

    async def follow() -> None:
        nonlocal connected
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port, limit=1 << 20)
        path = "/api/v2/jobs/talks/logs/main/0?follow=true"
        writer.write(f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {server.token}\r\n\r\n".encode())
        seen = 0
        while True:
            line = await reader.readline()
            if not line:
                break
            if line.startswith(b": begin"):
                connected += 1
                if connected == count:
                    gate.touch()
            elif line.startswith(b"event: end"):
                break
            elif line.startswith(b"data: "):
                now = time.time()
                for said in json.loads(line[6:]).get("text", "").splitlines():
                    number, printed = said.split()
                    seen += 1
                    if int(number) != seen:
                        raise SystemExit(f"a follower missed a line: {said!r} after {seen - 1}")
                    delays.append(now - float(printed))
        writer.close()

    await asyncio.gather(*[follow() for _ in range(count)])
    return delays


def server_http(*, quick: bool) -> list[Figure]:
    """All of them."""
    return [*get_throughput(quick=quick), *large_detail(quick=quick), *followers(quick=quick)]
