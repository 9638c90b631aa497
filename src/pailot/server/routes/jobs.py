"""Jobs: submit, list, look, stop, tag."""

from __future__ import annotations

import hashlib
import json

from ...protocol.convert import to_v2
from ...protocol.schema_types import Flag, Record, Text
from ...protocol.v1 import V1Document, looks_like_v1
from ...protocol.yaml import YamlError, parse
from ...store.server import ORDERS, JobQuery
from ...userruns.queries import held_tasks, listed
from ...userruns.run_folder import JobFolder
from ..schemas import DONE, JOB_LIST, OBJECT, SENT, a
from ..serializers import jobs as answers
from ..serializers.events import events
from ..toolkit.bodies import check
from ..toolkit.errors import HttpError
from ..toolkit.http import JSON, YAML, Response, json_response, to_json
from ..toolkit.routing import Query, Routes
from .checking import SUBMIT_QUERY, job_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from ...store.server import JobPage, JobRecord, ServerStore
    from ..context import Site
    from ..toolkit.http import Request

routes = Routes("jobs")

LIST_LIMIT, LIST_MOST = 5000, 50000
_MANY_TASKS = 200
"""The detail of a job with more is written beside the loop."""
_INTEGER = {"type": "integer", "minimum": 0}
LIST_QUERY = (
    Query("username", "Users, separated by commas."),
    Query("vc", "Virtual clusters, separated by commas."),
    Query("state", "States, separated by commas."),
    Query("keyword", "A part of the name of job, user or virtual cluster."),
    Query("tagsContain", "Jobs with any of these tags."),
    Query("tagsNotContain", "Jobs with none of these tags."),
    Query("labels", 'Jobs with all of these labels, as JSON: `{"key": "value"}`.'),
    Query("jobPriority", "Priority classes, separated by commas; `default` are jobs that name none."),
    Query("order", f"`field,ASC` or `field,DESC`; fields are {', '.join(ORDERS)}."),
    Query("offset", "How many jobs are left out.", _INTEGER),
    Query(
        "before", "Only jobs that follow the one with this `cursor` (see `format=row`); in the order submissionTime.", _INTEGER
    ),
    Query("limit", f"How many jobs are told; {LIST_LIMIT} by default.", {**_INTEGER, "maximum": LIST_MOST}),
    Query(
        "format",
        "With `ps`, what `pailot ps --json` tells of each job; with `row`, what the web page shows of it.",
        {"type": "string", "enum": ["ps", "row"]},
    ),
    Query("withTotalCount", "Answers `{totalCount, data}` instead of a list.", {"type": "boolean"}),
)
EXECUTION = Record(
    {
        "value": Text("What the job is to do.", choices=("START", "STOP")),
        "now": Flag("With STOP: kill it at once, without grace."),
    },
    required=("value",),
    what="in the request",
)
_TAG = Record({"value": Text("The tag.", shortest=1, longest=255)}, required=("value",), what="in the request")


def full_name(request: Request) -> str:
    """The job that the path names; a bare name is the caller's."""
    name = request.parameters["job"]
    return name if "~" in name else f"{request.caller.username}~{name}"


def _as_run(job: JobRecord) -> dict[str, object]:
    held = held_tasks(JobFolder(job.folder)) if job.ended is None and job.more.get("hold") else 0
    return listed(job, held)


@routes("GET", "/jobs", query=LIST_QUERY, limit="list", answers={200: "Jobs"}, shape=JOB_LIST)
async def list_jobs(request: Request) -> Response:
    """List jobs, the newest first."""
    query = job_query(request)
    with_total = request.query.get("withTotalCount", "").lower() == "true"
    query = query.replace(want_total=with_total)
    if request.query.get("format") == "row":
        page, states = await request.site.call(_page, request.site, query)
        rows = [
            answers.row(each, request.site.team.reason_of(each.id), counted, cursor)
            for each, counted, cursor in zip(page.rows, states, page.cursors, strict=True)
        ]
        return unless_known(request, to_json({"totalCount": page.total, "data": rows} if with_total else rows))
    item = _as_run if request.query.get("format") == "ps" else answers.list_item
    return Response(await request.site.call(_listed, request.site.store, query, item), kind=JSON)


