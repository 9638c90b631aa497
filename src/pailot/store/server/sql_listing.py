"""A page of the list of jobs, asked of the database itself: after a start, until the columns of `listing` are there.

The newest jobs come at once, by their number. Whatever else is asked for may cost a look at every job: a second or two with
a million of them, which is less than to wait for the columns.
"""

from __future__ import annotations

from ...values import Value
from .database import checked
from .models import BadValue, label_mark, tag_mark

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from .database import Database
    from .models import JobQuery

KEYS = {
    "jobName": "name",
    "username": "username",
    "vc": "vc",
    "retries": "retries",
    "totalTaskNumber": "tasks",
    "totalGpuNumber": "gpus",
    "state": "state",
    "completionTime": "ended",
    "jobPriority": "priority",
}
"""What a list is ordered by; jobs with equal keys, and all others, by their number: the order of submission."""
MAY_BE_NULL = ("ended", "priority")
PLACE_OF = {"sqlite": "instr", "postgresql": "strpos"}
"""The function that finds a part of a text."""
FARTHEST = 1e300
"""No moment is farther away, and databases need not know of infinity."""


class Found(Value):
    """The numbers of a page of jobs, and how many the query finds in all, if that is known."""

    numbers: list[int]
    total: int | None


def find(database: Database, query: JobQuery) -> Found:
    """The page that a query wants."""
    where, values = _where(query, PLACE_OF[database.kind])
    numbers: list[int] = []
    if query.limit > 0:
        following, cursor = where, list(values)
        if query.before is not None:
            following += f"{' AND' if where else ' WHERE'} number {'<' if query.descending else '>'} ?"
            cursor.append(query.before)
        sql = f"SELECT number FROM jobs{following} ORDER BY {_order(query)} LIMIT ? OFFSET ?"  # noqa: S608  # our own names
        numbers = [number for (number,) in database.read(sql, (*cursor, query.limit, query.offset))]
    total = database.one(f"SELECT count(*) FROM jobs{where}", values) if query.want_total else None  # noqa: S608
    return Found(numbers, total[0] if total else None)


def _order(query: JobQuery) -> str:
    key, way = KEYS.get(query.order), "DESC" if query.descending else "ASC"
    null = (f"{key} IS NULL {way}",) if key in MAY_BE_NULL else ()
    return ", ".join((*null, *((f"{key} {way}",) if key else ()), f"number {way}"))


def _where(query: JobQuery, place_of: str) -> tuple[str, list[Any]]:
    """The condition, if there is one, and the values for its question marks."""
    parts: list[str] = []
    values: list[Any] = []

    def add(condition: str, *given: Any) -> None:
        parts.append(condition)
        values.extend(given)

    for column, wanted in (
        ("state", query.states),
        ("username", query.users),
        ("vc", query.vcs),
        ("priority", query.priorities),
        ("execution_type", query.types),
    ):
        if wanted:
            add(*_among(column, wanted))
    if query.seen_by is not None:
        user, vcs = query.seen_by
        (his, *him), (theirs, *them) = _among("username", (user,)), _among("vc", vcs)
        add(f"({his} OR {theirs})", *him, *them)
    if query.newer_than is not None:
        add("submitted > ?", max(-FARTHEST, min(FARTHEST, query.newer_than)))
    if query.tags_contain:
        add(*_marked(map(tag_mark, query.tags_contain)))
    for key, value in query.labels.items():
        add(*_marked((label_mark(key, value),)))
    if query.tags_not_contain:
        condition, *given = _marked(map(tag_mark, query.tags_not_contain))
        add(f"NOT {condition}", *given)
    if query.keyword:
        known = _keepable((query.keyword,))
        add(f"({' OR '.join(f'{place_of}({column}, ?) > 0' for column in ('name', 'username', 'vc'))})" if known else "1 = 0")
        values.extend(known * 3)
    return f" WHERE {' AND '.join(parts)}" if parts else "", values


def _among(column: str, wanted: Iterable[Any]) -> Sequence[Any]:
    """The condition that a column has one of these values, and the values."""
    known = _keepable(value for value in wanted if value is not None)
    parts = [f"{column} IN ({', '.join('?' * len(known))})"] if known else []
    if None in wanted:
        parts.append(f"{column} IS NULL")
    return f"({' OR '.join(parts) or '1 = 0'})", *known


def _marked(marks: Iterable[str]) -> Sequence[Any]:
    condition, *known = _among("mark", tuple(marks))
    return f"number IN (SELECT number FROM job_marks WHERE {condition})", *known  # noqa: S608  # our own words


def _keepable(values: Iterable[Any]) -> list[Any]:
    """Those of the values that a job can have."""
    found = []
    for value in values:
        try:
            found.append(checked(value))
        except BadValue:
            continue  # no job has it
    return found
