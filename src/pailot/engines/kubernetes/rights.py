"""The rights that the engine needs in its namespace: asked for, and written down as a Role for an administrator."""

from __future__ import annotations

from ...protocol.yaml.writer import dump
from ...settings import Settings
from ...values import Value
from ..contract import EngineFinding
from .cluster import Cluster

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

REVIEW = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
NAME = "pailot"


class Right(Value):
    """What may be done with one kind of object, and what it is for."""

    group: str
    resource: str
    verbs: tuple[str, ...]
    purpose: str
    optional: bool = False


RIGHTS = (
    Right("batch", "jobs", ("create", "get", "patch", "delete"), "the roles of a job"),
    Right("", "pods", ("get", "list", "watch", "patch"), "what becomes of tasks, and orders to them"),
    Right("", "pods/exec", ("get", "create"), "logs, records, enter and forward"),
    Right("", "pods/log", ("get",), "logs of a pod that ended before they were brought"),
    Right("", "configmaps", ("create", "get"), "code that travels"),
    Right("", "secrets", ("create", "get"), "secrets that travel"),
    Right("", "events", ("list",), "why the cluster refuses pods", optional=True),
)


def findings() -> Iterator[EngineFinding]:
    """The cluster, its version, and each right that is missing."""
    cluster = Cluster.of_settings(Settings())
    version = ".".join(map(str, cluster.check()))
    yield EngineFinding(
        "kubernetes", True, f"{cluster.access.server} has version {version}; jobs go to namespace '{cluster.namespace}'"
    )
    missing = 0
    for right in RIGHTS:
        lacks = [verb for verb in right.verbs if not _is_allowed(cluster, right, verb)]
        if lacks:
            missing += not right.optional
            text = f"{', '.join(lacks)} {right.resource}: not allowed ({right.purpose})"
            yield EngineFinding(
                "rights", right.optional, text, "pailot doctor -e kubernetes --yaml prints the Role for an administrator"
            )
    if not missing:
        yield EngineFinding("rights", True, f"all that is needed in namespace '{cluster.namespace}'")
    cluster.close()


def _is_allowed(cluster: Cluster, right: Right, verb: str) -> bool:
    resource, _, part = right.resource.partition("/")
    asked = {"namespace": cluster.namespace, "verb": verb, "group": right.group, "resource": resource}
    if part:
        asked["subresource"] = part
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": asked},
    }
    return bool(cluster.send("POST", REVIEW, review).get("status", {}).get("allowed"))


def role(namespace: str) -> str:
    """A Role with these rights, and nothing more, for `kubectl apply`."""
    rules = [{"apiGroups": [right.group], "resources": [right.resource], "verbs": list(right.verbs)} for right in RIGHTS]
    made = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": {"name": NAME, "namespace": namespace},
        "rules": rules,
    }
    return dump(made)
