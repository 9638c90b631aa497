"""What we add: the record, the journal, why, rerun, removal; the state of the server; the document of this API."""

from __future__ import annotations

from ... import __version__
from ...protocol.schema_types import Anything, Record, Text
from ..job_figures import families
from ..openapi import document
from ..schemas import DONE, OBJECT, SENT, STATE, TEXT, a, many, maybe, record
from ..serializers.plans import plan_json
from ..serializers.waiting import waiting
from ..toolkit.bodies import check
from ..toolkit.http import Response, json_response
from ..toolkit.routing import OPEN, TOKEN, Query, Routes
from .jobs import full_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..toolkit.http import Request

routes = Routes("pailot")
_RERUN = Record(
    {
        "name": Text("A name for the new job."),
        "secrets": Record({}, "Secrets in place of those that were kept.", extra=Anything()),
    },
    what="in the request",
)


@routes(
    "GET",
    "/jobs/{job}/record",
    query=(Query("attempt", "Its tasks in this attempt.", {"type": "integer", "minimum": 0}),),
    shape=a("Record"),
)
async def job_record(request: Request) -> Response:
    """A job as `pailot show --json` tells it."""
    attempt = request.number("attempt", 0) if request.query.get("attempt") else None
    return json_response(await request.site.team.record(request.caller.team, full_name(request), attempt))


@routes("GET", "/jobs/{job}/journal", shape=many(a("JournalEntry")))
async def job_journal(request: Request) -> Response:
    """What happened to a job, oldest first, as `pailot events --json` tells it."""
    found = await request.site.team.journal(request.caller.team, full_name(request))
    return json_response([event.to_json() for event in found])


@routes("GET", "/jobs/{job}/plan", shape=OBJECT)
async def job_plan(request: Request) -> Response:
    """What was planned, as `pailot plan --json` tells it."""
    return json_response(plan_json(await request.site.team.plan(request.caller.team, full_name(request))))


@routes("GET", "/jobs/{job}/why", shape=record(state=STATE, lines=many(TEXT), reason=maybe(OBJECT)))
async def job_why(request: Request) -> Response:
    """Why a job is in the state it is in."""
    lines = await request.site.team.why(request.caller.team, full_name(request))
    record = await request.site.team.get(request.caller.team, full_name(request))
    reason = await request.site.team.wait_reason(request.caller.team, full_name(request))
    shown = waiting(reason, request.site.team.holder) if reason is not None else None
    return json_response({"name": record.name, "state": record.state, "lines": lines, "reason": shown})


@routes("POST", "/jobs/{job}/rerun", limit="submit", body=_RERUN, answers={202: "The new job is kept, and will run"}, shape=SENT)
async def rerun(request: Request) -> Response:
    """Run a job again, under a new name."""
    body = check(await request.data() or {}, _RERUN)
    record = await request.site.team.rerun(
        request.caller.must(), full_name(request), name=body.get("name"), secrets=body.get("secrets")
    )
    return json_response({"status": 202, "message": f"Rerun as {record.name}.", "name": record.name}, 202)


@routes("DELETE", "/jobs/{job}", shape=DONE)
async def delete_job(request: Request) -> Response:
    """Forget a finished job, with its logs."""
    name = full_name(request)
    await request.site.team.delete(request.caller.must(), name)
    return json_response({"status": 200, "message": f"Delete job {name} successfully."})


@routes("GET", "/server", auth=TOKEN, shape=record(version=TEXT, engine=TEXT, warnings=many(TEXT)))
async def server(request: Request) -> Response:
    """What users and administrators should know about the server."""
    warnings = await request.site.call(request.site.accounts.warnings)
    return json_response({"version": __version__, "engine": request.site.engine, "warnings": list(warnings)})


@routes("GET", "/openapi.json", "/api/v1/openapi.json", auth=OPEN, shape=OBJECT)
async def openapi(request: Request) -> Response:
    """This API in OpenAPI's form."""
    return json_response(document(request.site.routes))


root = Routes("pailot", base="")
root("GET", "/openapi.json", auth=OPEN, hidden=True, shape=OBJECT)(openapi)


@root("GET", "/metrics", auth=OPEN, kind="text/plain")
async def metrics(request: Request) -> Response:
    """Figures for Prometheus; with a token, those of each virtual cluster as well."""
    named = request.header(b"authorization") is not None  # names of virtual clusters are not for everyone
    if named:
        await request.site.gate.admit(request, TOKEN)
    team = request.site.team
    text = request.site.metrics.text(families(team.figures(), await team.alert_counts(), clusters=named))
    return Response(text.encode(), kind=b"text/plain; version=0.0.4; charset=utf-8")


@root("GET", "/healthz", auth=OPEN, kind="text/plain")
async def healthz(request: Request) -> Response:
    """Whether the server responds."""
    return Response(b"Pailot ready.")


routes.list += root.list
