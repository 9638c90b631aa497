"""Logs as they grow, as text: of one task, or of all tasks of a job in one stream."""

from __future__ import annotations

import codecs
import re

from ..jobserver.merging import Over, merged
from ..values import Value
from .toolkit.errors import HttpError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence
    from typing import Any

    from ..jobserver.models import Caller, LogPiece
    from ..jobserver.service import Team

    Task = tuple[str, int]

MOST_TASKS = 1_000
"""The tasks of one stream: each event carries the place in all of their logs."""
_PLACE = re.compile(r"[0-9]{1,9}\.[0-9]{1,9}\.[0-9]{1,18}")


class Told(Value):
    """The next text of a log; `place` is where to go on after it."""

    data: Mapping[str, Any]
    place: str
    ended: bool = False


async def as_text(pieces: AsyncIterator[LogPiece]) -> AsyncIterator[Told]:
    """Pieces of a log as text. A character whose bytes are not all there waits for the rest, so that places are exact."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    where = (-1, -1)
    async for piece in pieces:
        if (piece.attempt, piece.task_attempt) != where:
            where = (piece.attempt, piece.task_attempt)
            decoder.reset()
        if piece.missing:
            decoder.reset()
        text = decoder.decode(piece.data, final=piece.ended)
        offset = piece.offset - len(decoder.getstate()[0])
        at = {"offset": offset, "attempt": piece.attempt, "taskAttempt": piece.task_attempt}
        place = f"{piece.attempt}.{piece.task_attempt}.{offset}"
        if text or piece.missing:
            more = {"missing": piece.missing} if piece.missing else {}
            yield Told({**at, "text": text, **more}, place)
        if piece.ended:
            yield Told(at, place, ended=True)


class Places:
    """How far each of several logs was told; as JSON the places of each role's tasks, by index."""

    def __init__(self, roles: Mapping[str, Sequence[str]]) -> None:
        self._roles = {role: list(places) for role, places in roles.items()}

    @classmethod
    def read(cls, told: Any, tasks: Sequence[Task]) -> dict[Task, str]:
        """The places that a client sent back, of the tasks that it follows. Raises HttpError."""
        if not isinstance(told, dict):
            raise _no_id(told)
        found: dict[Task, str] = {}
        for role, text in told.items():
            places = text.split(",") if isinstance(text, str) else [""]
            if len(places) > MOST_TASKS or not all(_PLACE.fullmatch(each) or not each for each in places):
                raise _no_id(text)
            found.update({(role, index): place for index, place in enumerate(places) if place})
        return {task: found[task] for task in tasks if task in found}

    @classmethod
    def of(cls, places: Mapping[Task, str]) -> Places:
        roles: dict[str, list[str]] = {}
        for (role, index), place in places.items():
            row = roles.setdefault(role, [])
            row += [""] * (index + 1 - len(row))
            row[index] = place
        return cls(roles)

    def move(self, task: Task, place: str) -> None:
        self._roles[task[0]][task[1]] = place

    def to_json(self) -> dict[str, str]:
        return {role: ",".join(places) for role, places in self._roles.items()}


def _no_id(value: object) -> HttpError:
    return HttpError(400, "InvalidParametersError", f"{str(value)[:60]!r} is no id of an event")


async def of_tasks(
    team: Team, caller: Caller | None, job: str, stream: str, begin: Mapping[Task, str]
) -> AsyncIterator[tuple[list[dict[str, object]], dict[str, str]]]:
    """What these tasks print, to the end of the job: pieces that say whose they are, and the places after them.

    The first list of pieces is empty: its places are those where the stream begins.
    """
    places = Places.of(begin)
    yield [], places.to_json()
    sources = {task: as_text(team.subscribe_log(caller, job, *task, stream=stream, after=place)) for task, place in begin.items()}
    async for batch in merged(sources):
        pieces: list[dict[str, object]] = []
        for task, item in batch:
            if isinstance(item, Over):
                if item.error is not None:
                    raise item.error
                continue
            places.move(task, item.place)
            ended = {"ended": True} if item.ended else {}
            pieces.append({"role": task[0], "index": task[1], **item.data, **ended})
        if pieces:
            yield pieces, places.to_json()


async def begin_of(
    team: Team, caller: Caller | None, job: str, tasks: Sequence[Task], stream: str, after: Any, since: int | None
) -> dict[Task, str]:
    """Where a stream of these tasks begins: at the places that the client names, else with an attempt of the job, else with the
    latest attempt of each task.
    """
    if len(tasks) > MOST_TASKS:
        raise HttpError(400, "InvalidParametersError", f"{len(tasks)} tasks are too many for one stream; name a role")
    record = await team.get(caller, job, details=True)
    known = Places.read(after, tasks) if after else {}
    return {
        task: known.get(task) or (f"{since}.0.0" if since is not None else team.begin_of_log(record, *task, stream))
        for task in tasks
    }
