"""What else the server remembers: events, messages to be delivered, folders of code, and a few words about itself."""

from __future__ import annotations

import json

from .models import CodeBlob, NoSuchRecord, Notice

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from .database import Database

NOTICE_COLUMNS = ", ".join(Notice._fields)
PAYLOAD = Notice._fields.index("payload")
BLOB_COLUMNS = ", ".join(CodeBlob._fields)


class Events:
    """`store.events`: what happened to a job and is not in the journal of its folder."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, job: str, event: Mapping[str, Any]) -> int:
        """Keep an event; its place in the row of events of that job, from 1. NoSuchRecord without the job."""
        with self._database.write() as batch:
            rows, _ = batch.execute(
                "INSERT INTO job_events (number, sequence, data)"
                " SELECT jobs.number, coalesce((SELECT max(sequence) FROM job_events e WHERE e.number = jobs.number), 0) + 1, ?"
                " FROM jobs WHERE id = ? RETURNING sequence",
                (json.dumps(event), job),
            )
            if not rows:
                raise NoSuchRecord(f"there is no job {job}")
        return int(rows[0][0])

    def of(self, job: str, after: int = 0) -> list[tuple[int, dict[str, object]]]:
        """The events of a job behind a place, in their order, each with its place."""
        rows = self._database.read(
            "SELECT sequence, data FROM job_events JOIN jobs USING (number) WHERE id = ? AND sequence > ? ORDER BY sequence",
            (job, after),
        )
        return [(sequence, json.loads(data)) for sequence, data in rows]


class Outbox:
    """`store.outbox`: messages that are delivered at least once, in spite of crashes."""

    def __init__(self, database: Database) -> None:
        self._database = database
        row = database.one("SELECT max(number) FROM outbox")
        self._last = (row and row[0]) or 0

    def add(self, job: str, kind: str, payload: Mapping[str, Any], now: float, due: float | None = None) -> int:
        """A message about a job (its id), to be delivered at once or at `due`."""
        with self._database.write() as batch:
            self._last += 1
            number = self._last
            batch.execute(
                f"INSERT INTO outbox ({NOTICE_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, 0, '')",  # noqa: S608  # our own names
                (number, job, kind, json.dumps(payload), now, now if due is None else due),
            )
        return number

    def due(self, now: float, kind: str | None = None, limit: int = 100) -> list[Notice]:
        """What is to be delivered now (in one way), the longest waiting first."""
        only, values = _of_kind(kind)
        rows = self._database.read(
            f"SELECT {NOTICE_COLUMNS} FROM outbox WHERE due <= ?{only} ORDER BY due, number LIMIT ?",  # noqa: S608
            (now, *values, limit),
        )
        return [Notice(*(json.loads(value) if place == PAYLOAD else value for place, value in enumerate(row))) for row in rows]

    def next_due(self, kind: str | None = None) -> float | None:
        """When the next message (of a kind) is to be delivered; None if there is none."""
        only, values = _of_kind(kind)
        row = self._database.one(f"SELECT min(due) FROM outbox WHERE due IS NOT NULL{only}", values)  # noqa: S608
        return row[0] if row else None

    def failing(self, limit: int = 100) -> list[Notice]:
        """What was tried and could not be delivered, the oldest first."""
        rows = self._database.read(
            f"SELECT {NOTICE_COLUMNS} FROM outbox WHERE attempts > 0 ORDER BY number LIMIT ?",  # noqa: S608
            (limit,),
        )
        return [Notice(*(json.loads(value) if place == PAYLOAD else value for place, value in enumerate(row))) for row in rows]

    def done(self, number: int) -> None:
        """It was delivered, or is given up."""
        with self._database.write() as batch:
            batch.execute("DELETE FROM outbox WHERE number = ?", (number,))

    def failed(self, number: int, error: str, due: float) -> None:
        """It is tried again at `due`."""
        with self._database.write() as batch:
            batch.execute("UPDATE outbox SET attempts = attempts + 1, error = ?, due = ? WHERE number = ?", (error, due, number))

    def give_up(self, before: float) -> int:
        """Drop what could not be delivered since a moment; how many."""
        with self._database.write() as batch:
            return batch.execute("DELETE FROM outbox WHERE created < ? AND attempts > 0", (before,))[1]


def _of_kind(kind: str | None) -> tuple[str, tuple[str, ...]]:
    return ("", ()) if kind is None else (" AND kind = ?", (kind,))


class Code:
    """`store.code`: which folders of code there are, by their SHA-256."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, digest: str, size: int, now: float) -> None:
        """It has come; a second time counts as a use."""
        with self._database.write() as batch:
            batch.execute(
                "INSERT INTO code_blobs (digest, size, created, used) VALUES (?, ?, ?, ?)"
                " ON CONFLICT (digest) DO UPDATE SET used = excluded.used",
                (digest, size, now, now),
            )

    def get(self, digest: str) -> CodeBlob | None:
        row = self._database.one(f"SELECT {BLOB_COLUMNS} FROM code_blobs WHERE digest = ?", (digest,))  # noqa: S608
        return CodeBlob(*row) if row else None

    def used(self, digest: str, now: float) -> bool:
        """It is used now; False if it is not there."""
        with self._database.write() as batch:
            return batch.execute("UPDATE code_blobs SET used = ? WHERE digest = ?", (now, digest))[1] > 0

    def digests(self) -> list[str]:
        """Of all that there are."""
        return [row[0] for row in self._database.read("SELECT digest FROM code_blobs ORDER BY digest")]

    def unused(self, before: float, limit: int = 100) -> list[CodeBlob]:
        """Not used since a moment, and no job that is still kept has it."""
        rows = self._database.read(
            f"SELECT {BLOB_COLUMNS} FROM code_blobs WHERE used < ?"  # noqa: S608
            " AND NOT EXISTS (SELECT 1 FROM jobs WHERE jobs.code = code_blobs.digest) ORDER BY used LIMIT ?",
            (before, limit),
        )
        return [CodeBlob(*row) for row in rows]

    def remove(self, digest: str) -> bool:
        with self._database.write() as batch:
            return batch.execute("DELETE FROM code_blobs WHERE digest = ?", (digest,))[1] > 0

    def remove_unused(self, digest: str, before: float) -> bool:
        """The same, unless it was used since that moment or a job has come that has it."""
        with self._database.write() as batch:
            sql = (
                "DELETE FROM code_blobs WHERE digest = ? AND used < ?"
                " AND NOT EXISTS (SELECT 1 FROM jobs WHERE jobs.code = code_blobs.digest)"
            )
            return batch.execute(sql, (digest, before))[1] > 0

    def all(self) -> list[CodeBlob]:
        """Every one of them, by digest."""
        return [CodeBlob(*row) for row in sorted(self._database.read(f"SELECT {BLOB_COLUMNS} FROM code_blobs"))]  # noqa: S608


class Meta:
    """`store.meta`: a few texts about the server itself."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, name: str) -> str | None:
        row = self._database.one("SELECT value FROM meta WHERE name = ?", (name,))
        return row[0] if row else None

    def set(self, name: str, value: str) -> None:
        with self._database.write() as batch:
            batch.execute(
                "INSERT INTO meta (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
                (name, value),
            )

    def first(self, name: str, value: str) -> str:
        """The text kept under this name; this one if there was none."""
        with self._database.write() as batch:
            batch.execute("INSERT INTO meta (name, value) VALUES (?, ?) ON CONFLICT (name) DO NOTHING", (name, value))
            return str(batch.execute("SELECT value FROM meta WHERE name = ?", (name,))[0][0][0])
