"""Shells and files of tasks through a server, in real containers and on a real Slurm cluster."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from pailot.testing.runs import Home, job, role

from ..parts import containers
from ..parts.slurm import cluster
from ..support.servers import Server, submit
from .test_task_access import PROMPT, Screen

PATIENCE = 120.0
COMMANDS = 'export MINE=exported; echo "from the task" >file; sleep 1000'


def check(server: Server, folder: Path, image: str) -> None:
    home: Home = server.client(folder / "client")
    text = job(role(COMMANDS), name="there").replace("uri: debian", f"uri: '{image}'")
    assert submit(home, text).status == 0
    end = time.monotonic() + PATIENCE
    while (done := home.pailot("enter", "there", "main", "0", "--command", "cat file; echo $PAI_TASK_INDEX; exit 4")).status != 4:
        assert time.monotonic() < end, (done, home.pailot("why", "there"))
        time.sleep(0.3)
    assert done.out == "from the task\n0\n"
    screen = Screen(home, "enter", "there", "main", "0", rows=33, columns=111)
    screen.until(PROMPT)
    # Docker gives a terminal its size a moment after the shell has begun.
    screen.type("until stty size | grep '33 111'; do sleep 0.1; done; exit 6\n")
    screen.until(r"\b33 111\b")
    assert screen.ended() == 6
    assert home.pailot("cp", "there:main:0/file", "got").status == 0
    assert (home.cwd / "got").read_text() == "from the task\n"
    assert home.pailot("stop", "there", "--now").status == 0
    assert home.pailot("wait", "there").status == 3
    assert home.pailot("cp", "there:main:0/file", "later").status == 0


def test_in_a_container(tmp_path: Path) -> None:
    server = Server(tmp_path / "server", PAILOT_ENGINE="docker", **containers.docker().environment)
    try:
        check(server, tmp_path, containers.IMAGE)
    finally:
        server.close()


def test_on_a_node(tmp_path: Path) -> None:
    slurm = cluster()
    server = Server(tmp_path / "server", PAILOT_ENGINE="slurm", PAILOT_SLURM_POLL_SECONDS="1", **slurm.environment)
    try:
        check(server, tmp_path, "debian")
    finally:
        server.close()
        slurm.slurm("scancel", "--user=root")


pytestmark = pytest.mark.timeout(300)
