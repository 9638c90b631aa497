"""The Helm chart, rendered by Helm's own library: what it grants, what it refuses, and the committed rendering of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from pailot import __version__
from pailot.cli.commands.deploy import IMAGE, NAMESPACE, RENDERING
from tests.parts.helm import CHART, Refused, rendered
from tests.parts.kubernetes.cluster import cluster

ROOT = Path(__file__).parents[2]


def objects(**values: Any) -> dict[str, dict[str, Any]]:
    """By kind; there is one of each."""
    found = [each for each in yaml.safe_load_all(rendered({"image": "registry.example.org/pailot:1", **values})) if each]
    assert len({each["kind"] for each in found}) == len(found)
    return {each["kind"]: each for each in found}


def test_the_committed_rendering_is_that_of_the_chart() -> None:
    """To write it anew: python -m tests.integration.test_chart"""
    assert RENDERING.read_text() == rendered({"image": IMAGE}, namespace=NAMESPACE)


def test_the_versions_are_those_of_the_package() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert {chart["version"], chart["appVersion"]} == {__version__}
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["name"] == chart["name"]


def test_the_server_has_the_rights_that_the_docs_name_and_no_more() -> None:
    made = objects()
    granted = {
        (group, resource, verb)
        for rule in made["Role"]["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    said = set()
    for line in (ROOT / "docs/how-to/run-on-kubernetes.md").read_text().split("## Rights")[1].split("\n## ")[0].splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) == 5 and "`" in cells[1]:
            group = "batch" if "(batch)" in cells[1] else ""
            names = [name for name in cells[1].replace("(batch)", "").replace("`", "").replace(" ", "").split(",") if name]
            said |= {(group, name, verb.strip()) for name in names for verb in cells[2].split(",")}
    assert granted == said
    assert "*" not in json.dumps(made["Role"])
    assert "ClusterRole" not in made
    assert objects(rbac={"clusterView": True})["ClusterRole"]["rules"][0] == {
        "apiGroups": [""],
        "resources": ["nodes"],
        "verbs": ["list"],
    }
    assert "Role" not in objects(engine="local")


def test_the_pod_passes_pod_security_restricted_and_writes_to_its_volumes_only() -> None:
    pod = objects()["Deployment"]["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    (container,) = pod["containers"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert not any(pod.get(key) for key in ("hostNetwork", "hostPID", "hostIPC"))
    assert {next(key for key in each if key != "name") for each in pod["volumes"]} == {
        "persistentVolumeClaim",
        "configMap",
        "emptyDir",
    }
    assert objects(engine="local")["Deployment"]["spec"]["template"]["spec"]["automountServiceAccountToken"] is False


def test_one_server_at_a_time_and_no_budget_that_blocks_a_drain() -> None:
    made = objects()
    assert made["Deployment"]["spec"]["strategy"] == {"type": "Recreate"}
    assert made["Deployment"]["spec"]["replicas"] == 1
    assert "PodDisruptionBudget" not in made


def test_settings_secrets_and_the_database() -> None:
    made = objects(
        settings={"password_login": False, "oidc_groups": {"ml": ["research"]}, "virtual_clusters": ["research"]},
        environmentSecret="server-environment",
        database={"secret": "db"},
        persistence={"existingClaim": "mine"},
    )
    settings = tomllib.loads(made["ConfigMap"]["data"]["pailot.toml"])
    assert settings == {"password_login": False, "oidc_groups": {"ml": ["research"]}, "virtual_clusters": ["research"]}
    (container,) = made["Deployment"]["spec"]["template"]["spec"]["containers"]
    assert container["envFrom"] == [{"secretRef": {"name": "server-environment"}}]
    database = next(each for each in container["env"] if each["name"] == "PAILOT_DATABASE")
    assert database["valueFrom"] == {"secretKeyRef": {"name": "db", "key": "url"}}
    assert "PersistentVolumeClaim" not in made
    assert "Secret" not in made


def test_the_ways_in() -> None:
    made = objects(
        ingress={"enabled": True, "host": "pailot.example.org", "className": "nginx", "tlsSecret": "tls"},
        networkPolicy={"from": [{"namespaceSelector": {"matchLabels": {"name": "ingress"}}}]},
    )
    assert made["Ingress"]["spec"]["tls"] == [{"hosts": ["pailot.example.org"], "secretName": "tls"}]
    policy = made["NetworkPolicy"]["spec"]
    assert policy["ingress"] == [
        {"ports": [{"port": "http"}], "from": [{"namespaceSelector": {"matchLabels": {"name": "ingress"}}}]}
    ]
    assert policy["podSelector"]["matchLabels"] == made["Service"]["spec"]["selector"]
    assert "Ingress" not in objects()
    assert "NetworkPolicy" not in objects(networkPolicy={"enabled": False})


@pytest.mark.parametrize(
    "values",
    [
        {"image": ""},
        {"imagee": "x"},
        {"engine": "slurm"},
        {"ingress": {"enabled": True}},
        {"service": {"port": 0}},
        {"persistence": {"size": "much"}},
        {"settings": {"oidc_client_secret": "x"}},
        {"rbac": {"create": "yes"}},
    ],
    ids=json.dumps,
)
def test_values_that_make_no_sense_are_refused(values: dict[str, Any]) -> None:
    with pytest.raises(Refused, match="don't meet the specifications"):
        objects(**values)


def test_the_command_prints_the_rendering() -> None:
    words = ["deploy", "kubernetes", "--print", "--image", "registry.example.org/pailot:2", "--namespace", "ml"]
    done = subprocess.run([sys.executable, "-m", "pailot", *words], capture_output=True, text=True, check=True)
    assert done.stdout == rendered({"image": "registry.example.org/pailot:2"}, namespace="ml")


def test_a_real_cluster_takes_all_of_it_under_pod_security_restricted() -> None:
    lab = cluster()
    namespace = f"chart-{os.getpid()}"
    lab.kubectl("create", "namespace", namespace)
    try:
        lab.kubectl("label", "namespace", namespace, "pod-security.kubernetes.io/enforce=restricted")
        values = {
            "image": "localhost/pailot:1",
            "rbac": {"clusterView": True},
            "ingress": {"enabled": True, "host": "pailot.example.org"},
            "networkPolicy": {"from": [{"podSelector": {}}]},
            "database": {"secret": "db"},
        }
        text = rendered(values, namespace=namespace)
        tried = ("--namespace", namespace, "apply", "--dry-run=server", "--warnings-as-errors", "-f", "-")
        said = lab.kubectl(*tried, text=text)
        assert said.count("created (server dry run)") == len([each for each in yaml.safe_load_all(text) if each])
        lab.kubectl("--namespace", namespace, "create", "serviceaccount", "pailot")
        template = next(each for each in yaml.safe_load_all(text) if each["kind"] == "Deployment")["spec"]["template"]
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pailot"}, "spec": template["spec"]}
        lab.kubectl(
            "--namespace", namespace, "apply", "--dry-run=server", "--warnings-as-errors", "-f", "-", text=json.dumps(pod)
        )
    finally:
        lab.kubectl("delete", "namespace", namespace, "--wait=false")


if __name__ == "__main__":
    RENDERING.write_text(rendered({"image": IMAGE}, namespace=NAMESPACE))
