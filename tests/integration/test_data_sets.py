"""Data sets of the library on a real disk, from a real web server: once, whole, shared, and gone when no job needs them."""

from __future__ import annotations

import fcntl
import hashlib
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from pailot.data.data_sets import DataSet, DataSets, is_at_work, shareable
from pailot.data.location import ProvideError
from pailot.runfolder import layout

from ..support.web_server import WebServer

BODY = b"numbers " * 1000


class Shelf:
    """A web server that counts how often each file is asked for, and can be slow or break off."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.go_on = threading.Event()
        self.go_on.set()
        self.begun = threading.Event()
        self.server = WebServer(self.answer)

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        self.asked.append(request.path)
        request.send_response(200)
        request.send_header("Content-Length", str(len(BODY)))
        request.end_headers()
        request.wfile.write(BODY[:100])
        request.wfile.flush()
        self.begun.set()
        self.go_on.wait(60)
        try:
            request.wfile.write(BODY[100:])
        except OSError:
            pass  # the one that asked was killed

    def data(self, name: str, version: str = "1", digest: str = "") -> DataSet:
        return DataSet(f"http://{self.server.host}/{name}", f"{name}@{version}", digest)


@pytest.fixture
def shelf() -> Iterator[Shelf]:
    made = Shelf()
    yield made
    made.go_on.set()
    made.server.close()


@pytest.fixture
def sets(tmp_path: Path) -> DataSets:
    made = DataSets(str(tmp_path / "data"))
    made.prepare()
    return made


class Run:
    """The folder of a run with one attempt, whose driver is this process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.attempt = folder / "attempts" / "0"
        self.attempt.mkdir(parents=True)
        self.lock = os.open(folder / layout.LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(self.lock, fcntl.LOCK_EX)

    def dies(self) -> None:
        os.close(self.lock)


def test_it_is_fetched_once_and_nothing_in_it_can_be_changed(shelf: Shelf, sets: DataSets) -> None:
    data = shelf.data("a.bin")
    assert sets.bring(data)
    assert not sets.bring(data)
    assert len(shelf.asked) == 1
    path = Path(sets.path(data))
    assert path.read_bytes() == BODY
    assert stat.S_IMODE(path.stat().st_mode) == 0o444
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o555
    (found,) = sets.contents()
    assert (found.bytes, found.files, found.path, found.jobs) == (len(BODY), 1, str(path), 0)


def test_another_version_or_sum_is_another_content(shelf: Shelf, sets: DataSets) -> None:
    digest = hashlib.sha256(BODY).hexdigest()
    for data in (shelf.data("a"), shelf.data("a", "2"), shelf.data("a", "2", digest)):
        assert sets.bring(data)
    assert len({each.path for each in sets.contents()}) == 3


def test_content_with_another_sum_never_counts(shelf: Shelf, sets: DataSets) -> None:
    with pytest.raises(ProvideError, match="is not what it should be"):
        sets.bring(shelf.data("a", "1", "0" * 64))
    assert sets.contents() == []
    assert [name for name in os.listdir(Path(sets.folder) / "content") if not name.endswith(".lock")] == []


def test_many_at_once_fetch_once(shelf: Shelf, sets: DataSets) -> None:
    shelf.go_on.clear()
    data, fetched = shelf.data("a"), []
    threads = [threading.Thread(target=lambda: fetched.append(sets.bring(data))) for _ in range(8)]
    for each in threads:
        each.start()
    assert shelf.begun.wait(60)
    assert sets.find(data) is None
    shelf.go_on.set()
    for each in threads:
        each.join()
    assert sorted(fetched) == [False] * 7 + [True]
    assert len(shelf.asked) == 1


def test_what_was_half_fetched_when_its_process_was_killed_never_counts(shelf: Shelf, sets: DataSets) -> None:
    shelf.go_on.clear()
    data = shelf.data("a")
    code = "import sys; from pailot.data.data_sets import *; DataSets(sys.argv[1]).bring(DataSet(sys.argv[2], 'a@1'))"
    child = subprocess.Popen([sys.executable, "-c", code, sets.folder, data.uri])
    assert shelf.begun.wait(60)
    child.send_signal(signal.SIGKILL)
    child.wait(60)
    shelf.go_on.set()
    assert sets.find(data) is None
    sets.evict(1 << 40)
    assert [name for name in os.listdir(Path(sets.folder) / "content") if name.endswith(".part")] == []
    assert sets.bring(data)
    assert Path(sets.path(data)).read_bytes() == BODY


def test_a_change_that_hides_its_traces_is_seen(shelf: Shelf, sets: DataSets) -> None:
    data = shelf.data("a")
    sets.bring(data)
    path = Path(sets.path(data))
    seen = path.stat()
    path.chmod(0o644)
    path.write_bytes(b"poison!!" * 1000)
    path.chmod(0o444)
    os.utime(path, ns=(seen.st_atime_ns, seen.st_mtime_ns))
    assert path.stat().st_size == seen.st_size
    assert sets.bring(data)
    assert path.read_bytes() == BODY


def test_the_longest_unused_goes_and_what_a_job_uses_stays(shelf: Shelf, sets: DataSets, tmp_path: Path) -> None:
    run = Run(tmp_path / "run")
    kept, old, new = (shelf.data(name) for name in ("kept", "old", "new"))
    for age, data in ((300, kept), (200, old), (100, new)):
        if data is kept:
            sets.note_use(data, str(run.attempt))
        sets.bring(data)
        record = Path(sets.folder) / "content" / data.key / "about.json"
        text = record.read_text()
        fetched = sets.find(data)
        assert fetched is not None
        record.chmod(0o600)
        record.write_text(text.replace(str(fetched.fetched), str(time.time() - age)))
    uses = Path(sets.folder) / "uses" / kept.key
    os.utime(uses, (1, 1))
    assert [each.label for each in sets.contents()] == ["kept@1", "old@1", "new@1"]
    found = sets.find(kept)
    assert found is not None
    assert found.jobs == 1
    assert [each.label for each in sets.evict(2 * len(BODY))] == ["old@1"]
    assert [each.label for each in sets.evict(0)] == ["new@1"]
    run.dies()
    assert [each.label for each in sets.evict(0)] == ["kept@1"]
    assert sets.contents() == []
    assert os.listdir(Path(sets.folder) / "content") == []


def test_when_an_attempt_is_at_work(tmp_path: Path) -> None:
    run = Run(tmp_path / "run")
    assert is_at_work(str(run.attempt))
    assert not is_at_work("attempts/0")
    assert not is_at_work(str(tmp_path / "other" / "attempts" / "0"))
    (run.folder / layout.VERDICT).write_text("{}")
    assert not is_at_work(str(run.attempt))
    (run.folder / layout.VERDICT).unlink()
    run.dies()
    assert not is_at_work(str(run.attempt))
    (run.attempt / layout.SLURM_JOB).write_text("{}")
    assert is_at_work(str(run.attempt)), "Slurm's job goes on without its launcher"


@pytest.mark.parametrize(
    ("uri", "may"),
    [
        ("https://data.example/a.tgz", True),
        ("s3://bucket/a", True),
        ("https://me:secret99word@data.example/a", False),
        ("https://me@data.example/a", False),
        ("https://data.example/a?sig=Zm9vYmFyMTIzNDU2", False),
        ("https://data.example/$PAI_USER_NAME", False),
        ("https://data.example/<% $secrets.a %>", False),
        ("/data/a", False),
        ("file:///data/a", False),
    ],
)
def test_only_what_means_the_same_for_all_and_holds_no_secret_is_shared(uri: str, may: bool) -> None:
    assert shareable(uri) is may
