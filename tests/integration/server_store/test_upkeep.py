"""Old things go, keys change, and a check finds what does not fit together; on both databases."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from pailot.jobserver.housekeeping import Housekeeping
from pailot.jobserver.maintenance import DAY, Removed, check, collect, rotate_keys
from pailot.settings import Settings
from pailot.store import SecretBox
from pailot.store.server import JobQuery, JobRecord, ServerStore, StoreError, Token, User, listing, new_id
from pailot.store.server.integrity import check_key

NOW = 1_700_000_000.0


def add(store: ServerStore, home: Path, name: str, *, days: float | None = None, **fields: object) -> JobRecord:
    folder = home / "jobs" / name
    folder.mkdir(parents=True)
    (folder / "journal").write_text("x")
    ended = None if days is None else NOW - days * DAY
    record = JobRecord(
        new_id(),
        "ann",
        name,
        submitted=1.0,
        state="RUNNING" if days is None else "FAILED",
        started=1.0,
        ended=ended,
        folder=str(folder),
    ).replace(**fields)
    store.jobs.add(record, "", "")
    return record


def test_old_jobs_go_with_their_folders(store: ServerStore, tmp_path: Path) -> None:
    add(store, tmp_path, "old", days=31)
    add(store, tmp_path, "young", days=29)
    add(store, tmp_path, "running")
    assert collect(store, str(tmp_path), NOW, keep_days=0) == Removed()
    assert collect(store, str(tmp_path), NOW, keep_days=30, keep_last=3) == Removed()
    assert collect(store, str(tmp_path), NOW, keep_days=30, keep_last=2) == Removed(jobs=1)
    assert sorted(os.listdir(tmp_path / "jobs")) == ["running", "young"]
    assert store.jobs.count() == 2
    assert collect(store, str(tmp_path), NOW, keep_days=30) == Removed()


def test_more_than_are_removed_at_once(store: ServerStore, tmp_path: Path) -> None:
    with store.batch():
        for number in range(450):
            record = JobRecord(new_id(), "ann", f"job{number}", submitted=1.0, state="FAILED", ended=1.0)
            store.jobs.add(record, "", "")
    assert collect(store, str(tmp_path), NOW, keep_days=1).jobs == 450


def test_what_is_removed_makes_room(store: ServerStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that gets the same number of jobs every day comes to a size, on disk and in memory, and keeps it."""
    monkeypatch.setattr(listing, "DEAD_KEPT", 20)
    settings = Settings({"PAILOT_HOME": str(tmp_path), "PAILOT_KEEP_DAYS": "2.5"})
    housekeeping = Housekeeping(settings, store)
    sizes, slots = [], []
    for day in range(12):
        now = NOW + day * DAY
        monkeypatch.setattr(time, "time", lambda now=now: now)
        with store.batch():
            for number in range(60):
                folder = tmp_path / "jobs" / f"{day}-{number}"
                folder.mkdir(parents=True)
                job = JobRecord(
                    new_id(),
                    f"user{day}",
                    f"job{number}",
                    submitted=now,
                    state="SUCCEEDED",
                    ended=now,
                    folder=str(folder),
                    tags=("all", f"day{day}"),
                    labels={"team": "one"},
                )
                store.jobs.add(job, "config " * 200, "plan " * 400, b"sealed" * 20)
                store.events.add(job.id, {"event": "noted"})
        housekeeping.work()
        if store.database.kind == "sqlite":
            sizes += [row[0] for row in store.database.read("PRAGMA page_count")]
        columns = store.jobs._listing._columns
        assert columns is not None
        slots.append(len(columns.numbers))
    assert store.jobs.count() == 3 * 60  # of today and the two days before
    assert len(os.listdir(tmp_path / "jobs")) == 3 * 60
    for table, each in (("job_texts", 1), ("job_events", 1), ("job_marks", 3)):
        assert store.database.one(f"SELECT count(*) FROM {table}") == (3 * 60 * each,)
    assert max(slots) <= 4 * 60
    assert max(sizes, default=0) <= 1.2 * max(sizes[:4], default=0)
    assert store.jobs.list(JobQuery(keyword="user0", want_total=True)).total == 0
    assert store.jobs.list(JobQuery(tags_contain=("all",), want_total=True)).total == 3 * 60


