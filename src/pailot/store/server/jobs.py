"""The jobs of the server: durable when `add` returns, found by id, by name, or as a page of a list."""

from __future__ import annotations

import json

from ...lifecycle.states import JOB_STATES
from .database import Duplicate
from .listing import LISTED, Listing
from .models import (
    EXECUTION_TYPES,
    PRIORITIES,
    BadValue,
    JobPage,
    JobQuery,
    JobRecord,
    NameTaken,
    NoSuchRecord,
    label_mark,
    tag_mark,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from .database import Batch, Database, Row

FIELDS = JobRecord._fields
JSON_FIELDS = ("tags", "labels", "more")
FIXED = frozenset(("id", "user", "name", "submitted", "tags", "labels", "code"))
COLUMNS = ", ".join("username" if name == "user" else name for name in FIELDS)
SELECT = f"SELECT {COLUMNS} FROM jobs"  # noqa: S608  # our own names
INSERT = f"INSERT INTO jobs (number, {COLUMNS}) VALUES (?, {', '.join('?' * len(FIELDS))})"  # noqa: S608
TOGETHER = 500
UNFINISHED = "state NOT IN ('STOPPED', 'SUCCEEDED', 'FAILED')"  # as the partial index says it, word for word


class Jobs:
    """`store.jobs`."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._listing = Listing(database)
        row = database.one("SELECT max(number) FROM jobs")
        self._last = (row and row[0]) or 0

    # Writing

    def add(self, record: JobRecord, config: str, plan: str, secrets: bytes | None = None) -> None:
        """Keep a new job: the text of its file, its plan as JSON, its sealed secrets. NameTaken if the user has one so named."""
        values, marks = _to_sql(record), _marks(record)
        with self._database.write() as batch:
            number = self._next_number()
            try:
                batch.execute(INSERT, (number, *values))
            except Duplicate:
                raise NameTaken(f"job {record.user}~{record.name} is there already") from None
            batch.execute(
                "INSERT INTO job_texts (number, config, plan, secrets) VALUES (?, ?, ?, ?)", (number, config, plan, secrets)
            )
            batch.execute_many("INSERT INTO job_marks (mark, number) VALUES (?, ?)", [(mark, number) for mark in marks])
            batch.when_kept(lambda: self._listing.apply(lambda columns: columns.add(number, record, marks)))

    def update(self, id: str, **changes: Any) -> bool:
        """Change some columns of a job; False if there is none."""
        return self.update_many([(id, changes)]) == 1

    def update_many(self, changes: Sequence[tuple[str, Mapping[str, Any]]]) -> int:
        """Several jobs in one transaction; how many of them there are."""
        statements = [(*_update(id, columns), columns) for id, columns in changes]
        found = 0
        with self._database.write(one_statement=len(statements) == 1) as batch:
            for sql, values, columns in statements:
                rows, _ = batch.execute(sql, values)
                for (number,) in rows:
                    found += 1
                    if not LISTED.isdisjoint(columns):
                        self._changed(batch, number, columns)
        return found

    def remove(self, id: str) -> bool:
        """Forget a job with all that belongs to it; its folder is the caller's."""
        with self._database.write() as batch:
            rows, _ = batch.execute("DELETE FROM jobs WHERE id = ? RETURNING number", (id,))
            if not rows:
                return False
            number = rows[0][0]
            batch.when_kept(lambda: self._listing.apply(lambda columns: columns.remove(number)))
        return True

    def tag_add(self, id: str, tag: str) -> bool:
        """False if the job has it already; NoSuchRecord without the job."""
        return self._tag(id, tag, wanted=True)

    def tag_remove(self, id: str, tag: str) -> bool:
        """False if the job has no such tag; NoSuchRecord without the job."""
        return self._tag(id, tag, wanted=False)

    # Finding

    def get(self, id: str) -> JobRecord | None:
        return self._one("id = ?", (id,))

    def by_name(self, user: str, name: str) -> JobRecord | None:
        return self._one("username = ? AND name = ?", (user, name))

    def config(self, id: str) -> str | None:
        """The text of the job file as it was sent, secrets taken out by the caller."""
        found: str | None = self._text("config", id)
        return found

    def plan(self, id: str) -> str | None:
        found: str | None = self._text("plan", id)
        return found

    def secrets(self, id: str) -> bytes | None:
        """The sealed secrets; None if the job has none."""
        found: bytes | None = self._text("secrets", id)
        return found

    def unfinished(self) -> list[JobRecord]:
        """Every job that has not ended, in the order of submission."""
        return [_from_sql(row) for row in self._database.read(f"{SELECT} WHERE {UNFINISHED} ORDER BY number")]

    def count(self) -> int:
        row = self._database.one("SELECT count(*) FROM jobs")
        return row[0] if row else 0

    def newest(self, name: str) -> JobRecord | None:
        """The latest job of this name, whosever it is."""
        row = self._database.one(f"{SELECT} WHERE name = ? ORDER BY number DESC LIMIT 1", (name,))
        return _from_sql(row) if row else None

    def ended_before(self, moment: float, limit: int = 1000, *, keep_last: int = 0) -> list[JobRecord]:
        """Jobs that ended before a moment, the oldest first, without the `keep_last` latest of all jobs."""
        rows = self._database.read("SELECT number FROM jobs ORDER BY number DESC LIMIT 1 OFFSET ?", (keep_last,))
        last = rows[0][0] if rows else 0
        sql = f"{SELECT} WHERE ended < ? AND number <= ? AND NOT ({UNFINISHED}) ORDER BY ended LIMIT ?"
        return [_from_sql(row) for row in self._database.read(sql, (moment, last, limit))]

    def list(self, query: JobQuery) -> JobPage:
        """A page of the jobs that a query finds: quick once `warm` was called, from the database until then."""
        found = self._listing.find(query)
        rows: dict[int, JobRecord] = {}
        for start in range(0, len(found.numbers), TOGETHER):
            some = found.numbers[start : start + TOGETHER]
            sql = f"SELECT number, {COLUMNS} FROM jobs WHERE number IN ({', '.join('?' * len(some))})"  # noqa: S608
            rows.update((row[0], _from_sql(row[1:])) for row in self._database.read(sql, some))
        numbers = tuple(number for number in found.numbers if number in rows)
        return JobPage(tuple(rows[number] for number in numbers), found.total if query.want_total else None, numbers)

    def warm(self) -> None:
        """Read into memory what lists need, or anew where many jobs are gone; for a thread of a server, now and then."""
        self._listing.warm()

    # Parts

    def _changed(self, batch: Batch, number: int, columns: Mapping[str, Any]) -> None:
        batch.when_kept(lambda: self._listing.apply(lambda listed: listed.change(number, columns)))

    def _next_number(self) -> int:
        self._last += 1  # a number is never used twice; a gap does no harm
        return self._last

    def _one(self, condition: str, values: tuple[Any, ...]) -> JobRecord | None:
        row = self._database.one(f"{SELECT} WHERE {condition}", values)
        return _from_sql(row) if row else None

    def _text(self, column: str, id: str) -> Any:
        sql = f"SELECT {column} FROM job_texts JOIN jobs USING (number) WHERE jobs.id = ?"  # noqa: S608  # our own names
        row = self._database.one(sql, (id,))
        return row[0] if row else None

    def _tag(self, id: str, tag: str, *, wanted: bool) -> bool:
        with self._database.write() as batch:
            rows, _ = batch.execute("SELECT number, tags FROM jobs WHERE id = ?", (id,))
            if not rows:
                raise NoSuchRecord(f"there is no job {id}")
            number, tags = rows[0][0], json.loads(rows[0][1] or "[]")
            if (tag in tags) == wanted:
                return False
            if wanted:
                tags.append(tag)
                batch.execute("INSERT INTO job_marks (mark, number) VALUES (?, ?)", (tag_mark(tag), number))
            else:
                tags.remove(tag)
                batch.execute("DELETE FROM job_marks WHERE mark = ? AND number = ?", (tag_mark(tag), number))
            batch.execute("UPDATE jobs SET tags = ? WHERE number = ?", (json.dumps(tags) if tags else None, number))
            batch.when_kept(lambda: self._listing.apply(lambda columns: columns.mark(number, tag_mark(tag), wanted=wanted)))
        return True


def _marks(record: JobRecord) -> list[str]:
    return [*map(tag_mark, dict.fromkeys(record.tags)), *(label_mark(key, value) for key, value in record.labels.items())]


def _to_sql(record: JobRecord) -> list[Any]:
    _check(record.__dict__)
    if len(set(record.tags)) != len(record.tags):
        record = record.replace(tags=tuple(dict.fromkeys(record.tags)))
    return [_column(name, getattr(record, name)) for name in FIELDS]


def _column(name: str, value: Any) -> Any:
    if name in JSON_FIELDS:
        return json.dumps(value) if value else None
    return value


def _update(id: str, columns: Mapping[str, Any]) -> tuple[str, tuple[Any, ...]]:
    for name in columns:
        if name not in FIELDS or name in FIXED:
            raise TypeError(f"a job has no column {name!r} that can be changed")
    _check(columns)
    if not columns:
        return "UPDATE jobs SET id = id WHERE id = ? RETURNING number", (id,)
    assignments = ", ".join(f"{name} = ?" for name in columns)
    values = (*(_column(name, value) for name, value in columns.items()), id)
    return f"UPDATE jobs SET {assignments} WHERE id = ? RETURNING number", values  # noqa: S608  # the names were checked


def _check(columns: Mapping[str, Any]) -> None:
    for name, known in (("state", JOB_STATES), ("execution_type", EXECUTION_TYPES), ("priority", (None, *PRIORITIES))):
        if columns.get(name, known[0]) not in known:
            raise BadValue(f"a job has no {name} {columns[name]!r}")


def _from_sql(row: Row) -> JobRecord:
    values = list(row)
    tags, labels, more = values[-3:]
    values[-3:] = tuple(json.loads(tags)) if tags else (), json.loads(labels) if labels else {}, json.loads(more) if more else {}
    return JobRecord(*values)
