"""Attempts of jobs and of tasks, and the deprecated form of the former."""

from __future__ import annotations

from ...errors import suggestion
from ..schemas import a, many
from ..serializers.jobs import detail, old_attempt
from ..serializers.openpai_terms import role_name, role_names
from ..serializers.tasks import task_history
from ..toolkit.errors import HttpError
from ..toolkit.http import json_response, text_response
from ..toolkit.routing import Routes
from .jobs import full_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..toolkit.http import Request, Response

routes = Routes("jobs")


def whole(request: Request, name: str) -> int:
    """A whole number in the path."""
    text = request.parameters[name]
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise HttpError(400, "InvalidParametersError", f"'{text[:40]}' should be a whole number")
    return int(text)


async def role_of(request: Request, name: str, index: int = 0) -> str:
    """The role of the job that a path means, by its own name or as OpenPAI spells it; it has a task of that index."""
    return (await find_role(request, name, request.parameters["role"], index))[0]


async def find_role(request: Request, name: str, asked: str, index: int = 0) -> tuple[str, int]:
    """A role of a job by one of its spellings, and how many tasks it has; it has a task of that index."""
    record = await request.site.team.get(request.caller.team, name, details=True)
    known = await request.site.roles(record.id)
    found = [asked] if asked in known else [role for role in known if role_name(role) == asked.lower()]
    if len(found) != 1 or index >= known[found[0]]:
        hint = "" if found else suggestion(asked, known)
        raise HttpError(404, "NoJobError", f"Job {name} has no task {asked}:{index}{hint or '.'}")
    return found[0], known[found[0]]


async def tasks_of(request: Request, name: str, role: str | None, index: int | None = None) -> list[tuple[str, int]]:
    """The tasks of a job, of one of its roles, or one of them; for a caller who may read its logs."""
    if role is not None:
        found, count = await find_role(request, name, role, index or 0)
        return [(found, each) for each in (range(count) if index is None else (index,))]
    record = await request.site.team.get(request.caller.team, name, details=True)
    return [(each, number) for each, count in (await request.site.roles(record.id)).items() for number in range(count)]


@routes("GET", "/jobs/{job}/attempts/{attempt}", answers={200: "The job with the tasks of that attempt"}, shape=a("Job"))
async def job_attempt(request: Request) -> Response:
    """A job with the tasks of one attempt."""
    number = whole(request, "attempt")
    return json_response(detail(await request.site.team.detail(request.caller.team, full_name(request), number)))


@routes("GET", "/jobs/{job}/attempts/{attempt}/taskRoles/{role}/taskIndex/{index}/attempts", shape=a("TaskHistory"))
async def task_attempts(request: Request) -> Response:
    """A task with all its attempts, newest first."""
    name, attempt, index = full_name(request), whole(request, "attempt"), whole(request, "index")
    role = await role_of(request, name, index)
    task, attempts = await request.site.team.task_attempts(request.caller.team, name, attempt, role, index)
    record = await request.site.team.get(request.caller.team, name)
    shown = role_names(await request.site.roles(record.id))[role]
    return json_response(task_history(record.user, record.name, record.id, attempt, shown, task, attempts))


@routes("GET", "/jobs/{job}/job-attempts/healthz", kind="text/plain")
async def attempts_healthz(request: Request) -> Response:
    """Whether old attempts are kept: they are. This is about the server, whatever job the path names."""
    return text_response("ok")


@routes("GET", "/jobs/{job}/job-attempts", shape=many(a("OldAttempt")))
async def old_attempts(request: Request) -> Response:
    """All attempts of a job in a deprecated form: the latest, then the others in their order."""
    team, name = request.site.team, full_name(request)
    latest = await team.detail(request.caller.team, name)
    told = [latest, *[await team.detail(request.caller.team, name, number) for number in range(latest.attempts - 1)]]
    return json_response([old_attempt(each) for each in told])


@routes("GET", "/jobs/{job}/job-attempts/{attempt}", shape=a("OldAttempt"))
async def one_old_attempt(request: Request) -> Response:
    """One attempt of a job in a deprecated form."""
    shown = await request.site.team.detail(request.caller.team, full_name(request), whole(request, "attempt"))
    return json_response(old_attempt(shown))
