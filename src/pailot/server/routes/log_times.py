"""When each part of a log was written, and on which stream."""

from __future__ import annotations

from ...runfolder.layout import STREAMS
from ...runfolder.log_index import TICK_MILLISECONDS
from ..schemas import SWITCH, WHOLE, many, record
from ..toolkit.http import json_response
from ..toolkit.routing import Query, Routes
from .attempts import role_of, whole
from .jobs import full_name
from .logs import optional, stream_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...jobserver.logs import Log
    from ..toolkit.http import Request, Response

routes = Routes("logs")
MAX_ENTRIES = 20_000
_NUMBER = {"type": "integer", "minimum": 0}


@routes(
    "GET",
    "/jobs/{job}/logs/{role}/{index}/index",
    query=(
        Query("stream", "Which stream.", {"type": "string", "enum": list(STREAMS), "default": "all"}),
        Query("attempt", "The attempt of the job; the latest by default.", _NUMBER),
        Query("taskAttempt", "The attempt of the task; the latest by default.", _NUMBER),
        Query("from", "The first offset of the log that is of interest.", _NUMBER),
        Query("to", "The offset before which to end; by default the end of the log.", _NUMBER),
        Query("limit", "The most entries.", {"type": "integer", "minimum": 1, "maximum": MAX_ENTRIES}),
    ),
    shape=record(
        attempt=WHOLE, taskAttempt=WHOLE, begin=WHOLE, size=WHOLE, ended=SWITCH, indexed=SWITCH, more=SWITCH, tickMs=WHOLE,
        entries=record(offset=many(WHOLE), at=many(WHOLE), stderr=many(SWITCH)),
    ),
)  # fmt: skip
async def log_index(request: Request) -> Response:
    """When each part of a log was written, and whether on stderr."""
    name, index = full_name(request), whole(request, "index")
    role = await role_of(request, name, index)
    which = stream_of(request)
    attempt, task_attempt = optional(request, "attempt"), optional(request, "taskAttempt")
    begin, end = request.number("from", 0), optional(request, "to")
    limit = request.number("limit", MAX_ENTRIES, 1, MAX_ENTRIES)
    team, caller = request.site.team, request.caller.team
    found = await team.log(caller, name, role, index, attempt=attempt, task_attempt=task_attempt, stream=which)
    return json_response(await request.site.call(_described, found, begin, end, limit))


def _described(log: Log, begin: int, end: int | None, limit: int) -> dict[str, object]:
    times = log.times()
    size = log.size()
    first = last = most = 0
    if times is not None:
        first = max(0, times.at(begin))
        last = times.at(min(size, size if end is None else end) - 1) + 1
        most = min(last, first + limit)
    shown = slice(first, most)
    return {
        "attempt": log.attempt,
        "taskAttempt": log.task_attempt,
        "begin": log.begin(),
        "size": size,
        "ended": log.ended,
        "indexed": times is not None,
        "more": most < last,
        "tickMs": TICK_MILLISECONDS,
        "entries": {
            "offset": times.offsets[shown] if times else [],
            "at": times.times[shown] if times else [],
            "stderr": times.errors[shown] if times else [],
        },
    }
