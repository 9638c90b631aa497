"""How fast jobs really run: whole `pailot run` processes beside TorchX, plain subprocess, xargs and fixed limits.

Every measurement has a home and locks of its own in a temporary folder, used once before the clock starts.
"""

from __future__ import annotations

import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAILOT = Path(sys.executable).with_name("pailot")
TORCHX = ROOT / ".venv-peers" / "bin" / "torchx"

JOB = """\
protocolVersion: 2
name: bench
type: job
prerequisites:
  - name: image
    type: dockerimage
    uri: debian:12-slim
{secrets}taskRoles:
  worker:
    instances: {tasks}
    completion:
      minFailedInstances: 1
      minSucceededInstances: -1
    dockerImage: image
    resourcePerInstance:
      cpu: 1
      memoryMB: 128
      gpu: 0
    commands:
      - {command}
"""
# What a task needs at the least: bash, once or eight times.
PLAIN = """\
import subprocess
for each in [subprocess.Popen(["bash", "-c", "true"]) for _ in range({tasks})]:
    assert each.wait() == 0
"""

MANY = 1_000
LOG_MB = 300
LEAST_MB_A_SECOND = 100
LONGEST_END = 0.020
MOST_MEMORY_MB = 40


class Figure:
    """One line of the report; `ratio` must not exceed `limit`, where there is one."""

    def __init__(self, name: str, measured: str, against: str, ratio: float, limit: float | None) -> None:
        self.name, self.measured, self.against, self.ratio, self.limit = name, measured, against, ratio, limit

    @property
    def kept(self) -> bool:
        return self.limit is None or self.ratio <= self.limit

    def __str__(self) -> str:
        verdict = "no limit" if self.limit is None else f"limit {self.limit:g}x  {'ok' if self.kept else 'MISSED'}"
        return f"{self.name:<46} {self.measured:>12}  {self.against:<34} {self.ratio:6.2f}x  {verdict}"


class Failed(SystemExit):
    """Something that was to be measured did not do its work."""


class Place:
    """A temporary folder with a home for Pailot, and the environment that everything measured there shares."""

    def __init__(self, folder: str) -> None:
        self.folder = Path(folder)
        self.errors = self.folder / "errors"
        # Tasks are shown all that is in the current directory: here only the job files, however long we measure.
        self.project = self.folder / "project"
        self.project.mkdir()
        # With PYTHONDONTWRITEBYTECODE every start would compile all sources; the caller's settings are not measured.
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "PAILOT_", "XDG_", "LC_"))}
        self.environment = {
            **kept,
            "HOME": folder,
            "TMPDIR": folder,
            "LC_ALL": "C.UTF-8",
            "PAILOT_HOME": str(self.folder / "home"),
            "PAILOT_LOCKS": str(self.folder / "locks"),
        }

    def job(self, tasks: int = 1, command: str = "'true'", secrets: list[str] | None = None) -> list[str]:
        """The command line that runs a job; all of its tasks must succeed."""
        listed = "".join(f"  secret_{number}: {value}\n" for number, value in enumerate(secrets or []))
        path = self.project / f"job-{len(list(self.project.iterdir()))}.yaml"
        path.write_text(JOB.format(tasks=tasks, command=command, secrets=f"secrets:\n{listed}" if listed else ""))
        return [str(PAILOT), "run", "--quiet", str(path)]

    def time(self, command: list[str], changes: dict[str, str] | None = None) -> float:
        """The wall time of a process, from before it is started until it was waited for."""
        began = time.perf_counter()
        self.wait(self.start(command, changes=changes))
        return time.perf_counter() - began

    def start(
        self, command: list[str], stdout: int = subprocess.DEVNULL, changes: dict[str, str] | None = None
    ) -> subprocess.Popen[bytes]:
        with self.errors.open("wb") as errors:
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=errors,
                cwd=self.project,
                env={**self.environment, **(changes or {})},
            )

    def wait(self, process: subprocess.Popen[bytes]) -> None:
        if process.wait():
            raise Failed(f"{process.args!r} failed with {process.returncode}:\n{self.errors.read_text(errors='replace')}")

    def check_all_ran(self, tasks: int) -> None:
        """That every task of the last run left a record of its end."""
        last = max((self.folder / "home" / "jobs").iterdir())
        ended = len(list(last.glob("attempts/0/tasks/*/final.json")))
        if ended != tasks:
            raise Failed(f"only {ended} of {tasks} tasks were run")


