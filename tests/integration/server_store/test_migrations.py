"""Every form that was ever released is brought to the newest one, with everything that was in it."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from pailot.store.server import JobQuery, ServerStore, StoreError, User, _connect
from pailot.store.server.database import Database, SQLite
from pailot.store.server.migrations import MIGRATIONS, check_form, migrate

FORMS = sorted(Path(__file__).parent.joinpath("forms").glob("*.sql"), key=lambda path: int(path.stem))


def make(url: str, form: Path) -> None:
    """A database as that form had it."""
    database = _connect(url)
    lines = [line for line in form.read_text().splitlines() if not line.startswith("--")]
    with database.write() as batch:
        for statement in "\n".join(lines).split(";\n"):
            if statement.strip():
                batch.execute(in_words_of(database, statement))
        database.set_version(int(form.stem))
    database.close()


def in_words_of(database: Database, statement: str) -> str:
    if database.kind == "sqlite":
        return database.words(statement).replace("HEX(", "x").replace("10')", "10'")
    return database.words(statement).replace("HEX('00ff10'", "decode('00ff10', 'hex'")


def test_each_form_is_kept() -> None:
    assert [int(form.stem) for form in FORMS] == list(range(1, len(MIGRATIONS) + 1))


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.stem)
def test_from_every_earlier_form(url: str, form: Path) -> None:
    make(url, form)
    for _ in range(2):
        with ServerStore.open(url) as store:
            assert store.database.version() == len(MIGRATIONS)
            assert store.verify() == []
            page = store.jobs.list(JobQuery(order="jobName", descending=False, want_total=True))
            assert [(job.user, job.name) for job in page.rows] == [("ann", "train"), ("bob", "train"), ("ann", "zoë")]
            first = store.jobs.by_name("ann", "train")
            assert first == page.rows[0]
            assert (first.tags, first.labels, first.more) == (("red", "日"), {"team": "vision"}, {"x": [1]})
            assert (first.submitted, first.cpus, first.code) == (1700000000.125, 4.5, "ab")
            assert store.jobs.secrets(first.id) == b"\x00\xff\x10"
            assert store.jobs.list(JobQuery(tags_contain=("日",), labels={"team": "vision"})).rows == (first,)
            assert [job.name for job in store.jobs.unfinished()] == ["train"]
            assert store.events.of(first.id) == [(1, {"event": "preempted"})]
            assert store.accounts.user("ann") == User("ann", "a@b.c", "$argon2id$x", ("default",), {"k": 1}, None, 1.5)
            assert [token.claims for token in store.accounts.tokens("ann")] == [{"username": "ann"}]
            assert store.accounts.failures("name:ann").count == 3
            assert store.accounts.clusters() == {"research": {"gpus": 2}}
            assert store.outbox.due(9.0)[0].payload == {"to": "x"}
            assert store.meta.get("id") == "abc"
            assert store.code.get("ab")


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.stem)
def test_a_released_form_is_never_changed(tmp_path: Path, form: Path) -> None:
    make(f"sqlite:///{tmp_path}/kept.db", form)
    fresh = SQLite(str(tmp_path / "fresh.db"))
    migrate(fresh, MIGRATIONS[: int(form.stem)])
    kept = SQLite(str(tmp_path / "kept.db"))
    sql = "SELECT type, name, sql FROM sqlite_master ORDER BY type, name"

    def shape(database: SQLite) -> list[tuple[str, str, str]]:
        return [(kind, name, " ".join((text or "").split())) for kind, name, text in database.read(sql)]

    assert shape(fresh) == shape(kept)
    fresh.close()
    kept.close()


def test_a_step_happens_wholly_or_not_at_all(url: str) -> None:
    ServerStore.open(url).close()
    database = _connect(url)
    steps = (*MIGRATIONS, ("CREATE TABLE one (a TEXT)", "THIS IS NO SQL"))
    with pytest.raises(StoreError):
        migrate(database, steps)
    assert database.version() == len(MIGRATIONS)
    good = (*MIGRATIONS, ("CREATE TABLE one (a TEXT)", "ALTER TABLE one ADD COLUMN b NUMBER"))
    migrate(database, [*good[:-1], ("CREATE TABLE one (a TEXT)", "ALTER TABLE one ADD COLUMN b BIGINT")])
    assert database.version() == len(MIGRATIONS) + 1
    assert database.read("SELECT a, b FROM one") == []
    database.close()
    with pytest.raises(StoreError, match="written by a newer Pailot"):
        ServerStore.open(url)


def test_the_file_is_copied_before(tmp_path: Path) -> None:
    path = tmp_path / "server.db"
    with ServerStore.open(str(path)) as store:
        store.meta.set("id", "before")
    assert not list(tmp_path.glob("*.form*"))
    database = SQLite(str(path))
    migrate(database, (*MIGRATIONS, ("UPDATE meta SET value = 'after'",)))
    assert database.read("SELECT value FROM meta") == [("after",)]
    database.close()
    copy = tmp_path / f"server.db.form{len(MIGRATIONS)}"
    assert copy.stat().st_mode & 0o777 == 0o600
    connection = sqlite3.connect(copy)
    assert connection.execute("SELECT value FROM meta").fetchall() == [("before",)]
    connection.close()


def test_who_only_looks_changes_no_form(url: str) -> None:
    database = _connect(url)
    with pytest.raises(StoreError, match="holds nothing of a server"):
        check_form(database)
    migrate(database)
    check_form(database)
    with pytest.raises(StoreError, match=f"has the older form {len(MIGRATIONS)}"):
        check_form(database, (*MIGRATIONS, ("UPDATE meta SET value = 'after'",)))
    assert database.version() == len(MIGRATIONS)
    database.close()
