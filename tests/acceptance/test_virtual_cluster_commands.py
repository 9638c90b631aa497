"""`pailot vc` against a real server."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pailot.testing.runs import Home

from ..support.servers import Server

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    started = Server(tmp_path / "server", PAILOT_CPUS="16", PAILOT_MEMORY_MB="16000", PAILOT_GPUS="8")
    yield started
    started.close()


@pytest.fixture
def me(server: Server, tmp_path: Path) -> Iterator[Home]:
    home = server.client(tmp_path / "me")
    yield home
    home.close()


def test_virtual_clusters_from_the_command_line(me: Home) -> None:
    assert me.pailot("vc", "add", "lab", "--capacity", "25%", "--user-jobs", "1").lines == [
        "lab is added",
        "pailot user set USER --vc lab lets a user submit to it",
    ]
    assert me.pailot("vc", "set", "lab", "--gpus", "3", "--user-gpus", "2", "--description", "the lab").lines == [
        "lab is changed"
    ]
    assert me.pailot("vc", "set", "default", "--user-jobs", "8").status == 0
    assert me.pailot("vc", "list").lines == [
        "NAME     CAPACITY  CPUS  MEMORY    GPUS  IN USE          RUNNING  WAITING  EACH USER",
        "default  62.5 %    12    12000 MB  5     0 CPUs, 0 GPUs  0        0        8 jobs",
        "lab      37.5 %    4     4000 MB   3     0 CPUs, 0 GPUs  0        0        1 job, 2 GPUs",
    ]
    assert me.pailot("vc", "set", "lab", "--user-jobs", "none").status == 0
    assert json.loads(me.pailot("vc", "list", "--json").out)["lab"]["userLimits"] == {"gpus": 2}
    for arguments, status, words in (
        (("add", "lab"), 2, "there is a virtual cluster 'lab' already; pailot vc set changes it"),
        (("set", "lba", "--gpus", "1"), 2, "there is no virtual cluster 'lba'; did you mean 'lab'?; pailot vc add makes one"),
        (("set", "lab"), 2, "pailot vc set: what is to change? --capacity, --cpus,"),
        (("set", "lab", "--gpus", "many"), 2, "--gpus: should be a whole number, is 'many'"),
        (("set", "lab", "--user-jobs", "1.5"), 2, "--user-jobs: should be a whole number or 'none', is '1.5'"),
        (("add", "big", "--gpus", "6"), 2, "of 8 GPUs, 5 are left for big, and not 6"),
        (("remove",), 2, "pailot vc remove needs the name of a virtual cluster"),
        (("remove", "none"), 2, "VirtualCluster none is not found"),
    ):
        done = me.pailot("vc", *arguments)
        assert done.status == status, done
        assert done.err.startswith(f"pailot: {words}"), done
    assert json.loads(me.pailot("vc", "remove", "lab", "--json").out) == {"name": "lab", "message": "lab is removed"}


def test_a_programs_token_is_told_to_log_in(me: Home, server: Server) -> None:
    me.environment["PAILOT_TOKEN"] = me.pailot("token", "create").out.strip()
    assert me.pailot("vc", "list", "--server", server.url).status == 0
    done = me.pailot("vc", "add", "lab", "--capacity", "5", "--server", server.url)
    hint = "the token in use is a program's: log in with a password (pailot login)"
    assert (done.status, done.err) == (5, f"pailot: Applications are not allowed to do this operation; {hint}\n")


def test_shares_and_limits_survive_a_restart(me: Home, server: Server) -> None:
    me.pailot("vc", "add", "lab", "--capacity", "30", "--user-jobs", "2")
    before = me.pailot("vc", "list").out
    server.kill()
    server.start()
    assert me.pailot("vc", "list").out == before