def _page(site: Site, query: JobQuery) -> tuple[JobPage, list[Mapping[str, int] | None]]:
    page = site.store.jobs.list(query)
    return page, [site.team.task_states(each) for each in page.rows]


def unless_known(request: Request, body: bytes) -> Response:
    """JSON that a client may have already: 304 without it, if it names the same mark."""
    mark = f'W/"{hashlib.sha256(body).hexdigest()[:24]}"'
    headers = [(b"etag", mark.encode()), (b"cache-control", b"private, no-cache")]
    if mark in (request.header(b"if-none-match") or ""):
        unchanged = Response(b"", 304)
        unchanged.headers = headers
        return unchanged
    return Response(body, kind=JSON, headers=headers)


def job_query(request: Request) -> JobQuery:
    """What the query of a list asks for; an order that makes no sense is the default one, as with OpenPAI."""
    asked = request.query
    field, _, way = asked.get("order", "").partition(",")
    order, descending = (field, way != "ASC") if field in ORDERS and way in ("ASC", "DESC") else ("submissionTime", True)
    return JobQuery(
        users=_words(asked.get("username", "")),
        vcs=_words(asked.get("vc", "")),
        states=_words(asked.get("state", "")),
        priorities=tuple(None if each == "default" else each for each in _words(asked.get("jobPriority", ""))),
        tags_contain=_words(asked.get("tagsContain", "")),
        tags_not_contain=_words(asked.get("tagsNotContain", "")),
        labels=_labels(asked.get("labels", "")),
        keyword=_plain(asked.get("keyword", "")),
        order=order,
        descending=descending,
        offset=request.number("offset", 0),
        limit=request.number("limit", LIST_LIMIT, most=LIST_MOST),
        before=_cursor(request, order),
    )


def _cursor(request: Request, order: str) -> int | None:
    if not request.query.get("before"):
        return None
    if order != "submissionTime":
        raise HttpError(400, "InvalidParametersError", "'before' goes with the order submissionTime only")
    return request.number("before", 0)


def _words(text: str) -> tuple[str, ...]:
    words = tuple(part for part in _plain(text).split(",") if part)
    if len(words) > 1000:
        raise HttpError(400, "InvalidParametersError", f"{len(words)} values in one list are too many")
    return words


def _labels(text: str) -> dict[str, str]:
    try:
        found = json.loads(text or "{}")
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
        raise HttpError(400, "InvalidParametersError", 'labels should be a JSON mapping of texts to texts: {"key": "value"}')
    return found


def _plain(text: str) -> str:
    if "\x00" in text:
        raise HttpError(400, "InvalidParametersError", "the query holds a character that no name has")
    return text


def _listed(store: ServerStore, query: JobQuery, item: Callable[[JobRecord], dict[str, object]]) -> bytes:
    page = store.jobs.list(query)
    items = [item(job) for job in page.rows]
    return to_json({"totalCount": page.total, "data": items} if query.want_total else items)


@routes(
    "POST",
    "/jobs",
    limit="submit",
    body=Text("A job file."),
    body_kinds=("text/yaml", "text/plain"),
    query=SUBMIT_QUERY,
    answers={202: "The job is kept, and will run"},
    shape=SENT,
)
async def submit(request: Request) -> Response:
    """Submit a job file."""
    text = await job_file(request)
    code, name, secrets_of = (request.query.get(each) or None for each in ("code", "name", "secretsOf"))
    after = _words(request.query.get("after", ""))
    record = await request.site.team.submit(request.caller.must(), text, code=code, name=name, secrets_of=secrets_of, after=after)
    request.named = f"{record.user}~{record.name}"
    message = f"Update job {record.name} for user {record.user} successfully."
    warnings = request.site.team.warnings(record)
    told = {"status": 202, "message": message, "name": record.name}
    return json_response({**told, "warnings": warnings} if warnings else told, 202)


@routes("GET", "/jobs/{job}", answers={200: "The job with the tasks of its latest attempt"}, shape=a("Job"))
async def job_detail(request: Request) -> Response:
    """A job with its tasks."""
    shown = await request.site.team.detail(request.caller.team, full_name(request))
    if shown.record.tasks > _MANY_TASKS:
        return Response(await request.site.call(answers.detail_json, shown), kind=JSON)
    return Response(answers.detail_json(shown), kind=JSON)


