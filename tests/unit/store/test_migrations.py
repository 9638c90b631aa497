"""Every form the index ever had can be brought to the newest one."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from pailot.store import Index, JobRow, StoreError
from pailot.store.migrations import MIGRATIONS, migrate

# The first form as it was released, with a row; this text is never changed.
FORM_1 = """
CREATE TABLE jobs (
    id TEXT NOT NULL PRIMARY KEY, name TEXT NOT NULL, user TEXT NOT NULL, state TEXT NOT NULL, engine TEXT NOT NULL,
    folder TEXT NOT NULL, submitted REAL NOT NULL, started REAL, ended REAL, tasks INTEGER NOT NULL, retries INTEGER NOT NULL,
    exit_code INTEGER, reason TEXT NOT NULL, vc TEXT NOT NULL, labels TEXT, tags TEXT
) WITHOUT ROWID;
CREATE INDEX jobs_by_name ON jobs (name, user, id);
CREATE INDEX jobs_by_user ON jobs (user, state, id);
CREATE INDEX jobs_by_state ON jobs (state, id);
CREATE INDEX jobs_unfinished ON jobs (name, user, id) WHERE state NOT IN ('STOPPED', 'SUCCEEDED', 'FAILED');
INSERT INTO jobs VALUES
    ('1', 'train', 'ann', 'RUNNING', 'local', '/jobs/1', 1.0, 2.0, NULL, 4, 0, NULL, '', 'default', '{"a": "b"}', '["t"]');
PRAGMA user_version = 1;
"""
RELEASED = {0: "", 1: FORM_1}
ADDS = ("ALTER TABLE jobs ADD COLUMN colour TEXT", "UPDATE jobs SET colour = 'red'")


@pytest.fixture
def file(tmp_path: Path) -> str:
    return str(tmp_path / "index.db")


@pytest.fixture
def connection(file: str) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(file, isolation_level=None)) as opened:
        yield opened


def version(connection: sqlite3.Connection) -> int:
    number: int = connection.execute("PRAGMA user_version").fetchone()[0]
    return number


def shape(connection: sqlite3.Connection) -> dict[str, str]:
    found = connection.execute("SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL")
    return {name: " ".join(sql.replace("(", " ( ").replace(")", " ) ").split()) for name, sql in found}


@pytest.mark.parametrize("old", RELEASED)
def test_every_released_form_is_upgraded(file: str, connection: sqlite3.Connection, old: int) -> None:
    connection.executescript(RELEASED[old])
    migrate(connection, file)
    assert version(connection) == len(MIGRATIONS)
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as new:
        migrate(new, ":memory:")
        assert shape(connection) == shape(new)
    with Index(file) as index:
        if old:
            ran = JobRow(
                "1",
                "train",
                "ann",
                "RUNNING",
                "local",
                "/jobs/1",
                1.0,
                2.0,
                None,
                4,
                vc="default",
                labels={"a": "b"},
                tags=("t",),
            )
            assert index.unfinished() == [ran]
        index.add(JobRow("2", "train", "ann", "FAILED", "local", "/jobs/2", 3.0))
        assert index.count() == (2 if old else 1)


def test_a_later_step_keeps_what_is_there(file: str, connection: sqlite3.Connection) -> None:
    connection.executescript(FORM_1)
    migrate(connection, file, (*MIGRATIONS[:1], ADDS, ("CREATE INDEX more ON jobs (colour)",)))
    assert version(connection) == 3
    assert connection.execute("SELECT id, colour FROM jobs").fetchall() == [("1", "red")]


def test_a_step_that_fails_changes_nothing(file: str, connection: sqlite3.Connection) -> None:
    connection.executescript(FORM_1)
    before = shape(connection)
    with pytest.raises(sqlite3.OperationalError, match="no such table"):
        migrate(connection, file, (*MIGRATIONS[:1], (*ADDS, "UPDATE absent SET x = 1")))
    assert version(connection) == 1
    assert shape(connection) == before
    assert not connection.in_transaction


def test_a_newer_file_is_refused_in_one_line(file: str, connection: sqlite3.Connection) -> None:
    connection.executescript(FORM_1 + "PRAGMA user_version = 99;")
    with Index(file) as index:
        for question in (index.page, index.count):
            with pytest.raises(StoreError) as refused:
                question()
            assert str(refused.value) == (
                f"{file}: written by a newer Pailot (form 99, this one knows {len(MIGRATIONS)}); upgrade Pailot to use it"
            )
    assert version(connection) == 99


def test_there_is_a_fixture_for_every_form() -> None:
    assert set(RELEASED) == set(range(len(MIGRATIONS) + 1))
