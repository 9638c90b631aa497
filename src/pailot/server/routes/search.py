"""Search in the logs of a job, over all tasks and attempts."""

from __future__ import annotations

from contextlib import aclosing

from ...jobserver.log_searches import MAX_HITS
from ...runfolder.layout import STREAMS
from ...runfolder.log_search import SearchEnd, Wanted
from ..schemas import SWITCH, TEXT, TIME, WHOLE, maybe, record
from ..toolkit.errors import HttpError
from ..toolkit.http import Stream, to_json
from ..toolkit.routing import Query, Routes
from .attempts import find_role
from .jobs import full_name
from .logs import optional, stream_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator

    from ...jobserver.log_searches import Told
    from ..toolkit.http import Request, Response

routes = Routes("logs")
HITS = 1_000
_NUMBER = {"type": "integer", "minimum": 0}
_SWITCH = {"type": "boolean"}
_HIT = record(
    role=TEXT, index=WHOLE, attempt=WHOLE, taskAttempt=WHOLE, offset=WHOLE, match=WHOLE, line=maybe(WHOLE), at=TIME,
    stderr=maybe(SWITCH), text=TEXT, cut=SWITCH,
)  # fmt: skip
_END = record(end=SWITCH, hits=WHOLE, bytes=WHOLE, stopped=TEXT)


@routes(
    "GET",
    "/jobs/{job}/search",
    query=(
        Query("q", "What to search for."),
        Query("regex", "It is a regular expression, as Python has them.", _SWITCH),
        Query("case", "Large and small letters are different.", _SWITCH),
        Query("role", "Only in the tasks of this role."),
        Query("index", "Only in the tasks with this index.", _NUMBER),
        Query("attempt", "Only in this attempt of the job.", _NUMBER),
        Query("taskAttempt", "Only in this attempt of each task.", _NUMBER),
        Query("stream", "Which stream.", {"type": "string", "enum": list(STREAMS), "default": "all"}),
        Query("limit", f"The most hits; {HITS} by default.", {"type": "integer", "minimum": 1, "maximum": MAX_HITS}),
    ),
    kind="application/x-ndjson",
    shape={"anyOf": [_HIT, _END]},
)
async def search_logs(request: Request) -> Response:
    """Lines of a job's logs that hold a text, over all tasks and attempts; one JSON object a line."""
    name, asked = full_name(request), request.query
    if not asked.get("q"):
        raise HttpError(400, "InvalidParametersError", "'q' is missing: what to search for")
    role = (await find_role(request, name, asked["role"]))[0] if asked.get("role") else None
    wanted = Wanted(
        asked["q"],
        request.flag("regex"),
        request.flag("case"),
        role,
        optional(request, "index"),
        optional(request, "attempt"),
        optional(request, "taskAttempt"),
        stream_of(request),
    )
    limit = request.number("limit", HITS, 1, MAX_HITS)
    found = await request.site.team.search_logs(request.caller.team, name, wanted, limit)
    headers = [(b"cache-control", b"no-store"), (b"x-accel-buffering", b"no")]
    return Stream(_lines(found), kind=b"application/x-ndjson; charset=utf-8", headers=headers)


async def _lines(found: AsyncGenerator[Told, None]) -> AsyncIterator[bytes]:
    async with aclosing(found):
        async for told in found:
            if isinstance(told, SearchEnd):
                yield to_json({"end": True, "hits": told.hits, "bytes": told.bytes, "stopped": told.stopped}) + b"\n"
            elif told:
                yield b"".join(to_json(hit.to_json()) + b"\n" for hit in told)
