"""`pailot serve --check`, `--rotate-keys` and `pailot gc` on the home of a server that is not running."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pailot.store import SecretBox
from pailot.store.server import JobRecord, ServerStore, new_id


def pailot(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PAILOT_HOME": str(home)}
    environment.pop("PAILOT_SERVER", None)
    return subprocess.run(
        [sys.executable, "-m", "pailot", *arguments], env=environment, cwd=home, capture_output=True, text=True, check=False
    )


@pytest.fixture
def home(tmp_path: Path) -> Path:
    with ServerStore.open(str(tmp_path / "server.db")) as store:
        box = SecretBox(str(tmp_path))
        for number, days in enumerate((40, 35, 1)):
            id = new_id()
            folder = tmp_path / "jobs" / id
            folder.mkdir(parents=True)
            ended = time.time() - days * 86400
            record = JobRecord(id, "ann", f"job{number}", 1.0, state="FAILED", started=1.0, ended=ended, folder=str(folder))
            store.jobs.add(record, "", "", box.seal(id, {"a": "secret"}))
    return tmp_path


def test_check(home: Path) -> None:
    done = pailot(home, "serve", "--check")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"all is well with {home}/server.db: 3 jobs, 0 users\n"
    (folder, *_) = (home / "jobs").iterdir()
    folder.rmdir()
    done = pailot(home, "serve", "--check")
    assert done.returncode == 1
    assert done.stderr == f"pailot: job {folder.name}: its folder {folder} is gone\n"
    done = pailot(home, "serve", "--check", "--json")
    assert json.loads(done.stdout) == {"problems": [f"job {folder.name}: its folder {folder} is gone"], "jobs": 3, "users": 0}


def test_rotate_keys(home: Path) -> None:
    before = (home / "keys" / "secret.key").read_text()
    done = pailot(home, "serve", "--rotate-keys", "--forget-old-keys", "--check")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("sealed the secrets of 3 jobs with a new key\nall is well")
    assert (home / "keys" / "secret.key").read_text() != before
    (home / "keys" / "secret.key").write_text(before)
    done = pailot(home, "serve", "--rotate-keys")
    assert done.returncode != 0
    assert "this is not the key that the secrets of this server are sealed with" in done.stderr
    assert "Traceback" not in done.stderr


def test_gc(home: Path) -> None:
    done = pailot(home, "gc", "--keep-last", "0", "--dry-run")
    assert done.stdout == "0 runs would go\n2 jobs of the server would go\n"
    done = pailot(home, "gc", "--keep-last", "0", "--json")
    assert json.loads(done.stdout)["serverJobs"] == 2
    assert len(list((home / "jobs").iterdir())) == 1


def test_a_home_without_a_server(tmp_path: Path) -> None:
    done = pailot(tmp_path, "serve", "--check")
    assert done.returncode != 0
    assert done.stderr == f"pailot: {tmp_path}/server.db: no server has run in this home yet\n"
    done = pailot(tmp_path, "gc")
    assert done.stdout == "0 runs removed, 0.0 MB freed\n"
    assert not (tmp_path / "server.db").exists()
