"""What goes wrong in a real cluster, and what becomes of the job: one round each. Skipped without `make kubernetes`."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from pailot.testing.runs import Home, Result, job, role, wait_for
from tests.parts.kubernetes.cluster import Cluster, cluster

SECONDS = 240.0
COUNT = "for i in $(seq 1 120); do echo line $i; sleep 0.1; done"


@pytest.fixture(scope="module")
def lab() -> Cluster:
    return cluster(3)


class ClusterHome(Home):
    """A home whose runs go to the cluster."""

    def begin(self, *roles: str, options: str = "", **more: str) -> subprocess.Popen[str]:
        text = job(*roles, options=options).replace("uri: debian", "uri: 'localhost/python:3'")
        return self.start(text, "-e", "kubernetes", **more)

    def end(self, process: subprocess.Popen[str]) -> Result:
        out, err = process.communicate(timeout=SECONDS)
        return Result(process.returncode, out, err)


@pytest.fixture
def home(tmp_path: Path, lab: Cluster) -> Iterator[ClusterHome]:
    made = ClusterHome(tmp_path)
    made.environment |= lab.environment
    yield made
    made.close()
    lab.kubectl("delete", "jobs,pods,resourcequotas", "--all", "--wait=false", "--grace-period=0", "--force")
    wait_for(lambda: not lab.get("/api/v1/namespaces/default/pods")["items"], SECONDS, "the end of all pods")


def pods(lab: Cluster) -> list[str]:
    return [each["metadata"]["name"] for each in lab.get("/api/v1/namespaces/default/pods")["items"]]


def first_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout
    return process.stdout.readline()


def test_a_pod_that_another_deletes_is_a_failure_of_the_platform(lab: Cluster, home: ClusterHome) -> None:
    commands = "echo attempt $FC_FRAMEWORK_ATTEMPT_ID; [ $FC_FRAMEWORK_ATTEMPT_ID = 1 ] || sleep 600"
    process = home.begin(role(commands), options="graceSeconds: 1")
    assert first_line(process) == "attempt 0\n"
    lab.kubectl("delete", "pod", *pods(lab), "--wait=false")
    done = home.end(process)
    assert (done.status, done.lines) == (0, ["attempt 1"]), done
    assert "its pod was deleted" in done.err


def test_the_api_is_away_while_tasks_print(lab: Cluster, home: ClusterHome) -> None:
    process = home.begin(role(COUNT, instances=2))
    assert "line 1" in first_line(process)
    lab.switch_off("kube-apiserver")
    lab.wait(lambda: lab.get("/version") is None, "the end of the API")
    lab.switch_on("kube-apiserver")
    done = home.end(process)
    assert done.status == 0, done
    for index in (0, 1):
        assert home.pailot("logs", "demo", "main", str(index)).lines == [f"line {number}" for number in range(1, 121)]


def test_the_launcher_is_killed_and_the_next_look_settles(lab: Cluster, home: ClusterHome) -> None:
    process = home.begin(role("echo begun; sleep 8; echo over; exit 4"))
    assert first_line(process) == "begun\n"
    process.kill()
    process.wait()
    wait_for(lambda: home.show()["state"] == "FAILED", SECONDS, "its end")
    assert home.show()["exitCode"] == 4
    assert home.pailot("logs", "demo").out == "begun\nover\n"


def test_a_driver_that_wakes_up_late_orders_nothing_twice(lab: Cluster, home: ClusterHome) -> None:
    """It is paused while another gives the order that it would have given."""
    stays = role("trap 'echo told' TERM; echo up; sleep 600 & wait; wait", "server")
    process = home.begin(stays, role("sleep 4", "worker", succeeded=1), options="graceSeconds: 5")
    assert first_line(process) == "[server:0] up\n"
    process.send_signal(signal.SIGSTOP)
    (server,) = [name for name in pods(lab) if name.rpartition("-")[0].endswith("-0-0-0")]
    where = "/metadata/annotations/pailot.dev~1order"
    order = json.dumps({"why": "completed", "grace": 5})
    steps = [{"op": "test", "path": where, "value": ""}, {"op": "replace", "path": where, "value": order}]
    lab.kubectl("patch", "pod", server, "--type=json", "-p", json.dumps(steps))
    with pytest.raises(RuntimeError, match="test"):
        lab.kubectl("patch", "pod", server, "--type=json", "-p", json.dumps(steps))
    wait_for(lambda: "told" in lab.kubectl("logs", server), SECONDS, "the end of the task")
    process.send_signal(signal.SIGCONT)
    done = home.end(process)
    assert done.status == 0, done
    assert home.pailot("logs", "demo", "server").out == "up\ntold\n"


def test_an_image_that_cannot_be_pulled_fails_the_job_with_its_reason(home: ClusterHome) -> None:
    text = job(role("true")).replace("uri: debian", "uri: 'localhost/missing:1'")
    done = home.run(text, "-e", "kubernetes", PAILOT_KUBERNETES_IMAGE_PULL="Never")
    assert done.status == 1
    assert "its image cannot be pulled" in done.err


def test_an_image_without_python_is_refused_in_words(home: ClusterHome) -> None:
    text = job(role("true")).replace("uri: debian", "uri: 'localhost/bb:1'")
    done = home.run(text, "-e", "kubernetes")
    assert done.status == 1
    assert "no Python 3.9" in done.err


def test_a_full_quota_and_a_job_that_no_node_holds_wait_with_their_reason(lab: Cluster, home: ClusterHome) -> None:
    lab.kubectl("create", "quota", "none", "--hard=pods=0")
    process = home.begin(role("true"))
    assert process.stderr
    assert any("quota of the namespace is used up" in line for line in process.stderr)
    lab.kubectl("delete", "quota", "none")
    process.terminate()
    assert home.end(process).status != 0
    process = home.begin(role("true", gpu=3))
    assert process.stderr
    assert any("no node for it" in line and "nvidia.com/gpu" in line for line in process.stderr)
    process.terminate()
    assert home.end(process).status != 0


def test_a_node_loses_its_power(lab: Cluster, home: ClusterHome) -> None:
    commands = "echo attempt $FC_FRAMEWORK_ATTEMPT_ID; [ $FC_FRAMEWORK_ATTEMPT_ID = 1 ] || sleep 600"
    process = home.begin(role(commands))
    assert first_line(process) == "attempt 0\n"
    (pod,) = lab.get("/api/v1/namespaces/default/pods")["items"]
    node = pod["spec"]["nodeName"]
    lab.cut_power(node)
    try:
        done = home.end(process)
    finally:
        lab.return_power(node)
    assert (done.status, done.lines) == (0, ["attempt 1"]), done
    assert "node was lost" in done.err


def test_a_shell_and_a_port_of_a_task_and_what_doctor_says(lab: Cluster, home: ClusterHome) -> None:
    serve = "cd /tmp; echo found >page; echo up; exec python3 -m http.server --bind 127.0.0.1 $PAI_CONTAINER_HOST_data_PORT_LIST"
    process = home.begin(role(serve))
    assert first_line(process) == "up\n"
    entered = home.pailot("enter", "demo", "main", "0", "--command", "cat /tmp/page; echo $PAI_TASK_INDEX; pwd; exit 7")
    assert (entered.status, entered.lines) == (7, ["found", "0", "/pailot/run/attempt/tasks/main-0/work"]), entered
    forward = home.popen([sys.executable, "-m", "pailot", "forward", "demo", "main", "0", "data"])
    assert forward.stdout
    address = re.search(r"127\.0\.0\.1:[0-9]+", forward.stdout.readline())
    assert address
    with urllib.request.urlopen(f"http://{address[0]}/page", timeout=60) as page:
        assert page.read() == b"found\n"
    forward.terminate()
    refused = home.pailot("cp", "demo:main:0/page", ".")
    assert (refused.status, "not on this machine" in refused.err) == (2, True), refused
    process.terminate()
    home.end(process)
    told = home.pailot("doctor", "-e", "kubernetes")
    assert (told.status, "all that is needed in namespace 'default'" in told.out) == (0, True), told


def test_a_role_in_one_namespace_is_enough(lab: Cluster, home: ClusterHome) -> None:
    """The Role that doctor prints, and nothing else; without it, doctor names what is missing."""
    lab.kubectl("create", "namespace", "team")
    lab.kubectl("create", "serviceaccount", "me", "-n", "team")
    found = json.loads(lab.kubeconfig.read_text())
    found["users"][0]["user"] = {"token": lab.kubectl("create", "token", "me", "-n", "team").strip()}
    found["contexts"][0]["context"]["namespace"] = "team"
    config = home.folder / "config"
    config.write_text(json.dumps(found))
    home.environment["KUBECONFIG"] = str(config)
    told = home.pailot("doctor", "-e", "kubernetes")
    assert (told.status, "create jobs" in told.out or "create, get, patch, delete jobs: not allowed" in told.out) == (1, True), (
        told
    )
    done = home.end(home.begin(role("echo hello")))
    assert (done.status, "forbidden" in done.err) == (1, True), done
    lab.kubectl("apply", "-f", "-", text=home.pailot("doctor", "-e", "kubernetes", "--yaml").out)
    lab.kubectl("create", "rolebinding", "me", "-n", "team", "--role=pailot", "--serviceaccount=team:me")
    wait_for(lambda: home.pailot("doctor", "-e", "kubernetes").status == 0, SECONDS, "the rights")
    done = home.end(home.begin(role("echo hello")))
    assert (done.status, done.out) == (0, "hello\n"), done
    lab.kubectl("delete", "namespace", "team", "--wait=false")


def test_an_extended_resource_stands_for_a_gpu(lab: Cluster, home: ClusterHome) -> None:
    patch = [{"op": "add", "path": "/status/capacity/example.org~1gpu", "value": "2"}]
    lab.kubectl("patch", "node", "n2", "--subresource=status", "--type=json", "-p", json.dumps(patch))
    lab.kubectl("label", "node", "n2", "example.org/kind=big", "--overwrite")
    settings = {"PAILOT_KUBERNETES_GPU_RESOURCE": "example.org/gpu", "PAILOT_KUBERNETES_GPU_LABEL": "example.org/kind"}
    process = home.begin(role("echo ok; sleep 3", gpu=2), options="gpuType: big", **settings)
    assert first_line(process) == "ok\n"
    (pod,) = lab.get("/api/v1/namespaces/default/pods")["items"]
    assert pod["spec"]["nodeName"] == "n2"
    assert home.end(process).status == 0


def test_no_secret_stands_in_an_object_that_is_not_one(lab: Cluster, home: ClusterHome) -> None:
    text = job(role("echo <% $secrets.token %>; sleep 5"), more="secrets: {token: hunter2-hunter2-hunter2}")
    process = home.start(text.replace("uri: debian", "uri: 'localhost/user:1'"), "-e", "kubernetes")
    assert first_line(process) == "******\n"
    everything = lab.kubectl("get", "jobs,pods,configmaps,events", "-o", "json") + lab.kubectl("describe", "pods")
    everything += "".join(lab.kubectl("logs", name) for name in pods(lab))
    assert "hunter2" not in everything
    assert "******" in everything
    modes = lab.kubectl("exec", *pods(lab), "--", "stat", "-L", "-c", "%a %G", "/pailot/given/payload")
    assert modes.split()[0] == "440"
    assert home.end(process).status == 0
