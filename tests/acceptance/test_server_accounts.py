"""Accounts over HTTP: logging in, tokens, users, groups, virtual clusters, storages, and who may do what."""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.postgres import programs

from ..support.http_server import PASSWORD, Server, job

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def server(database: str) -> Iterator[Server]:
    with Server(None, "--stop-jobs", PAILOT_DATABASE=database) as started:
        yield started


def test_info(server: Server) -> None:
    for path in ("/api/v1", "/api/v1/", "/api/v2/info", "/rest-server/api/v2/info"):
        told = server.get(path, None).json
        assert (told["name"], told["launcherType"], told["authnMethod"]) == ("PAI RESTful API", "k8s", "basic")
    assert server.get("/api/v2/", None).text == "PAI RESTful API v2 (beta version)"
    assert server.get("/authn/info", None).json["loginURI"] == "/api/v1/authn/basic/login"
    assert server.get("/authn/oidc/login", None).status == 404


@pytest.mark.parametrize("path", ["/authn/basic/login", "/api/v1/authn/basic/login", "/api/v1/token", "/tokens"])
def test_logging_in(server: Server, path: str) -> None:
    form = server.ask(
        "POST", path, f"username=admin&password={PASSWORD}&expiration=4000", None, kind="application/x-www-form-urlencoded"
    )
    told = form.json
    assert (form.status, told["user"], told["admin"]) == (200, "admin", True)
    claims = json.loads(base64.urlsafe_b64decode(told["token"].split(".")[1] + "=="))
    assert (claims["username"], claims["application"], claims["exp"] - claims["iat"]) == ("admin", False, 4000)
    for body, code in (
        ({"username": "admin", "password": "wrong!"}, "IncorrectPasswordError"),
        ({"username": "nobody", "password": "wrong!"}, "IncorrectPasswordError"),
        ({"username": "admin"}, "InvalidParametersError"),
        ({"username": "ad min", "password": PASSWORD}, "InvalidParametersError"),
        ({"username": "admin", "password": PASSWORD, "expiration": 1}, "InvalidParametersError"),
        ({"username": "admin", "password": PASSWORD, "other": 1}, "InvalidParametersError"),
        (None, "InvalidParametersError"),
    ):
        answer = server.ask("POST", path, body, None)
        assert (answer.status, answer.code) == (400, code), answer


def test_guessing_passwords_becomes_slow(server: Server) -> None:
    server.user("target")
    answers = [server.ask("POST", "/authn/basic/login", {"username": "target", "password": "guess-it"}, None) for _ in range(8)]
    assert answers[0].status == 400
    assert answers[-1].status == 429
    assert int(answers[-1].headers["retry-after"]) >= 1


def test_tokens(server: Server) -> None:
    token = server.user("tokens")
    assert server.get("/tokens", token).json["tokens"] == [token]
    application = server.ask("POST", "/tokens/application", token=token).json
    assert application["application"] is True
    made = application["token"]
    checked = server.get("/tokens/check", made).json
    assert (checked["username"], checked["application"], checked["admin"]) == ("tokens", True, False)
    assert "exp" not in checked
    assert sorted(server.get("/tokens", token).json["tokens"]) == sorted([token, made])
    # What only browsers may do.
    for method, path in (("GET", "/tokens"), ("POST", "/tokens/application"), ("DELETE", "/authn/basic/logout")):
        answer = server.ask(method, path, token=made)
        assert (answer.status, answer.code) == (403, "ForbiddenUserError")
    # Basic authentication with an application token.
    basic = base64.b64encode(f"tokens:{made}".encode()).decode()
    assert server.ask("GET", "/jobs", token=None, headers={"Authorization": f"Basic {basic}"}).status == 200
    wrong = base64.b64encode(f"admin:{made}".encode()).decode()
    assert server.ask("GET", "/jobs", token=None, headers={"Authorization": f"Basic {wrong}"}).status == 401
    # Somebody else's, garbage, one's own.
    assert server.ask("DELETE", f"/tokens/{made}", token=server.user("thief")).code == "ForbiddenUserError"
    assert server.ask("DELETE", "/tokens/garbage", token=token).status == 404
    assert server.ask("DELETE", f"/tokens/{made}", token=token).json == {"message": "revoke successfully"}
    assert server.get("/jobs", made).status == 401
    assert server.ask("DELETE", "/authn/basic/logout", token=token).json == {"message": "Logout successfully"}
    assert server.get("/jobs", token).status == 401