def test_a_folder_elsewhere_stays(store: ServerStore, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / "link").symlink_to(precious)
    for number, folder in enumerate(("", str(precious), str(tmp_path / "jobs"), "/", str(tmp_path / "jobs" / "link"))):
        record = JobRecord(new_id(), "ann", f"job{number}", submitted=1.0, state="FAILED", ended=1.0, folder=folder)
        store.jobs.add(record, "", "")
    assert collect(store, str(tmp_path), NOW, keep_days=1).jobs == 5
    assert precious.is_dir()
    assert (tmp_path / "jobs").is_dir()


def test_code_tokens_and_messages(store: ServerStore, tmp_path: Path) -> None:
    for digest in ("a" * 64, "b" * 64):
        (tmp_path / "code" / digest / "tree").mkdir(parents=True)
        store.code.add(digest, 1, now=NOW - 8 * DAY)
    add(store, tmp_path, "job", days=1, code="a" * 64)
    store.accounts.add_user(User("ann"))
    store.accounts.add_token(Token("1", "ann", "browser", 1.0, NOW - 1))
    store.accounts.add_token(Token("2", "ann", "browser", 1.0, NOW + 1))
    store.accounts.add_token(Token("3", "ann", "application", 1.0))
    store.accounts.note_failure("name:ann", NOW - 2 * DAY)
    store.outbox.failed(store.outbox.add("job", "mail", {}, now=1.0), "refused", due=2.0)
    store.outbox.add("job", "mail", {}, now=1.0)
    assert collect(store, str(tmp_path), NOW, keep_days=30) == Removed(code=1, tokens=1, messages=1)
    assert os.listdir(tmp_path / "code") == ["a" * 64]
    assert [token.digest for token in store.accounts.tokens("ann")] == ["2", "3"]
    assert store.accounts.failures("name:ann").count == 0


def test_keys_are_changed(store: ServerStore, tmp_path: Path) -> None:
    box = SecretBox(str(tmp_path))
    jobs = {}
    for number in range(3):
        id = new_id()
        jobs[id] = {"token": f"secret-{number}"}
        sealed = box.seal(id, jobs[id]) if number else None
        store.jobs.add(JobRecord(id, "ann", f"job{number}", submitted=1.0), "", "", sealed)
    first = Path(box.file).read_bytes()
    assert rotate_keys(store, str(tmp_path)) == 2
    assert Path(box.file).read_bytes().endswith(first)
    assert len(Path(box.file).read_bytes().split()) == 2
    assert rotate_keys(store, str(tmp_path), forget=True) == 2
    assert len(Path(box.file).read_bytes().split()) == 1
    assert first.strip() not in Path(box.file).read_bytes()
    for id, secrets in list(jobs.items())[1:]:
        assert box.open(id, store.jobs.secrets(id) or b"") == secrets
    assert check(store, str(tmp_path)) == []


def test_runs_without_a_server_get_the_new_key_too(store: ServerStore, tmp_path: Path) -> None:
    box = SecretBox(str(tmp_path))
    folder = tmp_path / "jobs" / "abc"
    folder.mkdir(parents=True)
    (folder / "job.json").write_text('{"format": 1, "id": "abc", "name": "x", "user": "ann"}')
    (folder / "secrets.sealed").write_bytes(box.seal("abc", {"a": "b"}))
    rotate_keys(store, str(tmp_path), forget=True)
    assert box.open("abc", (folder / "secrets.sealed").read_bytes()) == {"a": "b"}
    assert (folder / "secrets.sealed").stat().st_mode & 0o777 == 0o600
    assert not list(folder.glob("*.tmp"))


