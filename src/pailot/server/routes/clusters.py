"""Virtual clusters and kinds of cells."""

from __future__ import annotations

import re

from ...jobserver.accounts import DEFAULT_CLUSTER
from ...jobserver.models import ClusterRules
from ...protocol.schema_types import Number, Record, Text, Whole
from ...settings import MOST
from ..bootstrap import shares_of
from ..schemas import MESSAGE, OBJECT, SKUS, a, by_name
from ..serializers.clusters import cluster_json, sku_json
from ..toolkit.bodies import check
from ..toolkit.errors import HttpError
from ..toolkit.http import json_response
from ..toolkit.routing import ADMIN, READER, TOKEN, Query, Routes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ...jobserver.models import CapacityReport, Shares
    from ..toolkit.http import Request, Response

routes = Routes("virtual clusters")
_AMOUNTS = {"cpu": "cpus", "memory": "memory_mb", "gpu": "gpus"}
_RESOURCES = Record({"cpu": Number(least=0), "memory": Number("In MB.", least=0), "gpu": Whole(least=0)}, what="in the resources")
_CLUSTER = Record(
    {
        "vcCapacity": Number("Percent of the machine that is kept for it.", least=0),
        "vcMaxCapacity": Number("Told as set, and not used: what others leave may be borrowed.", least=0),
        "resourcesGuaranteed": _RESOURCES,
        "userLimits": Record(
            {
                "jobs": Whole("Running jobs.", least=0, most=MOST, nullable=True),
                "gpus": Whole("GPUs in use.", least=0, most=MOST, nullable=True),
            },
            "What each user may have of it at once; null is no limit.",
            what="in 'userLimits'",
        ),
        "description": Text(),
        "externalName": Text(),
    },
    what="in the request",
)


@routes("GET", "/virtual-clusters", query=(Query("nodes", "GPUs by node instead."),), auth=TOKEN, shape=OBJECT)
async def virtual_clusters(request: Request) -> Response:
    """All virtual clusters: what is kept for them, what they use."""
    report = await request.site.team.capacity()
    if "nodes" in request.query:
        used, total = int(report.used.gpus), int(report.total.gpus)
        node = report.host or request.site.node
        return json_response({node: {"gpuUsed": used, "gpuAvailable": max(0, total - used), "gpuTotal": total}})
    return json_response({name: cluster_json(use, report) for name, use in report.clusters.items()})


@routes("GET", "/api/v1/virtual-clusters", auth=READER, shape=by_name(a("VirtualCluster")))
async def v1_virtual_clusters(request: Request) -> Response:
    """All virtual clusters, as version 1 tells them."""
    report = await request.site.team.capacity()
    return json_response({name: cluster_json(use, report) for name, use in report.clusters.items()})


@routes("GET", "/api/v1/virtual-clusters/{cluster}", auth=READER, shape=a("VirtualCluster"))
async def v1_virtual_cluster(request: Request) -> Response:
    """A virtual cluster, as version 1 tells it."""
    return await virtual_cluster(request)


@routes("GET", "/virtual-clusters/{cluster}", auth=TOKEN, shape=a("VirtualCluster"))
async def virtual_cluster(request: Request) -> Response:
    """A virtual cluster."""
    name = _name(request)
    report = await request.site.team.capacity()
    if name not in report.clusters:
        raise _missing(name)
    return json_response(cluster_json(report.clusters[name], report))


@routes(
    "PUT",
    "/virtual-clusters/{cluster}",
    auth=ADMIN,
    body=_CLUSTER,
    answers={201: "The virtual cluster is as asked for"},
    shape=MESSAGE,
)
async def put_virtual_cluster(request: Request) -> Response:
    """Make or change a virtual cluster: the share of the machine that is kept for its jobs, and what each user may have of it.

    What the request does not name stays as it was.
    """
    name = _name(request)
    body = check(await request.data() or {}, _CLUSTER)
    if name == DEFAULT_CLUSTER and ("vcCapacity" in body or "resourcesGuaranteed" in body):
        raise HttpError(403, "ForbiddenUserError", "the virtual cluster default has what is left of the machine")
    if float(body.get("vcCapacity", 0)) > 100:
        raise HttpError(400, "InvalidParametersError", "'vcCapacity' is percent of the machine, at most 100")
    report = await request.site.team.capacity()
    before = report.clusters[name].rules if name in report.clusters else ClusterRules()
    rules = _changed(before, body, report.total)
    _check_room(report, name, rules)
    await request.site.call(request.site.store.accounts.put_cluster, name, rules.kept())
    await _clusters_changed(request)
    capacity = cluster_json((changed := await request.site.team.capacity()).clusters[name], changed)["capacity"]
    return json_response({"message": f"Update vc: {name} to capacity: {capacity:g} successfully."}, 201)


