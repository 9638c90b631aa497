"""Logs: where they are, as OpenPAI tells it; whole, in part, and as they grow."""

from __future__ import annotations

import json
import zlib
from urllib.parse import quote

from ...runfolder.layout import STREAMS
from ...runfolder.log_archive import safe
from ..log_stream import as_text, begin_of, of_tasks
from ..schemas import a
from ..toolkit.errors import HttpError
from ..toolkit.http import TEXT, Response, Stream, json_response
from ..toolkit.routing import KEY, Query, Routes
from ..toolkit.sse import event, last_id, stream
from .attempts import role_of, tasks_of, whole
from .jobs import full_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from typing import Any

    from ...jobserver.logs import Log
    from ...jobserver.models import LogPiece
    from ..toolkit.http import Headers, Request

routes = Routes("logs")

TAIL_BYTES = 16384
"""As much as OpenPAI's tail mode tells."""
_AT_ONCE = 1 << 18
_NUMBER = {"type": "integer", "minimum": 0}
_LOG_QUERY = (
    Query("stream", "Which stream.", {"type": "string", "enum": list(STREAMS), "default": "all"}),
    Query("attempt", "The attempt of the job; the latest by default.", _NUMBER),
    Query("taskAttempt", "The attempt of the task; the latest by default.", _NUMBER),
    Query("follow", "Answers events with what comes, to the end of the task.", {"type": "boolean"}),
    Query("tail", "Only the last bytes, so many.", _NUMBER),
    Query("offset", "With `follow`: where to begin.", _NUMBER),
    Query("key", "In place of a token: the key that the list of locations holds."),
    Query("download", "To be kept as a file: `1` as it is, `gz` packed.", {"type": "string", "enum": ["1", "gz"]}),
)
_TAIL = (
    Query("tail-mode", f"Only the last {TAIL_BYTES} bytes.", {"type": "boolean"}),
    Query("tailMode", "The same.", {"type": "boolean"}),
)


@routes(
    "GET",
    "/jobs/{job}/attempts/{attempt}/taskRoles/{role}/taskIndex/{index}/attempts/{taskAttempt}/logs",
    query=_TAIL,
    shape=a("Locations"),
)
async def log_locations(request: Request) -> Response:
    """Where the logs of a task attempt are."""
    name, attempt, index = full_name(request), whole(request, "attempt"), whole(request, "index")
    task_attempt = whole(request, "taskAttempt")
    role = await role_of(request, name, index)
    await request.site.team.log(request.caller.team, name, role, index, attempt=attempt, task_attempt=task_attempt)
    tail = f"&tail={TAIL_BYTES}" if request.flag("tail-mode", "tailMode") else ""
    # Clients open these addresses without a header. The key in them opens this job's logs, for an hour, and nothing else.
    key = request.site.gate.log_key(request.caller, name)
    base = f"/rest-server/api/v2/jobs/{quote(name, safe='~')}/logs/{quote(role)}/{index}"
    return json_response(
        {
            "locations": [
                {"name": each, "uri": f"{base}?stream={each}&attempt={attempt}&taskAttempt={task_attempt}{tail}&key={key}"}
                for each in STREAMS
            ]
        }
    )


@routes(
    "GET",
    "/jobs/{job}/logs/{role}/{index}",
    auth=KEY,
    query=_LOG_QUERY,
    kind="text/plain",
    answers={200: "The log", 206: "A part of it"},
)
async def log(request: Request) -> Response:
    """What a task printed; `Range` is honoured, `follow` goes on to the end."""
    name, index = full_name(request), whole(request, "index")
    role = await role_of(request, name, index)
    which = stream_of(request)
    attempt, task_attempt = optional(request, "attempt"), optional(request, "taskAttempt")
    team, caller = request.site.team, request.caller.team
    if request.flag("follow"):
        after, offset = last_id(request), request.number("offset", 0)
        if after and not all(part.isdecimal() and len(part) < 19 for part in after.split(".", 2)):
            raise HttpError(400, "InvalidParametersError", f"'{after[:60]}' is no id of an event")
        if after and "." not in after:  # a bare offset
            after, offset = "", int(after)
        pieces = team.subscribe_log(
            caller, name, role, index, attempt=attempt, task_attempt=task_attempt, stream=which, offset=offset, after=after
        )
        return stream(request, follow(pieces))
    found = await team.log(caller, name, role, index, attempt=attempt, task_attempt=task_attempt, stream=which)
    return await _whole_log(request, found)


def optional(request: Request, name: str) -> int | None:
    """A whole number of the query, if it is there."""
    return request.number(name, 0) if request.query.get(name) else None


async def follow(pieces: AsyncIterator[LogPiece]) -> AsyncIterator[bytes]:
    """Pieces of a log as events."""
    async for told in as_text(pieces):
        yield event("end" if told.ended else "", told.data, told.place)


_JOB_LOGS_QUERY = (
    Query("follow", "Must be true: all logs of a job are told as events.", {"type": "boolean"}),
    Query("role", "Only the tasks of this role."),
    Query("stream", "Which stream.", {"type": "string", "enum": list(STREAMS), "default": "all"}),
    Query("since", "Begin with this attempt of the job; by default with the latest attempt of each task.", _NUMBER),
    Query("after", "The id of the last event seen; the header Last-Event-ID does the same."),
)


@routes("GET", "/jobs/{job}/logs", query=_JOB_LOGS_QUERY, kind="text/event-stream")
async def job_logs(request: Request) -> Response:
    """What all tasks of a job print, in one stream, to the end of the job."""
    name = full_name(request)
    if not request.flag("follow"):
        raise HttpError(400, "InvalidParametersError", "all logs of a job are followed: add follow=true, or name a task")
    tasks = await tasks_of(request, name, request.query.get("role") or None)
    after = read_id(last_id(request))
    team, caller, which = request.site.team, request.caller.team, stream_of(request)
    begin = await begin_of(team, caller, name, tasks, which, after, optional(request, "since"))
    return stream(request, _job_events(of_tasks(team, caller, name, which, begin)))


