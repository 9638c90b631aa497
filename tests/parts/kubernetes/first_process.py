"""The first process of a node's namespaces: sets the node up, starts its daemons, and starts those again that end.

    python first_process.py STEPS.json

A step is a command that must succeed in the end (`run`), or a daemon (`daemon`, `argv`, `log`). While a file `NAME.off`
stands in the current folder, the daemon of that name is dead.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from typing import Any

PAUSE_SECONDS = 0.05
TRIES = 1200


def main() -> None:
    with open(sys.argv[1], encoding="utf-8") as file:
        steps: list[dict[str, Any]] = json.load(file)
    running: dict[str, subprocess.Popen[bytes]] = {}
    daemons: dict[str, dict[str, Any]] = {}
    for step in steps:
        if "daemon" in step:
            daemons[step["daemon"]] = step
            running[step["daemon"]] = start(step)
        else:
            run(step["run"], step.get("tries", 1))
    while True:
        reap(running)
        for name, step in daemons.items():
            off = os.path.exists(f"{name}.off")
            if name in running and off:
                running[name].send_signal(signal.SIGKILL)
            elif name not in running and not off:
                running[name] = start(step)
        time.sleep(PAUSE_SECONDS)


def start(step: dict[str, Any]) -> subprocess.Popen[bytes]:
    with open(step["log"], "ab") as log:
        return subprocess.Popen(step["argv"], stdin=subprocess.DEVNULL, stdout=log, stderr=log)


def run(words: list[str], tries: int) -> None:
    said = ""
    for number in range(tries):
        if number:
            time.sleep(PAUSE_SECONDS)
        done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return
        said = done.stderr
    raise SystemExit(f"{' '.join(words)}: {said}")


def reap(running: dict[str, subprocess.Popen[bytes]]) -> None:
    """All children that ended: the daemons, and what orphans left to the first process."""
    for name in [name for name, process in running.items() if process.poll() is not None]:
        del running[name]
    known = {process.pid for process in running.values()}
    while True:
        try:
            found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return
        if found is None or found.si_pid in known:
            return
        os.waitpid(found.si_pid, 0)


if __name__ == "__main__":
    main()
