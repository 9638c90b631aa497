"""A disk that is full, for real: it is an end of its own, and one run that it broke hides no other."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from pailot.testing.runs import Home, job, no_process_left, role, wait_for

from ..support.servers import Server, submit

FULL = "the disk that holds PAILOT_HOME is full"


@contextlib.contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Path]:
    """A file system of its own, of this size."""
    folder.mkdir(0o700, parents=True, exist_ok=True)
    options = f"size={size},mode=700"
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)], capture_output=True, check=False)
    if mounted.returncode:
        pytest.skip("a small file system cannot be mounted here (needs root)")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(folder: Path) -> None:
    """To the last byte, with the space that was given back meanwhile."""
    for name in ("filler", "rest"):
        with contextlib.suppress(OSError), open(folder / name, "wb", buffering=0) as filler:
            while True:
                filler.write(bytes(4096))


def retries(home: Home) -> list[str]:
    return [event["event"] for event in json.loads(home.pailot("events", "demo", "--json").out) if event["event"] == "job-retry"]


# At first nothing fits, then not the index, the attempt, the folders of the tasks, their logs, the records of their ends.
@pytest.mark.parametrize("size", ["100k", "200k", "260k", "300k", "360k", "400k", "440k", "500k", "700k", "900k", "2000k"])
def test_a_disk_of_any_size_that_fills_up_is_told_and_hides_nothing(home: Home, size: str) -> None:
    """At every size the disk is full at another moment, from the first file of the run to the last."""
    with small_disk(home.folder / "home", size):
        much = "head -c 1000000 /dev/zero | tr '\\0' x | fold -w 100"
        done = home.run(job(role(much, instances=2, memory=0), job_retries=2), "--quiet")
        assert done.status in (1, 2)
        assert "disk" in done.err
        assert "full" in done.err
        no_process_left(str(home.folder))
        listed = home.pailot("ps", "--json")
        assert (listed.status, listed.err) == (0, "")
        rows = json.loads(listed.out)
        if not rows:  # it was refused before there was anything to list
            assert (done.status, home.jobs()) == (2, [])
            return
        assert [row["state"] for row in rows] == ["FAILED"]
        shown = home.show()
        assert FULL in shown["reason"]
        assert (shown["attempt"], shown["retries"], retries(home)) == (0, 0, [])
        assert not [task for task in shown["taskRoles"]["main"]["tasks"] if task["state"] == "RUNNING"]
        assert FULL in home.pailot("why", "demo").out
        assert home.pailot("wait", "demo").status == 1


@pytest.mark.parametrize("reserve", ["there", "used up"])
def test_a_run_that_cannot_be_concluded_hides_no_other(home: Home, reserve: str) -> None:
    """Its launcher dies on a full disk: with the reserve it has its verdict, without it a line says why it has none."""
    marker = f"marker-{home.folder.name}"
    with small_disk(home.folder / "home", "8m") as disk:
        assert home.run(job(role("echo fine"), name="good"), "--quiet").status == 0
        long = f"echo begun; exec -a {marker} sleep 1000"
        assert home.run(job(role(long, memory=0), options="graceSeconds: 1"), "--detach").status == 0
        folder = next(each for each in home.jobs() if json.loads((each / "job.json").read_text())["name"] == "demo")
        driver = json.loads((folder / "attempts" / "0" / "attempt.json").read_text())["driver"]
        if reserve == "used up":
            for path in disk.glob("jobs/*/**/reserve"):
                path.unlink()
        fill(disk)
        os.kill(driver, signal.SIGKILL)
        no_process_left(marker)

        said = []

        def states() -> dict[str, str]:
            listed = home.pailot("ps", "--json")
            said.append(listed.err)
            return {row["name"]: row["state"] for row in json.loads(listed.out)}

        ended = wait_for(lambda: states() if states()["demo"] != "RUNNING" else None, what="an end in the list")
        assert ended == {"good": "SUCCEEDED", "demo": "FAILED" if reserve == "used up" else ended["demo"]}
        if reserve == "used up":
            assert f"could not be written: {FULL}" in "".join(said)
        for command in ("show", "why", "events", "logs"):
            assert home.pailot(command, "good").status == home.pailot(command, "demo").status == 0
        assert home.pailot("wait", "demo").status in (1, 3)
        assert home.pailot("stop", "demo").status == 0
        (disk / "filler").unlink()
        (disk / "rest").unlink()
        assert states()["demo"] in ("FAILED", "STOPPED")
        if reserve == "used up":
            assert FULL in home.pailot("why", "demo").out


def test_gc_makes_room_on_a_disk_that_is_full_to_the_last_byte(home: Home) -> None:
    with small_disk(home.folder / "home", "8m") as disk:
        assert home.run(job(role("echo fine"), name="good"), "--quiet").status == 0
        done = subprocess.run(  # whoever closes the index takes away what several users of it share
            ["python3", "-c", f"import sqlite3; sqlite3.connect('{disk}/index.db').execute('select * from jobs').fetchall()"],
            check=True,
        )
        assert done.returncode == 0
        fill(disk)
        assert "good" in home.pailot("ps").out
        removed = home.pailot("gc", "--keep-days", "0", "--keep-last", "0")
        assert (removed.status, removed.err) == (0, "")
        assert home.jobs() == []
        assert home.pailot("ps").out.startswith("no runs yet")


def test_the_reserve_goes_with_the_run(home: Home) -> None:
    assert home.run(job(role("true")), "--quiet").status == 0
    assert not list((home.folder / "home").glob("**/reserve"))


def test_a_job_that_fills_the_disk_of_a_server_fails_alone(tmp_path: Path) -> None:
    """It is not tried again there, its neighbour goes on, and new jobs are refused in clear words."""
    with small_disk(tmp_path / "server" / "home", "12m") as disk:
        server = Server(tmp_path / "server")
        try:
            me = server.client(tmp_path / "me")
            gate = tmp_path / "gate"
            submit(me, job(role(f"echo begin; until [ -e {gate} ]; do sleep 0.1; done"), name="calm"))
            wait_for(lambda: "begin" in me.pailot("logs", "calm").out, what="the neighbour to run")
            submit(me, job(role("yes 'much to say'"), name="loud", job_retries=2))
            wait_for(lambda: me.show("loud")["state"] == "FAILED", what="the end of the loud one")
            shown = me.show("loud")
            assert (FULL in shown["reason"], shown["attempt"], shown["retries"]) == (True, 0, 0)
            fill(disk)
            refused = submit(me, job(role("true"), name="late"))
            assert (refused.status, "the disk is full" in refused.err) == (4, True)
            assert me.show("calm")["state"] == "RUNNING"
            gate.touch()
            assert me.pailot("wait", "calm").status == 0
            assert {row["name"] for row in json.loads(me.pailot("ps", "--json").out)} == {"calm", "loud"}
            me.close()
        finally:
            server.close()
