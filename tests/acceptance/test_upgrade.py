"""A home and a server's database of version 0.1.0, as a power cut left them: today's version starts, migrates, lists, reruns.

`tests/fixtures/pailot-0.1.0.tar.xz` was written by that version. It holds a home with runs that succeeded, failed and were cut
off, and a server with the same, with a job that ran, one that waited, uploaded code, a second user and the token of a program.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from pailot.store.server.migrations import MIGRATIONS
from pailot.testing.runs import Home

from ..support.http_server import Server

FIXTURE = Path(__file__).parents[1] / "fixtures" / "pailot-0.1.0.tar.xz"
WRITTEN_AT = "/tmp/pailot-upgrade"
SECRET = "fixture-s3cret"


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """The fixture at another place; the places that the databases name are changed as if it had been written there."""
    with tarfile.open(FIXTURE) as archive:
        archive.extractall(tmp_path, filter="fully_trusted")  # our own, with pipes and modes
    (tmp_path / "server").chmod(0o700)
    for database in ("home/index.db", "server/server.db"):
        opened = sqlite3.connect(tmp_path / database)
        with opened:
            opened.execute("UPDATE jobs SET folder = replace(folder, ?, ?)", (WRITTEN_AT, str(tmp_path)))
        opened.close()
    return tmp_path


@pytest.fixture
def home(old: Path, tmp_path: Path) -> Iterator[Home]:
    made = Home(tmp_path / "user")
    kept = Path(made.environment["PAILOT_HOME"])
    shutil.rmtree(kept, ignore_errors=True)
    os.rename(old / "home", kept)
    opened = sqlite3.connect(kept / "index.db")
    with opened:
        opened.execute("UPDATE jobs SET folder = replace(folder, ?, ?)", (str(old / "home"), str(kept)))
    opened.close()
    made.environment |= {"LOGNAME": "root", "USER": "root"}
    yield made
    made.close()


def test_runs_of_the_old_version_are_listed_shown_and_run_again(home: Home) -> None:
    listed = {each["name"]: each["state"] for each in json.loads(home.pailot("ps", "--all", "--json").out)}
    assert listed["good"] == "SUCCEEDED"
    assert listed["bad"] == "FAILED"
    assert listed["cut"] in ("FAILED", "STOPPED")  # its driver was killed
    assert sorted(home.pailot("logs", "good").out.splitlines()) == [
        "[worker:0] worker 0 with 0.1 and ******",
        "[worker:1] worker 1 with 0.1 and ******",
    ]
    why = home.pailot("why", "bad")
    assert why.status == 0, why
    assert "main:0 exited with 3" in why.out
    assert home.pailot("show", "cut").status == 0
    assert "started" in home.pailot("events", "good").out
    again = home.pailot("rerun", "good", "--quiet")
    assert again.status == 0, again
    assert sorted(again.out.splitlines()) == [
        "[worker:0] worker 0 with 0.1 and ******",
        "[worker:1] worker 1 with 0.1 and ******",
    ]
    assert home.pailot("rerun", "bad", "--quiet").status == 1
    assert home.pailot("gc", "--rebuild-index").status == 0
    assert len(json.loads(home.pailot("ps", "--all", "--json").out)) == 5


@pytest.fixture
def server(old: Path) -> Iterator[Server]:
    with Server(old / "server", "--stop-jobs", PAILOT_CPUS="2", PAILOT_MEMORY_MB="4000", PAILOT_GPUS="0") as started:
        started._token = started.login("admin", "correct-horse")
        yield started


def test_a_server_of_the_old_version_goes_on(server: Server, old: Path) -> None:
    states = {each["name"]: each["state"] for each in server.get("/jobs").json}
    assert (states["good"], states["bad"], states["coded"]) == ("SUCCEEDED", "FAILED", "SUCCEEDED")
    assert set(states) == {"good", "bad", "coded", "running", "waiting"}
    server.begun("admin~running")  # the old keeper was killed; it is tried again
    server.ask("PUT", "/jobs/admin~running/executionType", {"value": "STOP", "now": True})
    assert server.wait("admin~running")["jobStatus"]["state"] == "STOPPED"
    assert server.wait("admin~waiting")["jobStatus"]["state"] == "SUCCEEDED"
    assert "worker 0 with 0.1 and ******" in server.get("/jobs/admin~good/logs/worker/0").text
    for name in ("good", "coded"):
        again = server.ask("POST", f"/jobs/admin~{name}/rerun", {"name": f"{name}-again"})
        assert again.status in (200, 201, 202), again
        assert server.wait(f"admin~{name}-again")["jobStatus"]["state"] == "SUCCEEDED"
    assert server.get("/jobs/admin~coded-again/logs/main/0").text == "from the code\n"
    assert "and ******" in server.get("/jobs/admin~good-again/logs/worker/1").text
    assert server.login("dana", "dana-password")
    assert server.get("/jobs", (old / "application-token").read_text()).status == 200
    assert SECRET not in server.log.read_text()


def test_what_the_old_version_wrote_is_kept_beside_and_whole(server: Server, old: Path) -> None:
    copies = sorted(path.name for path in (old / "server").iterdir() if path.name.startswith("server.db.form"))
    assert copies == (["server.db.form1"] if len(MIGRATIONS) > 1 else [])  # the form of 0.1.0 is the first
    server.stop()
    checked = Home(old / "checker")
    checked.environment |= {"PAILOT_HOME": str(old / "server")}
    done = checked.pailot("serve", "--check")
    assert done.status == 0, done
    assert "5 jobs, 2 users" in done.out
    checked.close()


def test_a_backup_taken_while_the_server_runs_is_restored_in_another_place(server: Server, old: Path, tmp_path: Path) -> None:
    """What the guide says: SQLite's own copy, the keys, the folders of jobs, the code; then the same home somewhere else."""
    server.wait("admin~good")
    copy = tmp_path / "copy"
    copy.mkdir(mode=0o700)
    source, target = sqlite3.connect(old / "server" / "server.db"), sqlite3.connect(copy / "server.db")
    source.backup(target)
    source.close()
    target.close()
    for name in ("keys", "jobs", "code"):
        shutil.copytree(old / "server" / name, copy / name, symlinks=True)
    server.ask("PUT", "/jobs/admin~running/executionType", {"value": "STOP", "now": True})
    server.stop()
    shutil.rmtree(old / "server" / "jobs")
    os.rename(old / "server", tmp_path / "broken")
    os.rename(copy, old / "server")
    with Server(old / "server", "--stop-jobs", PAILOT_CPUS="2", PAILOT_MEMORY_MB="4000", PAILOT_GPUS="0") as restored:
        restored._token = restored.login("admin", "correct-horse")
        assert "worker 1 with 0.1" in restored.get("/jobs/admin~good/logs/worker/1").text
        again = restored.ask("POST", "/jobs/admin~good/rerun", {"name": "restored"})
        assert again.status in (200, 201, 202), again
        restored.ask("PUT", "/jobs/admin~running/executionType", {"value": "STOP", "now": True})
        assert restored.wait("admin~restored")["jobStatus"]["state"] == "SUCCEEDED"
