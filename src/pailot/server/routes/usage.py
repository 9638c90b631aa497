"""What tasks use and used: processor, memory, processes, GPUs."""

from __future__ import annotations

from ...userruns.task_usage import MAX_POINTS, POINTS
from ..schemas import a, many, record
from ..toolkit.http import Response, json_response
from ..toolkit.routing import Query, Routes
from .attempts import role_of, whole
from .jobs import full_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..toolkit.http import Request

routes = Routes("usage")
_ATTEMPT = Query("attempt", "The attempt of the job; the latest by default.", {"type": "integer", "minimum": 0})


@routes("GET", "/jobs/{job}/usage", query=(_ATTEMPT,), shape=record(tasks=many(a("TaskUsageNow"))))
async def job_usage(request: Request) -> Response:
    """What each task of a job uses now, its peaks, and what it asked for."""
    attempt = request.number("attempt", 0) if request.query.get("attempt") else None
    return json_response({"tasks": await request.site.team.usage(request.caller.team, full_name(request), attempt)})


@routes(
    "GET",
    "/jobs/{job}/usage/{role}/{index}",
    query=(
        _ATTEMPT,
        Query("points", "About how many points to tell.", {"type": "integer", "minimum": 2, "maximum": MAX_POINTS}),
    ),
    shape=a("TaskUsage"),
)
async def task_usage(request: Request) -> Response:
    """What a task used over time, each of its attempts apart."""
    name, index = full_name(request), whole(request, "index")
    role = await role_of(request, name, index)
    attempt = request.number("attempt", 0) if request.query.get("attempt") else None
    points = request.number("points", POINTS, 2, MAX_POINTS)
    return json_response(await request.site.team.task_usage(request.caller.team, name, role, index, attempt, points))