def small_jobs(*, quick: bool) -> list[Figure]:
    """One and eight tasks of `true`, against the bare interpreter, plain subprocess and TorchX."""
    with _place() as folder:
        place = Place(folder)
        one, eight = place.job(1), place.job(8)
        cases = {
            "pass": [sys.executable, "-c", "pass"],
            "plain one": [sys.executable, "-c", PLAIN.format(tasks=1)],
            "plain eight": [sys.executable, "-c", PLAIN.format(tasks=8)],
            "one": one,
            "eight": eight,
        }
        cases |= _torchx(place)
        for name, command in cases.items():
            place.time(command)
            if name in ("one", "eight"):
                place.check_all_ran(8 if name == "eight" else 1)
        taken: dict[str, list[float]] = {name: [] for name in [*cases, "first"]}
        for turn in range(7 if quick else 25):
            for name, command in cases.items():
                taken[name].append(place.time(command))
            new = str(place.folder / f"new-home-{turn}")
            taken["first"].append(place.time(one, {"PAILOT_HOME": new, "PAILOT_LOCKS": f"{new}-locks"}))
    medians = {name: statistics.median(times) for name, times in taken.items() if times}

    def figure(name: str, mine: str, words: str, peer: float, limit: float | None) -> Figure:
        return Figure(name, f"{medians[mine] * 1e3:.1f} ms", f"{words} {peer * 1e3:.1f} ms", medians[mine] / peer, limit)

    figures = [
        figure("pailot run, one task", "one", "python -c pass", medians["pass"], 7.0),
        figure("pailot run, one task", "one", "plain subprocess", medians["plain one"], None),
        figure("pailot run, one task, first of a home", "first", "in a used home", medians["one"], None),
        figure("pailot run, eight tasks", "eight", "one task", medians["one"], 1.6),
        figure("pailot run, eight tasks", "eight", "plain subprocess", medians["plain eight"], None),
    ]
    if "torchx one" in cases:
        figures += [
            figure("pailot run, one task", "one", "torchx run", medians["torchx one"], 0.30),
            figure("pailot run, eight tasks", "eight", "torchx's fastest", min(taken["torchx eight"]), 0.35),
        ]
    return figures


def many_tasks(*, quick: bool) -> list[Figure]:
    """A thousand tasks of `true` in one job, against xargs starting as many."""
    with _place() as folder:
        place = Place(folder)
        job = place.job(MANY)
        xargs = ["bash", "-c", f"seq {MANY} | xargs -n 1 -P 2 bash -c true"]
        place.time(place.job(1))
        ours, theirs = [], []
        for _ in range(1 if quick else 5):
            theirs.append(place.time(xargs))
            ours.append(place.time(job))
            place.check_all_ran(MANY)
    mine, peer = statistics.median(ours), statistics.median(theirs)
    return [Figure(f"pailot run, {MANY:,} tasks", f"{mine:.2f} s", f"xargs -P 2 bash {peer:.2f} s", mine / peer, 5.0)]


def after_the_end(*, quick: bool) -> list[Figure]:
    """From a task's last act, printing the time, until `pailot run` has returned."""
    with _place() as folder:
        place = Place(folder)
        job = place.job(1, 'echo "$EPOCHREALTIME"')
        place.time(job)
        output = place.folder / "output"
        taken = []
        for _ in range(7 if quick else 25):
            with output.open("wb") as stream:
                place.wait(place.start(job, stream.fileno()))
                now = time.time()
            taken.append(now - float(output.read_text()))
    seconds = statistics.median(taken)
    wanted = f"{LONGEST_END * 1e3:.0f} ms"
    return [Figure("pailot run, from a task's exit to its own", f"{seconds * 1e3:.1f} ms", wanted, seconds / LONGEST_END, 1.0)]


