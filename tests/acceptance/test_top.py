"""`pailot top`: what tasks use, here and through a server."""

from __future__ import annotations

import json
import os
import pty
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from pailot.testing.runs import Home, job, role, wait_for

from ..support.servers import Server, submit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

BUSY = job(role("python3 -c 'import time; block = bytearray(30 << 20); time.sleep(600)'", instances=2), name="busy")


@pytest.fixture(scope="module", params=["here", "server"])
def home(request: pytest.FixtureRequest) -> Iterator[Home]:
    """A place where the job is running."""
    folder = Path(tempfile.mkdtemp(prefix="pailot-top-"))
    server = Server(folder / "server") if request.param == "server" else None
    (folder / "mine").mkdir()
    made = server.client(folder / "mine") if server else Home(folder / "mine")
    if server:
        submit(made, BUSY)
    else:
        assert made.run(BUSY, "--detach").status == 0
    yield made
    made.pailot("stop", "busy", "--now")
    made.pailot("wait", "busy")
    made.close()
    if server:
        server.close()
    shutil.rmtree(folder)


def test_what_tasks_use(home: Home) -> None:
    def measured() -> bool:
        return all(each["now"] for each in json.loads(home.pailot("top", "busy", "--json").out))

    wait_for(measured, 60)
    told = json.loads(home.pailot("top", "--json").out)
    assert [(each["name"], each["role"], each["index"], each["state"]) for each in told] == [
        ("busy", "main", index, "RUNNING") for index in (0, 1)
    ]
    assert all(each["now"]["memoryMB"] == pytest.approx(37, abs=8) for each in told)
    assert all(each["asked"]["memoryMB"] > 0 for each in told)
    titles, first, _ = home.pailot("top", "busy").lines
    assert titles.split()[:3] == ["TASK", "STATE", "CPU"]
    assert first.split()[:2] == ["main:0", "RUNNING"]
    assert " MB" in first
    assert home.pailot("top", "--once").lines[1].startswith("busy main:0")
    assert home.pailot("top", "nothing").status == 2


def test_a_table_on_a_terminal_is_drawn_until_the_run_is_over(tmp_path: Path) -> None:
    home = Home(tmp_path)
    assert home.run(job(role("sleep 3"), name="short"), "--detach").status == 0
    leader, follower = pty.openpty()
    environment = home.environment | {"TERM": "xterm"}
    process = subprocess.Popen([sys.executable, "-m", "pailot", "top", "short"], stdout=follower, env=environment)
    os.close(follower)
    shown = b""
    while True:
        try:
            data = os.read(leader, 65536)
        except OSError:  # the other end is closed
            break
        if not data:
            break
        shown += data
    os.close(leader)
    assert process.wait(60) == 0
    assert b"RUNNING" in shown
    assert b"SUCCEEDED" in shown
    assert b"\x1b[2F\x1b[J" in shown
    home.close()