def forged(token: str, **changes: Any) -> str:
    head, body, signature = token.split(".")
    claims = json.loads(base64.urlsafe_b64decode(body + "=="))
    changed = base64.urlsafe_b64encode(json.dumps({**claims, **changes}).encode()).rstrip(b"=").decode()
    return f"{head}.{changed}.{signature}"


def test_tokens_that_are_not_ours(server: Server) -> None:
    good = server.login("admin", PASSWORD)
    nothing = base64.urlsafe_b64encode(b'{"alg":"none","typ":"JWT"}').rstrip(b"=").decode()
    for bad in (
        good[:-2] + ("AA" if good[-2:] != "AA" else "BB"),
        forged(good, username="admin2"),
        forged(good, exp=9999999999),
        f"{nothing}.{good.split('.')[1]}.",
        "x" * 5000,
        "a.b.c",
        ".",
    ):
        answer = server.get("/jobs", bad)
        assert (answer.status, answer.code) == (401, "UnauthorizedUserError"), bad
        assert answer.json["message"] == "Your token is invalid."
    assert server.get("/jobs", None).json["message"] == "Guest is not allowed to do this operation."
    for header in ("Bearer", "Bearer ", "Basic !!!", "Basic", "Digest x", "bearer  ", "é"):
        assert server.ask("GET", "/jobs", token=None, headers={"Authorization": header}).status == 401


def test_users(server: Server) -> None:
    make = {
        "username": "una",
        "password": PASSWORD,
        "email": "u@x.org",
        "extension": {"jobSSH": {"key": "PRIVATE", "pubKey": "p"}},
    }
    answer = server.ask("POST", "/users/", make)
    assert (answer.status, answer.json["message"]) == (201, "User is created successfully")
    assert any("not isolated" in line for line in answer.json["warnings"])
    assert server.ask("POST", "/users", make).code == "ConflictUserError"
    assert server.ask("POST", "/users", {"username": "x", "password": "short"}).status == 400
    assert server.ask("POST", "/users", {**make, "username": "v", "virtualCluster": ["none"]}).code == "NoVirtualClusterError"
    token = server.login("una", PASSWORD)
    own = server.get("/users/una", token).json
    assert (own["email"], own["admin"], own["virtualCluster"]) == ("u@x.org", False, ["default"])
    assert own["extension"]["jobSSH"]["key"] == "PRIVATE"
    assert set(own) == {"username", "email", "grouplist", "extension", "admin", "virtualCluster", "storageConfig"}
    # A private key is nobody else's business.
    assert "PRIVATE" not in server.get("/users/una").text
    assert "PRIVATE" not in server.get("/users", server.user("other")).text
    assert server.get("/users/nobody").status == 400
    assert server.get("/users/nobody").code == "NoUserError"
    # Changes.
    assert server.ask("PUT", "/users", {"data": {"username": "una"}}).status == 400
    assert server.ask("PUT", "/users", {"patch": True, "data": {"username": "una", "email": "new@x.org"}}).status == 201
    assert server.ask("PUT", "/users", {"patch": True, "data": {"username": "none", "email": ""}}).status == 404
    assert server.ask("PUT", "/users/una/extension", {"extension": {"color": "red"}}, token).status == 201
    told = server.get("/users/una", token).json
    assert (told["email"], told["extension"]["color"], "jobSSH" in told["extension"]) == ("new@x.org", "red", True)
    assert server.ask("PUT", "/users/una/email", {"email": "e@x.org"}, token).status == 201
    assert server.ask("PUT", "/users/admin/email", {"email": "e@x.org"}, token).status == 403
    assert server.ask("PUT", "/users/una/admin", {"admin": True}, token).status == 403
    assert server.ask("PUT", "/users/una/admin", {"admin": True}).status == 201
    assert server.get("/users/una").json["admin"] is True
    assert server.ask("DELETE", "/users/una").code == "RemoveAdminError"
    assert server.ask("PUT", "/users/una/admin", {"admin": False}).status == 201
    assert server.ask("DELETE", "/users/una").status == 200
    assert server.get("/jobs", token).status == 401
    assert server.ask("DELETE", "/users/una").code == "NoUserError"
    assert server.ask("PUT", "/users/admin/admin", {"admin": False}).status == 403


