"""All logs of a job as one file, and the key with which a browser fetches files without a header."""

from __future__ import annotations

from ...runfolder.layout import STREAMS
from ...runfolder.log_archive import archive, safe, whole
from ...runfolder.log_search import roles_of
from ..auth import KEY_SECONDS
from ..schemas import TEXT, WHOLE, record
from ..toolkit.http import Stream, json_response
from ..toolkit.routing import KEY, Query, Routes
from .attempts import find_role
from .jobs import full_name
from .logs import attachment, pieces_of, stream_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..toolkit.http import Request, Response

routes = Routes("logs")


@routes(
    "GET",
    "/jobs/{job}/logs.zip",
    auth=KEY,
    query=(
        Query("role", "Only the tasks of this role."),
        Query("stream", "Which stream.", {"type": "string", "enum": list(STREAMS), "default": "all"}),
        Query("key", "In place of a token: the key of the job's logs."),
    ),
    kind="application/zip",
)
async def all_logs(request: Request) -> Response:
    """The logs of all tasks and attempts of a job as one ZIP file."""
    name, asked = full_name(request), request.query.get("role")
    team, caller = request.site.team, request.caller.team
    job = await team.get(caller, name, details=True)
    role = (await find_role(request, name, asked))[0] if asked else None
    title = f"{job.user}~{job.name}"
    made = archive(job.folder, roles_of(await team.plan(caller, name)), title, whole(stream_of(request), role))
    headers = [*attachment(f"{safe(title)}.zip"), (b"cache-control", b"no-store")]
    return Stream(pieces_of(request, made), kind=b"application/zip", headers=headers)


@routes("GET", "/jobs/{job}/logs/key", shape=record(key=TEXT, seconds=WHOLE))
async def log_key(request: Request) -> Response:
    """A key that opens the logs of this job for an hour, in place of a token: for addresses that a browser opens itself."""
    name = full_name(request)
    await request.site.team.get(request.caller.team, name, details=True)
    return json_response({"key": request.site.gate.log_key(request.caller, name), "seconds": KEY_SECONDS})
