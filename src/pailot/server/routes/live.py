"""Live: states of jobs as server-sent events, with ids to go on from."""

from __future__ import annotations

from ..toolkit.errors import HttpError
from ..toolkit.routing import Query, Routes
from ..toolkit.sse import event, last_id, stream
from .jobs import full_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from ...jobserver.models import Event
    from ..toolkit.http import Request, Response

routes = Routes("live")
_AFTER = (Query("after", "The id of the last event seen; the header Last-Event-ID does the same."),)


@routes("GET", "/jobs/{job}/live", query=_AFTER, kind="text/event-stream")
async def live_job(request: Request) -> Response:
    """A job as it is, then what happens to it, to its end."""
    # Looked at first, so that what cannot be followed is an answer and no broken stream.
    await request.site.team.get(request.caller.team, full_name(request), details=True)
    return stream(request, _told(request.site.team.subscribe_job(request.caller.team, full_name(request), _after(request))))


@routes("GET", "/live/jobs", query=_AFTER, kind="text/event-stream")
async def live_jobs(request: Request) -> Response:
    """Changes of the states of all jobs that the caller may see."""
    return stream(request, _told(request.site.team.subscribe_jobs(request.caller.must(), _after(request))))


def _after(request: Request) -> int | None:
    text = last_id(request)
    if text and not (text.isascii() and text.isdecimal() and len(text) < 19):
        raise HttpError(400, "InvalidParametersError", f"'{text[:40]}' is no id of an event")
    return int(text) if text else None


async def _told(events: AsyncIterator[Event]) -> AsyncIterator[bytes]:
    async for each in events:
        yield event(each.kind, dict(each.data), each.id)
