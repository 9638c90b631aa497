"""How many jobs a server runs, how soon, and for how many who look on: over HTTP, beside TorchX, submitit and subprocess.

The server gives 16 CPUs to jobs, so that small ones overlap; all of them share the real ones, with the client that measures.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from running import PAILOT, Failed, Figure

PEERS = Path(__file__).parents[1] / ".venv-peers" / "bin" / "python"
PASSWORD = "bench-password"
LEAST_JOBS_A_SECOND = 100
LONGEST_MEDIAN, LONGEST_P99 = 0.040, 0.200
FOLLOWERS = 1_000
LONGEST_LAG = 1.0
CONNECTIONS = 16
JOB = """\
protocolVersion: 2
name: {name}
type: job
prerequisites:
  - {{name: image, type: dockerimage, uri: debian}}
taskRoles:
  worker:
    dockerImage: image
    resourcePerInstance: {{cpu: 1, memoryMB: 128, gpu: 0}}
    commands:
      - {command}
"""

TORCHX = """\
import sys, time
from torchx.runner import get_runner
from torchx.specs import AppDef, Role
count = int(sys.argv[1])
with get_runner() as runner:
    began = time.perf_counter()
    waiting = []
    for number in range(count):
        role = Role(name="worker", image=sys.argv[2], entrypoint="bash", args=["-c", "echo hello"], num_replicas=1)
        waiting.append(runner.run(AppDef(name=f"bench-{number}", roles=[role]), "local_cwd", {"log_dir": sys.argv[2]}))
        if len(waiting) >= 8:
            assert runner.wait(waiting.pop(0), wait_interval=0.01).state.name == "SUCCEEDED"
    for handle in waiting:
        assert runner.wait(handle, wait_interval=0.01).state.name == "SUCCEEDED"
    print(count / (time.perf_counter() - began))
"""
SUBMITIT = """\
import sys, time
import submitit
count = int(sys.argv[1])
executor = submitit.LocalExecutor(folder=sys.argv[2])
executor.update_parameters(timeout_min=5)
began = time.perf_counter()
waiting = []
for number in range(count):
    waiting.append(executor.submit(print, "hello"))
    if len(waiting) >= 8:
        waiting.pop(0).result()
for job in waiting:
    job.result()
print(count / (time.perf_counter() - began))
"""
PLAIN = """\
import subprocess, sys, time
count = int(sys.argv[1])
began = time.perf_counter()
waiting = []
for number in range(count):
    with open(f"{sys.argv[2]}/{number}", "wb") as log:
        waiting.append(subprocess.Popen(["bash", "-c", "echo hello"], stdout=log))
    if len(waiting) >= 8:
        assert waiting.pop(0).wait() == 0
for each in waiting:
    assert each.wait() == 0
print(count / (time.perf_counter() - began))
"""


class Served:
    """A server with a home of its own."""

    def __init__(self, folder: str, *, program: Path = PAILOT, **settings: str) -> None:
        self.program = program
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "PAILOT_", "XDG_"))}
        self.home = Path(folder) / "home"
        self.folder, self.port = folder, 0
        self.environment = {
            **kept,
            "HOME": folder,
            "TMPDIR": folder,
            "PAILOT_HOME": str(self.home),
            "PAILOT_LOCKS": f"{folder}/locks",
            "PAILOT_ADMIN_PASSWORD": PASSWORD,
            "PAILOT_RATE_LIMITS": "off",
            "PAILOT_CPUS": "16",
            "PAILOT_MEMORY_MB": "64000",
            "PAILOT_GPUS": "none",
            **settings,
        }
        self.token = ""
        self._start()

    def _start(self) -> None:
        errors = Path(self.folder) / "errors"
        with errors.open("ab") as stream:
            self.process = subprocess.Popen(
                [str(self.program), "serve", "--port", str(self.port), "--stop-jobs", "--json"],
                env=self.environment,
                cwd=self.folder,
                stdout=subprocess.PIPE,
                stderr=stream,
            )
        assert self.process.stdout
        line = self.process.stdout.readline()
        if not line:
            raise Failed(f"the server did not start: {errors.read_text()}")
        self.port = int(json.loads(line)["url"].rpartition(":")[2].split("/")[0])

    def restart(self) -> float:
        """Killed as by a power cut, and started anew on the same port; the seconds until it has taken up its jobs and answers."""
        self.process.kill()
        self.process.wait()
        assert self.process.stdout
        self.process.stdout.close()
        began = time.perf_counter()
        self._start()
        return time.perf_counter() - began

    def close(self) -> None:
        self.process.terminate()
        self.process.wait(60)
        assert self.process.stdout
        self.process.stdout.close()

    async def open(self) -> Connection:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 20)
        return Connection(reader, writer, self.token)

    async def login(self) -> None:
        line = await self.open()
        body = json.dumps({"username": "admin", "password": PASSWORD}).encode()
        answer = await line.ask("POST", "/api/v2/authn/basic/login", body, "application/json")
        self.token = json.loads(answer)["token"]
        line.close()


class Connection:
    """One connection that is used again and again."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, token: str) -> None:
        self.reader, self.writer, self.token = reader, writer, token

    async def send(self, method: str, path: str, body: bytes = b"", kind: str = "text/yaml") -> dict[str, str]:
        """The headers of the answer."""
        head = f"{method} {path} HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {self.token}\r\nContent-Type: {kind}\r\n"
        self.writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        lines = (await self.reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        status = int(lines[0].split()[1])
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines[1:])}
        if status >= 300:
            rest = await self.reader.read(int(headers.get("content-length", 500)))
            raise Failed(f"{method} {path}: {status} {rest.decode()}")
        return headers

    async def ask(self, method: str, path: str, body: bytes = b"", kind: str = "text/yaml") -> bytes:
        headers = await self.send(method, path, body, kind)
        return await self.reader.readexactly(int(headers["content-length"]))

    def close(self) -> None:
        self.writer.close()


