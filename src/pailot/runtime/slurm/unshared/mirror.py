"""On the login node, for an attempt whose nodes do not see its folder: keeps a copy of what they write there.

It is a process of its own and outlives the one that started it: so the copy is whole although `pailot run` was killed. One for
each attempt, the holder of a lock; it ends with the attempt, or when Slurm says that the job is over.
"""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import time

from ....runfolder import layout
from ...folder_copy.receiver import Receiver

SHORTEST_SECONDS, LONGEST_SECONDS = 0.2, 5.0
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
        self.component: tuple[str, ...] = ()

    def run(self) -> None:
        pause = SHORTEST_SECONDS
        while True:
            state, node = self._state()
            if state == "RUNNING" and node:
                met = self._fetch(node)
                if met.arrived:
                    return
                pause = SHORTEST_SECONDS if met.began else pause
            elif state not in LIVES or not os.path.isdir(self.folder):
                return
            time.sleep(pause)
            pause = min(pause * 1.5, LONGEST_SECONDS)

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

    def _fetch(self, node: str) -> Receiver:
        words = ["srun", f"--jobid={self.job}", *self.component, "--overlap", "--nodes=1", "--ntasks=1", f"--nodelist={node}"]
        words += ["--quiet", "--mem=0", "--gres=none", "--chdir=/", "--unbuffered", "--job-name=pailot-fetch"]
        words += ["sh", "-c", FIND, "sh", self.job, self.base]
        with open(os.path.join(self.folder, layout.MIRROR_LOG), "ab") as log:
            process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log)
        assert process.stdin
        assert process.stdout
        receiver = Receiver(self.folder)
        try:
            receiver.talk(process.stdin.fileno(), process.stdout.fileno())
        except BrokenPipeError:
            pass  # the step has ended; why is asked again
        finally:
            process.stdin.close()
            process.stdout.close()
            if not receiver.arrived:
                process.terminate()
            process.wait()
        return receiver


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
