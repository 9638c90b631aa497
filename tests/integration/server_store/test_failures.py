"""Whatever the database cannot do is one clear line, and what was acknowledged is never lost."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from pailot.store.server import JobRecord, ServerStore, StoreError, database, new_id
from pailot.store.server import postgres as postgresql
from tests.support.postgres import Postgres

WRITER = """
import sys
from pailot.store.server import JobRecord, ServerStore, new_id
store = ServerStore.open(sys.argv[1])
for number in range(100_000):
    record = JobRecord(new_id(), "ann", f"{sys.argv[2]}-{number}", submitted=1.0, tags=("t",))
    with store.batch():
        store.jobs.add(record, "text", "plan", b"secret")
        store.jobs.update(record.id, state="RUNNING")
    print(record.id, flush=True)
"""


def job(name: str) -> JobRecord:
    return JobRecord(new_id(), "ann", name, submitted=1.0)


def one_line(error: pytest.ExceptionInfo[StoreError]) -> str:
    assert "\n" not in str(error.value)
    return str(error.value)


def test_what_was_acknowledged_survives_a_kill(url: str) -> None:
    ServerStore.open(url).close()
    acknowledged: list[str] = []
    for round in range(3):
        process = subprocess.Popen([sys.executable, "-c", WRITER, url, str(round)], stdout=subprocess.PIPE, text=True)
        assert process.stdout
        acknowledged += [process.stdout.readline().strip() for _ in range(30)]
        process.send_signal(signal.SIGKILL)
        acknowledged += [line.strip() for line in process.stdout if line.endswith("\n")]
        process.wait()
        process.stdout.close()
    with ServerStore.open(url) as store:
        there = {record.id: record for record in store.jobs.unfinished()}
        assert set(acknowledged) <= set(there)
        assert {record.state for record in there.values()} == {"RUNNING"}, "never half a transaction"
        assert store.verify() == []
        assert all(store.jobs.secrets(id) == b"secret" for id in acknowledged[::10])


def test_one_change_that_fails_leaves_the_others_of_its_batch(url: str) -> None:
    with ServerStore.open(url) as store:
        first, second = job("first"), job("second")
        with store.batch():
            store.jobs.add(first, "", "")
            store.jobs.add(second, "", "")
            with pytest.raises(StoreError):
                store.jobs.update(first.id, state="RUNNING", vc=None)
            store.jobs.update(second.id, state="RUNNING")
        assert [each.state for each in store.jobs.unfinished()] == ["WAITING", "RUNNING"]


def test_a_locked_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.1)
    with ServerStore.open(str(tmp_path / "server.db")) as store:
        other = sqlite3.connect(tmp_path / "server.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match="other processes have kept it locked") as error:
            store.jobs.add(job("a"), "", "")
        one_line(error)
        assert store.jobs.count() == 0, "reading goes on"
        other.execute("ROLLBACK")
        other.close()
        store.jobs.add(job("a"), "", "")


def test_a_full_disk(tmp_path: Path) -> None:
    with ServerStore.open(str(tmp_path / "server.db")) as store:
        store.jobs.add(job("first"), "", "")
        store.database._execute("PRAGMA max_page_count = 60", ())
        with pytest.raises(StoreError, match="the disk is full") as error:
            fill(store)
        one_line(error)
        count = store.jobs.count()
        assert count >= 1
        with pytest.raises(StoreError, match="the disk is full"):
            fill_in_a_batch(store)
        assert store.jobs.count() == count, "a batch that failed left nothing"
        store.database._execute("PRAGMA max_page_count = 100000", ())
        store.jobs.add(job("afterwards"), "x" * 5000, "")
        assert store.verify() == []


def fill(store: ServerStore) -> None:
    for number in range(1000):
        store.jobs.add(job(f"job{number}"), "x" * 5000, "")


def fill_in_a_batch(store: ServerStore) -> None:
    with store.batch():
        for number in range(1000):
            try:
                store.jobs.add(job(f"batch{number}"), "x" * 5000, "")
            except StoreError:
                continue  # even if nobody looks, half a batch is not kept


def test_a_damaged_database(tmp_path: Path) -> None:
    path = tmp_path / "server.db"
    path.write_bytes(b"this is no database at all, but long enough to look like one" * 100)
    with pytest.raises(StoreError, match=r"server.db: the server's database is damaged") as error:
        ServerStore.open(str(path))
    one_line(error)


def test_damage_inside_is_found(tmp_path: Path) -> None:
    path = tmp_path / "server.db"
    with ServerStore.open(str(path)) as store:
        with store.batch():
            for number in range(500):
                store.jobs.add(job(f"job{number}"), "x" * 100, "")
        assert store.verify() == []
    data = bytearray(path.read_bytes())
    middle = len(data) // 2 // 4096 * 4096
    data[middle : middle + 4096] = os.urandom(4096)
    path.write_bytes(data)
    try:
        with ServerStore.open(str(path)) as store:
            found = store.verify()
    except StoreError as error:
        found = [str(error)]
    assert found
    assert all("\n" not in line for line in found)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(StoreError, match="read-only"):
        ServerStore.open(str(tmp_path / "server.db"))


def test_a_folder_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("")
    with pytest.raises(StoreError, match=r"home/server.db: cannot be opened: (Not a directory|File exists) \(.*home\)$"):
        ServerStore.open(str(tmp_path / "home" / "server.db"))


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("mysql://root:secret@host/x", r"^mysql: no such kind of database"),
        ("sqlite://server.db", "four slashes"),
        ("sqlite:///", "four slashes"),
        ("postgresql://user:secret@127.0.0.1:1/none?connect_timeout=2", "does not answer"),
        ("postgresql://?nonsense=1", "not understood"),
    ],
)
def test_places_that_are_none(where: str, said: str) -> None:
    with pytest.raises(StoreError, match=said) as error:
        ServerStore.open(where)
    assert "secret" not in one_line(error)


def test_the_file_is_the_owners_alone(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        ServerStore.open(f"sqlite:///{tmp_path}/home/server.db").close()
    finally:
        os.umask(old)
    assert os.stat(tmp_path / "home" / "server.db").st_mode & 0o777 == 0o600
    assert os.stat(tmp_path / "home").st_mode & 0o777 == 0o700


def test_one_server_at_a_time(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """From whatever home; whoever only looks may come at any time."""
    monkeypatch.setattr(postgresql, "CLAIM_SECONDS", 0.2)
    with ServerStore.open(url, alone=True) as first:
        with pytest.raises(StoreError, match="another server uses this database already") as error:
            ServerStore.open(url, alone=True)
        one_line(error)
        with ServerStore.open(url) as looker:
            assert looker.jobs.count() == 0
        first.jobs.add(job("first"), "", "")
    with ServerStore.open(url, alone=True) as second:
        assert second.jobs.count() == 1


def test_a_server_keeps_its_database_when_postgresql_is_started_anew(postgres: Postgres, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgresql, "CLAIM_SECONDS", 0.2)
    url = postgres.new_url()
    with ServerStore.open(url, alone=True) as first:
        postgres.stop()
        postgres.start()
        first.jobs.add(job("after"), "", "")
        with pytest.raises(StoreError, match="another server"):
            ServerStore.open(url, alone=True)
        postgres.stop()
        postgres.start()
        lost: list[str] = []
        first.database.on_lost = lost.append
        with ServerStore.open(url, alone=True) as second:  # was faster
            second.jobs.add(job("of-second"), "", "")
            with pytest.raises(StoreError, match="another server"):
                first.jobs.add(job("of-first"), "", "")
        assert len(lost) == 1
        with pytest.raises(StoreError, match="is closed"):  # its numbers would be those that the other one gave
            first.jobs.add(job("at-last"), "", "")


@pytest.mark.parametrize("gone", [True, False], ids=["and-went", "and-stays"])
def test_a_server_that_was_cut_off_writes_nothing_after_another_was_there(
    postgres: Postgres, monkeypatch: pytest.MonkeyPatch, gone: bool
) -> None:
    """The lock alone would be free again when the other one has gone; what the first remembers would be wrong all the same."""
    monkeypatch.setattr(postgresql, "CLAIM_SECONDS", 0.2)
    url = postgres.new_url()
    lost: list[str] = []
    first = ServerStore.open(url, alone=True)
    first.database.on_lost = lost.append
    first.hold()
    with ServerStore.open(url) as looker:
        looker.database.read("SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND granted")
    second = ServerStore.open(url, alone=True)
    second.jobs.add(job("of-second"), "", "")
    if gone:
        second.close()
    with pytest.raises(StoreError, match="taken this database over") as error:
        first.hold()
    one_line(error)
    assert lost == [str(error.value)]
    with pytest.raises(StoreError, match="is closed"):
        first.jobs.add(job("of-first"), "", "")
    second.close()
    with ServerStore.open(url) as looker:
        assert looker.jobs.count() == 1


def test_the_same_with_sqlite_whose_lock_was_lost(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/server.db"
    lost: list[str] = []
    first = ServerStore.open(url, alone=True)
    first.database.on_lost = lost.append
    first.hold()
    os.unlink(tmp_path / "server.db.lock")  # as another machine that does not see it
    with ServerStore.open(url, alone=True) as second:
        second.jobs.add(job("of-second"), "", "")
        with pytest.raises(StoreError, match="taken this database over"):
            first.jobs.add(job("of-first"), "", "")
        second.hold()
        assert second.jobs.count() == 1
    assert len(lost) == 1


def test_a_postgresql_that_is_started_anew(postgres: Postgres) -> None:
    url = postgres.new_url()
    with ServerStore.open(url) as store:
        store.jobs.add(job("before"), "", "")
        assert store.jobs.count() == 1
        postgres.stop()
        with pytest.raises(StoreError, match="does not answer") as error:
            store.jobs.add(job("meanwhile"), "", "")
        one_line(error)
        with pytest.raises(StoreError, match="does not answer"):
            store.jobs.count()
        postgres.start()
        store.jobs.add(job("after"), "", "")
        assert [record.name for record in store.jobs.unfinished()] == ["before", "after"]


def test_a_connection_that_breaks_inside_a_batch(postgres: Postgres) -> None:
    with ServerStore.open(postgres.new_url()) as store, ServerStore.open(postgres.new_url()) as other:
        store.jobs.add(job("first"), "", "")

        def broken() -> None:
            with store.batch():
                store.jobs.add(job("a"), "", "")
                (pid,) = store.database._execute("SELECT pg_backend_pid()", ())[0][0]
                other.database.read("SELECT pg_terminate_backend(?)", (pid,))
                try:
                    store.jobs.add(job("b"), "", "")
                except StoreError:
                    pass  # a caller that goes on must not think that the rest is kept
                store.jobs.add(job("c"), "", "")

        with pytest.raises(StoreError, match="does not answer"):
            broken()
        assert [record.name for record in store.jobs.unfinished()] == ["first"]
        store.jobs.add(job("d"), "", "")


def test_many_threads_come_and_go(store: ServerStore) -> None:
    """What they read through is used again."""

    def count() -> None:
        store.jobs.count()

    opened = len(os.listdir("/proc/self/fd"))
    for _ in range(40):
        thread = threading.Thread(target=count)
        thread.start()
        thread.join()
    assert len(os.listdir("/proc/self/fd")) < opened + 10


def test_a_crowd_of_readers_leaves_few_connections(store: ServerStore) -> None:
    """A connection costs some MB; after many were needed at once, those beyond a few are closed."""
    readers = [store.database.stream("SELECT ?", (str(number),)) for number in range(20)]
    assert [next(reader) for reader in readers] == [[(str(number),)] for number in range(20)]
    assert [list(reader) for reader in readers] == [[]] * 20
    assert len(vars(store.database)["_free"]) == database.IDLE_CONNECTIONS
    assert store.jobs.count() == 0