async def submit_all(served: Served, names: list[str], command: str = "echo hello", *, to_the_end: bool = True) -> float:
    """All jobs from several connections, to the end of the last; answers seconds."""
    waiting = iter(names)
    began = time.perf_counter()

    async def submitter() -> None:
        line = await served.open()
        for name in waiting:
            await line.ask("POST", "/api/v2/jobs", JOB.format(name=name, command=command).encode())
        line.close()

    await asyncio.gather(*(submitter() for _ in range(CONNECTIONS)))
    if to_the_end:
        await all_ended(served)
    return time.perf_counter() - began


async def all_ended(served: Served) -> None:
    line = await served.open()
    path = "/api/v2/jobs?state=WAITING,RUNNING,STOPPING&limit=1"
    while json.loads(await line.ask("GET", path)):
        await asyncio.sleep(0.02)
    bad = json.loads(await line.ask("GET", "/api/v2/jobs?state=FAILED,STOPPED&limit=5"))
    if bad:
        raise Failed(f"jobs have failed: {bad}")
    line.close()


def server_throughput(*, quick: bool) -> list[Figure]:
    """Trivial jobs a second, from submission over HTTP to SUCCEEDED."""
    count = 300 if quick else 1_500
    with tempfile.TemporaryDirectory(prefix="pailot-bench-") as folder:
        served = Served(folder)
        try:

            async def measure() -> float:
                await served.login()
                await submit_all(served, [f"warm-{number}" for number in range(40)])
                return count / await submit_all(served, [f"job-{number}" for number in range(count)])

            rate = asyncio.run(measure())
        finally:
            served.close()
        peers = {"subprocess": _peer(sys.executable, PLAIN, count, folder)}
        if PEERS.exists():
            peers["TorchX"] = _peer(str(PEERS), TORCHX, 20 if quick else 60, folder)
            peers["submitit"] = _peer(str(PEERS), SUBMITIT, 10 if quick else 30, folder)
        else:
            print("no comparison with TorchX and submitit: make bench installs them", file=sys.stderr)
    against = ", ".join(f"{name} {value:.0f}/s" for name, value in peers.items())
    return [
        Figure(
            f"server: {count} jobs, submit to SUCCEEDED",
            f"{rate:.0f} jobs/s",
            f"{against}; least {LEAST_JOBS_A_SECOND}/s",
            LEAST_JOBS_A_SECOND / rate,
            1.0,
        )
    ]


def _peer(python: str, program: str, count: int, folder: str) -> float:
    place = tempfile.mkdtemp(dir=folder)
    done = subprocess.run([python, "-c", program, str(count), place], capture_output=True, text=True, check=False, cwd=place)
    if done.returncode:
        raise Failed(f"a peer failed: {done.stderr[-2000:]}")
    return float(done.stdout.split()[-1])


