"""The objects of an attempt, as the API takes them. Pure: a plan and choices in, JSON out.

An Indexed Job for each role, the first of which owns all the rest; a ConfigMap with our code and what is not secret; a Secret
with the payload where that is, and one with the credentials of registries.
"""

from __future__ import annotations

import json
from base64 import b64encode

from ...errors import suggestion
from ...runtime.kubernetes import pod_layout
from ...runtime.kubernetes.pod_layout import PREFIX
from ...values import Value
from ..contract import EngineError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, TypeAlias

    from ...job_values import Auth
    from ...planning import Plan, RolePlan
    from .choices import Choices

    Json: TypeAlias = dict[str, Any]

MAIN = "main"
RUN_LABEL, ATTEMPT_LABEL, ROLE_LABEL = f"{PREFIX}run", f"{PREFIX}attempt", f"{PREFIX}role"
QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
KEPT_SECONDS = 7 * 24 * 3600
"""How long the objects of a job that no process has settled stay after its end."""
EXIT_SECONDS = 30
"""What exit callbacks may take beyond the grace, where a pod is deleted."""
GROUP = 2000
"""The group of what is mounted: an image may have any user, and each is in this group."""
LARGEST_BYTES = 1_000_000
"""Of a ConfigMap or a Secret, a little less than what the API takes."""
DEFAULT_SHM_MB = 512
"""As OpenPAI."""
DOCKER_HUB = "https://index.docker.io/v1/"
START = """for python in python3 python python3.14 python3.13 python3.12 python3.11 python3.10 python3.9; do
  if "$python" -I -S -c 'import sys; sys.exit(sys.version_info < (3, 9))' 2>/dev/null; then exec "$python" -I -S -B "$0" task; fi
done
echo '{"noPython": true}' >/dev/termination-log
echo "pailot: this image has no Python 3.9 or newer" >&2
exit 97"""
SHOW = """n=0
until [ -s "$0" ]; do
  n=$((n+1)); [ $n -gt 600 ] && exit 98
  sleep 0.05 2>/dev/null || sleep 1
done
exec "$(cat "$0")" -I -S -B "$@" """


class Names(Value):
    """What the objects of one attempt are called."""

    run: str
    attempt: int

    @property
    def base(self) -> str:
        return f"pailot-{self.run}-{self.attempt}"

    def job(self, number: int) -> str:
        return f"{self.base}-{number}"

    @property
    def pull(self) -> str:
        return f"{self.base}-pull"

    @property
    def labels(self) -> dict[str, str]:
        return {"app.kubernetes.io/managed-by": "pailot", RUN_LABEL: self.run, ATTEMPT_LABEL: str(self.attempt)}

    @property
    def selector(self) -> str:
        return f"{RUN_LABEL}={self.run},{ATTEMPT_LABEL}={self.attempt}"


def check(plan: Plan, choices: Choices) -> None:
    """Refuse what this engine cannot do, before anything is made."""
    if plan.options.channels is not None:
        raise EngineError("the kubernetes engine cannot bring the inputs and outputs of a job (extras.pailot.channels)")
    cannot = sorted({each.kind for role in plan.roles.values() for each in role.provisions if each.kind != "code"})
    if cannot:
        raise EngineError(f"the kubernetes engine cannot bring this to its pods: {', '.join(cannot)}")
    if any(role.resources.infiniband for role in plan.roles.values()) and not choices.infiniband:
        raise EngineError("infiniband: which resource is it in this cluster? (setting kubernetes_infiniband)")
    for each in plan.storages:
        if each.name not in choices.storages:
            known = f"; there is {', '.join(choices.storages)}" if choices.storages else ""
            words = f"no volume is set for the storage '{each.name}'{known} (setting kubernetes_storages: {each.name}=CLAIM)"
            raise EngineError(f"{plan.storages_key}: {words}{suggestion(each.name, choices.storages)}")


def config_map(names: Names, files: Mapping[str, bytes]) -> Json:
    """What travels and is not secret."""
    _check_size(files, "what travels to the pods of the job (its code above all)")
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": names.base, "labels": names.labels},
        "immutable": True,
        "binaryData": {name: b64encode(data).decode() for name, data in files.items()},
    }


def secret(names: Names, files: Mapping[str, bytes]) -> Json:
    """What travels and is secret: a file that the pod's own user can read, never a variable."""
    _check_size(files, "what the pods of the job are told")
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": names.base, "labels": names.labels},
        "immutable": True,
        "type": "Opaque",
        "data": {name: b64encode(data).decode() for name, data in files.items()},
    }


