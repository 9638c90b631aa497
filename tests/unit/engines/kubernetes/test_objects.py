"""The objects of an attempt: what the cluster is asked for, and what is refused before it hears of it."""

from __future__ import annotations

import json
from base64 import b64decode
from typing import Any

import pytest

from pailot.engines.contract import Attempt, EngineError, LaunchContext
from pailot.engines.kubernetes import choices, objects, told
from pailot.engines.kubernetes.choices import Choices, Toleration
from pailot.engines.kubernetes.objects import Names
from pailot.engines.kubernetes.preview import preview
from pailot.job_values import Auth
from pailot.planning import Plan, plan
from pailot.protocol import read
from pailot.protocol.yaml import parse
from pailot.runtime.kubernetes.payload import Payload, placed
from pailot.settings import BadSetting, Settings

NAMES = Names("r1", 2)


def planned(role: str = "", extras: str = "", more: str = "") -> Plan:
    text = f"""protocolVersion: 2
name: demo
type: job
prerequisites: [{{name: i, type: dockerimage, uri: localhost/python:3}}]
{more}
taskRoles:
  ps:
    instances: 1
    dockerImage: i
    commands: ['true']
    resourcePerInstance: {{cpu: 2, memoryMB: 300, gpu: 0}}
  worker:
    instances: 2
    dockerImage: i
    commands: ['echo $PAI_HOST_IP_ps_0']
    resourcePerInstance: {{cpu: 1, memoryMB: 100, gpu: 4, ports: {{data: 2}}}}
    {role}
extras: {{{extras}}}
"""
    return plan(read(text), "me")


def made(of: Plan, number: int = 1, **chosen: Any) -> dict[str, Any]:
    return objects.job(NAMES, of, number, Choices(**chosen), private=False, pulls=False)


