"""The machine as a cluster's administrators look at it: nodes, pods, alerts."""

from __future__ import annotations

import time

from ..schemas import a, many
from ..serializers.alerts import alert_json
from ..serializers.kubernetes import Selector, node_list, pod_list
from ..toolkit.errors import HttpError
from ..toolkit.http import JSON, Response, json_response, to_json
from ..toolkit.routing import TOKEN, TOKEN_ADMIN, Query, Routes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..toolkit.http import Request

routes = Routes("machine")
_POD_QUERY = (
    Query("namespace", "All are in `default`."),
    Query("labelSelector", "Only pods with such labels, in Kubernetes' notation: `userName=ann,virtualCluster!=lab`."),
)


@routes("GET", "/kubernetes/nodes", "/api/v1/kubernetes/nodes", auth=TOKEN_ADMIN, shape=a("KubernetesList"))
async def nodes(request: Request) -> Response:
    """The machine as a list of Kubernetes nodes."""
    site = request.site
    alerts = [each.name for each in await site.team.alerts(request.caller.must())]
    return json_response(node_list(await site.team.capacity(), site.node, alerts, site.metrics.started))


@routes("GET", "/kubernetes/pods", "/api/v1/kubernetes/pods", auth=TOKEN_ADMIN, query=_POD_QUERY, shape=a("KubernetesList"))
async def pods(request: Request) -> Response:
    """The tasks of all jobs that are not over as a list of Kubernetes pods."""
    try:
        selector = Selector(request.query.get("labelSelector", ""))
    except ValueError as error:
        raise HttpError(400, "InvalidParametersError", str(error)) from None
    standing = await request.site.team.standing()
    namespace = request.query.get("namespace", "")
    return Response(await request.site.call(lambda: to_json(pod_list(standing, selector, namespace))), kind=JSON)


@routes("GET", "/alerts", auth=TOKEN, shape=many(a("Alert")))
async def alerts(request: Request) -> Response:
    """What is wrong now, in Alertmanager's form: all of it for administrators, what concerns their jobs for others."""
    found = await request.site.team.alerts(request.caller.must())
    now = time.time()
    return json_response([alert_json(each, request.site.node, now) for each in found])
