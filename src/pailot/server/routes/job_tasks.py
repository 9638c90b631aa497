"""The tasks of a job, page by page, and the times of all of its attempts."""

from __future__ import annotations

from ...jobserver.job_history import events
from ...jobserver.timeline import timeline
from ...lifecycle.states import WAITING
from ..schemas import OBJECT, STATE, TEXT, TIME, WHOLE, by_name, many, maybe, record
from ..serializers.openpai_terms import milliseconds
from ..toolkit.errors import HttpError
from ..toolkit.http import json_response
from ..toolkit.routing import Query, Routes
from .attempts import find_role
from .jobs import full_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...jobserver.models import TaskView
    from ...jobserver.timeline import Span, Timeline
    from ...store.server import JobRecord
    from ..toolkit.http import Request, Response

routes = Routes("jobs")
PAGE, LONGEST_PAGE = 100, 5_000
_INTEGER = {"type": "integer", "minimum": 0}
_TASK = record(
    role=TEXT, index=WHOLE, state=STATE, attempt=WHOLE, started=TIME, ended=TIME, exitCode=maybe(WHOLE), reason=maybe(TEXT),
    host=maybe(TEXT), ports=OBJECT,
)  # fmt: skip
_ATTEMPT = record(attempt=WHOLE, state=STATE, created=TIME, started=TIME, ended=TIME, exitCode=maybe(WHOLE), reason=maybe(TEXT))
_TRY = {**_ATTEMPT, "properties": {**_ATTEMPT["properties"], "role": TEXT, "index": WHOLE, "jobAttempt": WHOLE}}


@routes(
    "GET",
    "/jobs/{job}/tasks",
    query=(
        Query("role", "Only the tasks of this role."),
        Query("state", "Only tasks in these states, separated by commas."),
        Query("attempt", "Of this attempt of the job; the latest by default.", _INTEGER),
        Query("offset", "How many tasks are left out.", _INTEGER),
        Query("limit", f"How many tasks are told; {PAGE} by default.", {**_INTEGER, "maximum": LONGEST_PAGE}),
    ),
    shape=record(totalCount=WHOLE, states=by_name(WHOLE), data=many(_TASK)),
)
async def job_tasks(request: Request) -> Response:
    """The tasks of a job, page by page, and how many of each state there are."""
    asked = request.query
    number = request.number("attempt", 0) if asked.get("attempt") else None
    shown = await request.site.team.detail(request.caller.team, full_name(request), number)
    role = asked.get("role") or ""
    if role and role not in shown.roles:
        raise HttpError(404, "NoJobError", f"Job {full_name(request)} has no role {role[:80]}.")
    states = frozenset(each for each in asked.get("state", "").split(",") if each)
    offset, limit = request.number("offset", 0), request.number("limit", PAGE, most=LONGEST_PAGE)
    tasks = [task for name, each in shown.roles.items() if role in ("", name) for task in each]
    counts: dict[str, int] = {}
    for task in tasks:
        counts[task.state] = counts.get(task.state, 0) + 1
    found = [task for task in tasks if task.state in states] if states else tasks
    page = [_task(task) for task in found[offset : offset + limit]]
    return json_response({"totalCount": len(found), "states": counts, "data": page})


def _task(task: TaskView) -> dict[str, object]:
    return {
        "role": task.role,
        "index": task.index,
        "state": task.state,
        "attempt": task.attempt,
        "started": milliseconds(task.started) if task.state != WAITING else None,
        "ended": milliseconds(task.ended),
        "exitCode": task.exit_code,
        "reason": task.reason,
        "host": task.node or task.host,
        "ports": {label: list(numbers) for label, numbers in task.ports.items()},
        "held": task.held,
    }


@routes(
    "GET",
    "/jobs/{job}/timeline",
    query=(Query("role", "Only the tasks of this role."),),
    shape=record(name=TEXT, state=STATE, submitted=TIME, attempts=many(_ATTEMPT), tasks=many(_TRY)),
)
async def job_timeline(request: Request) -> Response:
    """When each attempt of a job and of its tasks was created, began and ended, and how."""
    name = full_name(request)
    job = await request.site.team.get(request.caller.team, name, details=True)
    instances = await request.site.roles(job.id)
    asked = request.query.get("role")
    role = (await find_role(request, name, asked))[0] if asked else None
    found = await request.site.call(_read, job, instances)
    return json_response(
        {
            "name": job.name,
            "state": job.state,
            "submitted": milliseconds(job.submitted),
            "attempts": [{"attempt": each.job_attempt, **_span(each)} for each in found.attempts],
            "tasks": _tries(found.tasks, role),
        }
    )


def _read(job: JobRecord, instances: dict[str, int]) -> Timeline:
    return timeline(job, instances, events(job))


def _tries(spans: Sequence[Span], role: str | None) -> list[dict[str, object]]:
    return [
        {"role": each.role, "index": each.index, "jobAttempt": each.job_attempt, "attempt": each.attempt, **_span(each)}
        for each in spans
        if role in (None, each.role)
    ]


def _span(span: Span) -> dict[str, object]:
    return {
        "state": span.state,
        "created": milliseconds(span.created),
        "started": milliseconds(span.started),
        "ended": milliseconds(span.ended),
        "exitCode": span.exit_code,
        "reason": span.reason,
    }
