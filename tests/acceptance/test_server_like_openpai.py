"""What OpenPAI's own API tests, its web portal and other clients of it expect of a server, and found to be otherwise here."""

from __future__ import annotations

from typing import Any

import pytest

from ..support.http_server import PASSWORD, Server, job

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

NOT_ADMIN = {"code": "ForbiddenUserError", "message": "Non-admin is not allow to do this operation."}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server(None, "--stop-jobs", PAILOT_GPUS="8") as started:
        yield started


def test_a_password_that_is_not_changed_ends_no_log_in(server: Server) -> None:
    token, elsewhere = server.user("peter"), server.login("peter", PASSWORD)
    own = {"username": "peter", "email": "new@x.org", "oldPassword": PASSWORD, "newPassword": PASSWORD}
    assert server.ask("PUT", "/users/me", {"patch": False, "data": own}, token).status == 201
    assert server.get("/users/peter", token).json["email"] == "new@x.org"
    for put in (
        ("/users/peter/password", {"newPassword": PASSWORD}),
        ("/users", {"patch": True, "data": {"username": "peter", "password": PASSWORD}}),
    ):
        assert server.ask("PUT", *put).status == 201
    assert (server.get("/jobs", token).status, server.get("/jobs", elsewhere).status) == (200, 200)


@pytest.mark.parametrize("path", ["/users/me", "/users/{}/password"])
def test_a_new_password_keeps_the_log_in_that_made_the_change(server: Server, path: str) -> None:
    name = f"paula{len(path)}"
    token, elsewhere = server.user(name), server.login(name, PASSWORD)
    change: dict[str, Any] = {"oldPassword": PASSWORD, "newPassword": "another one"}
    body = {"patch": True, "data": {"username": name, **change}} if path == "/users/me" else change
    assert server.ask("PUT", path.format(name), body, token).status == 201
    assert (server.get("/jobs", token).status, server.get("/jobs", elsewhere).status) == (200, 401)
    server.login(name, "another one")


def test_who_is_no_administrator_is_told_so_in_openpais_words(server: Server) -> None:
    token = server.user("nora")
    for method, path, body in (
        ("POST", "/users", {"username": "x", "password": PASSWORD}),
        ("PUT", "/users", {"patch": True, "data": {"username": "admin", "email": "x@x.org"}}),
        ("DELETE", "/users/admin", None),
        ("PUT", "/users/admin/extension", {"extension": {}}),
        ("PUT", "/users/admin/group", {"groupname": "default"}),
        ("POST", "/groups", {"groupname": "g"}),
        ("GET", "/groups/default/userlist", None),
        ("PUT", "/virtual-clusters/x", {"vcCapacity": 1}),
        ("GET", "/kubernetes/nodes", None),
    ):
        answer = server.ask(method, path, body, token)
        assert (answer.status, answer.json) == (403, NOT_ADMIN), path
    wrong = server.ask("POST", "/authn/basic/login", {"username": "nora", "password": "incorrect one"}, None)
    assert (wrong.status, wrong.json) == (400, {"code": "IncorrectPasswordError", "message": "Password is incorrect."})


def test_small_answers(server: Server) -> None:
    server.user("gerd")
    assert server.get("/groups/no_such_group/userlist").json == []
    assert server.get("/jobs/admin~no-such-job/job-attempts/healthz").text == "ok"
    admins = server.ask("PUT", "/users/admin/virtualcluster", {"virtualCluster": ["default"]})
    assert (admins.status, admins.code) == (403, "ForbiddenUserError")
    for method, path, body, message in (
        ("PUT", "/users/gerd/group", {"groupname": "default"}, "User gerd is added into group default"),
        ("PUT", "/users/gerd/email", {"email": "g@x.org"}, "Update user email data successfully."),
        ("PUT", "/users/gerd/grouplist", {"grouplist": ["default"]}, "update user grouplist successfully."),
        ("PUT", "/groups/default/description", {"description": "d"}, "update group description data successfully."),
    ):
        assert server.ask(method, path, body).json == {"message": message}


def test_a_job_that_waits_tells_its_tasks(server: Server) -> None:
    """The portal, the VS Code client and others look at the task roles of a job from its first second on."""
    waits = job("waits-long", "true", instances=2).replace("cpu: 1", "cpu: 64").replace("  main:", "  ps_Main:")
    assert server.submit(waits).status == 202
    told = server.get("/jobs/admin~waits-long").json
    assert (told["jobStatus"]["state"], told["jobStatus"]["attemptState"]) == ("WAITING", "WAITING")
    assert "attemptId" not in told["jobStatus"]
    tasks = told["taskRoles"]["psmain"]["taskStatuses"]
    assert told["taskRoles"]["psmain"]["taskRoleStatus"] == {"name": "psmain"}
    assert [(each["taskIndex"], each["taskState"], each["attemptId"]) for each in tasks] == [(0, "WAITING", 0), (1, "WAITING", 0)]
    assert [each["containerId"] for each in tasks] == [None, None]
    assert all(each["createdTime"] and each["launchedTime"] is None for each in tasks)
    history = server.get(tasks[0]["containerLog"].removesuffix("/0/logs")).json
    assert (history["taskState"], [each["attemptState"] for each in history["attempts"]]) == ("WAITING", ["WAITING"])
    for below in ("/attempts/0", "/job-attempts/0"):
        shown = server.get(f"/jobs/admin~waits-long{below}").json
        assert shown.get("state", shown.get("jobStatus", {}).get("attemptState")) == "WAITING", below
        assert shown["taskRoles"]["psmain"]["taskStatuses"] == tasks
    assert server.get("/api/v1/jobs/admin~waits-long").json["taskRoles"]["psmain"]["taskStatuses"] == tasks
    server.ask("PUT", "/jobs/admin~waits-long/executionType", {"value": "STOP"})
    stopped = server.wait("waits-long")["taskRoles"]["psmain"]["taskStatuses"]
    assert [(each["taskState"], each["containerExitCode"]) for each in stopped] == [("STOPPED", -210), ("STOPPED", -210)]