@routes("PUT", "/jobs/{job}/executionType", body=EXECUTION, answers={202: "The job was told"}, shape=DONE)
async def execution_type(request: Request) -> Response:
    """Stop a job."""
    await execute(request, full_name(request))
    return json_response({"status": 202, "message": f"Execute job {full_name(request)} successfully."}, 202)


async def execute(request: Request, name: str) -> None:
    """Do what the body says."""
    body = check(await request.data(), EXECUTION)
    if body["value"] == "STOP":
        await request.site.team.stop(request.caller.must(), name, now=bool(body.get("now")))
    else:  # a job that was not stopped goes on anyway; one that was is final, as with OpenPAI
        await request.site.team.check_change(request.caller.must(), name)


_CONFIG_QUERY = (Query("format", "With `text`, the file as it was written.", {"type": "string", "enum": ["text"]}),)


@routes(
    "GET",
    "/jobs/{job}/config",
    query=_CONFIG_QUERY,
    kind="text/yaml",
    answers={200: "The job file, its secrets masked"},
    shape=OBJECT,
)
async def job_config(request: Request) -> Response:
    """The job file of a job, its secrets masked."""
    text = await request.site.team.config(request.caller.team, full_name(request))
    if request.query.get("format") == "text":
        return Response(text.encode("utf-8", "replace"), kind=YAML)
    return Response(await request.site.call(config_json, text, modern=True), kind=YAML)


def config_json(text: str, *, modern: bool) -> bytes:
    """A job file as OpenPAI returns it: JSON, which is YAML as well. A job of version 1 is shown in its own form."""
    try:
        document = parse(text)
    except YamlError as error:
        raise HttpError(404, "NoJobConfigError", f"the job file cannot be read any more: {error.message}") from None
    root: Any = document.root
    if modern and looks_like_v1(root):
        root = to_v2(V1Document(document.text, root, document.ambiguous))[0] or root
    return to_json(_plain_values(root))


def _plain_values(value: Any) -> Any:
    """The values of a YAML document in those of JSON."""
    if isinstance(value, dict):
        return {str(key): _plain_values(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain_values(item) for item in value]
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return None
    if value is None or isinstance(value, str | int | float):
        return value
    return str(getattr(value, "source", value))


@routes("GET", "/jobs/{job}/ssh", answers={404: "There is never such information"})
async def job_ssh(request: Request) -> Response:
    """OpenPAI's address for SSH; it has none to tell, and neither have we."""
    await request.site.team.get(request.caller.team, full_name(request))
    raise HttpError(404, "NoJobSshInfoError", f"SSH info of job {full_name(request)} is not found.")


@routes("PUT", "/jobs/{job}/tag", body=_TAG, shape=DONE)
async def add_tag(request: Request) -> Response:
    """Give a job a tag."""
    tag = check(await request.data(), _TAG)["value"]
    await request.site.team.add_tag(request.caller.must(), full_name(request), tag)
    return json_response({"status": 200, "message": f"Add tag {tag} for job {full_name(request)} successfully."})


@routes("DELETE", "/jobs/{job}/tag", body=_TAG, shape=DONE)
async def remove_tag(request: Request) -> Response:
    """Take a tag from a job."""
    tag = check(await request.data() or {"value": request.query.get("value")}, _TAG)["value"]
    await request.site.team.remove_tag(request.caller.must(), full_name(request), tag)
    return json_response({"status": 200, "message": f"Delete tag {tag} from job {full_name(request)} successfully."})


@routes(
    "GET",
    "/jobs/{job}/events",
    query=(Query("type", "Only these.", {"type": "string", "enum": ["Normal", "Warning"]}),),
    shape=a("Events"),
)
async def job_events(request: Request) -> Response:
    """What happened to a job, in the form of Kubernetes events."""
    kind = request.query.get("type", "")
    if kind not in ("", "Normal", "Warning"):
        raise HttpError(400, "InvalidParametersError", f"'type' should be Normal or Warning, is {kind[:40]!r}")
    name = full_name(request)
    journal = await request.site.team.journal(request.caller.team, name)
    user, _, job = name.partition("~")
    return json_response(events(user, job, journal, request.site.node, kind))
