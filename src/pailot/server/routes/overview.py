"""The whole at a glance: how many jobs there are of each state, what the machine has, who holds it, who waits."""

from __future__ import annotations

from ...lifecycle.states import FAILED, RUNNING, STOPPED, STOPPING, SUCCEEDED, WAITING
from ..schemas import OBJECT, WHOLE, by_name, many, record
from ..serializers.clusters import cluster_json, resources
from ..serializers.waiting import holder_json, waiting
from ..toolkit.http import json_response
from ..toolkit.routing import Routes
from .jobs import LIST_QUERY, job_query

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...store.server import JobQuery, ServerStore
    from ..toolkit.http import Request, Response

routes = Routes("jobs")
STATES = (WAITING, RUNNING, STOPPING, SUCCEEDED, FAILED, STOPPED)


@routes("GET", "/jobs/counts", query=LIST_QUERY, limit="list", shape=by_name(WHOLE))
async def counts(request: Request) -> Response:
    """How many jobs of each state there are that the query finds."""
    return json_response(await request.site.call(_counts, request.site.store, job_query(request)))


def _counts(store: ServerStore, query: JobQuery) -> dict[str, int]:
    wanted = query.replace(limit=0, offset=0, want_total=True)
    return {state: store.jobs.list(wanted.replace(states=(state,))).total or 0 for state in STATES}


@routes(
    "GET",
    "/capacity",
    shape=record(total=OBJECT, used=OBJECT, virtualClusters=OBJECT, holders=many(OBJECT), waiting=many(OBJECT)),
)
async def capacity(request: Request) -> Response:
    """What the machine has and what is used; the jobs that hold it, and those that wait, as far as the caller may see them."""
    team, caller = request.site.team, request.caller.must()
    report = await team.capacity()
    holders, line = team.line(caller)
    return json_response(
        {
            "node": report.host,
            "total": resources(report.total),
            "used": resources(report.used),
            "virtualClusters": {name: cluster_json(use, report) for name, use in report.clusters.items()},
            "holders": [holder_json(each) for each in holders],
            "waiting": [{**holder_json(each), "reason": waiting(reason, team.holder)} for each, reason in line],
        }
    )
