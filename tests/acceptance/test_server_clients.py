"""Clients that were made for OpenPAI, unchanged, against our server; and those we have no copy of, request by request."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pailot.testing.runs import PATIENCE

from ..support.http_server import PASSWORD, Server, job

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

CLIENTS = Path(__file__).parents[1] / "clients"
SDK = CLIENTS / "node_modules" / "@microsoft" / "openpai-js-sdk"

NNI = Path(__file__).parents[2] / ".venv-nni"

LUIGI_CASE = """
import sys
import time
import luigi
from luigi.contrib.pai import PaiTask, TaskRole

NAME = "test_job_sk_{{0}}".format(time.time())

class SklearnJob(PaiTask):
    image = "openpai/pai.example.sklearn"
    name = NAME
    virtual_cluster = "spark"
    tasks = [TaskRole("test", "{command}", memoryMB=4096)]
    _PaiTask__POLL_TIME = 0.05  # five seconds else

open("name", "w").write(NAME)
sys.exit(0 if luigi.build([SklearnJob()], local_scheduler=True, workers=1) else 1)
"""

LUIGI = """
import sys
import luigi
from luigi.contrib.pai import PaiTask, TaskRole

class Job(PaiTask):
    name = "from-luigi"
    image = "debian"
    tasks = [TaskRole("main", "echo from luigi", memoryMB=128)]
    _PaiTask__POLL_TIME = 0.05  # five seconds else