def test_a_password_change_works_and_ends_browser_tokens(server: Server) -> None:
    token = server.user("pat")
    application = server.ask("POST", "/tokens/application", token=token).json["token"]
    body: dict[str, Any] = {"data": {"username": "pat", "oldPassword": "wrong-one", "newPassword": "another one"}, "patch": True}
    assert server.ask("PUT", "/users/me", body, token).status == 403
    body["data"] = {"username": "pat", "oldPassword": PASSWORD, "newPassword": "another one"}
    assert server.ask("PUT", "/users/me", {**body, "data": {**body["data"], "username": "admin"}}, token).status == 403
    elsewhere = server.login("pat", PASSWORD)
    assert server.ask("PUT", "/users/me", body, token).status == 201
    assert (server.get("/jobs", token).status, server.get("/jobs", elsewhere).status) == (200, 401)
    assert server.get("/jobs", application).status == 200
    token = server.login("pat", "another one")
    put = "/users/pat/password"
    assert server.ask("PUT", put, {"oldPassword": "wrong-one", "newPassword": "third one"}, token).status == 403
    assert server.ask("PUT", put, {"oldPassword": "another one", "newPassword": "third one"}, token).status == 201
    assert server.ask("PUT", put, {"newPassword": "fourth one"}).status == 201  # the administrator
    server.login("pat", "fourth one")


def test_groups(server: Server) -> None:
    extension = {"acls": {"admin": False, "virtualClusters": [], "storageConfigs": ["disk"]}}
    make = {"groupname": "lab", "description": "d", "externalName": "e", "extension": extension}
    assert server.ask("POST", "/groups", make).json == {"message": "group is created successfully"}
    assert server.ask("POST", "/groups", make).status == 409
    assert server.ask("POST", "/groups", {"groupname": "no-dashes"}).status == 400
    assert server.get("/groups/lab").json == make
    assert "lab" in [each["groupname"] for each in server.get("/groups").json]
    assert (server.get("/groups/none").status, server.get("/groups/none").code) == (400, "NoGroupError")
    token = server.user("gina")
    assert server.ask("POST", "/groups", {**make, "groupname": "own"}, token).status == 403
    assert server.ask("PUT", "/users/gina/group", {"groupname": "lab"}).status == 201
    assert server.get("/users/gina").json["storageConfig"] == ["disk"]
    assert server.get("/groups/lab/userlist").json == [{"username": "gina", "clusterAdmin": False}]
    assert server.get("/groups/lab/userlist", token).status == 403
    assert server.ask("DELETE", "/users/gina/group", {"groupname": "lab"}).status == 201
    assert server.ask("PUT", "/users/gina/grouplist", {"grouplist": ["default", "none"]}).code == "NoGroupError"
    assert server.ask("PUT", "/users/gina/grouplist", {"grouplist": ["default", "lab"]}).status == 201
    for path, body in (
        ("", {"patch": True, "data": {"groupname": "lab", "description": "x"}}),
        ("/lab/description", {"description": "y"}),
        ("/lab/externalname", {"externalName": "z"}),
        ("/lab/extension", {"extension": {"more": 1}}),
        ("/lab/extension/more", {"data": 2}),
        ("/lab/extension/acls/storageConfigs", {"data": ["tape"]}),
    ):
        assert server.ask("PUT", f"/groups{path}", body).status == 201, path
    told = server.get("/groups/lab").json
    assert (told["description"], told["externalName"], told["extension"]["more"]) == ("y", "z", 2)
    assert told["extension"]["acls"]["storageConfigs"] == ["tape"]
    assert server.ask("DELETE", "/groups/lab").status == 200
    assert server.get("/users/gina").json["grouplist"] == ["default"]
    assert server.ask("DELETE", "/groups/lab").code == "NoGroupError"


