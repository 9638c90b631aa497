"""Version 1, for luigi, NNI, the old Python SDK and the VS Code client: jobs with and without a user in their path."""

from __future__ import annotations

from ...protocol.v1 import job_shape
from ..schemas import MESSAGE, OBJECT, TEXT, a, many, record
from ..serializers.v1 import v1_detail, v1_item
from ..toolkit.bodies import decode, parse_body
from ..toolkit.errors import HttpError
from ..toolkit.http import YAML, Response, json_response, to_json
from ..toolkit.routing import READER, Query, Routes
from .jobs import EXECUTION, config_json, execute, job_query

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ...store.server import JobQuery, ServerStore
    from ..toolkit.http import Request

routes = Routes("version 1", "/api/v1")
_SENT = {202: "The job is kept, and will run"}
_PAGE = 1000
_OBSOLETE = b"killAllOnCompletedTaskNumber is obsolete and ignored; say it with minSucceededTaskCount"
_V1_KINDS = ("application/json",)


async def _name(request: Request) -> str:
    """The full name of the job that a path means; without a user the caller's job, or else the newest of that name."""
    job = request.parameters["job"]
    user = request.parameters.get("user")
    if user:
        return f"{user}~{job}"
    if "~" in job:
        return job
    own = request.caller.username
    if own:
        mine = await request.site.call(request.site.store.jobs.by_name, own, job)
        if mine is not None:
            return f"{own}~{job}"
    found = await request.site.call(_newest, request.site.store, job)
    if found is None:
        raise HttpError(404, "NoJobError", f"Job {job} is not found.")
    return found


def _newest(store: ServerStore, name: str) -> str | None:
    found = store.jobs.newest(name)
    return f"{found.user}~{found.name}" if found else None


@routes("GET", "/jobs", query=(Query("username", "Only this user's."),), auth=READER, limit="list", shape=many(OBJECT))
async def v1_jobs(request: Request) -> Response:
    """List jobs, the newest first."""
    return await _list(request, job_query(request))


@routes("GET", "/user/{user}/jobs", auth=READER, limit="list", shape=many(OBJECT))
async def v1_user_jobs(request: Request) -> Response:
    """List a user's jobs."""
    return await _list(request, job_query(request).replace(users=(request.parameters["user"],)))


async def _list(request: Request, query: JobQuery) -> Response:
    def listed() -> bytes:
        page = request.site.store.jobs.list(query)
        return to_json([v1_item(job, request.site.succeeded) for job in page.rows])

    return Response(await request.site.call(listed), kind=b"application/json; charset=utf-8")


@routes("POST", "/jobs", limit="submit", body=job_shape(), body_kinds=_V1_KINDS, answers=_SENT, shape=MESSAGE)
async def v1_submit(request: Request) -> Response:
    """Submit a job of version 1 (JSON or a nested form) or 2 (YAML)."""
    return await _submit(request, "")


@routes("POST", "/user/{user}/jobs", limit="submit", body=job_shape(), body_kinds=_V1_KINDS, answers=_SENT, shape=MESSAGE)
async def v1_user_submit(request: Request) -> Response:
    """Submit a job for oneself."""
    return await _submit(request, "")


@routes(
    "PUT",
    "/jobs/{job}",
    "/api/v1/user/{user}/jobs/{job}",
    limit="submit",
    body=job_shape(),
    body_kinds=_V1_KINDS,
    answers=_SENT,
    shape=MESSAGE,
)
async def v1_put(request: Request) -> Response:
    """Submit a job under the name in the path."""
    return await _submit(request, request.parameters["job"])


