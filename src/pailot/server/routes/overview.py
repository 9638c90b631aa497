"""The whole at a glance: how many jobs there are of each state, what the machine has, who holds it, who waits."""

from __future__ import annotations

import re

from ...lifecycle.states import FAILED, RUNNING, STOPPED, STOPPING, SUCCEEDED, WAITING
from ..schemas import NUMBER, OBJECT, WHOLE, by_name, many, record
from ..serializers.clusters import cluster_json, resources
from ..serializers.waiting import holder_json, waiting
from ..toolkit.errors import HttpError
from ..toolkit.http import json_response
from ..toolkit.routing import Query, Routes
from .jobs import LIST_QUERY, job_query

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...jobserver.capacity_history import Minute
    from ...store.server import JobQuery, ServerStore
    from ..toolkit.http import Request, Response

routes = Routes("jobs")
_COLUMN = many(NUMBER)
_HISTORY = record(at=many(WHOLE), cpus=_COLUMN, memoryMB=_COLUMN, gpus=_COLUMN, running=_COLUMN, waiting=_COLUMN)
STATES = (WAITING, RUNNING, STOPPING, SUCCEEDED, FAILED, STOPPED)


@routes("GET", "/jobs/counts", query=LIST_QUERY, limit="list", shape=by_name(WHOLE))
async def counts(request: Request) -> Response:
    """How many jobs of each state there are that the query finds."""
    return json_response(await request.site.call(_counts, request.site.store, job_query(request)))


def _counts(store: ServerStore, query: JobQuery) -> dict[str, int]:
    wanted = query.replace(limit=0, offset=0, want_total=True)
    return {state: store.jobs.list(wanted.replace(states=(state,))).total or 0 for state in STATES}


LONGEST_HISTORY_SECONDS = 86_400
_AGO = re.compile(r"([0-9]{1,5})([mh])")


@routes(
    "GET",
    "/capacity",
    query=(Query("history", "Also what was in use over this time, such as `24h` or `90m`; 24 hours at most."),),
    shape=record(
        history_=_HISTORY, total=OBJECT, used=OBJECT, virtualClusters=OBJECT, holders=many(OBJECT), waiting=many(OBJECT)
    ),
)
async def capacity(request: Request) -> Response:
    """What the machine has and what is used; the jobs that hold it, and those that wait, as far as the caller may see them."""
    team, caller = request.site.team, request.caller.must()
    seconds = _seconds(request.query.get("history", ""))
    report = await team.capacity()
    holders, line = team.line(caller)
    past = await request.site.call(team.history.read, seconds) if seconds else []
    return json_response(
        {
            **({"history": _history(past)} if seconds else {}),
            "node": report.host,
            "total": resources(report.total),
            "used": resources(report.used),
            "virtualClusters": {name: cluster_json(use, report) for name, use in report.clusters.items()},
            "holders": [holder_json(each) for each in holders],
            "waiting": [{**holder_json(each), "reason": waiting(reason, team.holder)} for each, reason in line],
        }
    )


def _seconds(text: str) -> int:
    found = _AGO.fullmatch(text)
    if not text:
        return 0
    seconds = int(found[1]) * (3600 if found[2] == "h" else 60) if found else 0
    if not 0 < seconds <= LONGEST_HISTORY_SECONDS:
        raise HttpError(
            400, "InvalidParametersError", f"'history' should be a time up to 24h, such as 24h or 90m, is {text[:40]!r}"
        )
    return seconds


def _history(minutes: Sequence[Minute]) -> dict[str, list[float]]:
    """Columns of equal length, a minute each."""
    return {
        "at": [each.at * 1000 for each in minutes],
        "cpus": [round(each.use.cpus, 3) for each in minutes],
        "memoryMB": [round(each.use.memory_mb, 1) for each in minutes],
        "gpus": [round(each.use.gpus, 3) for each in minutes],
        "running": [round(each.use.running, 2) for each in minutes],
        "waiting": [round(each.use.waiting, 2) for each in minutes],
    }