def test_virtual_clusters(server: Server) -> None:
    told = server.get("/virtual-clusters").json
    assert {"capacity", "usedCapacity", "dedicated", "resourcesUsed", "resourcesGuaranteed", "resourcesTotal"} <= set(
        told["default"]
    )
    total = told["default"]["resourcesTotal"]
    assert total == {"cpu": 16, "memory": 16000, "gpu": 0, "vCores": 16, "GPUs": 0}
    assert server.ask("PUT", "/virtual-clusters/half", {"vcCapacity": 50}).status == 201
    assert server.get("/virtual-clusters/half").json["resourcesGuaranteed"]["cpu"] == 8
    # Nobody is promised what is not there.
    for much in (
        {"vcCapacity": 51},
        {"vcCapacity": 101},
        {"resourcesGuaranteed": {"gpu": 1}},
        {"resourcesGuaranteed": {"cpu": 1e300}},
    ):
        assert server.ask("PUT", "/virtual-clusters/most", much).code == "InvalidParametersError", much
    assert server.ask("PUT", "/virtual-clusters/half", {"vcCapacity": 60}).status == 201
    assert server.ask("PUT", "/virtual-clusters/half", {"vcCapacity": 50}).status == 201
    assert server.get("/virtual-clusters/none").code == "NoVirtualClusterError"
    assert server.get("/virtual-clusters/no-such").code == "InvalidParametersError"
    assert server.get("/cluster/sku-types?vc=half").status == 200
    assert server.get("/cluster/sku-types?vc=none").code == "NoVirtualClusterError"
    assert server.get("/virtual-clusters/half/sku-types").json == {"cpu": {"cpu": 1, "memory": 1000, "gpu": 0}}
    assert next(iter(server.get("/virtual-clusters?nodes").json.values()))["gpuTotal"] == 0
    token = server.user("vic")
    in_half = job("in-half", "true", more="defaults: {virtualCluster: half}")
    answer = server.submit(in_half, token)
    assert (answer.status, answer.code) == (403, "ForbiddenUserError")
    assert answer.json["message"] == "User vic is not allowed to do operation in half"
    assert server.ask("PUT", "/users/vic/virtualcluster", {"virtualCluster": ["half"]}).status == 201
    assert server.run(in_half, token)["jobStatus"]["virtualCluster"] == "half"
    assert server.ask("PUT", "/users/vic/virtualcluster", {"virtualCluster": ["none"]}).code == "NoVirtualClusterError"
    assert server.ask("PUT", "/users/admin/virtualcluster", {"virtualCluster": []}).status == 403
    assert server.ask("PUT", "/virtual-clusters/half", {"vcCapacity": 10}, token).status == 403
    assert server.ask("PUT", "/virtual-clusters/default", {"vcCapacity": 10}).status == 403
    assert server.ask("PUT", "/virtual-clusters/half/status", {"vcStatus": "stopped"}).code == "NotImplementedError"
    assert server.ask("DELETE", "/virtual-clusters/half").status == 201
    assert server.ask("DELETE", "/virtual-clusters/half").code == "NoVirtualClusterError"


def test_storages(server: Server) -> None:
    data = {"shareName": "s", "accountName": "a", "accountKey": "KEY-OF-ACCOUNT"}
    assert server.ask("PUT", "/storages/files", {"type": "azureFile", "data": data}).status == 201
    assert server.ask("PUT", "/storages/bad~name", {"type": "nfs", "data": {}}).status == 400
    token = server.user("sten")
    assert server.get("/storages", token).json == {"storages": []}
    assert (server.get("/storages/files", token).status, server.get("/storages/none", token).code) == (403, "NoStorageError")
    acls = {"acls": {"admin": False, "virtualClusters": [], "storageConfigs": ["files"]}}
    server.ask("POST", "/groups", {"groupname": "disks", "extension": acls})
    server.ask("PUT", "/users/sten/group", {"groupname": "disks"})
    told = server.get("/storages?default=true", token).json["storages"]
    assert told == [{"name": "files", "share": True, "volumeName": "files", "default": True}]
    one = server.get("/storages/files", token)
    assert (one.json["type"], one.json["data"]["shareName"]) == ("azureFile", "s")
    for path in ("/storages/files", "/storage/server", "/storage/server/files", "/storage/config/files", "/storage/config"):
        assert "KEY-OF-ACCOUNT" not in server.get(path, token).text
    assert server.get("/storages/files").json["data"]["accountKey"] == "KEY-OF-ACCOUNT"
    assert server.get("/storage/config/none", token).code == "NoStorageError"
    assert server.ask("DELETE", "/storages/files", token=token).status == 403
    assert server.ask("DELETE", "/storages/files").status == 200