def test_a_wrong_key_is_one_clear_line(store: ServerStore, tmp_path: Path) -> None:
    assert check(store, str(tmp_path / "one")) == []
    check_key(store, SecretBox(str(tmp_path / "one")))
    (tmp_path / "one").chmod(0o700)
    assert check(store, str(tmp_path / "one")) == []
    (tmp_path / "two").mkdir(0o700)
    SecretBox(str(tmp_path / "two")).seal("x", {})
    (line,) = check(store, str(tmp_path / "two"))
    assert line.endswith("secret.key: this is not the key that the secrets of this server are sealed with; put that one back")
    with pytest.raises(StoreError, match="put that one back"):
        rotate_keys(store, str(tmp_path / "two"))
    os.unlink(tmp_path / "two" / "keys" / "secret.key")
    (line,) = check(store, str(tmp_path / "two"))
    assert "the key is gone" in line


def test_a_check_finds_what_does_not_fit(store: ServerStore, tmp_path: Path) -> None:
    fine = add(store, tmp_path, "fine", tags=("a",), labels={"k": "v"})
    assert check(store, str(tmp_path)) == []
    gone = add(store, tmp_path, "gone")
    os.unlink(tmp_path / "jobs" / "gone" / "journal")
    os.rmdir(tmp_path / "jobs" / "gone")
    endless = add(store, tmp_path, "endless", state="FAILED", days=None)
    store.accounts.add_user(User("ann", grouplist=("nowhere",)))
    store.database.read("SELECT 1")
    with store.batch() as batch:
        batch.execute("DELETE FROM job_marks WHERE mark = ?", ("t:a",))
        batch.execute("UPDATE jobs SET more = ? WHERE id = ?", ("{broken", endless.id))
    box = SecretBox(str(tmp_path))
    other = add(store, tmp_path, "other")
    with store.batch() as batch:
        number = batch.execute("SELECT number FROM jobs WHERE id = ?", (other.id,))[0][0][0]
        batch.execute("UPDATE job_texts SET secrets = ? WHERE number = ?", (box.seal("another", {}), number))
    found = check(store, str(tmp_path))
    for part in (
        f"job {fine.id}: its tags and labels are not those that it is found by",
        f"job {gone.id}: its folder {gone.folder} is gone",
        f"job {endless.id}: is FAILED but has no time of its end",
        f"more of {endless.id} in jobs cannot be read",
        "user ann: is in group nowhere, which is not there",
        f"the secrets of job {other.id} cannot be opened: they belong to another job",
    ):
        assert part in found
    assert len(found) == 6


def test_keys_of_users_and_storages_are_sealed(store: ServerStore, tmp_path: Path) -> None:
    kept = store.accounts
    before = {"type": "azureFile", "data": {"accountKey": "key-in-clear"}}
    kept.put_storage("old", before)  # as servers did that sealed nothing
    kept.add_user(User("old", extension={"githubPAT": "pat-in-clear"}))
    box = SecretBox(str(tmp_path))
    check_key(store, box)
    kept.seal_with(box)
    kept.put_storage("new", {"data": {"password": "word-in-clear"}})
    kept.add_user(User("new", extension={"sshKeys": ["ssh-in-clear"]}))
    kept.update_user("new", extension={"sshKeys": ["later-in-clear"]})
    rows = [*store.database.read("SELECT extension FROM users"), *store.database.read("SELECT data FROM storages")]
    assert len(rows) == 4
    assert "in-clear" not in str(rows)
    assert check(store, str(tmp_path)) == []
    assert rotate_keys(store, str(tmp_path), forget=True) == 4
    assert {user.username: user.extension for user in kept.users()} == {
        "old": {"githubPAT": "pat-in-clear"},
        "new": {"sshKeys": ["later-in-clear"]},
    }
    assert kept.storages() == {"old": before, "new": {"data": {"password": "word-in-clear"}}}
    with store.batch() as batch:
        batch.execute("UPDATE storages SET data = 'gAAAdamaged' WHERE name = ?", ("old",))
    (line,) = check(store, str(tmp_path))
    assert line.startswith("what is kept of old in storages cannot be opened: damaged")