async def _submit(request: Request, name: str) -> Response:
    user = request.parameters.get("user")
    if user and user != request.caller.username:
        raise HttpError(403, "ForbiddenUserError", f"{request.caller.username} submits jobs as itself only, not as {user}.")
    content_type = request.header(b"content-type") or ""
    body = await request.body()
    kind = content_type.partition(";")[0].strip().lower()
    if kind == "application/x-www-form-urlencoded":
        text = to_json(_numbers(parse_body(body, content_type) or {})).decode()
    else:
        text = decode(body, content_type)
    if not text.strip():
        raise HttpError(400, "InvalidParametersError", "the body is empty; it should be a job")
    record = await request.site.team.submit(request.caller.must(), text, name=name or None)
    request.named = f"{record.user}~{record.name}"
    message = {"message": f"update job {record.name} successfully", "name": record.name}
    return json_response(message, 202, [(b"x-warning", _OBSOLETE)] if '"killAllOnCompletedTaskNumber"' in text else None)


_NUMBERS = frozenset(
    "retryCount killAllOnCompletedTaskNumber taskNumber cpuNumber memoryMB shmMB gpuNumber beginAt portNumber "
    "minFailedTaskCount minSucceededTaskCount".split()
)


def _numbers(value: Any) -> Any:
    """A form holds texts only; where a job has numbers they are read as such, and an empty one is left out."""
    if isinstance(value, list):
        return [_numbers(item) for item in value]
    if not isinstance(value, dict):
        return value
    told = {}
    for key, item in value.items():
        if key in _NUMBERS and isinstance(item, str):
            if item in ("", "null"):
                continue
            digits = item.removeprefix("-")
            item = int(item) if digits.isascii() and digits.isdecimal() and len(digits) < 16 else item
        told[key] = _numbers(item)
    return told


@routes("GET", "/jobs/{job}", auth=READER, shape=record(name=TEXT, jobStatus=OBJECT, taskRoles=a("TaskRoles")))
async def v1_job(request: Request) -> Response:
    """A job with its tasks."""
    shown = await request.site.team.detail(request.caller.team, await _name(request))
    return json_response(v1_detail(shown, request.site.succeeded))


routes("GET", "/user/{user}/jobs/{job}", auth=READER, shape=record(name=TEXT, jobStatus=OBJECT, taskRoles=a("TaskRoles")))(v1_job)


async def _config(request: Request) -> Response:
    """The job file of a job, its secrets masked."""
    text = await request.site.team.config(request.caller.team, await _name(request))
    return Response(await request.site.call(config_json, text, modern=False), kind=YAML)


_CONFIG_PATHS = (
    "/jobs/{job}/config",
    "/api/v1/user/{user}/jobs/{job}/config",
    "/api/v1/jobs/{user}/jobs/{job}/config",  # where OpenPAI's JavaScript SDK looks
)
routes("GET", *_CONFIG_PATHS, auth=READER, kind="text/yaml", shape=OBJECT)(_config)


async def _ssh(request: Request) -> Response:
    """SSH information; there is none."""
    name = await _name(request)
    await request.site.team.get(request.caller.team, name)
    raise HttpError(404, "NoJobSshInfoError", f"SSH info of job {name} is not found.")


routes("GET", "/jobs/{job}/ssh", "/api/v1/user/{user}/jobs/{job}/ssh", auth=READER, answers={404: "None"})(_ssh)


async def _delete(request: Request) -> Response:
    """Stop a job if it runs; forget it if it is over."""
    name = await _name(request)
    record = await request.site.team.get(request.caller.must(), name)
    if record.ended is None:
        await request.site.team.stop(request.caller.must(), name)
    else:
        await request.site.team.delete(request.caller.must(), name)
    return json_response({"message": f"deleted job {name.partition('~')[2]} successfully"}, 202)


routes("DELETE", "/jobs/{job}", "/api/v1/user/{user}/jobs/{job}", answers={202: "It is gone, or stopping"}, shape=MESSAGE)(
    _delete
)


async def _execute(request: Request) -> Response:
    """Stop a job."""
    name = await _name(request)
    await execute(request, name)
    return json_response({"message": f"execute job {name.partition('~')[2]} successfully"}, 202)


routes(
    "PUT",
    "/jobs/{job}/executionType",
    "/api/v1/user/{user}/jobs/{job}/executionType",
    body=EXECUTION,
    answers={202: "Told"},
    shape=MESSAGE,
)(_execute)