sys.exit(0 if luigi.build([Job()], local_scheduler=True, workers=1) else 1)
"""


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server(None, "--stop-jobs", PAILOT_V1_SUCCEEDED_STATE="SUCCEED") as started:
        yield started


@pytest.fixture
def node() -> str:
    found = shutil.which("node")
    if not found or not SDK.is_dir():
        pytest.skip("install Node.js and run: make node")
    return found


@pytest.mark.node
def test_openpais_javascript_sdk(node: str) -> None:
    with Server(None, "--stop-jobs") as server:
        done = subprocess.run(
            [node, CLIENTS / "sdk.js", server.url, PASSWORD], capture_output=True, text=True, timeout=PATIENCE, check=False
        )
        assert done.returncode == 0, done.stderr
        told: dict[str, Any] = json.loads(done.stdout)
        uri = next(each["uri"] for each in told["logs"]["locations"] if each["name"] == "stdout")
        assert server.get(uri, None).text == "from the sdk\n"
    assert told["info"]["authnMethod"] == "basic"
    assert told["login"]["admin"] is True
    assert told["deleted"] == {"message": "revoke successfully"}
    assert told["created"]["status"] == 202
    assert (told["state"], told["stoppedState"], told["v1state"]) == ("SUCCEEDED", "STOPPED", "SUCCEEDED")
    assert told["list"] == ["from-sdk"]
    assert told["counted"]["totalCount"] == 1
    assert told["detail"]["taskRoles"]["main"]["taskStatuses"][0]["taskState"] == "SUCCEEDED"
    assert told["config"]["taskRoles"]["main"]["commands"] == ["echo from the sdk"]
    assert told["task"]["attempts"][0]["attemptState"] == "SUCCEEDED"
    assert told["attempts"][0]["isLatest"] is True
    assert told["healthz"] == "ok"
    assert told["users"] == ["admin", "sdkuser"]
    assert (told["one"]["email"], told["regrouped"]) == ("new@x.org", ["default", "sdkgroup"])
    assert told["cluster"]["resourcesTotal"]["cpu"] == 16
    assert told["noJob"] == {"kind": "NoJobError", "status": 404, "code": "NoJobError"}
    assert told["noToken"]["kind"] == "UnauthorizedUserError"
    assert told["noUser"]["kind"] == "NoUserError"
    assert told["conflict"]["code"] == "ConflictJobError"
    assert told["invalid"]["code"] == "InvalidProtocolError"
    assert told["v1config"]["jobName"] == "old-style"
    assert (told["noStorage"]["status"], told["noStorage"]["code"]) == (404, "NoStorageError")
    assert told["v1ssh"]["kind"] == "StatusCodeError"
    assert told["v1revoked"] == {"message": "revoke successfully"}
    assert told["logout"] == {"message": "Logout successfully"}


@pytest.mark.node
def test_openpais_command_line(node: str, server: Server, tmp_path: Path) -> None:
    (tmp_path / ".openpai").mkdir()
    (tmp_path / "job.yaml").write_text(job("from-pai", "echo from pai"))

    def pai(*arguments: str) -> str:
        done = subprocess.run(
            [node, SDK / "lib" / "src" / "cli.js", *arguments],
            env={**os.environ, "HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=True,
        )
        assert "Error" not in done.stdout + done.stderr
        return done.stdout

    pai("addc", server.url, "admin", server.token, "--alias", "here")
    assert server.url in pai("listc")
    assert "202" in pai("subj", "here", str(tmp_path / "job.yaml"))
    server.wait("from-pai")
    assert "from-pai" in pai("listj", "here")
    assert "SUCCEEDED" in pai("getj", "here", "from-pai")


def test_luigis_own_pai_task(server: Server, tmp_path: Path) -> None:
    (tmp_path / "flow.py").write_text(LUIGI)
    (tmp_path / "luigi.cfg").write_text(f"[OpenPai]\npai_url={server.url}\nusername=admin\npassword={PASSWORD}\n")
    done = subprocess.run(
        [sys.executable, "flow.py"],
        cwd=tmp_path,
        env={**os.environ, "LUIGI_CONFIG_PATH": str(tmp_path / "luigi.cfg")},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert server.get("/jobs/from-luigi/logs/main/0").text == "from luigi\n"
    assert server.get("/api/v1/jobs/from-luigi", None).json["jobStatus"]["state"] == "SUCCEED"
    assert server.get("/api/v2/jobs/admin~from-luigi").json["jobStatus"]["state"] == "SUCCEEDED"


@pytest.mark.parametrize(("command", "succeeds"), [("cd .; echo ran", True), ("echo ran; exit 1", False)])
def test_the_cases_of_luigis_own_test_file(server: Server, tmp_path: Path, command: str, succeeds: bool) -> None:
    """Its job has a name with a dot, a virtual cluster and 4 GB; it is run to success, and to failure."""
    server.ask("PUT", "/virtual-clusters/spark", {"vcCapacity": 30})
    (tmp_path / "flow.py").write_text(LUIGI_CASE.format(command=command))
    (tmp_path / "luigi.cfg").write_text(f"[OpenPai]\npai_url={server.url}\nusername=admin\npassword={PASSWORD}\n")
    environment = {**os.environ, "LUIGI_CONFIG_PATH": str(tmp_path / "luigi.cfg")}
    done = subprocess.run(
        [sys.executable, "flow.py"], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert (done.returncode == 0) == succeeds, done.stderr[-3000:]
    name = (tmp_path / "name").read_text()
    assert "." in name
    told = server.get(f"/api/v1/jobs/{name}", None).json["jobStatus"]
    assert (told["state"], told["virtualCluster"]) == ("SUCCEED" if succeeds else "FAILED", "spark")
    assert server.get(f"/jobs/{name}/logs/test/0").text == "ran\n"


def test_nnis_own_openpai_service(tmp_path: Path) -> None:
    if not (NNI / "nni_node" / "node").exists():
        pytest.skip("NNI is not installed: make .venv-nni/.installed")
    folder = tmp_path / "data"
    (folder / "exp").mkdir(parents=True)
    with Server(None, "--stop-jobs", PAILOT_STORAGE_FOLDERS=f"nni={folder}") as server:
        done = subprocess.run(
            [NNI / "nni_node" / "node", CLIENTS / "nni.js", server.url, "admin", server.token, folder],
            env={**os.environ, "NODE_PATH": str(NNI / "nni_node")},
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["good"], told["bad"], told["running"], told["stopped"]) == ("SUCCEEDED", "FAILED", "RUNNING", "USER_CANCELED")
    assert (folder / "exp" / "said").read_text() == "from NNI\n"


def test_curl(server: Server, tmp_path: Path) -> None:
    curl = shutil.which("curl")
    if curl is None:
        pytest.skip("install curl")
    (tmp_path / "job.yaml").write_text(job("from-curl", "echo from curl"))

    def ask(*arguments: str) -> Any:
        done = subprocess.run([curl, "-sS", "-f", *arguments], capture_output=True, text=True, timeout=PATIENCE, check=True)
        return done.stdout

    login = ["-d", "username=admin", "--data-urlencode", f"password={PASSWORD}", f"{server.url}/api/v1/authn/basic/login"]
    token = json.loads(ask(*login))["token"]
    bearer = ["-H", f"Authorization: Bearer {token}"]
    text = ["-H", "Content-Type: text/yaml", "--data-binary", f"@{tmp_path / 'job.yaml'}"]
    assert json.loads(ask(*bearer, *text, f"{server.url}/rest-server/api/v2/jobs"))["status"] == 202
    live = ask("-N", *bearer, f"{server.url}/api/v2/jobs/from-curl/logs/main/0?follow=true")
    assert 'text":"from curl\\n"' in live
    assert "event: end" in live
    assert json.loads(ask("-G", *bearer, "-d", "limit=1", f"{server.url}/api/v2/jobs"))[0]["name"] == "from-curl"


def test_what_the_editor_extension_asks(server: Server) -> None:
    assert server.get("/healthz", None).status == 200
    probe = server.get("/rest-server/api/v2/jobs/protocolversion/config", None)
    assert probe.code != "NoApiError"
    form = f"username=admin&password={PASSWORD}&expiration=4000"
    token = server.ask("POST", "/rest-server/api/v1/token", form, None, kind="application/x-www-form-urlencoded").json["token"]
    assert server.ask("GET", "/rest-server/api/v1/user/admin/jobs/not-yet", token=token).code == "NoJobError"
    nested = (
        "jobName=from-editor&image=debian&virtualCluster=default&taskRoles[0][name]=w&taskRoles[0][taskNumber]=2"
        "&taskRoles[0][cpuNumber]=1&taskRoles[0][memoryMB]=128&taskRoles[0][gpuNumber]=0&taskRoles[0][command]=true"
        "&taskRoles[0][portList][0][label]=web&taskRoles[0][portList][0][beginAt]=0&taskRoles[0][portList][0][portNumber]=1"
    )
    answer = server.ask("POST", "/rest-server/api/v1/user/admin/jobs", nested, token, kind="application/x-www-form-urlencoded")
    assert (answer.status, answer.json["message"]) == (202, "update job from-editor successfully")
    detail = server.wait("from-editor")
    assert "web" in detail["taskRoles"]["w"]["taskStatuses"][1]["containerPorts"]


def test_what_the_old_python_sdk_asks(server: Server) -> None:
    server.run(job("for-sdk", "true"))
    base = "/rest-server/api/v1"
    # It sends a JSON body with every GET, and no token.
    for path in ("", "/jobs", "/user/admin/jobs", "/user/admin/jobs/for-sdk", "/user/admin/jobs/for-sdk/config"):
        assert server.ask("GET", base + path, {}, None).status == 200, path
    user = server.ask("GET", f"{base}/user/admin", {}).json
    assert "default" in user["virtualCluster"]
    cluster = server.ask("GET", f"{base}/virtual-clusters", {}).json["default"]
    assert set(cluster["resourcesTotal"]) == set(cluster["resourcesUsed"]) >= {"GPUs", "vCores", "memory"}
    old = {"jobName": "old.job-1", "image": "debian", "taskRoles": [{"name": "w", "command": "echo old", "memoryMB": 128}]}
    answer = server.ask("POST", f"{base}/user/admin/jobs", old)
    assert answer.status == 202, answer
    assert answer.headers["x-warning"] is None
    warned = server.ask("POST", f"{base}/jobs", {**old, "jobName": "warned", "killAllOnCompletedTaskNumber": 1})
    assert (warned.status, "obsolete" in warned.headers["x-warning"]) == (202, True)
    name = answer.json["name"]
    server.wait(name)
    assert server.get(f"{base}/jobs/{name}/config").json["jobName"] == "old.job-1"
    assert server.get(f"/jobs/{name}/config").json["taskRoles"]["w"]["commands"] == ["echo old"]
    assert server.ask("POST", f"{base}/jobs", old).code == "ConflictJobError"
    assert server.ask("POST", f"{base}/user/somebody/jobs", old).status == 403
    assert server.ask("PUT", f"{base}/user/admin/jobs/{name}/executionType", {"value": "STOP"}).status == 202
    assert server.ask("POST", f"{base}/jobs", {"jobName": "x"}).status == 400
    deleted = server.ask("DELETE", f"{base}/jobs/{name}")
    assert (deleted.status, deleted.json["message"]) == (202, f"deleted job {name} successfully")


def test_what_nni_asks(server: Server) -> None:
    login = server.ask("POST", "/rest-server/api/v1/token", {"username": "admin", "password": PASSWORD}, None)
    token = login.json["token"]
    answer = server.ask("POST", "/rest-server/api/v2/jobs", job("nni_exp_a_trial_b", "true"), token, kind="text/yaml")
    assert answer.status == 202
    server.wait("nni_exp_a_trial_b")
    status = server.get("/rest-server/api/v2/jobs/admin~nni_exp_a_trial_b", token).json["jobStatus"]
    assert status["state"] == "SUCCEEDED"
    assert status["appLaunchedTime"] <= status["completedTime"]
    assert status["appTrackingUrl"] == ""
    listed = server.get("/rest-server/api/v2/jobs?username=admin", token).json
    assert {"name", "state"} <= set(listed[0])
    assert (
        server.ask("PUT", "/rest-server/api/v2/jobs/admin~nni_exp_a_trial_b/executionType", {"value": "STOP"}, token).status
        == 202
    )


def test_version_1_without_a_token_can_be_shut() -> None:
    with Server(None, PAILOT_V1_ANONYMOUS_READ="off") as server:
        for path in ("/api/v1/jobs", "/api/v1/jobs/x", "/api/v1/user/admin/jobs", "/api/v1/virtual-clusters"):
            assert server.get(path, None).code == "UnauthorizedUserError"
        assert server.get("/api/v1/jobs").status == 200
