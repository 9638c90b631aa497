"""On the login node, for an attempt whose nodes do not see its folder: keeps a copy of what they write there.

It is a process of its own and outlives whoever started it: so the copy is whole although `pailot run` was killed. One for
each attempt, the holder of a lock; it ends with the attempt, or when Slurm says that the job is over.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import signal
import subprocess
import time

from ...runfolder import layout
from ...runfolder.atomic_json import read_lines
from .folder_sync import EVENTS, Tree, put
from .sync_sender import BEGIN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LOOK_SECONDS = 0.2
SHORTEST, LONGEST = 0.2, 5.0
LIVES = frozenset("PENDING CONFIGURING RUNNING SUSPENDED REQUEUED RESIZING STOPPED SIGNALING STAGE_OUT UNKNOWN".split())
FIND = """for base in "$2" "$TMPDIR" /tmp; do
    root=$base/pailot-$1
    if [ -n "$base" ] && [ -O "$root/ready" ]; then exec "$(cat "$root/ready")" -I -S -B "$root/code" fetch "$root"; fi
done
exit 98"""


class Mirror:
    """The copy in `folder` of what job `job` writes, its nodes using `base`."""

    def __init__(self, folder: str, job: str, base: str) -> None:
        self.folder, self.job, self.base = folder, job, base
        self.ordered = 0
        self.heard = b""
        self.began = self.arrived = False
        self.wanted: dict[str, Any] | None = None
        self.component: tuple[str, ...] = ()

    def run(self) -> None:
        pause = SHORTEST
        while not self.arrived:
            state, node = self._state()
            if state == "RUNNING" and node:
                self.began = False
                self._fetch(node)
                pause = SHORTEST if self.began else pause
            elif state not in LIVES or not os.path.isdir(self.folder):
                return
            if not self.arrived:
                time.sleep(pause)
                pause = min(pause * 1.5, LONGEST)

    def _state(self) -> tuple[str, str]:
        """As Slurm says it, with the node of the driver."""
        words = ["squeue", "-h", "-t", "all", "-j", self.job, "-o", "%i|%T|%B"]
        done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        for line in done.stdout.splitlines():
            number, state, node = line.split("|", 2)
            if number in (self.job, f"{self.job}+0"):
                self.component = ("--het-group=0",) if number != self.job else ()
                return state, "" if node in ("", "n/a") else node
        return ("GONE" if done.returncode == 0 or "Invalid job id" in done.stderr else "UNKNOWN"), ""

    def _fetch(self, node: str) -> None:
        words = [
            "srun",
            f"--jobid={self.job}",
            *self.component,
            "--overlap",
            "--nodes=1",
            "--ntasks=1",
            f"--nodelist={node}",
            "--quiet",
        ]
        words += ["--mem=0", "--gres=none", "--chdir=/", "--unbuffered", "--job-name=pailot-fetch", "sh", "-c", FIND]
        words += ["sh", self.job, self.base]
        with open(os.path.join(self.folder, layout.MIRROR_LOG), "ab") as log:
            process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log)
        assert process.stdin
        assert process.stdout
        self.heard, self.wanted, self.ordered = b"", None, 0
        try:
            self._talk(process.stdin.fileno(), process.stdout.fileno())
        except BrokenPipeError:
            pass  # the step has ended; why is asked again
        finally:
            process.stdin.close()
            process.stdout.close()
            if not self.arrived:
                process.terminate()
            process.wait()

    def _talk(self, writer: int, reader: int) -> None:
        while True:
            ready, _, _ = select.select([reader], [], [], LOOK_SECONDS)
            if ready:
                data = os.read(reader, 1 << 18)
                if not data:
                    return
                self._take(data, writer)
            if self.began and not self.arrived:
                orders = read_lines(os.path.join(self.folder, layout.DRIVER_ORDERS))
                for order in orders[self.ordered :]:
                    _say(writer, {"order": order})
                self.ordered = len(orders)

    def _take(self, data: bytes, writer: int) -> None:
        self.heard += data
        if not self.began:
            _, begin, rest = self.heard.partition(BEGIN)
            if not begin:
                return
            self.began, self.heard = True, rest
            _say(writer, {"have": self._have()})
        while True:
            if self.wanted is None:
                line, newline, rest = self.heard.partition(b"\n")
                if not newline:
                    return
                self.heard, self.wanted = rest, json.loads(line)
            size = int(self.wanted.get("size", 0))
            if len(self.heard) < size:
                return
            piece, self.heard = self.heard[:size], self.heard[size:]
            if "over" in self.wanted:
                self.arrived = True
                _say(writer, {"arrived": True})
            else:
                put(self.folder, self.wanted["path"], self.wanted["offset"], piece)
            self.wanted = None

    def _have(self) -> dict[str, int]:
        """How much of each growing file is here."""
        sizes = {path: os.path.getsize(os.path.join(self.folder, path)) for path in Tree(self.folder).files()}
        return {path: size for path, size in sizes.items() if size or path == EVENTS}


def _say(writer: int, word: dict[str, Any]) -> None:
    data = json.dumps(word).encode("ascii") + b"\n"
    while data:
        data = data[os.write(writer, data) :]


def main(words: list[str]) -> int:
    """The whole life of a mirror, as a program: ATTEMPT JOB NODE_FOLDER."""
    for number in (signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    folder, job, base = words
    lock = os.open(os.path.join(folder, layout.MIRROR_LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return 0  # another does it
    except OSError:
        pass  # this file system has no locks; two of them write the same
    Mirror(folder, job, base).run()
    return 0