async def _job_events(told: AsyncIterator[tuple[list[dict[str, object]], dict[str, str]]]) -> AsyncIterator[bytes]:
    mark = "{}"
    async for pieces, places in told:
        mark = json.dumps(places, separators=(",", ":"))
        yield event("" if pieces else "begin", {"pieces": pieces}, mark)
    yield event("end", {"pieces": []}, mark)


def read_id(text: str) -> Any:
    """The id of an event that is JSON."""
    if not text:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise HttpError(400, "InvalidParametersError", f"'{text[:60]}' is no id of an event") from None


def stream_of(request: Request) -> str:
    which = request.query.get("stream") or "all"
    if which not in STREAMS:
        raise HttpError(400, "InvalidParametersError", f"'stream' should be one of {', '.join(STREAMS)}, is {which[:40]!r}")
    return which


async def _whole_log(request: Request, found: Log) -> Response:
    begin, size = await request.site.call(lambda: (found.begin(), found.size()))
    start, end, status = begin, size, 200
    mark = f"{found.mark}-{size}"
    headers: Headers = [
        (b"accept-ranges", b"bytes"),
        (b"etag", f'"{mark}"'.encode()),
        (b"cache-control", b"private, no-cache"),  # it may grow, and is not for everyone
        (b"x-content-type-options", b"nosniff"),  # a browser must not show what a task prints as a page
        (b"x-log-ended", b"true" if found.ended else b"false"),
        (b"x-log-attempt", b"%d.%d" % (found.attempt, found.task_attempt)),  # with an offset behind it, the id of an event
    ]
    if f'"{mark}"' in (request.header(b"if-none-match") or ""):
        unchanged = Response(b"", 304)
        unchanged.headers = headers
        return unchanged
    how = request.query.get("download", "")
    if how not in ("", "0", "1", "true", "gz"):
        raise HttpError(400, "InvalidParametersError", f"'download' should be 1 or gz, is {how[:40]!r}")
    if how in ("1", "true", "gz"):
        parts = found.folder.split("/")
        title = f"{request.parameters['job']}-{parts[-3]}-{found.attempt}.{found.task_attempt}-{found.stream}.log"
        headers += attachment(f"{safe(title)}{'.gz' if how == 'gz' else ''}")
    tail = request.number("tail", 0)
    if tail:
        start = max(begin, size - tail)
    if how == "gz":
        headers = [each for each in headers if each[0] not in (b"accept-ranges", b"etag")]
        return Stream(pieces_of(request, _packed(found.pieces(start, end))), 200, b"application/gzip", headers)
    wanted = request.header(b"range")
    if wanted and not tail and _same(request.header(b"if-range"), found.mark, size):
        bounds = byte_range(wanted, size)
        if bounds is None or (bounds != (-1, -1) and bounds[1] <= begin):
            words = f"the log has {size} bytes" + (f", of which the first {begin} are no longer kept" if begin else "")
            code = "RangeError" if bounds is None else "LogRotatedError"
            raise HttpError(416, code, words, [(b"content-range", b"bytes */%d" % size)])
        if bounds != (-1, -1):
            start, end, status = max(begin, bounds[0]), bounds[1], 206
            headers.append((b"content-range", b"bytes %d-%d/%d" % (start, end - 1, size)))
    if end - start <= _AT_ONCE:
        data = await request.site.call(lambda: b"".join(found.pieces(start, end)))
        return Response(data, status, TEXT, headers)
    headers.append((b"content-length", b"%d" % (end - start)))
    return Stream(pieces_of(request, found.pieces(start, end)), status, TEXT, headers)


def attachment(name: str) -> Headers:
    """What has a browser keep a response as a file, rather than show it. The name is safe in quotes."""
    return [(b"content-disposition", f'attachment; filename="{name}"'.encode()), (b"x-content-type-options", b"nosniff")]


def _packed(pieces: Iterator[bytes]) -> Iterator[bytes]:
    packer = zlib.compressobj(1, zlib.DEFLATED, 31)
    for piece in pieces:
        yield packer.compress(piece) or b""
    yield packer.flush()


def _same(condition: str | None, mark: str, size: int) -> bool:
    """Whether what a client has of a log, by its `If-Range`, is the beginning of it: logs grow, and never change else."""
    if condition is None:
        return True
    kept, _, length = condition.strip().strip('"').rpartition("-")
    return kept == mark and length.isascii() and length.isdecimal() and len(length) < 19 and int(length) <= size


async def pieces_of(request: Request, pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    """Pieces that are made beside the loop, one after the other."""
    while True:
        piece: bytes | None = await request.site.call(lambda: next(pieces, None))
        if piece is None:
            return
        if piece:
            yield piece


def byte_range(text: str, size: int) -> tuple[int, int] | None:
    """`bytes=5-9`, `bytes=5-` or `bytes=-5` as begin and end; None if nothing is there, (-1, -1) if it is to be ignored."""
    unit, _, spec = text.partition("=")
    first, dash, last = spec.strip().partition("-")
    numbers = first + last
    if unit.strip().lower() != "bytes" or not dash or not (numbers.isascii() and numbers.isdecimal()) or len(numbers) > 36:
        return -1, -1
    if not first:
        return (max(0, size - int(last)), size) if int(last) and size else None
    start, end = int(first), min(int(last) + 1, size) if last else size
    if last and int(last) < start:
        return -1, -1
    return (start, end) if start < size else None