def test_pods_have_conditions_and_are_no_service(server: Server) -> None:
    """The portal takes pods with the label `app` for services of the cluster, and reads the conditions of each."""
    server.submit(job("conditioned", "touch started; sleep 1000"))
    server.begun("conditioned")
    server.submit(job("pending", "true").replace("cpu: 1", "cpu: 64"))
    pods = {each["metadata"]["labels"]["jobName"]: each for each in server.get("/kubernetes/pods").json["items"]}
    assert all("app" not in each["metadata"]["labels"] for each in pods.values())
    states = {name: {each["type"]: each["status"] for each in pod["status"]["conditions"]} for name, pod in pods.items()}
    assert states["conditioned"] == {"Initialized": "True", "Ready": "True", "ContainersReady": "True", "PodScheduled": "True"}
    assert states["pending"] == {"PodScheduled": "False"}
    assert pods["pending"]["status"]["conditions"][0]["reason"] == "Unschedulable"
    for name in ("conditioned", "pending"):
        server.ask("PUT", f"/jobs/admin~{name}/executionType", {"value": "STOP", "now": True})
        server.wait(name)


def test_a_virtual_cluster_reads_back_as_it_was_set(server: Server) -> None:
    assert server.ask("PUT", "/virtual-clusters/third", {"vcCapacity": 30, "vcMaxCapacity": 60}).status == 201
    assert server.ask("PUT", "/virtual-clusters/given", {"resourcesGuaranteed": {"cpu": 2.5, "gpu": 2}}).status == 201
    told = server.get("/virtual-clusters").json
    assert (told["third"]["capacity"], told["third"]["maxCapacity"]) == (30, 60)
    assert told["third"]["resourcesTotal"] == {"cpu": 4.8, "memory": 4800, "gpu": 2, "vCores": 4.8, "GPUs": 2}
    assert told["given"]["resourcesTotal"] == {"cpu": 2.5, "memory": 0, "gpu": 2, "vCores": 2.5, "GPUs": 2}
    assert (told["given"]["capacity"], told["default"]["capacity"]) == (25, 45)
    # Clients take total minus guaranteed for broken machines: there are none.
    for name, each in told.items():
        assert each["resourcesTotal"] == each["resourcesGuaranteed"], name
    assert told["default"]["resourcesTotal"]["gpu"] == 4
    assert round(told["default"]["resourcesTotal"]["cpu"], 6) == 8.7
    # What a change does not name stays.
    assert server.ask("PUT", "/virtual-clusters/third", {"userLimits": {"jobs": 3, "gpus": 1}}).status == 201
    assert server.ask("PUT", "/virtual-clusters/third", {"userLimits": {"gpus": None}, "description": "d"}).status == 201
    after = server.get("/virtual-clusters/third").json
    assert (after["capacity"], after["userLimits"]) == (30, {"jobs": 3})
    for bad in ({"userLimits": {"jobs": -1}}, {"userLimits": {"jobs": 1.5}}, {"userLimits": {"cpus": 1}}):
        assert server.ask("PUT", "/virtual-clusters/third", bad).code == "InvalidParametersError"
    for name in ("third", "given"):
        assert server.ask("DELETE", f"/virtual-clusters/{name}").status == 201
    assert server.get("/virtual-clusters/default").json["capacity"] == 100


def test_each_user_has_what_the_limits_allow(server: Server) -> None:
    """Limits hold for `default` as well, are told by `why`, and survive a restart: they are in the database."""
    token, other = server.user("lena"), server.user("otto")
    assert server.ask("PUT", "/virtual-clusters/default", {"vcCapacity": 10}).status == 403
    assert server.ask("PUT", "/virtual-clusters/default", {"userLimits": {"jobs": 1, "gpus": 2}}).status == 201
    server.submit(job("first", "sleep 1000"), token)
    server.begun("first", token)
    server.submit(job("second", "true"), token)
    server.submit(job("greedy", "true").replace("gpu: 0", "gpu: 3"), token)
    assert (
        server.get("/jobs/lena~second/why", token)
        .json["lines"][-1]
        .endswith(
            "lena may run 1 job at once in virtual cluster 'default', and 1 runs; it waits for the end of lena~first; "
            "it is number 1 of 1 in line"
        )
    )
    words = "it asks for 3 GPUs, and each user may use 2 GPUs at once in virtual cluster 'default'"
    assert words in " ".join(server.get("/jobs/lena~greedy/why", token).json["lines"])
    assert server.run(job("others", "true"), other)["jobStatus"]["state"] == "SUCCEEDED"
    assert server.get("/jobs/lena~second", token).json["jobStatus"]["state"] == "WAITING"
    server.ask("PUT", "/virtual-clusters/default", {"userLimits": {"jobs": 2, "gpus": None}})
    assert server.wait("second", token)["jobStatus"]["state"] == "SUCCEEDED"
    assert server.wait("greedy", token)["jobStatus"]["state"] in ("SUCCEEDED", "FAILED")
    server.ask("PUT", "/jobs/lena~first/executionType", {"value": "STOP", "now": True}, token)
    server.ask("PUT", "/virtual-clusters/default", {"userLimits": {"jobs": None}})
