"""Running real jobs in tests: a home of its own, processes that can be waited for."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

# How long a test waits for what must come: for a machine that is very busy.
PATIENCE = 300.0

JOB = """\
protocolVersion: 2
name: {name}
type: job
prerequisites:
  - {{name: image, type: dockerimage, uri: debian}}
{prerequisites}
jobRetryCount: {job_retries}
{more}
taskRoles:
{roles}
extras:
  pailot: {{{options}}}
"""
ROLE = """\
  {name}:
    instances: {instances}
    taskRetryCount: {retries}
    completion: {{minFailedInstances: {failed}, minSucceededInstances: {succeeded}}}
    prerequisites: [{listed}]
    dockerImage: image
    resourcePerInstance: {{cpu: 1, memoryMB: {memory}, gpu: {gpu}, ports: {{data: 1}}}}
    commands:
      - |
{commands}
"""


def role(
    commands: str,
    name: str = "main",
    *,
    instances: int = 1,
    retries: int = 0,
    failed: int = 1,
    succeeded: int = -1,
    listed: str = "",
    memory: int = 200,
    gpu: int = 0,
) -> str:
    body = "\n".join("        " + line for line in commands.strip("\n").split("\n"))
    return ROLE.format(
        name=name,
        instances=instances,
        retries=retries,
        failed=failed,
        succeeded=succeeded,
        listed=listed,
        memory=memory,
        gpu=gpu,
        commands=body,
    )


def job(*roles: str, name: str = "demo", job_retries: int = 0, prerequisites: str = "", more: str = "", options: str = "") -> str:
    quick = "retryDelaySeconds: 0.01" if "retryDelaySeconds" not in options else ""
    both = ", ".join(part for part in (quick, options) if part)
    return JOB.format(
        name=name, job_retries=job_retries, prerequisites=prerequisites, more=more, roles="".join(roles), options=both
    )


class Home:
    """A place for runs, and the command line pointed at it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.cwd = folder / "cwd"
        self.cwd.mkdir(parents=True, exist_ok=True)
        self.started: list[subprocess.Popen[str]] = []
        self.environment = {key: value for key, value in os.environ.items() if not key.startswith("PAILOT_")} | {
            "PAILOT_HOME": str(folder / "home"),
            "XDG_CACHE_HOME": str(folder / "cache"),
            "XDG_STATE_HOME": str(folder / "state"),
            "LOGNAME": "me",
        }

    def start(self, text: str, *options: str, **environment: str) -> subprocess.Popen[str]:
        """`pailot run` of a job, left running. All runs on the machine share ports, those of one home also declared GPUs."""
        if "PAILOT_GPUS" in environment:
            environment = {"PAILOT_LOCKS": str(self.folder / "locks"), **environment}
        (self.cwd / "job.yaml").write_text(text)
        return self.popen([*self.command, *options], **environment)

    @property
    def command(self) -> list[str]:
        """The words that run the job in the current directory."""
        return [sys.executable, "-m", "pailot", "run", "job.yaml"]

    def popen(self, command: list[str], **environment: str) -> subprocess.Popen[str]:
        """A program in this home, left running."""
        process = subprocess.Popen(
            command,
            cwd=self.cwd,
            env=self.environment | environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="surrogateescape",
        )
        self.started.append(process)
        return process

    def close(self) -> None:
        """End whatever a test left running, so that one failure does not make others."""
        for process in self.started:
            if process.poll() is None:
                process.kill()
            process.wait()
            for stream in (process.stdout, process.stderr):
                if stream and not stream.closed:
                    stream.close()
        for pid in processes_with(str(self.folder)):
            _kill(pid)

    def run(self, text: str, *options: str, timeout: float = PATIENCE, **environment: str) -> Result:
        process = self.start(text, *options, **environment)
        out, err = process.communicate(timeout=timeout)
        return Result(process.returncode, out, err)

    def pailot(self, *arguments: str, timeout: float = PATIENCE) -> Result:
        command = [sys.executable, "-m", "pailot", *arguments]
        done = subprocess.run(
            command,
            cwd=self.cwd,
            env=self.environment,
            capture_output=True,
            text=True,
            errors="surrogateescape",
            timeout=timeout,
            check=False,
        )
        return Result(done.returncode, done.stdout, done.stderr)

    def show(self, name: str = "demo") -> dict[str, Any]:
        return json.loads(self.pailot("show", "--json", name).out)  # type: ignore[no-any-return]  # JSON

    def jobs(self) -> list[Path]:
        folder = self.folder / "home" / "jobs"
        return sorted(folder.iterdir()) if folder.exists() else []


class Result:
    def __init__(self, status: int, out: str, err: str) -> None:
        self.status, self.out, self.err = status, out, err

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()

    def __repr__(self) -> str:
        return f"Result({self.status}, {self.out!r}, {self.err!r})"


def processes_with(marker: str) -> list[int]:
    """Living processes whose command line or environment holds a marker."""
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or int(entry) == os.getpid():
            continue
        try:
            text = Path(f"/proc/{entry}/cmdline").read_bytes() + Path(f"/proc/{entry}/environ").read_bytes()
            state = Path(f"/proc/{entry}/stat").read_text().rpartition(") ")[2][:1]
        except OSError:
            continue
        if marker.encode() in text and state not in "ZX":
            found.append(int(entry))
    return found


def kill_all_with(marker: str) -> None:
    """SIGKILL to each of them that is still there."""
    for pid in processes_with(marker):
        _kill(pid)


def wait_for(condition: Any, seconds: float = PATIENCE, what: str = "it") -> Any:
    """Until a condition holds; for things outside our processes that send no event."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.01)
    raise AssertionError(f"{what} did not happen within {seconds} s")


def no_process_left(marker: str, seconds: float = PATIENCE) -> None:
    try:
        wait_for(lambda: not processes_with(marker), seconds, f"the end of all processes with {marker}")
    except AssertionError:
        left = processes_with(marker)
        for pid in left:
            _kill(pid)
        raise


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass  # it ended by itself meanwhile