def spec(job: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = job["spec"]["template"]["spec"]
    return found


def attempt(of: Plan, **context: Any) -> Attempt:
    return Attempt(plan=of, number=0, folder="/f", checkpoints="/c", context=LaunchContext(**context))


def test_a_role_is_an_indexed_job_whose_failed_pods_neither_come_back_nor_end_their_neighbours() -> None:
    job = made(planned())
    assert job["metadata"]["name"] == "pailot-r1-2-1"
    told = dict(job["spec"])
    template = told.pop("template")
    assert told == {
        "completions": 2,
        "parallelism": 2,
        "completionMode": "Indexed",
        "backoffLimitPerIndex": 0,
        "podReplacementPolicy": "Failed",
        "suspend": True,
        "ttlSecondsAfterFinished": 604800,
    }
    assert template["metadata"]["labels"]["pailot.dev/run"] == "r1"
    assert {name for name, value in template["metadata"]["annotations"].items() if value == ""} == {
        "pailot.dev/order",
        "pailot.dev/now",
        "pailot.dev/peers",
    }


def test_a_pod_has_no_token_no_secret_in_its_variables_and_a_group_for_what_it_reads() -> None:
    found = spec(made(planned()))
    assert (found["automountServiceAccountToken"], found["restartPolicy"]) == (False, "Never")
    assert found["securityContext"] == {"fsGroup": 2000, "fsGroupChangePolicy": "OnRootMismatch"}
    (container,) = found["containers"]
    assert [each["name"] for each in container["env"]] == ["PAILOT_ROLE", "PAILOT_ADDRESS"]
    assert container["resources"]["limits"] == {"cpu": "1", "memory": "100Mi", "nvidia.com/gpu": "4"}
    assert container["resources"]["requests"] == container["resources"]["limits"]
    volumes = {each["name"]: each for each in found["volumes"]}
    assert volumes["given"]["projected"]["defaultMode"] == 0o400
    assert volumes["shm"]["emptyDir"] == {"medium": "Memory", "sizeLimit": "512Mi"}


def test_settings_choose_nodes_queue_priority_and_user() -> None:
    chosen: dict[str, Any] = {
        "gpu_resource": "amd.com/gpu",
        "node_selector": (("", "pool", "batch"), ("vision", "pool", "gpu"), ("other", "x", "y")),
        "tolerations": (Toleration("", "gpu"), Toleration("vision", "team", "a", "NoSchedule"), Toleration("other", "no")),
        "queues": {"vision": "fast"},
        "priorities": {"prod": "high"},
        "restricted": True,
        "user": 1000,
        "checkpoints": "kept",
        "pull_secrets": ("reg",),
    }
    job = made(
        planned(
            more="defaults: {virtualCluster: vision}", extras="pailot: {gpuType: A100}, hivedScheduler: {jobPriorityClass: prod}"
        ),
        **chosen,
    )
    found = spec(job)
    assert job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "fast"
    assert found["nodeSelector"] == {"pool": "gpu", "nvidia.com/gpu.product": "A100"}
    assert found["tolerations"] == [
        {"key": "gpu", "operator": "Exists"},
        {"key": "team", "operator": "Equal", "value": "a", "effect": "NoSchedule"},
    ]
    assert found["priorityClassName"] == "high"
    assert found["imagePullSecrets"] == [{"name": "reg"}]
    assert found["securityContext"]["runAsNonRoot"] is True
    (container,) = found["containers"]
    assert container["securityContext"] == {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    assert {"name": "checkpoints", "mountPath": "/pailot/checkpoints", "subPath": "pailot/r1"} in container["volumeMounts"]


def test_what_cannot_be_done_is_refused() -> None:
    with pytest.raises(EngineError, match="kubernetes_infiniband"):
        objects.check(planned("extraContainerOptions: {infiniband: true}"), Choices())
    objects.check(planned("extraContainerOptions: {infiniband: true}"), Choices(infiniband="rdma/hca"))
    with pytest.raises(EngineError, match="kubernetes_storages: data=CLAIM"):
        objects.check(planned(extras="storages: [{name: data, mountPath: /data}]"), Choices(storages={"date": "x"}))
    with pytest.raises(EngineError, match=r"2\.0 MB packed"):
        objects.config_map(NAMES, {"a": b"x" * 2_000_000})


def test_infiniband_and_storages() -> None:
    of = planned("extraContainerOptions: {infiniband: true, shmMB: 64}", "storages: [{name: data, mountPath: /data}]")
    found = spec(made(of, infiniband="rdma/hca", storages={"data": "claim"}))
    (container,) = found["containers"]
    assert container["resources"]["limits"]["rdma/hca"] == "1"
    assert container["securityContext"]["capabilities"]["add"] == ["IPC_LOCK"]
    assert {"name": "storage-0", "mountPath": "/data"} in container["volumeMounts"]
    assert {"name": "storage-0", "persistentVolumeClaim": {"claimName": "claim"}} in found["volumes"]
    assert {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "64Mi"}} in found["volumes"]


def test_credentials_of_registries_are_in_a_secret_of_their_own() -> None:
    found = objects.pull_secret(
        NAMES, [("team/model:1", Auth("a", "b")), ("reg.example.org/x", Auth("c", "d", "reg.example.org"))]
    )
    known = json.loads(b64decode(found["data"][".dockerconfigjson"]))["auths"]
    assert list(known) == ["https://index.docker.io/v1/", "reg.example.org"]
    assert b64decode(known["reg.example.org"]["auth"]) == b"c:d"


def test_a_payload_comes_back_as_it_was_and_gets_its_addresses() -> None:
    payload = told.payload_of(attempt(planned()), Choices())
    assert Payload.unpacked(payload.packed()) == payload
    assert not told.is_private(payload)
    there = placed(payload, ["10.0.0.1", "10.0.0.2", "10.0.0.3"])
    assert there.shared["PAI_HOST_IP_worker_1"] == "10.0.0.3"
    assert [each["address"] for each in there.peers] == ["10.0.0.1", "10.0.0.2", "10.0.0.3"]
    first, second = there.roles[1].environments
    assert first["PAI_CONTAINER_HOST_data_PORT_LIST"] == second["PAI_CONTAINER_HOST_data_PORT_LIST"]
    assert payload.token not in json.dumps([there.shared, there.roles[1].environments, there.peers])


def test_credentials_of_this_machine_stay_here_unless_the_job_uses_them() -> None:
    token, other = "ghp_0123456789abcdefghijklmnopqrstuvwxyz", "ghp_zyxwvutsrqponmlkjihgfedcba9876543210"
    secret = "hunter2-hunter2"
    context: dict[str, Any] = {"environment": {"GITHUB_TOKEN": token, "OTHER_TOKEN": other}, "hidden": (token, other, secret)}
    of = planned(extras=f"pailot: {{environment: {{MINE: {token}}}}}")
    payload = told.payload_of(attempt(of, **context), Choices())
    assert payload.hidden == (token, secret)
    assert told.is_private(payload)
    assert "hunter2" not in repr(payload)


def test_a_preview_shows_every_object_and_no_secret() -> None:
    text = preview(planned(), Choices())
    kinds = [parse(each).root["kind"] for each in text.split("---\n")]
    assert kinds == ["ConfigMap", "Job", "Job"]
    of = planned(extras="pailot: {environment: {URL: 'https://me:hunter2-hunter2@example.org'}}")
    shown = parse(preview(of, Choices(), ["hunter2-hunter2"]).split("---\n")[0].partition("\n")[2]).root
    assert (shown["kind"], shown["data"]) == ("Secret", {})


@pytest.mark.parametrize(
    ("name", "value"),
    [("image_pull", "sometimes"), ("node_selector", "pool"), ("tolerations", "a:b:c:d"), ("user", "me"), ("queues", "x")],
)
def test_settings_that_cannot_be_understood_are_named(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"PAILOT_KUBERNETES_{name.upper()}", value)
    with pytest.raises(BadSetting, match=f"kubernetes_{name}"):
        choices.read(Settings())