def log_throughput(*, quick: bool) -> list[Figure]:
    """A task that prints a lot, ten secrets masked, through the logs to whoever reads our output."""
    secrets, text, masked = _log(10_000_000)
    times = LOG_MB * 1_000_000 // len(text)
    speeds = []
    for _ in range(1 if quick else 3):
        with _place() as folder:  # a new one each time: these logs are large
            place = Place(folder)
            printed = place.folder / "printed"
            printed.write_bytes(text)
            job = place.job(1, "cat $BENCH_LOG", secrets)
            place.time(place.job(1))
            began = time.perf_counter()
            process = place.start(job, subprocess.PIPE, {"BENCH_LOG": " ".join([str(printed)] * times)})
            assert process.stdout is not None
            arrived = 0
            while data := os.read(process.stdout.fileno(), 1 << 20):
                arrived += len(data)
            place.wait(process)
            seconds = time.perf_counter() - began
            process.stdout.close()
        if arrived != len(masked) * times:
            raise Failed(f"{arrived} bytes of log arrived, not {len(masked) * times}")
        speeds.append(len(text) * times / 1e6 / seconds)
    speed = statistics.median(speeds)
    wanted = f"{LEAST_MB_A_SECOND} MB/s"
    return [Figure(f"{LOG_MB} MB of log, ten secrets masked", f"{speed:.0f} MB/s", wanted, LEAST_MB_A_SECOND / speed, 1.0)]


def launcher_memory(*, quick: bool) -> list[Figure]:
    """The most memory that the process of `pailot run` itself ever holds, for jobs that differ in what they need."""
    del quick  # a peak needs no repetition
    secrets, text, _ = _log(10_000_000)
    figures = []
    with _place() as folder:
        place = Place(folder)
        printed = place.folder / "printed"
        printed.write_bytes(text)
        jobs = {
            "one task": place.job(1),
            "a log with secrets": place.job(1, f"cat {printed} {printed} {printed}", secrets),
            f"{MANY:,} tasks": place.job(MANY),
        }
        for name, command in jobs.items():
            process = place.start(command)
            most = 0
            while process.poll() is None:
                most = max(most, _peak_kb(process.pid))
                time.sleep(0.001)
            place.wait(process)
            megabytes = most / 1024
            wanted = f"{MOST_MEMORY_MB} MB"
            figures.append(Figure(f"launcher memory, {name}", f"{megabytes:.1f} MB", wanted, megabytes / MOST_MEMORY_MB, 1.0))
    return figures


def _torchx(place: Place) -> dict[str, list[str]]:
    """What TorchX does with one task and with eight; nothing, and a word on it, where it cannot be had."""
    component = ["utils.binary", "--entrypoint", "/bin/true", "--num_replicas"]
    command = [str(TORCHX), "run", "-s", "local_cwd", "--wait", *component]
    try:
        place.time([*command, "1"])
    except FileNotFoundError:
        print("no comparison with TorchX: make bench could not install it into .venv-peers", file=sys.stderr)
    except Failed as failed:
        print("no comparison with TorchX:", str(failed).splitlines()[-1], file=sys.stderr)
    else:
        return {"torchx one": [*command, "1"], "torchx eight": [*command, "8"]}
    return {}


def _place() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="pailot-bench-")


def _log(size: int) -> tuple[list[str], bytes, bytes]:
    """Ten secrets, a log that holds one of them every few hundred lines, and the same masked."""
    chance = random.Random(0)
    secrets = [chance.randbytes(8 + 2 * number).hex() for number in range(10)]
    lines: list[str] = []
    length = 0
    while length < size:
        step = len(lines)
        extra = f" token={chance.choice(secrets)}" if step % 500 == 0 else ""
        clock = f"12:{step // 60 % 60:02}:{step % 60:02}"
        lines.append(f"2026-11-16 {clock} INFO [worker:0] step {step}: loss={chance.random():.6f}{extra}\n")
        length += len(lines[-1])
    text = masked = "".join(lines)
    for secret in secrets:
        masked = masked.replace(secret, "******")
    return secrets, text.encode(), masked.encode()


def _peak_kb(pid: int) -> int:
    """The largest size this process has had so far; nothing of its children, nor of what it was before `exec`."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0  # it has just ended
    return next((int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:")), 0)