def _changed(rules: ClusterRules, body: Mapping[str, Any], total: Shares) -> ClusterRules:
    if "vcCapacity" in body:
        part = float(body["vcCapacity"]) / 100
        amounts = {"cpus": total.cpus * part, "memory_mb": total.memory_mb * part, "gpus": int(total.gpus * part)}
        rules = rules.replace(percent=float(body["vcCapacity"]), **amounts)
    wanted = body.get("resourcesGuaranteed") or {}
    if wanted:
        named = {ours: float(wanted[key]) for key, ours in _AMOUNTS.items() if key in wanted}
        rules = rules.replace(**named, **({} if "vcCapacity" in body else {"percent": None}))
    if "vcMaxCapacity" in body:
        rules = rules.replace(most_percent=float(body["vcMaxCapacity"]))
    if "userLimits" in body:
        rules = rules.replace(limits=rules.limits.replace(**body["userLimits"]))
    return rules.replace(description=body.get("description", rules.description))


@routes("DELETE", "/virtual-clusters/{cluster}", auth=ADMIN, answers={201: "It is gone"}, shape=MESSAGE)
async def delete_virtual_cluster(request: Request) -> Response:
    """Remove a virtual cluster."""
    name = _name(request)
    if name == DEFAULT_CLUSTER:
        raise HttpError(403, "ForbiddenUserError", "the virtual cluster default stays")
    if not await request.site.call(request.site.store.accounts.remove_cluster, name):
        raise _missing(name)
    await _clusters_changed(request)
    return json_response({"message": f"Remove vc: {name} successfully."}, 201)


def _check_room(report: CapacityReport, name: str, rules: ClusterRules) -> None:
    """Nobody is promised what is not there: all shares together are at most the machine."""
    others = [use.guaranteed for each, use in report.clusters.items() if each not in (name, DEFAULT_CLUSTER)]
    for key, words in (("cpus", "CPUs"), ("memory_mb", "MB of memory"), ("gpus", "GPUs")):
        wanted: float = getattr(rules, key)
        left = getattr(report.total, key) - sum(getattr(share, key) for share in others)
        if wanted > left + 1e-6:
            message = f"of {getattr(report.total, key):g} {words}, {max(0, left):g} are left for {name}, and not {wanted:g}"
            raise HttpError(400, "InvalidParametersError", message)


async def _clusters_changed(request: Request) -> None:
    """Told to the queue, and to the accounts: who may use a virtual cluster depends on whether it is there."""
    await request.site.team.set_clusters(await request.site.call(shares_of, request.site.store, request.site.settings))
    request.site.accounts.refresh()


@routes("PUT", "/virtual-clusters/{cluster}/status", auth=ADMIN, answers={400: "Not possible"})
async def virtual_cluster_status(request: Request) -> Response:
    """OpenPAI's way to stop a virtual cluster; it cannot on Kubernetes, and neither can we."""
    _name(request)
    raise HttpError(400, "NotImplementedError", "a virtual cluster cannot be stopped; remove it, or stop its jobs")


@routes("GET", "/cluster/sku-types", query=(Query("vc", "Only of this virtual cluster."),), auth=TOKEN, shape=SKUS)
async def sku_types(request: Request) -> Response:
    """The kinds of cells in which resources are asked for: by GPU, or by CPU, unless set."""
    return await _skus(request, request.query.get("vc", ""))


@routes("GET", "/virtual-clusters/{cluster}/sku-types", auth=TOKEN, shape=SKUS)
async def cluster_sku_types(request: Request) -> Response:
    """The kinds of cells of a virtual cluster."""
    return await _skus(request, _name(request))


async def _skus(request: Request, cluster: str) -> Response:
    report = await request.site.team.capacity()
    if cluster and cluster not in report.clusters:
        raise _missing(cluster)
    told = {name: sku_json(sku) for name, sku in report.skus.items() if not cluster or sku.offered_by(cluster)}
    return json_response(told)


def _name(request: Request) -> str:
    name = request.parameters["cluster"]
    if not re.fullmatch("[A-Za-z0-9_]{1,128}", name):
        raise HttpError(400, "InvalidParametersError", "a virtual cluster has letters, digits and '_' in its name")
    return name


def _missing(name: str) -> HttpError:
    return HttpError(404, "NoVirtualClusterError", f"VirtualCluster {name[:128]} is not found")
