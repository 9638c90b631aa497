"""The real cluster of the tests, and every way to log in to it. Skipped without `make kubernetes`."""

from __future__ import annotations

import json
from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest

from pailot.engines.kubernetes.kubeconfig import find_access
from pailot.engines.kubernetes.versions import check_version
from tests.parts.kubernetes.cluster import Cluster, cluster

ACCOUNT = "system:serviceaccount:default:default"


@pytest.fixture(scope="module")
def lab() -> Cluster:
    return cluster()


def seen_as(lab: Cluster, folder: Path, user: dict[str, Any], **more: Any) -> dict[str, Any]:
    """The user that the API takes a kubeconfig with this log-in for."""
    found = json.loads(lab.kubeconfig.read_text())
    found["users"][0]["user"] = user
    found["clusters"][0]["cluster"] |= more
    (folder / "config").write_text(json.dumps(found))
    connection = find_access({"KUBECONFIG": str(folder / "config")}).connect(10)
    body = json.dumps({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"})
    connection.request("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", body, {"Content-Type": "application/json"})
    response = connection.getresponse()
    said = json.loads(response.read())
    connection.close()
    assert response.status == 201, said
    who: dict[str, Any] = said["status"]["userInfo"]
    return who


def program(folder: Path, version: str, status: dict[str, str]) -> dict[str, Any]:
    """A log-in by a program that prints this."""
    group = f"client.authentication.k8s.io/{version}"
    (folder / "printed").write_text(json.dumps({"apiVersion": group, "kind": "ExecCredential", "status": status}))
    return {"exec": {"apiVersion": group, "command": "cat", "args": [str(folder / "printed")], "interactiveMode": "Never"}}


def test_the_version_is_one_that_pailot_works_with(lab: Cluster) -> None:
    assert check_version(lab.get("/version")["gitVersion"]) >= (1, 30)


def test_a_token_and_a_token_file(lab: Cluster, tmp_path: Path) -> None:
    token = lab.kubectl("create", "token", "default").strip()
    (tmp_path / "token").write_text(token + "\n")
    assert seen_as(lab, tmp_path, {"token": token})["username"] == ACCOUNT
    assert seen_as(lab, tmp_path, {"tokenFile": "token"})["username"] == ACCOUNT


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_programs_that_log_in(lab: Cluster, tmp_path: Path, version: str) -> None:
    token = lab.kubectl("create", "token", "default").strip()
    assert seen_as(lab, tmp_path, program(tmp_path, version, {"token": token}))["username"] == ACCOUNT
    user = json.loads(lab.kubeconfig.read_text())["users"][0]["user"]
    certificate, key = (b64decode(user[f"client-{name}-data"]).decode() for name in ("certificate", "key"))
    status = {"clientCertificateData": certificate, "clientKeyData": key}
    assert seen_as(lab, tmp_path, program(tmp_path, version, status))["username"] == "admin"


def test_impersonation_and_another_name_in_the_certificate(lab: Cluster, tmp_path: Path) -> None:
    user = json.loads(lab.kubeconfig.read_text())["users"][0]["user"]
    groups = ["system:authenticated", "blue"]
    user |= {"as": "alice", "as-uid": "7", "as-groups": groups, "as-user-extra": {"acme.org/why": ["a", "b"]}}
    who = seen_as(lab, tmp_path, user, **{"tls-server-name": "kubernetes"})
    assert (who["username"], who["uid"], sorted(who["groups"])) == ("alice", "7", sorted(groups))
    assert who["extra"]["acme.org/why"] == ["a", "b"]


def test_a_job_of_an_image_whose_user_is_not_root(lab: Cluster) -> None:
    lab.kubectl("create", "job", "who", "--image=localhost/user:1", "--", "python3", "-c", "import os; print(os.getuid())")
    lab.kubectl("wait", "--for=condition=complete", "--timeout=120s", "job/who")
    assert lab.kubectl("logs", "job/who") == "1000\n"
    lab.kubectl("delete", "job", "who")


def test_the_api_may_be_away_and_a_node_may_lose_its_power(lab: Cluster) -> None:
    lab.switch_off("kube-apiserver")
    lab.wait(lambda: lab.get("/version") is None, "the end of the API")
    lab.switch_on("kube-apiserver")
    lab.wait(lambda: lab.ready_nodes() == ["n1"], "the API again")
    lab.cut_power("n1")
    lab.wait(lambda: not lab.ready_nodes(), "the loss of the node")
    lab.return_power("n1")