def pull_secret(names: Names, logins: Sequence[tuple[str, Auth]]) -> Json:
    """The credentials of registries, for images and who may pull them."""
    known = {}
    for image, auth in logins:
        both = b64encode(f"{auth.username}:{auth.password}".encode()).decode()
        known[auth.registry or registry_of(image)] = {"username": auth.username, "password": auth.password, "auth": both}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": names.pull, "labels": names.labels},
        "immutable": True,
        "type": "kubernetes.io/dockerconfigjson",
        "data": {".dockerconfigjson": b64encode(json.dumps({"auths": known}).encode()).decode()},
    }


def registry_of(image: str) -> str:
    """The registry that an image is pulled from.

    >>> registry_of("ubuntu:22.04"), registry_of("team/model"), registry_of("reg.example.org:5000/a/b:1")
    ('https://index.docker.io/v1/', 'https://index.docker.io/v1/', 'reg.example.org:5000')
    """
    first, slash, _ = image.partition("/")
    return first if slash and ("." in first or ":" in first or first == "localhost") else DOCKER_HUB


def job(
    names: Names, plan: Plan, number: int, choices: Choices, *, private: bool, pulls: bool, owner: Json | None = None,
    suspended: bool = True,
) -> Json:  # fmt: skip
    """The Job of one role; a failed pod neither comes back nor ends its neighbours, for Pailot decides what follows."""
    role = list(plan.roles.values())[number]
    metadata: Json = {"name": names.job(number), "labels": {**names.labels, ROLE_LABEL: str(number)}}
    metadata["annotations"] = {f"{PREFIX}job": plan.full_name, f"{PREFIX}role": role.name}
    queue = choices.queues.get(plan.virtual_cluster)
    if queue:
        metadata["labels"][QUEUE_LABEL] = queue
    if owner is not None:
        metadata["ownerReferences"] = [owner]
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata,
        "spec": {
            "completions": role.instances,
            "parallelism": role.instances,
            "completionMode": "Indexed",
            "backoffLimitPerIndex": 0,
            "podReplacementPolicy": "Failed",
            "suspend": suspended,
            "ttlSecondsAfterFinished": KEPT_SECONDS,
            "template": _template(names, plan, role, number, choices, private=private, pulls=pulls),
        },
    }


def owner_of(made: Mapping[str, Any]) -> Json:
    """The reference by which an object goes when the first Job goes."""
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "name": made["metadata"]["name"],
        "uid": made["metadata"]["uid"],
        "blockOwnerDeletion": False,
        "controller": False,
    }


def _template(
    names: Names, plan: Plan, role: RolePlan, number: int, choices: Choices, *, private: bool, pulls: bool
) -> Json:  # fmt: skip
    annotations = {f"{PREFIX}{each}": "" for each in pod_layout.TOLD_NAMES}
    annotations |= {f"{PREFIX}job": plan.full_name, f"{PREFIX}role-name": role.name}
    spec: Json = {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": int(plan.options.grace_seconds) + EXIT_SECONDS,
        "securityContext": _pod_security(choices),
        "containers": [_container(names, plan, role, number, choices)],
        "volumes": _volumes(names, plan, role, choices, private=private),
    }
    pull_secrets = [*choices.pull_secrets, *([names.pull] if pulls else [])]
    if pull_secrets:
        spec["imagePullSecrets"] = [{"name": each} for each in pull_secrets]
    if choices.service_account:
        spec["serviceAccountName"] = choices.service_account
    priority = choices.priorities.get(plan.priority)
    if priority:
        spec["priorityClassName"] = priority
    selector = {label: value for cluster, label, value in choices.node_selector if cluster in ("", plan.virtual_cluster)}
    if plan.options.gpu_type and role.resources.gpu:
        selector[choices.gpu_label] = plan.options.gpu_type
    if selector:
        spec["nodeSelector"] = selector
    tolerations = [_toleration(each) for each in choices.tolerations if each.cluster in ("", plan.virtual_cluster)]
    if tolerations:
        spec["tolerations"] = tolerations
    return {
        "metadata": {"labels": {**names.labels, ROLE_LABEL: str(number)}, "annotations": {**choices.annotations, **annotations}},
        "spec": spec,
    }