def test_the_machine_in_other_words(server: Server) -> None:
    assert isinstance(server.get("/alerts").json, list)
    assert server.get("/kubernetes/nodes").json["items"][0]["status"]["capacity"]["cpu"] == "16"
    assert server.get("/api/v1/kubernetes/pods").json["kind"] == "PodList"
    assert server.get("/kubernetes/nodes", server.user("kurt")).status == 403


def test_who_may_do_what_with_a_job(server: Server) -> None:
    server.ask("PUT", "/virtual-clusters/labs", {"vcCapacity": 10})
    owner, member, stranger = (
        server.user("owner", clusters=("labs",)),
        server.user("member", clusters=("labs",)),
        server.user("stranger"),
    )
    server.run(job("private", "echo mine", more="defaults: {virtualCluster: labs}"), owner)
    reading = ("/config", "/events", "/journal", "/plan", "/logs/main/0", "/why", "/live")
    logs = "/attempts/0/taskRoles/main/taskIndex/0/attempts/0/logs"
    for path in (*reading, logs):
        for token in (owner, member, ""):
            assert server.get(f"/jobs/owner~private{path}", token).status == 200, path
        answer = server.get(f"/jobs/owner~private{path}", stranger)
        assert (answer.status, answer.code) == (403, "ForbiddenUserError"), path
    changing = (
        ("PUT", "/executionType", {"value": "STOP"}),
        ("PUT", "/tag", {"value": "t"}),
        ("DELETE", "/tag", {"value": "t"}),
        ("DELETE", "", None),
    )
    for method, path, body in changing:
        for token in (member, stranger):
            answer = server.ask(method, f"/jobs/owner~private{path}", body, token)
            assert (answer.status, answer.code) == (403, "ForbiddenUserError"), (method, path)
    # Everyone sees that it is there; a bare name is one's own.
    assert any(each["name"] == "private" for each in server.get("/jobs", stranger).json)
    assert server.get("/jobs/private", stranger).status == 404
    # A key of one job's logs opens nothing else.
    uri = server.get(f"/jobs/owner~private{logs}", owner).json["locations"][0]["uri"]
    assert server.get(uri, None).text == "mine\n"
    server.run(job("public", "echo other"), owner)
    assert server.get(uri.replace("owner~private", "owner~public"), None).status == 401
    assert server.get(re.sub("key=[0-9]+", "key=9999999999", uri), None).status == 401
    for method, path, body in changing:
        assert server.ask(method, f"/jobs/owner~private{path}", body, owner).status in (200, 202), (method, path)


def test_open_shows_all_to_all() -> None:
    with Server(None, PAILOT_OPEN="on") as server:
        stranger = server.user("stranger")
        server.ask("PUT", "/virtual-clusters/labs", {"vcCapacity": 10})
        server.run(job("shown", "echo mine", more="defaults: {virtualCluster: labs}"))
        assert server.get("/jobs/admin~shown/config", stranger).status == 200
        assert server.ask("PUT", "/jobs/admin~shown/tag", {"value": "t"}, stranger).status == 403


def test_nothing_usable_is_at_rest(server: Server, database: str) -> None:
    token = server.user("rest")
    application = server.ask("POST", "/tokens/application", token=token).json["token"]
    if database:
        dump = subprocess.run([(programs() or Path()) / "pg_dump", database], capture_output=True, check=True).stdout
        assert b"argon2" in dump
        for usable in (token, application, PASSWORD):
            assert usable.encode() not in dump
    for folder, _, files in os.walk(server.home):
        for name in files:
            path = os.path.join(folder, name)
            if os.path.isfile(path) and os.access(path, os.R_OK):
                with open(path, "rb") as stream:
                    content = stream.read()
                assert token.encode() not in content, path
                assert application.encode() not in content, path
                assert PASSWORD.encode() not in content, path
    assert server.process
    command = f"env; cat /proc/$PPID/environ /proc/{server.process.pid}/environ | tr '\\0' '\\n'; echo read"
    server.run(job("environment", command))
    log = server.get("/jobs/environment/logs/main/0").text
    assert "read" in log
    assert PASSWORD not in log
