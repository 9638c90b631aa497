"""Job files that are looked at and not submitted: what is wrong with one, what it would run, and when."""

from __future__ import annotations

from ...jobserver.errors import Invalid
from ...protocol.schema import json_schema
from ...protocol.schema_types import Text
from ..schemas import OBJECT, SWITCH, TEXT, a, many, maybe, record
from ..serializers.plans import plan_json
from ..serializers.waiting import waiting
from ..toolkit.errors import HttpError
from ..toolkit.http import json_response
from ..toolkit.routing import TOKEN, Query, Routes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...jobserver.models import Checked
    from ...problem import Problem
    from ..toolkit.http import Request, Response

routes = Routes("jobs")

SUBMIT_QUERY = (
    Query("code", "SHA-256 of a folder of code sent before; tasks start in it."),
    Query("name", "A name in place of the file's."),
    Query("secretsOf", "A job of your own: what is masked in the file is taken from there."),
    Query(
        "after",
        "Jobs, separated by commas, that have to succeed (`JOB`, `JOB:success`) or end (`JOB:end`) before this one starts; "
        "`extras.pailot.after` of the file counts as well.",
    ),
)
_FILE = Text("A job file.")
_KINDS = ("text/yaml", "text/plain")
_CHECKED = record(problems=many(a("Problem")), name=maybe(TEXT), nameTaken=SWITCH, taskRoles=OBJECT)
_PLANNED = record(plan=OBJECT, problems=many(a("Problem")), nameTaken=SWITCH, start=record(kind=TEXT, text=TEXT))


async def job_file(request: Request) -> str:
    """The body as the text of a job file; a key of the query that is not known is refused, so that no wish is overheard."""
    known = [each.name for each in SUBMIT_QUERY]
    unknown = [name for name in request.query if name not in known]
    if unknown:
        words = f"'{unknown[0][:40]}' is not known in the query; there is {', '.join(known)}"
        raise HttpError(400, "InvalidParametersError", f"{words}. POST /api/v2/validate and /api/v2/plan submit nothing.")
    kind = (request.header(b"content-type") or "").partition(";")[0].strip().lower()
    text = await request.text()
    if kind == "application/x-www-form-urlencoded":
        raise HttpError(400, "InvalidProtocolError", "a job file is sent as text/yaml, not as a form")
    if not text.strip():
        raise HttpError(400, "InvalidProtocolError", "the body is empty; it should be a job file")
    return text


@routes("POST", "/validate", limit="check", body=_FILE, body_kinds=_KINDS, query=SUBMIT_QUERY, shape=_CHECKED)
async def validate(request: Request) -> Response:
    """Everything that is wrong with a job file, as `pailot validate --json`; nothing is submitted."""
    try:
        checked = await _checked(request)
    except Invalid as error:
        problems = [each.to_marks() for each in error.problems]
        return json_response({"problems": problems, "name": None, "nameTaken": False, "taskRoles": {}})
    plan = checked.prepared.plan
    roles = {name: {"instances": role.instances} for name, role in plan.roles.items()}
    return json_response({"problems": _warnings(checked), "name": plan.name, "nameTaken": checked.name_taken, "taskRoles": roles})


@routes("POST", "/plan", limit="check", body=_FILE, body_kinds=_KINDS, query=SUBMIT_QUERY, shape=_PLANNED)
async def plan(request: Request) -> Response:
    """What a job file would run, as `pailot plan --json`, and what it would wait for; nothing is submitted."""
    checked = await _checked(request)
    start = waiting(checked.reason, request.site.team.holder)
    body = {
        "plan": plan_json(checked.prepared.kept.plan),
        "problems": _warnings(checked),
        "nameTaken": checked.name_taken,
        "start": start,
    }
    return json_response(body)


@routes("GET", "/schema", auth=TOKEN, shape=OBJECT)
async def schema(request: Request) -> Response:
    """The JSON Schema of a job file, as `pailot schema`, for editors."""
    return json_response(await request.site.call(json_schema))


async def _checked(request: Request) -> Checked:
    text = await job_file(request)
    asked = {each: request.query.get(each) or None for each in ("code", "name")}
    secrets_of = request.query.get("secretsOf") or None
    return await request.site.team.check(request.caller.must(), text, secrets_of=secrets_of, **asked)


def _warnings(checked: Checked) -> list[dict[str, object]]:
    found: tuple[Problem, ...] = checked.prepared.plan.warnings
    return [each.to_marks() for each in found]