def _toleration(each: Any) -> Json:
    made: Json = {"key": each.key, "operator": "Equal" if each.value else "Exists"}
    if each.value:
        made["value"] = each.value
    if each.effect:
        made["effect"] = each.effect
    return made


def _pod_security(choices: Choices) -> Json:
    made: Json = {"fsGroup": GROUP, "fsGroupChangePolicy": "OnRootMismatch"}
    if choices.restricted:
        made |= {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    if choices.user is not None:
        made["runAsUser"] = choices.user
    if choices.group is not None:
        made["runAsGroup"] = choices.group
    return made


def _container(names: Names, plan: Plan, role: RolePlan, number: int, choices: Choices) -> Json:
    wanted = role.resources
    limits: dict[str, str] = {}
    if wanted.cpu:
        limits["cpu"] = str(wanted.cpu)
    if wanted.memory_mb:
        limits["memory"] = f"{wanted.memory_mb}Mi"
    if wanted.gpu:
        limits[choices.gpu_resource] = str(wanted.gpu)
    if wanted.infiniband:
        limits[choices.infiniband] = "1"
    security: Json = {}
    if choices.restricted:
        security = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    if wanted.infiniband:
        security.setdefault("capabilities", {})["add"] = ["IPC_LOCK"]
    mounts: list[Json] = [
        {"name": "given", "mountPath": pod_layout.GIVEN, "readOnly": True},
        {"name": "told", "mountPath": pod_layout.TOLD, "readOnly": True},
        {"name": "run", "mountPath": pod_layout.RUN},
        {"name": "shm", "mountPath": "/dev/shm"},  # noqa: S108  # of the pod
    ]
    if choices.checkpoints:
        mounts.append({"name": "checkpoints", "mountPath": pod_layout.CHECKPOINTS, "subPath": f"pailot/{names.run}"})
    mounts += [{"name": f"storage-{each}", "mountPath": path} for each, (_, path) in enumerate(_storages(plan, choices))]
    made: Json = {
        "name": MAIN,
        "image": role.image.uri,
        "imagePullPolicy": choices.pull,
        "command": ["/bin/sh", "-c", START, f"{pod_layout.GIVEN}/{pod_layout.CODE}"],
        "env": [
            {"name": pod_layout.ROLE_VARIABLE, "value": str(number)},
            {"name": pod_layout.ADDRESS_VARIABLE, "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        ],
        "resources": {"limits": limits, "requests": limits},
        "volumeMounts": mounts,
    }
    if security:
        made["securityContext"] = security
    return made


def _volumes(names: Names, plan: Plan, role: RolePlan, choices: Choices, *, private: bool) -> list[Json]:
    sources: list[Json] = [{"configMap": {"name": names.base}}]
    if private:
        sources.append({"secret": {"name": names.base}})
    told = [
        {"path": each, "fieldRef": {"fieldPath": f"metadata.annotations['{PREFIX}{each}']"}} for each in pod_layout.TOLD_NAMES
    ]
    shm = f"{role.resources.shm_mb or DEFAULT_SHM_MB}Mi"
    volumes: list[Json] = [
        {"name": "given", "projected": {"defaultMode": 0o400, "sources": sources}},
        {"name": "told", "downwardAPI": {"items": told}},
        {"name": "run", "emptyDir": {}},
        {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": shm}},
    ]
    if choices.checkpoints:
        volumes.append({"name": "checkpoints", "persistentVolumeClaim": {"claimName": choices.checkpoints}})
    for each, (claim, _) in enumerate(_storages(plan, choices)):
        volumes.append({"name": f"storage-{each}", "persistentVolumeClaim": {"claimName": claim}})
    return volumes


def _storages(plan: Plan, choices: Choices) -> list[tuple[str, str]]:
    """Claim and path of each storage that the job has."""
    wanted = [(each.name, each.mount_path) for each in plan.storages]
    if not wanted and plan.default_storages:
        wanted = [(name, "") for name in choices.storages]
    return [(choices.storages[name], path or f"/mnt/{name}") for name, path in wanted]


def _check_size(files: Mapping[str, bytes], what: str) -> None:
    size = sum(len(data) for data in files.values())
    if size > LARGEST_BYTES:
        raise EngineError(
            f"{what} is {size / 1e6:.1f} MB packed, and {LARGEST_BYTES / 1e6:.1f} MB fit into an object of the cluster; "
            "put the code into the image or a storage (kubernetes_storages)"
        )
