"""`pailot serve --check`, `--rotate-keys` and `pailot gc` on the home of a server that is not running."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from cryptography.fernet import Fernet

from pailot.store import SecretBox
from pailot.store.server import JobRecord, ServerStore, new_id
from pailot.store.server.integrity import check_key


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
        check_key(store, box)
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


def _damage(home: Path) -> None:
    with open(home / "server.db", "r+b") as stream:
        stream.seek(4096)
        stream.write(os.urandom(5 * 4096))


def _newer(home: Path) -> None:
    with closing(sqlite3.connect(home / "server.db", isolation_level=None)) as opened:
        opened.execute("PRAGMA user_version = 99")


def _without_code(home: Path) -> None:
    with ServerStore.open(str(home / "server.db")) as store:
        store.code.add("ab" * 32, 1, 1.0)


@pytest.mark.parametrize(
    ("harm", "words"),
    [
        (_damage, "is damaged"),
        (lambda home: (home / "server.db").write_bytes(b"no database at all" * 100), "is damaged"),
        (lambda home: (home / "server.db").write_bytes(b""), "no server has run in this home yet"),
        (_newer, "written by a newer Pailot"),
        (lambda home: (home / "keys" / "secret.key").unlink(), "the key is gone"),
        (lambda home: SecretBox(str(home))._replace(Fernet.generate_key() + b"\n"), "this is not the key"),
        (lambda home: (home / "keys" / "secret.key").chmod(0o644), "others than its owner can read it"),
        (lambda home: (home / "server.db").chmod(0o660), "others than its owner can write it"),
        (lambda home: home.chmod(0o755), "others than its owner can read it"),
        (_without_code, "is gone; jobs that were submitted with it cannot be started"),
    ],
)
def test_check_finds_what_is_wrong_and_changes_nothing(home: Path, harm: Callable[[Path], object], words: str) -> None:
    home.chmod(0o700)
    harm(home)
    before = (home / "server.db").read_bytes()
    done = pailot(home, "serve", "--check")
    assert done.returncode == 1
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert (home / "server.db").read_bytes() == before


def test_rotate_keys(home: Path) -> None:
    before = (home / "keys" / "secret.key").read_text()
    done = pailot(home, "serve", "--rotate-keys", "--forget-old-keys", "--check")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("sealed the secrets of 3 jobs, users and storages with a new key\nall is well")
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