def server_restart(*, quick: bool) -> list[Figure]:
    """From the start of a server, after `kill -9` of the one before, to all running jobs taken up again and told as running."""
    jobs, starts = (40, 3) if quick else (200, 10)
    with tempfile.TemporaryDirectory(prefix="pailot-bench-") as folder:
        served = Served(folder, PAILOT_CPUS=str(jobs))
        try:

            async def running() -> int:
                connection = await served.open()
                found = json.loads(await connection.ask("GET", "/api/v2/jobs?state=RUNNING"))
                connection.close()
                return len(found)

            async def begin() -> None:
                await served.login()
                await submit_all(served, [f"long-{number}" for number in range(jobs)], "sleep 1000", to_the_end=False)
                while await running() < jobs:
                    await asyncio.sleep(0.05)

            asyncio.run(begin())
            took = []
            for _ in range(starts):
                seconds = served.restart()
                began = time.perf_counter()
                if asyncio.run(running()) != jobs:
                    raise Failed("not all jobs were taken up again")
                took.append(seconds + time.perf_counter() - began)
        finally:
            served.close()
    median = sorted(took)[len(took) // 2]
    words = f"longest {max(took) * 1000:.0f} ms; most 1 s"
    return [Figure(f"server: {jobs} running jobs taken up again", f"{median * 1000:.0f} ms", words, median, 1.0)]


def server_latency(*, quick: bool) -> list[Figure]:
    """At 20 jobs a second: from before the submission until the task's first command writes its line."""
    count = 100 if quick else 400
    with tempfile.TemporaryDirectory(prefix="pailot-bench-") as folder:
        served = Served(folder)
        taken: list[float] = []

        async def measure() -> None:
            await served.login()
            await submit_all(served, [f"warm-{number}" for number in range(40)])
            begun: dict[str, float] = {}
            tasks = []

            async def one(name: str) -> None:
                line = await served.open()
                begun[name] = time.time()
                await line.ask("POST", "/api/v2/jobs", JOB.format(name=name, command="echo $EPOCHREALTIME").encode())
                line.close()

            start = time.perf_counter()
            for number in range(count):
                await asyncio.sleep(max(0.0, start + number / 20 - time.perf_counter()))
                tasks.append(asyncio.create_task(one(f"job-{number}")))
            await asyncio.gather(*tasks)
            await all_ended(served)
            line = await served.open()
            for name, moment in begun.items():
                text = await line.ask("GET", f"/api/v2/jobs/admin~{name}/logs/worker/0?stream=stdout")
                taken.append(float(text) - moment)
            line.close()

        try:
            asyncio.run(measure())
        finally:
            served.close()
    taken.sort()
    median, late = statistics.median(taken), taken[int(len(taken) * 0.99)]
    return [
        Figure("server: submit to first line, p50", f"{median * 1e3:.1f} ms", "20 jobs/s", median / LONGEST_MEDIAN, 1.0),
        Figure("server: submit to first line, p99", f"{late * 1e3:.1f} ms", "20 jobs/s", late / LONGEST_P99, 1.0),
    ]


def server_followers(*, quick: bool) -> list[Figure]:
    """One live log, followed by a thousand: nobody misses a byte, and how late the lines are."""
    lines = 20 if quick else 60
    with tempfile.TemporaryDirectory(prefix="pailot-bench-") as folder:
        served = Served(folder)
        late: list[float] = []

        async def follow(path: str) -> int:
            line = await served.open()
            await line.send("GET", path)
            seen = 0
            event = ""
            while True:
                text = (await line.reader.readline()).decode().strip()
                if text.startswith("event:"):
                    event = text[6:].strip()
                elif text.startswith("data:"):
                    if event == "end":
                        line.close()
                        return seen
                    data: Any = json.loads(text[5:])
                    now = time.time()
                    for word in data["text"].split():
                        seen += 1
                        late.append(now - float(word))
                elif not text:
                    event = ""

        async def measure() -> list[int]:
            await served.login()
            line = await served.open()
            ready = f"while [ ! -e {folder}/go ]; do sleep 0.1; done"
            script = f"{ready}; for i in $(seq {lines}); do echo $EPOCHREALTIME; sleep 0.2; done"
            await line.ask("POST", "/api/v2/jobs", JOB.format(name="live", command=json.dumps(script)).encode())
            path = "/api/v2/jobs/admin~live/logs/worker/0?follow=true&stream=stdout"
            following = [asyncio.create_task(follow(path)) for _ in range(FOLLOWERS)]
            await asyncio.sleep(3)
            Path(folder, "go").touch()
            counts = await asyncio.gather(*following)
            line.close()
            return counts

        try:
            counts = asyncio.run(measure())
        finally:
            served.close()
    if set(counts) != {lines}:
        raise Failed(f"of {lines} lines, followers have seen {sorted(set(counts))}")
    late.sort()
    worst = late[int(len(late) * 0.99)]
    return [
        Figure(
            f"server: a line to {FOLLOWERS} followers, p99",
            f"{worst * 1e3:.0f} ms",
            f"5 lines/s; p50 {statistics.median(late) * 1e3:.0f} ms",
            worst / LONGEST_LAG,
            1.0,
        )
    ]
