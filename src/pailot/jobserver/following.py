"""The jobs of a server that wait for others: what each still waits for is kept with its record."""

from __future__ import annotations

from ..lifecycle.following import GONE, Predecessor, all_to_json, read_all, split
from ..lifecycle.states import FINAL_JOB_STATES
from .errors import Invalid, NoSuchJob

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
    from typing import Any

    from ..store.server import JobRecord
    from .models import Caller
    from .policy import Policy

MOST_PREDECESSORS = 100
KEY = "after"
"""Where the record of a job keeps them, in `more`."""


def predecessors_of(record: JobRecord) -> tuple[Predecessor, ...]:
    return read_all(record.more.get(KEY) or ())


def left_of(record: JobRecord) -> tuple[Predecessor, ...]:
    """Return those whose end the job still waits for."""
    return tuple(each for each in predecessors_of(record) if not each.is_over)


def with_end(record: JobRecord, id: str, state: str, reason: str) -> dict[str, object]:
    """Return the record's `more` after one of its predecessors has ended."""
    changed = [each.ended(state, reason) if each.id == id else each for each in predecessors_of(record)]
    return {**record.more, KEY: all_to_json(changed)}


def end_of(record: JobRecord | None) -> tuple[str, str] | None:
    """Return state and reason of a predecessor that is over; one whose record is gone has ended unseen."""
    if record is None:
        return GONE, ""
    return (record.state, record.reason or "") if record.state in FINAL_JOB_STATES else None


async def resolve(
    wishes: Sequence[str], caller: Caller, policy: Policy, find: Callable[[str], Awaitable[JobRecord]]
) -> tuple[Predecessor, ...]:
    """Find the jobs that a new one is to follow. A job that the caller may not read counts as one that does not exist.

    A new job can follow only jobs that exist, so there are no cycles. Raises Invalid.
    """
    if len(wishes) > MOST_PREDECESSORS:
        raise Invalid(f"a job follows at most {MOST_PREDECESSORS} others, not {len(wishes)}")
    found: dict[tuple[str, str], Predecessor] = {}
    for wish in wishes:
        parts = split(wish)
        if parts is None:
            raise Invalid(f"after: '{wish[:300]}' should be JOB, JOB:success or JOB:end")
        name = parts[0] if "~" in parts[0] else f"{caller.name}~{parts[0]}"
        try:
            record = await find(name)
        except NoSuchJob:
            record = None
        if record is None or not policy.may_read(caller, record):
            raise Invalid(f"after: there is no job {name} to wait for")
        found[record.id, parts[1]] = Predecessor(record.id, f"{record.user}~{record.name}", parts[1])
    return tuple(found.values())


class Followers:
    """Who waits for whose end: a job is told when the last change of its predecessor is kept."""

    def __init__(self) -> None:
        self._by_predecessor: dict[str, dict[str, None]] = {}

    def add(self, predecessor: str, follower: str) -> None:
        self._by_predecessor.setdefault(predecessor, {})[follower] = None

    def pop(self, predecessor: str) -> Iterable[str]:
        return self._by_predecessor.pop(predecessor, {})


def kept_after(predecessors: Sequence[Predecessor]) -> Mapping[str, Any]:
    """Return what the record of a new job keeps."""
    return {KEY: all_to_json(predecessors)} if predecessors else {}
