"""Live: jobs, the list of them and their logs as server-sent events, with ids to go on from; several topics in one stream."""

from __future__ import annotations

import json

from ...jobserver.merging import Over, merged
from ...jobserver.subscriptions import Watched
from ...runfolder.layout import STREAMS
from ...values import Value
from ..errors import response_of
from ..log_stream import begin_of, of_tasks
from ..toolkit.errors import HttpError
from ..toolkit.routing import Query, Routes
from ..toolkit.sse import event, last_id, stream
from .attempts import tasks_of
from .jobs import full_name
from .logs import read_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from typing import Any

    from ...jobserver.models import Event
    from ..toolkit.http import Request, Response

routes = Routes("live")
MOST_TOPICS = 32
_AFTER = (Query("after", "The id of the last event seen; the header Last-Event-ID does the same."),)
_WATCHED = (
    Query("user", "Of the list of jobs: only those of these users, separated by commas."),
    Query("vc", "Only those in these virtual clusters."),
    Query("state", "Only those that enter or leave one of these states."),
)
_TOPICS = Query(
    "topic",
    "What to follow, several times: `jobs`, `job:JOB`, or `log:JOB[/ROLE[/INDEX[/STREAM]]]`.",
    {"type": "array", "items": {"type": "string"}},
)


@routes("GET", "/jobs/{job}/live", query=_AFTER, kind="text/event-stream")
async def live_job(request: Request) -> Response:
    """A job as it is, then what happens to it, to its end."""
    # Looked at first, so that what cannot be followed is an answer and no broken stream.
    await request.site.team.get(request.caller.team, full_name(request), details=True)
    return stream(request, _told(request.site.team.subscribe_job(request.caller.team, full_name(request), _after(request))))


@routes("GET", "/live/jobs", query=(*_AFTER, *_WATCHED), kind="text/event-stream")
async def live_jobs(request: Request) -> Response:
    """Changes of the states of the jobs that the caller may see, told at most four times a second."""
    return stream(request, _told(request.site.team.subscribe_jobs(request.caller.must(), _after(request), _watched(request))))


@routes("GET", "/live", query=(_TOPICS, *_AFTER, *_WATCHED), kind="text/event-stream")
async def live(request: Request) -> Response:
    """Several topics in one stream: the list of jobs, single jobs, and logs."""
    asked = list(dict.fromkeys(request.all_of("topic")))
    if not 1 <= len(asked) <= MOST_TOPICS:
        raise HttpError(400, "InvalidParametersError", f"name 1 to {MOST_TOPICS} topics: ?topic=jobs&topic=job:ann~train")
    topics = [Topic.read(each, request.caller.username) for each in asked]
    known = read_id(last_id(request)) or {}
    if not isinstance(known, dict):
        raise HttpError(400, "InvalidParametersError", "the id of an event of several topics is a JSON object")
    return stream(request, _all_of(request, topics, known, _watched(request)))


class Topic(Value):
    """What a client wants to follow; `text` is how it said so."""

    text: str
    kind: str
    job: str = ""
    role: str | None = None
    index: int | None = None
    stream: str = "all"

    @classmethod
    def read(cls, text: str, user: str) -> Topic:
        """A topic out of an address; a bare name of a job is one of this user. Raises HttpError.

        >>> Topic.read("log:train/worker/0", "ann").job
        'ann~train'
        """
        kind, _, rest = text.partition(":")
        job, *parts = rest.split("/")
        name = job if "~" in job else f"{user}~{job}"
        if text == "jobs":
            return cls(text, "jobs")
        if kind == "job" and job and not parts:
            return cls(text, kind, name)
        if kind == "log" and job and len(parts) <= 3 and all(parts):
            index = parts[1] if len(parts) > 1 else "0"
            which = parts[2] if len(parts) > 2 else "all"
            if index.isascii() and index.isdecimal() and len(index) < 10 and which in STREAMS:
                return cls(text, kind, name, parts[0] if parts else None, int(index) if len(parts) > 1 else None, which)
        raise HttpError(
            400, "InvalidParametersError", f"'{text[:80]}' is no topic: jobs, job:JOB or log:JOB[/ROLE[/INDEX[/STREAM]]]"
        )


async def _all_of(request: Request, topics: list[Topic], known: dict[str, object], watched: Watched) -> AsyncIterator[bytes]:
    """The events of all topics. Each carries the ids of all, so that a client goes on with any event as its last."""
    ids = {topic.text: known[topic.text] for topic in topics if topic.text in known}
    row = request.site.team.floor.row
    if any(topic.kind == "jobs" for topic in topics):
        ids.setdefault("jobs", row.last)
    sources = {topic.text: _topic(request, topic, ids.get(topic.text), watched) for topic in topics}
    yield event("begin", {"topics": [topic.text for topic in topics]}, _mark(ids))
    async for batch in merged(sources):
        for topic, item in batch:
            if not isinstance(item, Over):
                kind, data, ids[topic] = item
                yield event(kind, {"topic": topic, "data": data}, _mark(ids))
            elif item.error is not None:
                answer = response_of(item.error)
                said = {"status": answer.status, **json.loads(answer.body)}
                yield event("error", {"topic": topic, "data": said}, _mark(ids))
    yield event("done", {}, _mark(ids))


async def _topic(request: Request, topic: Topic, after: Any, watched: Watched) -> AsyncIterator[tuple[str, Any, Any]]:
    """What happens to one topic: kind, data, and the id to go on from. The rights are those for the topic itself."""
    team, caller = request.site.team, request.caller.team
    if topic.kind == "jobs":
        async for last, events in team.subscribe_list(request.caller.must(), _number(after), watched):
            yield ("reset", {}, last) if events is None else ("jobs", [dict(each.data) for each in events], last)
    elif topic.kind == "job":
        await team.get(caller, topic.job, details=True)
        async for each in team.subscribe_job(caller, topic.job, _number(after)):
            yield each.kind, dict(each.data), each.id
    else:
        tasks = await tasks_of(request, topic.job, topic.role, topic.index)
        begin = await begin_of(team, caller, topic.job, tasks, topic.stream, after, None)
        places: Any = None
        async for pieces, places in of_tasks(team, caller, topic.job, topic.stream, begin):
            yield "log", pieces, places
        yield "end", {}, places


def _mark(ids: dict[str, object]) -> str:
    return json.dumps(ids, separators=(",", ":"))


def _number(value: Any) -> int | None:
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10**18):
        return value
    raise HttpError(400, "InvalidParametersError", f"'{str(value)[:40]}' is no id of an event")


def _watched(request: Request) -> Watched:
    users, clusters, states = (
        tuple(each for each in request.query.get(key, "").split(",") if each)[:1000] for key in ("user", "vc", "state")
    )
    return Watched(users, clusters, states)


def _after(request: Request) -> int | None:
    text = last_id(request)
    if text and not (text.isascii() and text.isdecimal() and len(text) < 19):
        raise HttpError(400, "InvalidParametersError", f"'{text[:40]}' is no id of an event")
    return int(text) if text else None


async def _told(events: AsyncIterator[Event]) -> AsyncIterator[bytes]:
    async for each in events:
        yield event(each.kind, dict(each.data), each.id)
